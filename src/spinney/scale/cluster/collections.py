"""Dask collections: what is one, its partitions in the order of the rows, and the table that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_LOCAL_BYTES = 8 << 20  # of an array that goes along with a collection: it is part of every task


class SupportsTables(Protocol):
    """Tables by their numbers."""

    def __getitem__(self, number: int, /) -> Any:
        """The table of a place."""


class Place(NamedTuple):
    """Where a table goes among the arguments of a fit: its number."""

    number: int


class Partitions(NamedTuple):
    """A collection taken apart."""

    parts: list[Any]  # Delayed, in the order of the rows
    finish: Callable[..., Any]  # makes the table that `compute` gives of a list of them
    extra: tuple[Any, ...]
    is_matrix: bool  # an Array of two axes, whose chunks are given as a list of rows of chunks


def is_collection(value: Any) -> bool:
    """Whether a value is a Dask DataFrame, Series or Array: told without loading Dask."""
    return hasattr(type(value), "__dask_graph__") and hasattr(value, "to_delayed")


def is_list_of_sets(value: Any) -> bool:
    """Whether a value is a short list, such as `eval_set`, that may have collections inside."""
    return (
        isinstance(value, list | tuple)
        and len(value) < 100
        and any(
            is_collection(item) or (isinstance(item, list | tuple) and any(map(is_collection, item[:4])))
            for item in value
        )
    )


def has_collection(values: Iterable[Any]) -> bool:
    """Whether there is a collection among arguments, or in a list of tables."""
    return any(is_collection(value) or is_list_of_sets(value) for value in values)


def take_apart(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments with places instead of collections, and these by what messages call them."""
    found: dict[str, Any] = {}

    def replace(value: Any, name: str) -> Any:
        if is_collection(value):
            found[name] = value
            return Place(len(found) - 1)
        if is_list_of_sets(value):
            return [replace(item, f"{name}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, list | tuple) and "[" in name:  # a set of rows, (X, y)
            return tuple(replace(item, f"{name}[{i}]") for i, item in enumerate(value))
        n_bytes = getattr(value, "nbytes", 0)
        if isinstance(n_bytes, int) and n_bytes > MOST_LOCAL_BYTES:
            raise ValueError(
                f"{name} is an array of {n_bytes:,} bytes in memory beside Dask collections, and would go along with "
                f"every task: give {name} as a collection too, dask.array.from_array({name}, chunks=100_000)"
            )
        return value

    return {name: replace(value, name) for name, value in arguments.items()}, found


def put_together(arguments: Any, tables: SupportsTables) -> Any:
    """Arguments with tables in their places."""
    if isinstance(arguments, Place):
        return tables[arguments.number]
    if isinstance(arguments, dict):
        return {name: put_together(value, tables) for name, value in arguments.items()}
    if type(arguments) in {list, tuple} and any(isinstance(item, Place | tuple | list) for item in arguments[:4]):
        return type(arguments)(put_together(item, tables) for item in arguments)
    return arguments


def cut(collection: Any, name: str) -> Partitions:
    """The partitions of a collection; name: of the argument, for messages."""
    check_rows(collection, name)
    parts = collection.to_delayed()
    if hasattr(parts, "ravel"):
        parts = parts.ravel()
    finish, extra = collection.__dask_postcompute__()
    return Partitions(
        list(parts), finish, tuple(extra), is_matrix=getattr(collection, "numblocks", ()) != () and collection.ndim == 2
    )


def check_rows(collection: Any, name: str) -> None:
    """Refuse collections that are no rows side by side."""
    n_blocks = getattr(collection, "numblocks", None)
    if n_blocks is None:
        if not hasattr(collection, "_meta"):
            refuse_kind(collection, name)
        return
    if len(n_blocks) not in {1, 2}:
        raise ValueError(f"{name} is an Array of {len(n_blocks)} axes: give rows and columns")
    if len(n_blocks) == 2 and n_blocks[1] > 1:
        raise ValueError(
            f"{name} is an Array in {n_blocks[1]} chunks of columns, and rows are to be whole: "
            f"give {name}.rechunk({{1: -1}})"
        )


def refuse_kind(collection: Any, name: str) -> NoReturn:
    """Say what can be given instead of a collection that is no table."""
    raise TypeError(f"{name} is a Dask {type(collection).__name__}: give a DataFrame, a Series or an Array")


def join_parts(partitions: Partitions, parts: list[Any]) -> Any:
    """The table that `compute` would give; parts: the values of `partitions.parts`."""
    nested = [[part] for part in parts] if partitions.is_matrix else parts
    return partitions.finish(nested, *partitions.extra)


def compute_here(collections: Iterable[Any]) -> list[Any]:
    """The tables of collections, by Dask's default scheduler, in this process."""
    import dask

    return list(dask.compute(*collections))


class PartSize(NamedTuple):
    """What a partition holds."""

    n_rows: int
    n_columns: int
    n_bytes: int


def measure_part(part: Any) -> PartSize:
    """Measure a partition: on the worker that has it."""
    from dask.sizeof import sizeof

    shape = part.shape
    return PartSize(int(shape[0]), int(shape[1]) if len(shape) > 1 else 1, int(sizeof(part)))
