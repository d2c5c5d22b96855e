"""The command `spinney`; each command imports what it needs when it runs."""

try:
    from spinney.cli.commands import main
except KeyboardInterrupt:  # Ctrl-C while Python is still reading: as quiet as later
    raise SystemExit(130) from None

__all__ = ["main"]
