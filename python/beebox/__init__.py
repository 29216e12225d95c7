"""Beebox, the Linux BPF machine in user space: verify, run and test BPF programs."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from importlib.metadata import version as _version

from beebox import packets
from beebox._beebox import (
    Batch,
    CaptureRun,
    CaptureTable,
    CheckReport,
    Expectation,
    Expectations,
    Filter,
    Globals,
    Instance,
    Kernel,
    Map,
    Model,
    Object,
    PacketCounts,
    PacketSeen,
    Program,
    ProgramResult,
    Record,
    Records,
    Rules,
    Seccomp,
    SeccompDiff,
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

__version__ = _version("beebox")

MutableMapping.register(Map)
MutableMapping.register(Globals)
Sequence.register(Verification)

__all__ = [
    "Batch",
    "CaptureError",
    "CaptureRun",
    "CaptureTable",
    "CheckReport",
    "DataTypeError",
    "Error",
    "Expectation",
    "Expectations",
    "FileError",
    "Filter",
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
    "Model",
    "NotFoundError",
    "Object",
    "ObjectError",
    "PacketCounts",
    "PacketSeen",
    "Program",
    "ProgramResult",
    "Record",
    "Records",
    "Rules",
    "RunError",
    "Seccomp",
    "SeccompDiff",
    "Struct",
    "TestRunResult",
    "TooComplexError",
    "TrapError",
    "UnsupportedError",
    "Verdict",
    "Verification",
    "VerifierError",
    "capture_parts",
    "packets",
]
