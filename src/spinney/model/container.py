"""The file that arrays and text live in: a safetensors container, read without trust.

A container is eight bytes (the length of the header, little-endian), the header (JSON: for each array its dtype, shape
and place; under `__metadata__` text by name), and the bytes of the arrays end to end. Ours are stricter than the format
asks: the header is JSON in its shortest form, filled up with spaces to a multiple of 64; arrays whose length is divided
by a higher power of two (up to 64) stand before others, then they go by name, so that each begins at a multiple of its
item size; and `__metadata__` holds, as `sha256`, the SHA-256 of the whole file with zeros in place of its 64 digits. So
equal content gives equal bytes, and a changed bit is noticed before anything is believed. Names and texts are ASCII.

Nothing in a file is executed, and nothing is allocated that the file's own size does not pay for: arrays are views of
the mapped file, so that processes that open one file share its memory. The header is not left to a general reader of
JSON, which would make 64 bytes of each `{}`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import mmap
import os
import re
import stat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._files import replacing

ORDER = "<"  # of the bytes of a number in a file: the least first
DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
METADATA = "__metadata__"
HASH = "sha256"
NO_HASH = "0" * 64
ALIGNMENT = 64
LENGTH_BYTES = 8
MOST_HEADER_BYTES = 16 << 20
MOST_ARRAYS = 256
MOST_TEXTS = 64
MOST_AXES = 3
MOST_EMPTY = 1 << 16  # of an axis of an array without items; others are paid for by the file
HASH_BYTES = 1 << 20
NUMBER = "(?:0|[1-9][0-9]{0,14})"
ENTRY = re.compile(
    rf'\{{"data_offsets":\[({NUMBER}),({NUMBER})\],"dtype":"([A-Z0-9]{{2,4}})",'
    rf'"shape":\[((?:{NUMBER}(?:,{NUMBER}){{0,{MOST_AXES - 1}}})?)\]\}}'
)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f\x7f-\xff]++|\\["\\bfnrt]|\\u00[0-7][0-9a-f])*+"')
VALUE_BYTES, LIST_BYTES, OBJECT_BYTES, PAIR_BYTES, WIDE_BYTES = 64, 64, 160, 72, 32  # in memory; see `weigh_json`
JSON_TIMES, MOST_JSON_BYTES = 16, 26 << 20
FREE_JSON_BYTES = 1 << 16


class BrokenFileError(ValueError):
    """A file is no model file, was damaged, or is of a later version: what `load_model` and `load_predictor` raise.

    Examples
    --------
    >>> import os, tempfile
    >>> import spinney
    >>> path = os.path.join(tempfile.mkdtemp(), "model.spn")
    >>> with open(path, "w") as file:
    ...     _ = file.write("not a model")
    >>> try:
    ...     spinney.load_model(path)
    ... except spinney.BrokenFileError:
    ...     print("refused")
    refused
    """


class Container(NamedTuple):
    """What a file holds: arrays by name, read-only, and text by name."""

    arrays: dict[str, NDArray[Any]]
    text: dict[str, str]


class Place(NamedTuple):
    """Where the bytes of an array are, from the end of the header on, and what they mean."""

    begin: int
    end: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


# --- Writing ------------------------------------------------------------------------------------------------------


def pack(arrays: dict[str, NDArray[Any]], text: dict[str, str]) -> tuple[bytes, list[memoryview]]:
    """The header, with its length before it, and the pieces of the payload; equal content gives equal bytes."""
    if METADATA in arrays or HASH in text or len(arrays) > MOST_ARRAYS or len(text) >= MOST_TEXTS:
        raise ValueError(f"a container holds {MOST_ARRAYS} arrays and {MOST_TEXTS - 1} texts, not {METADATA} or {HASH}")
    if not all(part.isascii() for part in (*arrays, *text, *text.values())):
        raise ValueError("names and texts of a container are ASCII")
    layout: dict[str, Any] = {}
    pieces: list[memoryview] = []
    at = 0
    for name in sorted(arrays, key=lambda name: (-alignment_of(arrays[name].nbytes), name)):
        array = np.ascontiguousarray(arrays[name])
        kind = name_type(array.dtype)
        if kind is None or array.ndim > MOST_AXES:
            raise ValueError(f"array {name!r} of {array.dtype} and {array.ndim} axes has no place in a model file")
        pieces.append(array.astype(DTYPES[kind], copy=False).reshape(-1).view(np.uint8).data)
        layout[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    header = dump({METADATA: {**text, HASH: NO_HASH}, **layout})
    header += b" " * (-(len(header) + LENGTH_BYTES) % ALIGNMENT)
    if len(header) > MOST_HEADER_BYTES:
        raise ValueError(f"the names and settings of the model take {len(header)} bytes, at most {MOST_HEADER_BYTES}")
    head = len(header).to_bytes(LENGTH_BYTES, "little") + header
    digest = hashlib.sha256(head)
    for piece in pieces:
        digest.update(piece)
    at = find_hash(head, len(head))
    return head[:at] + digest.hexdigest().encode() + head[at + len(NO_HASH) :], pieces


def name_type(dtype: np.dtype[Any]) -> str | None:
    """What a header calls a type, whatever the order of its bytes; None for one that has no place in a file."""
    return NAMES.get(dtype.newbyteorder(ORDER))  # type: ignore[arg-type]


def find_hash(data: bytes | mmap.mmap, end: int) -> int:
    """Where the digits of the hash begin in a header that ends at `end`; in a text, quotes stand behind backslashes."""
    key = f'"{HASH}":"'.encode()
    at = data.find(key, 0, end)
    if at < 0:
        raise BrokenFileError(f"the header has no {HASH}")
    return at + len(key)


def alignment_of(n_bytes: int) -> int:
    """The highest power of two up to ALIGNMENT that divides a length."""
    return min(n_bytes & -n_bytes, ALIGNMENT) if n_bytes else ALIGNMENT


def dump(content: Any) -> bytes:
    """JSON in its one shortest form: sorted keys, ASCII, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def write(path: str | os.PathLike[str], arrays: dict[str, NDArray[Any]], text: dict[str, str]) -> None:
    """Write a container; the file of this name is whole before and after, whatever happens in between."""
    header, pieces = pack(arrays, text)
    with replacing(path) as file:
        file.write(header)
        file.writelines(pieces)


# --- Reading ------------------------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str], *, is_mapped: bool = True) -> Container:
    """Read a container, every claim of its header checked against its size and its hash.

    is_mapped: arrays are views of the file, which must not be changed in its place while they are used; else copies.

    Raises
    ------
    BrokenFileError
        Which says what is wrong.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, not {path!r:.80}")  # a number would be an open file's
    check_kind(os.stat(path), path)  # noqa: PTH116  (before it is opened: a device may act on that)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:  # noqa: PTH123
        about = os.fstat(handle)
        check_kind(about, path)  # and it is the one that was asked about
        if about.st_size < LENGTH_BYTES:
            raise BrokenFileError(f"{path} has {about.st_size} bytes: it is not a model file, or was cut off")
        data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if is_mapped else file.read()
    try:
        return unpack(data)
    except BrokenFileError as error:
        raise BrokenFileError(f"{path}: {error}") from None


def check_kind(about: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Raise unless it is a file; opening a pipe would wait for its other end."""
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(about.st_mode):
        raise BrokenFileError(f"{path} is not a file that a model could be in, but a pipe or a device")


def unpack(data: bytes | mmap.mmap) -> Container:
    """The content of a container in memory."""
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    begin = LENGTH_BYTES + length
    if length > MOST_HEADER_BYTES or begin > len(data) or begin % ALIGNMENT:
        raise BrokenFileError(f"the header of {length} bytes does not fit: not a model file, or cut off")
    places, text = parse_header(data, begin)
    check_places(places, len(data) - begin)
    if text.pop(HASH, None) != hash_of(data, begin):
        raise BrokenFileError("the content does not match its SHA-256: the file is damaged or was changed")
    return Container({name: view(data, begin, place, name) for name, place in places.items()}, text)


def hash_of(data: bytes | mmap.mmap, end: int) -> str:
    """SHA-256 of the whole file, with zeros for its digits in the header, which ends at `end`."""
    at = find_hash(data, end)
    digest = hashlib.sha256(data[:at])
    digest.update(NO_HASH.encode())
    with memoryview(data) as whole:
        for begin in range(at + len(NO_HASH), len(data), HASH_BYTES):
            digest.update(whole[begin : begin + HASH_BYTES])
    return digest.hexdigest()


def view(data: bytes | mmap.mmap, begin: int, place: Place, name: str) -> NDArray[Any]:
    """An array in the payload, which begins at a byte of the data; read-only."""
    count = math.prod(place.shape)
    array = np.frombuffer(data, place.dtype, count, begin + place.begin) if count else np.empty(0, place.dtype)
    if place.dtype == np.bool_ and count and array.view(np.uint8).max() > 1:
        raise BrokenFileError(f"array {name!r} holds what is neither true nor false")
    array = array.astype(place.dtype.newbyteorder("="), copy=False)  # a copy where this machine has the other order
    array = array.reshape(place.shape)
    array.flags.writeable = False
    return array


def parse_header(data: bytes | mmap.mmap, end: int) -> tuple[dict[str, Place], dict[str, str]]:
    """The places of the arrays, and the text with the hash, of a header that ends at `end`."""
    with memoryview(data) as whole:
        header = str(whole[:end], "latin-1")  # the eight bytes of the length may be anything
    at = expect(header, LENGTH_BYTES, "{")
    places: dict[str, Place] = {}
    text: dict[str, str] | None = None
    while True:
        name, at = scan_string(header, at)
        at = expect(header, at, ":")
        if name in places or (name == METADATA and text is not None):
            raise BrokenFileError(f"the header has {name!r:.80} twice")
        if name == METADATA:
            text, at = scan_texts(header, at)
        else:
            places[name], at = scan_place(header, at, name)
        if len(places) > MOST_ARRAYS:
            raise BrokenFileError(f"there are more than {MOST_ARRAYS} arrays")
        if header[at : at + 1] != ",":
            break
        at += 1
    at = expect(header, at, "}")
    if text is None or header[at:].strip(" "):
        raise BrokenFileError("the header has no metadata, or does not end where it should")
    return places, text


def expect(header: str, at: int, sign: str) -> int:
    """The place behind a sign that must stand here."""
    if not header.startswith(sign, at):
        raise BrokenFileError(f"byte {at} of the header should be {sign}")
    return at + len(sign)


def scan_string(header: str, at: int) -> tuple[str, int]:
    """A string of JSON without other letters than those of ASCII, and the place behind it."""
    found = STRING.match(header, at)
    if found is None:
        raise BrokenFileError(f"byte {at} of the header should begin a string")
    string = found.group()
    return (json.loads(string) if "\\" in string else string[1:-1]), found.end()


def scan_texts(header: str, at: int) -> tuple[dict[str, str], int]:
    """Text by name, and the place behind it."""
    text: dict[str, str] = {}
    at = expect(header, at, "{")
    while True:
        name, at = scan_string(header, at)
        content, at = scan_string(header, expect(header, at, ":"))
        if name in text or len(text) >= MOST_TEXTS:
            raise BrokenFileError(f"a name of a text stands twice, or there are more than {MOST_TEXTS}")
        text[name] = content
        if header[at : at + 1] != ",":
            return text, expect(header, at, "}")
        at += 1


def scan_place(header: str, at: int, name: str) -> tuple[Place, int]:
    """What the header says of an array, and the place behind it."""
    found = ENTRY.match(header, at)
    if found is None:
        raise BrokenFileError(f"array {name!r:.80} must have dtype, shape and data_offsets, in this form")
    begin, end, kind, shape = found.groups()
    if kind not in DTYPES:
        raise BrokenFileError(f"array {name!r:.80} has the unknown type {kind}")
    axes = tuple(int(n) for n in shape.split(",")) if shape else ()
    return Place(int(begin), int(end), DTYPES[kind], axes), found.end()


def check_places(places: dict[str, Place], n_bytes: int) -> None:
    """Arrays stand end to end in their order, to the last byte of the payload."""
    at = 0
    for name, place in sorted(places.items(), key=lambda item: (-alignment_of(item[1].end - item[1].begin), item[0])):
        size = math.prod(place.shape) * place.dtype.itemsize
        if place.begin != at or place.end != at + size:
            raise BrokenFileError(f"array {name!r:.80} of {size} bytes begins at {place.begin}, not {at}, or ends late")
        if size == 0 and max(place.shape) > MOST_EMPTY:
            raise BrokenFileError(f"array {name!r:.80} has no items, but an axis of {max(place.shape)}")
        at = place.end
    if at != n_bytes:
        raise BrokenFileError(f"the arrays take {at} bytes, there are {n_bytes}")


# --- JSON ---------------------------------------------------------------------------------------------------------


def load_json(text: str, n_paid: int) -> Any:
    """The content of a stranger's JSON, whose values must be paid for by the bytes of their file.

    They may take 16 times as many (texts of two letters take 14 times those that stand for them), but not more than
    26 MB beyond 4 times as many.
    """
    n_bytes = weigh_json(text)
    if n_bytes > min(JSON_TIMES * n_paid, 4 * n_paid + MOST_JSON_BYTES) + FREE_JSON_BYTES:
        raise BrokenFileError(f"values of JSON that take {n_bytes} bytes are too many for a file of {n_paid}")
    try:
        return json.loads(
            text, object_pairs_hook=without_repeats, parse_constant=refuse_constant, parse_float=finite_float
        )
    except (ValueError, RecursionError) as error:  # JSON's errors and ours are ValueErrors
        raise BrokenFileError(f"the JSON is not valid: {error}") from None


def weigh_json(text: str) -> int:
    """How many bytes the values of JSON take at most: from above, by the signs that part them."""
    n_commas, n_pairs, n_lists, n_objects = (text.count(sign) for sign in ",:[{")
    n_values = n_commas + n_pairs + n_lists + n_objects
    shells = LIST_BYTES * n_lists + OBJECT_BYTES * n_objects + PAIR_BYTES * n_pairs
    return len(text) + VALUE_BYTES * n_values + shells + WIDE_BYTES * text.count("\\u")


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON none of whose names stands twice."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name stands twice")
    return content


def refuse_constant(name: str) -> Any:
    """JSON has no NaN and no infinity."""
    raise ValueError(f"{name} is not JSON")


def finite_float(digits: str) -> float:
    """A number that is not beyond all numbers."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is beyond all numbers")
    return number
