"""Charts on axes of matplotlib: the numbers are those of the marks."""

import sys

import pytest

from spinney.show.chart_model import Chart
from spinney.show.marks import Axis, Band, Bars, Cells, Guide, Histogram, Line, Points, RowStrip

X = (0.0, 1.0, 4.0)
LINE = Chart("A title", "", Axis("size", is_whole=True), Axis("error", lowest=0.0), (Line(X, (1.0, 2.0, 3.0), "a"),))


@pytest.fixture(scope="module")
def figure():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is an extra")
    matplotlib.use("agg")
    from matplotlib.figure import Figure

    return Figure


def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for use in (LINE.to_matplotlib, LINE.show, lambda: LINE.save(tmp_path / "a.png")):
        with pytest.raises(ImportError, match=r'pip install "spinney\[plot\]"'):
            use()
    assert list(tmp_path.iterdir()) == []


def test_lines_points_and_words(figure):
    ax = figure().add_subplot()
    chart = Chart(
        "A title", "", Axis("size", is_log=True), Axis("error"),
        (
            Line((1.0, 10.0), (3.0, 4.0), "a"),
            Points((1.0, 10.0), (3.0, 4.0), "a", x_ends=(None, (5.0, 20.0)), y_ends=((2.5, 3.5), None)),
            Guide(y=3.5, name="level"),
            Guide(x=2.0),
            Band((1.0, 10.0), (2.0, 2.0), (5.0, 5.0)),
        ),
    )  # fmt: skip
    assert chart.to_matplotlib(ax) is ax
    drawn = [tuple(map(tuple, line.get_xydata().tolist())) for line in ax.get_lines()]
    assert drawn[:2] == [((1.0, 3.0), (10.0, 4.0))] * 2
    assert ((5.0, 4.0), (20.0, 4.0)) in drawn
    assert ((1.0, 2.5), (1.0, 3.5)) in drawn
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "level"]
    assert (ax.get_title("left"), ax.get_xlabel(), ax.get_ylabel()) == ("A title", "size", "error")
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[1] > 20.0


def test_bars_stand_side_by_side_and_levels_run_downward(figure):
    ax = figure().add_subplot()
    levels = Axis("fruit", levels=("apple", "pear"))
    marks = (Bars((1.0, 2.0), "a", ends=(None, (1.5, 2.5))), Bars((3.0, 4.0), "b", 1))
    Chart("A title", "", Axis("worth"), levels, marks).to_matplotlib(ax)
    boxes = [box.get_bbox() for container in ax.containers for box in container]
    assert [round(box.width, 9) for box in boxes] == [1.0, 2.0, 3.0, 4.0]
    assert boxes[0].y1 <= boxes[2].y0
    assert boxes[2].y1 < boxes[1].y0
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["apple", "pear"]


def test_cells_columns_rows_and_dots(figure):
    levels = ("a", "b")
    cells = Cells(((1.0, 0.0), (0.5, 0.5)), (("7", "0"), ("2", "3")))
    chart = Chart("A title", "", Axis("said", levels=levels), Axis("true", levels=levels), (cells,), is_square=True)
    ax = figure().add_subplot()
    chart.to_matplotlib(ax)
    assert [text.get_text() for text in ax.texts] == ["7", "0", "2", "3"]
    many = tuple(map(float, range(100)))
    ax = figure().add_subplot()
    step = Line(X, X, is_step=True, is_faint=True)
    marks = (Points(many, many), Histogram(X, (3.0, 4.0)), RowStrip(X, (1, 2, 3)), Guide(), step)
    Chart("A title", "", Axis("x"), Axis("y"), marks).to_matplotlib(ax)
    assert ax.collections[0].get_offsets().tolist() == [[x, x] for x in many]
    assert ax.patches[0].get_data().values.tolist() == [3.0, 4.0]
    assert ax.get_legend() is None


def test_names_are_not_read_as_formulas_and_none_is_left_out(figure):
    ax = figure().add_subplot()
    chart = Chart("1 $x$", "", Axis("x_$"), Axis("y", levels=("$a_b$", "c")), (Points((1.0,), (0.0,), "_name $_2$"),))
    chart.to_matplotlib(ax)
    words = [ax.get_title("left"), ax.get_xlabel(), ax.get_yticklabels()[0].get_text(), *(
        text.get_text() for text in ax.get_legend().get_texts()
    )]  # fmt: skip
    assert words == [r"1 \$x\$", r"x_\$", r"\$a_b\$", r" _name \$_2\$"]


def test_pictures_are_saved(figure, tmp_path):
    assert figure is not None
    for name, start in (("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")):
        LINE.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
