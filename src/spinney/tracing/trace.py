"""A trace: every test that each node of a tree could have had, with its figures, and why one won."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._criteria import CRITERIA
from spinney._types import LEAF
from spinney.tracing.wording import Wording, count_branches
from spinney.tree.split_measures import weigh_sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.tracing.candidates import SplitRules, Tests
    from spinney.tracing.replay import NodeRecord, TracedRows
    from spinney.tree.structure import Tree
    from spinney.tree.textbook import Textbook

PIPE_WIDTH = 100  # columns of a text that no terminal shows

# columns of a frame
OF_NODE = ("node", "depth", "path", "n_rows", "weight")
OF_TEST = (
    "feature", "test", "branches", "rows", "counts", "impurity_before", "impurity_after", "impurity_decrease", "gain",
    "split_info", "gain_ratio", "gini_decrease", "chi_square",
)  # fmt: skip
OF_CHOICE = ("penalty", "admissible", "is_best_of_feature", "chosen", "reason")


@dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """The reasons of a tree: what `spinney.trace` returns.

    Print it for tables as on a blackboard, `show` it in colour in a terminal; in a notebook it is a page of tables.

    Attributes
    ----------
    tree : Tree
    rules : Rules
        How the tree was grown.
    records : list of NodeRecord
        The nodes, each before those below it.
    n_hidden : int
        Nodes of the tree that were not looked at.
    centre, exponent
        Targets of a regression are `centre + x * 2**exponent` in the records.
    """

    tree: Tree
    rules: SplitRules
    records: list[NodeRecord]
    n_hidden: int = 0
    centre: float = 0.0
    exponent: int = 0

    @property
    def wording(self) -> Wording:
        """What people call features, levels, classes and tests."""
        return Wording(self.tree, self.centre, self.exponent)

    @cached_property
    def feature_names(self) -> list[str]:
        """Names of the columns of X, as they are."""
        legend = self.tree.legend
        return [str(legend.features[j]) if legend else f"x{j}" for j in range(self.tree.n_features)]

    def __len__(self) -> int:
        return sum(len(tests) for record in self.records for tests in record.tests)

    def __repr__(self) -> str:
        return f"Trace(n_nodes={len(self.records)}, n_tests={len(self)})"

    def __str__(self) -> str:
        return self.to_text()

    def to_text(
        self,
        *,
        node: int | None = None,
        max_depth: int | None = None,
        cuts: bool | None = None,
        width: int | None = None,
    ) -> str:
        """The tables in plain text.

        Parameters
        ----------
        node : int, optional
            One node of the tree alone, with its tests even if it is a leaf.
        max_depth : int, optional
            Deepest node.
        cuts : bool, optional
            Whether all cuts of numbers are listed; by default where they are few.
        width : int, optional
            Columns; by default those of the terminal, or 100.
        """
        from spinney.tracing.text import draw_tables

        width = width or shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
        return "\n".join(line for line, _ in draw_tables(self, width, node=node, max_depth=max_depth, cuts=cuts))

    def show(self, *, node: int | None = None, max_depth: int | None = None, cuts: bool | None = None) -> None:
        """Print the tables: in colour in a terminal, as plain text into a file or pipe.

        Parameters
        ----------
        node, max_depth, cuts
            As in `to_text`.
        """
        if not sys.stdout.isatty():
            print(self.to_text(node=node, max_depth=max_depth, cuts=cuts))  # noqa: T201
            return
        from rich.console import Console
        from rich.text import Text

        from spinney.tracing.text import draw_tables

        console = Console(highlight=False)
        for line, style in draw_tables(self, console.width, node=node, max_depth=max_depth, cuts=cuts):
            console.print(Text(line, style), soft_wrap=True)

    def __rich_console__(self, _: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        from spinney.tracing.text import draw_tables

        for line, style in draw_tables(self, options.max_width):
            yield Text(line, style)

    def _repr_html_(self) -> str:
        from spinney.tracing.html import draw_page

        return draw_page(self)

    # --- arrays ---

    def to_columns(self) -> dict[str, list[Any]]:
        """A row per test, as lists by name: what `to_frame` holds."""
        numbers = [] if self.tree.n_classes else ["variance_reduction", "sdr"]
        columns: dict[str, list[Any]] = {name: [] for name in [*OF_NODE, *OF_TEST, *numbers, *OF_CHOICE]}
        wording = self.wording
        paths = wording.paths(self.records)
        for record in self.records:
            for tests, reasons in zip(record.tests, record.reasons, strict=True):
                for name, values in self.columns_of(record, tests, reasons, wording, paths[record.node]).items():
                    columns[name].extend(values)
        return columns

    def columns_of(
        self, record: NodeRecord, tests: Tests, reasons: list[str], wording: Wording, path: str
    ) -> dict[str, list[Any]]:
        """The tests of one feature at one node, by name of the column."""
        n, worth = len(tests), tests.worth
        chosen = [record.chosen == (tests.feature, k) for k in range(n)]
        power = CRITERIA[self.rules.criterion].power

        def scale(x: NDArray[np.float64], times: int = power) -> list[float]:
            with np.errstate(over="ignore"):
                return np.ldexp(x, times * self.exponent).tolist()

        n_branches = [count_branches(tests, k) for k in range(n)]
        rows, counts = tests.branches[..., 0].astype(int).tolist(), wording.counts(record, tests.branches).tolist()
        conditions = [wording.branches(tests, k) for k in range(n)]
        columns = {
            "node": [record.node] * n,
            "depth": [record.depth] * n,
            "path": [path] * n,
            "n_rows": [int(record.sums[0])] * n,
            "weight": [float(weigh_sums(record.sums, self.tree.n_classes))] * n,
            "feature": [encodable(self.feature_names[tests.feature])] * n,
            "test": [wording.test(tests, k, conditions[k]) for k in range(n)],
            "branches": conditions,
            "rows": [held[:end] for held, end in zip(rows, n_branches, strict=True)],
            "counts": [held[:end] for held, end in zip(counts, n_branches, strict=True)],
            "impurity_before": scale(worth.before),
            "impurity_after": scale(worth.after),
            "impurity_decrease": scale(worth.decrease),
            "gain": scale(worth.gain),
            "split_info": worth.split_info.tolist(),
            "gain_ratio": scale(worth.gain_ratio),
            "gini_decrease": worth.gini_decrease.tolist(),
            "chi_square": worth.chi_square.tolist(),
        }
        if not self.tree.n_classes:
            columns["variance_reduction"] = scale(worth.variance_decrease, 2)
            columns["sdr"] = scale(worth.deviation_decrease, 1)
        return columns | {
            "penalty": scale(tests.luck + tests.penalty),
            "admissible": tests.is_admissible.tolist(),
            "is_best_of_feature": [k == tests.best and tests.kind != LEAF for k in range(n)],
            "chosen": chosen,
            "reason": reasons,
        }

    def to_frame(self) -> Any:
        """A row per test: a pandas frame, or a `pyarrow.Table` where pandas is not installed.

        Columns: `node`, `depth`, `path`, `n_rows` and `weight` of the node; `feature`, `test`, `branches` (their
        conditions), `rows` and `counts` of the branches (the weight of each class; or mean and standard deviation);
        `impurity_before`, `impurity_after` and `impurity_decrease` by the tree's criterion; `gain` (of entropy in bits;
        for numbers the decrease), `split_info`, `gain_ratio`, `gini_decrease`, `chi_square`; for numbers
        `variance_reduction` and `sdr`; `penalty` (what was taken off: by C4.5 for the choice of a threshold, by
        `cat_penalty` for what levels gain by chance), `admissible`, `is_best_of_feature`, `chosen` and `reason`. A
        feature that offers no test has one row with an empty `test`.
        """
        columns = self.to_columns()
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError:
            import pyarrow as pa

            return pa.table(columns)
        return pd.DataFrame(columns)


def encodable(name: str) -> str:
    """A name with half characters (lone surrogates), which frames cannot hold, written out."""
    return name.encode("utf-8", "backslashreplace").decode()


def make_trace(
    tree: Tree,
    rows: TracedRows,
    rules: SplitRules,
    kernels: Any,
    book: Textbook | None = None,
    *,
    max_depth: int | None = None,
    max_nodes: int | None = None,
) -> Trace:
    """Replay a tree on the rows it was grown on; see `replay.replay`."""
    from spinney.tracing.replay import replay

    records = replay(tree, rows, rules, kernels, book, max_depth=max_depth, max_nodes=max_nodes)
    return Trace(tree, rules, records, tree.n_nodes - len(records), rows.centre, rows.exponent)
