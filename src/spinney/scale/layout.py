"""What a store says of itself: `schema.json`, the rows and columns of a table, checked before anything is believed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._files import replacing
from spinney.model.container import BrokenFileError, dump, load_json
from spinney.scale.block_files import hashes_of

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA, VALUES = "schema.json", "values.bin"
FORMAT = "spinney store"
VERSION = 1
LEAST_BLOCK, MOST_BLOCK = 1 << 12, 1 << 20  # rows
BLOCK_ROWS = 1 << 16
MOST_ROWS = 2**31 - 1
MOST_SCHEMA_BYTES = 256 << 20
FEATURE, TARGET, WEIGHT, GROUPS = ROLES = ("feature", "target", "weight", "groups")
NUMBERS, CATEGORIES, DATES = KINDS = ("numbers", "categories", "dates")
NUMBER_TYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
CODE_TYPE, DATE_TYPE = "<i4", "<i8"
BOOLEAN_TYPE = "|i1"  # of features; other short integers are floats there


@dataclass(frozen=True)
class StoredColumn:
    """A column of a store; plain data.

    Attributes
    ----------
    name : str
    role : {"feature", "target", "weight", "groups"}
    kind : {"numbers", "categories", "dates"}
    dtype : str
        Of what stands in the file. Missing is NaN, -1 for a category and a boolean feature, the lowest int64 (that of
        dates too), the highest uint64; a target and groups have no missing values.
    values : tuple
        Of a category, in the order of their codes.
    unused : tuple of int
        Codes of values that no row has.
    is_ordered : bool
        Whether the order of the values means something.
    has_zone : bool
        Whether dates are in UTC.
    """

    name: str
    role: str
    kind: str
    dtype: str
    values: tuple[Any, ...] = ()
    unused: tuple[int, ...] = ()
    is_ordered: bool = False
    has_zone: bool = False


@dataclass(frozen=True)
class Layout:
    """The rows and columns of a store; plain data."""

    n_rows: int
    block_rows: int
    columns: tuple[StoredColumn, ...]
    digest: str = ""  # hash of the hashes of the blocks
    versions: dict[str, str] = field(default_factory=dict)  # of what has written it

    @property
    def n_blocks(self) -> int:
        """Blocks of rows."""
        return -(-self.n_rows // self.block_rows)

    def rows_of(self, k: int) -> int:
        """Rows of block k: the last one may have fewer."""
        return min(self.block_rows, self.n_rows - k * self.block_rows)

    def find(self, role: str) -> list[int]:
        """Columns of a role."""
        return [j for j, column in enumerate(self.columns) if column.role == role]

    def lengths(self) -> list[int]:
        """Bytes of the pieces of `values.bin`: each column of the first block of rows, then of the second."""
        sizes = [np.dtype(column.dtype).itemsize for column in self.columns]
        return [self.rows_of(k) * size for k in range(self.n_blocks) for size in sizes]


# --- Files ----------------------------------------------------------------------------------------------------------


def write_layout(folder: Path, layout: Layout) -> None:
    """Write `schema.json`."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "n_rows": layout.n_rows,
        "block_rows": layout.block_rows,
        "digest": layout.digest,
        "versions": layout.versions,
        "columns": [
            {
                "name": column.name,
                "role": column.role,
                "kind": column.kind,
                "dtype": column.dtype,
                "values": list(column.values),
                "unused": list(column.unused),
                "is_ordered": column.is_ordered,
                "has_zone": column.has_zone,
            }
            for column in layout.columns
        ],
    }
    digest = hashlib.sha256(dump(content)).hexdigest()
    with replacing(folder / SCHEMA) as file:
        file.write(dump({"sha256": digest, "store": content}))


def is_store(folder: Path) -> bool:
    """Whether a folder looks like a store."""
    return (folder / SCHEMA).is_file()


def read_layout(folder: Path) -> Layout:
    """Read `schema.json`, every claim of it checked."""
    path = folder / SCHEMA
    try:
        with path.open("rb") as file:
            data = file.read(MOST_SCHEMA_BYTES + 1)
    except FileNotFoundError:
        raise BrokenFileError(f"{folder} has no {SCHEMA}: it is no store, or was never finished.") from None
    try:
        need(len(data) <= MOST_SCHEMA_BYTES, f"it has more than {MOST_SCHEMA_BYTES} bytes")
        # a column takes more in memory than its JSON: its hashes pay for it too
        content = load_json(data.decode("ascii"), len(data) + size_of(hashes_of(folder / VALUES)))
        return check_layout(content)
    except (BrokenFileError, UnicodeDecodeError) as error:
        raise BrokenFileError(f"{path}: {error}") from None


def size_of(path: Path) -> int:
    """Bytes of a file, 0 where there is none."""
    return path.stat().st_size if path.is_file() else 0


def check_layout(content: Any) -> Layout:
    """The layout that JSON holds; refused where it is not one that could have been written."""
    need(isinstance(content, dict) and set(content) == {"sha256", "store"}, "it is not the schema of a store")
    store = content["store"]
    names = {"format", "version", "n_rows", "block_rows", "digest", "versions", "columns"}
    need(isinstance(store, dict) and store.get("format") == FORMAT, "it is not the schema of a store")
    need(store.get("version") == VERSION, f"it is of version {store.get('version')!r:.20}, and {VERSION} is known here")
    need(set(store) == names, "it is not the schema of a store")
    need(content["sha256"] == hashlib.sha256(dump(store)).hexdigest(), "it has been changed since it was written")
    need(is_count(store["n_rows"], 1, MOST_ROWS), "it has no rows, or too many")
    block_rows = store["block_rows"]
    is_power = is_count(block_rows, LEAST_BLOCK, MOST_BLOCK) and block_rows & (block_rows - 1) == 0
    need(is_power, f"its blocks are not of {LEAST_BLOCK} to {MOST_BLOCK} rows")
    need(is_hash(store["digest"]), "it lacks the hash of its blocks")
    versions = store["versions"]
    need(isinstance(versions, dict) and all(isinstance(text, str) for text in versions.values()), "odd versions")
    need(isinstance(store["columns"], list) and bool(store["columns"]), "it has no columns")
    columns = tuple(check_stored_column(column) for column in store["columns"])
    for role in (TARGET, WEIGHT, GROUPS):
        need(sum(column.role == role for column in columns) <= 1, f"it has more than one column of role {role}")
    need(any(column.role == FEATURE for column in columns), "it has no features")
    found = [column.name for column in columns]
    need(len(set(found)) == len(found), "two of its columns have one name")
    return Layout(store["n_rows"], block_rows, columns, store["digest"], versions)


def check_stored_column(content: Any) -> StoredColumn:
    """One column of a layout."""
    names = {"name", "role", "kind", "dtype", "values", "unused", "is_ordered", "has_zone"}
    need(isinstance(content, dict) and set(content) == names, "a column lacks what it should say")
    need(isinstance(content["name"], str), "a column has no name")
    name, kind, values, unused = content["name"], content["kind"], content["values"], content["unused"]
    need(content["role"] in ROLES and kind in KINDS, f"column {name!r} has an unknown role or kind")
    known = {NUMBERS: NUMBER_TYPES, CATEGORIES: (CODE_TYPE,), DATES: (DATE_TYPE,)}[kind]
    need(content["dtype"] in known, f"column {name!r} has an unknown type")
    need(isinstance(content["is_ordered"], bool) and isinstance(content["has_zone"], bool), f"column {name!r} is odd")
    need(isinstance(values, list) and isinstance(unused, list), f"column {name!r} has no list of values")
    need(kind == CATEGORIES or not (values or unused), f"column {name!r} has values, and is no category")
    need(len({type(value) for value in values}) <= 1, f"column {name!r} mixes kinds of values")
    need(all(isinstance(value, str | bool | int | float) for value in values), f"column {name!r} has odd values")
    need(len(set(values)) == len(values), f"column {name!r} has a value twice")
    need(all(is_count(code, 0, len(values) - 1) for code in unused), f"column {name!r} has odd codes")
    return StoredColumn(
        name,
        content["role"],
        kind,
        content["dtype"],
        tuple(values),
        tuple(unused),
        content["is_ordered"],
        content["has_zone"],
    )


def need(is_so: bool, fault: str) -> None:
    """Refuse what is not so."""
    if not is_so:
        raise BrokenFileError(fault)


def is_count(value: Any, least: int, most: int) -> bool:
    """Whether a value is a whole number within bounds."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_hash(value: Any) -> bool:
    """Whether a value is written as a SHA-256."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")
