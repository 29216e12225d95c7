"""Maps of all kinds, values of all types, and records."""

import dataclasses
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import beebox
from conftest import ROOT

CLI_DATA = ROOT / "crates/cli/tests/data"
RUN = ROOT / "crates/beebox/tests/run"


def load(path: Path, **options: object) -> beebox.Instance:
    return beebox.Object(path).load(**options)  # type: ignore[arg-type]


def test_values_of_all_types_are_what_they_were_written_as() -> None:
    """Pointers, enumerations of both widths, bit fields, unions, arrays and floats."""
    variables = load(CLI_DATA / "shapes.bpf.o").globals
    head = {
        "next": 1 << 40,
        "c": "BLUE",
        "g": 1 << 40,
        "w": [{"all": 7}, {"bytes": b"\1\2\3\4"}, {"parts": {"low": 5, "mid": 100, "high": 1}}],
        "f": 0.5,
        "d": -2.25,
    }
    variables["head"] = head
    read = variables["head"]
    assert (read.next, read.p, read.c, read.c.name) == (1 << 40, 0, -1, "BLUE")
    assert read.g.name == "HUGE"
    assert (read.f, read.d) == (0.5, -2.25)
    assert read.w[0] == {"all": 7, "bytes": b"\7\0\0\0", "parts": {"low": 7, "mid": 0, "high": 0}}
    assert read.w[1].parts == {"low": 1, "mid": 64, "high": 0x04030201 >> 10}
    assert read.w[2].all == 5 | 100 << 3 | 1 << 10


def test_any_bytes_of_a_structure_survive_a_round_trip() -> None:
    variables = load(CLI_DATA / "shapes.bpf.o").globals
    drawn = random.Random(1)
    for _ in range(200):
        variables["head"] = drawn.randbytes(64)
        read = variables["head"]
        variables["head"] = read
        assert repr(variables["head"]) == repr(read)
    with pytest.raises(beebox.DataTypeError, match="got bytes of length 63"):
        variables["head"] = bytes(63)


@dataclasses.dataclass
class Network:
    prefix_length: int
    address: bytes


class NetworkTuple(NamedTuple):
    prefix_length: int
    address: bytes


def test_structures_are_given_as_dicts_dataclasses_and_named_tuples(examples: Path) -> None:
    blocked = load(examples / "packets/firewall.bpf.o").map("blocked")
    network = bytes([192, 0, 2, 0])
    for key in (
        {"prefix_length": np.uint32(24), "address": np.frombuffer(network, np.uint8)},
        Network(24, network),
        NetworkTuple(24, network),
        b"\x18\0\0\0" + network,
    ):
        blocked[key] = {"name": str(type(key).__name__), "hits": 1}
        assert len(blocked) == 1
    (key,) = blocked
    assert {key: 1}[key] == 1
    changed = key | {"prefix_length": 16}
    assert changed["prefix_length"] == 16
    with pytest.raises(TypeError, match="cannot be changed"):
        key["prefix_length"] = 16
    with pytest.raises(AttributeError, match="prefix_length, address"):
        _ = key.prefix
    blocked.update({changed: {"hits": 2}})
    assert sorted(value.hits for value in blocked.values()) == [1, 2]


def test_elements_are_put_by_mode_and_errors_have_their_number(examples: Path) -> None:
    ports = load(examples / "packets/firewall.bpf.o").map("open_ports")
    ports.put(443, 1, mode="noexist")
    with pytest.raises(beebox.MapError) as exists:
        ports.put(443, 2, mode="noexist")
    with pytest.raises(beebox.MapError) as absent:
        ports.put(80, 2, mode="exist")
    assert (exists.value.errno, absent.value.errno) == (17, 2)
    assert ports.get(80) is None
    assert ports.get(80, 7) == 7
    assert ports.pop(443) == 1
    assert 443 not in ports
    with pytest.raises(beebox.NotFoundError):
        del ports[443]


def test_maps_have_what_mappings_have(examples: Path) -> None:
    ports = load(examples / "packets/firewall.bpf.o").map("open_ports")
    assert ports.setdefault(443, 1) == 1
    assert ports.setdefault(443, 2) == 1
    assert ports.pop(80, None) is None
    assert ports.pop(80, 7) == 7
    with pytest.raises(TypeError, match="a default, got 3"):
        ports.pop(80, 1, 2)
    assert ports.popitem() == (443, 1)
    with pytest.raises(beebox.NotFoundError, match="empty"):
        ports.popitem()
    ports.update({1: 1, 2: 2})
    ports.clear()
    assert len(ports) == 0


def test_values_of_all_cpus_are_a_list(examples: Path) -> None:
    instance = load(examples / "packets/firewall.bpf.o", cpus=3)
    actions = instance.map("actions")
    actions[1] = [1, 2, 3]
    assert actions[1] == [1, 2, 3]
    assert actions.items() == [(0, [0, 0, 0]), (1, [1, 2, 3]), (2, [0, 0, 0])]
    instance.program("firewall").test_run(bytes(64), cpu=2)
    assert actions[2] == [0, 0, 1]
    with pytest.raises(beebox.DataTypeError, match="a list with a value for each CPU"):
        actions[1] = 5
    with pytest.raises(beebox.DataTypeError, match="each of 3 CPUs fits, got a list of 2"):
        actions[1] = [1, 2]


def test_queues_are_pushed_to_and_popped_from() -> None:
    queue = load(RUN / "pointers.bpf.o").map("queue")
    assert queue.kind == "queue"
    with pytest.raises(beebox.NotFoundError, match="empty"):
        queue.pop()
    queue.push(bytes(queue.value_size))
    assert queue.peek() == queue.pop()


def test_program_arrays_take_programs_and_give_names() -> None:
    instance = load(RUN / "tail_calls.bpf.o")
    programs = instance.map("programs")
    name, program = next(iter(instance.programs.items()))
    programs[0] = program
    assert programs[0] == name
    assert (0, name) in programs.items()
    del programs[0]
    assert 0 not in programs


def test_a_map_of_maps_takes_maps_that_fit() -> None:
    instance = load(RUN / "pointers.bpf.o")
    outer = instance.map("outer")
    inner = outer.create_inner()
    assert inner.max_entries > 0
    outer[0] = inner
    with pytest.raises(beebox.MapError, match="create_inner"):
        outer[0] = 5


def test_records_are_decoded_by_their_type(examples: Path) -> None:
    flows = beebox.Object(examples / "packets/flows.bpf.o")
    instance = flows.load()
    instance.program("monitor").run_capture(examples / "sample.pcap")
    records = instance.map("events").records()
    count = len(records)
    first = next(records)
    assert (first.value.kind.name, first.value.packets) == ("FLOW_BEGINS", 1)
    assert first.value.flow.to_port == 53
    assert len(list(records)) == count - 1
    assert list(instance.map("events").records()) == []

    # The same, told packet by packet, and by the name of the type.
    told: list[beebox.Record] = []
    instance = flows.load()
    seen = instance.program("monitor").run_capture(
        examples / "sample.pcap", each=lambda run: told.extend(run.records)
    )
    assert (len(told), told[0].data) == (count, first.data)
    assert seen.packets == 298
    instance.program("monitor").run_capture(examples / "sample.pcap")
    with pytest.raises(beebox.NotFoundError, match="no type struct nothing"):
        instance.map("events").records("struct nothing")
    with pytest.raises(beebox.MapError, match=r"map flows: .*: ring and perf buffers have records"):
        instance.map("flows").records()


def test_programs_read_records_that_are_pushed() -> None:
    instance = load(RUN / "user_records.bpf.o")
    records = instance.map("records")
    for number in (3, 4, 0):
        records.push(number.to_bytes(4, "little"))
    instance.program("drain").test_run(bytes(64))
    assert instance.globals["sum"] == (3 * 31 + 4) * 31


def test_maps_outlive_a_reload(examples: Path) -> None:
    firewall = beebox.Object(examples / "packets/firewall.bpf.o")
    first = firewall.load()
    first.program("firewall").test_run(bytes(64))
    second = firewall.load(reuse_maps={"actions": first.map("actions")})
    second.program("firewall").test_run(bytes(64))
    assert sum(second.map("actions")[2]) == 2
    with pytest.raises(beebox.IncompatibleMapError):
        firewall.load(reuse_maps={"blocked": first.map("actions")})
