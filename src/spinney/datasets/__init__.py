"""Small tables that come with the library, for lectures, examples and the study.

`load` gives a `pyarrow.Table`, which every frame library takes: `pandas`: `table.to_pandas()`; `polars`:
`polars.from_arrow(table)`. Estimators take it as it is.
"""

from importlib.resources import as_file, files
from typing import TYPE_CHECKING, NamedTuple

from spinney.datasets.generated import LED_ROWS, MAKERS, SPIRAL_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Source", "load", "names", "source"]


class Source(NamedTuple):
    """Where a table is from and what may be done with it."""

    file: str  # "" of a table that is generated
    rows: int
    task: str  # "classification" or "regression"
    target: str  # the column to predict
    origin: str
    licence: str
    note: str = ""


_SOURCES = {
    "adult": Source(
        "adult.parquet",
        48_842,
        "classification",
        "income",
        "UCI Machine Learning Repository, Adult (Becker and Kohavi 1996); copy: GitHub jbrownlee/Datasets",
        "CC BY 4.0 according to UCI",
        "the first 32,561 rows are the published training part; empty cells are missing values",
    ),
    "boosting_classes": Source(
        "boosting_classes.csv",
        10,
        "classification",
        "y",
        "Li Hang, Statistical Learning Methods, example 8.1: AdaBoost by hand",
        "facts; textbook example",
        "three stumps make no mistake; their weights are 0.4236, 0.6496 and 0.7520",
    ),
    "boosting_numbers": Source(
        "boosting_numbers.csv",
        10,
        "regression",
        "y",
        "Li Hang, Statistical Learning Methods, example 8.2: boosting of regression stumps by hand",
        "facts; textbook example",
        "squared error after each stump, without shrinkage: 1.93, 0.80, 0.48, 0.31, 0.23, 0.17",
    ),
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
    "german_credit": Source(
        "german_credit.parquet",
        1000,
        "classification",
        "class",
        "UCI Machine Learning Repository, German Credit (Hofmann 1994); copy: Weka 3.6.14 as packaged by Debian",
        "CC BY 4.0 according to UCI",
        "published costs: 5 for a bad customer taken as good, 1 for a good one taken as bad",
    ),
    "glass": Source(
        "glass.csv",
        214,
        "classification",
        "Type",
        "UCI Machine Learning Repository, Glass (German 1987); copy: mlbench 2.1-3 as packaged by Debian",
        "CC BY 4.0 according to UCI",
        "oxides in per cent of weight, and the refractive index; the types are numbers of classes",
    ),
    "led": Source(
        "",
        LED_ROWS,
        "classification",
        "digit",
        "generated as Breiman, Friedman, Olshen and Stone 1984, Classification and Regression Trees, define it",
        "a definition; the draws are part of this library (BSD-3-Clause)",
        "each segment of a digit fails with probability 0.1: no method can err less than 26 % of the time",
    ),
    "led_digits": Source(
        "",
        10,
        "classification",
        "digit",
        "the seven segments of each digit; Louppe 2014, Understanding Random Forests, table 6.1",
        "facts; textbook example",
    ),
    "play_tennis": Source(
        "play_tennis.csv",
        14,
        "classification",
        "play",
        "Quinlan 1986, Induction of Decision Trees: the Saturday mornings",
        "facts; textbook example",
    ),
    "spirals": Source(
        "",
        SPIRAL_ROWS,
        "classification",
        "arm",
        "generated as in the DHBW slides (Wehner, Applied Machine Learning), exercise 6",
        "a definition; the draws are part of this library (BSD-3-Clause)",
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

    file = source(name).file
    if not file:
        return MAKERS[name]()
    with as_file(files(__name__) / file) as path:
        return read_table(path)
