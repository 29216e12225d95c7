"""Captures in Ray and Spark: on a local cluster, with a worker that dies."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import captures
import pytest

import beebox
from beebox._tasks import Scan, Task, plan

pa = pytest.importorskip("pyarrow")

PART = 4 << 20
COLUMNS = ["file", "offset", "source", "destination_port", "wire_length"]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three captures: one of four parts with a capture in a packet, and two small ones."""
    directory = tmp_path_factory.mktemp("day")
    large = captures.write(directory / "a.pcap", 18 << 20, inner=9 << 20)
    small = [captures.write(directory / name, 200_000, seed=7) for name in ("b.pcap", "c.pcap")]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    )
    return [str(path) for path in (large, *small)]


def rows_of(day: list[str], **options: Any) -> list[tuple[Any, ...]]:
    """The rows as one process reads them."""
    table = pa.table(beebox.CaptureTable(day, columns=COLUMNS, **options))
    return [tuple(row.values()) for row in table.to_pylist()]


def test_tasks_are_files_and_parts_in_order(day: list[str], tmp_path: Path) -> None:
    tasks = plan(day, PART)
    size = tasks[0].part[1] if tasks[0].part else 0
    assert size > PART
    starts = [task.part and task.part[0] for task in tasks]
    assert starts == [*range(0, 4 * size, size), None]
    assert tasks[-1].files == tuple(day[1:])
    assert [task.files for task in plan(day, None)] == [(file,) for file in day]
    pattern = plan(str(Path(day[0]).parent / "*.pcap"), PART)
    assert pattern == tasks
    with pytest.raises(FileNotFoundError, match="no capture matches"):
        plan(str(tmp_path / "*.pcap"))
    batches = [batch for task in tasks for batch in Scan({"columns": COLUMNS}).batches(task)]
    rows = pa.Table.from_batches(batches).to_pylist()
    assert [tuple(row.values()) for row in rows] == rows_of(day)


def test_a_compressed_capture_is_one_task(day: list[str], tmp_path: Path) -> None:
    squeezed = tmp_path / "a.pcap.gz"
    squeezed.write_bytes(gzip.compress(Path(day[0]).read_bytes(), 1))
    assert squeezed.stat().st_size > 2 * PART
    tasks = plan(squeezed, PART)
    assert [task.part for task in tasks] == [None]
    batches = Scan({"columns": ["offset"]}).batches(tasks[0])
    whole = pa.table(beebox.CaptureTable(day[0], columns=["offset"]))
    assert pa.Table.from_batches(batches).equals(whole)


@pytest.fixture(scope="module")
def ray(day: list[str]) -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20
    )
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


def test_ray_reads_every_packet_once(ray: Any, day: list[str]) -> None:
    from beebox.ray import Captures

    source = Captures(day, part_size=PART, filter="udp port 53", columns=COLUMNS)
    expected = rows_of(day, filter="udp port 53")
    rows = ray.data.read_datasource(source).take_all()
    assert [tuple(row.values()) for row in rows] == expected
    assert ray.data.read_datasource(source).count() == len(expected)


def test_ray_loses_and_doubles_nothing_when_a_worker_dies(
    ray: Any, day: list[str], tmp_path: Path
) -> None:
    from beebox.ray import Captures

    source = Captures(day, part_size=PART, columns=COLUMNS)
    marker = tmp_path / "died"
    source._scan = captures.Dying({"columns": COLUMNS, "batch_size": 1000}, marker=str(marker))
    rows = ray.data.read_datasource(source).take_all()
    assert marker.exists()
    assert [tuple(row.values()) for row in rows] == rows_of(day)


def test_ray_computes_the_columns_that_are_selected(ray: Any, day: list[str]) -> None:
    from beebox.ray import Captures

    source = Captures(day, part_size=PART, matches={"dns": "udp port 53"})
    dataset = ray.data.read_datasource(source).select_columns(["dns"])
    assert dataset.sum("dns") == len(rows_of(day, filter="udp port 53"))
    narrow = source.apply_projection({"offset": "offset", "dns": "dns"})
    table = next(iter(narrow.get_read_tasks(1)[0]()))
    assert table.column_names == ["offset", "dns"]


def test_ray_hands_its_comparisons_over(ray: Any, day: list[str]) -> None:
    from ray.data.expressions import col, lit

    from beebox.ray import Captures

    def read(**options: Any) -> Any:
        matches = {"dns": "udp port 53"}
        return ray.data.read_datasource(
            Captures(day[1:], columns=COLUMNS, matches=matches, **options)
        )

    everything = read().take_all()
    port, source = col("destination_port"), col("source")

    def is_dns(row: dict[str, Any]) -> bool:
        return bool(row["destination_port"] == 53)

    cases: list[tuple[Any, Callable[[dict[str, Any]], bool]]] = [
        (port == 53, is_dns),
        (lit(53) == port, is_dns),
        (lit(100) > port, is_dns),
        (port.is_in([53, 54]), is_dns),
        (col("dns"), is_dns),
        (~col("dns"), lambda row: not row["dns"]),
        (
            (port == 53) & (col("wire_length") >= 700),
            lambda row: is_dns(row) and row["wire_length"] >= 700,
        ),
        # A part of it, the rest of which stays.
        ((port == 53) & (port + 1 == 54), is_dns),
        ((port == 53) & ((port == 443) | source.is_not_null()), is_dns),
        ((port == 53) | (port == 443), lambda row: True),
        (port.is_null(), lambda row: False),
        (source == "10.0.0.7", lambda row: row["source"] == "10.0.0.7"),
        (port.not_in([443]), is_dns),
    ]
    for condition, keeps in cases:
        expected = [row for row in everything if keeps(row)]
        assert read().filter(expr=condition).take_all() == expected, condition
        offsets = read().filter(expr=condition).select_columns(["offset"]).take_all()
        assert offsets == [{"offset": row["offset"]} for row in expected], condition
    assert read().filter(expr=port == 53).count() == sum(map(is_dns, everything))


def test_ray_makes_rows_of_what_is_compared(day: list[str]) -> None:
    pytest.importorskip("ray.data")
    from ray.data.expressions import col

    from beebox.ray import Captures

    source = Captures(day, part_size=PART)
    assert source.apply_predicate(col("destination_port") + 1 == 54) is source
    kept = source.apply_predicate((col("destination_port") == 53) & (col("source") != "10.0.0.0"))
    assert kept._scan.options["conditions"] == [
        ("destination_port", "==", 53),
        ("source", "!=", "10.0.0.0"),
    ]
    assert "conditions" not in source._scan.options
    narrow = kept.apply_projection({"offset": "offset"})
    table = next(iter(narrow.get_read_tasks(1)[-1]()))
    assert table.column_names == ["offset"]
    assert 0 < table.num_rows < len(rows_of(day[1:])) / 5


def test_ray_runs_programs(ray: Any, day: list[str], examples: Path) -> None:
    from beebox.ray import Captures

    firewall = examples / "packets/firewall.bpf.o"
    source = Captures(day, part_size=PART, columns=["verdict"], object=str(firewall))
    verdicts = ray.data.read_datasource(source).groupby("verdict").count().take_all()
    program = beebox.Object(firewall).load().program("firewall")
    one = pa.table(beebox.CaptureTable(day, columns=["verdict"], program=program))
    expected = one.group_by("verdict").aggregate([([], "count_all")]).to_pylist()
    found = {row["verdict"]: row["count()"] for row in verdicts}
    assert found == {row["verdict"]: row["count_all"] for row in expected}


@pytest.fixture(scope="module")
def spark(day: list[str]) -> Iterator[Any]:
    pytest.importorskip("pyspark")
    if not shutil.which("java"):
        pytest.skip("Spark needs Java, and there is none")
    from pyspark.sql import SparkSession

    from beebox.spark import Captures

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    options = {
        "spark.ui.enabled": "false",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.log.level": "ERROR",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.dataSource.register(Captures)
    yield session
    session.stop()


def test_spark_reads_every_packet_once(spark: Any, day: list[str]) -> None:
    reader = spark.read.format("beebox").option("filter", "udp port 53").option("partSize", PART)
    frame = reader.option("columns", ",".join(COLUMNS)).load(",".join(day))
    assert [tuple(row) for row in frame.collect()] == rows_of(day, filter="udp port 53")
    chosen = reader.schema("destination_port int, offset bigint").load(day[0])
    assert chosen.columns == ["destination_port", "offset"]
    assert chosen.first() == (53, 24)


def test_spark_hands_its_comparisons_over(spark: Any, day: list[str]) -> None:
    reader = spark.read.format("beebox").option("columns", ",".join([*COLUMNS, "time", "vlan"]))
    reader = reader.option("matches", '{"dns": "udp port 53"}')
    everything = reader.load(day[1])
    middle = everything.collect()[100]["time"]
    for condition in [
        "destination_port <=> 53",
        "destination_port <> 53",
        "destination_port not in (53, 54)",
        "destination_port > 53 and wire_length < 700",
        "destination_port = 53 or wire_length < 700",
        "destination_port = 53 and destination_port + 1 = 54",
        "vlan is null and source is not null",
        "source in ('10.0.0.7', '10.0.0.8')",
        "source like '10.0.0.%' and source like '%.7'",
        "dns and offset >= 24",
        "not dns",
        f"time >= '{middle}' and destination_port = 53",
        f"time = '{middle}'",
    ]:
        pushed = reader.option("pushFilters", "once").load(day[1]).where(condition).collect()
        assert pushed == everything.where(condition).collect(), condition
    dns = json.dumps([["destination_port", "==", 53], ["wire_length", "<", 700]])
    rows = reader.option("pushFilters", "").option("conditions", dns).load(day[1]).collect()
    assert rows == everything.where("destination_port = 53 and wire_length < 700").collect()


def test_spark_keeps_what_a_frame_pushed(spark: Any, day: list[str]) -> None:
    """Why filters are pushed for frames that are used once: the second query has to have all."""
    frame = spark.read.format("beebox").option("pushFilters", "once").load(day[1])
    count = frame.where("destination_port = 53").count()
    assert count < len(rows_of(day[1:2]))
    assert frame.count() == count


def test_spark_takes_filters(day: list[str]) -> None:
    pytest.importorskip("pyspark")
    from pyspark.sql import datasource

    from beebox.spark import Captures

    def reader(**options: str) -> Any:
        source = Captures({"path": day[1], "partSize": "0", **options})
        return source.reader(source.schema())

    column, when = ("destination_port",), datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    pushing = reader(pushFilters="once")
    taken = [
        datasource.EqualTo(column, 53),
        datasource.IsNotNull(column),
        datasource.Not(datasource.In(("source",), ("10.0.0.7", "10.0.0.8"))),
    ]
    left = [
        datasource.GreaterThan(("time",), when),
        datasource.StringEndsWith(("source",), ".7"),
        datasource.Not(datasource.EqualNullSafe(column, 5)),
        datasource.In(column, (53, None)),
        datasource.EqualTo(("destination_port", "member"), 53),
    ]
    assert list(pushing.pushFilters([*taken, *left])) == left
    rows = pa.Table.from_batches(pushing.read(pushing.partitions()[0]))
    assert set(rows["destination_port"].to_pylist()) == {53}
    assert not {"10.0.0.7", "10.0.0.8"} & set(rows["source"].to_pylist())
    # Spark refuses the method in a session that pushes none.
    plain = reader().pushFilters
    assert plain.__func__ is datasource.DataSourceReader.pushFilters


def test_spark_loses_the_last_digits_of_times(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from beebox.spark import Captures

    data = captures.frame(1, b"", 53)
    nanoseconds = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    packet = struct.pack("<IIII", 1_700_000_000, 123_456_789, len(data), len(data)) + data
    (tmp_path / "nano.pcap").write_bytes(nanoseconds + packet)
    source = Captures({"path": str(tmp_path / "nano.pcap")})
    reader = source.reader(source.schema())
    (batch,) = reader.read(reader.partitions()[0])
    assert batch["time"][0].as_py() == datetime(2023, 11, 14, 22, 13, 20, 123_456, tzinfo=UTC)


def test_spark_loses_and_doubles_nothing_when_an_executor_dies(
    spark: Any, day: list[str], tmp_path: Path
) -> None:
    from beebox.spark import Captures

    marker = tmp_path / "died"

    class Dying(Captures):
        @classmethod
        def name(cls) -> str:
            return "dying"

        def scan(self) -> Scan:
            options = {"columns": COLUMNS, "batch_size": 1000}
            return captures.Dying(options, marker=str(marker), process="executor")

    spark.dataSource.register(Dying)
    frame = spark.read.format("dying").option("partSize", PART).load(",".join(day))
    assert [tuple(row) for row in frame.collect()] == rows_of(day)
    assert marker.exists()


def test_spark_has_types_for_all_columns(spark: Any, day: list[str], examples: Path) -> None:
    reader = spark.read.format("beebox").option("object", str(examples / "packets/flows.bpf.o"))
    rows = reader.option("records", "struct event").load(day[1]).limit(3).collect()
    assert {row["map"] for row in rows} == {"events"}
    assert rows[0]["record"]["kind"] == "FLOW_BEGINS"
    assert rows[0]["time"].year == 2023


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an object store: of this process, and of a server with the interface of S3."""
    fsspec = pytest.importorskip("fsspec")
    if request.param == "memory":
        yield "memory://store"
        return
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    pytest.importorskip("s3fs")
    server.start()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    host, port = server.get_host_and_port()
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": f"http://{host}:{port}"})
    fsspec.filesystem("s3").mkdir("store")
    yield "s3://store"
    server.stop()


def test_tasks_of_an_object_store(day: list[str], store: str) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(f"{store}/a.pcap", "wb") as out:
        out.write(Path(day[0]).read_bytes())
    tasks = plan(f"{store}/*.pcap", PART)
    assert [task.part for task in tasks] == beebox.capture_parts(day[0], PART)
    batches = [batch for task in tasks for batch in Scan({"columns": ["offset"]}).batches(task)]
    expected = pa.table(beebox.CaptureTable(day[0], columns=["offset"]))
    assert pa.Table.from_batches(batches).equals(expected)
    with pytest.raises(beebox.CaptureError, match=f"{store}/absent.pcap: FileNotFoundError"):
        beebox.CaptureTable(f"{store}/absent.pcap").count()
    assert plan(day[0], PART)[0] != Task((day[0],))
