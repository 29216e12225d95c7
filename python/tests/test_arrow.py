"""Captures and maps as Arrow, read by the libraries that people use."""

from __future__ import annotations

import gzip
import io
import ipaddress
import itertools
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import captures
import pytest

import beebox
from conftest import ROOT

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def sample(examples: Path) -> Path:
    return examples / "sample.pcap"


def test_a_capture_is_a_table_of_its_packets(sample: Path) -> None:
    table = pa.table(beebox.CaptureTable(sample))
    assert table.num_rows == 298
    assert table.schema.field("time").type == pa.timestamp("ns", "UTC")
    assert table.schema.field("source_port").type == pa.uint16()
    first = table.slice(0, 1).to_pylist()[0]
    assert first["offset"] == 24
    assert first["file"] == str(sample)
    assert {row["ethertype"] for row in table.to_pylist()} >= {0x0800, 0x86DD}


def test_the_page_names_all_columns_with_their_types(sample: Path) -> None:
    page = (ROOT / "docs/arrow.md").read_text()
    named = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page.split("## Columns")[1], re.M))
    flows = beebox.Object(sample.parent / "packets/flows.bpf.o").load()
    program = next(iter(flows.programs.values()))
    columns = list(beebox.CaptureTable.COLUMNS)
    table = beebox.CaptureTable(sample, columns=columns, program=program, records=True)
    types = {field.name: str(field.type) for field in pa.schema(table)}
    assert types.pop("record") == "binary"
    assert named == types


def test_columns_filters_and_matches_are_chosen(sample: Path) -> None:
    table = pa.table(
        beebox.CaptureTable(
            sample,
            columns=["destination_port", "source_port", "data", "captured_length", "source"],
            filter="tcp port 22",
            matches={"from_server": "tcp src port 22", "dns": "port 53"},
        )
    )
    assert table.num_rows == 100
    assert table.column_names[-2:] == ["from_server", "dns"]
    for row in table.to_pylist():
        assert 22 in (row["source_port"], row["destination_port"])
        assert row["from_server"] == (row["source_port"] == 22)
        assert not row["dns"]
        assert len(row["data"]) == row["captured_length"]
        ipaddress.ip_address(row["source"])
    ddd = (sample.parent / "port-22.ddd").read_bytes()
    assert beebox.CaptureTable(sample, filter=ddd).count()["matched"] == 100


def numbers_and_texts(sample: Path) -> dict[str, Any]:
    """The arguments of a table of all columns that conditions compare."""
    program = beebox.Object(sample.parent / "packets/firewall.bpf.o").load().program("firewall")
    names = [it for it in beebox.CaptureTable.COLUMNS if it not in ("map", "data")]
    return {"columns": names, "matches": {"dns": "port 53"}, "program": program}


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">=", "in", "is null"])
def test_conditions_are_comparisons_of_columns(sample: Path, operator: str) -> None:
    pc = pytest.importorskip("pyarrow.compute")
    compare = {
        "==": pc.equal,
        "!=": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
    options = numbers_and_texts(sample)
    table = pa.table(beebox.CaptureTable(sample, **options))
    for name in table.column_names:
        # Times are nanoseconds.
        column = table[name].cast(pa.int64()) if name == "time" else table[name]
        values = [it for it in dict.fromkeys(column.to_pylist()) if it is not None][:2]
        if not values or (column.type == pa.string() and operator in ("<", "<=", ">", ">=")):
            continue
        value: Any = values[-1]
        if operator == "in":
            value, is_met = values, pc.is_in(column, pa.array(values, column.type))
        elif operator == "is null":
            value, is_met = None, pc.is_null(column)
        else:
            is_met = compare[operator](column, pa.scalar(value, column.type))
        kept = beebox.CaptureTable(sample, conditions=[(name, operator, value)], **options)
        assert pa.table(kept).equals(table.filter(is_met)), (name, value)


def test_conditions_are_on_any_column_and_all_hold(sample: Path) -> None:
    table = pa.table(beebox.CaptureTable(sample, columns=["offset", "time", "source_port"]))
    rows = table.to_pylist()
    middle = table["time"].cast(pa.int64())[150].as_py()
    conditions = [("time", ">=", middle), ("source_port", "is not null", None)]
    kept = beebox.CaptureTable(sample, columns=["offset"], conditions=conditions)
    expected = [
        row["offset"]
        for row, time in zip(rows, table["time"].cast(pa.int64()).to_pylist(), strict=True)
        if time >= middle and row["source_port"] is not None
    ]
    assert 0 < len(expected) < 298
    assert pa.table(kept)["offset"].to_pylist() == expected
    counts = kept.count()
    assert (counts["packets"], counts["matched"]) == (298, len(expected))
    dns = {"matches": {"dns": "port 53"}, "conditions": [("dns", "==", True)]}
    assert beebox.CaptureTable(sample, **dns).count()["matched"] == 30  # type: ignore[arg-type]
    starts = beebox.CaptureTable(sample, conditions=[("source", "starts with", "2001:db8::1")])
    assert set(pa.table(starts)["source"].to_pylist()) >= {"2001:db8::1"}


def test_a_program_sees_what_conditions_leave_out(sample: Path) -> None:
    packets = sample.parent / "packets"
    seen = []
    for conditions in ([], [("verdict", "==", "XDP_DROP"), ("offset", ">", 1)]):
        firewall = beebox.Object(packets / "firewall.bpf.o").load()
        options: dict[str, Any] = {"program": firewall.program("firewall")}
        table = beebox.CaptureTable(sample, columns=["verdict"], conditions=conditions, **options)
        rows = pa.table(table)["verdict"].to_pylist()
        seen.append((rows.count("XDP_DROP"), pa.table(firewall.map("actions"))))
        if conditions:
            assert set(rows) == {"XDP_DROP"}
            with pytest.raises(beebox.DataTypeError, match="does not run for counts"):
                table.count()
    assert seen[0] == seen[1]
    flows = beebox.Object(packets / "flows.bpf.o").load()
    options = {"program": flows.program("monitor"), "records": True}
    table = beebox.CaptureTable(sample, conditions=[("map", "!=", "events")], **options)
    assert pa.table(table).num_rows == 0


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        (("sources", "==", "x"), "no column"),
        (("source", "=", "x"), "no operator"),
        (("source", "<", "x"), "no order"),
        (("source", "in", "10.0.0.1"), "a list fits"),
        (("source", "==", 3), "text fits"),
        (("vlan", "==", "3"), "a number fits"),
        (("vlan", "starts with", "3"), "texts start"),
        (("vlan", "is null", 3), "None fits"),
        (("data", "==", b""), "not compared"),
        (("verdict", "==", "XDP_DROP"), "needs the argument program"),
    ],
)
def test_conditions_that_do_not_fit(sample: Path, condition: Any, error: str) -> None:
    with pytest.raises(beebox.Error, match=error):
        beebox.CaptureTable(sample, conditions=[condition])


def test_every_column_has_values_and_what_is_not_there_is_null(sample: Path) -> None:
    program = beebox.Object(sample.parent / "packets/firewall.bpf.o").load().program("firewall")
    names = [name for name in beebox.CaptureTable.COLUMNS if name != "map"]
    table = pa.table(beebox.CaptureTable(sample, columns=names, program=program))
    for name in set(names) - {"vlan", "redirect"}:
        assert table[name].null_count < table.num_rows, name
    for row in table.to_pylist():
        is_ip = row["ethertype"] in (0x0800, 0x86DD)
        assert (row["source"] is not None) <= is_ip
        assert (row["source_port"] is not None) <= (row["protocol"] in (6, 17, 33, 132, 136))


def test_batches_have_a_size_and_a_table_is_read_again(sample: Path) -> None:
    table = beebox.CaptureTable([sample, sample], columns=["offset"], batch_size=100)
    for _ in range(2):
        sizes = [len(batch) for batch in pa.RecordBatchReader.from_stream(table)]
        assert sizes == [100, 100, 100, 100, 100, 96]
    counted = pa.table(beebox.CaptureTable(sample, columns=[]))
    assert (counted.num_rows, counted.num_columns) == (298, 0)


def test_a_batch_of_any_size_takes_memory_for_its_rows(sample: Path) -> None:
    table = beebox.CaptureTable(sample, columns=["offset", "data"], batch_size=1 << 62)
    assert [len(batch) for batch in pa.RecordBatchReader.from_stream(table)] == [298]


def test_a_program_decides_and_its_records_are_rows(sample: Path) -> None:
    packets = sample.parent / "packets"
    firewall = beebox.Object(packets / "firewall.bpf.o").load()
    program = firewall.program("firewall")
    table = pa.table(
        beebox.CaptureTable(sample, columns=["verdict", "return_value"], program=program)
    )
    verdicts = counted(table, "verdict")
    assert sum(verdicts.values()) == 298
    assert set(verdicts) <= {"XDP_PASS", "XDP_DROP"}
    # Its maps are as after runs one by one.
    again = beebox.Object(packets / "firewall.bpf.o").load()
    for row in pa.table(beebox.CaptureTable(sample, columns=["data"])).to_pylist():
        again.program("firewall").test_run(row["data"])
    as_table = pa.table(firewall.map("actions"))
    assert as_table.equals(pa.table(again.map("actions")))
    assert sum(map(sum, as_table["value"].to_pylist())) == 298


def counted(table: Any, column: str) -> dict[str, int]:
    rows = table.group_by(column).aggregate([([], "count_all")]).to_pylist()
    return {row[column]: row["count_all"] for row in rows}


def test_records_are_rows_by_their_type(examples: Path, sample: Path) -> None:
    instance = beebox.Object(examples / "packets/flows.bpf.o").load()
    program = next(iter(instance.programs.values()))
    options: dict[str, Any] = {"columns": ["offset", "map"], "program": program}
    rows = pa.table(beebox.CaptureTable(sample, records="struct event", **options))
    assert set(rows["map"].to_pylist()) == {"events"}
    # The same runs one by one.
    again = beebox.Object(examples / "packets/flows.bpf.o").load()
    again_program = next(iter(again.programs.values()))
    expected = []
    for packet in pa.table(beebox.CaptureTable(sample, columns=["offset", "data"])).to_pylist():
        for record in again_program.test_run(packet["data"]).records:
            expected.append((packet["offset"], record.data))
    raw = beebox.Object(examples / "packets/flows.bpf.o").load()
    options["program"] = next(iter(raw.programs.values()))
    found = pa.table(beebox.CaptureTable(sample, records=True, **options)).to_pylist()
    assert len(found) == len(expected) == rows.num_rows > 5
    assert [row["offset"] for row in found] == [offset for offset, _ in expected]
    assert [len(row["record"]) for row in found] == [len(data) for _, data in expected]
    with pytest.raises(beebox.NotFoundError, match="no type struct evnt"):
        beebox.CaptureTable(sample, records="struct evnt", program=program)


def test_values_of_maps_are_columns_beside_their_packets(examples: Path, sample: Path) -> None:
    def program(name: str) -> beebox.Program:
        instance = beebox.Object(examples / f"packets/{name}.bpf.o").load()
        return next(iter(instance.programs.values()))

    # Each CPU counts: together the packets so far.
    actions = {f"action {index}": ("actions", index) for index in range(3)}
    options: dict[str, Any] = {"columns": [], "map_values": actions}
    counts = beebox.CaptureTable(sample, program=program("firewall"), batch_size=7, **options)
    rows = pa.table(counts).to_pylist()
    sums = [sum(map(sum, row.values())) for row in rows]
    assert sums == list(range(1, 299))

    # A structure of a flow that begins in the middle, as after runs one by one.
    again = program("flows")
    packets = pa.table(beebox.CaptureTable(sample, columns=["data"]))["data"].to_pylist()
    for data in packets[:100]:
        again.test_run(data)
    key = again.instance.map("flows").keys()[-1]
    again = program("flows")
    expected = []
    for data in packets:
        again.test_run(data)
        expected.append(again.instance.map("flows").get(key))
    assert expected[0] is None
    assert expected[-1] is not None
    values = {"flow": ("flows", key)}
    found = beebox.CaptureTable(sample, program=program("flows"), map_values=values, columns=[])
    assert found.columns == ["flow"]
    assert pa.table(found)["flow"].to_pylist() == expected

    faults: list[tuple[Any, type[Exception], str]] = [
        ({"it": ("flow", 0)}, beebox.NotFoundError, "flow"),
        ({"it": ("events", b"")}, beebox.MapError, "events"),
        ({"it": ("flows", 0)}, beebox.DataTypeError, "map flows: key"),
        ({"it": "flows"}, beebox.DataTypeError, "the name of a map and a key fit"),
    ]
    for wrong, error, what in faults:
        with pytest.raises(error, match=what):
            beebox.CaptureTable(sample, program=program("flows"), map_values=wrong)
    with pytest.raises(beebox.DataTypeError, match="none is given"):
        beebox.CaptureTable(sample, map_values=values)


def test_columns_have_names_of_their_own(examples: Path, sample: Path) -> None:
    instance = beebox.Object(examples / "packets/firewall.bpf.o").load()
    program = instance.program("firewall")
    actions = ("actions", 1)
    doubles: list[dict[str, Any]] = [
        {"columns": ["offset"], "map_values": {"offset": actions}},
        {"matches": {"x": "tcp"}, "map_values": {"x": actions}},
        {"columns": ["offset", "offset"]},
    ]
    for double in doubles:
        with pytest.raises(beebox.DataTypeError, match="two columns are called"):
            beebox.CaptureTable(sample, program=program, **double)
    with pytest.raises(beebox.DataTypeError, match="empty name"):
        beebox.CaptureTable(sample, program=program, map_values={"": actions})


def test_map_values_have_the_types_of_the_object(examples: Path) -> None:
    blocked = beebox.Object(examples / "packets/firewall.bpf.o").load().map("blocked")
    for place in range(3):
        address = ipaddress.ip_address(f"192.0.{place}.0")
        key = {"prefix_length": 24, "address": address}
        blocked[key] = {"name": f"rule {place}", "hits": 2**40 + place}
    table = pa.table(blocked)
    assert table.schema.field("value").type.field("hits").type == pa.uint64()
    values = sorted(table["value"].to_pylist(), key=lambda value: value["name"])
    assert values == [{"name": f"rule {n}", "hits": 2**40 + n} for n in range(3)]
    assert table["key"].to_pylist()[0]["prefix_length"] == 24


def test_files_of_python_and_compressed_captures(sample: Path, tmp_path: Path) -> None:
    whole = pa.table(beebox.CaptureTable(sample)).drop_columns("file")
    squeezed = tmp_path / "sample.pcap.gz"
    with squeezed.open("wb") as out, gzip.open(out, "wb") as packed:
        packed.write(sample.read_bytes())
    compiled = beebox.Filter("tcp port 22")
    assert beebox.CaptureTable(squeezed, filter=compiled).count()["matched"] == 100
    sources: list[Any] = [squeezed, io.BytesIO(sample.read_bytes()), sample.open("rb")]
    for source in sources:
        assert pa.table(beebox.CaptureTable(source)).drop_columns("file").equals(whole)


def test_a_capture_at_an_address(sample: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    address = "memory://captures/sample.pcap"
    with fsspec.open(address, "wb") as out:
        out.write(sample.read_bytes())
    table = pa.table(beebox.CaptureTable(address, columns=["file", "offset"]))
    assert (table.num_rows, set(table["file"].to_pylist())) == (298, {address})
    with pytest.raises(Exception, match=r"memory://captures/absent.pcap: FileNotFoundError"):
        pa.table(beebox.CaptureTable("memory://captures/absent.pcap"))


@pytest.mark.parametrize("inner", [None, 9 << 20])
def test_parts_have_each_packet_once(tmp_path: Path, inner: int | None) -> None:
    path = captures.write(tmp_path / "day.pcap", 18 << 20, inner=inner)
    options: dict[str, Any] = {"columns": ["offset", "source", "destination_port"]}
    whole = pa.table(beebox.CaptureTable(path, **options))
    parts = beebox.capture_parts(path, 4 << 20)
    assert len(parts) == 4
    # Any order, and one of them again.
    found = {
        part: pa.table(beebox.CaptureTable(path, part=part, **options)) for part in parts[::-1]
    }
    assert found[parts[1]].equals(pa.table(beebox.CaptureTable(path, part=parts[1], **options)))
    assert pa.concat_tables(found[part] for part in parts).equals(whole)
    # Neighbours meet; what is in doubt was read by the part before.
    counts = [beebox.CaptureTable(path, part=part).count() for part in parts]
    ends = [(count["first"], count["next"]) for count in counts if count["packets"]]
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ends))
    assert len(ends) == (4 if inner is None else 3)
    in_memory = io.BytesIO(path.read_bytes())
    assert beebox.capture_parts(in_memory, 4 << 20) == parts
    again = [pa.table(beebox.CaptureTable(in_memory, part=part, **options)) for part in parts]
    assert pa.concat_tables(again).equals(whole)


QUERY = "select source_port = 22 as answers, count(*) as packets from packets group by 1"


def in_duckdb(packets: beebox.CaptureTable) -> dict[bool, int]:
    duckdb = pytest.importorskip("duckdb")
    return dict(duckdb.sql(QUERY).fetchall())


def in_polars(packets: beebox.CaptureTable) -> dict[bool, int]:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(packets)
    answers = int((frame["source_port"] == 22).sum())
    return {True: answers, False: len(frame) - answers}


def in_datafusion(packets: beebox.CaptureTable) -> dict[bool, int]:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.from_arrow(packets, "packets")
    rows = context.sql(QUERY).to_pydict()
    return dict(zip(rows["answers"], rows["packets"], strict=True))


@pytest.mark.parametrize("ask", [in_duckdb, in_polars, in_datafusion])
def test_engines_read_a_capture(sample: Path, ask: Callable[..., dict[bool, int]]) -> None:
    table = beebox.CaptureTable(sample, filter="tcp port 22")
    ports = pa.table(table)["source_port"].to_pylist()
    assert ask(table) == {True: ports.count(22), False: 100 - ports.count(22)}


def test_polars_reads_what_a_query_uses(sample: Path, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    from beebox.polars import scan_captures

    shutil.copy(sample, tmp_path / "b.pcap")
    shutil.copy(sample, tmp_path / "a.pcap")
    frame = scan_captures(tmp_path / "*.pcap", filter="tcp port 22")
    ports = frame.filter(polars.col("source_port") == 22).select("file", "source_port").collect()
    assert ports["file"].unique(maintain_order=True).to_list() == [
        str(tmp_path / "a.pcap"),
        str(tmp_path / "b.pcap"),
    ]
    assert len(frame.head(150).collect()) == 150
    assert frame.select(polars.len()).collect().item() == 200


def test_polars_hands_its_comparisons_over(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    from beebox import _tasks
    from beebox.polars import scan_captures

    handed: list[Any] = []
    batches = _tasks.Scan.batches

    def spy(scan: Any, *arguments: Any) -> Any:
        handed.append(scan.options["conditions"])
        return batches(scan, *arguments)

    monkeypatch.setattr(_tasks.Scan, "batches", spy)
    frame, col = scan_captures(sample, matches={"dns": "port 53"}), polars.col
    everything = frame.collect()
    middle = everything["time"][150]
    port, two = col("destination_port"), ["192.0.2.1", "192.0.2.2"]
    for condition, expected in [
        (port == 22, [("destination_port", "==", 22)]),
        (port > 22, [("destination_port", ">", 22)]),
        (port <= 1024, [("destination_port", "<=", 1024)]),
        (port != 22, [("destination_port", "!=", 22)]),
        (port.is_between(22, 53), [("destination_port", ">=", 22), ("destination_port", "<=", 53)]),
        (port.is_in([22, 53]), [("destination_port", "in", [22, 53])]),
        (port.is_null(), [("destination_port", "is null", None)]),
        (port.is_not_null(), [("destination_port", "is not null", None)]),
        (col("source") == "192.0.2.1", [("source", "==", "192.0.2.1")]),
        (col("source").is_in(two), [("source", "in", two)]),
        (col("source").str.starts_with("192."), [("source", "starts with", "192.")]),
        (col("dns"), [("dns", "==", True)]),
        (~col("dns"), [("dns", "==", False)]),
        (col("time") >= middle, 1),
        (col("time") < middle, 1),
        ((port == 22) & (col("source") == "192.0.2.1"), 2),
        ((port == 22) & ((port == 22) | col("dns")), [("destination_port", "==", 22)]),
        ((port == 22) | (port == 53), []),
        (port + 1 == 23, []),
        (port == 22.5, []),
        (port == 70_000, []),
        (col("source").str.ends_with(".1"), []),
        (~port.is_in([22]), []),
        (port == col("source_port"), []),
    ]:
        handed.clear()
        kept = frame.filter(condition).select("offset").collect()
        assert kept.equals(everything.filter(condition).select("offset")), str(condition)
        if isinstance(expected, int):
            assert len(handed[0]) == expected, str(condition)
        else:
            assert handed == [expected], str(condition)


def test_what_cannot_be_read_says_why(sample: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(sample.read_bytes()[:-5])
    reader = pa.RecordBatchReader.from_stream(beebox.CaptureTable(cut, columns=["offset"]))
    assert len(reader.read_next_batch()) == 297
    with pytest.raises(Exception, match=r"cut.pcap: after packet 297, at byte"):
        reader.read_next_batch()
    with pytest.raises(Exception, match=r"absent.pcap: No such file"):
        pa.table(beebox.CaptureTable(tmp_path / "absent.pcap"))
    with pytest.raises(Exception, match="libpcap refuses"):
        pa.table(beebox.CaptureTable(sample, filter="tcp prot 22"))
    with pytest.raises(beebox.NotFoundError, match='no column "sorce"; there are file, offset'):
        beebox.CaptureTable(sample, columns=["sorce"])
    with pytest.raises(beebox.DataTypeError, match="verdict needs the argument program"):
        beebox.CaptureTable(sample, columns=["verdict"])
    with pytest.raises(beebox.DataTypeError, match="an expression"):
        beebox.CaptureTable(sample, filter=22)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not int"):
        beebox.CaptureTable(22)  # type: ignore[arg-type]
    with pytest.raises(beebox.DataTypeError, match=r"columns: a list of names.*got str"):
        beebox.CaptureTable(sample, columns="offset")
    for part in ((5, 4 << 20, 9 << 20), (0, 7, 9), (8 << 20, 4 << 20, 8 << 20)):
        with pytest.raises(beebox.DataTypeError, match="none of capture_parts"):
            beebox.CaptureTable(sample, part=part)
    with pytest.raises(beebox.CaptureError, match=r"^\S*absent.pcap: No such file"):
        beebox.capture_parts(tmp_path / "absent.pcap")
