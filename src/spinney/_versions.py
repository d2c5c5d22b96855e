"""What a bug report needs to know."""

import platform
import sys
from importlib import metadata

_LIBRARIES = (
    "numpy",
    "numba",
    "llvmlite",
    "scikit-learn",
    "narwhals",
    "pyarrow",
    "click",
    "rich",
    "pandas",
    "polars",
)


def show_versions() -> None:
    """Print the versions of Spinney, Python and the libraries it uses, and where compiled kernels are kept.

    Examples
    --------
    >>> import spinney
    >>> spinney.show_versions()  # doctest: +ELLIPSIS
    spinney      ...
    """
    from spinney import _jit

    kernels = str(_jit.cache_directory() or "not kept: no cache directory is writable")
    for name, value in {**find_versions(), "kernels": kernels}.items():
        print(f"{name:<12} {value or 'not installed'}")  # noqa: T201


def find_versions() -> dict[str, str | None]:
    """Versions by name; None for what is not installed."""
    import spinney

    return {
        "spinney": spinney.__version__,
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        **{name: installed(name) for name in _LIBRARIES},
    }


def installed(name: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
