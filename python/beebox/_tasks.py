"""Captures as tasks of a cluster: what each reads, and how."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from beebox._beebox import CaptureTable, Object, capture_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from beebox._pushdown import Condition

#: Bytes of a part: a task costs an engine some 20 ms, and a core reads a cached GiB in 100 to 200.
PART_SIZE = 4 << 30


@dataclass(frozen=True)
class Task:
    """Some captures as a whole, or a part of one."""

    files: tuple[str, ...]
    part: tuple[int, int, int] | None = None
    size: int = 0


@dataclass(frozen=True)
class Scan:
    """What tasks do: the arguments of ``CaptureTable``, with the program by object and name."""

    options: dict[str, Any] = field(default_factory=dict)
    object: str | bytes | None = None
    program: str | None = None

    def table(self, task: Task, columns: Sequence[str] | None = None) -> CaptureTable:
        """The rows of a task, of all columns or of some by name."""
        options = dict(self.options)
        if columns is not None:
            options["columns"] = [name for name in columns if name in CaptureTable.COLUMNS]
            matches = options.get("matches") or {}
            used = {*columns, *(name for name, *_ in options.get("conditions") or ())}
            options["matches"] = {name: matches[name] for name in matches if name in used}
            values = options.get("map_values") or {}
            options["map_values"] = {name: values[name] for name in values if name in used}
        if self.object is not None:
            instance = Object(self.object).load()
            name = self.program or next(iter(instance.programs))
            options["program"] = instance.program(name)
        return CaptureTable(list(task.files), part=task.part, **options)

    def where(self, conditions: Iterable[Condition]) -> Self:
        """The scan, of rows that meet more conditions."""
        both = [*(self.options.get("conditions") or ()), *conditions]
        return replace(self, options={**self.options, "conditions": both})

    def batches(self, task: Task, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in batches."""
        import pyarrow as pa

        yield from pa.RecordBatchReader.from_stream(self.table(task, columns))

    def schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """The schema of all tasks."""
        import pyarrow as pa

        return pa.schema(self.table(Task(()), columns))


def expand(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files of paths, addresses and patterns (``*.pcap``), in order."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files: list[str] = []
    for path in (os.fspath(path) for path in given):
        found = [path]
        if "*" in path and "://" in path:
            import fsspec

            found = sorted(file.full_name for file in fsspec.open_files(path))
        elif "*" in path:
            found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise FileNotFoundError(f"{path}: no capture matches")
        files += found
    return files


def size_of(file: str) -> int:
    """Bytes of a file or of what is at an address."""
    if "://" not in file:
        return os.path.getsize(file)
    import fsspec

    system, path = fsspec.core.url_to_fs(file)
    return int(system.size(path) or 0)


def plan(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    part_size: int | None = PART_SIZE,
) -> list[Task]:
    """The tasks of captures, in the order of files and offsets.

    Files of two parts and more are divided, smaller ones read together, as many as make a part;
    with ``part_size=None`` each file is a task.
    """

    def parts(file: str) -> tuple[int, list[tuple[int, int, int] | None]]:
        size = size_of(file)
        if part_size is None or size < 2 * part_size:
            return size, [None]
        return size, capture_parts(file, part_size)

    files = expand(paths)
    tasks: list[Task] = []
    with ThreadPoolExecutor(16) as pool:
        for file, (size, found) in zip(files, pool.map(parts, files), strict=True):
            last = tasks[-1] if tasks else None
            if found != [None]:
                tasks += [Task((file,), part, min(part[1], size)) for part in found if part]
            elif last and part_size and not last.part and last.size + size <= part_size:
                tasks[-1] = Task((*last.files, file), None, last.size + size)
            else:
                tasks.append(Task((file,), None, size))
    return tasks
