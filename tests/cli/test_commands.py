"""The commands, as a user types them."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import spinney
from spinney.cli import commands, main

TENNIS = """outlook,humidity,play
sunny,high,no
sunny,high,no
overcast,high,yes
rain,high,yes
rain,normal,yes
sunny,normal,yes
"""


@pytest.fixture
def tennis(tmp_path):
    path = tmp_path / "tennis table.csv"
    path.write_text(TENNIS)
    return path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def fails(result, *words):
    """One clear line, exit code 2, no traceback."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    for word in words:
        assert word in result.stderr


def test_version_and_help():
    assert run("--version").output == f"spinney {spinney.__version__}\n"
    assert {"study", "tree", "warmup", "datasets"} <= set(run("--help").output.split())


def test_python_m_spinney():
    done = subprocess.run([sys.executable, "-m", "spinney", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"spinney {spinney.__version__}\n"


def test_datasets_are_listed_with_their_targets():
    lines = run("datasets").output.splitlines()
    assert [line.split()[0] for line in lines] == spinney.datasets.names()
    assert "MedHouseVal" in next(line for line in lines if line.startswith("california_housing"))


def test_tree_of_a_csv(tennis):
    result = run("tree", tennis, "--target", "play")
    assert result.exit_code == 0
    assert "outlook" in result.output
    assert result.output.splitlines()[-1] == "classification of 'play': 6 rows, 2 features, 3 leaves"


def test_tree_options_reach_the_estimator(tennis):
    result = run("tree", tennis, "--target", "play", "--max-depth", 1, "--criterion", "entropy")
    assert result.output.splitlines()[-1].endswith("2 leaves")


@pytest.mark.parametrize(
    ("values", "options", "kind"),
    [
        ("1.5 2.5 3.0", (), "regression"),
        ("1.0 2.0 1.0 2.0", (), "classification"),
        ("1 2 1 2", (), "classification"),
        ("100000 200000 300000", (), "regression"),  # prices: hardly two are equal
        (" ".join(map(str, range(21))), (), "regression"),
        ("1 2 1 2", ("--task", "regression"), "regression"),
    ],
)
def test_task_is_guessed_from_the_target(values, options, kind, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values.split())))
    assert run("tree", path, "--target", "y", *options).output.splitlines()[-1].startswith(kind)


def test_errors_are_one_line(tennis, tmp_path):
    fails(run("tree", tennis, "--target", "nothing"), "'nothing'", "outlook, humidity, play")
    fails(run("tree", tmp_path / "absent.csv", "--target", "y"), "absent.csv")
    fails(run("tree", tmp_path, "--target", "y"))
    fails(run("tree", tennis), "--target")
    fails(run("tree", tennis, "--target", "play", "--max-depth", 0), "--max-depth")
    fails(run("tree", tennis, "--target", "play", "--criterion", "magic"), "magic")
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,\n")
    fails(run("tree", tmp_path / "t.csv", "--target", "y"), "'y'", "1 missing")
    (tmp_path / "t.xlsx").write_text("x")
    fails(run("tree", tmp_path / "t.xlsx", "--target", "y"), ".xlsx")


def test_an_error_of_ours_is_not_hidden(monkeypatch):
    def broken():
        raise ZeroDivisionError

    monkeypatch.setattr(spinney.datasets, "names", broken)
    assert isinstance(run("datasets").exception, ZeroDivisionError)


def test_interrupt_is_exit_code_130(monkeypatch):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("spinney.study.comparison.compare", interrupt)
    result = run("study")
    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_study_prints_a_table_and_nothing_else_in_a_pipe(monkeypatch):
    from spinney.study import comparison as study

    table = spinney.datasets.load("california_housing").slice(0, 400)
    whole = study.compare
    monkeypatch.setattr(study, "compare", lambda **options: whole(table, **options))
    result = run("study")
    assert result.exit_code == 0
    assert "CART, full depth" in result.stdout
    assert "\x1b" not in result.output


def test_warmup_says_where_kernels_are_kept():
    result = run("warmup")
    assert result.exit_code == 0
    assert "kernels are compiled" in result.stdout


def test_every_command_has_help():
    for name, command in commands.main.commands.items():
        assert command.help, name
        assert all(option.help for option in command.params if isinstance(option, click.Option)), name
