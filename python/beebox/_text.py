"""Runs and their surroundings as text, for failing tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beebox.packets import changes, describe

if TYPE_CHECKING:
    from beebox._beebox import Instance, TestRunResult

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


def map_lines(instance: Instance) -> list[str]:
    """The maps that have elements, with the first of them; those of variables by variable."""
    from beebox._errors import Error

    lines = []
    for name, elements in instance.maps.items():
        if _holds_variables(name):
            continue
        try:
            items = elements.items()
        except Error:
            # Ring buffers and the like have no elements.
            continue
        if not items:
            continue
        lines.append(f"map {name} ({elements.kind}):")
        lines += [f"  {key!r}: {value!r}" for key, value in items[:_MOST]]
        if len(items) > _MOST:
            lines.append(f"  and {len(items) - _MOST} more")
    lines += [f"global {name} = {value!r}" for name, value in instance.globals.items()[:_MOST]]
    return lines


def _holds_variables(name: str) -> bool:
    return name.endswith((".bss", ".data", ".rodata")) or ".rodata." in name or ".data." in name


def _indent(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
