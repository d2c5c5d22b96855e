"""Small tables that come with the library, for lectures, examples and the study.

`load` gives a `pyarrow.Table`, which every frame library takes: `pandas`: `table.to_pandas()`; `polars`:
`polars.from_arrow(table)`. Estimators take it as it is.
"""

from importlib.resources import as_file, files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Source", "load", "names", "source"]


class Source(NamedTuple):
    """Where a table is from and what may be done with it."""

    file: str
    rows: int
    task: str  # "classification" or "regression"
    target: str  # the column to predict
    origin: str
    licence: str
    note: str = ""


_SOURCES = {
    "buys_computer": Source(
        "buys_computer.csv",
        14,
        "classification",
        "buys_computer",
        "Han, Kamber and Pei, Data Mining: the AllElectronics customers",
        "facts; textbook example",
        "rid is a record number, there to show what an identifier does to a gain",
    ),
    "california_housing": Source(
        "california_housing.parquet",
        20_640,
        "regression",
        "MedHouseVal",
        "Pace and Barry 1997, StatLib; copy: GitHub we-b/datasets_for_ai, cal_housing.data",
        "no explicit licence; freely redistributed",
        "columns, units and row order as in scikit-learn's fetch_california_housing",
    ),
    "contact_lenses": Source(
        "contact_lenses.csv",
        24,
        "classification",
        "contact-lenses",
        "UCI Machine Learning Repository, Lenses; copy: Weka 3.6.14 as packaged by Debian",
        "CC BY 4.0 according to UCI",
    ),
    "play_tennis": Source(
        "play_tennis.csv",
        14,
        "classification",
        "play",
        "Quinlan 1986, Induction of Decision Trees: the Saturday mornings",
        "facts; textbook example",
    ),
    "taxable_income": Source(
        "taxable_income.csv",
        10,
        "classification",
        "cheat",
        "Tan, Steinbach and Kumar, Introduction to Data Mining",
        "facts; textbook example",
    ),
    "weather_numeric": Source(
        "weather_numeric.csv",
        14,
        "classification",
        "play",
        "weather.numeric.arff of Weka 3.6.14 as packaged by Debian",
        "public textbook example; the package is GPL-2+",
    ),
}


def names() -> list[str]:
    """The names that `load` knows.

    Examples
    --------
    >>> from spinney import datasets
    >>> "play_tennis" in datasets.names()
    True
    """
    return sorted(_SOURCES)


def source(name: str) -> Source:
    """Target, origin and licence of a table.

    Examples
    --------
    >>> from spinney import datasets
    >>> datasets.source("play_tennis").target
    'play'
    """
    if name not in _SOURCES:
        raise ValueError(f"no table named {name!r}; there are: {', '.join(names())}")
    return _SOURCES[name]


def load(name: str) -> "pa.Table":
    """One of the tables, whole: text columns are dictionary (categorical) columns.

    Examples
    --------
    >>> from spinney import datasets
    >>> datasets.load("play_tennis").shape
    (14, 5)
    """
    from spinney.table.ingest import read_table

    with as_file(files(__name__) / source(name).file) as path:
        return read_table(path)
