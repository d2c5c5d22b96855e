"""The command `spinney`; each command imports what it needs when it runs."""

from spinney.cli.commands import main

__all__ = ["main"]
