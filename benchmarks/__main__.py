"""The command: `python -m benchmarks [names] [--quick] [--trees N] [--append FILE]`, and options of single names."""

import argparse
import ast
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.runner import FULL, HEADING, QUICK, append_rows, describe_machine

QUESTIONS = (
    "fit",
    "predict",
    "scaling",
    "span",
    "memory",
    "startup",
    "forest",
    "boosting",
    "sparse",
    "unseen",
    "ranks",
    "noise",
    "ranking",
    "survival",
    "variants",
    "vectors",
    "textbook",
    "files",
    "prediction",
    "imports",
    "explanations",
    "larger_than_memory",
    "cluster",
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"what to measure: {', '.join(QUESTIONS)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, two runs: to try the code")
    parser.add_argument(
        "--trees", type=int, metavar="N", help="trees of a peer's forest, its time scaled up to 100 (default: 20)"
    )
    parser.add_argument("--append", type=Path, metavar="FILE", help="add the rows to this Markdown file")
    ranks = parser.add_argument_group("ranks, noise (seeds alone)")
    ranks.add_argument("--cache", type=Path, metavar="FILE", help="where the scores of peers are kept, a JSON file")
    ranks.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="NAME=VALUE", help="a parameter of ours"
    )
    ranks.add_argument("--table", dest="tables", action="append", metavar="NAME", help="take this table alone")
    ranks.add_argument("--known", action="store_true", help="take the seeds that all peers have been scored on")
    ranks.add_argument("--stopped", action="store_true", help="peers of up to 2,000 rounds that stop early")
    ranks.add_argument("--seeds", type=int, metavar="N", help="seeds to draw folds by (default: 5; noise: 3)")
    prediction = parser.add_argument_group("prediction")
    prediction.add_argument("--shape", dest="shapes", action="append", metavar="NAME", help="take these trees alone")
    larger = parser.add_argument_group("larger_than_memory, cluster")
    larger.add_argument("--rows", type=int, metavar="N", help="rows of the table (default: 5,000,000; 1,000,000)")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(QUESTIONS))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(QUESTIONS)}")
    if options.quick and options.append:
        parser.error("--quick measures too little to be kept; leave out --append")
    if options.trees is not None and options.trees < 1:
        parser.error(f"--trees {options.trees}: a forest has at least one tree")
    more: dict[str, dict[str, Any]] = {
        "ranks": {
            "cache": options.cache,
            "settings": read_settings(parser, options.settings),
            "tables": options.tables,
            "seeds": options.seeds,
            "known": options.known,
            "stopped": options.stopped,
        },
        "noise": {"seeds": options.seeds},
        "prediction": {"shapes": options.shapes},
        "larger_than_memory": {"n_rows": options.rows},
        "cluster": {"n_rows": options.rows, "n_trees": options.trees},
    }
    # One thread, for this process and those it starts; libraries read this when they are first imported.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    machine = describe_machine()
    print("\n".join(f"{name:<12} {value}" for name, value in machine.items()))
    scale = QUICK if options.quick else FULL
    if options.trees is not None:
        scale = scale._replace(peer_trees=options.trees)
    answers = []
    for name in options.names or QUESTIONS:
        print(f"\n== {name}", flush=True)
        answers += import_module(f"benchmarks.{name}").run(scale, **more.get(name, {}))
    if options.quick:
        print("\n--quick: sizes and repeats are cut, so these are not results.")
    else:
        print("", *HEADING, *(answer.markdown() for answer in answers), sep="\n")
    if options.append:
        append_rows(options.append, machine, answers)
    return 0


def read_settings(parser: argparse.ArgumentParser, texts: list[str]) -> dict[str, Any]:
    """Parameters from NAME=VALUE; a value that is no literal of Python is text."""
    settings = {}
    for text in texts:
        name, is_given, value = text.partition("=")
        if not name or not is_given:
            parser.error(f"--set {text}: write NAME=VALUE, for instance --set min_samples_leaf=5")
        try:
            settings[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            settings[name] = value
    return settings


if __name__ == "__main__":
    sys.exit(main())
