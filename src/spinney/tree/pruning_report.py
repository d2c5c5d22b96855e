"""What a pruning has done: leaves, depth and error, before and after."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from spinney.tree.prune import from_units, node_risk

if TYPE_CHECKING:
    from spinney.tree.structure import Tree

METHODS = ("cost_complexity", "reduced_error", "pessimistic", "min_gain", "merge", "snip")


@dataclass(frozen=True, repr=False)
class PruningReport:
    """A pruning, before and after; prints as a table.

    Attributes
    ----------
    method : str
        As the estimators call it: "cost_complexity", "reduced_error", "pessimistic", "min_gain", "merge" or "snip".
    options : dict
        The options that were given, and those that were found: the alpha of a cross-validation.
    n_leaves, depth : (int, int)
        Of the tree before and after.
    error : (float, float)
        Share of the weight whose class is missed, or mean squared error; where a tree by Poisson's deviance is pruned
        without rows at hand, that deviance.
    judged_on : str
        The rows that the error was found on.

    Examples
    --------
    >>> from spinney.tree.pruning_report import PruningReport
    >>> print(PruningReport("merge", {}, (9, 7), (4, 4), (0.02, 0.02), "training rows"))
    merge
                          before  after
    leaves                     9      7
    depth                      4      4
    error, training rows    0.02   0.02
    """

    method: str
    options: dict[str, Any] = field(default_factory=dict)
    n_leaves: tuple[int, int] = (1, 1)
    depth: tuple[int, int] = (0, 0)
    error: tuple[float, float] = (0.0, 0.0)
    judged_on: str = "training rows"

    def store(self) -> dict[str, Any]:
        """What files hold."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def restore(cls, parts: dict[str, Any]) -> PruningReport:
        """A report of what a file holds; ValueError where it could not be printed."""
        names = {f.name for f in fields(cls)}
        if set(parts) != names:
            raise ValueError(f"a {cls.__name__} has the parts {sorted(names)}, not {sorted(parts)}")
        report = cls(**parts)
        fault = find_report_fault(report)
        if fault is not None:
            raise ValueError(fault)
        return report

    @property
    def title(self) -> str:
        """The method and its options."""
        options = ", ".join(f"{name}={show(value)}" for name, value in self.options.items())
        return f"{self.method} ({options})" if options else self.method

    @property
    def cells(self) -> list[tuple[str, str, str]]:
        """The lines of the table: what, before, after."""
        lines: list[tuple[str, tuple[float, float]]] = [
            ("leaves", self.n_leaves),
            ("depth", self.depth),
            (f"error, {self.judged_on}", self.error),
        ]
        return [("", "before", "after"), *((name, show(pair[0]), show(pair[1])) for name, pair in lines)]

    def __str__(self) -> str:
        cells = self.cells
        widths = [max(len(line[column]) for line in cells) for column in range(3)]
        rows = [
            f"{name:<{widths[0]}}  {before:>{widths[1]}}  {after:>{widths[2]}}".rstrip()
            for name, before, after in cells
        ]
        return "\n".join([self.title, *rows])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *body = [[html.escape(cell) for cell in line] for line in self.cells]
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{before}</td><td>{after}</td></tr>"
            for name, before, after in body
        )
        top = "".join(f"<th>{cell}</th>" for cell in head)
        return (
            f"<table><caption>{html.escape(self.title)}</caption>"
            f"<thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>"
        )


def show(value: Any) -> str:
    """A number as people read it, anything else as Python writes it."""
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def training_error(tree: Tree, risk: str = "error") -> float:
    """Error of the tree on the rows that grew it, by what its leaves hold; risk as in `node_risk`."""
    return from_units(tree, float(node_risk(tree, risk)[tree.is_leaf].sum()), risk)


def find_report_fault(report: Any) -> str | None:
    """What is wrong with a report that was read from a file; None: nothing."""
    if report.method not in METHODS or not isinstance(report.judged_on, str):
        return "a report of a pruning names its method and the rows that judged it"
    if not isinstance(report.options, dict) or not all(isinstance(name, str) for name in report.options):
        return "a report of a pruning has options by name"
    if report.method == "cost_complexity" and not is_number(report.options.get("ccp_alpha"), float | int):
        return "a report of cost-complexity pruning has the number ccp_alpha"
    pairs = {"n_leaves": (report.n_leaves, int), "depth": (report.depth, int), "error": (report.error, float | int)}
    for name, (pair, kind) in pairs.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(is_number(value, kind) for value in pair)):
            return f"{name} in a report of a pruning is a pair of numbers"
    return None


def is_number(value: Any, kind: Any) -> bool:
    """Whether a value is a number of a kind; True and False are none."""
    return isinstance(value, kind) and not isinstance(value, bool)
