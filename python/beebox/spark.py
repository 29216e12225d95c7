"""Captures as a data source of Spark 4.

``spark.dataSource.register(beebox.spark.Captures)``, then
``spark.read.format("beebox").option("filter", "udp port 53").load("/captures/*.pcap")``
"""

from __future__ import annotations

import functools
import gc
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from beebox._pushdown import of_spark
from beebox._spark_types import spark_field
from beebox._tasks import PART_SIZE, Scan, Task, plan


class Captures(DataSource):
    """The packets of captures: the format ``beebox``.

    Options are ``filter``, ``columns`` (separated by commas), ``matches`` (JSON: filters by name),
    ``conditions`` (JSON: a list of column, operator and value), ``mapValues`` (JSON: map and key by
    name), ``object``, ``program`` and ``records``, as arguments of ``beebox.ray.Captures``,
    ``partSize`` in bytes, 0 for a task for each file, and ``pushFilters``, "once" for a frame that
    a single query uses once: packets that the query leaves out become no rows. A schema that is
    given with ``.schema(…)`` chooses the columns by name.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "beebox"

    def scan(self) -> Scan:
        """What tasks do."""
        options: dict[str, Any] = {"filter": self.options.get("filter")}
        if "columns" in self.options:
            options["columns"] = [name.strip() for name in self.options["columns"].split(",")]
        if "matches" in self.options:
            options["matches"] = json.loads(self.options["matches"])
        if "conditions" in self.options:
            given = json.loads(self.options["conditions"])
            options["conditions"] = [tuple(condition) for condition in given]
        if "mapValues" in self.options:
            given = json.loads(self.options["mapValues"])
            options["map_values"] = {name: tuple(element) for name, element in given.items()}
        if "records" in self.options:
            records = self.options["records"]
            options["records"] = {"true": True, "false": False}.get(records.lower(), records)
        return Scan(options, self.options.get("object"), self.options.get("program"))

    def schema(self) -> StructType:
        """The columns as types of Spark: numbers without a sign are wider ones with one."""
        return from_arrow_schema(pa.schema([spark_field(it) for it in self.scan().schema()]))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads the columns of the schema."""
        part_size = int(self.options.get("partSize", PART_SIZE)) or None
        # Spark 4.3 reads all of a frame by the filters of the query that it planned last, and
        # refuses readers that take filters in a session that pushes none.
        pushes = self.options.get("pushFilters") == "once"
        return (FilteringReader if pushes else Reader)(
            self.scan(), to_arrow_schema(schema, timezone="UTC"), self.options["path"], part_size
        )


@dataclass
class Part(InputPartition):
    """A task."""

    task: Task


@dataclass
class Reader(DataSourceReader):
    """Plans the tasks, and reads them."""

    scan: Scan
    schema: pa.Schema
    path: str
    part_size: int | None

    def partitions(self) -> list[Part]:  # type: ignore[override]
        """A partition for each task, in the order of files and offsets."""
        return [Part(task) for task in plan(self.path.split(","), self.part_size)]

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """The rows of a task."""
        freeze_imports()
        names = self.schema.names
        for batch in self.scan.batches(partition.task, names):
            columns = [
                # Times lose what Spark has no digits for.
                batch[field.name].cast(field.type, safe=not pa.types.is_timestamp(field.type))
                for field in self.schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


class FilteringReader(Reader):
    """A reader that takes filters of queries."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Takes those that the reader tests; Spark tests the others, and rounded times again."""
        schema = self.scan.schema(self.schema.names)
        for given in filters:
            taken = of_spark(schema, given)
            self.scan = self.scan.where(taken)
            if not taken or taken[0][0] == "time":
                yield given


@functools.cache
def freeze_imports() -> None:
    """Keeps what this worker has imported out of the garbage collection that follows every task."""
    gc.freeze()
