"""SVG pictures: well formed, nothing overlaps, no text leaves its box or the picture, the same each time."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fast_textbook
import hand_trees
import strategies
from spinney import CARTClassifier, CARTRegressor, GradientBoostingRegressor, RandomForestClassifier, datasets
from spinney._types import MULTIWAY
from spinney.reading import text
from spinney.reading.colours import PALETTE, class_colour, shade
from spinney.reading.layout import text_width
from spinney.reading.outline import make_outline
from spinney.table.ingest import read_columns
from spinney.tree.structure import Legend

SPACE = "{http://www.w3.org/2000/svg}"
BOXES = {"test", "leaf", "closed"}


class Drawn:
    """What an SVG shows, in the coordinates of the page."""

    def __init__(self, source):
        self.root = ET.fromstring(source)
        self.width, self.height = float(self.root.get("width")), float(self.root.get("height"))
        self.boxes, self.texts, self.fills, self.paths = [], [], [], []
        for group in self.root.findall(f"{SPACE}g"):
            x, y = map(float, re.fullmatch(r"translate\(([-\d.]+) ([-\d.]+)\)", group.get("transform")).groups())
            self.read(group, x, y)

    def read(self, group, x, y):
        for part in group.iter():
            if part.tag == f"{SPACE}rect":
                left, top = x + float(part.get("x")), y + float(part.get("y"))
                box = (left, top, left + float(part.get("width")), top + float(part.get("height")))
                (self.boxes if part.get("class") in BOXES else self.fills).append((part, box))
            elif part.tag == f"{SPACE}text":
                name = part.get("class") == "name"
                width = text_width(part.text, 13.0 if name else 11.0, is_bold=name)
                begin = x + float(part.get("x")) - {"middle": width / 2, "end": width}.get(part.get("text-anchor"), 0.0)
                base = y + float(part.get("y"))
                self.texts.append((part.text, (begin, base - 11.0, begin + width, base + 3.0)))
            elif part.tag == f"{SPACE}path":
                self.paths.append(part)

    @property
    def words(self):
        return [words for words, _ in self.texts]


def overlaps(a, b):
    return a[0] < b[2] - 0.01 and b[0] < a[2] - 0.01 and a[1] < b[3] - 0.01 and b[1] < a[3] - 0.01


def is_inside(a, b):
    return a[0] >= b[0] - 0.05 and a[1] >= b[1] - 0.05 and a[2] <= b[2] + 0.05 and a[3] <= b[3] + 0.05


def check_picture(source):
    drawn = Drawn(source)
    page = (0.0, 0.0, drawn.width, drawn.height)
    boxes = [box for _, box in drawn.boxes]
    for i, box in enumerate(boxes):
        assert is_inside(box, page)
        assert not any(overlaps(box, other) for other in boxes[:i])
    for i, (_, words) in enumerate(drawn.texts):
        assert is_inside(words, page)
        assert all(is_inside(words, box) or not overlaps(words, box) for box in boxes)
        assert not any(overlaps(words, other) for _, other in drawn.texts[:i])
    for _, fill in drawn.fills:
        assert is_inside(fill, page)
    return drawn


def test_the_check_of_pictures_can_fail():
    source = hand_trees.weather_tree().to_svg()
    check_picture(source)
    found = re.search(r'class="leaf" stroke="#\w+" x="([\d.]+)"', source)
    with pytest.raises(AssertionError):
        check_picture(source.replace(found[0], found[0].replace(found[1], str(float(found[1]) + 60))))
    with pytest.raises(AssertionError):
        check_picture(source.replace(">outlook<", f">{'outlook' * 9}<"))


@given(strategies.tables(), st.integers(0, 1000), st.sampled_from(["auto", "down", "right"]), st.integers(1, 60))
def test_nothing_overlaps(table, seed, direction, max_leaves):
    tree = hand_trees.ChanceGrower(table, seed).grow(max_depth=6)
    source = tree.to_svg(direction=direction, max_leaves=max_leaves)
    drawn = check_picture(source)
    items = make_outline(tree, max_leaves)
    assert len(drawn.boxes) == len(items)
    assert len(drawn.paths) == len(items) - 1
    assert source == tree.to_svg(direction=direction, max_leaves=max_leaves)


def many_leaves(n, **limits):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(3000, 4)), columns=["bill length", "bill depth", "flipper length", "body mass"])
    y = np.array(["Adelie", "Chinstrap", "Gentoo"])[rng.integers(0, 3, 3000)]
    return CARTClassifier(max_leaf_nodes=n, **limits).fit(X, y).tree_.arrays


@pytest.mark.parametrize("n", [2, 15, 50, 200])
def test_many_leaves(n):
    drawn = check_picture(many_leaves(n).to_svg())
    leaves = [part for part, _ in drawn.boxes if part.get("class") != "test"]
    assert len(leaves) == min(n, 50)
    hidden = sum(int(re.fullmatch(r"\+ (\d+) lea\w+", words)[1]) for words in drawn.words if words.startswith("+ "))
    closed = sum(part.get("class") == "closed" for part, _ in drawn.boxes)
    assert hidden + len(leaves) - closed == n


def test_a_chain():
    tree = CARTRegressor().fit(np.arange(31)[:, None], 3.0 ** np.arange(31)).tree_.arrays
    assert tree.depth == 30
    check_picture(tree.to_svg())
    check_picture(tree.to_svg(direction="right"))


def test_wide_pictures_turn_to_the_right():
    small, large = many_leaves(3), many_leaves(40, max_depth=6)
    assert small.to_svg() == small.to_svg(direction="down")
    assert large.to_svg() == large.to_svg(direction="right")
    with pytest.raises(ValueError, match="direction='up': give 'auto', 'down' or 'right'"):
        small.to_svg(direction="up")


def test_what_a_box_says():
    drawn = check_picture(hand_trees.weather_tree().to_svg())
    assert drawn.words[:4] == ["foggy", "overcast", "rainy", "strong"]
    for words in ("outlook", "14 rows", "0 rows", "≤ 77.5", "> 77.5", "no", "yes"):
        assert words in drawn.words
    assert "missing values go down every branch, by its share of the rows" in drawn.words
    titles = [title.text for title in drawn.root.iter(f"{SPACE}title")]
    assert titles[0] == "Decision tree for classes: 6 leaves, depth 2, 14 rows."
    assert "node 3: [yes] (5 rows, weight 4.5: yes 2.5, no 2)\nsplits on wind" in titles
    assert "humidity: ≤ 77.5" in titles
    assert drawn.root.find(f"{SPACE}desc").text == hand_trees.weather_tree().to_text()
    assert drawn.root.get("role") == "img"


def test_bars_show_the_shares_of_the_classes():
    drawn = Drawn(hand_trees.weather_tree().to_svg())
    (_, track), (no, first), (yes, second) = drawn.fills[:3]
    assert (no.get("fill"), yes.get("fill")) == PALETTE[:2]
    width = track[2] - track[0]
    assert (first[2] - first[0]) / width == pytest.approx(5 / 14, abs=1e-3)
    assert (second[2] - second[0]) / width == pytest.approx(9 / 14, abs=1e-3)
    assert second[0] == pytest.approx(first[2], abs=0.02)


def test_bars_show_where_a_value_stands():
    tree = CARTRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 5.0]).tree_.arrays
    drawn = check_picture(tree.to_svg())
    bars = [box for part, box in drawn.fills if part.get("class") is None][:5]
    tracks = [box for part, box in drawn.fills if part.get("class") == "track"]
    shares = [(bar[2] - bar[0]) / (track[2] - track[0]) for bar, track in zip(bars, tracks, strict=True)]
    levels = (tree.values() - 1.0) / 4.0
    assert sorted(shares) == pytest.approx(sorted(np.maximum(levels, 0.03)), abs=1e-3)


def test_thickness_follows_the_rows():
    tree = CARTClassifier(max_depth=1).fit([[0]] * 9 + [[1]], ["a"] * 9 + ["b"]).tree_.arrays
    thick = [float(path.get("stroke-width")) for path in Drawn(tree.to_svg()).paths]
    assert thick == pytest.approx([1.2 + 6.8 * 0.9, 1.2 + 6.8 * 0.1], abs=0.01)


def test_odd_and_long_names():
    levels = [f"municipality of <{k}> & more" for k in range(40)]
    name = 'a "very" long name of a feature that does not fit </text>'
    legend = Legend((name,), (tuple(levels),), ("<yes>" * 9, "\x00no"), (False,))
    leaves = [{"threshold": k % 2, "n_rows": 1 + k} for k in range(40)]
    n_rows = sum(leaf["n_rows"] for leaf in leaves)
    root = {"test": hand_trees.packed(0, 0, MULTIWAY), "first_child": 1, "n_rows": n_rows}
    tree = hand_trees.assemble([root, *leaves], 2, [40], legend)
    source = tree.to_svg()
    drawn = check_picture(source)
    assert '"\\x00no"' in drawn.words
    assert any(words.startswith("<yes><yes>") and words.endswith("…") for words in drawn.words)
    titles = [title.text for title in drawn.root.iter(f"{SPACE}title")]
    assert f'{name}: "{levels[3]}"' in titles
    assert {part.tag.removeprefix(SPACE) for part in drawn.root.iter()} == {
        *("svg", "title", "desc", "style", "g", "rect", "text", "path"),
    }


def test_long_sets_of_levels_say_how_many_more():
    X = pd.DataFrame({"code": pd.Categorical([f"level{k:02}" for k in range(40)])})
    tree = CARTClassifier(cat_penalty=0.0).fit(X, [0] * 20 + [1] * 20).tree_.arrays
    drawn = check_picture(tree.to_svg())
    assert "level00, level01, level02 + 17" in drawn.words or any(
        re.search(r" \+ 1\d$", words) for words in drawn.words
    )


def test_more_classes_than_colours():
    X, y = np.arange(60)[:, None] // 2, [f"class {k // 2:02}" for k in range(60)]
    tree = CARTClassifier().fit(X, y).tree_.arrays
    source = tree.to_svg()
    drawn = check_picture(source)
    used = set(re.findall(r'fill="url\(#(spinney-\d+)\)"', source))
    made = {part.get("id") for part in drawn.root.iter(f"{SPACE}pattern")}
    assert used == made == {f"spinney-{k}" for k in range(8, 24)}
    assert "+ 6 more" in drawn.words
    assert len({class_colour(k) for k in range(24)}) == 24


def test_colours_stay_apart_in_every_colour_vision():
    def linear(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)

    # Viénot, Brettel and Mollon 1999: what protanopes and deuteranopes see, in linear RGB.
    sights = [
        np.eye(3),
        np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
        np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
    ]
    for sight in sights:
        seen = [np.clip(sight @ linear(colour), 0, 1) ** (1 / 2.2) for colour in PALETTE]
        apart = [np.abs(a - b).max() for i, a in enumerate(seen) for b in seen[:i]]
        assert min(apart) > 0.09


def test_shades_grow_lighter():
    weights = np.array([0.2126, 0.7152, 0.0722])
    light = [weights @ [int(shade(t)[i : i + 2], 16) for i in (1, 3, 5)] for t in np.linspace(0, 1, 21)]
    assert (np.diff(light) > 0).all()


def test_single_leaves_linear_leaves_surrogates_forests_and_raw_scores():
    check_picture(CARTClassifier().fit([[1.0]], ["only"]).tree_.to_svg())
    check_picture(CARTRegressor().fit([[1.0]], [2.5]).tree_.to_svg())
    assert "-7 + 2 x1" in check_picture(hand_trees.linear_tree().to_svg()).words
    assert (
        "where it is missing, first branch: grade &gt; 2.5, else ploidy in {a, b}"
        in hand_trees.surrogate_tree().to_svg()
    )
    X, y = np.arange(40.0).reshape(20, 2), ["a", "b"] * 10
    check_picture(RandomForestClassifier(n_estimators=2, random_state=0).fit(X, y).forest_[1].to_svg())
    check_picture(GradientBoostingRegressor(n_estimators=2, random_state=0).fit(X, np.arange(20.0)).forest_[1].to_svg())
    huge = CARTRegressor().fit([[0.0], [1.0]], [-1e308, 1e308]).tree_.arrays
    check_picture(huge.to_svg())


def test_notebooks_show_the_picture():
    tree = hand_trees.weather_tree()
    assert tree._repr_svg_() == tree.to_svg()


def test_the_picture_in_the_documentation_is_what_the_library_draws():
    table = datasets.load("play_tennis")
    data = read_columns(table.drop_columns(["play"]))
    columns = [list(column) for column in data.block(0, 4)]
    y = [int(play == "yes") for play in table["play"].to_pylist()]
    levels = data.schema.levels
    small = strategies.SmallTable(columns, y, None, 2, [True] * 4, [len(names) for names in levels])
    tree = fast_textbook.grow(small, criterion="entropy", rule="gain")
    tree = tree.with_legend(Legend(data.schema.names, levels, ("no", "yes"), (False,) * 4, "entropy"))
    assert (Path(__file__).parents[2] / "docs" / "images" / "play_tennis.svg").read_text("utf-8") == tree.to_svg()


def test_a_large_tree_is_drawn_from_its_heaviest_part():
    table = datasets.load("california_housing").slice(0, 4000)
    tree = CARTRegressor().fit(table.drop_columns(["MedHouseVal"]), table["MedHouseVal"].to_numpy()).tree_.arrays
    source = tree.to_svg()
    check_picture(source)
    assert len(source) < 200_000


def test_classes_without_weights(monkeypatch):
    monkeypatch.setattr(text, "MAX_CELLS", 0)
    drawn = check_picture(hand_trees.weather_tree().to_svg())
    assert "outlook" in drawn.words


@pytest.mark.filterwarnings("error")
def test_fault_43_the_largest_numbers_have_a_level():
    """Weight times value would leave the range of float64."""
    tree = CARTRegressor().fit([[1.0]] * 3 + [[2.0]] * 4, [1.7e308] * 3 + [-1.7e308] * 4).tree_.arrays
    assert tree.to_svg().startswith("<svg")
