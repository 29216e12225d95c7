"""Objects, verification, runs and maps."""

import ipaddress
import pickle
from pathlib import Path

import pytest

import beebox


def test_a_firewall_is_verified_run_and_its_maps_read(examples: Path) -> None:
    firewall = beebox.Object(examples / "packets/firewall.bpf.o")
    rows = firewall.verify()
    assert rows.accepted
    assert (rows["firewall"].verdict, rows["firewall"].insns) == ("success", 168)

    instance = firewall.load()
    program, actions = instance.program("firewall"), instance.map("actions")
    for times in (1, 2):
        result = program.test_run(bytes(64))
        assert result.verdict == "XDP_PASS"
        assert sum(actions[result.retval]) == times

    blocked = instance.map("blocked")
    key = {"prefix_length": 24, "address": ipaddress.ip_address("192.0.2.0")}
    blocked[key] = {"name": "test", "hits": 3}
    assert blocked[key] == {"name": "test", "hits": 3}
    assert blocked[key].hits == 3
    assert len(blocked) == 1
    assert dict(blocked.items())[next(iter(blocked))].name == "test"
    del blocked[key]
    assert key not in blocked
    with pytest.raises(KeyError, match="no element"):
        blocked[key]


def test_an_object_is_the_same_from_bytes(examples: Path) -> None:
    path = examples / "packets/firewall.bpf.o"
    of_bytes = beebox.Object(path.read_bytes())
    assert of_bytes.programs == beebox.Object(str(path)).programs
    assert bytes(of_bytes) == path.read_bytes()


def test_a_refusal_has_its_log_and_explanation(examples: Path) -> None:
    record = beebox.Object(examples / "verify/record.bpf.o")
    row = record.verify()[0]
    assert row.verdict == "failure"
    assert "reference leak" in row.reason
    with pytest.raises(beebox.VerifierError) as refused:
        record.load()
    error = refused.value
    assert error.kind == "refused"
    assert error.errno == 22
    assert error.log == row.log
    assert "bpf_ringbuf_reserve" in (error.explanation or "")
    # Errors travel between processes, of xdist for one.
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.log, str(again)) == (type(error), error.log, str(error))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"hits": -1}, "value.hits: an int from 0 to 18446744073709551615 fits, got -1"),
        ({"hits": 1.5}, "value.hits: an int from 0 to .* fits, got float 1.5"),
        ({"name": "x" * 40}, "value.name: a str or bytes of at most .* bytes fits, got 40 bytes"),
        ({"nam": "x"}, "a dict of rule with name, hits fits, got no member nam"),
        (3, "value: a dict of rule with name, hits fits, got int 3"),
        (b"abc", "fits, got bytes of length 3"),
    ],
)
def test_values_of_another_type_are_refused(examples: Path, value: object, says: str) -> None:
    blocked = beebox.Object(examples / "packets/firewall.bpf.o").load().map("blocked")
    with pytest.raises(beebox.DataTypeError, match=says):
        blocked[{"prefix_length": 24, "address": [192, 0, 2, 0]}] = value
    assert len(blocked) == 0


def test_files_that_are_no_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(beebox.FileError, match=r"absent\.o"):
        beebox.Object(tmp_path / "absent.o")
    with pytest.raises(beebox.ObjectError):
        beebox.Object(b"no object")
    with pytest.raises(TypeError, match="got int"):
        beebox.Object(5)  # type: ignore[arg-type]
