"""Captures as Arrow beside the command, on one core: ``python python/bench/arrow.py [CAPTURE]``.

``--write`` puts the table into docs/arrow.md. Without a capture, one of about 1 GiB is made in a
temporary directory. Each row is the least of five runs, of the processor time of this process; that
of the command is of its process, less its start.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import page
import pyarrow as pa

import beebox

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import captures

FILTER = "tcp port 22 or udp port 53"
SETS: dict[str, dict[str, Any]] = {
    "no column, all packets": {"columns": []},
    "no column, the filter": {"columns": [], "filter": FILTER},
    "offset, the filter": {"columns": ["offset"], "filter": FILTER},
    "usual columns, the filter": {"filter": FILTER},
    "offset": {"columns": ["offset"]},
    "offset, time, lengths": {"columns": ["offset", "time", "captured_length", "wire_length"]},
    "ports": {"columns": ["source_port", "destination_port"]},
    "addresses as text": {"columns": ["source", "destination"]},
    "data": {"columns": ["data"]},
    "usual columns": {},
}


def least(work: Callable[[], float]) -> float:
    """The least of five runs."""
    return min(work() for _ in range(5))


def of_command(arguments: list[str]) -> float:
    """Processor time of a command in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["beebox", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_table(table: beebox.CaptureTable) -> float:
    """Processor time of reading a table in seconds."""
    before = time.process_time()
    for _ in pa.RecordBatchReader.from_stream(table):
        pass
    return time.process_time() - before


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as directory:
        given = [argument for argument in sys.argv[1:] if argument != "--write"]
        path = Path(given[0]) if given else captures.repeat(Path(directory) / "day.pcap", 1 << 30)
        packets = beebox.CaptureTable(path).count()["packets"]
        start = least(lambda: of_command(["--version"]))
        command = least(lambda: of_command(["filter", "-J1", "--count", FILTER, str(path)])) - start
        lines = [
            f"{packets} packets, {path.stat().st_size >> 20} MiB",
            f"{'beebox filter --count':32} {command * 1e9 / packets:8.1f} ns/packet",
        ]
        for name, options in SETS.items():
            table = beebox.CaptureTable(path, **options)
            spent = least(partial(of_table, table))
            each, ratio = spent * 1e9 / packets, spent / command
            lines.append(f"{name:32} {each:8.1f} ns/packet {ratio:6.2f} x")
        text = "".join(f"{line}\n" for line in lines)
        print(text, end="")
        page.write("arrow.md", text)


if __name__ == "__main__":
    main()
