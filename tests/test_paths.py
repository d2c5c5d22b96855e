"""Paths that the pages name exist: a page that sends its reader to a file that has moved is worse than none."""

import re
from pathlib import Path

import pytest

import spinney
from pages import FENCE, REPOSITORY

PACKAGE = Path(spinney.__file__).parent
KERNELS = PACKAGE / "kernels"
PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in REPOSITORY.rglob("*.md")
    if not any(part.startswith((".venv", "_build", "node_modules")) for part in path.parts)
)
HOMES = [REPOSITORY, PACKAGE, KERNELS]  # what a path may begin in: `tests/naive.py`, `tree/grow.py`, `boost/driver.py`
FOLDERS = {path.name for home in (PACKAGE, KERNELS) for path in home.iterdir() if (path / "__init__.py").exists()}
TOPS = {path.name for path in REPOSITORY.iterdir() if path.is_dir()} | FOLDERS
MADE = ("docs/_build", "docs/api", "dist/", ".venv")  # by the menu, not kept


def is_there(path, folder):
    """Whether a path leads somewhere, with or without `.py`, `*` standing for anything; `folder` is the page's own."""
    path = path.rstrip("/")
    return any(any(home.glob(form)) for home in [*HOMES, folder] for form in (path, f"{path}.py"))


def code_paths(text):
    """Paths in backticks, outside of fences and links: where links lead is tested with the pages."""
    text = re.sub(r"\[[^\]]*\]\([^)]*\)", "", FENCE.sub("", text))
    spans = [span.split(":")[0] for span in re.findall(r"`([^`\n]+)`", text)]
    paths = [span for span in spans if re.fullmatch(r"[\w.*-]+(/[\w.*-]*)*", span) and not span.startswith(MADE)]
    return [path for path in paths if re.search(r"\w\.py$", path) or ("/" in path and path.split("/")[0] in TOPS)]


def drawn_paths(text):
    """Modules in drawings (fences without a language): `tree/grow` and its like."""
    fences = [fence[2] for fence in FENCE.finditer(text) if not fence[1]]
    folders = "|".join(sorted(FOLDERS))
    return [path for fence in fences for path in re.findall(rf"(?<![\w/.-])(?:{folders})/[a-z_/]*\w", fence)]


def missing_paths(text, folder=REPOSITORY):
    """What a page in a folder names that is not there."""
    return [path for path in [*code_paths(text), *drawn_paths(text)] if not is_there(path, folder)]


@pytest.mark.parametrize("page", PAGES)
def test_paths_that_a_page_names_exist(page):
    path = REPOSITORY / page
    assert missing_paths(path.read_text(encoding="utf-8"), path.parent) == []


def test_the_check_of_paths_can_fail():
    page = "See `tree/grow.py`, `kernels/tree/`, `tests/naive*.py`, `boost/driver.py:grow`, `_types.py` and `a/b`."
    assert missing_paths(page) == []
    assert len(code_paths(page)) == 5
    assert missing_paths("See `tree/target.py`, `kernels/route`, `tests/none*.py` and `_pool.py`.") == [
        *("tree/target.py", "kernels/route", "tests/none*.py", "_pool.py")
    ]
    assert missing_paths("```\n X ─ table/ingest ─► tree/target ─► 1/2\n```\n") == ["tree/target"]
    assert missing_paths("```python\ntree/target\n```\n") == []
