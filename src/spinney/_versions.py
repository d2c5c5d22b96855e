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
    import spinney
    from spinney import _jit

    rows = {
        "spinney": spinney.__version__,
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        **{name: _installed(name) for name in _LIBRARIES},
        "kernels": str(_jit.cache_directory() or "not kept: no cache directory is writable"),
    }
    for name, value in rows.items():
        print(f"{name:<12} {value}")  # noqa: T201


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
