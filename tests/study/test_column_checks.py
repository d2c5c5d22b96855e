"""Text that may not be what it is taken for, and rows that are there twice."""

import numpy as np
import pyarrow as pa
import pytest

from spinney.study.column_checks import check_text, count_copies
from spinney.study.tables import prepare

HUNDRED = range(100, 200)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([f"{i},5" for i in HUNDRED], "decimal comma ('100,5')"),
        ([f"-{i}.234.000,50" for i in HUNDRED], "decimal comma ('-100.234.000,50')"),
        ([*(f"{i}.5" for i in HUNDRED), "k.A."], "numbers but for 'k.A.'"),
        ([f"{i} %" for i in HUNDRED], "numbers ('100 %')"),
        ([f"${i},000" for i in HUNDRED], "numbers"),
        ([f"{i % 28 + 1:02}.08.{1900 + i}" for i in HUNDRED], "dates ('01.08."),
        ([f"{1900 + i}-08-01 12:00" for i in HUNDRED], "dates ('2000-08-01 12:00')"),
        ([f"3-Aug-{1900 + i}" for i in HUNDRED], "dates"),
        ([f"customer {i}" for i in HUNDRED], "nearly every value is different text (100 in 105 rows)"),
        (["x" * 10_000 + str(i) for i in HUNDRED], "nearly every"),
    ],
)
def test_text_that_is_something_else(levels, words):
    doubt = check_text(levels, 105)
    assert words in doubt
    assert len(doubt) < 150


@pytest.mark.parametrize(
    "levels",
    [
        ["1,5", "2,5"],  # may be codes
        [f"{i}-{i + 9}" for i in HUNDRED],
        [f"N{i}" for i in HUNDRED],
        [f"{i} rooms" for i in HUNDRED],
        ["", *map(chr, HUNDRED)],
    ],
)
def test_text_that_is_text(levels):
    assert check_text(levels, 1000) is None


def test_rows_that_are_there_twice():
    rng = np.random.default_rng(0)
    table = pa.table(
        {"x": rng.normal(size=300), "k": rng.choice(["a", "b", None], 300), "y": rng.choice(["p", "q"], 300)}
    )
    more = pa.concat_tables([table, table.slice(10, 7), table.slice(10, 3)])
    assert count_copies(table) == 0
    assert count_copies(more) == 10
    assert count_copies(pa.concat_tables([table] * 2 + [table.slice(0, 1)])) == 301
    assert count_copies(pa.concat_tables([table, table.slice(5, 2)])) == 0  # below one in a hundred
    assert count_copies(more.select(["k", "y"])) == 0  # bound to be equal
    summary = prepare(more, "y").summary
    assert summary.n_copies == 10
    assert summary.copies_warning.startswith("10 rows (3.2%) equal an earlier one")
    assert prepare(table, "y").summary.copies_warning is None
