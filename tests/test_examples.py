"""Every script of examples/ runs, offline and in an empty folder, and its own checks hold."""

import ast
import runpy
import socket
import warnings
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLES = REPOSITORY / "examples"
LIST = REPOSITORY / "docs" / "examples.md"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
MOST_LINES = 40  # that a script prints: a screen
SLOW = {"compare_methods", "pipeline"}  # a study of every method, a search


def test_there_are_examples_and_the_list_names_each():
    listed = [line.split("`")[1] for line in LIST.read_text(encoding="utf-8").splitlines() if "| [`" in line]
    assert sorted(listed) == [path.name for path in SCRIPTS]
    assert len(SCRIPTS) >= 8


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_says_what_it_shows_and_checks_what_it_prints(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


@pytest.mark.compiled(reason="takes minutes interpreted")
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] if path.stem in SLOW else [], id=path.stem) for path in SCRIPTS],
)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise AssertionError("an example must not need a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as a reader who sees a warning would take it
        runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert 1 <= len(printed) <= MOST_LINES
    assert list(tmp_path.iterdir()) == [], "it leaves no files behind"
