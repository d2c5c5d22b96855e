"""`python -m spinney` is the command `spinney`."""

from spinney.cli import run

if __name__ == "__main__":
    run()
