"""Charts as SVG: sound markup, places that are those of the numbers, words that do not run into each other."""

import math
import re
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.reading.layout import text_width
from spinney.show.chart_model import Chart
from spinney.show.marks import NEUTRAL, Axis, Band, Bars, Cells, Guide, Histogram, Line, Points, RowStrip
from spinney.show.style import make_style
from spinney.show.svg import to_svg
from spinney.show.theme import DARK, LIGHT, N_LOOKS, contrast

NASTY = '</title><script>alert("1")</script>&amp;\'<b>'
LEVELS = tuple(f"level {k}" for k in range(4))
SHAPE = re.compile(r"[ML](-?[\d.]+) (-?[\d.]+)")


def chart_of(*marks, x=None, y=None, **more):
    return Chart("A title", "A description.", x or Axis("size"), y or Axis("error"), marks, **more)


def make_all(name="a"):
    """A chart of each kind of mark."""
    x = (0.0, 1.0, 4.0)
    numbers = chart_of(
        Band(x, (1.0, 1.0, 2.0), (2.0, 3.0, 4.0), name),
        Line(x, (1.0, 2.0, 3.0), name, 1),
        Line(x, (1.0, 2.0, 3.0), "steps", 2, is_step=True),
        Line(x, (1.0, 2.0, 3.0), "faint", NEUTRAL, is_faint=True),
        Points(x, (1.0, 2.0, 3.0), name, 3, x_ends=((0.0, 1.0), None, None), y_ends=((0.0, 1.0), None, (2.0, 4.0))),
        Points(tuple(range(100)), tuple(range(100)), "many", 4),
        Histogram((0.0, 1.0, 2.0), (3.0, 0.0), "columns", 5),
        RowStrip(x, (1, 5, 0), "rows"),
        Guide(x=2.0, name="upright"),
        Guide(y=2.0, name="level"),
        Guide(name="diagonal"),
    )
    bars = chart_of(
        Bars((1.0, -2.0, 3.0, 0.0), name, ends=(None, (-3.0, -1.0), None, None)),
        Bars((2.0, 2.0, 2.0, 2.0), "others", 9),
        Points((1.0, 2.0), (0.0, 3.0), "points"),
        y=Axis(name, levels=(name, *LEVELS[1:])),
    )
    cells = chart_of(
        Cells(((0.0, 1.0),) * 4, (("1", "20"),) * 4),
        x=Axis("x", levels=(name, "wide " * 20)),
        y=Axis("y", levels=LEVELS),
    )
    return [numbers, bars, cells, chart_of(is_square=True)]


def elements(svg):
    return list(ET.fromstring(svg).iter())


def classes_of(svg):
    return {name for one in elements(svg) for name in one.get("class", "").split()}


@pytest.mark.parametrize("name", ["a", NASTY])
@pytest.mark.parametrize("kind", range(4))
def test_markup_is_sound(kind, name):
    chart = make_all(name)[kind]
    for svg in (chart.to_svg(), to_svg(chart, 300, name="here", embed_style=False, has_title=False)):
        found = elements(svg)
        tags = {one.tag.rpartition("}")[2] for one in found}
        assert tags <= {"svg", "title", "desc", "style", "rect", "path", "text"}
        assert not [key for one in found for key in one.attrib if key == "style" or key.startswith("on")]
        ids = [one.get("id") for one in found if one.get("id")]
        assert len(ids) == len(set(ids)) == 2
        assert found[0].get("aria-labelledby").split() == ids
        assert found[0].get("role") == "img"
    assert {"here-title", "here-desc"} == set(ids)
    assert "style" not in tags


def test_texts_are_there_as_they_were():
    texts = [one.text for one in elements(chart_of(Line((1.0, 2.0), (1.0, 2.0), NASTY)).to_svg(2000))]
    assert NASTY in texts
    assert "A title" in texts


def test_a_long_word_of_the_title_is_cut():
    svg = to_svg(Chart("dependence on " + "x" * 300, "", Axis("x"), Axis("y"), ()), 300)
    titles = [one.text for one in elements(svg) if one.get("class") == "title"]
    assert titles[0] == "dependence on"
    assert text_width(titles[1], 14, is_bold=True) <= 280
    assert titles[1].endswith("x…")


def test_charts_that_differ_have_other_ids():
    ids = [re.search(r'id="([^"]+)-title"', chart.to_svg())[1] for chart in make_all()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("has_themes", [False, True])
def test_every_class_has_a_colour_in_each_theme(has_themes):
    style = make_style(has_themes=has_themes)
    used = set().union(*map(classes_of, (chart.to_svg() for chart in make_all()))) - {"spinney-chart", "title", "small"}
    for name in used:
        assert style.count(f".{name}{{") == (6 if has_themes else 3), name  # light, dark, paper; with themes twice each
    assert style.count("{") == style.count("}")


def test_series_stand_out_on_both_grounds():
    for theme in (LIGHT, DARK):
        colours = [theme.colour(series) for series in range(N_LOOKS)]
        assert len(set(colours)) == N_LOOKS
        assert min(contrast(colour, theme.ground) for colour in [*colours, theme.line]) >= 3.0
        assert min(contrast(text, theme.ground) for text in (theme.ink, theme.soft)) >= 4.5
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)  # the known grey just below 4.5


@given(st.lists(st.tuples(st.floats(0.1, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=20), st.booleans())
def test_places_are_those_of_the_numbers(pairs, is_log):
    """Read back from the path of a line by the frame and the ends that the picture states."""
    x, y = zip(*pairs, strict=True)
    root, *rest = elements(to_svg(chart_of(Line(x, y, series=1), x=Axis("x", is_log=is_log)), embed_style=False))
    left, top, right, foot = map(float, root.get("data-frame").split())
    x0, x1, y0, y1 = map(float, root.get("data-ends").split())
    (line,) = [one for one in rest if one.get("class") == "s1"]
    for (px, py), (wanted_x, wanted_y) in zip(SHAPE.findall(line.get("d")), pairs, strict=True):
        share = (float(px) - left) / (right - left)
        got_x = math.exp(math.log(x0) + share * math.log(x1 / x0)) if is_log else x0 + share * (x1 - x0)
        got_y = y0 + (float(py) - foot) / (top - foot) * (y1 - y0)
        tolerance = 0.06 / (right - left)
        assert abs(got_x - wanted_x) <= (wanted_x * math.log(x1 / x0) * 1.1 if is_log else x1 - x0) * tolerance + 1e-6
        assert abs(got_y - wanted_y) <= (y1 - y0) * 0.06 / (foot - top) + 1e-6


def boxes_of(svg):
    """Rectangles around the texts that stand level."""
    found = []
    for one in elements(svg):
        if one.tag.endswith("text") and not one.get("transform"):
            size = {"title": 14, "small": 9}.get(one.get("class"), 12)
            wide = text_width(one.text, size)
            left = float(one.get("x")) - {"middle": wide / 2, "end": wide}.get(one.get("text-anchor"), 0.0)
            found.append((left, float(one.get("y")) - 0.75 * size, left + wide, float(one.get("y")), one.text))
    return found


@pytest.mark.parametrize("width", [280, 400, 700])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 123456.0, 3e9])
def test_words_do_not_run_into_each_other(width, scale):
    x = tuple(k * scale for k in range(1, 8))
    names = ["short", "a rather longer name", "yet another name of a series", "x" * 200]
    chart = Chart(
        "A title that is so long that it needs more than one line of the picture to be written in whole",
        "",
        Axis("a label that is long as well, and says more than one would like to read"),
        Axis("another of those labels that go on and on and on, wider than the picture is"),
        tuple(Line(x, tuple(v * k for v in x), name, k) for k, name in enumerate(names)),
    )
    boxes = boxes_of(to_svg(chart, width))
    assert len(boxes) > 10
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)
    slack = 1.13  # bold text of the title
    assert all(box[0] >= 0 and (box[2] - box[0]) * slack + box[0] <= width * slack for box in boxes)


@pytest.mark.parametrize("width", range(280, 420, 7))
def test_the_last_tick_has_room_at_the_edge(width):
    svg = to_svg(
        chart_of(Bars((0.003, 0.001)), x=Axis("", lowest=0.0, highest=0.003), y=Axis("", levels=("a", "b"))), width
    )
    boxes = boxes_of(svg)
    ticks = sorted(box for box in boxes if box[4].startswith("0"))
    assert all(a[2] < b[0] for a, b in pairwise(ticks))


def test_long_levels_are_shortened_and_whole_in_a_tooltip():
    name = "a level with a name that is much too long for the room it has, whatever the size of the picture"
    svg = to_svg(chart_of(Bars((1.0,)), y=Axis("y", levels=(name,))), 300)
    texts = [one for one in elements(svg) if one.tag.endswith("text")]
    (cut,) = [one for one in texts if one.text.endswith("…")]
    assert text_width(cut.text, 12) < 150
    assert cut[0].text == name


def test_rows_have_a_strip_of_their_own_below_the_numbers():
    svg = to_svg(chart_of(Line((0.0, 1.0), (0.0, 5.0), series=1), RowStrip((0.0, 1.0), (3, 9))), embed_style=False)
    root, *rest = elements(svg)
    floor = float(root.get("data-frame").split()[3])
    boxes = [one for one in rest if one.get("class") == "f-n"]
    line = next(one for one in rest if one.get("class") == "s1")
    assert max(float(y) for _, y in SHAPE.findall(line.get("d"))) == floor
    assert [float(box.get("height")) for box in boxes] == pytest.approx([16 / 3, 16], abs=0.01)
    assert all(float(box.get("y")) >= floor for box in boxes)


def test_steps_are_level_up_to_each_point():
    svg = to_svg(chart_of(Line((0.0, 1.0, 2.0), (5.0, 3.0, 4.0), series=1, is_step=True)), embed_style=False)
    (line,) = [one for one in elements(svg) if one.get("class") == "s1"]
    points = [(float(x), float(y)) for x, y in SHAPE.findall(line.get("d"))]
    assert len(points) == 5
    assert points[1][0] == points[0][0]
    assert points[1][1] == points[2][1] > points[0][1]
    assert points[3][1] == points[4][1]
