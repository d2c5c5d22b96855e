"""The page of a study: what is on it, that nothing gets out of it, and that it stays small."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest

from report_cases import EVIL, make_evidence, make_figure, make_study, make_tree
from spinney.reading.colours import shade
from spinney.show.markup import VOID, Html, join, tag
from spinney.show.page import is_report
from spinney.show.path_chart import PathChart
from spinney.show.report import make_figure_report, make_report
from spinney.show.score_table import Ruler, Spread
from spinney.show.tree_page import LOWEST, draw_text
from spinney.study.evidence import NodePicture, TreeNode
from spinney.study.result import Column

LIMIT = 1_500_000


class Page(HTMLParser):
    """Elements with their attributes and own text, in order; fails where one is not closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        element = {"name": name, "attributes": dict(attributes), "text": ""}
        self.elements.append(element)
        if name not in VOID:
            self.open.append(element)

    def handle_endtag(self, name):
        assert self.open.pop()["name"] == name

    def handle_data(self, data):
        if self.open:
            self.open[-1]["text"] += data

    def all(self, name):
        return [one for one in self.elements if one["name"] == name]

    def texts(self):
        return " ".join(one["text"] for one in self.elements if one["name"] not in {"script", "style"})


def read_tree(page):
    (data,) = (one["text"] for one in page.all("script") if one["attributes"].get("type") == "application/json")
    return json.loads(data)


@pytest.fixture(params=[True, False], ids=["classes", "numbers"])
def page(request):
    is_classes = request.param
    return Page(make_report(make_study(is_classes=is_classes), make_evidence(is_classes=is_classes)))


def test_a_page_has_all_sections_in_order(page):
    keys = [one["attributes"]["id"] for one in page.all("section")]
    assert keys == ["advice", "methods", "learning-curves", "predictions", "coverage", "importances", "dependence",
                    "reasons", "tree", "first-split", "data", "run"]  # fmt: skip
    links = [one["attributes"]["href"] for one in page.all("a")]
    assert links == ["#report", *(f"#{key}" for key in keys)]
    assert len(page.all("h1")) == 1
    assert "Random forest is best (accuracy 0.850 ± 0.044)." in page.texts()
    assert "nearly a copy of the target" in page.texts()
    assert "print('<b>')" in page.texts()


def test_names_in_a_page_are_its_own(page):
    ids = [one["attributes"]["id"] for one in page.elements if "id" in one["attributes"]]
    assert len(ids) == len(set(ids))
    for one in page.elements:
        for key in ("aria-labelledby", "for"):
            assert set((one["attributes"].get(key) or "").split()) <= set(ids)
    levels = [int(one["name"][1]) for one in page.elements if re.fullmatch(r"h[1-6]", one["name"])]
    assert levels[0] == 1
    assert max(np.diff(levels)) == 1


def test_a_page_loads_nothing_and_its_policy_names_style_and_script(page):
    for one in page.elements:
        names = set(one["attributes"])
        assert not {"style", "src", "srcset", "action", "background"} & names
        assert not any(name.startswith("on") for name in names)
        assert (one["attributes"].get("href") or "#")[:1] == "#" or one["attributes"]["href"] == "data:,"
    (policy,) = (
        one["attributes"]["content"] for one in page.all("meta")
        if one["attributes"].get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip
    (style,), (script,) = page.all("style"), (one for one in page.all("script") if not one["attributes"])
    for part, text in (("style-src", style["text"]), ("script-src", script["text"])):
        assert f"{part} 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
        assert "url(" not in text
        assert "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert policy.startswith("default-src 'none'; ")


def test_every_figure_has_words_and_numbers(page):
    for place, one in enumerate(page.elements):
        if one["name"] == "figure":
            inside = [later["name"] for later in page.elements[place + 1 : place + 2]]
            assert inside == ["h3"]
    assert len(page.all("figure")) == len(page.all("figcaption")) >= 7
    for one in page.all("svg"):
        names = one["attributes"]
        assert names.get("aria-hidden") == "true" or (names["role"], "aria-labelledby" in names) == ("img", True)
    assert len(page.all("caption")) == len(page.all("table")) > len(page.all("figure"))


def test_the_table_of_methods_is_the_study(page):
    rows = [one for one in page.elements if one["name"] in {"th", "td"}]
    first = next(k for k, one in enumerate(rows) if one["text"] == "random forest")
    cells = [one["text"] for one in rows[first + 2 : first + 10]]
    assert cells == ["0.850", "0.044", "best", "", "0.375", "0.010", "2 kB", ""]
    names = [one["text"] for one in rows if one["attributes"].get("scope") == "row"][:4]
    assert names == ["random forest", "pruned CART", "commonest class", "ID3"]
    assert ".002*" in page.texts()
    assert "failed" in page.texts()


@pytest.mark.parametrize("is_classes", [True, False])
def test_whatever_a_table_calls_its_columns_is_text(is_classes):
    study = make_study(EVIL, EVIL, EVIL, is_classes=is_classes)
    page = Page(make_report(study, make_evidence(EVIL, is_classes=is_classes), command=f"spinney study {EVIL}"))
    assert not page.all("b")
    assert not page.all("img")
    assert len(page.all("script")) == 2
    assert page.texts().count(EVIL) > 8
    assert read_tree(page)["nodes"][0][2] == EVIL


def test_parts_that_are_missing_say_why():
    evidence = replace(make_evidence(), tree=None, coverages=(), left_out=(("tree", "the budget was spent"),))
    page = Page(make_report(make_study(), evidence))
    reasons = [one["text"] for one in page.all("p") if one["attributes"].get("class") == "missing"]
    assert reasons == ["This part was not looked at.", *["Not shown: the budget was spent."] * 2]
    bare = Page(make_report(replace(make_study(), stopped="interrupt", is_partial=True)))
    assert len([one for one in bare.all("p") if one["attributes"].get("class") == "missing"]) == 8
    assert "interrupted" in bare.texts()


def test_a_study_without_any_score_has_a_page():
    study = make_study()
    methods = tuple(replace(one, folds=(), scores=(), error="no") for one in study.methods)
    page = Page(make_report(replace(study, methods=methods, best=None, differences=(), recommendation="Nothing.")))
    assert page.texts().count("failed") >= 4


def test_a_figure_has_a_page():
    page = Page(make_figure_report(make_figure(), make_evidence(is_classes=False)))
    assert "Random forest is best with 100 trees: R² 0.810 ± 0.008, fitted in 2.000 s." in page.texts()
    assert "Weak boosting is 0.110 ± 0.015 behind in the same folds." in page.texts()
    assert "california_housing" in page.all("h1")[0]["text"]
    settings = {make_figure().curves[0].name: ("Forest", {"max_depth": 3})}
    told = {"summary": make_study().summary, "settings": settings, "seed": 42}
    whole = Page(make_figure_report(make_figure(), make_evidence(is_classes=False), **told))
    assert "max_depth=3" in whole.texts()
    assert "seeded with 42" in whole.texts()
    assert "The data" in [one["text"] for one in whole.all("h2")]
    nothing = replace(make_figure(), curves=(replace(make_figure().curves[0], scores=(), seconds=()),))
    assert "No ensemble was finished." in Page(make_figure_report(nothing)).texts()


def test_a_large_study_makes_a_page_of_bounded_size():
    rng = np.random.default_rng(0)
    n_classes, n_nodes = 300, 399
    study = make_study()
    names = [f"{k}{'x' * 5000}" for k in range(n_classes)]
    summary = replace(
        study.summary,
        classes=tuple((name, 10) for name in names),
        columns=tuple(
            Column(f"{k}{'y' * 5000}", "category", 1, 9, top=(("z" * 5000, 5),) * 9, suspicion="odd")
            for k in range(5000)
        ),
    )
    tree = replace(
        make_tree(),
        classes=tuple(names),
        trace_words="w" * 2_000_000,
        nodes=tuple(
            TreeNode((k - 1) // 2, "= " + "b" * 5000, "t" * 5000 if k < 199 else None, "a" * 5000, 1000.0,
                     tuple(rng.random(n_classes).tolist()), None, int(k < 199))
            for k in range(n_nodes)
        ),
    )  # fmt: skip
    evidence = replace(make_evidence("n" * 500_000), tree=tree)
    reasons = replace(evidence.reasons, label="m" * 500_000, cells=((1.0, "o" * 500_000), (2.0, "p"), (3.0, "q")))
    text = make_report(replace(study, summary=summary), replace(evidence, reasons=reasons))
    assert len(text.encode()) < LIMIT
    Page(text)


def test_the_data_of_the_tree_are_its_nodes_and_steps():
    story = make_tree()
    data = read_tree(Page(make_report(make_study(), make_evidence())))
    assert [node[0] for node in data["nodes"]] == [node.parent for node in story.nodes]
    assert [node[6] for node in data["nodes"]] == [node.cut for node in story.nodes]
    assert data["nodes"][1][5] == [[0, 10.0], [1, 40.0]]
    assert data["steps"][1] == [2, "0.210", "0.030", "0.200"]
    assert (data["chosen"], data["classes"]) == (1, ["apple", "plum"])
    assert data["opened"] == story.one_error  # the size of the pruned tree in the table


def test_the_picture_of_a_node_is_carried_with_the_colours_of_its_bars():
    many = tuple((k, 20.0 - k) for k in range(12))
    picture = NodePicture(("60", "180"), "105", 0.375, (((0, 3.0), (1, 9.0)), (), many), 4)
    story = make_tree()
    tree = replace(story, nodes=(replace(story.nodes[0], picture=picture), *story.nodes[1:]))
    nodes = read_tree(Page(make_report(make_study(), replace(make_evidence(), tree=tree))))["nodes"]
    names, cut, share, bins, missing, is_number = nodes[0][8]
    assert (names, cut, share, missing, is_number) == (["60", "180"], "105", 0.375, 4, True)
    assert bins[:2] == [[[0, 3.0], [1, 9.0]], []]
    assert bins[2] == [*([k, 20.0 - k] for k in range(8)), [-1, 12.0 + 11.0 + 10.0 + 9.0]]
    assert all(len(node) == 8 for node in nodes[1:])
    numbers = make_tree(is_classes=False)
    shades = replace(picture, bins=(((3, 5.0),), ((4, 55.0),)))
    tree = replace(numbers, nodes=(replace(numbers.nodes[0], picture=shades), *numbers.nodes[1:]))
    first, second = read_tree(Page(make_report(make_study(), replace(make_evidence(), tree=tree))))["nodes"][0][8][3]
    assert (first[0][1], second[0][1]) == (3, 4)
    assert first[0][0] != second[0][0]
    assert {first[0][0], second[0][0]} == {shade(LOWEST), shade(1.0)}


def test_on_paper_what_heads_something_stays_with_it():
    page = Page(make_report(make_study(), make_evidence()))
    (style,) = (one["text"] for one in page.all("style"))
    printed = style.partition("@media print")[2]
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", printed)
    kept = {name.strip() for names, body in rules if "break-after: avoid" in body for name in names.split(",")}
    heads = {one["name"] for one in page.elements} & {"h1", "h2", "h3", "h4", "caption", "summary", "thead", "dt"}
    assert heads >= {"h1", "h2", "caption", "summary", "thead"}
    assert heads <= kept


def test_the_text_of_the_tree_is_that_of_the_chosen_step():
    assert draw_text(make_tree()).splitlines() == [
        "weight?  (120 rows)",
        "   ≤ 105  → plum  (50 rows)",
        "   > 105  → apple  (70 rows)",
    ]
    assert "= green" in draw_text(replace(make_tree(), chosen=0))


def test_the_path_stands_over_the_slider():
    chart = PathChart(make_tree())
    assert [chart.place(step) for step in range(3)] == ["100.00%", "50.00%", "0.00%"]
    whole, chosen, root = chart.heights()
    assert chosen > whole > root  # pixels from the top: the lowest error is deepest
    assert chart.height(0.0) - chart.height(0.21) == pytest.approx(0.5 * (chart.height(0.0) - chart.height(0.42)))
    alone = PathChart(replace(make_tree(), steps=make_tree().steps[-1:], chosen=0, one_error=0))
    assert alone.place(0) == "0%"
    alone.draw()


def test_error_bars_are_to_scale_and_outliers_are_arrows():
    spreads = [
        Spread(0.8, 0.1, (0.7, 0.9), True, False),
        Spread(0.75, None, (), False, False),
        Spread(0.7, 0.05, (), False, True),
    ]
    ruler = Ruler([*spreads, Spread(-5.0, 0.1, (-5.0,), False, True)])
    drawn = Page(ruler.draw(spreads[0]))
    bar = next(one["attributes"] for one in drawn.all("line") if one["attributes"]["class"] == "bar")
    dot = drawn.all("circle")[0]["attributes"]
    left, right, middle = (float(one.rstrip("%")) for one in (bar["x1"], bar["x2"], dot["cx"]))
    assert right - middle == pytest.approx(middle - left, abs=0.02)
    tick = next(one["attributes"] for one in drawn.all("line") if one["attributes"]["class"] == "fold")
    assert float(tick["x1"].rstrip("%")) == pytest.approx(left, abs=0.02)  # a fold of 0.7 is one error of 0.1 below 0.8
    assert not Page(ruler.draw(Spread(-5.0, 0.1, (-5.0,), False, True))).all("circle")
    assert 'class="behind"' in ruler.draw(spreads[2])


def test_reports_are_known_again():
    text = make_report(make_study()).encode()
    assert is_report(text)
    assert not is_report(b"<!DOCTYPE html><html><head><title>Spinney</title></head></html>")
    assert not is_report(b"")


def test_markup_escapes_what_is_not_markup():
    assert tag("p", "<", Html("<"), title='"&') == '<p title="&quot;&amp;">&lt;<</p>'
    assert tag("input", disabled=True, hidden=False, value=None, size=1.5) == '<input disabled size="1.5">'
    assert join("a&", tag("br"), between="|") == "a&amp;|<br>"
