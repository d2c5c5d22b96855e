"""The file that arrays and text live in: a safetensors container, read without trust.

A container is eight bytes (the length of the header, little-endian), the header (JSON: for each array its dtype, shape
and place; under `__metadata__` text by name), and the bytes of the arrays end to end. Ours are stricter than the format
asks: the header is JSON in its shortest form, filled up with spaces to a multiple of 64; arrays whose length is divided
by a higher power of two (up to 64) stand before others, then they go by name, so that each begins at a multiple of its
item size; and `__metadata__` holds the SHA-256 of everything else. So equal content gives equal bytes, and a changed
bit is noticed before anything is believed.

Nothing in a file is executed, and nothing is allocated that the file's own size does not pay for: arrays are views of
the mapped file, so that processes that open one file share its memory.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import mmap
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
ALIGNMENT = 64
LENGTH_BYTES = 8
MOST_HEADER_BYTES = 16 << 20
MOST_ARRAYS = 256
MOST_AXES = 3
HASH_BYTES = 1 << 20


class BrokenFileError(ValueError):
    """A file is not what it says it is."""


class Container(NamedTuple):
    """What a file holds: arrays by name, read-only, and text by name."""

    arrays: dict[str, NDArray[Any]]
    text: dict[str, str]


# --- Writing ------------------------------------------------------------------------------------------------------


def pack(arrays: dict[str, NDArray[Any]], text: dict[str, str]) -> tuple[bytes, list[memoryview]]:
    """The header and the pieces of the payload of a container; equal content gives equal bytes."""
    layout: dict[str, Any] = {}
    pieces: list[memoryview] = []
    at = 0
    for name in sorted(arrays, key=lambda name: (-alignment_of(arrays[name].nbytes), name)):
        array = np.ascontiguousarray(arrays[name])
        dtype = array.dtype.newbyteorder("<") if array.dtype.byteorder == ">" else array.dtype
        if dtype not in NAMES or array.ndim > MOST_AXES:
            raise ValueError(f"array {name!r} of {array.dtype} and {array.ndim} axes has no place in a model file")
        pieces.append(array.astype(dtype, copy=False).reshape(-1).view(np.uint8).data)
        layout[name] = {
            "dtype": NAMES[dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    digest = hash_of(layout, text, pieces)
    header = dump({METADATA: {**text, HASH: digest}, **layout})
    header += b" " * (-(len(header) + LENGTH_BYTES) % ALIGNMENT)
    if len(header) > MOST_HEADER_BYTES:
        raise ValueError(f"the names and settings of the model take {len(header)} bytes, at most {MOST_HEADER_BYTES}")
    return len(header).to_bytes(LENGTH_BYTES, "little") + header, pieces


def alignment_of(n_bytes: int) -> int:
    """The highest power of two up to ALIGNMENT that divides a length."""
    return min(n_bytes & -n_bytes, ALIGNMENT) if n_bytes else ALIGNMENT


def dump(content: Any) -> bytes:
    """JSON in its one shortest form: sorted keys, ASCII, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def hash_of(layout: dict[str, Any], text: dict[str, str], payload: Any) -> str:
    """SHA-256 of layout and text in their shortest form, then of the payload."""
    digest = hashlib.sha256(dump([layout, text]))
    for piece in payload:
        digest.update(piece)
    return digest.hexdigest()


def write(path: str | os.PathLike[str], arrays: dict[str, NDArray[Any]], text: dict[str, str]) -> None:
    """Write a container; the file of this name is whole before and after, whatever happens in between."""
    header, pieces = pack(arrays, text)
    path = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(header)
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, new_file_mode())  # noqa: PTH101  (mkstemp's is for its owner alone)
        os.replace(temporary, path)  # noqa: PTH105  (on one file system: same folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def new_file_mode() -> int:
    """The mode that a file opened in the ordinary way would get."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


# --- Reading ------------------------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> Container:
    """Read a container, every claim of its header checked against its size and its hash.

    Raises
    ------
    BrokenFileError
        Which says what is wrong.
    """
    about = Path(path).stat()
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(about.st_mode):  # opening a pipe would wait for its other end
        raise BrokenFileError(f"{path} is not a file that a model could be in, but a pipe or a device")
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < LENGTH_BYTES:
            raise BrokenFileError(f"{path} has {size} bytes: it is not a model file, or was cut off")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return unpack(data)
    except BrokenFileError as error:
        raise BrokenFileError(f"{path}: {error}") from None


def unpack(data: bytes | mmap.mmap) -> Container:
    """The content of a container in memory."""
    size = len(data)
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if length > MOST_HEADER_BYTES or LENGTH_BYTES + length > size:
        raise BrokenFileError(f"the header of {length} bytes does not fit: not a model file, or cut off")
    layout, text = parse_header(data[LENGTH_BYTES : LENGTH_BYTES + length])
    begin = LENGTH_BYTES + length
    places = check_layout(layout, size - begin)
    digest = text.pop(HASH, None)
    view = memoryview(data)
    payload = (view[at : min(at + HASH_BYTES, size)] for at in range(begin, size, HASH_BYTES))
    if digest != hash_of(layout, text, payload):
        raise BrokenFileError("the content does not match its SHA-256: the file is damaged or was changed")
    arrays = {}
    for name, (dtype, shape, at) in places.items():
        count = math.prod(shape)
        array = np.frombuffer(data, dtype, count, begin + at) if count else np.empty(0, dtype)
        if sys.byteorder == "big":
            array = array.astype(dtype.newbyteorder("="))
        arrays[name] = array.reshape(shape)
        arrays[name].flags.writeable = False
    return Container(arrays, text)


def parse_header(raw: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """The places of the arrays, and the text."""
    try:
        header = json.loads(raw.decode("ascii"), object_pairs_hook=without_repeats, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:  # JSON's errors and ours are ValueErrors
        raise BrokenFileError(f"the header is not valid: {error}") from None
    if not isinstance(header, dict):
        raise BrokenFileError("the header is not an object")
    text = header.pop(METADATA, None)
    if not isinstance(text, dict) or not all(isinstance(value, str) for value in text.values()):
        raise BrokenFileError("the metadata must be text by name")
    if len(header) > MOST_ARRAYS:
        raise BrokenFileError(f"{len(header)} arrays, at most {MOST_ARRAYS}")
    return header, text


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON none of whose names stands twice."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name stands twice")
    return content


def refuse_constant(name: str) -> Any:
    """JSON has no NaN and no infinity."""
    raise ValueError(f"{name} is not JSON")


def check_layout(layout: dict[str, Any], n_bytes: int) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]:
    """Type, shape and place of each array: end to end in their order, to the last byte of the payload."""
    places = {}
    at = 0
    ends = {name: place_of(entry, name) for name, entry in layout.items()}
    for name in sorted(layout, key=lambda name: (-alignment_of(ends[name][1] - ends[name][0]), name)):
        entry = layout[name]
        begin, end = ends[name]
        dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
        shape = entry["shape"]
        if dtype is None:
            raise BrokenFileError(f"array {name!r} has the unknown type {entry['dtype']!r}")
        if not isinstance(shape, list) or len(shape) > MOST_AXES or not all(is_count(n) for n in shape):
            raise BrokenFileError(f"array {name!r} has no valid shape")
        if math.prod(shape) * dtype.itemsize != end - begin:
            raise BrokenFileError(f"array {name!r} of shape {shape} does not take {end - begin} bytes")
        if begin != at:
            raise BrokenFileError(f"array {name!r} begins at byte {begin}, not {at}")
        at = end
        places[name] = (dtype, tuple(shape), begin)
    if at != n_bytes:
        raise BrokenFileError(f"the arrays take {at} bytes, there are {n_bytes}")
    return places


def place_of(entry: Any, name: str) -> tuple[int, int]:
    """Begin and end of an array, the keys of its entry being those that there must be."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise BrokenFileError(f"array {name!r} must have dtype, shape and data_offsets")
    offsets = entry["data_offsets"]
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(is_count(n) for n in offsets):
        raise BrokenFileError(f"array {name!r} has no valid place")
    begin, end = offsets
    if begin > end:
        raise BrokenFileError(f"array {name!r} ends before it begins")
    return begin, end


def is_count(n: Any) -> bool:
    """Whether n is a whole number from 0 on that an array could have as its length."""
    return isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 48
