"""Numbers in the names of tests are those of `FAULTS.md`."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def numbers_of(name):
    """The faults and findings that the name of a test refers to: "fault_055_to_057_and_061" is 55, 56, 57 and 61."""
    found = {f"F{number}" for number in re.findall(r"^test_f(\d+)_", name)}
    for words in re.findall(r"faults?((?:_(?:\d+|to|and)\b|_(?:\d+|to|and)(?=_))+)", name):
        said = [word for word in words.split("_") if word not in {"", "and"}]
        found |= {str(int(word)) for word in said if word != "to"}
        for place, word in enumerate(said):
            if word == "to":
                found |= {str(number) for number in range(int(said[place - 1]), int(said[place + 1]))}
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_fault_001_no_rows_in_fit", {"1"}),
        ("test_fault_055_to_057_and_061_weights_that_are_none", {"55", "56", "57", "61"}),
        ("test_faults_51_63_64_65_of_validation_rows", {"51", "63", "64", "65"}),
        ("test_trees_of_any_size_without_names_are_shown_faults_157_158", {"157", "158"}),
        ("test_fault_105_a_model_of_2_gigabytes", {"105"}),
        ("test_f2_a_new_class_counts_as_wrong", {"F2"}),
        ("test_float32_keeps_values_apart", set()),
        ("test_default_trees_of_10", set()),
    ],
)
def test_numbers_are_read(name, expected):
    assert numbers_of(name) == expected


def test_every_number_stands_in_the_list():
    text = (TESTS / "FAULTS.md").read_text()
    listed = [int(number) for number in re.findall(r"^(\d+)\. \S", text, re.MULTILINE)]
    assert all(after == before + 1 for before, after in pairwise(listed))
    known = {str(number) for number in listed} | set(re.findall(r"^- (F\d+)\. \S", text, re.MULTILINE))
    named = {
        (str(path.relative_to(TESTS)), node.name, number)
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for number in numbers_of(node.name)
    }
    assert len(named) > 300
    assert [entry for entry in sorted(named) if entry[2] not in known] == []
