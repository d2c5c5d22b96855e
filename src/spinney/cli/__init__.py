"""The command `spinney`; each command imports what it needs when it runs."""

from __future__ import annotations

from typing import Any


def run() -> None:
    """Run the command line of this process, which ends with it."""
    try:
        from spinney.cli.signals import Watch
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    with Watch(owns_process=True):  # before the rest is read: a signal is answered from here on
        from spinney.cli.commands import main

        main()


def __getattr__(name: str) -> Any:
    """The command as an object of click, `main`, read when it is first asked for."""
    if name == "main":
        from spinney.cli.commands import main

        return main
    raise AttributeError(f"module 'spinney.cli' has no attribute {name!r}")


__all__ = ["main", "run"]
