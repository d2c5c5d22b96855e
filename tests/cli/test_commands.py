"""What all commands share: how they end, what they say of errors, on which terminals."""

import errno
import os
import signal
import subprocess
import sys
import time

import click
import pytest
from click.testing import CliRunner

import spinney
from command_line import TENNIS, run, works
from spinney.cli import commands, main
from spinney.cli.group import in_one_line, printable


@pytest.fixture
def tennis(tmp_path):
    path = tmp_path / "tennis table.csv"
    path.write_text(TENNIS)
    return path


def shell(*arguments, **environment):
    """A process of its own: exit code, bytes of stdout, text of stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "spinney", *map(str, arguments)],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout, done.stderr.decode()


# --- help ---------------------------------------------------------------------------------------------------------


def test_version_and_help():
    assert works("--version") == f"spinney {spinney.__version__}\n"
    text = works("--help")
    names = {
        "study",
        "train",
        "store",
        "predict",
        "evaluate",
        "inspect",
        "tree",
        "trace",
        "prune",
        "explain",
        "export",
        "import",
        "datasets",
        "warmup",
        "doctor",
    }
    assert names == set(commands.main.commands)
    assert names <= set(text.split())
    assert "_SPINNEY_COMPLETE=bash_source" in text


def test_every_command_has_help():
    for name, command in commands.main.commands.items():
        assert command.help, name
        assert all(option.help for option in command.params if isinstance(option, click.Option)), name
        assert works(name, "--help").startswith("Usage: ")


def test_python_m_spinney():
    assert shell("--version")[1].decode() == f"spinney {spinney.__version__}\n"


def test_the_shell_completes_commands(monkeypatch):
    monkeypatch.setenv("COMP_WORDS", "spinney tr")
    monkeypatch.setenv("COMP_CWORD", "1")
    result = CliRunner(env={"_SPINNEY_COMPLETE": "bash_complete"}).invoke(main, prog_name="spinney")
    assert {line.split(",")[1] for line in result.stdout.splitlines()} == {"train", "tree", "trace"}


# --- errors -------------------------------------------------------------------------------------------------------


def test_an_error_of_ours_is_not_hidden(monkeypatch):
    def broken():
        raise ZeroDivisionError

    monkeypatch.setattr(spinney.datasets, "names", broken)
    assert isinstance(run("datasets").exception, ZeroDivisionError)


def test_an_error_is_one_short_line_without_control_characters():
    assert in_one_line(ValueError("two\nlines\x1b[31m")) == "two lines\\x1b[31m"
    assert len(in_one_line(ValueError("x" * 10_000))) < 1100
    assert in_one_line(ValueError()) == "ValueError"
    assert in_one_line(FileNotFoundError(errno.ENOENT, "No such file", "a.csv")) == "a.csv: No such file"
    assert in_one_line(OSError(errno.ENOSPC, "No space left on device")) == "No space left on device"
    assert printable("a\u202eb") == "a\\u202eb"
    assert printable("größe 模型") == "größe 模型"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (MemoryError("8 GB are needed"), 1),
        (PermissionError(errno.EACCES, "Permission denied"), 2),
        (ImportError("no module"), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(error, code, monkeypatch):
    def stop():
        raise error

    monkeypatch.setattr(spinney.datasets, "names", stop)
    result = run("datasets")
    assert result.exit_code == code
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


def test_ctrl_c_before_a_command_runs(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Group, "parse_args", stop)
    result = run("datasets")
    assert result.exit_code == 130
    assert "Abort" not in result.output


def test_a_full_disk_leaves_nothing_behind_fault_153(tennis, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    old = tmp_path / "m.spn"
    old.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    for command in (["train", tennis, "--target", "play"], ["tree", tennis, "--target", "play"], ["datasets", "led"]):
        if command[0] == "datasets":
            command[1], out = "play_tennis", tmp_path / "out.csv"
        else:
            out = old
        result = run(*command, "--out", out, "--force")
        assert result.exit_code == 1
        assert "No space left" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.spn", "tennis table.csv"]
    assert old.read_text() == "old"


def test_an_interrupted_write_leaves_nothing_behind_fault_154(tennis, tmp_path, monkeypatch):
    def interrupt(_):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5.0)  # the signal comes first

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(os, "fsync", interrupt)
    result = run("train", tennis, "--target", "play", "--out", tmp_path / "m.spn")
    assert result.exit_code == 143
    assert result.stdout == ""
    assert "Error" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tennis table.csv"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_warnings_are_lines_told_once(monkeypatch):
    import warnings

    names = spinney.datasets.names()

    def warn():
        for _ in range(2):
            warnings.warn("look out", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return names

    monkeypatch.setattr(spinney.datasets, "names", warn)
    assert run("datasets").stderr == "Warning: look out\n"


# --- terminals ----------------------------------------------------------------------------------------------------


def test_a_reader_that_goes_away_is_no_error_fault_151(tmp_path):
    path = tmp_path / "m.spn"
    works("train", "weather_numeric", "--method", "cart", "--out", path)
    big = tmp_path / "big.csv"
    row = "sunny,85,85,FALSE,no\n"
    big.write_text("outlook,temperature,humidity,windy,play\n" + row * 20_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "spinney", "predict", str(path), str(big), "--keep"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": ""},  # else a write that is cut short in the middle is no error to Python
    )
    assert process.stdout.read(1) == b"o"
    process.stdout.close()
    assert b"rror" not in process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1


@pytest.mark.slow
def test_a_locale_without_our_letters_fault_155(tennis):
    code, out, err = shell("tree", tennis, "--target", "play", PYTHONIOENCODING="ascii")
    assert (code, err) == (0, "")
    assert b"|- outlook" in out
    code, out, err = shell("trace", PYTHONIOENCODING="latin-1")
    assert (code, err) == (0, "")
    assert b"> outlook" in out


def test_forty_columns_fault_155(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    path = tmp_path / "m.spn"
    commands = (
        ["train", "weather_numeric", "--method", "cart", "--out", "m.spn"],
        ["inspect", "m.spn"],
        ["evaluate", "m.spn", "weather_numeric"],
        ["datasets"],
        ["datasets", "california_housing"],
        ["--help"],
        ["train", "--help"],
    )
    monkeypatch.chdir(path.parent)
    for command in commands:
        lines = works(*command).splitlines()
        long = [line for line in lines if len(line) > 40 and " " in line.strip()[:36]]
        assert not [line for line in long if "SPINNEY_COMPLETE" not in line and "|" not in line], command


def test_no_colours_in_pipes_or_where_they_are_not_wanted(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    for command in (["trace"], ["datasets"], ["tree", "play_tennis"]):
        assert "\x1b" not in works(*command)
