"""The files around the code: workflow, hooks, citation, forms, release steps. They call and say what exists."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import spinney
from spinney.cli import main

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
WORKFLOW = REPOSITORY / ".github" / "workflows" / "ci.yml"
HOOKS = REPOSITORY / ".pre-commit-config.yaml"
CITATION = REPOSITORY / "CITATION.cff"
FORMS = sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))  # all but config.yml
RELEASING = REPOSITORY / "docs" / "releasing.md"
YARD = [
    WORKFLOW,
    HOOKS,
    CITATION,
    RELEASING,
    *(REPOSITORY / ".github").rglob("*.yml"),
    *(REPOSITORY / ".github").glob("*.md"),
]


def read_yaml(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


# --- The menu -----------------------------------------------------------------------------------------------


def recipes():
    """The entries of the Makefile's menu, {name: its recipe}."""
    text = (REPOSITORY / "Makefile").read_text()
    for name, lines in re.findall(r"^define ([A-Z_]+)\n((?:.*\n)*?)endef$", text, re.MULTILINE):
        text = text.replace(f"$({name})", lines.strip().replace("\n", "\n\t"))
    return dict(re.findall(r"^([a-z-]+):.*?## .*\n((?:\t.*\n)*)", text, re.MULTILINE))


def called_entries(commands):
    """Names that `make` is called with in commands."""
    calls = [
        re.fullmatch(r"make((?: +[a-z-]+)+)", line.strip()) for command in commands for line in command.split("\n")
    ]
    return [name for call in calls if call for name in call[1].split()]


def run_steps(workflow):
    """The commands of all jobs of a workflow."""
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


def test_the_workflow_calls_entries_of_the_menu_and_leaves_none_out_that_a_change_must_pass():
    commands = run_steps(read_yaml(WORKFLOW))
    called = called_entries(commands)
    assert set(called) <= set(recipes())
    assert {"lint", "type", "test", "test-nojit", "test-bounds", "docs"} <= set(called)
    assert [command for command in commands if not command.startswith("make ")] == [".venv/bin/spinney doctor"]


PAGES = [
    *REPOSITORY.glob("*.md"),
    *(REPOSITORY / "docs").glob("*.md"),
    *(REPOSITORY / "docs" / "tutorials").glob("*.md"),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_entries_that_a_page_names_are_in_the_menu(path):
    named = set(re.findall(r"`make ([a-z-]+)`", path.read_text(encoding="utf-8")))
    assert named <= set(recipes())


def test_the_check_of_calls_can_fail():
    workflow = yaml.safe_load("jobs: {a: {steps: [{run: make lint}, {uses: x}, {run: make tset a}, {run: other b}]}}")
    assert called_entries(run_steps(workflow)) == ["lint", "tset", "a"]
    assert {"help", "lint", "test-all"} <= set(recipes())
    assert "tset" not in recipes()
    assert "lint-imports" in recipes()["lint"]


# --- The workflow -------------------------------------------------------------------------------------------


def test_the_workflow_tests_the_oldest_and_the_newest_python():
    pythons = read_yaml(WORKFLOW)["jobs"]["test"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: 3."
    minors = [int(line.removeprefix(prefix)) for line in PROJECT["project"]["classifiers"] if line.startswith(prefix)]
    assert pythons == [f"3.{min(minors)}", f"3.{max(minors)}"]
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"


def test_the_oldest_releases_are_the_lower_bounds_of_the_project():
    pinned = re.findall(r"^([a-z-]+)==([\d.]+)$", (REPOSITORY / ".github" / "oldest.txt").read_text(), re.MULTILINE)
    assert {name for name, _ in pinned} == {"numba", "scikit-learn"}
    bounds = dict(re.match(r"([a-z-]+)>=([\d.]+)", line).groups() for line in PROJECT["project"]["dependencies"])
    for name, version in pinned:
        assert version.removesuffix(".0") == bounds[name].removesuffix(".0"), name


def test_the_workflow_may_only_read():
    assert read_yaml(WORKFLOW)["permissions"] == {"contents": "read"}


# --- Hooks --------------------------------------------------------------------------------------------------


def test_hooks_are_the_checks_of_the_menu_and_download_nothing():
    (repo,) = read_yaml(HOOKS)["repos"]
    assert repo["repo"] == "local"
    assert {hook["language"] for hook in repo["hooks"]} == {"system"}
    programs = [hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in repo["hooks"]]
    checks = set(re.findall(r"\$\(BIN\)/([a-z-]+)", recipes()["lint"] + recipes()["type"]))
    assert checks == {"ruff", "lint-imports", "mypy"}
    assert set(programs) == checks


# --- The citation -------------------------------------------------------------------------------------------


def test_the_citation_has_the_version_the_authors_and_the_licence_of_the_package():
    citation = read_yaml(CITATION)
    assert citation["version"] == spinney.__version__, "raise it in CITATION.cff too: docs/releasing.md"
    assert citation["authors"] == PROJECT["project"]["authors"]
    assert citation["license"] == PROJECT["project"]["license"]
    assert {"cff-version", "message", "title"} <= set(citation)


# --- Forms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_what_a_forge_asks_of_one(path):
    form = read_yaml(path)
    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_the_form_for_faults_asks_for_doctor():
    fields = {field.get("id"): field for field in read_yaml(FORMS[0])["body"]}
    assert "`spinney doctor`" in fields["doctor"]["attributes"]["label"]
    assert fields["doctor"]["validations"]["required"]
    assert "doctor" in main.list_commands(None)


# --- All of them --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", YARD, ids=lambda path: path.name)
def test_the_files_name_no_hosts_and_only_files_that_exist(path):
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    named = re.findall(r"(?<![\w/])(?:[A-Z]{4,}\.(?:md|cff)|docs/[\w/-]+\.md|tests/[\w/]+\.py)\b", text)
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


def test_the_release_steps_call_entries_of_the_menu():
    text = RELEASING.read_text(encoding="utf-8")
    named = re.findall(r"`make ([a-z-]+)`", text)
    assert set(named) <= set(recipes())
    assert {"check", "test-all", "test-nojit", "test-bounds", "docs", "bench"} <= set(named)
    for file in ("CHANGELOG.md", "CITATION.cff", "tests/golden", "src/spinney/__init__.py"):
        assert file in text
