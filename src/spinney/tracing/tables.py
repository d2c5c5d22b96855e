"""A node of a trace as a table: headings, rows of cells, notes; text and HTML draw it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from spinney._criteria import CRITERIA
from spinney._types import LEAF, MULTIWAY, THRESHOLD
from spinney.reading.wording import number
from spinney.table.fixed_point import scale
from spinney.tracing.wording import count_branches

if TYPE_CHECKING:
    from spinney.tracing.candidates import Tests
    from spinney.tracing.replay import NodeRecord
    from spinney.tracing.trace import Trace
    from spinney.tracing.wording import Wording

MOST_FEATURES = 12  # of a table; of more, the best
MOST_LISTED = 40  # thresholds of a node that are listed by default
MOST_CLASSES = 4  # whose counts are given for each branch
MOST_BRANCHES = 12  # of a test that are spelled out

# columns: heading of a narrow table, of a wide one, measure
ENTROPY_AFTER = ("H after", "entropy after", "after")
AFTER = ("after", "after", "after")
GAIN = ("gain", "gain", "gain")
INFO = ("split", "split info", "split_info")
RATIO = ("ratio", "gain ratio", "gain_ratio")
GINI = ("decrease", "Gini decr.", "gini_decrease")
CHI = ("chi²", "chi²", "chi_square")
DROP = ("decrease", "decrease", "decrease")
SDR = ("SDR", "SDR", "deviation_decrease")
VARIANCE = ("variance", "var. decr.", "variance_decrease")
# of each criterion, and what a wide table has besides
COLUMNS = {
    "entropy": ([ENTROPY_AFTER, GAIN, INFO, RATIO], [GINI, CHI]),
    "gini": ([AFTER, GINI, GAIN, RATIO], [INFO, CHI]),
    "misclassification": ([AFTER, DROP, GAIN], [GINI, INFO, CHI]),
    "squared_error": ([AFTER, DROP, SDR], [INFO]),
    "sdr": ([AFTER, SDR, VARIANCE], [INFO]),
}
OTHERS = ([AFTER, DROP], [INFO])
POWERS = {"deviation_decrease": 1, "variance_decrease": 2, "split_info": 0}  # of the target's unit
WIDE = 110  # columns of text from which on a table is wide

WINNER, CANDIDATE, REFUSED, CUT, BEST_CUT, REFUSED_CUT = range(6)  # what a row is


@dataclass(frozen=True)
class TestRow:
    """One test: its condition, what its branches hold, its figures."""

    kind: int
    test: str
    branches: list[str]
    figures: list[str]
    reason: str = ""


@dataclass(frozen=True)
class NodeTable:
    """What is shown of a node."""

    node: int
    depth: int
    path: str
    summary: str
    reason: str
    prediction: str  # of a leaf; "" otherwise
    chosen: str  # the test; "" for a leaf
    counted: str  # heading of the branches
    figures: list[str]  # headings
    rows: list[TestRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def make_tables(
    trace: Trace, *, is_wide: bool, node: int | None = None, max_depth: int | None = None, cuts: bool | None = None
) -> list[NodeTable]:
    """Tables of the nodes to be shown."""
    wording = trace.wording
    paths = wording.paths(trace.records)
    records = [record for record in trace.records if max_depth is None or record.depth <= max_depth]
    if node is not None:
        records = [record for record in trace.records if record.node == node]
        if not records:
            raise ValueError(
                f"node={node} is not in the trace; the tree has nodes 0 .. {trace.tree.n_nodes - 1}, "
                f"and the trace looked at {len(trace.records)} of them"
            )
    return [
        make_table(trace, record, wording, paths[record.node], is_wide=is_wide, cuts=cuts, is_alone=node is not None)
        for record in records
    ]


def make_table(
    trace: Trace, record: NodeRecord, wording: Wording, path: str, *, is_wide: bool, cuts: bool | None, is_alone: bool
) -> NodeTable:
    """The table of one node; a leaf has rows only if it is shown alone."""
    criterion = trace.rules.criterion
    narrow, wide = COLUMNS.get(criterion, OTHERS)
    shown = narrow + (wide if is_wide else [])
    figures = [wide_title if is_wide else title for title, wide_title, _ in shown]
    table = NodeTable(
        node=record.node,
        depth=record.depth,
        path=path,
        summary=summarise(trace, record, wording),
        reason=record.reason,
        prediction="" if record.chosen else prediction_of(trace, record, wording),
        chosen=wording.test(record.tests[record.chosen[0]], record.chosen[1]) if record.chosen else "",
        counted=counted_by(wording),
        figures=figures,
    )
    if record.tests and (record.chosen or is_alone):
        fill(table, trace, record, wording, [name for _, _, name in shown], cuts)
    return table


def prediction_of(trace: Trace, record: NodeRecord, wording: Wording) -> str:
    """What a leaf predicts."""
    tree = trace.tree
    if tree.n_classes:
        return wording.classes()[int(tree.leaf_class[record.node])]
    return number(float(tree.threshold[record.node]))


def counted_by(wording: Wording) -> str:
    """Heading of the column of branches."""
    classes = wording.classes()
    if not classes:
        return "branches: mean±SD (rows)"
    return f"branches: {'/'.join(classes)}" if len(classes) <= MOST_CLASSES else "branches: rows"


def summarise(trace: Trace, record: NodeRecord, wording: Wording) -> str:
    """Rows of a node and their impurity."""
    criterion, is_class = CRITERIA[trace.rules.criterion], bool(trace.tree.n_classes)
    before = digits(scale(record.impurity, criterion.power * trace.exponent), is_share=is_class)
    is_shown = trace.rules.criterion == "sdr"  # the standard deviation, which stands beside the mean
    return wording.summary(record) + (f" · {criterion.impurity} {before}" if record.sums[0] and not is_shown else "")


def digits(x: float, *, is_share: bool) -> str:
    """Six digits behind the point for what is about 1, else six digits."""
    if math.isnan(x):
        return "-"
    return f"{x + 0.0:.6f}" if is_share and abs(x) < 1e4 else f"{x:.6g}"


def fill(
    table: NodeTable, trace: Trace, record: NodeRecord, wording: Wording, names: list[str], cuts: bool | None
) -> None:
    """Write the rows and notes of a table."""
    offered = [tests for tests in record.tests if tests.kind != LEAF]
    n_cuts = sum(len(tests) for tests in offered if tests.kind == THRESHOLD and len(tests) > 1)
    lists_cuts = n_cuts <= MOST_LISTED if cuts is None else cuts
    chosen = record.chosen
    hidden: list[Tests] = []
    if len(offered) > MOST_FEATURES:
        order = sorted(offered, key=lambda t: (chosen is None or t.feature != chosen[0], -rank_of(t), t.feature))
        offered, hidden = order[:MOST_FEATURES], order[MOST_FEATURES:]
    for tests in offered:
        lead = chosen[1] if chosen and chosen[0] == tests.feature else tests.best
        table.rows.append(make_row(trace, record, wording, tests, lead, names))
        if lists_cuts and tests.kind == THRESHOLD and len(tests) > 1:
            table.rows.extend(make_row(trace, record, wording, tests, k, names, is_cut=True) for k in range(len(tests)))
    if hidden:
        table.notes.append(f"{len(hidden)} more features, none better")
    if n_cuts and not lists_cuts:
        table.notes.append(f"best thresholds only; {n_cuts} in all with cuts=True")
    table.notes.extend(notes_of(trace, record, wording))
    if any(row.kind == REFUSED_CUT for row in table.rows):
        cuts_offered = [tests for tests in offered if tests.kind == THRESHOLD and len(tests) > 1]
        faults = sorted({reason for tests in cuts_offered for reason in tests.reasons if reason})
        table.notes.append(f"✗ not admissible: {'; '.join(faults)}")


def notes_of(trace: Trace, record: NodeRecord, wording: Wording) -> list[str]:
    """Features that offer no test, by reason, and what is taken off a gain."""
    silent: dict[str, list[str]] = {}
    for tests in record.tests:
        if tests.kind == LEAF:
            silent.setdefault(tests.reasons[0], []).append(wording.feature(tests.feature))
    notes = []
    for reason, features in silent.items():
        more = f" and {len(features) - MOST_FEATURES} more" if len(features) > MOST_FEATURES else ""
        notes.append(f"{reason}: {', '.join(features[:MOST_FEATURES])}{more}")
    if any(tests.penalty for tests in record.tests):
        notes.append("gains of thresholds are less log2(number of thresholds) / rows")
    lucky = [tests for tests in record.tests if tests.luck[tests.best] > 0.0]
    if lucky:
        notes.append(f"gained by chance, and taken off: {', '.join(luck_cell(trace, t, wording) for t in lucky)}")
    return notes


def luck_cell(trace: Trace, tests: Tests, wording: Wording) -> str:
    """What the levels of a feature gain by chance."""
    is_class = bool(trace.tree.n_classes)
    power = 0 if is_class else CRITERIA[trace.rules.criterion].power
    luck = scale(float(tests.luck[tests.best]), power * trace.exponent)
    return f"{wording.feature(tests.feature)} {digits(luck, is_share=is_class)}"


def rank_of(tests: Tests) -> float:
    """By what features are ordered where there are many."""
    score = float(tests.score[tests.best])
    return score if tests.is_admissible[tests.best] else score - 1e300


def make_row(
    trace: Trace, record: NodeRecord, wording: Wording, tests: Tests, k: int, names: list[str], *, is_cut: bool = False
) -> TestRow:
    """The row of a test."""
    kind = CANDIDATE if tests.is_admissible[k] else REFUSED
    if is_cut:
        kind = REFUSED_CUT if not tests.is_admissible[k] else BEST_CUT if k == tests.best else CUT
    elif record.chosen == (tests.feature, k):
        kind = WINNER
    condition = wording.branches(tests, k)[0] if is_cut else wording.test(tests, k)
    reason = record.reasons[tests.feature][k] if kind == REFUSED else ""
    return TestRow(
        kind, condition, branch_cells(trace, record, wording, tests, k), figures_of(trace, tests, k, names), reason
    )


def figures_of(trace: Trace, tests: Tests, k: int, names: list[str]) -> list[str]:
    """The figures of a test in digits."""
    is_class = bool(trace.tree.n_classes)
    own = CRITERIA[trace.rules.criterion].power
    return [
        digits(
            scale(float(getattr(tests.worth, name)[k]), 0 if is_class else POWERS.get(name, own) * trace.exponent),
            is_share=is_class,
        )
        for name in names
    ]


def branch_cells(trace: Trace, record: NodeRecord, wording: Wording, tests: Tests, k: int) -> list[str]:
    """What each branch holds: `sunny 3/2`; sides of a cut without their names, which the test has."""
    branches = tests.branches[k, : count_branches(tests, k)]
    labels = wording.branches(tests, k) if tests.kind == MULTIWAY else ["", "", "missing"][: len(branches)]
    cells = []
    counts = wording.counts(record, branches).tolist()
    for label, sums, held in zip(labels, branches, counts, strict=True):
        if not trace.tree.n_classes:
            text = f"{held[0]:.4g}±{held[1]:.3g} ({int(sums[0])})" if sums[0] else "no rows"
        elif trace.tree.n_classes <= MOST_CLASSES:
            text = "/".join(number(float(np.round(w, 2))) for w in held)
        else:
            text = number(float(np.round(sum(held), 2)))
        cells.append(f"{label} {text}".strip())
    if tests.unknown > 0.0:
        cells.append(f"missing {number(float(np.round(tests.unknown, 2)))}")
    if len(cells) > MOST_BRANCHES:
        cells = [*cells[: MOST_BRANCHES - 1], f"{len(cells) - MOST_BRANCHES + 1} more"]
    return cells
