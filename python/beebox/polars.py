"""Captures as a lazy frame of Polars."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from beebox._pushdown import conditions, of_polars
from beebox._tasks import Scan, Task, expand


def scan_captures(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **options: Any
) -> pl.LazyFrame:
    """The packets of captures, read when the frame is collected.

    ``paths`` are paths, addresses that fsspec knows, and patterns; other arguments are those of
    ``beebox.CaptureTable``. Columns that a query does not use are not computed, and ``head`` ends
    the reading. Packets become no rows where a comparison of the query with numbers, texts or times
    leaves them out; other conditions are tested batch by batch. ``filter`` skips packets sooner.
    """
    every = Scan(options)
    task = Task(tuple(expand(paths)))
    columns_of = every.schema()
    schema = pl.DataFrame(columns_of.empty_table()).schema

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        compared = [] if predicate is None else of_polars(predicate)
        scan = every.where(it for given in compared for it in conditions(columns_of, *given))
        for batch in scan.batches(task, columns):
            frame = pl.DataFrame(batch)
            frame = frame if columns is None else frame.select(columns)
            frame = frame if predicate is None else frame.filter(predicate)
            frame = frame if rows is None else frame.head(rows)
            yield frame
            if rows is not None:
                rows -= len(frame)
                if rows <= 0:
                    return

    return register_io_source(read, schema=schema, is_pure=True)
