"""Ctrl-C while a process fits, and what it prints."""

import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import NamedTuple

LIMIT = 300  # seconds until a process counts as hung; a cold one compiles first


class Interrupted(NamedTuple):
    """What a process said that was interrupted a second after its first line."""

    lines: tuple[str, str]  # the first, and that after the signal
    waited: float  # seconds between the signal and the second line
    rest: list[str]  # words of what followed
    errors: str


def interrupt(code, tmp_path, *arguments, environment=None):
    """Run code that prints a line, interrupt it, and read on to its end."""
    with (tmp_path / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        first = process.stdout.readline().strip()
        time.sleep(1.0)  # so that the fit is well under way
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        second = process.stdout.readline().strip()
        waited = time.monotonic() - sent
        rest = process.stdout.read().split()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    return Interrupted((first, second), waited, rest, (tmp_path / "stderr").read_text())
