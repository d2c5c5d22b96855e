"""What the files of one table agree about: the type of each column over all of them, and how a file comes to have it.

Files may differ in what a table of all rows would hold anyway, as `table.sources` has it: whole numbers and fractions,
text and categories, other units of time, a column that is empty in some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.scale.column_writing import label_type
from spinney.scale.layout import FEATURE
from spinney.table.sources import Part, family_of, is_text_type, merge_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

Casts = tuple[tuple[str, Any], ...]
"""Columns of a file, and the Arrow type that each is to have, where it has another."""

UNITS = ("s", "ms", "us", "ns")


def find_casts(names: Sequence[str], schemas: Sequence[pa.Schema]) -> list[Casts]:
    """How each file is to be read so that all have the same types; names: of the files, for messages."""
    types = merge_types([Part(name, schema, read_nothing) for name, schema in zip(names, schemas, strict=True)])
    common = {name: join_types(name, of) for name, of in types.items() if of}
    return [
        tuple((field.name, common[field.name]) for field in schema if common.get(field.name, field.type) != field.type)
        for schema in schemas
    ]


def read_nothing(_: list[str]) -> Iterator[pa.Table]:
    """The rows of a part of which only types are asked for."""
    raise AssertionError("only types are asked for")


def join_types(name: str, types: tuple[Any, ...]) -> Any:
    """The Arrow type of a column that has these in some files, all of one family."""
    import pyarrow as pa

    if len(types) == 1:
        return types[0]
    if all(map(pa.types.is_dictionary, types)):
        values = types[0].value_type
        is_ordered = all(kind.ordered for kind in types)
        return pa.dictionary(pa.int32(), pa.large_string() if is_text_type(values) else values, is_ordered)
    family = family_of(types[0])
    if family == "text":
        return pa.large_string()
    if family in {"dates", "times in a time zone"}:
        unit = max((find_unit(kind) for kind in types), key=UNITS.index)
        return pa.timestamp(unit, getattr(types[0], "tz", None))
    return pa.from_numpy_dtype(np.dtype(label_type(name, FEATURE, types)))


def find_unit(kind: Any) -> str:
    """The unit of a type of dates or times."""
    import pyarrow as pa

    return str(kind.unit) if pa.types.is_timestamp(kind) else "s" if pa.types.is_date32(kind) else "ms"


def cast_columns(path: str, table: pa.Table, casts: Casts) -> pa.Table:
    """A table of a file with the types that all files have."""
    import pyarrow as pa

    for name, kind in casts:
        if name not in table.column_names:
            continue
        k = table.column_names.index(name)
        try:
            column = cast_column(table.column(k), kind)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{path}: column {name!r} ({table.column(k).type}) cannot be {kind}, as it is in other files: "
                f"{error}. Make it one kind in all files."
            ) from error
        table = table.set_column(k, pa.field(name, kind), column)
    return table


def cast_column(column: pa.ChunkedArray, kind: Any) -> pa.ChunkedArray:
    """A column of another type; of categories, each with its dictionary."""
    import pyarrow as pa

    types = pa.types
    if types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), kind)])
    if not types.is_dictionary(column.type):
        return column.cast(kind)
    if not types.is_dictionary(kind):
        return column.cast(column.type.value_type).cast(kind)
    chunks = [
        pa.DictionaryArray.from_arrays(
            chunk.indices.cast(kind.index_type), chunk.dictionary.cast(kind.value_type), ordered=kind.ordered
        )
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, kind)
