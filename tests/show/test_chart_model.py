"""The grammar: what may be drawn, and the numbers as a table."""

import math

import pytest

from spinney.show.chart_model import MAX_TABLE_ROWS, Chart
from spinney.show.marks import Axis, Band, Bars, Cells, Guide, Histogram, Line, Points, RowStrip

X, Y = Axis("size"), Axis("error")
LEVELS = Axis("fruit", levels=("apple", "pear"))


def make(*marks, x=X, y=Y):
    return Chart("A title", "A description.", x, y, marks)


@pytest.mark.parametrize(
    ("marks", "axes", "what"),
    [
        ([Line((1.0, 2.0), (1.0,))], {}, "do not fit together"),
        ([Line((1.0, math.nan), (1.0, 2.0), "bent")], {}, "'bent' has numbers that are not finite"),
        ([Points((1.0,), (2.0,), y_ends=((0.0, math.inf),))], {}, "not finite"),
        ([Points((1.0, 2.0), (2.0, 3.0), x_ends=(None,))], {}, "do not fit together"),
        ([Histogram((0.0, 1.0), (3.0, 4.0))], {}, "do not fit together"),
        ([Bars((1.0, 2.0))], {}, "do not fit together"),
        ([Bars((1.0, 2.0, 3.0))], {"y": LEVELS}, "do not fit together"),
        ([Line((0.0, 2.0), (1.0, 2.0))], {"x": Axis("size", is_log=True)}, "'size', a logarithmic axis"),
    ],
)
def test_marks_that_cannot_be_drawn_are_refused(marks, axes, what):
    with pytest.raises(ValueError, match=what):
        make(*marks, **axes)


def test_marks_on_the_same_places_share_rows_of_the_table():
    table = make(
        Line((1.0, 2.0), (0.5, 0.25), "line"),
        Points((1.0, 2.0), (0.5, 0.125), "points", y_ends=(None, (0.1, 0.2))),
        Band((1.0, 2.0), (0.0, 0.0), (1.0, 1.5), "band"),
        RowStrip((1.0, 2.0), (30, 40)),
        Guide(y=0.0, name="nothing"),
    ).to_table()
    assert table.header == (
        "size", "line, error", "points, error", "points, from", "points, to", "band, from", "band, to", "rows",
    )  # fmt: skip
    assert table.rows == (
        ("1", "0.5", "0.5", "", "", "0", "1", "30"),
        ("2", "0.25", "0.125", "0.1", "0.2", "0", "1.5", "40"),
    )
    assert table.note == ""


def test_a_line_through_points_is_told_once_and_the_background_not():
    table = make(
        Line((1.0, 2.0), (3.0, 4.0), "a"),
        Points((1.0, 2.0), (3.0, 4.0), "a"),
        Line((1.0, 2.0), (9.0, 9.0), is_faint=True),
    ).to_table()
    assert table == (("size", "error"), (("1", "3"), ("2", "4")), "")


def test_marks_on_other_places_have_rows_of_their_own():
    table = make(Line((1.0,), (0.5,), "a"), Points((2.0,), (0.25,), "b", y_ends=((0.0, 1.0),))).to_table()
    assert table.header == ("series", "size", "error", "from", "to")
    assert table.rows == (("a", "1", "0.5", "", ""), ("b", "2", "0.25", "0", "1"))


def test_long_series_are_thinned_with_both_ends():
    x = tuple(map(float, range(1001)))
    table = make(Line(x, x)).to_table()
    assert len(table.rows) == MAX_TABLE_ROWS
    assert (table.rows[0][0], table.rows[-1][0]) == ("0", "1000")
    assert table.note == f"{MAX_TABLE_ROWS} of 1001 points"


def test_tables_of_levels_histograms_and_cells():
    table = make(Bars((1.0, 2.0), ends=((0.5, 1.5), None)), x=Axis("worth"), y=LEVELS).to_table()
    assert table == (("fruit", "worth", "from", "to"), (("apple", "1", "0.5", "1.5"), ("pear", "2", "", "")), "")
    table = make(Histogram((0.0, 0.5, 1.0), (3.0, 4.0)), y=Axis("rows")).to_table()
    assert table == (("size", "rows"), (("0 to 0.5", "3"), ("0.5 to 1", "4")), "")
    cells = Cells(((1.0, 0.0), (0.5, 0.5)), (("7", "0"), ("2", "3")))
    table = make(cells, x=Axis("said", levels=("apple", "pear")), y=LEVELS).to_table()
    assert table == (("fruit", "apple", "pear"), (("apple", "7", "0"), ("pear", "2", "3")), "")
    assert make().to_table() == ((), (), "")


def test_charts_are_saved_by_their_ending(tmp_path):
    chart = make(Line((1.0, 2.0), (3.0, 4.0)))
    chart.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == chart.to_svg() == chart._repr_html_()
    with pytest.raises(ValueError, match=r"\.svg, \.png or \.pdf, not as 'a\.doc'"):
        chart.save(tmp_path / "a.doc")
    assert repr(chart) == "<Chart: A title>"
