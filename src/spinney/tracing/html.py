"""Tables of a trace as HTML, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from spinney.tracing.tables import BEST_CUT, CUT, REFUSED, REFUSED_CUT, WINNER, make_tables

if TYPE_CHECKING:
    from spinney.tracing.tables import NodeTable, TestRow
    from spinney.tracing.trace import Trace

MOST_DRAWN = 60  # nodes of a page
CLASSES = {WINNER: "winner", REFUSED: "refused", CUT: "cut", BEST_CUT: "cut best", REFUSED_CUT: "cut"}
MARKS = {WINNER: "▶", BEST_CUT: "•", REFUSED_CUT: "✗"}
# colours by transparency, so that they suit light and dark pages
STYLE = """
.spinney-trace{font-size:13px;line-height:1.35}
.spinney-trace details{margin:0 0 .7em;border-left:3px solid rgba(128,128,128,.35);padding-left:.7em}
.spinney-trace summary{font-weight:600;cursor:pointer}
.spinney-trace summary span{font-weight:400;opacity:.75}
.spinney-trace table{font-size:inherit;border-collapse:collapse;margin:.3em 0;font-variant-numeric:tabular-nums}
.spinney-trace th,.spinney-trace td{text-align:left!important;padding:.15em .7em;border:0;vertical-align:top;
background:none;color:inherit}
.spinney-trace th{border-bottom:1px solid rgba(128,128,128,.6);font-weight:600}
.spinney-trace .figure{text-align:right!important}
.spinney-trace th,.spinney-trace td:nth-child(2){white-space:nowrap}
.spinney-trace .winner td{font-weight:600;background:rgba(0,158,115,.18)}
.spinney-trace .refused td,.spinney-trace .cut td{opacity:.7}
.spinney-trace .best td{opacity:1}
.spinney-trace .cut td:nth-child(2){padding-left:2em}
.spinney-trace p{margin:.15em 0;opacity:.8}
.spinney-trace p.reason{opacity:1}
"""


def draw_page(trace: Trace) -> str:
    """All nodes, one below the other; leaves are a line each."""
    tables = make_tables(trace, is_wide=True)
    shown = tables[:MOST_DRAWN]
    parts = [f"<div class='spinney-trace'><style>{STYLE}</style>", *(draw_node(table) for table in shown)]
    n_left = len(tables) - len(shown) + trace.n_hidden
    if n_left:
        parts.append(f"<p>{n_left} more nodes: <code>show(node=...)</code> and <code>to_frame()</code> have them</p>")
    return "\n".join([*parts, "</div>"])


def draw_node(table: NodeTable) -> str:
    """One node."""
    head = f"Node {table.node} · {escape(table.path)} <span>{escape(table.summary)}</span>"
    prediction = escape(table.chosen or table.prediction)
    reason = f"<p class='reason'>→ <b>{prediction}</b>: {escape(table.reason)}</p>"
    margin = f"margin-left:{1.2 * min(table.depth, 12):.1f}em"
    if not table.rows:
        return f"<details style='{margin}' open><summary>{head}</summary>{reason}</details>"
    titles = "".join(f"<th class='figure'>{escape(title)}</th>" for title in table.figures)
    rows = "\n".join(row_html(row) for row in table.rows)
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    return (
        f"<details style='{margin}' open><summary>{head}</summary><table><thead><tr><th></th><th>test</th>"
        f"<th>{escape(table.counted)}</th>{titles}</tr></thead><tbody>\n{rows}\n</tbody></table>{notes}{reason}"
        "</details>"
    )


def row_html(row: TestRow) -> str:
    """One test."""
    figures = "".join(f"<td class='figure'>{escape(figure)}</td>" for figure in row.figures)
    branches = escape(", ".join(row.branches)) + (f" <i>({escape(row.reason)})</i>" if row.reason else "")
    return (
        f"<tr class='{CLASSES.get(row.kind, '')}'><td>{MARKS.get(row.kind, '')}</td><td>{escape(row.test)}</td>"
        f"<td>{branches}</td>{figures}</tr>"
    )
