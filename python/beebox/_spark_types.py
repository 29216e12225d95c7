"""Types of Spark for those of Arrow."""

from __future__ import annotations

import pyarrow as pa

#: Types that Spark lacks, as the next larger ones that it has.
WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
}


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
