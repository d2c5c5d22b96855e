"""`spinney.export`: a model in the language of where it is to run, compared with the model before it is handed over."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._files import replacing
from spinney.model.any_model import find_predictor
from spinney.model.base_predictor import Predictor
from spinney.model.export.c_source import run_c, write_c
from spinney.model.export.javascript import run_javascript, write_javascript
from spinney.model.export.json_tables import run_json, write_json
from spinney.model.export.onnx_graph import run_onnx, write_onnx
from spinney.model.export.pmml import run_pmml, write_pmml
from spinney.model.export.python_source import run_python, write_python
from spinney.model.export.rule_text import write_rules
from spinney.model.export.sample_rows import draw_values, show_cells
from spinney.model.export.scored import CannotRunError, Scored
from spinney.model.export.sql import run_sql, write_sql
from spinney.model.export.tree_sum import TreeSum, to_tree_sum
from spinney.model.export.treelite_model import run_treelite, write_treelite

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = 1e-12  # relative: what languages of float64 may differ by before it is called a fault

ROUNDED = 1e-9  # where exponentials or the order of a sum are the runtime's own
SINGLE = 1e-6  # where exponentials are those of float32


class Target(NamedTuple):
    """A language.

    Attributes
    ----------
    suffixes : tuple of str
        Of its files.
    write : function of a TreeSum and options
    run : function of the content, the TreeSum and cells, optional
    tolerance : float
        Relative difference from which on an export is not handed over.
    options : tuple of str
        What `write` and `run` take beyond that.
    takes_predictor : bool
        Whether `write` takes the predictor instead of the TreeSum.
    """

    suffixes: tuple[str, ...]
    write: Callable[..., Any]
    run: Callable[..., Scored] | None
    tolerance: float = EXACT
    options: tuple[str, ...] = ()
    takes_predictor: bool = False


TARGETS: dict[str, Target] = {
    "json": Target((".json",), write_json, run_json),
    "python": Target((".py",), write_python, run_python),
    "sql": Target((".sql",), write_sql, run_sql, options=("dialect", "table", "key")),
    "javascript": Target((".js",), write_javascript, run_javascript, options=("name",)),
    "c": Target((".c",), write_c, run_c, options=("name",)),
    "onnx": Target((".onnx",), write_onnx, run_onnx, tolerance=ROUNDED),
    "pmml": Target((".pmml", ".xml"), write_pmml, run_pmml),
    "treelite": Target((".treelite", ".tl"), write_treelite, run_treelite, tolerance=SINGLE),
    "rules": Target((".txt",), write_rules, None, takes_predictor=True),
}


ALIASES = {"js": "javascript", "py": "python"}


@dataclass(frozen=True)
class Export:
    """An exported model.

    Attributes
    ----------
    to : str
        The language.
    content : str or bytes
        The export itself.
    path : str or None
        The file it was written to.
    n_rows : int
        Rows that were scored by the export and by the model; 0 where it could not be run.
    difference : float or None
        The largest difference between their answers, probabilities or numbers; 0.0: the same bits.
    n_other_classes : int
        Rows of which the export predicts another class.
    note : str
        Why it could not be run; else empty.
    """

    to: str
    content: str | bytes
    path: str | None
    n_rows: int
    difference: float | None
    n_other_classes: int
    note: str

    def __repr__(self) -> str:
        where = "" if self.path is None else f" in {self.path}"
        return f"<{self.to}{where}, {len(self.content):,} {self.unit}: {self.verdict}>"

    @property
    def unit(self) -> str:
        """What its length is counted in."""
        return "bytes" if isinstance(self.content, bytes) else "letters"

    @property
    def verdict(self) -> str:
        """How near it comes to the model, in words."""
        if self.difference is None:
            return f"not run here: {self.note}"
        if self.difference == 0.0 and not self.n_other_classes:
            return f"the same as the model on {self.n_rows} rows"
        text = f"on {self.n_rows} rows the largest difference is {self.difference:.3g}"
        return text + (f", and {self.n_other_classes} have another class" if self.n_other_classes else "")


def export(
    model: Any,
    to: str | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    X: Any = None,
    check: bool = True,
    **options: Any,
) -> Export:
    """Write a model in the language of where it is to run.

    The export is run on some 200 rows where that is possible here, and compared with the model: rows on thresholds and
    beside them, infinite, missing, of levels never seen. Languages of float64 give the same bits.

    Parameters
    ----------
    model : estimator, Predictor or path
        Fitted; a path is that of a model file.
    to : str, optional
        "python", "javascript", "c", "sql", "onnx", "pmml", "treelite", "json" or "rules". By default that of the suffix
        of `path`.
    path : path, optional
        The file to write.
    X : array-like or frame, optional
        More rows to compare.
    check : bool, default=True
        Whether to run the export and compare it.
    **options
        sql: `dialect` ("sqlite", "duckdb" or "postgresql"), `table`, and `key`, columns of it that stand beside the
        answers. c, javascript: `name`, what its names begin with, or what it is called in a page.

    Returns
    -------
    Export
        With `content`, and the largest `difference` from the model.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0])
    >>> exported = spinney.export(model, "python")
    >>> exported.difference
    0.0
    >>> module = {}
    >>> exec(exported.content, module)
    >>> module["predict"]([2.2])
    20.0
    """
    name: Any = to if to is not None else find_target(path)
    name = ALIASES.get(name, name) if isinstance(name, str) else name
    if not isinstance(name, str) or name not in TARGETS:
        raise ValueError(f"to={to!r}: give one of {', '.join(TARGETS)}")
    target = TARGETS[name]
    unknown = [option for option in options if option not in target.options]
    if unknown:
        takes = f"takes {', '.join(target.options)}" if target.options else "takes none"
        raise TypeError(f"there is no option {unknown[0]!r}: {name!r} {takes}")
    if not isinstance(check, bool | np.bool_):
        raise TypeError(f"check={check!r:.60}: give True or False; rows to compare are X")
    predictor = find_predictor(model, "export")
    form = to_tree_sum(predictor)
    content = target.write(predictor if target.takes_predictor else form, **options)
    compared: tuple[int, float | None, int, str] = (0, None, 0, "check=False")
    if check:
        values = draw_values(form)
        if X is not None:
            values = np.concatenate([predictor.encode(X), values])  # first: messages number rows of X as X does
        compared = compare(predictor, form, target, content, values, options)
        refuse_difference(compared[1], name, predictor.answer(values), target.tolerance)
    found = Export(name, content, None if path is None else os.fspath(path), *compared)
    if path is not None:
        with replacing(path) as file:
            file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
    return found


def find_target(path: str | os.PathLike[str] | None) -> str:
    """The language of a file by its suffix."""
    if path is None:
        raise TypeError(f"say what to export to: one of {', '.join(TARGETS)}")
    suffix = Path(path).suffix.lower()
    for name, target in TARGETS.items():
        if suffix in target.suffixes:
            return name
    raise ValueError(
        f"{os.fspath(path)!r}: the suffix does not say what to export to: give `to`, one of {', '.join(TARGETS)}"
    )


def compare(
    predictor: Predictor,
    form: TreeSum,
    target: Target,
    content: Any,
    values: NDArray[np.float64],
    options: dict[str, Any],
) -> tuple[int, float | None, int, str]:
    """Rows that were compared, the largest difference, how many classes differ, why it was not run."""
    if target.run is None:
        return 0, None, 0, "it is to be read"
    answers = predictor.answer(values).reshape(len(values), -1)  # first: it says which row of X it cannot take
    try:
        scored = target.run(content, form, show_cells(form, values), **options)
    except CannotRunError as error:
        return 0, None, 0, str(error)
    with np.errstate(invalid="ignore"):
        apart = np.abs(scored.answers - answers)
    is_same = (scored.answers == answers) | (np.isnan(scored.answers) & np.isnan(answers))
    apart[is_same] = 0.0
    apart[np.isnan(apart)] = np.inf
    n_other = 0
    if scored.classes is not None and form.classes is not None:
        chosen = [form.classes[code] for code in predictor.choose(values).tolist()]
        n_other = sum(a != b for a, b in zip(scored.classes, chosen, strict=True))
    return len(values), float(apart.max(initial=0.0)), n_other, ""


def refuse_difference(difference: float | None, to: str, answers: NDArray[np.float64], tolerance: float) -> None:
    """Raise where an export differs from its model by more than its language explains."""
    if not difference:
        return
    scale = max(float(np.abs(answers[np.isfinite(answers)]).max(initial=0.0)), 1e-300)
    if difference > tolerance * scale:
        raise RuntimeError(
            f"the export to {to} differs from the model by {difference:.3g}, more than rounding explains, and is not "
            "handed over: please report this"
        )
