"""Python without dependencies: one file of tables and the evaluator."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from spinney.model.export.json_tables import dump_tables
from spinney.model.export.scored import Scored, ask_each

if TYPE_CHECKING:
    from spinney.model.export.tree_sum import TreeSum

HEAD = '''"""A model of trees, exported by Spinney {version}; it needs Python 3.9 or later, and nothing else.

`predict(row)` gives the class or the number of a row, `answer(row)` the probabilities of `CLASSES`, or the numbers, as
a list. A row is a dict by the names in `COLUMNS`, or a sequence of cells in their order: numbers, levels, None or NaN
where a value is missing. A level that the model does not know is missing.
"""
'''
TAIL = """

_EVALUATOR = Evaluator(MODEL)
COLUMNS = _EVALUATOR.names
CLASSES = _EVALUATOR.classes
answer = _EVALUATOR.answer
predict = _EVALUATOR.predict
"""


def write_python(form: TreeSum) -> str:
    """A model as a module of Python."""
    from spinney import __version__

    source = resources.files("spinney.model.export").joinpath("evaluator.py").read_text(encoding="utf-8")
    code = source.split('"""\n', 1)[1].replace("import math\n", "import json\nimport math\n", 1)
    lines = dump_tables(form).splitlines(keepends=True)
    tables = "\n".join(f"    {line!r}" for line in lines)  # as text: names and levels stay data, whatever is in them
    return f"{HEAD.format(version=__version__)}{code}\n\nMODEL = json.loads(\n{tables}\n){TAIL}"


def run_python(content: str, form: TreeSum, cells: list[list[Any]]) -> Scored:
    """Run the module, and ask it."""
    module: dict[str, Any] = {"__name__": "exported"}
    exec(compile(content, "<export>", "exec"), module)  # noqa: S102  (written above, from checked tables)
    return ask_each(module["answer"], module["predict"], form, cells)
