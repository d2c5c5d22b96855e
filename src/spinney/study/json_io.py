"""Plain data to JSON and back: frozen dataclasses of numbers, texts, tuples, dicts and one another."""

from __future__ import annotations

import json
import types
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def write_json(kind: str, data: Any) -> str:
    """A dataclass as JSON text, indented, under the name of its kind."""
    return json.dumps({"kind": kind, **asdict(data)}, indent=2, allow_nan=False)


def read_json(kind: str, text: str, cls: type[T], what: str) -> T:
    """The dataclass that `write_json` wrote; `what` names it in an error."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.pop("kind", None) != kind:
        raise ValueError(f"this is not the JSON of {what}")
    return rebuild(cls, data)


def rebuild(kind: Any, data: Any) -> Any:
    """What is of type `kind` from what JSON made of it: lists become tuples again, and dicts dataclasses."""
    inner = get_args(kind)
    if get_origin(kind) in {Union, types.UnionType}:  # of None and one type, or of types that JSON tells apart
        return None if data is None else rebuild(inner[0], data)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: rebuild(hints[name], value) for name, value in data.items()})  # type: ignore[operator]
    if get_origin(kind) is not tuple:
        return data
    kinds = inner[:1] * len(data) if inner[-1] is Ellipsis else inner
    return tuple(rebuild(one, value) for one, value in zip(kinds, data, strict=True))
