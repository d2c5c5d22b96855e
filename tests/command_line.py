"""The command, run in this process, and what a refusal looks like."""

from click.testing import CliRunner

from spinney.cli import main

TENNIS = """outlook,humidity,play
sunny,high,no
sunny,high,no
overcast,high,yes
rain,high,yes
rain,normal,yes
sunny,normal,yes
"""


def run(*arguments, stdin=None, **options):
    return CliRunner(**options).invoke(main, [str(argument) for argument in arguments], input=stdin)


def works(*arguments, **options):
    """The text of a command that must succeed."""
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.stderr
    assert result.exception is None
    return result.stdout


def fails(result, *words):
    """One clear line, exit code 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    for word in words:
        assert word in result.stderr
