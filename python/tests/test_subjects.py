"""Kernels, expectations, filters, seccomp, the gateway, HTML, packets and the command."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import beebox
from beebox import packets
from conftest import ROOT

RULES = "default drop\npass proto tcp to 192.0.2.0/24 port 80,443\n"


def test_kernels_are_built_in_or_read(examples: Path, tmp_path: Path) -> None:
    assert str(beebox.Kernel.builtin().version).startswith("6.18")
    minimal = beebox.Kernel.builtin("6.18-minimal")
    firewall = beebox.Object(examples / "packets/firewall.bpf.o")
    assert firewall.verify(kernel=minimal).accepted
    with pytest.raises(beebox.NotFoundError, match=r"there are 5\.10"):
        beebox.Kernel.builtin("4.9")
    assert firewall.verify(kernel="6.18").accepted
    assert beebox.__version__ == importlib.metadata.version("beebox")
    with pytest.raises(beebox.FileError, match="absent"):
        firewall.verify(kernel=tmp_path / "absent")
    with pytest.raises(beebox.NotFoundError, match=r'no kernel "4\.9" is built in, and no file'):
        firewall.verify(kernel="4.9")


def test_verification_takes_the_options_of_the_command(examples: Path) -> None:
    firewall = beebox.Object(examples / "packets/firewall.bpf.o")
    row = firewall.verify(cost=True, facts=True, log_level=2, programs=["firewall"])[0]
    data = row.to_dict()
    assert data["total_insns"] == row.insns
    assert data["cost"]
    assert data["facts"]
    assert "; int firewall" in row.log
    assert not firewall.verify(privileges="none").accepted
    with pytest.raises(beebox.FormatError, match="names no privileges"):
        firewall.verify(privileges="some")
    with pytest.raises(beebox.NotFoundError, match="firewall"):
        firewall.verify(programs=["fire"])
    cases = ROOT / "crates/testkit/cases/attach"
    replaced = beebox.Object(cases / "replaced.bpf.o")
    replacements = beebox.Object(cases / "replacements.bpf.o")
    alone = replacements.verify(programs=["reads_packet"])[0]
    attached = replacements.verify(programs=["reads_packet"], target=(replaced, "main_program"))[0]
    assert (alone.accepted, attached.accepted) == (False, True)
    with pytest.raises(beebox.NotFoundError, match="no program other"):
        replacements.verify(target=(replaced, "other"))
    with pytest.raises(TypeError, match="log_level"):
        firewall.verify(log=1)  # type: ignore[call-arg]
    with pytest.raises(beebox.DataTypeError, match=r"log_level: an int from 0 to 15 fits, got 99"):
        firewall.verify(log_level=99)
    with pytest.raises(beebox.NotFoundError, match="define nothing: no undefined symbol"):
        firewall.verify(define={"nothing": 1})
    with pytest.raises(beebox.DataTypeError, match=r"cpus: .* integer"):
        firewall.load(cpus="many")  # type: ignore[arg-type]
    with pytest.raises(beebox.DataTypeError, match="a path or the bytes of an object is expected"):
        beebox.Object(7)  # type: ignore[arg-type]


def test_globals_are_set_before_loading_and_after(examples: Path) -> None:
    firewall = beebox.Object(examples / "packets/firewall.bpf.o")
    instance = firewall.load(globals={"checks_ports": False})
    assert dict(instance.globals.items()) == {"checks_ports": False, "refused": 0}
    instance.globals["refused"] = 3
    assert instance.globals["refused"] == 3
    with pytest.raises(beebox.MapError) as constant:
        instance.globals["checks_ports"] = True
    assert constant.value.errno == 1
    with pytest.raises(beebox.NotFoundError, match="nothing"):
        firewall.load(globals={"nothing": 1})


def test_expectations_are_data(examples: Path) -> None:
    instance = beebox.Object(examples / "packets/firewall.bpf.o").load()
    report = instance.check(examples / "packets/firewall.expect")
    assert report
    assert report.runs == 3
    wrong = beebox.Expectations.parse("run firewall zero:60\nverdict XDP_DROP", name="wrong")
    report = instance.check(wrong)
    assert not report
    (difference,) = report.differences
    assert (difference.line, difference.run) == (2, (1, "firewall"))
    assert difference.difference == "expected XDP_DROP, got XDP_PASS (2)"
    assert "wrong:2: verdict XDP_DROP" in str(report)
    assert 'failures="1"' in report.junit()
    with pytest.raises(beebox.FormatError, match="expectations:1"):
        beebox.Expectations.parse("verdikt XDP_DROP")


def test_maps_are_filled_from_json_and_written(examples: Path) -> None:
    firewall = beebox.Object(examples / "packets/firewall.bpf.o")
    first, second = firewall.load(), firewall.load()
    first.fill_maps(examples / "packets/rules.json")
    dumped = first.dump_maps()
    second.fill_maps({name: dumped[name] for name in ("blocked", "open_ports")})
    assert second.map("blocked").items() == first.map("blocked").items()
    assert json.dumps(dumped)
    with pytest.raises(beebox.FormatError, match="blocked"):
        second.fill_maps({"nothing": []})


def test_filters_are_expressions_and_programs(examples: Path, tmp_path: Path) -> None:
    capture = examples / "sample.pcap"
    ssh = beebox.Filter("tcp port 22")
    counts = ssh.count(capture)
    assert (counts.matched, counts.packets) == (100, 298)
    assert ssh.copy(capture, tmp_path / "ssh.pcapng", limit=7).matched == 7
    assert ssh.count(tmp_path / "ssh.pcapng").packets == 7
    ip = beebox.Filter.compiled("ldh [12]\njeq #0x800, ip, no\nip: ret #-1\nno: ret #0")
    frames = [bytes(12) + b"\x08\0", bytes(14)]
    assert [ip.matches(frame) for frame in frames] == [True, False]
    assert list(ip.run_batch(frames)) == [0xFFFFFFFF, 0]
    assert len(ip.instructions) == 4
    with pytest.raises(beebox.FilterError, match="syntax error"):
        beebox.Filter("tcp prt 22")
    with pytest.raises(beebox.FileError):
        ssh.count(tmp_path / "absent.pcap")


def test_seccomp_filters_are_decided_tabled_compared_and_asserted(examples: Path) -> None:
    sandbox = beebox.Seccomp(examples / "sandbox.asm", machine="x86_64")
    assert sandbox.decide("read", arch="x86_64") == "ALLOW"
    assert sandbox.decide("openat", arch="x86_64").startswith("ERRNO(1")
    table = sandbox.table(["x86_64"])["tables"][0]
    assert any(group["name"] == "ioctl" for group in table["calls"])
    profile = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "syscalls": [{"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"}],
    }
    compiled = beebox.Seccomp(profile, machine="x86_64", runtime="libseccomp")
    assert not compiled.diff(compiled)
    difference = sandbox.diff(compiled)
    assert "exit" in str(difference)
    assert len(difference) == len(difference.differences) > 0
    compiled.assert_expectations("x86_64 read -> ALLOW")
    with pytest.raises(AssertionError, match="openat -> ALLOW"):
        sandbox.assert_expectations("x86_64 openat -> ALLOW")
    with pytest.raises(beebox.NotFoundError, match="no call opennat"):
        sandbox.decide("opennat", arch="x86_64")
    with pytest.raises(beebox.FormatError):
        beebox.Seccomp({"defaultAction": "NOTHING"})


def test_rules_of_the_gateway_are_explained_compared_and_run(examples: Path) -> None:
    rules = beebox.Rules(RULES)
    packet = "proto tcp from 10.0.0.1 port 4000 to 192.0.2.1 port 80"
    explained = rules.explain(packet)
    assert (explained["rule"], explained["action"]) == (1, "pass")
    (change, *_) = rules.diff(beebox.Rules("default pass\n"))
    assert (change["old"]["action"], change["new"]["action"]) == ("drop", "pass")
    assert rules.diff(beebox.Rules(RULES)) == []
    run = rules.run(examples / "sample.pcap")
    assert sum(run["verdicts"].values()) == 298
    assert rules.unreachable() == []
    assert beebox.Rules(RULES + "drop to 192.0.2.1 proto tcp port 80\n").unreachable() == [2]
    with pytest.raises(beebox.FormatError, match="line 1, column 1"):
        beebox.Rules("permit all")


def test_results_are_shown_as_html(examples: Path) -> None:
    refused = beebox.Object(examples / "verify/record.bpf.o").verify()
    assert "reference leak" in refused._repr_html_()
    assert "<pre>refused: the path ends" in refused[0]._repr_html_()
    instance = beebox.Object(examples / "packets/firewall.bpf.o").load()
    result = instance.program("firewall").test_run(bytes(64))
    assert "XDP_PASS (2)" in result._repr_html_()
    capture = instance.program("firewall").run_capture(examples / "sample.pcap")
    assert "<td>298</td>" in capture._repr_html_() or "XDP_PASS" in capture._repr_html_()
    assert "<td>0</td>" in instance.map("actions")._repr_html_()
    batch = instance.program("firewall").run_batch([bytes(64)] * 3)
    assert "<td>XDP_PASS</td><td>3</td>" in batch._repr_html_()
    assert "&lt;" in beebox.Error("a < b")._repr_html_()


def test_packets_are_shown_by_field() -> None:
    packet = bytes.fromhex(
        "020000000002020000000001 8100 6005 0800 4500002c00014000400600000a000001c0000201"
        "0fa00050000000010000000050120400 00000000 61626364"
    )
    fields = packets.fields(packet)
    assert (fields["vlan.id"], fields["ip.src"], fields["tcp.flags"]) == (5, "10.0.0.1", "SYN|ACK")
    assert (fields["tcp.dport"], fields["payload"]) == (80, "61626364")
    changed = packet[:26] + b"\x3f" + packet[27:]
    assert packets.changes(packet, changed) == "ip.ttl: 64 -> 63"
    assert "tcp      sport 4000, dport 80" in packets.describe(packet)
    for length in range(len(packet)):
        packets.describe(packet[:length])


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["verify", "examples/packets/firewall.bpf.o"], 0, "1 accepted"),
        (["verify", "examples/verify/record.bpf.o"], 1, "reference leak"),
        (["verify", "absent.o"], 2, "No such file"),
        (["verif"], 2, "verify"),
        (["--version"], 0, f"beebox {importlib.metadata.version('beebox')}"),
    ],
)
def test_the_command_is_installed_with_its_exit_codes(
    arguments: list[str], code: int, says: str
) -> None:
    for command in (
        [sys.executable, "-m", "beebox"],
        [str(Path(sys.executable).parent / "beebox")],
    ):
        done = subprocess.run(
            [*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, says in done.stdout + done.stderr) == (code, True), done


def test_nothing_needs_root() -> None:
    if os.environ.get("BEEBOX_PLAIN_USER"):
        assert os.geteuid() != 0
