"""Beebox, the Linux BPF machine in user space: verify, run and test BPF programs."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

from beebox._beebox import (
    CaptureTable,
    Globals,
    Instance,
    Kernel,
    Map,
    Object,
    Program,
    ProgramResult,
    Record,
    Records,
    TestRunResult,
    Verification,
    capture_parts,
)
from beebox._errors import (
    CaptureError,
    DataTypeError,
    Error,
    FileError,
    FilterError,
    FormatError,
    IncompatibleMapError,
    LimitError,
    LoadError,
    MapError,
    NotFoundError,
    ObjectError,
    RunError,
    TooComplexError,
    TrapError,
    UnsupportedError,
    VerifierError,
)
from beebox._struct import Struct
from beebox._verdict import Verdict

MutableMapping.register(Map)
MutableMapping.register(Globals)
Sequence.register(Verification)

__all__ = [
    "CaptureError",
    "CaptureTable",
    "DataTypeError",
    "Error",
    "FileError",
    "FilterError",
    "FormatError",
    "Globals",
    "IncompatibleMapError",
    "Instance",
    "Kernel",
    "LimitError",
    "LoadError",
    "Map",
    "MapError",
    "NotFoundError",
    "Object",
    "ObjectError",
    "Program",
    "ProgramResult",
    "Record",
    "Records",
    "RunError",
    "Struct",
    "TestRunResult",
    "TooComplexError",
    "TrapError",
    "UnsupportedError",
    "Verdict",
    "VerifierError",
    "Verification",
    "capture_parts",
]
