"""Captures in Ray and Spark beside one process: ``python python/bench/clusters.py``.

With ``ray`` or ``spark`` only that; ``--write`` puts the lines into docs/clusters.md.

Counts the packets that a filter keeps of a capture of about 4 GiB, which is read 16 times: by the
command, by one process, and by clusters with one worker and with as many as there are cores. Then
the same of many small captures, to show what a task costs. "Constant" is Spark with a source that
reads nothing, and hands over as many rows of the same columns: what Spark costs alone. Time is that
of the clock; work is the processor time of this process and all below it, those of the cluster
among them. The command runs in turns with what is compared with it, in three rounds behind one that
warms up, and the least of each counts: other load of the machine concerns both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import page
import pyarrow as pa

import beebox
from beebox._tasks import PART_SIZE, plan

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import captures as generate

FILTER = "udp port 53"
OPTIONS: dict[str, Any] = {"filter": FILTER, "columns": ["offset", "time", "wire_length"]}
LARGE = (4 << 30) + (64 << 20)
TIMES = 16
ROUNDS = 3
SMALL = 100
CORES = os.cpu_count() or 1
TICK = os.sysconf("SC_CLK_TCK")


def work() -> float:
    """Processor time so far of this process and all that it started, in seconds."""
    found: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            found[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / TICK)

    def is_own(pid: int) -> bool:
        while pid in found and pid != os.getpid():
            pid = found[pid][0]
        return pid == os.getpid()

    return sum(spent for pid, (_, spent) in found.items() if is_own(pid))


LINES: list[str] = []


def say(line: str) -> None:
    """Prints a line, and keeps it for the page."""
    print(line, flush=True)
    LINES.append(f"{line}\n")


@dataclass(frozen=True)
class Captures:
    """Captures that all read, and what the command says of them."""

    name: str
    paths: list[str]
    part_size: int | None
    packets: int
    expected: int

    def command(self) -> int:
        """Reads them by the command in one thread."""
        command = ["beebox", "filter", "-J1", "--count", FILTER, *self.paths]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def tasks(self) -> int:
        """Tasks of a cluster that reads them."""
        return len(plan(self.paths, self.part_size))

    def measure(self, name: str, read: Callable[[], int], tasks: int) -> None:
        """Prints the time and the work of a reading, and its work over the command's."""
        readings = [read, self.command]
        least = [(float("inf"), float("inf"))] * len(readings)
        for number in range(ROUNDS + 1):
            for at, reading in enumerate(readings):
                clock, before = time.perf_counter(), work()
                found = reading()
                assert found == self.expected, f"{name}: {found} rows, not {self.expected}"
                spent = (time.perf_counter() - clock, work() - before)
                if number:
                    least[at] = (min(least[at][0], spent[0]), min(least[at][1], spent[1]))
        (clock, used), (_, command) = least
        say(
            f"{name + ', ' + self.name:32} {tasks:4} tasks {clock:7.2f} s {used:7.2f} s of work"
            f" {used * 1e9 / self.packets:7.0f} ns/packet {used * 1e3 / tasks:8.2f} ms/task"
            + (f" {used / command:5.2f} x command" if self.name == "large" else "")
        )


def by_process(paths: list[str]) -> Callable[[], int]:
    """One process."""
    table = beebox.CaptureTable(paths, **OPTIONS)
    return lambda: sum(map(len, pa.RecordBatchReader.from_stream(table)))


def in_ray(sets: list[Captures], cores: int) -> None:
    """A cluster of Ray."""
    import ray

    from beebox.ray import Captures as Source

    ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    for captures in sets:

        def read(them: Captures = captures) -> int:
            source = Source(them.paths, part_size=them.part_size, **OPTIONS)
            return int(
                ray.data.read_datasource(source, override_num_blocks=1).materialize().count()
            )

        captures.measure(f"ray, {cores} workers", read, captures.tasks())
    ray.shutdown()


def in_spark(sets: list[Captures], cores: int) -> None:
    """A cluster of Spark."""
    from pyspark.sql import SparkSession

    from beebox.spark import Captures as Source

    Constant = constant_source(sets[0].expected // sets[0].tasks())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    # The large captures last, when the JVM has compiled what runs often.
    order = [(Source, it) for it in reversed(sets)]
    for source, captures in [(Constant, sets[0]), *order]:
        spark.dataSource.register(source)

        def read(name: str = source.name(), them: Captures = captures) -> int:
            reader = spark.read.format(name).option("filter", FILTER)
            reader = reader.option("columns", ",".join(OPTIONS["columns"]))
            return int(
                reader.option("partSize", them.part_size or 0).load(",".join(them.paths)).count()
            )

        name = f"spark, {cores} workers" + ("" if source is Source else ", constant")
        captures.measure(name, read, captures.tasks())
    spark.stop()


def constant_source(rows: int) -> Any:
    """A data source of Spark whose tasks read nothing, and have so many rows each."""
    from beebox import spark

    class Reader(spark.Reader):
        def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
            """As many rows of zeros, whose columns have eight bytes each."""
            spark.freeze_imports()
            size, left = 1 << 16, rows
            zeros = [None, pa.py_buffer(bytes(8 * size))]
            columns = [pa.Array.from_buffers(field.type, size, zeros) for field in self.schema]
            batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
            while left > 0:
                yield batch.slice(0, left)
                left -= size

    class Constant(spark.Captures):
        @classmethod
        def name(cls) -> str:
            """The name of the format."""
            return "constant"

        def reader(self, schema: Any) -> Reader:
            """A reader of the same tasks."""
            return Reader(**vars(super().reader(schema)))

    return Constant


def main() -> None:
    """Prints the table."""
    engines = [name for name in sys.argv[1:] if name != "--write"] or ["ray", "spark"]
    with tempfile.TemporaryDirectory() as directory:
        large = [str(generate.repeat(Path(directory) / "day.pcap", LARGE))] * TIMES
        first = generate.write(Path(directory) / "0000.pcap", 100_000)
        small = [str(first)]
        for number in range(1, SMALL):
            small.append(str(Path(directory) / f"{number:04}.pcap"))
            shutil.copy(first, small[-1])
        sets = []
        for name, paths, part_size in [
            ("large", large, PART_SIZE),
            ("small, grouped", small, PART_SIZE),
            ("small, each", small, None),
        ]:
            counts = beebox.CaptureTable(paths, filter=FILTER).count()
            sets.append(Captures(name, paths, part_size, counts["packets"], counts["matched"]))
        clock = time.perf_counter()
        plan(small)
        say(f"plan of {SMALL} files: {(time.perf_counter() - clock) * 1e6 / SMALL:.0f} us/file")
        sets[0].measure("command", sets[0].command, 1)
        for captures in sets[:2]:
            captures.measure("one process", by_process(captures.paths), 1)
        for engine in engines:
            for cores in sorted({1, CORES}):
                {"ray": in_ray, "spark": in_spark}[engine](sets, cores)
    page.write("clusters.md", "".join(LINES))


if __name__ == "__main__":
    main()
