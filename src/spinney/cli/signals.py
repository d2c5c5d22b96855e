"""SIGINT and SIGTERM: an exception where nothing breaks by it, and in any case an end.

    signal ─┬─► Python's handler, in the main thread ──► raises; not while an import is under way
            └─► a byte in a pipe ──► a thread that watches: calls the handler again where it did not raise, and ends
                                     the process where the command has not ended in time

The exception stops fits, removes temporary files and gives the terminal its cursor back. It can come late, since Python
calls no handler while the main thread is in C code (a compile, a sort), and it can get lost in a callback. Hence
the thread, which knows of a signal at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn, Self

from spinney._files import remove_unfinished
from spinney._signals import is_importing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

LIMIT_SECONDS = 1.5  # from a signal to the end of the process, if the command does not end by itself
IMPORT_SECONDS = 0.5  # the same while an import is under way, most of them at the start of a command
REPORT_SECONDS = 10.0  # the same after SIGINT in a command that then reports what it has found so far: `study`
RETRY_SECONDS = 0.02
PIPE_BYTES = 4096
STOPPED = "stopped"  # what is said at Ctrl-C
SHOW_CURSOR = "\x1b[?25h"  # which a progress bar has hidden
NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM has come: what stops at Ctrl-C stops, temporary files are removed."""


class Watch:
    """Catches both signals for a command, from `with` on until its end.

    Parameters
    ----------
    owns_process : bool
        Whether the process has no other purpose than the command: then a signal may end it. Otherwise (in a test, or
        where a program calls the command) handlers only raise, and are restored at the end.
    """

    def __init__(self, *, owns_process: bool) -> None:
        self.owns_process = owns_process
        self.number: int | None = None  # the signal that has come and is not answered yet
        self.is_raised = False  # whether its exception is on its way
        self.is_handled = False  # whether Python has called the handler since the watching thread last looked
        self.is_repeated = False  # whether the next call of the handler is one that the watching thread asks for
        self.is_tidy = owns_process  # whether there is nothing to undo: no command under way
        self.is_over = False
        self.report_seconds = LIMIT_SECONDS  # from SIGINT to the end, see `reporting`
        self.deadline = 0.0
        self.before: dict[int, Any] = {}
        self.unraisable_before: Callable[[Any], object] = sys.unraisablehook
        self.reader = self.writer = -1
        self.thread = threading.Thread(target=self.watch, name="spinney-signals", daemon=True)

    def __enter__(self) -> Self:
        global _current  # noqa: PLW0603
        self.reader, self.writer = os.pipe()
        self.thread.start()
        if self.owns_process and hasattr(os, "set_blocking"):  # Windows has it from Python 3.12 on
            os.set_blocking(self.writer, False)
            signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        _current = self
        sys.unraisablehook = self.take_lost
        for number in NUMBERS:
            handler = signal.getsignal(number)
            if handler != signal.SIG_IGN:  # as nohup and shells ask for, of jobs in the background
                self.before[number] = handler
                signal.signal(number, self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        global _current  # noqa: PLW0603
        _current = None
        self.is_over = True
        if self.owns_process:
            signal.set_wakeup_fd(-1)
        self.wake()
        self.thread.join(LIMIT_SECONDS)  # before handlers are restored: it sends signals to this thread
        for number, handler in self.before.items():
            # At the end of a process a signal is no reason for a traceback.
            signal.signal(number, signal.SIG_DFL if self.owns_process else handler)
        sys.unraisablehook = self.unraisable_before
        os.close(self.writer)
        os.close(self.reader)

    # --- in the main thread ---

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise; or leave it to the watching thread to call this again."""
        self.is_handled = True
        is_repeated, self.is_repeated = self.is_repeated, False
        if is_repeated and (self.is_raised or self.number is None):
            return
        if self.is_raised:
            # A second exception would cut short what undoes things because of the first; but somebody is in a hurry.
            self.deadline = min(self.deadline, time.monotonic() + LIMIT_SECONDS)
            return
        if self.number is None:
            self.deadline = time.monotonic() + IMPORT_SECONDS
        self.number = number
        if self.is_tidy:
            self.leave(number)
        if is_importing(frame):
            self.wake()
            return
        self.is_raised = True
        self.deadline = time.monotonic() + (self.report_seconds if number == signal.SIGINT else LIMIT_SECONDS)
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    def take_lost(self, unraisable: Any) -> None:
        """Notice that Python has dropped the exception: raised in a finalizer or a callback, it went no further."""
        if self.number is not None and isinstance(unraisable.exc_value, KeyboardInterrupt):
            self.is_raised = False
            self.wake()
        else:
            self.unraisable_before(unraisable)

    def answer(self) -> None:
        """Take the signal for answered: the command goes on, and the next signal is a new one."""
        self.number, self.is_raised = None, False

    def leave(self, number: int) -> NoReturn:
        """End the process; wait for nobody, neither threads nor what the interpreter does at its end."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # closed, full, or in the middle of a write
                stream.flush()
        end_process(number)

    # --- in the thread that watches ---

    def wake(self) -> None:
        """Let the watching thread look."""
        with contextlib.suppress(OSError):
            os.write(self.writer, b"\0")

    def watch(self) -> None:
        """Wait for signals; see to it that each is answered."""
        while not self.is_over:
            numbers = b""
            if self.number is None:  # else one has come while the last one was being forgotten
                self.is_handled = False
                # 0 comes from `wake`; other signals, such as the alarm of a budget, are not this thread's business
                numbers = bytes(one for one in os.read(self.reader, PIPE_BYTES) if one in NUMBERS)
            self.pursue(numbers[0] if numbers else None)
            self.forget()

    def pursue(self, number: int | None) -> None:
        """Call the handler until it raises, and end the process at the deadline.

        number : the signal that has come; None where the handler has already been called.
        """
        # For a main thread that does not come to call the handler. Once it has, the handler's deadline counts.
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self.is_over and (self.number is not None or (number is not None and not self.is_handled)):
            time.sleep(RETRY_SECONDS)
            if self.owns_process and time.monotonic() > (deadline if self.number is None else self.deadline):
                end_process(self.number or number or signal.SIGTERM)
            if self.number is not None and not self.is_raised:
                self.is_repeated = True
                interrupt_main(self.number)

    def forget(self) -> None:
        """Read what signals have left in the pipe that were answered meanwhile."""
        with contextlib.suppress(OSError):  # Windows selects among sockets only
            while not self.is_over and select.select([self.reader], [], [], RETRY_SECONDS)[0]:
                os.read(self.reader, PIPE_BYTES)


def interrupt_main(number: int) -> None:
    """Let the main thread call its handler of a signal, also where it waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


def end_process(number: int) -> NoReturn:
    """Remove what is unfinished, and end."""
    remove_unfinished()
    with contextlib.suppress(OSError, ValueError):  # no stderr; Windows selects among sockets only
        last_words = (SHOW_CURSOR if os.isatty(2) else "") + (f"{STOPPED}\n" if number == signal.SIGINT else "")
        if select.select([], [2], [], 0.0)[1]:  # a reader that has stopped reading is not waited for
            os.write(2, last_words.encode())
    os._exit(128 + number)


_current: Watch | None = None


def current() -> Watch | None:
    """The watch of the command under way."""
    return _current


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let signals raise in what is run here; elsewhere they end a process of the command's own at once."""
    watch = _current
    if watch is None:
        yield
        return
    watch.is_tidy = False
    try:
        yield
    finally:
        watch.is_tidy = watch.owns_process


@contextlib.contextmanager
def reporting() -> Iterator[None]:
    """Leave what is run here the time to report what it has found when SIGINT comes; other commands end sooner."""
    watch = _current
    if watch is None:
        yield
        return
    watch.report_seconds = REPORT_SECONDS
    try:
        yield
    finally:
        watch.report_seconds = LIMIT_SECONDS


def number_of(error: BaseException) -> int | None:
    """The signal that has ended a command by this exception; None if none has."""
    if _current is not None and _current.number is not None:
        return _current.number  # whatever has become of the exception on its way
    if isinstance(error, Terminated):
        return signal.SIGTERM
    return signal.SIGINT if isinstance(error, KeyboardInterrupt) else None


def answer() -> None:
    """Take a signal that has come for answered: the command goes on, and the next signal is a new one."""
    if _current is not None:
        _current.answer()


def _release() -> None:
    """Give the child of a fork its own signals: they are no business of the parent's pipe."""
    if _current is not None:
        signal.set_wakeup_fd(-1)
        for number, handler in _current.before.items():
            signal.signal(number, handler)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release)
