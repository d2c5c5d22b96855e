"""Tables of a trace as lines of text, each with a style for terminals that have colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.tracing.tables import BEST_CUT, CUT, REFUSED, REFUSED_CUT, WIDE, WINNER, make_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spinney.tracing.tables import NodeTable, TestRow
    from spinney.tracing.trace import Trace

MOST_PRINTED = 40  # nodes, unless a part is chosen
LEAST_TEST = 12  # columns of text for a test
LEAST_BRANCHES = 16  # columns of text for the branches
MOST_LINES = 4  # of the branches of one test
MOST_TEST = 34  # columns of text for a test
GAP = 2
MARKS = {WINNER: "▶ ", BEST_CUT: "• ", REFUSED_CUT: "✗ "}
INDENTED = {CUT, BEST_CUT, REFUSED_CUT}
STYLES = {WINNER: "bold green", REFUSED: "dim", CUT: "dim", REFUSED_CUT: "dim"}


def draw_tables(
    trace: Trace, width: int, *, node: int | None = None, max_depth: int | None = None, cuts: bool | None = None
) -> Iterator[tuple[str, str]]:
    """Lines and their styles."""
    tables = make_tables(trace, is_wide=width >= WIDE, node=node, max_depth=max_depth, cuts=cuts)
    n_left_out = 0
    if max_depth is None and len(tables) > MOST_PRINTED:
        n_left_out = len(tables) - MOST_PRINTED
        tables = tables[:MOST_PRINTED]
    for i, table in enumerate(tables):
        if i:
            yield "", ""
        yield from draw_table(table, width)
    if n_left_out:
        yield "", ""
        yield f"... {n_left_out} more nodes: max_depth=, node= and to_frame() show them", "dim"
    if trace.n_hidden and node is None:
        yield "", ""
        yield f"... {trace.n_hidden} nodes of the tree were not looked at (max_depth, max_nodes)", "dim"


def draw_table(table: NodeTable, width: int) -> Iterator[tuple[str, str]]:
    """Lines of one node."""
    yield from ((line, "bold") for line in wrap(f"Node {table.node} · {table.path}", width, "  "))
    yield from ((line, "") for line in wrap(f"  {table.summary}", width, "    "))
    if not table.rows:
        yield from ((line, "") for line in wrap(f"  → {table.prediction}: {table.reason}", width, "    "))
        return
    widths, test_width, branch_width = measure_columns(table, width)
    head = [table.counted[:branch_width].ljust(branch_width)]
    head += [title.rjust(w) for title, w in zip(table.figures, widths, strict=False)]
    yield f"  {'test'.ljust(test_width)}{' ' * GAP}{(' ' * GAP).join(head)}".rstrip(), "underline"
    for row in table.rows:
        for line in row_lines(row, widths, test_width, branch_width):
            yield line, STYLES.get(row.kind, "")
    for note in table.notes:
        yield from ((line, "dim") for line in wrap(f"  {note}", width, "    "))
    prediction = table.chosen or table.prediction
    yield from ((line, "green") for line in wrap(f"  → {prediction}: {table.reason}", width, "    "))


def measure_columns(table: NodeTable, width: int) -> tuple[list[int], int, int]:
    """Widths of the figures, the tests and the branches."""
    widths = [max(len(title), *(len(row.figures[k]) for row in table.rows)) for k, title in enumerate(table.figures)]
    while True:
        rest = width - 2 - sum(widths) - GAP * (len(widths) + 1)
        if rest >= LEAST_TEST + LEAST_BRANCHES or len(widths) <= 1:
            break
        widths.pop()  # the narrower, the fewer figures
    test_width = min(max(len(row.test) + 2 * (row.kind in INDENTED) for row in table.rows), MOST_TEST)
    test_width = max(min(test_width, rest - LEAST_BRANCHES), LEAST_TEST)
    wanted = max(len(table.counted), *(len(", ".join(row.branches)) for row in table.rows))
    return widths, test_width, max(min(wanted, rest - test_width), LEAST_BRANCHES)


def row_lines(row: TestRow, widths: list[int], test_width: int, branch_width: int) -> Iterator[str]:
    """Lines of one test: the first has the figures."""
    mark = MARKS.get(row.kind, "  ")
    test = wrap(f"{'  ' if row.kind in INDENTED else ''}{row.test}", test_width, "    ")
    branches = pack(row.branches, branch_width)
    figures = (" " * GAP).join(text.rjust(w) for text, w in zip(row.figures, widths, strict=False))
    if row.reason:
        branches.append(f"({row.reason})")
    for k in range(max(len(test), len(branches))):
        left = (test[k] if k < len(test) else "").ljust(test_width)
        middle = (branches[k] if k < len(branches) else "").ljust(branch_width)
        line = f"{mark if k == 0 else '  '}{left}{' ' * GAP}{middle}"
        yield (f"{line}{' ' * GAP}{figures}" if k == 0 else line).rstrip()


def pack(parts: list[str], width: int) -> list[str]:
    """Parts joined by commas, in lines of at most `width`; what does not fit into a few lines is counted."""
    lines = [""]
    for k, part in enumerate(parts):
        text = part if k == len(parts) - 1 else f"{part},"
        if lines[-1] and len(lines[-1]) + 1 + len(text) > width:
            if len(lines) == MOST_LINES:
                lines[-1] = f"{lines[-1]} ... {len(parts) - k} more"
                break
            lines.append("")
        lines[-1] = f"{lines[-1]} {text}".strip()
    return lines


def wrap(text: str, width: int, indent: str) -> list[str]:
    """Text in lines of at most `width` where it has spaces, those behind the first indented."""
    first = text[: len(text) - len(text.lstrip())]
    lines, line = [], first
    for word in text.split():
        if line.strip() and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = indent
        line = f"{line} {word}" if line.strip() else f"{line}{word}"
    return [*lines, line]
