"""Runs and their surroundings as text, for failing tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beebox.packets import changes, describe

if TYPE_CHECKING:
    from beebox._beebox import Batch, CaptureRun, Instance, Map, Program, TestRunResult

#: Elements of a map that are shown.
_MOST = 8


def run_lines(result: TestRunResult) -> list[str]:
    """A run: verdict, the packet by field, what it changed, printed and recorded, and the maps."""
    program = result.program
    lines = [f"{program.name} ({program.program_type}): {result.verdict} ({result.retval})"]
    if result.redirect is not None:
        lines.append(f"redirected to {result.redirect}")
    if result.data_in is not None:
        lines += ["packet:", *_indent(describe(result.data_in))]
        if len(result.data_out) != result.data_size_out:
            lines.append(f"packet after the run: {result.data_size_out} bytes")
        else:
            lines += ["packet after the run:", *_indent(changes(result.data_in, result.data_out))]
    lines += [f"printk: {text}" for text in result.printk]
    lines += [f"record of {record.map}: {record.value}" for record in result.records]
    return lines + map_lines(program.instance)


def batch_lines(
    batch: Batch | CaptureRun, program: Program | None, packets: object = None
) -> list[str]:
    """Runs on many packets: their verdicts, the first packet of each by field, and the maps."""
    from beebox._beebox import Batch

    count = len(batch) if isinstance(batch, Batch) else batch.packets
    packets_run = "1 packet" if count == 1 else f"{count} packets"
    counts = ", ".join(f"{verdict} {number}" for verdict, number in batch.counts.items())
    head = "" if program is None else f"{program.name} ({program.program_type}): "
    lines = [f"{head}{packets_run}: {counts}"]
    lines += [f"redirected to {where}: {number}" for where, number in batch.redirects.items()]
    if isinstance(batch, Batch) and isinstance(packets, list | tuple):
        first: dict[str, int] = {}
        for number, verdict in enumerate(batch.verdicts):
            first.setdefault(verdict, number)
        after = batch.packets_out
        for verdict, number in [*first.items()][:_MOST]:
            packet = bytes(packets[number])
            lines += [f"packet {number}, {verdict}:", *_indent(describe(packet))]
            if after is not None:
                changed = changes(packet, after[number])
                lines += [f"packet {number} after the run:", *_indent(changed)]
    return lines if program is None else lines + map_lines(program.instance)


def map_lines(instance: Instance) -> list[str]:
    """The maps that have elements, with the first of them; those of variables by variable."""
    lines = []
    for name, elements in instance.maps.items():
        shown = [] if _holds_variables(name) else element_lines(elements)
        lines += shown if len(shown) > 1 else []
    lines += [f"global {name} = {value!r}" for name, value in instance.globals.items()[:_MOST]]
    return lines


def element_lines(elements: Map) -> list[str]:
    """A map with the first of its elements."""
    from beebox._errors import Error

    try:
        items = elements.items()
    except Error:
        # Ring buffers and the like have no elements.
        return []
    if not items:
        return [f"map {elements.name} ({elements.kind}): no element"]
    lines = [f"map {elements.name} ({elements.kind}):"]
    lines += [f"  {key!r}: {value!r}" for key, value in items[:_MOST]]
    if len(items) > _MOST:
        lines.append(f"  and {len(items) - _MOST} more")
    return lines


def _holds_variables(name: str) -> bool:
    return name.endswith((".bss", ".data", ".rodata")) or ".rodata." in name or ".data." in name


def _indent(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
