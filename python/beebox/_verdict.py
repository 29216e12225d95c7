"""Names of verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beebox._beebox import TestRunResult


class Verdict(str):
    """The name of a verdict, such as ``XDP_DROP``: a ``str`` that knows the run that gave it."""

    result: TestRunResult
