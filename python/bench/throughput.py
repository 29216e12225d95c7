"""Time of a test run and of a packet of a batch, beside the Rust library in the same run.

``python python/bench/throughput.py``, with the package installed. It fails if a limit is exceeded:
3 us a test run with its result, 1.2 times the library a packet in batches.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import beebox

ROOT = Path(__file__).resolve().parents[2]
OBJECT = ROOT / "examples/packets/firewall.bpf.o"
RULES = ROOT / "examples/packets/rules.json"
ROUNDS = 60
#: A TCP connection to a port that is not open, which the firewall looks up, counts and drops.
PACKET = bytes.fromhex(
    "020000000001020000000002 0800 45000032000040004006 0000 c6336407 0a000001"
    "9c400016 00000000 00000000 5002 2000 0000 0000" + "00" * 10
)


def fastest(steps: int, work: Callable[[], object]) -> float:
    """Nanoseconds of one of so many steps, in the fastest round."""
    least = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        work()
        least = min(least, (time.perf_counter_ns() - start) / steps)
    return least


def in_rust(packets: int) -> tuple[float, float]:
    """The same by the library: a test run, and a packet of a batch."""
    command = ["cargo", "run", "--locked", "--release", "--quiet"]
    command += ["--target-dir", str(ROOT / "target/python"), "--package"]
    command += [
        "beebox-python-bench",
        "--",
        str(OBJECT),
        str(RULES),
        "firewall",
        str(packets),
        PACKET.hex(),
    ]
    done = subprocess.run(command, cwd=ROOT / "python", check=True, capture_output=True, text=True)
    single, batch = map(float, done.stdout.split())
    return single, batch


def in_threads(count: int, packets: int) -> float:
    """Nanoseconds of a packet if so many threads run a batch each, on CPUs of their own."""
    instance = beebox.Object(OBJECT).load(cpus=count)
    instance.fill_maps(RULES)
    program, batch = instance.program("firewall"), [PACKET] * packets

    def work(cpu: int) -> None:
        program.run_batch(batch, cpu=cpu)

    def round_of_all() -> None:
        threads = [threading.Thread(target=work, args=(cpu,)) for cpu in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return fastest(packets * count, round_of_all)


def main() -> int:
    """Measure, print a table, and check the limits."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--packets", type=int, default=10_000)
    packets = arguments.parse_args().packets
    instance = beebox.Object(OBJECT).load()
    instance.fill_maps(RULES)
    program = instance.program("firewall")

    def single_runs() -> None:
        for _ in range(packets):
            result = program.test_run(PACKET)
            result.retval  # noqa: B018

    rust_single, rust_batch = in_rust(packets)
    single = fastest(packets, single_runs)
    if program.test_run(PACKET).verdict != "XDP_DROP":
        raise AssertionError("the firewall does not drop the packet")
    listed = [bytes(bytearray(PACKET)) for _ in range(packets)]
    as_list = fastest(packets, lambda: program.run_batch(listed))
    array = memoryview(PACKET * packets).cast("B", (packets, len(PACKET)))
    as_array = fastest(packets, lambda: program.run_batch(array))
    rows = [
        ("test_run, Rust", rust_single, 1.0),
        ("test_run, Python, with its result", single, single / rust_single),
        ("packet of a batch, Rust", rust_batch, 1.0),
        ("packet of a batch, Python, bytes", as_list, as_list / rust_batch),
        ("packet of a batch, Python, array", as_array, as_array / rust_batch),
    ]
    cores = len(os.sched_getaffinity(0))
    alone = in_threads(1, packets)
    for count in sorted({1, 2, cores}):
        each = in_threads(count, packets)
        rows.append((f"packet, {count} threads of Python", each, each / alone))
    for name, nanoseconds, times in rows:
        print(f"{name:<36} {nanoseconds:8.1f} ns {times:6.2f} x")
    failed = []
    if single > 3000:
        failed.append(f"a test run takes {single:.0f} ns, more than 3000")
    slower = max(as_list, as_array)
    if slower > 1.2 * rust_batch:
        failed.append(f"a packet takes {slower:.1f} ns, more than 1.2 x {rust_batch:.1f}")
    for what in failed:
        print(what, file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
