"""Verdicts, explanations and runs as HTML, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beebox._beebox import (
        Batch,
        CaptureRun,
        CheckReport,
        Map,
        ProgramResult,
        TestRunResult,
        Verification,
    )
    from beebox._errors import Error


def _table(head: list[str], rows: list[list[Any]]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _details(title: str, text: str, *, is_open: bool = False) -> str:
    shown = " open" if is_open else ""
    return f"<details{shown}><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def verification_html(rows: Verification) -> str:
    """The rows as a table, with the explanations of refusals."""
    head = ["program", "type", "verdict", "insns", "states", "reason"]
    table = [[r.program, r.program_type, r.verdict, r.insns, r.states, r.reason] for r in rows]
    return _table(head, table) + "".join(_explanation(row) for row in rows)


def _explanation(row: ProgramResult) -> str:
    if row.explanation is None:
        return ""
    return _details(f"{row.program}: explanation", row.explanation, is_open=True)


def program_result_html(row: ProgramResult) -> str:
    """One row, with its explanation and its log."""
    facts: list[list[Any]] = [
        ["verdict", row.verdict],
        ["reason", row.reason],
        ["insns", row.insns],
        ["states", row.states],
        ["stack depth", row.stack_depth],
    ]
    log = _details("log", row.log) if row.log else ""
    return _table(["program", row.program], facts) + _explanation(row) + log


def run_html(result: TestRunResult) -> str:
    """A run: its verdict, the packet before and after it, what it printed and recorded."""
    from beebox.packets import describe

    facts: list[list[Any]] = [
        ["verdict", f"{result.verdict} ({result.retval})"],
        ["duration", f"{result.duration} ns"],
    ]
    if result.redirect is not None:
        facts.append(["redirect", result.redirect])
    facts += [["printk", text] for text in result.printk]
    facts += [[f"record of {record.map}", record.value] for record in result.records]
    text = _table(["program", result.program.name], facts)
    if result.data_in is not None:
        text += _details("packet", describe(result.data_in))
        if result.data_out != result.data_in:
            text += _details("packet after the run", describe(result.data_out), is_open=True)
    return text


def capture_html(run: CaptureRun) -> str:
    """The packets of a capture by verdict."""
    rows: list[list[Any]] = [[name, count, run.bytes[name]] for name, count in run.counts.items()]
    return _table(["verdict", "packets", "bytes"], rows)


def batch_html(batch: Batch) -> str:
    """Packets by verdict, and where they were redirected."""
    text = _table(["verdict", "packets"], [[*count] for count in batch.counts.items()])
    if batch.redirects:
        text += _table(["redirect", "packets"], [[*count] for count in batch.redirects.items()])
    return text


def report_html(report: CheckReport) -> str:
    """The expectations of a file, with what differs."""
    rows = [[e.line, e.text, e.difference or "met"] for e in report.expectations]
    return _table(["line", "expectation", "result"], rows)


def map_html(elements: Map) -> str:
    """The elements of a map."""
    return _table(["key", "value"], [[key, value] for key, value in elements.items()])


def error_html(error: Error) -> str:
    """An error, with explanation and log of a refusal."""
    text = f"<p><b>{escape(type(error).__name__)}</b>: {escape(error.message)}</p>"
    if error.explanation:
        text += _details("explanation", error.explanation, is_open=True)
    if error.log:
        text += _details("log", error.log)
    return text
