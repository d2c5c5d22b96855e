"""UBJSON, the binary form of JSON that XGBoost writes: values behind a letter that says their type.

Arrays of numbers of one type become NumPy arrays. Lengths are checked against the bytes that are left before anything
is made of them.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from spinney.model.container import BrokenFileError

NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "u": ">u2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
WORDS = {"Z": None, "T": True, "F": False}
MOST_DEPTH = 64


def parse_ubjson(data: bytes) -> Any:
    """The one value that the bytes hold."""
    reader = UbjsonReader(data)
    value = reader.read(reader.take_letter(), 0)
    if reader.at != len(data):
        raise BrokenFileError(f"there are {len(data) - reader.at} bytes behind the end")
    return value


class UbjsonReader:
    """Reads values, one after the other.

    Parameters
    ----------
    data : bytes
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def fail(self, fault: str) -> NoReturn:
        """Say where something is wrong."""
        raise BrokenFileError(f"byte {self.at}: {fault}")

    def take(self, n: int) -> bytes:
        """The next bytes."""
        if not 0 <= n <= len(self.data) - self.at:
            self.fail(f"{n} bytes are expected, {len(self.data) - self.at} are left")
        self.at += n
        return self.data[self.at - n : self.at]

    def take_letter(self) -> str:
        """The next letter, without those that stand for nothing."""
        letter = "N"
        while letter == "N":
            letter = self.take(1).decode("latin-1")
        return letter

    def read_number(self, letter: str) -> Any:
        """A number of a type."""
        if letter not in NUMBERS:
            self.fail(f"a number should be of a type, not {letter!r}")
        dtype = np.dtype(NUMBERS[letter])
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def read_length(self) -> int:
        """A length, of any whole type."""
        length = self.read_number(self.take_letter())
        if not isinstance(length, int) or length < 0:
            self.fail(f"a length of {length}")
        return length

    def read_text(self) -> str:
        """Text behind its length."""
        try:
            return self.take(self.read_length()).decode("utf-8")
        except UnicodeDecodeError:
            self.fail("text that is not UTF-8")

    def read(self, letter: str, depth: int) -> Any:
        """The value behind a letter."""
        if depth > MOST_DEPTH:
            self.fail(f"values are nested more than {MOST_DEPTH} deep")
        if letter in WORDS:
            return WORDS[letter]
        if letter in {"S", "H"}:
            return self.read_text()
        if letter == "C":
            return self.take(1).decode("latin-1")
        if letter == "[":
            return self.read_array(depth)
        if letter == "{":
            return self.read_object(depth)
        return self.read_number(letter)

    def read_head(self) -> tuple[str | None, int | None]:
        """The type of all values and how many there are, where that is said before them."""
        kind, n = None, None
        if self.data[self.at : self.at + 1] == b"$":
            self.at += 1
            kind = self.take_letter()
        if self.data[self.at : self.at + 1] == b"#":
            self.at += 1
            n = self.read_length()
        elif kind is not None:
            self.fail("values of one type without their number")
        if n is not None and kind not in NUMBERS and n > len(self.data) - self.at:
            self.fail(f"{n} values in {len(self.data) - self.at} bytes")
        return kind, n

    def read_array(self, depth: int) -> Any:
        """An array of NumPy, or a list."""
        kind, n = self.read_head()
        if kind is not None and n is not None and kind in NUMBERS:
            dtype = np.dtype(NUMBERS[kind])
            return np.frombuffer(self.take(n * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))
        if n is not None:
            return [self.read(kind or self.take_letter(), depth + 1) for _ in range(n)]
        values = []
        letter = self.take_letter()
        while letter != "]":
            values.append(self.read(letter, depth + 1))
            letter = self.take_letter()
        return values

    def read_object(self, depth: int) -> dict[str, Any]:
        """Values by name, none of which stands twice."""
        kind, n = self.read_head()
        content: dict[str, Any] = {}
        while n is None or len(content) < n:
            if n is None and self.data[self.at : self.at + 1] == b"}":
                self.at += 1
                break
            name = self.read_text()
            if name in content:
                self.fail(f"{name!r:.40} stands twice")
            content[name] = self.read(kind or self.take_letter(), depth + 1)
        return content
