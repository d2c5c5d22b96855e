"""JSON: the tables of a model, as docs/export.md describes them. Other languages embed the same text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.model.export.evaluator import Evaluator
from spinney.model.export.scored import Scored, ask_each

if TYPE_CHECKING:
    from spinney.model.export.tree_sum import TreeSum

FORMAT, VERSION = "spinney-trees", 1
PLAIN = (str, bool, int, float)


def write_json(form: TreeSum) -> str:
    """A model as JSON."""
    return dump_tables(form) + "\n"


def dump_tables(form: TreeSum) -> str:
    """The tables, one a line, in ASCII."""
    lines = [f"{json.dumps(name)}: {dump_value(value)}" for name, value in list_tables(form).items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def list_tables(form: TreeSum) -> dict[str, Any]:
    """The tables of a model by name."""
    from spinney import __version__

    for label in form.classes or ():
        if not isinstance(label, PLAIN):
            raise TypeError(
                f"the class {label!r:.60} is of type {type(label).__name__}, which has no place in an export: fit the "
                "model to text or numbers"
            )
    nodes = {name: array for name, array in form.nodes._asdict().items() if name != "share" or form.has_spread}
    tables = {
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "columns": [
            {name: value for name, value in column._asdict().items() if value is not None} for column in form.columns
        ],
        "classes": form.classes,
        "start": form.start,
        "roots": form.roots,
        "nodes": nodes,
        "subsets": form.subsets,
        "leaves": form.leaves,
        "surrogates": list(form.surrogates.items()),
        "terms": list(form.terms.items()),
        "steps": [{"step": name, **arguments} for name, arguments in form.steps],
        "choice": form.choice,
    }
    return tables | {"dates": list_dates(form)} if form.dates else tables


def list_dates(form: TreeSum) -> list[dict[str, Any]]:
    """What has to be known to make the parts of dates, which exports read as columns."""
    return [
        {
            "name": dates.name,
            "columns": dates.features,
            "first_day": str(np.datetime64(dates.first, "D")),
            "in_utc": dates.has_zone,
        }
        for dates in form.dates
    ]


def note_dates(form: TreeSum) -> str:
    """The dates of a model in one line of ASCII for comments of any language; empty where it has none."""
    if not form.dates:
        return ""
    listed = json.dumps(list_dates(form)).replace("/", "\\/")  # JSON still, which ends no comment of C
    return (
        "Columns made of dates: year, month (1 to 12), weekday (0 is Monday), days since first_day with the fraction "
        f"of the day, hour (0 to 23). {listed}"
    )


def dump_value(value: Any) -> str:
    """JSON of a value, in which every float64 reads back as it is: infinity is 1e999, which is beyond every number."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {dump_value(item)}" for name, item in value.items()) + "}"
    value = value.tolist() if isinstance(value, np.ndarray) else value
    text = json.dumps(value, separators=(",", ":"))
    if "Infinity" not in text:
        return text
    if isinstance(value, list | tuple):  # in which text may say the same
        return "[" + ",".join(map(dump_value, value)) + "]"
    return text if isinstance(value, str) else text.replace("Infinity", "1e999")


def run_json(content: str, form: TreeSum, cells: list[list[Any]]) -> Scored:
    """Read the tables again, and answer rows by them."""
    evaluator = Evaluator(json.loads(content))
    return ask_each(evaluator.answer, evaluator.predict, form, cells)
