"""The command `spinney`; each command imports what it needs when it runs.

| file | holds |
|---|---|
| `commands.py` | the command and its parts |
| `study.py` | `spinney study` |
| `models.py` | `spinney train` |
| `explanations.py` | `spinney explain` |
| `scans.py` | `spinney store`, and `spinney train` of tables that are read in blocks |
| `clusters.py` | `spinney train` by the workers of a cluster |
| `exports.py` | `spinney export` |
| `imports.py` | `spinney import` |
| `inspection.py` | `spinney inspect` |
| `predictions.py` | `spinney predict`, `spinney evaluate` |
| `trees.py` | `spinney tree`, `spinney trace`, `spinney prune` |
| `about.py` | `spinney datasets`, `spinney warmup`, `spinney doctor` |
| `tables.py` | DATA, and the options `--target`, `--task`, `--drop`, `--keep` |
| `many_files.py` | DATA that is a folder, a pattern, an address or a store |
| `methods.py` | methods by name, and `--set` |
| `output.py` | what is printed and written; `--json`, `--force` |
| `report.py` | where a report goes; `--report`, `--no-report` |
| `study_text.py` | a study as text |
| `tree_json.py` | a tree as JSON |
| `scores.py` | scores of predictions |
| `writers.py` | files of predictions |
| `stdin.py` | data that come by stdin |
| `group.py` | how every command ends: exit code, errors, warnings |
| `signals.py` | SIGINT and SIGTERM |
"""

from __future__ import annotations

import gc
from typing import Any

_OBJECTS = 100_000  # made between two searches for cycles, 700 by default: of a small study's 6 s they were 0.4


def run() -> None:
    """Run the command line of this process, which ends with it."""
    gc.set_threshold(_OBJECTS, 20, 20)
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
