"""How files are damaged: bytes at random; arrays, JSON and shapes on purpose, with the hash made right again."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.model.container import DTYPES, HASH, METADATA, NAMES, NO_HASH, alignment_of, dump

if TYPE_CHECKING:
    from random import Random

ODD_INTEGERS = [0, 1, 2, 3, 7, 64, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1, 2**64 - 1]
ODD_FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, -2.0, 3.0, 5e-324, 1e300, -1e300, math.nan, math.inf, -math.inf, 2.0**31]
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, -(2**63), 10**30, 0.5, -1.5, 1e308, "", "x", "x" * 5000, "nan",
    [], [[]], {}, [0] * 2000, {"is": "tuple", "items": []}, {"is": "float", "value": "nan"},
    {"is": "float", "value": "inf"}, {"is": "same", "as": 0}, {"is": "same", "as": 1}, {"is": "dict", "items": []},
    {"is": "number", "type": "int64", "value": 3}, {"is": "number", "type": "bool", "value": 2},
    {"is": "labels", "type": "|O", "shape": [1], "items": [None]},
    {"is": "labels", "type": "<U9999", "shape": [2], "items": ["", "x" * 9999]},
    {"is": "array", "in": "rest.float64", "shape": [0]}, {"is": "array", "in": "rest.float64", "shape": [1]},
    {"is": "array", "in": "rest.int64", "shape": [1 << 40, 0]}, {"is": "foreign", "number": 0},
]  # fmt: skip
ODD_LENGTHS = [0, 1, 2, 3, 8, 65536, 2**31, 2**32, 2**47, 2**61, 2**64, -1, -(2**63), 2.0, True, None, "1"]


def mutate(files: list[bytes], random: Random) -> bytes:
    """One of the files, damaged in one to three ways."""
    whole = random.choice(files)
    ways = [damage_bytes, damage_payload, damage_arrays, damage_json, damage_layout]
    way = random.choices(ways, [2, 3, 5, 5, 1])[0]
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        whole = way(whole, random, files)
    return whole


# --- Bytes --------------------------------------------------------------------------------------------------------


def damage_bytes(whole: bytes, random: Random, files: list[bytes]) -> bytes:
    """Bits, runs, ends: as a disk or a network would, the hash left as it is."""
    broken = bytearray(whole)
    at, n = random.randrange(len(whole) or 1), random.randrange(1, 65)
    match random.randrange(7):
        case 0:
            for _ in range(random.choice([1, 1, 2, 8])):
                broken[random.randrange(len(broken))] ^= 1 << random.randrange(8)
        case 1:
            broken[at : at + n] = random.randbytes(n)
        case 2:
            del broken[at:]
        case 3:
            del broken[at : at + n]
        case 4:
            broken[at:at] = random.randbytes(n)
        case 5:
            broken[at : at + n] = random.choice(files)[at : at + n]
        case _:
            broken[at:at] = broken[at : at + n]
    return bytes(broken) or b"\0"


def split(whole: bytes) -> tuple[dict[str, Any], bytes]:
    """The header as JSON, and the payload."""
    end = 8 + int.from_bytes(whole[:8], "little")
    return json.loads(whole[8:end]), whole[end:]


def seal(header: dict[str, Any], payload: bytes) -> bytes:
    """A file of any header and payload, with the right hash."""
    header = {**header, METADATA: {**header[METADATA], HASH: NO_HASH}}
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    head = len(text).to_bytes(8, "little") + text
    digest = hashlib.sha256(head)
    digest.update(payload)
    key = f'"{HASH}":"'.encode()
    return head.replace(key + NO_HASH.encode(), key + digest.hexdigest().encode()) + payload


def damage_payload(whole: bytes, random: Random, files: list[bytes]) -> bytes:
    """The bytes of arrays at random, with the hash made right: nothing but what they mean can be noticed."""
    header, payload = split(whole)
    if not payload:
        return whole
    broken = damage_bytes(payload, random, files)[: len(payload)]
    return seal(header, broken + payload[len(broken) :])


# --- Arrays -------------------------------------------------------------------------------------------------------


def arrays_of(header: dict[str, Any], payload: bytes) -> dict[str, Any]:
    """The arrays of a file, writable."""
    arrays = {}
    for name, entry in header.items():
        if name != METADATA:
            begin, end = entry["data_offsets"]
            arrays[name] = np.frombuffer(payload[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"]).copy()
    return arrays


def join(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """A file of other arrays, laid out as they should be."""
    layout, pieces, at = {METADATA: header[METADATA]}, [], 0
    for name in sorted(arrays, key=lambda name: (-alignment_of(arrays[name].nbytes), name)):
        array = np.ascontiguousarray(arrays[name])
        layout[name] = {
            "dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes],
        }  # fmt: skip
        pieces.append(array.tobytes())
        at += array.nbytes
    return seal(layout, b"".join(pieces))


def damage_arrays(whole: bytes, random: Random, _: list[bytes]) -> bytes:
    """Entries, rows, types and shapes of arrays."""
    header, payload = split(whole)
    arrays = arrays_of(header, payload)
    if not arrays:
        return whole
    name = random.choice(sorted(arrays))
    change = random.choices([change_entry, change_shape, change_type, change_names], [12, 4, 2, 1])[0]
    change(arrays, name, random)
    return join(header, arrays)


def change_entry(arrays: dict[str, Any], name: str, random: Random) -> None:
    """Some entries: another's value, an odd one, a near one, or one with a flipped bit."""
    flat = arrays[name].reshape(-1)
    if not flat.size:
        return
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        at, other = random.randrange(flat.size), random.randrange(flat.size)
        bits = flat.view(f"u{flat.itemsize}") if flat.dtype != np.bool_ else flat.view(np.uint8)
        match random.randrange(4):
            case 0:
                flat[at], flat[other] = flat[other], flat[at]
            case 1 if flat.dtype.kind == "f":
                with np.errstate(over="ignore"):
                    flat[at] = random.choice(ODD_FLOATS)
            case 1:
                bits[at] = random.choice(ODD_INTEGERS) % 2 ** (8 * flat.itemsize)
            case 2 if flat.dtype.kind in "iu":
                bits[at] = (int(bits[at]) + random.choice([-2, -1, 1, 2])) % 2 ** (8 * flat.itemsize)
            case _:
                bits[at] = int(bits[at]) ^ (1 << random.randrange(8 * flat.itemsize))


def change_shape(arrays: dict[str, Any], name: str, random: Random) -> None:
    """Fewer or more entries, or other axes."""
    array = arrays[name]
    changes = [
        lambda: array[:-1], lambda: array[1:], lambda: np.concatenate([array, array[-1:]]), lambda: array[:0],
        lambda: array.reshape(-1), lambda: array.reshape(-1, 1), lambda: array.T, lambda: array[None],
        lambda: np.repeat(array, 2, axis=0), lambda: array[::-1], lambda: np.zeros((65536, 0), array.dtype),
    ]  # fmt: skip
    changed = random.choice(changes)()
    if changed.ndim <= 3:
        arrays[name] = changed


def change_type(arrays: dict[str, Any], name: str, random: Random) -> None:
    """Another type: of the same bytes, or of the same numbers."""
    kind = random.choice(list(DTYPES.values()))
    with np.errstate(all="ignore"):
        if random.random() < 0.5 and arrays[name].nbytes % kind.itemsize == 0 and kind != np.bool_:
            arrays[name] = arrays[name].reshape(-1).view(kind)
        else:
            arrays[name] = arrays[name].astype(kind)


def change_names(arrays: dict[str, Any], name: str, random: Random) -> None:
    """An array less, one more, or two that change places."""
    other = random.choice(sorted(arrays))
    match random.randrange(3):
        case 0:
            del arrays[name]
        case 1:
            arrays[name + "x"] = arrays[name]
        case _:
            arrays[name], arrays[other] = arrays[other], arrays[name]


# --- JSON ---------------------------------------------------------------------------------------------------------


def damage_json(whole: bytes, random: Random, files: list[bytes]) -> bytes:
    """Values of the JSON of the model, or its text."""
    header, payload = split(whole)
    texts = header[METADATA]
    if random.random() < 0.1:
        name = random.choice(sorted(texts))
        raw = damage_bytes(texts[name].encode("latin-1", "replace"), random, files)
        texts[name] = raw.decode("latin-1").encode("ascii", "ignore").decode()
        return seal(header, payload)
    try:
        content = json.loads(texts["model"])
    except ValueError:  # damaged before
        return whole
    places = list(walk(content))
    if places:
        change_value(places, random)
    texts["model"] = dump_any(content)
    return seal(header, payload)


def dump_any(content: Any) -> str:
    """JSON of what may hold NaN."""
    try:
        return dump(content).decode()
    except ValueError:
        return json.dumps(content)


def walk(content: Any) -> Any:
    """Every place of a value: what holds it, and its key."""
    waiting = [content]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def change_value(places: list[tuple[Any, Any]], random: Random) -> None:
    """One value: an odd one, another of the file, one more, one less, or nearly the same."""
    holder, key = random.choice(places)
    value = holder[key]
    match random.randrange(7):
        case 0:
            holder[key] = copy.deepcopy(random.choice(ODD_VALUES))
        case 1 | 2:
            other, at = random.choice(places)
            holder[key] = copy.deepcopy(other[at])
        case 3:
            del holder[key]
        case 4 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(value))
        case 4:
            holder[str(key) + "x"] = copy.deepcopy(value)
        case 5 if isinstance(value, list):
            holder[key] = value * random.choice([2, 100])
        case _:
            holder[key] = near(value, random)


def near(value: Any, random: Random) -> Any:
    """A value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + random.choice([-1, 1, -value, 1 << 31, 1 << 62])
    if isinstance(value, float):
        return value * random.choice([-1.0, 0.0, 1e300])
    if isinstance(value, str):
        return random.choice([value[:-1], value + "x", value.upper(), "".join(reversed(value))])
    return copy.deepcopy(random.choice(ODD_VALUES))


# --- Shapes -------------------------------------------------------------------------------------------------------


def damage_layout(whole: bytes, random: Random, _: list[bytes]) -> bytes:
    """Lies about types, shapes and places."""
    header, payload = split(whole)
    names = sorted(set(header) - {METADATA})
    if not names:
        return whole
    entry = header[random.choice(names)]
    if not isinstance(entry, dict):
        return whole
    match random.randrange(5):
        case 0:
            entry["dtype"] = random.choice([*DTYPES, "F16", "", None, 7])
        case 1:
            entry["shape"] = [random.choice(ODD_LENGTHS) for _ in range(random.randrange(5))]
        case 2:
            entry["data_offsets"] = [random.choice([*ODD_LENGTHS, len(payload)]) for _ in range(random.randrange(4))]
        case 3:
            header[random.choice(names)] = random.choice([None, [], {}, "x", 1])
        case _:
            header[random.choice([METADATA, *names])] = copy.deepcopy(header[random.choice(names)])
            text = header.get(METADATA)
            if not isinstance(text, dict) or not isinstance(text.get(HASH), str):
                header[METADATA] = {HASH: NO_HASH}
    return seal(header, payload)
