"""What failing tests tell of their runs, for the plugin of pytest."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from beebox._beebox import (
    Batch,
    CaptureRun,
    CheckReport,
    Instance,
    Map,
    Program,
    ProgramResult,
    TestRunResult,
    Verification,
)
from beebox._errors import Error
from beebox._text import batch_lines, element_lines, map_lines, run_lines


@dataclass(frozen=True)
class Ran:
    """What a test ran."""

    program: Program
    result: TestRunResult | Batch | CaptureRun
    #: The first argument: a packet, several, a path or a model.
    given: object

    def lines(self) -> list[str]:
        """The run as text."""
        if isinstance(self.result, TestRunResult):
            return run_lines(self.result)
        return batch_lines(self.result, self.program, self.given)


def remembering(run: Callable[..., Any], ran: deque[Ran]) -> Callable[..., Any]:
    """A method that runs a program, and adds what it ran."""

    @functools.wraps(run)
    def remembered(program: Program, *args: Any, **options: Any) -> Any:
        result = run(program, *args, **options)
        ran.append(Ran(program, result, args[0] if args else options.get("packets")))
        return result

    return remembered


def sections(
    excinfo: pytest.ExceptionInfo[BaseException],
    compared: list[TestRunResult],
    ran: list[Ran],
) -> Iterator[tuple[str, list[str]]]:
    """What a failing test compared, holds in its frames, and ran: titles and lines."""
    for result in compared:
        yield "run", run_lines(result)
    if isinstance(excinfo.value, Error) and excinfo.value.explanation:
        yield "explanation", excinfo.value.explanation.splitlines()
        if excinfo.value.log:
            yield "log", excinfo.value.log.splitlines()
    # The innermost frame first; what only surrounds a run follows the runs.
    frames = [entry.frame.f_locals for entry in reversed(excinfo.traceback) if _is_shown(entry)]
    for names in frames:
        for name, value in names.items():
            yield from _held(name, value, ran)
    if ran:
        yield "last run", ran[-1].lines()
        yield "runs before it", [repr(run.result) for run in ran[:-1]]
    for names in frames:
        for name, value in names.items():
            if isinstance(value, Map):
                yield f"map {name}", element_lines(value)
            elif isinstance(value, Instance):
                yield f"maps of {name}", map_lines(value)


def _is_shown(entry: Any) -> bool:
    return not {"_pytest", "pluggy"} & set(Path(str(entry.path)).parts)


def _held(name: str, value: object, ran: list[Ran]) -> Iterable[tuple[str, list[str]]]:
    match value:
        case TestRunResult():
            yield f"run {name}", run_lines(value)
        case Batch() | CaptureRun():
            known = [run.lines() for run in ran if run.result is value]
            yield f"runs {name}", known[0] if known else batch_lines(value, None)
        case CheckReport() if not value.is_met:
            yield f"expectations {name}", str(value).splitlines()
        case ProgramResult() if not value.accepted:
            yield f"{name}: {value.program}", _refusal(value)
        case Verification():
            for row in value:
                if not row.accepted:
                    yield f"{name}: {row.program}", _refusal(row)


def _refusal(row: ProgramResult) -> list[str]:
    return [f"{row.verdict}: {row.reason}", *(row.explanation or "").splitlines()]
