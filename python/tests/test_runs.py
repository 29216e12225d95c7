"""Test runs, batches, captures and threads."""

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

import beebox


@pytest.fixture
def firewall(examples: Path) -> beebox.Program:
    instance = beebox.Object(examples / "packets/firewall.bpf.o").load(cpus=4)
    instance.fill_maps(examples / "packets/rules.json")
    return instance.program("firewall")


def frame(port: int) -> bytes:
    return bytes(Ether() / IP(src="198.51.100.7", dst="10.0.0.1") / TCP(dport=port, flags="S"))


def test_a_run_has_the_fields_of_the_system_call(firewall: beebox.Program) -> None:
    packet = Ether() / IP(src="198.51.100.7", dst="10.0.0.1") / TCP(dport=80, flags="S")
    result = firewall.test_run(packet, repeat=3, data_size_out=20)
    assert (result.verdict, result.retval, result.passes) == ("XDP_PASS", 2, True)
    assert result.data_in == bytes(packet)
    assert (result.data_out, result.data_size_out) == (bytes(packet)[:20], len(packet))
    assert (result.printk, result.records, result.redirect) == ([], [], None)
    assert result.duration > 0
    assert result.verdict.result is result
    assert firewall.test_run(bytearray(64)).data_out == bytes(64)
    assert firewall.test_run(np.zeros(64, np.uint8)).data_out == bytes(64)


def test_packets_and_options_that_linux_refuses_are_refused(firewall: beebox.Program) -> None:
    with pytest.raises(beebox.RunError, match="EINVAL") as short:
        firewall.test_run(b"short")
    assert short.value.errno == 22
    with pytest.raises(beebox.RunError, match="CPU 9"):
        firewall.test_run(bytes(64), cpu=9)
    with pytest.raises(beebox.UnsupportedError, match="LIVE_FRAMES"):
        firewall.test_run(bytes(64), flags=2)
    with pytest.raises(TypeError, match="not str"):
        firewall.test_run("00")  # type: ignore[arg-type]
    with pytest.raises(beebox.DataTypeError, match=r'clock: None, "real" or nanoseconds'):
        firewall.test_run(bytes(64), clock="never")  # type: ignore[arg-type]


def test_a_batch_gives_what_single_runs_give(firewall: beebox.Program) -> None:
    packets = [frame(port) for port in (80, 23, 443)] * 5
    single = [firewall.test_run(packet).retval for packet in packets]
    assert set(single) == {1, 2}
    joined = b"".join(packets)
    offsets = np.cumsum([0, *map(len, packets)])
    rows = np.frombuffer(joined, np.uint8).reshape(len(packets), -1)
    for batch in (
        firewall.run_batch(packets),
        firewall.run_batch(map(bytearray, packets)),
        firewall.run_batch(rows),
        firewall.run_batch(rows[::1]),
        firewall.run_batch(joined, offsets=offsets),
        firewall.run_batch(joined, offsets=offsets.astype(np.int32)),
        firewall.run_batch(joined, offsets=list(offsets)),
        firewall.run_batch(packets, threads=4, packets_out=True),
    ):
        assert list(batch.retvals) == single
        assert sum(batch.counts.values()) == len(batch) == len(packets)
    assert np.asarray(batch.retvals).dtype == np.uint32
    assert batch.packets_out == packets
    assert batch.verdicts[:2] == ["XDP_PASS", "XDP_DROP"]
    assert firewall.run_batch([]).counts == {}


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"packets": np.zeros(5, np.uint8)}, TypeError, "two dimensions"),
        ({"packets": b"abc", "offsets": [0, 5]}, beebox.FormatError, "packet 0 lies from 0 to 5"),
        ({"packets": b"abc", "offsets": [2, 1]}, beebox.FormatError, "from 2 to 1"),
        ({"packets": [b"a"], "threads": 5}, beebox.RunError, "the instance has 4"),
        ({"packets": [b"a"], "threads": 0}, beebox.RunError, "no threads"),
        ({"packets": [b"a", "a"]}, TypeError, "packet 1: .*not str"),
        ({"packets": 5}, TypeError, "not iterable"),
    ],
)
def test_batches_of_another_form_are_refused(
    firewall: beebox.Program, arguments: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        firewall.run_batch(**arguments)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers with signals")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_ends_a_batch(examples: Path, threads: int) -> None:
    instance = beebox.Object(examples / "packets/firewall.bpf.o").load(cpus=2, engine="checked")
    firewall, packets = instance.program("firewall"), [frame(80)] * 2_000_000

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            firewall.run_batch(packets, threads=threads)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # It ran some of them, and not all.
    (sender,) = instance.map("senders").values()
    assert 0 < sender.packets < len(packets)
    assert firewall.run_batch(packets[:9], threads=threads).counts == {"XDP_DROP": 9}


def test_a_capture_is_run_and_written(
    firewall: beebox.Program, examples: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.pcap"
    run = firewall.run_capture(examples / "sample.pcap", output=kept, retvals=True)
    assert (run.packets, run.counts) == (298, {"XDP_PASS": 217, "XDP_DROP": 81})
    assert run.bytes == {"XDP_PASS": 73025, "XDP_DROP": 39258}
    retvals = run.retvals
    assert retvals is not None
    assert retvals.count(1) == 81
    assert firewall.run_capture(kept).packets == run.kept == 217
    assert firewall.run_capture(examples / "sample.pcap", jobs=2).counts == run.counts
    with pytest.raises(beebox.RunError, match="the output is also the input"):
        firewall.run_capture(kept, output=kept)
    assert firewall.run_capture(kept).packets == 217

    with pytest.raises(beebox.CaptureError, match="neither pcap nor pcapng"):
        firewall.run_capture(examples / "packets/rules.json", output=tmp_path / "out.pcap")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.pcap"]
    with pytest.raises(ZeroDivisionError):
        firewall.run_capture(examples / "sample.pcap", each=lambda seen: seen.packet // 0)


def test_threads_share_handles(examples: Path) -> None:
    """A stress of one instance: runs, batches, and maps that are read, written and listed."""
    loaded = beebox.Object(examples / "packets/firewall.bpf.o")
    instance = loaded.load(cpus=4, max_entries={"open_ports": 256, "blocked": 256})
    firewall, actions = instance.program("firewall"), instance.map("actions")
    ports, blocked = instance.map("open_ports"), instance.map("blocked")
    barrier, failures = threading.Barrier(6), []
    runs, times, batch = 500, 20, [bytes(64)] * 100

    def checked(work: object, *arguments: int) -> None:
        try:
            barrier.wait()
            work(*arguments)  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    def run(cpu: int) -> None:
        for _ in range(runs):
            assert firewall.test_run(bytes(64), cpu=cpu).verdict == "XDP_PASS"

    def run_batches(cpu: int) -> None:
        for _ in range(times):
            assert len(firewall.run_batch(batch, cpu=cpu)) == 100

    def write(first: int) -> None:
        for port in range(first, first + 100):
            ports[port] = port
            assert ports[port] == port
            assert len(ports.items()) <= 200
        for port in range(first, first + 100):
            del ports[port]
            blocked[{"prefix_length": 32, "address": [10, 0, 0, port % 256]}] = {"hits": port}
            assert all(value.hits >= 0 for value in blocked.values())

    work = [(run, 0), (run, 1), (run_batches, 2), (run_batches, 3), (write, 0), (write, 1000)]
    threads = [threading.Thread(target=checked, args=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert actions[2] == [runs, runs, times * 100, times * 100]
    assert len(ports) == 0


def test_other_threads_run_while_a_program_runs(firewall: beebox.Program) -> None:
    """The GIL is released: a thread of Python goes on while a long batch runs."""
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    firewall.run_batch(np.zeros((200_000, 64), np.uint8))
    during = ticks - before
    done.set()
    thread.join()
    assert during > 1000


def test_limits_and_traps_are_errors(examples: Path) -> None:
    slot = beebox.Object(examples / "verify/slot.bpf.o")
    instance = slot.load(unverified=True)
    program, table = instance.program("slot"), instance.map("tables")
    assert program.engine == "checked"
    table[0] = {"current": -5}
    with pytest.raises(beebox.TrapError, match="reads 4 bytes"):
        program.test_run(bytes(64))
    limited = slot.load(unverified=True, instruction_limit=1).program("slot")
    with pytest.raises(beebox.LimitError):
        limited.test_run(bytes(64))


def works_without_the_gil(work: Callable[[], object]) -> bool:
    """True if another thread runs while this one works."""
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.0002):
            ticks += 1

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    thread.start()
    # Python itself takes the GIL from no thread.
    sys.setswitchinterval(60)
    try:
        before = ticks
        # A short one may end before the other thread wakes.
        for _ in range(20):
            work()
        return ticks > before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()


def test_rust_works_without_the_gil(examples: Path) -> None:
    accept = "".join(f"-A INPUT -s 10.{at >> 8}.{at & 255}.0/24 -j ACCEPT\n" for at in range(2000))
    table = f"*filter\n:INPUT DROP [0:0]\n{accept}COMMIT\n"
    rules = beebox.Rules.from_iptables(table)
    packet = "proto tcp from 10.0.0.1 port 4000 to 192.0.2.1 port 80"
    expectations = "run firewall zero:60\nverdict XDP_PASS\n" * 5000
    blocked = beebox.Object(examples / "packets/firewall.bpf.o").load().map("blocked")
    keys = [bytes([32, 0, 0, 0, 10, 0, at >> 8, at & 255]) for at in range(1000)]
    elements = {key: {"name": "test"} for key in keys}

    def clear() -> None:
        blocked.update(elements)
        blocked.clear()

    works: list[Callable[[], object]] = [
        lambda: beebox.Rules.from_iptables(table),
        lambda: rules.explain(packet),
        lambda: str(rules),
        lambda: beebox.Expectations.parse(expectations),
        partial(blocked.update, elements),
        clear,
    ]
    for work in works:
        assert any(works_without_the_gil(work) for _ in range(100))


def test_an_update_sets_what_is_in_front_of_a_fault(examples: Path) -> None:
    blocked = beebox.Object(examples / "packets/firewall.bpf.o").load().map("blocked")
    keys = [{"prefix_length": 32, "address": bytes([10, 0, 0, at])} for at in range(3)]
    pairs = [(keys[0], {}), (keys[1], {"hits": -1}), (keys[2], {})]
    with pytest.raises(beebox.DataTypeError, match="hits"):
        blocked.update(pairs)
    assert blocked.keys() == [keys[0]]
    # Pairs that are made one by one see the elements before them.
    blocked.update((key, {"hits": len(blocked)}) for key in keys)
    assert sorted(value.hits for value in blocked.values()) == [1, 1, 2]
