"""Captures as a data source of Spark 4.

``spark.dataSource.register(beebox.spark.Captures)``, then
``spark.read.format("beebox").option("filter", "udp port 53").load("/captures/*.pcap")``
"""

from __future__ import annotations

import functools
import gc
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from beebox._tasks import PART_SIZE, Scan, Task, plan

#: Types that Spark lacks, as the next larger ones that it has.
WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
}


class Captures(DataSource):
    """The packets of captures: the format ``beebox``.

    Options are ``filter``, ``columns`` (separated by commas), ``matches`` (JSON: filters by name),
    ``object``, ``program`` and ``records``, as arguments of ``beebox.ray.Captures``, and
    ``partSize`` in bytes, 0 for a task for each file. A schema that is given with ``.schema(…)``
    chooses the columns by name.
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
        return Reader(
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
            yield batch.select(names).cast(self.schema)


@functools.cache
def freeze_imports() -> None:
    """Keeps what this worker has imported out of the garbage collection that follows every task."""
    gc.freeze()


def spark_field(field: pa.Field) -> pa.Field:
    """A field of a type that Spark has."""
    return field.with_type(spark_type(field.type))


def spark_type(given: pa.DataType) -> pa.DataType:
    """The type of Spark for a type of Arrow."""
    if pa.types.is_timestamp(given):
        return pa.timestamp("us", given.tz)
    if pa.types.is_struct(given):
        return pa.struct([spark_field(it) for it in given])
    if pa.types.is_fixed_size_list(given):
        return pa.list_(spark_type(given.value_type))
    return WIDER.get(given, given)
