"""docs/architecture.md and its picture show the layers that the contract has, and every folder."""

import ast
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import spinney

PACKAGE = Path(spinney.__file__).parent
REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "architecture.md"
PICTURE = REPOSITORY / "docs" / "images" / "architecture.svg"
FOLDERS = sorted(  # of source; the head of `datasets` is for users, who do not care for its one file
    path.parent for path in PACKAGE.rglob("__init__.py") if path.parent not in {PACKAGE, PACKAGE / "datasets"}
)
TWELVE = (  # what a reader must find the place of in a minute
    *("criterion", "loss", "bagging scheme", "vector leaves", "ranking", "SHAP values", "ONNX", "larger than memory"),
    *("Dask", "layout of a node", "chart in the report", "option of the command"),
)


def contract_layers():
    """The layers by their contract, top to bottom; layers in one line together, those that may be absent left out."""
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (lines,) = [contract["layers"] for contract in contracts if contract.get("containers") == ["spinney"]]
    return [line.split(" | ") for line in lines if not line.startswith(("(", "__"))]


def drawn_layers():
    texts = ET.parse(PICTURE).getroot().iter("{http://www.w3.org/2000/svg}text")
    return [text.text for text in texts if text.get("class") == "layer"]


def test_the_picture_has_the_layers_of_the_contract_in_order():
    drawn = drawn_layers()
    contract = contract_layers()
    place = {name: i for i, names in enumerate(contract) for name in names}
    assert [name for name in drawn if name not in place] == [], "drawn, and not in the contract of pyproject.toml"
    assert [place[name] for name in drawn] == sorted(place[name] for name in drawn)
    assert {name for name in place if not name.startswith("_")} <= set(drawn), "a layer that is not drawn"


def test_the_page_has_a_paragraph_on_every_folder():
    text = PAGE.read_text(encoding="utf-8")
    folders = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    assert [name for name in folders if f"**`{name}/`**" not in text] == []
    assert "**`plot.py`**" in text


def test_the_page_says_where_to_change_the_twelve_things():
    rows = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    subjects = [row[1] for row in rows if re.search(r"\*\*.+\*\*", row[1])]
    assert len(subjects) == 12
    for subject in TWELVE:
        assert any(subject in found for found in subjects), subject


def unlisted(head, names):
    """Names that no line of a head begins with and says something of: in a table, or in columns of text."""
    line = r"^\s*(?:\| )?`?{}(?:\.py)?`?(?: \| |\s{{2,}})[^\s|]"
    return [name for name in names if not re.search(line.format(name), head, re.MULTILINE)]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_the_head_of_a_folder_lists_its_files(folder):
    head = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    files = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    assert unlisted(head, files) == []
    assert set(re.findall(r"^\| `(\w+)\.py` \|", head, re.MULTILINE)) <= set(files), "listed, and not there"


def test_the_check_of_heads_can_fail():
    head = "See draws.\n\n| `binning.py` | bins |\n| `empty.py` | |\n    lanes     many rows\n    any_tree\n"
    names = ["binning", "draws", "lanes", "any_tree", "bin", "empty"]
    assert unlisted(head, names) == ["draws", "any_tree", "bin", "empty"]


def test_the_picture_needs_no_other_file_and_is_drawn_for_dark_pages_too():
    text = PICTURE.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text
    assert "sans-serif" in text
    assert set(re.findall(r"https?://\S+?(?=\")", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in text


# --- README and CONTRIBUTING tell the same story -------------------------------------------------------------


def test_the_layout_of_the_readme_has_every_folder_in_the_order_of_the_layers():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    layout = text[text.index("## Layout") :].split("```")[1]
    listed = re.findall(r"^(?:src/spinney/| {12})(\w+)(?:/|\.py) ", layout, re.MULTILINE)
    folders = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    assert sorted(listed) == sorted([*folders, "plot"])
    place = {name: i for i, names in enumerate(contract_layers()) for name in names}
    assert [place[name] for name in listed] == sorted(place[name] for name in listed)
    tops = [path.name for path in REPOSITORY.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))]
    kept = [name for name in tops if name not in {"src", "build", "dist"} and "egg" not in name]
    assert [name for name in kept if not re.search(rf"^{name}/ ", layout, re.MULTILINE)] == []


def test_contributing_lists_the_layers_of_the_contract():
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("`cli` > ")]
    told = [re.findall(r"`(\w+)`", part) for part in line.rstrip(";").split(" > ")]
    layers = [[name for name in names if name == "_jit" or not name.startswith("_")] for names in contract_layers()]
    assert told == [names for names in layers if names]
