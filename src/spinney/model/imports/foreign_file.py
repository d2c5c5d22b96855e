"""Model files of other libraries: read as bytes, and believed in nothing.

Whatever goes wrong while a file is understood is the file's fault and is said in one line that names it; what a file
asks for that is not read here (another booster, another objective) is refused by its name.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.model.container import BrokenFileError, check_kind, refuse_constant, without_repeats
from spinney.model.state import check_levels, check_names
from spinney.table.schema import Schema
from spinney.tree.structure import Legend

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

MOST_BYTES = 1 << 32
MOST_COLUMNS = 1 << 20  # a file names them in a few letters
MOST_CLASSES = 1 << 16


class NotImportedError(ValueError):
    """A model uses what is not read."""


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file."""
    check_kind(os.stat(path), path)  # noqa: PTH116  (before it is opened: a device may act on that)
    with Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise BrokenFileError(f"{path} is larger than {MOST_BYTES >> 30} GB")
        return file.read()


@contextmanager
def understanding(name: Any, library: str) -> Iterator[None]:
    """Errors within are those of the model of this name."""
    try:
        with np.errstate(all="ignore"):
            yield
    except MemoryError:
        raise
    except NotImportedError as error:
        raise NotImportedError(f"{name}: {error}") from None
    except BrokenFileError as error:
        raise BrokenFileError(f"{name} is no sound model of {library}: {error}") from None
    except Exception as error:
        kind = type(error).__name__
        raise BrokenFileError(f"{name} is no sound model of {library}: {str(error)[:200]} ({kind})") from error


def parse_json(data: bytes) -> Any:
    """The content of JSON without repeated names and without numbers that are none."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=without_repeats, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BrokenFileError(f"the JSON is not valid: {error}") from None


def need(content: Any, *path: str) -> Any:
    """A part of JSON by the names that lead to it."""
    for name in path:
        if not isinstance(content, dict) or name not in content:
            raise BrokenFileError(f"it has no {'.'.join(path)}")
        content = content[name]
    return content


def whole(value: Any, name: str, least: int = 0, most: int = 1 << 31) -> int:
    """A whole number, also where it stands as text."""
    try:
        number = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else least - 1
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise BrokenFileError(f"{name} is {value!r:.40}: it must be a whole number from {least} to {most}")
    return number


def numbers(values: Any, name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """A row of numbers: a list of JSON, or an array of UBJSON."""
    if isinstance(values, list):
        if not all(type(value) in (int, float, bool) for value in values):
            raise BrokenFileError(f"{name} must be numbers")
    elif not isinstance(values, np.ndarray) or values.ndim != 1:
        raise BrokenFileError(f"{name} must be a row of numbers")
    array = np.asarray(values, np.float64)
    if np.issubdtype(dtype, np.integer):
        if not bool(np.all((np.abs(array) < 2.0**53) & (array == np.floor(array)))):
            raise BrokenFileError(f"{name} must be whole numbers")
        return array.astype(dtype)
    return array.astype(dtype)


def make_schema(names: Sequence[str] | None, levels: Sequence[Sequence[Any] | None]) -> Schema:
    """Columns with these names and levels, which are checked."""
    if not 1 <= len(levels) <= MOST_COLUMNS:
        raise BrokenFileError(f"a model of {len(levels)} columns: 1 to {MOST_COLUMNS} are read")
    if names is not None:
        check_names(list(names), len(levels))
    for column in levels:
        if column is not None:
            check_levels(list(column))
    return Schema(
        None if names is None else tuple(names), tuple(None if column is None else tuple(column) for column in levels)
    )


def count_levels(schema: Schema) -> NDArray[np.int32]:
    """How many levels each column has, 0 for numbers."""
    return np.array([0 if levels is None else len(levels) for levels in schema.levels], np.int32)


def name_columns(schema: Schema, classes: tuple[Any, ...] | None = None, criterion: str | None = None) -> Legend:
    """Names for the trees; whether the training rows had missing values, no library tells."""
    names = schema.names or tuple(f"x{j}" for j in range(schema.n_features))
    return Legend(names, schema.levels, classes, (True,) * schema.n_features, criterion)
