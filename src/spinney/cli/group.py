"""How every command ends: its exit code, its errors in one line, its signals, its warnings, its letters.

| code | meaning |
|---|---|
| 0 | done |
| 1 | the machine: disk full, out of memory; or the reader of a pipe went away |
| 2 | the user can mend it: a wrong option, a file that cannot be read, data that cannot be used |
| 130, 143 | stopped by Ctrl-C, by SIGTERM |
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import shutil
import signal
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import click

from spinney.cli import signals

if TYPE_CHECKING:
    from collections.abc import Iterator

MACHINE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
MOST_LETTERS = 1000  # of an error
USUAL_COLUMNS = 80
PLAIN_LETTERS = {  # for terminals without the letter
    "│": "|", "├": "|", "└": "`", "─": "-", "→": "->", "▶": ">", "•": "*", "✗": "x", "·": "-", "…": "...", "²": "2",
    "±": "+-", "≤": "<=", "≥": ">=", "∞": "inf", "█": "#",
}  # fmt: skip


class Problem(click.ClickException):
    """Something the user can mend."""

    exit_code = 2


class MachineProblem(click.ClickException):
    """Something that is wrong with the machine."""

    exit_code = 1


class Help(click.HelpFormatter):
    """Help whose right column has room in narrow terminals too."""

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and what they mean in two columns."""
        super().write_dl(rows, min(col_max, self.width // 3), col_spacing)


class Context(click.Context):
    """A context with such help."""

    formatter_class = Help


class Commands(click.Group):
    """A group of commands that end in one way."""

    context_class = Context

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command."""
        cmd.context_class = Context
        super().add_command(cmd, name)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command line."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors=spell_plainly.__name__)
        with catching_signals():
            return super().main(*args, **options)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        """Help for terminals narrower than click has in mind."""
        columns = shutil.get_terminal_size().columns
        if columns < USUAL_COLUMNS:
            extra.setdefault("terminal_width", columns)
        try:
            return super().make_context(info_name, args, *rest, **extra)
        except KeyboardInterrupt:  # click would call it an error
            raise SystemExit(128 + signal.SIGINT) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what a user can mend becomes a line."""
        try:
            with signals.interruptible(), warnings_in_lines():
                return super().invoke(ctx)
        except BaseException as error:
            number = signals.number_of(error)
            if number is not None:
                self.stop(ctx, number)
            problem = as_problem(error)
            if problem is None:
                raise
            raise problem from error

    def stop(self, ctx: click.Context, number: int) -> None:
        """End because of a signal."""
        watch = signals.current()
        if watch is not None and watch.owns_process:
            watch.leave(number)
        if number == signal.SIGINT:
            click.echo(signals.STOPPED, err=True)
        ctx.exit(128 + number)


def as_problem(error: BaseException) -> click.ClickException | None:
    """The error in one line; None where it is left as it is."""
    if isinstance(error, BrokenPipeError):  # `spinney ... | head`: click ends quietly
        return None
    if isinstance(error, OSError):
        kind = MachineProblem if error.errno in MACHINE_ERRORS else Problem
        return kind(in_one_line(error))
    if isinstance(error, ValueError | TypeError | ImportError):
        return Problem(in_one_line(error))
    if isinstance(error, NotImplementedError) and type(error).__module__.startswith("pyarrow"):
        return Problem(in_one_line(error))  # a kind of column that has no place in a file
    if isinstance(error, MemoryError):
        return MachineProblem(f"out of memory: {in_one_line(error)}")
    return None


@contextlib.contextmanager
def catching_signals() -> Iterator[None]:
    """Let signals raise in what is run, unless they do already."""
    if signals.current() is not None or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can set handlers
        return
    with signals.Watch(owns_process=False):
        yield


def in_one_line(error: BaseException) -> str:
    """What went wrong, in one line of letters that can be seen."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    text = printable(" ".join(text.split()))
    if len(text) > MOST_LETTERS:
        text = f"{text[:MOST_LETTERS]} ..."
    return text or type(error).__name__


def printable(text: str) -> str:
    """Text with whatever would act on a terminal, or cannot be seen, written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def spell_plainly(error: UnicodeError) -> tuple[str, int]:
    """What stands for letters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(PLAIN_LETTERS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in letters), error.end


codecs.register_error(spell_plainly.__name__, spell_plainly)


@contextlib.contextmanager
def warnings_in_lines() -> Iterator[None]:
    """Print each warning as one line on stderr, without files and source lines."""
    if sys.warnoptions:  # python -W: the user has chosen
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        printed: set[str] = set()

        def show(message: Any, *_: Any, **__: Any) -> None:
            line = in_one_line(message)
            if line not in printed:
                printed.add(line)
                click.echo(f"Warning: {line}", err=True)

        warnings.showwarning = show
        yield
