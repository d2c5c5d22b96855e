"""The command `spinney` and its parts."""

from __future__ import annotations

import click

from spinney import __version__
from spinney.cli.about import datasets, doctor, warmup
from spinney.cli.explanations import explain
from spinney.cli.exports import export
from spinney.cli.group import Commands
from spinney.cli.imports import import_model
from spinney.cli.inspection import inspect
from spinney.cli.models import train
from spinney.cli.predictions import evaluate, predict
from spinney.cli.scans import store
from spinney.cli.study import study
from spinney.cli.trees import prune, trace, tree

COMPLETION = """\b
Completion by the Tab key:
  bash   eval "$(_SPINNEY_COMPLETE=bash_source spinney)"
  zsh    eval "$(_SPINNEY_COMPLETE=zsh_source spinney)"
  fish   _SPINNEY_COMPLETE=fish_source spinney | source
"""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=COMPLETION)
@click.version_option(__version__, prog_name="spinney", message="%(prog)s %(version)s")
def main() -> None:
    """Tree methods, each faithful to its source."""


for command in (
    study,
    train,
    store,
    predict,
    evaluate,
    inspect,
    tree,
    trace,
    prune,
    export,
    import_model,
    explain,
    datasets,
    warmup,
    doctor,
):
    main.add_command(command)
