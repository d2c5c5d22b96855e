"""The names that docs/glossary.md gives exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import spinney

PACKAGE = Path(spinney.__file__).parent
GLOSSARY = Path(__file__).resolve().parents[1] / "docs" / "glossary.md"


def entries():
    """The rows of its tables, as {word: names in its third column}."""
    rows = [line.strip("| ").split("|") for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if "|" in line]
    found = [(row[0].strip(), re.findall(r"`([^`]+)`", row[2])) for row in rows if len(row) >= 3]
    return [(word, names) for word, names in found if word not in {"word", "---"}]


def is_public(name):
    """Whether a name can be reached from the public ones; a fitted attribute if its class describes it."""
    owner, _, member = name.partition(".")
    if owner not in spinney.__all__:
        return False
    value = getattr(spinney, owner)
    return not member or hasattr(value, member) or (member.endswith("_") and member in (value.__doc__ or ""))


@cache
def names_of(path):
    """What a source file defines, as {name: names inside it}, without importing it: kernels would load a compiler."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name, body=body):
                inside = [part.name for part in body if isinstance(part, ast.FunctionDef)]
                inside += [part.target.id for part in body if isinstance(part, ast.AnnAssign)]
                found[name] = set(inside)
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = set()
            case ast.Assign(targets=targets):
                found |= {
                    part.id: set() for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
                }
    return found


def is_defined(name):
    """Whether a dotted name leads to a module, to something in one, or to a member of a class in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        stem = PACKAGE.joinpath(*parts[:n])
        path = stem.with_suffix(".py") if stem.with_suffix(".py").is_file() else stem / "__init__.py"
        if path.is_file():
            rest = parts[n:]
            names = names_of(path)
            return not rest or (rest[0] in names and (len(rest) == 1 or rest[1] in names[rest[0]]))
    return False


def is_there(name):
    return is_public(name) or is_defined(name)


@pytest.mark.parametrize(("word", "names"), entries(), ids=lambda part: part if isinstance(part, str) else "")
def test_a_word_of_the_glossary_names_what_exists(word, names):
    assert names, f"{word} has no name in the code"
    assert [name for name in names if not is_there(name)] == []


def test_words_stand_once_and_the_usual_ones_are_there():
    words = [word for word, _ in entries() if word != "link"]  # of a node, and of a loss; the page says so
    assert len(words) == len(set(words))
    usual = (
        "row feature value code level bin test branch leaf split scan partition grow route bag out-of-bag raw held-out"
    )
    assert {*usual.split(), "staged", "surrogate", "legend"} <= set(words)


@pytest.mark.parametrize(
    "name", ["tree.structure.Tree.first_son", "tree.none", "_types.NONE", "CARTClassifier.fitt", "study.none", "Cart"]
)
def test_the_check_of_names_can_fail(name):
    assert not is_there(name)
    assert is_there("tree.structure.Tree.first_child")
