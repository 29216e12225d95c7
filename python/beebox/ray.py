"""Captures as a data source of Ray Data.

``ray.data.read_datasource(beebox.ray.Captures("s3://bucket/*.pcap", filter="udp port 53"))``
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from beebox._pushdown import columns_of_ray, conditions, of_ray
from beebox._tasks import PART_SIZE, Scan, Task, plan


class Captures(Datasource):
    """The packets of captures, a task for each file or part of one.

    ``paths`` are paths, addresses that fsspec knows, and patterns. Files of two parts of
    ``part_size`` bytes and more are divided, smaller ones read together; None divides none.
    ``object`` and ``program`` name a program that each task loads anew. Other arguments are those
    of ``beebox.CaptureTable``; ``select_columns`` of the dataset takes columns away before they are
    computed, and packets become no rows where a comparison in ``filter(expr=…)`` leaves them out.

    Rows are ordered by file and offset within a task, and across tasks where the execution option
    ``preserve_order`` of Ray is on.
    """

    #: Columns that a query takes, of all.
    _projection_map: dict[str, str] | None = None

    def __init__(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        part_size: int | None = PART_SIZE,
        object: str | bytes | None = None,
        program: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._scan = Scan(options, object, program)
        self._schema = self._scan.schema()
        self._tasks = plan(paths, part_size)

    def estimate_inmemory_data_size(self) -> int | None:
        """As much as the captures: what columns take is not known before."""
        return sum(task.size for task in self._tasks)

    def supports_projection_pushdown(self) -> bool:
        """Columns that are not selected are not computed."""
        return True

    def supports_predicate_pushdown(self) -> bool:
        """Packets that a comparison leaves out become no rows."""
        return True

    def apply_predicate(self, predicate_expr: Any) -> Datasource:
        """The source of rows that meet a condition; this one if Ray has to test all of it."""
        compared = of_ray(predicate_expr)
        taken = [it for given in compared for it in conditions(self._schema, *given)]
        if not taken:
            return self
        source = super().apply_predicate(predicate_expr)
        source._scan = self._scan.where(taken)
        return source

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """A task for each part; their number depends on the captures, not on ``parallelism``."""
        columns = self._get_data_columns()
        if columns == []:
            # Blocks without a column have no rows to count.
            columns = ["offset"]
        schema = self._scan.schema(columns)

        def read_task(task: Task) -> ReadTask:
            read = partial(_tables, self._scan, task, columns, self.get_current_predicate())
            about = BlockMetadata(
                num_rows=None, size_bytes=task.size, input_files=task.files, exec_stats=None
            )
            return ReadTask(read, about, schema=schema, per_task_row_limit=per_task_row_limit)

        return [read_task(task) for task in self._tasks]


def _tables(
    scan: Scan, task: Task, columns: list[str] | None, predicate: Any = None
) -> Iterable[Any]:
    import pyarrow as pa

    needed = columns
    if columns is not None and predicate is not None:
        needed = list(dict.fromkeys([*columns, *columns_of_ray(predicate)]))
    for batch in scan.batches(task, needed):
        table = pa.Table.from_batches([batch])
        if predicate is not None:
            # Comparisons that the reader has not made.
            table = table.filter(predicate.to_pyarrow())
        yield table if columns is None else table.select(columns)
