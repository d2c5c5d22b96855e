"""Reports of three tables in Chromium: offline, light and dark, on a phone, by keyboard, without scripts, on paper."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from click.testing import CliRunner

from report_cases import EVIL, make_evidence, make_study
from spinney import datasets
from spinney.cli import main
from spinney.show.report import make_report
from spinney.study.tables import plain

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TOOLS = {"chromium": CHROMIUM, "node": shutil.which("node"), "npm": shutil.which("npm")}
MISSING = [name for name, place in TOOLS.items() if place is None]
N_ROWS = 1500
TABLES = ("glass", "california_housing", "adult")  # classes; numbers; categories with missing values
PAGES = (*TABLES, "evil")  # the last is made by hand, of names that would be markup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)} (Debian: apt install chromium nodejs npm)"),
]


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """playwright-core and axe-core, in the versions that are written down."""
    folder = tmp_path_factory.mktemp("modules")
    shutil.copy(HERE / "package.json", folder)
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"npm cannot install playwright-core: {done.stderr.strip().splitlines()[-1:]}")
    return folder


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of a part of each table."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(0)
    found = {}
    for name in TABLES:
        table = datasets.load(name)
        if table.num_rows > N_ROWS:
            table = table.take(np.sort(rng.choice(table.num_rows, N_ROWS, replace=False)))
        columns = {column: plain(table[column]) for column in table.column_names}
        pyarrow.csv.write_csv(pyarrow.table(columns), folder / f"{name}.csv")
        arguments = [
            folder / f"{name}.csv",
            "--target",
            datasets.source(name).target,
            "--methods",
            "cart,forest,boosting",
        ]
        result = CliRunner().invoke(main, ["study", *map(str, arguments), "--folds", "3x1"])
        assert result.exit_code == 0, result.output
        found[name] = folder / f"{name}.report.html"
    found["evil"] = folder / "evil.report.html"
    found["evil"].write_text(make_report(make_study(EVIL, EVIL, EVIL), make_evidence(EVIL)), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def visits(modules, reports, tmp_path_factory):
    """What a reader saw."""
    pictures = tmp_path_factory.mktemp("pictures")
    pages = [str(page) for page in reports.values()]
    done = subprocess.run(
        ["node", HERE / "visit.mjs", modules, CHROMIUM, pictures, *pages],
        capture_output=True, text=True, timeout=2400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    return {name: seen[str(page)] for name, page in reports.items()}


@pytest.fixture(params=PAGES)
def name(request):
    return request.param


@pytest.fixture
def visit(name, visits):
    return visits[name]


@pytest.fixture
def story(name, reports):
    """The tree that a page holds."""
    text = reports[name].read_text(encoding="utf-8")
    return json.loads(text.split('id="tree-data">')[1].split("</script>")[0])


def test_nothing_is_loaded_and_nothing_goes_wrong(visit):
    assert visit["troubles"] == []
    assert {url.split(":")[0] for url in visit["requests"]} <= {"file", "data"}
    assert len({url for url in visit["requests"] if url.startswith("file:")}) == 1


def test_it_reads_without_scrolling_sideways(visit):
    assert set(visit["sideways"]) == {"light", "dark", "phone", "dark-phone", "zoomed"}
    assert max(visit["sideways"].values()) <= 0


def test_axe_finds_nothing_serious(visit):
    for found in visit["violations"].values():
        assert [one for one in found if one["impact"] in {"serious", "critical"}] == []


def test_the_slider_goes_along_the_pruning_path(visit, story):
    seen = visit["slider"]
    assert seen["most"] == len(story["steps"]) - 1 > 0
    assert seen["start"] == seen["most"] - story["opened"]
    assert seen["pressed"] == max(seen["start"] - 1, 0)
    for state in seen["steps"]:
        value = state["value"]
        n_leaves, error, spread, _ = story["steps"][seen["most"] - value]
        assert state["n_ends"] == n_leaves
        assert state["text"].startswith(f"{n_leaves} lea")
        assert state["text"].endswith(f"{error} ± {spread}")
        cuts = [node[6] for node in story["nodes"]]
        step = seen["most"] - value
        gone = [False] * len(cuts)
        for place, node in enumerate(story["nodes"]):
            gone[place] = place > 0 and (gone[node[0]] or cuts[node[0]] <= step)
        assert state["n_items"] == gone.count(False)


def test_the_tree_folds_and_is_walked_by_keyboard(visit):
    fold, unfold, right, left, end, home, down, again = visit["keys"].values()
    assert (fold["n_items"], fold["n_open"]) == (1, 0)
    assert unfold["n_items"] == visit["slider"]["rest"]["n_items"] > 1
    assert (unfold["level"], right["level"], home["level"]) == (1, 2, 1)
    assert left["level"] == 1 or left["n_items"] < right["n_items"]  # to the parent, or what was unfolded is folded
    assert end["focus"] != home["focus"]
    assert down["focus"] == right["focus"]
    assert again["n_items"] != down["n_items"] or left["level"] == 1


def test_the_tree_folds_by_mouse_and_tells_its_rules(visit):
    seen = visit["mouse"]
    assert seen["folded"]["n_items"] == 1 < seen["before"]["n_items"]
    assert "Rows come here by" in seen["rule"]
    assert seen["unfolded"]["n_items"] == seen["before"]["n_items"]
    assert [layout[1] for layout in seen["layouts"]] == ["true"] * 3
    assert len({layout[2] for layout in seen["layouts"]}) == 1


def test_words_are_found_in_the_tree(visit):
    assert visit["search"]["hits"] >= 1
    assert visit["search"]["said"].split()[0] == str(visit["search"]["hits"])
    assert visit["search"]["left"] == 0


def test_the_theme_turns(visit):
    theme = visit["theme"]
    assert theme["before"] == theme["again"] != theme["after"]


def test_everything_is_reached_by_keyboard(visit):
    reached = {"theme", "tree-step", "treeitem", "tree-in", "tree-all", "tree-search", "down", "region", "summary"}
    assert reached <= set(visit["reached"])


def test_paper_has_the_whole_tree_and_no_controls(visit):
    assert visit["print"]["controls"] == 0
    assert visit["print"]["ground"] == "rgb(255, 255, 255)"
    assert visit["print"]["n_open"] + visit["print"]["n_ends"] == visit["print"]["n_items"]


def test_without_scripts_the_tree_is_text(visit, story):
    assert not visit["still"]["slider"]
    assert visit["still"]["sections"] == 12
    assert story["nodes"][0][2] in visit["still"]["tree"].splitlines()[0]
