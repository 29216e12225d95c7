"""Comparisons of queries as conditions of ``CaptureTable``.

What an engine compares is read from its expressions. Only what is known is taken: the engine tests
the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

#: What rows meet, as ``CaptureTable`` takes it: a column, an operator and a value.
Condition = tuple[str, str, Any]

#: Operators that compare with a value, by its type.
OPERATORS = {
    int: ("==", "!=", "in", "<", "<=", ">", ">="),
    str: ("==", "!=", "in", "starts with"),
    bool: ("==", "!=", "in"),
}

#: Filters of Spark by the names of their classes, as operators of conditions.
SPARK = {
    "EqualTo": "==",
    "EqualNullSafe": "==",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "in",
    "StringStartsWith": "starts with",
    "IsNull": "is null",
    "IsNotNull": "is not null",
}

#: Comparisons of Ray, as operators of conditions. Its ``not_in`` keeps rows without a value.
RAY = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "IN": "in"}

#: Those of a value with a column.
RAY_TURNED = {"EQ": "==", "NE": "!=", "LT": ">", "LE": ">=", "GT": "<", "GE": "<="}

#: Conditions of one column.
RAY_UNARY = {
    "IS_NULL": ("is null", None),
    "IS_NOT_NULL": ("is not null", None),
    "NOT": ("==", False),
}

#: Comparisons of Polars by the names of its expressions, as operators of conditions.
POLARS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}

#: Those of ``is_between``, by the bounds that it includes.
POLARS_BETWEEN = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}


def conditions(schema: pa.Schema, column: str, operator: str, value: Any = None) -> list[Condition]:
    """A comparison of an engine as conditions of the reader; none if it has no such.

    They hold for the same rows; those on times for more, because engines round.
    """
    from pyarrow import types

    if column not in schema.names or column == "record":
        return []
    given = schema.field(column).type
    if types.is_timestamp(given):
        return _times(column, operator, value)
    kinds = {int: types.is_integer, str: types.is_string, bool: types.is_boolean}
    kind = next((kind for kind, is_kind in kinds.items() if is_kind(given)), None)
    if kind is None:
        return []
    if operator in ("is null", "is not null"):
        return [(column, operator, None)]
    values: list[Any] = [value]
    if operator == "in":
        value = values = list(value) if isinstance(value, (list, tuple)) else values
    fit = all(type(it) is kind for it in values)
    if kind is int:
        fit = fit and all(-1 << 63 <= it < 1 << 64 for it in values)
    return [(column, operator, value)] if fit and operator in OPERATORS[kind] else []


def _times(column: str, operator: str, value: Any) -> list[Condition]:
    if isinstance(value, datetime) and value.tzinfo is not None:
        nanoseconds = (value - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1) * 1000
        least, most = nanoseconds - 999, nanoseconds + 999
    elif type(value) is int:
        least = most = value
    else:
        return []
    bounds = [(column, ">=", least)] if operator in ("==", ">", ">=") else []
    return bounds + ([(column, "<=", most)] if operator in ("==", "<", "<=") else [])


def of_spark(schema: pa.Schema, given: Any) -> list[Condition]:
    """A filter of Spark as conditions; none if the reader does not test it."""
    negated = type(given).__name__ == "Not"
    tested = given.child if negated else given
    (column, *members), name = tested.attribute, type(tested).__name__
    value = getattr(tested, "value", None)
    if members or name not in SPARK:
        return []
    if not negated:
        return conditions(schema, column, SPARK[name], value)
    if name not in ("EqualTo", "In"):
        return []
    differ = tested.value if name == "In" else [tested.value]
    each = [conditions(schema, column, "!=", it) for it in differ]
    return [it for taken in each for it in taken] if all(each) else []


def of_ray(expr: Any) -> Iterator[tuple[str, str, Any]]:
    """The comparisons that all rows of a condition meet: column, operator and value."""
    from ray.data.expressions import BinaryExpr, ColumnExpr, LiteralExpr, UnaryExpr

    match expr:
        case ColumnExpr():
            yield expr.name, "==", True
        case UnaryExpr(operand=ColumnExpr() as column) if expr.op.name in RAY_UNARY:
            yield column.name, *RAY_UNARY[expr.op.name]
        case BinaryExpr() if expr.op.name == "AND":
            yield from of_ray(expr.left)
            yield from of_ray(expr.right)
        case BinaryExpr(left=ColumnExpr() as column, right=LiteralExpr() as literal):
            yield column.name, RAY.get(expr.op.name, ""), literal.value
        case BinaryExpr(left=LiteralExpr() as literal, right=ColumnExpr() as column):
            yield column.name, RAY_TURNED.get(expr.op.name, ""), literal.value


def columns_of_ray(expr: Any) -> Iterator[str]:
    """The columns in a condition."""
    from ray.data.expressions import ColumnExpr, Expr

    if isinstance(expr, ColumnExpr):
        yield expr.name
    for value in vars(expr).values():
        for part in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(part, Expr):
                yield from columns_of_ray(part)


def of_polars(predicate: pl.Expr) -> Iterator[tuple[str, str, Any]]:
    """The comparisons that all rows of a condition meet: column, operator and value."""
    import polars as pl

    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
        inputs = predicate.meta.pop()[::-1]
    except pl.exceptions.PolarsError:
        return
    match tree:
        case {"BinaryExpr": {"op": "And" | "LogicalAnd"}}:
            for each in inputs:
                yield from of_polars(each)
        case {"BinaryExpr": {"left": {"Column": name}, "op": op, "right": right}} if op in POLARS:
            yield name, POLARS[op], _value(right)
        case {"Column": name}:
            yield name, "==", True
        case {"Function": {"input": [{"Column": name}, *values], "function": function}}:
            match function:
                case {"Boolean": "Not"}:
                    yield name, "==", False
                case {"Boolean": "IsNull"}:
                    yield name, "is null", None
                case {"Boolean": "IsNotNull"}:
                    yield name, "is not null", None
                case {"Boolean": {"IsIn": _}} if "List" in values[0].get("Literal", {}).get(
                    "Scalar", {}
                ):
                    yield name, "in", pl.select(inputs[1]).item().to_list()
                case {"Boolean": {"IsBetween": {"closed": closed}}}:
                    for operator, value in zip(
                        POLARS_BETWEEN.get(closed, ()), values, strict=False
                    ):
                        yield name, operator, _value(value)
                case {"StringExpr": "StartsWith"}:
                    yield name, "starts with", _value(values[0])


def _value(literal: Any) -> Any:
    match literal:
        case {"Literal": {"Scalar": {"Datetime": [value, "Nanoseconds", _]}}}:
            return value
        case {"Literal": {"Scalar": {"String": value} | {"Boolean": value}}}:
            return value
        case {"Literal": {"Scalar": dict(scalar)}}:
            kind, value = next(iter(scalar.items()))
            return value if kind.startswith(("Int", "UInt")) else None
    return None
