"""The return values that the kernel's own tests declare, through this API.

The objects are built by ``tools/selftests/build``; ``truth-7.2-v3.csv.gz`` has what Linux 6.18
returned.
"""

import csv
import gzip
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import beebox
from conftest import ROOT

RECORDED = ROOT / "tools/selftests"
CACHE = Path(os.environ.get("BEEBOX_CACHE", Path.home() / ".cache/beebox"))
OBJECTS = CACHE / "selftests/7.2/obj-v3"

#: Programs that return something else than they declare, here as in the kernel that was asked.
FILLED_FIRST = (
    "verifier_array_access.bpf.o/a_read_only_array_1_1",
    "verifier_array_access.bpf.o/a_read_only_array_2_1",
    "verifier_value_ptr_arith.bpf.o/alu_with_different_scalars_1",
    "verifier_value_ptr_arith.bpf.o/unknown_scalar_value_ptr_2",
    "verifier_value_ptr_arith.bpf.o/unknown_scalar_value_ptr_3",
    "verifier_value_ptr_arith.bpf.o/value_ptr_known_scalar_5",
    "verifier_value_ptr_arith.bpf.o/value_ptr_known_scalar_6",
    "verifier_value_ptr_arith.bpf.o/value_ptr_unknown_scalar_2_1",
)
ARENAS_OF_7_2 = (
    "verifier_arena_globals1.bpf.o/check_relocation",
    "verifier_arena_globals1.bpf.o/check_reserve1",
    "verifier_arena_large.bpf.o/big_alloc1",
)


def rows(name: str) -> Iterator[dict[str, str]]:
    with gzip.open(RECORDED / name, "rt") as file:
        yield from csv.DictReader(file)


def number(text: str) -> int:
    names = {"_INT_MIN": -(1 << 31)}
    return names[text] if text in names else int(text, 0)


def weakened(path: Path) -> bytes:
    """The object with weak undefined symbols, so that only programs that need one lack it."""
    file = bytearray(path.read_bytes())
    table, count = struct.unpack_from("<Q", file, 40)[0], struct.unpack_from("<H", file, 60)[0]
    for section in range(table, table + count * 64, 64):
        kind, start, size = (
            struct.unpack_from("<I", file, section + 4)[0],
            *struct.unpack_from("<QQ", file, section + 24),
        )
        if kind != 2:
            continue
        for symbol in range(start + 24, start + size, 24):
            if file[symbol + 6 : symbol + 8] == b"\0\0" and file[symbol + 4] >> 4 == 1:
                file[symbol + 4] = file[symbol + 4] & 15 | 2 << 4
    return bytes(file)


def returned(row: dict[str, str], notes: str, kernel: beebox.Kernel) -> int:
    """What a program returns, loaded alone and run as the loader of the tests does it."""
    path = OBJECTS / row["object"]
    source = weakened(path) if "weak-externs" in notes else path
    if row["btf_path"]:
        kernel = kernel.with_core_btf(OBJECTS / row["btf_path"])
    program = beebox.Object(source).load(kernel=kernel, programs=[row["prog"]]).program(row["prog"])
    data: bytes | None = bytes(64)
    context: bytes | None = None
    match program.program_type:
        case "syscall" | "raw_tracepoint":
            data = None
        case "sk_lookup":
            data, context = None, bytes(72)
    return program.test_run(data, context, clock=time.monotonic_ns()).retval


@pytest.mark.skipif(not OBJECTS.is_dir(), reason=f"the kernel's tests are not built: {OBJECTS}")
def test_programs_return_what_the_kernels_tests_declare() -> None:
    truth = {(row["object"], row["prog"]): row for row in rows("truth-7.2-v3.csv.gz")}
    kernel = beebox.Kernel.builtin("6.18-minimal")
    compared = 0
    differing: list[str] = []
    unlike_kernel: list[str] = []
    for row in rows("expectations-7.2.csv.gz"):
        recorded = truth.get((row["object"], row["prog"]), {})
        if not row["retval"] or recorded.get("run_retval", "") in ("", "pointer"):
            continue
        compared += 1
        name = f"{row['object']}/{row['prog']}"
        retval = returned(row, recorded["notes"], kernel)
        if retval != number(row["retval"]) & 0xFFFFFFFF:
            differing.append(name)
        if retval != number(recorded["run_retval"]) & 0xFFFFFFFF:
            unlike_kernel.append(name)
    assert unlike_kernel == []
    # The tests fill maps of the first before they run them; the others are of a newer kernel.
    assert sorted(differing) == sorted([*FILLED_FIRST, *ARENAS_OF_7_2])
    assert (compared, compared - len(differing)) == (688, 677)
