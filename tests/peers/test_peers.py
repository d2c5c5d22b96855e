"""scikit-learn's own tests with our classes in the place of its own: what does not pass is listed, with the reason."""

import tomllib

import pytest
import sklearn

from peers.running import FILES, KINDS, ROOT, compare, match, read_expected, run_file

VERSION = "1.9"  # whose tests the list is about

pytestmark = pytest.mark.compiled(reason="tests of another library, in a process of their own")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.skipif(not sklearn.__version__.startswith(VERSION), reason=f"the list is that of scikit-learn {VERSION}")
def test_tests_of_scikit_learn_pass_but_those_that_are_listed(name):
    outcomes = run_file(name)
    uncovered, idle, passing = compare(outcomes, read_expected(), name)
    told = "\n".join(f"{test}: {outcomes[test]['words']}" for test in uncovered)
    assert not uncovered, f"tests that fail without a reason in expected.toml:\n{told}"
    assert not idle, "reasons in expected.toml that no failing test needs"
    assert not passing, "tests that pass, but are listed in expected.toml"


def test_the_list_has_kinds_reasons_and_names():
    expected = read_expected()
    assert {kind for kind, _, _ in expected} <= set(KINDS)
    assert all(why.strip() and tests for _, why, tests in expected)
    names = [test for _, _, tests in expected for test in tests]
    assert len(names) == len(set(names))
    assert {name.partition("::")[0] for name in names} <= set(FILES)


def test_the_page_tells_every_decision():
    """By words that stand in it once or more."""
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    reasons = tomllib.loads((ROOT / "tests" / "peers" / "expected.toml").read_text(encoding="utf-8"))["reason"]
    decisions = [reason for reason in reasons if reason["kind"] == "decision"]
    assert decisions
    assert not [reason["why"] for reason in decisions if not reason.get("told") or reason["told"] not in page]


@pytest.mark.parametrize(
    ("pattern", "is_match"),
    [("a.py::t", True), ("a.py::t[x-1]", True), ("a.py::t[x-*]", True), ("a.py::t[y-*]", False), ("a.py::tt", False)],
)
def test_patterns_name_tests(pattern, is_match):
    assert match(pattern, "a.py::t[x-1]") is is_match


def test_the_comparison_can_fail():
    outcomes = {"a.py::f": {"outcome": "failed"}, "a.py::g": {"outcome": "passed"}, "a.py::h": {"outcome": "failed"}}
    expected = [("decision", "why", ["a.py::f", "a.py::g", "a.py::gone"])]
    uncovered, idle, passing = compare(outcomes, expected, "a.py")
    assert uncovered == ["a.py::h"]
    assert [pattern for _, pattern in idle] == ["a.py::g", "a.py::gone"]
    assert passing == ["a.py::g"]
