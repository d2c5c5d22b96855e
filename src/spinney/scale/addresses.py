"""Files behind an address, such as s3://bucket/clicks/*.parquet: found and fetched by fsspec, where it is installed."""

from __future__ import annotations

import glob
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from spinney.table.sources import SUFFIXES, is_hidden, natural_order

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGN = "://"


def is_address(given: Any) -> bool:
    """Whether something is an address, or a list with one.

    Examples
    --------
    >>> is_address("s3://bucket/a.parquet"), is_address("a.parquet"), is_address(["a.csv", "memory://b.csv"])
    (True, False, True)
    """
    if isinstance(given, list | tuple):
        return any(is_address(one) for one in given)
    return isinstance(given, str) and SIGN in given


def open_address(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(
            f"{address} is an address, and fsspec, which reads addresses, is not installed: pip install "
            "'spinney[remote]', and what fsspec needs for it (s3fs for s3://); or copy the files to a disk"
        ) from None
    try:
        files, path = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{address} cannot be read by fsspec: {error}") from error
    return files, str(path)


def list_addressed(files: Any, path: str, address: str) -> list[str]:
    """The files of a path, a folder or a pattern in a file system, by their names, as `list_files` has them."""
    if glob.has_magic(path):
        found = [one for one in files.glob(path) if files.isfile(one)]
    elif files.isdir(path):
        root = PurePosixPath(path)
        found = [one for one in files.find(path) if one.lower().endswith(SUFFIXES)]
        found = [one for one in found if not is_hidden(Path(PurePosixPath(one).relative_to(root)))]
    else:
        found = [path] if files.exists(path) else []
    if not found:
        raise FileNotFoundError(f"there is no file at {address}.")
    return sorted(found, key=lambda one: natural_order(Path(one)))


def fetch(address: str, folder: Path) -> Iterator[Path]:
    """Copy the files of an address to a folder, one when it is asked for; each by its name, in their order."""
    files, path = open_address(address)
    try:
        for i, one in enumerate(list_addressed(files, path, address)):
            place = folder / str(i)
            place.mkdir()
            copy = place / PurePosixPath(one).name
            files.get_file(one, str(copy))
            yield copy
    except FileNotFoundError:
        raise
    except Exception as error:  # of any file system: what it says is all there is to say
        raise OSError(f"{address} cannot be read: {error}") from error
