"""Models as text and arrays: what model files and pickles hold.

Every value becomes JSON. Numbers, text, booleans and None are themselves, a list is a list; everything else is an
object whose "is" says what:

    {"is": "tuple", "items": [...]}            {"is": "dict", "items": [[key, value], ...]}
    {"is": "set", "items": [...]}
    {"is": "float", "value": "nan"}            what JSON has no number for
    {"is": "number", "type": "int64", "value": 3}       a NumPy number
    {"is": "array", "name": "forest.hot"}      an array of its own, by name
    {"is": "array", "in": "rest.float64", "shape": [7]}     the next 7 of those that stand end to end
    {"is": "labels", "type": "<U3", "items": [...]}     an array of text or of objects
    {"is": "same", "as": 4}                    the object or array that was finished as number 4
    {"is": "Forest", ...}                      a class of the list below, with its fields, by name

The list of classes is closed, and each is made by a function that checks what it is given, so that reading runs no code
but ours and gives nothing that could harm a kernel.
"""

from __future__ import annotations

import math
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._node_layout import kind_of_link
from spinney.model.container import NAMES, BrokenFileError, dump, name_type
from spinney.model.predictors import RoundPredictor, TreePredictor, VotePredictor, WeightedPredictor
from spinney.table.dates import DATE_PARTS, DateColumn
from spinney.table.schema import Schema
from spinney.tree.forest import Forest
from spinney.tree.linear import LinearLeaves
from spinney.tree.structure import Legend, Tree
from spinney.tree.subset_words import any_packed
from spinney.tree.surrogates import Surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_DEPTH = 40  # of nested values
REST = "rest."
WIDER = 16  # than the longest text an array of texts may be: it may have held another
LABEL_BYTES = 1 << 18  # of an array of texts, whatever is in it
NODE_BYTES = 16  # of a node at least
FREE_NODE_BYTES = 1 << 20
COLUMN_BYTES, FREE_COLUMN_BYTES = 4, 1 << 25  # of a column in a tree: 8 million are checked in half a second
WORD_BITS, MOST_WIDE = (
    64,
    1000,
)  # whole numbers of more bits may all have one hash, and then a set takes its size squared
MOST_DAYS = 106_751_992  # of the first day of dates, from 1970 on: 64 bits of microseconds reach that far
MAPPED = {f"forest.{name}" for name in ("hot", "n_rows", "weight", "impurity", "subsets", "distributions", "answers")}


PACKED_PART = "has_packed"  # of trees and forests that have packed subsets
ADDED = ("linear", "answers", "widths")  # fields of forests that files of older versions do not have


class Unstorable(TypeError):  # noqa: N818  (it is told, not raised, to users)
    """A value has no place in a model file."""


class Kind(NamedTuple):
    """How objects of one class are taken apart and made again."""

    cls: type
    take: Callable[[Any], dict[str, Any]]
    make: Callable[[dict[str, Any]], Any]


# --- Writing ------------------------------------------------------------------------------------------------------


class Writer:
    """Turns values into JSON and arrays.

    Parameters
    ----------
    kinds : dict
        The classes that may occur, by name.
    foreign : list, optional
        What is of no kind is put here and referred to: pickles can hold it, files cannot.
    """

    def __init__(self, kinds: dict[str, Kind], foreign: list[Any] | None = None) -> None:
        self.kinds = kinds
        self.names = {kind.cls: name for name, kind in kinds.items()}
        self.foreign = foreign
        self.arrays: dict[str, NDArray[Any]] = {}
        self.rest: dict[str, list[NDArray[Any]]] = {}
        self.done: dict[int, tuple[int, Any]] = {}  # by identity: number, and the object, so that it stays alive

    def write(self, value: Any, path: str, *, is_named: bool = False) -> Any:
        """The value as JSON.

        path: what messages and arrays call it; is_named: its arrays are by themselves, under their paths.
        """
        if value is None or type(value) in (bool, str, int):
            return value
        if type(value) is np.str_:
            return str(value)
        if type(value) is list:
            return self.write_items(value, path)
        if type(value) in (float, tuple, dict, set) or isinstance(value, np.generic):
            return self.write_plain(value, path)
        if id(value) in self.done:
            return {"is": "same", "as": self.done[id(value)][0]}
        if type(value) in (np.ndarray, np.memmap):
            written = self.write_array(value, path, is_named=is_named)
        elif type(value) in self.names:
            written = {"is": self.names[type(value)]}
            is_named = is_named or (self.foreign is not None and type(value) is Forest)  # joblib maps large arrays
            for part, content in sorted(self.kinds[written["is"]].take(value).items()):
                written[part] = self.write(content, f"{path}.{part}" if path else part, is_named=is_named)
        else:
            written = self.write_foreign(value, path)
        self.done[id(value)] = len(self.done), value
        return written

    def write_items(self, items: Any, path: str) -> list[Any]:
        """The items of a list or tuple."""
        return [self.write(item, f"{path}.{i}") for i, item in enumerate(items)]

    def write_plain(self, value: Any, path: str) -> Any:
        """Tuples, dicts, sets and numbers."""
        if isinstance(value, tuple):
            return {"is": "tuple", "items": self.write_items(value, path)}
        if isinstance(value, dict):
            pairs = [[self.write(k, path), self.write(v, f"{path}.{k}")] for k, v in value.items()]
            return {"is": "dict", "items": pairs}
        if isinstance(value, set):
            return {"is": "set", "items": sorted(self.write_items(value, path), key=dump)}
        if type(value) is float:
            return value if math.isfinite(value) else {"is": "float", "value": repr(value)}
        if name_type(value.dtype) is not None:
            return {"is": "number", "type": value.dtype.name, "value": self.write(value.item(), path)}
        return self.write_foreign(value, path)

    def write_foreign(self, value: Any, path: str) -> dict[str, Any]:
        """What is of no kind."""
        if self.foreign is None:
            raise Unstorable(f"{path} is {value!r:.80}, of {type(value).__module__}.{type(value).__qualname__}")
        self.foreign.append(value)
        return {"is": "foreign", "number": len(self.foreign) - 1}

    def write_array(self, array: NDArray[Any], path: str, *, is_named: bool) -> dict[str, Any]:
        """An array by itself, among the rest, or as the text or objects it holds."""
        if array.dtype.kind in "UO":
            texts = array.ravel().tolist()
            items: Any = [self.write(item, path) for item in texts]
            if array.dtype.kind == "U" and not is_paid(texts, array.nbytes):
                items = self.write(array.astype(array.dtype.newbyteorder("=")).view(np.uint32), path)
            return {"is": "labels", "type": array.dtype.str, "shape": list(array.shape), "items": items}
        dtype = array.dtype.newbyteorder("=")
        if name_type(dtype) is None:
            return self.write_foreign(array, path)
        array = np.ascontiguousarray(array, dtype)
        if is_named:
            self.arrays[path] = array
            return {"is": "array", "name": path}
        name = REST + dtype.name
        self.rest.setdefault(name, []).append(array.reshape(-1))
        return {"is": "array", "in": name, "shape": list(array.shape)}

    def all_arrays(self) -> dict[str, NDArray[Any]]:
        """Every array, by name."""
        return {**self.arrays, **{name: np.concatenate(parts) for name, parts in self.rest.items()}}


# --- Reading ------------------------------------------------------------------------------------------------------


class Reader:
    """Makes values of JSON and arrays, which may be a stranger's.

    Parameters
    ----------
    kinds : dict
        The classes that may occur, by name.
    arrays : dict
        Read-only arrays by name.
    foreign : list, optional
        What a pickle holds beside.
    """

    def __init__(
        self, kinds: dict[str, Kind], arrays: dict[str, NDArray[Any]], foreign: list[Any] | None = None
    ) -> None:
        self.kinds = kinds
        self.arrays = arrays
        self.foreign = foreign
        self.used: dict[str, int] = {}  # items taken from each array
        self.done: list[Any] = []
        self.n_nodes = 0  # of all trees that were read
        self.n_columns = 0  # of all objects that were read
        self.n_wide = 0

    def read(self, content: Any, depth: int = 0) -> Any:
        """The value that JSON content stands for."""
        if depth > MOST_DEPTH:
            raise BrokenFileError(f"values are nested more than {MOST_DEPTH} deep")
        if content is None or isinstance(content, bool | str | int | float):
            return self.read_plain(content)
        if isinstance(content, list):
            return [self.read(item, depth + 1) for item in content]
        if not isinstance(content, dict) or not isinstance(content.get("is"), str):
            raise BrokenFileError("a value does not say what it is")
        parts = dict(content)
        name = parts.pop("is")
        plain = {
            "tuple": self.read_tuple, "dict": self.read_dict, "set": self.read_set, "float": self.read_float,
            "number": self.read_number, "same": self.read_same,
        }  # fmt: skip
        if name in plain:
            return plain[name](parts, depth)
        if name == "array":
            value = self.read_array(parts)
        elif name == "labels":
            value = self.read_labels(parts, depth)
        elif name == "foreign":
            value = self.read_foreign(parts)
        elif name in self.kinds:
            value = self.read_object(self.kinds[name], parts, depth)
        else:
            raise BrokenFileError(f"there is no {name!r} in a model of this kind")
        self.done.append(value)
        return value

    def read_plain(self, content: Any) -> Any:
        """The content as it is, a number, text, boolean or None.

        Few whole numbers may be wide: those can be chosen to have one hash, and sets and dicts compare each of them
        with each.
        """
        if isinstance(content, int) and content.bit_length() > WORD_BITS:
            self.n_wide += 1
            if self.n_wide > MOST_WIDE:
                raise BrokenFileError(f"more than {MOST_WIDE} whole numbers are beyond {WORD_BITS} bits")
        return content

    def read_object(self, kind: Kind, parts: dict[str, Any], depth: int) -> Any:
        """An object of a class of the list."""
        value = kind.make({part: self.read(item, depth + 1) for part, item in sorted(parts.items())})
        self.charge(value)
        return value

    def charge(self, value: Any) -> None:
        """Raise where more was checked than the arrays have room for: objects may refer to the same ones again."""
        n_bytes = sum(array.nbytes for array in self.arrays.values())
        if isinstance(value, Tree | Forest):
            self.n_nodes += value.n_nodes
            if self.n_nodes * NODE_BYTES > 4 * n_bytes + FREE_NODE_BYTES:
                raise BrokenFileError(f"the trees have {self.n_nodes} nodes, more than the arrays have room for")
        self.n_columns += getattr(value, "n_features", getattr(value, "n_features_in_", 0))
        if self.n_columns * COLUMN_BYTES > n_bytes + FREE_COLUMN_BYTES:
            raise BrokenFileError(f"{self.n_columns} columns are more than the arrays have room for")

    def read_tuple(self, parts: dict[str, Any], depth: int) -> Any:
        """Items."""
        return tuple(self.read_items(parts, depth))

    def read_set(self, parts: dict[str, Any], depth: int) -> Any:
        """Items that differ."""
        return set(check_keys(self.read_items(parts, depth)))

    def read_items(self, parts: dict[str, Any], depth: int) -> list[Any]:
        """The items of a tuple or of labels."""
        items = parts.get("items")
        if not isinstance(items, list):
            raise BrokenFileError("items must be a list")
        return [self.read(item, depth + 1) for item in items]

    def read_dict(self, parts: dict[str, Any], depth: int) -> Any:
        """Pairs of key and value."""
        pairs = self.read_items(parts, depth)
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise BrokenFileError("a dict must be pairs")
        check_keys([key for key, _ in pairs])
        return {key: value for key, value in pairs}  # noqa: C416  (lists of two are no items of a dict)

    def read_float(self, parts: dict[str, Any], _: int) -> Any:
        """One of the three numbers that JSON does not have."""
        if parts.get("value") not in ("nan", "inf", "-inf"):
            raise BrokenFileError("a float must be nan, inf or -inf")
        return float(parts["value"])

    def read_number(self, parts: dict[str, Any], depth: int) -> Any:
        """A number of NumPy."""
        names = {dtype.name: dtype for dtype in NAMES}
        value = self.read(parts.get("value"), depth + 1)
        if parts.get("type") not in names or not isinstance(value, bool | int | float):
            raise BrokenFileError("a NumPy number must have a type and a value")
        return names[parts["type"]].type(value)

    def read_same(self, parts: dict[str, Any], _: int) -> Any:
        """What was read before."""
        number = parts.get("as")
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(self.done):
            raise BrokenFileError("a value refers to none before it")
        return self.done[number]

    def read_array(self, parts: dict[str, Any]) -> NDArray[Any]:
        """An array of its own, or the next of the rest: a copy, but for the nodes of a forest, which stay in the file.

        What refers to it again gets the same array: copies of its own would let a short file fill the memory.
        """
        if set(parts) == {"name"}:
            name = parts["name"]
            if not isinstance(name, str) or name not in self.arrays or name.startswith(REST) or name in self.used:
                raise BrokenFileError(f"there is no array {name!r}, or it is there twice")
            self.used[name] = self.arrays[name].size
            is_mapped = self.foreign is not None or name in MAPPED  # in a pickle, only arrays of forests have names
            return np.asarray(self.arrays[name]) if is_mapped else np.array(self.arrays[name])
        name, shape = parts.get("in"), parts.get("shape")
        if not isinstance(name, str) or not name.startswith(REST) or name not in self.arrays:
            raise BrokenFileError(f"there are no arrays {name!r}")
        if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise BrokenFileError(f"an array in {name!r} has no valid shape")
        rest, begin = self.arrays[name], self.used.get(name, 0)
        end = begin + math.prod(shape)
        if rest.ndim != 1 or end > len(rest):
            raise BrokenFileError(f"an array in {name!r} goes beyond its end")
        self.used[name] = end
        return np.array(rest[begin:end]).reshape(shape)  # plain, if joblib has mapped it

    def read_labels(self, parts: dict[str, Any], depth: int) -> NDArray[Any]:
        """An array of text or of objects."""
        kind, shape = parts.get("type"), parts.get("shape")
        if isinstance(parts.get("items"), dict):
            return read_codes(self.read(parts["items"], depth + 1), kind, shape)
        items = self.read_items(parts, depth)
        if shape != [len(items)] or not isinstance(kind, str):
            raise BrokenFileError("labels must be in one row and say their type")
        if not all(item is None or isinstance(item, bool | str | int | float) for item in items):
            raise BrokenFileError("labels must be text, numbers or booleans")
        if kind == "|O":
            labels = np.empty(len(items), object)
            labels[:] = items
            return labels
        longest = max((len(item) for item in items if isinstance(item, str)), default=0)
        if kind[:2] not in ("<U", ">U") or not kind[2:].isdecimal() or not all(isinstance(item, str) for item in items):
            raise BrokenFileError(f"labels have the unknown type {kind!r}")
        if len(kind) > 9 or not longest <= int(kind[2:]) <= WIDER * (longest + 1):  # all labels are as wide
            raise BrokenFileError(f"labels of type {kind!r} are {longest} long")
        if not is_paid(items, 4 * len(items) * int(kind[2:])):
            raise BrokenFileError(f"{len(items)} labels of type {kind!r} are too many")
        return np.array(items, kind)

    def read_foreign(self, parts: dict[str, Any]) -> Any:
        """What a pickle holds beside."""
        number = parts.get("number")
        if self.foreign is None or not isinstance(number, int) or not 0 <= number < len(self.foreign):
            raise BrokenFileError("a model file holds no foreign objects")
        return self.foreign[number]

    def check_all_used(self) -> None:
        """Nothing is left over."""
        for name, array in self.arrays.items():
            if self.used.get(name) != array.size:
                raise BrokenFileError(f"array {name!r} is no part of the model, or not all of it is")


def check_keys(keys: list[Any]) -> list[Any]:
    """The keys of a dict or items of a set, if they are plain: tuples, too, can be made to have one hash."""
    if not all(key is None or isinstance(key, bool | str | int | float | np.generic) for key in keys):
        raise BrokenFileError("keys and items of sets must be text or numbers")
    return keys


def is_paid(texts: list[str], n_bytes: int) -> bool:
    """Whether texts may become an array of so many bytes.

    NumPy pads every string to the longest, so one long string sets the size of all.
    """
    return n_bytes <= LABEL_BYTES + 16 * sum(map(len, texts))


def read_codes(codes: Any, kind: Any, shape: Any) -> NDArray[Any]:
    """An array of text from the codes of its letters, end to end."""
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint32 or codes.max(initial=0) > sys.maxunicode:
        raise BrokenFileError("letters must be uint32 up to 0x10FFFF")
    if not isinstance(shape, list) or len(shape) != 1 or not isinstance(shape[0], int) or shape[0] < 1:
        raise BrokenFileError("labels must be in one row")
    width, left = divmod(codes.size, shape[0])
    if left or not width or kind not in (f"<U{width}", f">U{width}"):
        raise BrokenFileError(f"{codes.size} letters are not {shape[0]} labels of type {kind!r:.20}")
    return codes.reshape(-1).view(f"=U{width}").astype(kind)


# --- The classes --------------------------------------------------------------------------------------------------


def take_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that its `__init__` takes."""
    return {f.name: getattr(value, f.name) for f in fields(value) if f.init}


def need(parts: dict[str, Any], cls: type) -> dict[str, Any]:
    """The parts, if they are the fields of a dataclass that its `__init__` takes."""
    names = {f.name for f in fields(cls) if f.init}
    if set(parts) != names:
        raise BrokenFileError(f"a {cls.__name__} has the parts {sorted(names)}, not {sorted(parts)}")
    return parts


def of_dataclass(cls: type, check: Callable[[Any], None]) -> Kind:
    """A dataclass that is checked once it is made."""

    def make(parts: dict[str, Any]) -> Any:
        made = cls(**need(parts, cls))
        check(made)
        return made

    return Kind(cls, take_fields, make)


def take_schema(schema: Schema) -> dict[str, Any]:
    """Lists: shorter than tuples."""
    levels = [None if column is None else list(column) for column in schema.levels]
    parts = {"names": None if schema.names is None else list(schema.names), "levels": levels}
    return parts if schema.dates is None else parts | {"dates": list(schema.dates)}


def make_schema(parts: dict[str, Any]) -> Schema:
    """Names are different texts; the levels of a column are different, and of one kind."""
    names, levels = need({"dates": None, **parts}, Schema)["names"], parts["levels"]
    if not isinstance(levels, list) or not levels:
        raise BrokenFileError("a schema needs columns")
    if names is not None:
        check_names(names, len(levels))
    for column in levels:
        if column is not None:
            check_levels(column)
    schema = Schema(
        None if names is None else tuple(names),
        tuple(None if column is None else tuple(column) for column in levels),
        None if parts.get("dates") is None else check_dates(parts["dates"]),
    )
    if schema.dates is not None:
        check_date_features(schema)
    return schema


def check_dates(dates: Any) -> tuple[DateColumn | None, ...]:
    """One place a column, and dates in some."""
    if not isinstance(dates, list) or not all(isinstance(one, DateColumn | None) for one in dates) or not any(dates):
        raise BrokenFileError("dates of a schema must be columns of dates, or absent")
    return tuple(dates)


def check_date_features(schema: Schema) -> None:
    """The features of dates are numbers, called as their parts are, and those of all columns are all features."""
    names, k = [], 0
    for dates in schema.dates or ():
        if dates is None:
            names.append(schema.names[k] if schema.names is not None and k < schema.n_features else "")
            k += 1
            continue
        if any(schema.levels[k : k + len(dates.parts)]):
            raise BrokenFileError("parts of dates are numbers")
        names += dates.features
        k += len(dates.parts)
    if tuple(names) != schema.names:
        raise BrokenFileError("the dates of a schema are not those of its features")
    columns = schema.column_names or ()
    if len(set(columns)) < len(columns):
        raise BrokenFileError("columns need different names")


def make_date_column(parts: dict[str, Any]) -> DateColumn:
    """A name, parts that there are, in their order, and a first day."""
    name, made, first, has_zone = (need(parts, DateColumn)[one] for one in ("name", "parts", "first", "has_zone"))
    is_fine = isinstance(name, str) and isinstance(made, list) and type(first) is int and type(has_zone) is bool
    if not is_fine or abs(first) > MOST_DAYS or not made or made != [part for part in DATE_PARTS if part in made]:
        raise BrokenFileError("a column of dates has a name, parts and a first day")
    return DateColumn(name, tuple(made), first, has_zone)


def take_date_column(dates: DateColumn) -> dict[str, Any]:
    """Lists: shorter than tuples."""
    return {"name": dates.name, "parts": list(dates.parts), "first": dates.first, "has_zone": dates.has_zone}


def check_names(names: Any, n_features: int) -> None:
    """One name a column, all different."""
    is_text = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_text or len(set(names)) != len(names) or len(names) != n_features:
        raise BrokenFileError(f"{n_features} columns need as many different names")


def check_levels(levels: Any) -> None:
    """Different levels of one kind: True is 1 to Python."""
    kinds = (str, bool, (int, float))
    if not isinstance(levels, list) or len(levels) > 1 << 16:
        raise BrokenFileError("levels must be a list of at most 65,536")
    is_one_kind = any(
        all(isinstance(level, kind) and (kind is bool or not isinstance(level, bool)) for level in levels)
        for kind in kinds
    )
    if not is_one_kind or len(set(levels)) != len(levels) or any(level != level for level in levels):  # noqa: PLR0124
        raise BrokenFileError("levels must be different texts, numbers or booleans")


def take_legend(legend: Legend) -> dict[str, Any]:
    """Lists: shorter than tuples."""
    return {
        "features": list(legend.features),
        "levels": [None if column is None else list(column) for column in legend.levels],
        "classes": None if legend.classes is None else [as_list(label) for label in legend.classes],
        "has_missing": list(legend.has_missing),
        "criterion": legend.criterion,
    }


def make_legend(parts: dict[str, Any]) -> Legend:
    """One name, list of levels and answer a column."""
    need(parts, Legend)
    names, levels, missing = parts["features"], parts["levels"], parts["has_missing"]
    is_fine = all(isinstance(part, list) and len(part) == len(names) for part in (names, levels, missing))
    is_fine = is_fine and all(isinstance(name, str) for name in names) and all(type(m) is bool for m in missing)
    is_fine = is_fine and isinstance(parts["classes"], list | None) and isinstance(parts["criterion"], str | None)
    if not is_fine:
        raise BrokenFileError("a legend needs names, levels and criterion")
    for column in levels:
        if column is not None:
            check_levels(column)
    classes = parts["classes"]
    return Legend(
        tuple(names), tuple(None if column is None else tuple(column) for column in levels),
        None if classes is None else tuple(tuple(label) if isinstance(label, list) else label for label in classes),
        tuple(missing), parts["criterion"],
    )  # fmt: skip


def as_list(label: Any) -> Any:
    """A class, or a list of those of one of several outputs."""
    return list(label) if isinstance(label, tuple) else label


def take_tree_fields(tree: Tree) -> dict[str, Any]:
    """The fields, without answers and widths where there are none: files of older versions have none."""
    added = {"answers", "widths"}
    parts = {name: part for name, part in take_fields(tree).items() if part is not None or name not in added}
    return parts | mark_packed(any_packed(tree.kind, tree.threshold, tree.n_levels))


def make_tree(parts: dict[str, Any]) -> Tree:
    """A sound tree."""
    is_packed, parts = split_mark(parts)
    tree = Tree(**need({"answers": None, "widths": None, **parts}, Tree))
    check_side(tree, Surrogates, "surrogates")
    check_side(tree, LinearLeaves, "linear")
    tree.check()
    check_mark(any_packed(tree.kind, tree.threshold, tree.n_levels), is_packed)
    return tree


def make_side(cls: type) -> Kind:
    """Side arrays of a tree, which checks them."""

    def make(parts: dict[str, Any]) -> Any:
        return cls(**need(parts, cls))

    return Kind(cls, take_fields, make)


def check_side(holder: Tree | Forest, cls: type, name: str) -> None:
    """Side arrays are of their class, or absent."""
    if not isinstance(getattr(holder, name), cls | None):
        raise BrokenFileError(f"{name} of trees must be {cls.__name__} or absent")


def take_forest(forest: Forest) -> dict[str, Any]:
    """The fields, without linear leaves and answers where there are none: files of older versions have none."""
    parts = {name: part for name, part in take_fields(forest).items() if part is not None or name not in ADDED}
    return parts | mark_packed(has_packed(forest))


def make_forest(parts: dict[str, Any]) -> Forest:
    """A sound forest."""
    is_packed, parts = split_mark(parts)
    forest = Forest(**need({**dict.fromkeys(ADDED), **parts}, Forest))
    check_side(forest, LinearLeaves, "linear")
    forest.check()
    check_mark(has_packed(forest), is_packed)
    return forest


def has_packed(forest: Forest) -> bool:
    """Whether a forest has packed subsets."""
    return any_packed(kind_of_link(forest.hot[:, 1]), forest.hot.view(np.float64)[:, 0], forest.n_levels)


# --- Trees with packed subsets say so: the version of a file is seen by what its text has ---------------------------


def mark_packed(is_packed: bool) -> dict[str, Any]:
    """The part that trees have if their subsets are packed."""
    return {PACKED_PART: True} if is_packed else {}


def split_mark(parts: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether parts say that subsets are packed, and the other parts."""
    return parts.get(PACKED_PART) is True, {name: part for name, part in parts.items() if name != PACKED_PART}


def check_mark(has_packed: bool, is_packed: bool) -> None:
    """Trees are what they say."""
    if has_packed != is_packed:
        raise BrokenFileError(f"trees have {PACKED_PART} where their subsets are packed, and nowhere else")


def of_predictor(cls: type, types: dict[str, Any]) -> Kind:
    """A predictor whose parts have these types, and fit each other."""

    def check(predictor: Any) -> None:
        for name, kind in {"schema": Schema, "classes": np.ndarray | None, **types}.items():
            value = getattr(predictor, name)
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise BrokenFileError(f"{name} of a {cls.__name__} cannot be {value!r:.60}")
        if predictor.classes is not None and (predictor.classes.ndim != 1 or not len(predictor.classes)):
            raise BrokenFileError("classes must be a row of labels")
        predictor.check()

    return of_dataclass(cls, check)


KINDS: dict[str, Kind] = {
    "Schema": Kind(Schema, take_schema, make_schema),
    "DateColumn": Kind(DateColumn, take_date_column, make_date_column),
    "Legend": Kind(Legend, take_legend, make_legend),
    "Surrogates": make_side(Surrogates),
    "LinearLeaves": make_side(LinearLeaves),
    "Tree": Kind(Tree, take_tree_fields, make_tree),
    "Forest": Kind(Forest, take_forest, make_forest),
    "TreePredictor": of_predictor(TreePredictor, {"tree": Tree, "smoothing": float | int | str | None}),
    "VotePredictor": of_predictor(VotePredictor, {"forest": Forest, "is_hard": bool, "shift": int}),
    "RoundPredictor": of_predictor(
        RoundPredictor, {"forest": Forest, "start": np.ndarray, "link": str, "n_rounds": int, "exponent": int}
    ),
    "WeightedPredictor": of_predictor(WeightedPredictor, {"forest": Forest, "weights": np.ndarray}),
}
"""What a predictor is made of."""
