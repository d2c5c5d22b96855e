"""Model files that are damaged on purpose, with the right hash, and what opening them costs."""

import contextlib
import hashlib
import json
import tracemalloc

from spinney.model.container import ALIGNMENT, BrokenFileError, read, write


def sealed(header, payload=b"", *, alignment=ALIGNMENT):
    """A file of any header, an object or bytes, its hash right."""
    if not isinstance(header, bytes):
        header = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    header += b" " * (-(8 + len(header)) % alignment)
    head = len(header).to_bytes(8, "little") + header
    digest = hashlib.sha256(head + payload).hexdigest().encode()
    return head.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest) + payload


def rewritten(path, change_arrays=None, change_json=None, **text):
    """The path of another file, with other arrays, JSON or texts, and the right hash."""
    found = read(path, is_mapped=False)
    arrays = {name: array.copy() for name, array in found.arrays.items()}
    content = json.loads(found.text["model"])
    if change_arrays:
        change_arrays(arrays)
    if change_json:
        change_json(content)
    other = path.with_name("other.spn")
    write(other, arrays, {**found.text, "model": json.dumps(content), **text})
    return other


def peak_of(action):
    """The most memory that Python has allocated at once, in bytes; a file may be refused."""
    tracemalloc.start()
    try:
        with contextlib.suppress(BrokenFileError):
            action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
