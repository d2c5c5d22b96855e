"""The tree of a report: its pruning path as a chart with a slider below it, the tree itself, and the tree as text.

The script draws the tree from data in the page. Without a script there is the text of the chosen tree.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from spinney.reading.colours import DOTTED, GREY, PALETTE, STRIPED, class_colour, class_places, shade
from spinney.reading.wording import count
from spinney.show.charts import capital
from spinney.show.markup import Html, join, tag
from spinney.show.names import clip, shown
from spinney.show.numbers import rows as write_rows
from spinney.show.numbers import short
from spinney.show.page import explained, folded, table
from spinney.show.path_chart import PathChart

if TYPE_CHECKING:
    from spinney.study.evidence import NodePicture, TreeNode, TreeView

MAX_PARTS = 24  # classes of a node that have a colour; the rest share one
MAX_STACKED = 8  # classes of a bin in the picture of a node
MAX_KEYS = 16
FEW_LEAVES = 10  # that are taken in at a glance
MAX_TEXT_LEAVES = 60  # of the tree as text
TEXTURES = {
    STRIPED: tag("rect", width=2, height=5, fill="#FFFFFF"),
    DOTTED: tag("circle", cx=2.5, cy=2.5, r=1.3, fill="#FFFFFF"),
}
LOWEST = 0.03  # of a bar: that of the lowest value is seen


def explore(tree: TreeView) -> Html:
    """The path, the slider, the tree, and what stands in for them."""
    n_all, n_chosen = (count(tree.steps[step].n_leaves, "leaf") for step in (0, tree.chosen))
    return join(
        explained(
            f"{tree.name}, grown on all rows to {n_all} and pruned. Move the slider from the root alone, on "
            "the left, to the whole tree, on the right. Branches are as thick as the rows they carry; click a node to "
            "read its rule, the sign on it to fold or unfold what is below.",
        ),
        show_path(tree),
        show_tools(tree),
        show_key(tree),
        tag("div", id="tree-view", class_="view live", role="region", aria_label="The tree"),
        tag("p", id="tree-folded", class_="how live", role="status"),
        tag("div", id="tree-node", class_="about-node live", aria_live="polite"),
        tag(
            "div",
            explained(f"The tree of {n_chosen} that cross-validation chose, as text:"),
            tag("pre", draw_text(tree), tabindex="0", aria_label="The tree as text"),
            class_="still",
        ),
        folded("Numbers of the pruning path", list_steps(tree)),
        carry(tree),
    )


# --- The pruning path -----------------------------------------------------------------------------------------


def show_path(tree: TreeView) -> Html:
    """The chart of the path, the slider below it, and how to read them."""
    last = len(tree.steps) - 1
    return tag(
        "div",
        tag("div", PathChart(tree).draw(), class_="path-chart"),
        tag(
            "input", type="range", id="tree-step", class_="live", min=0, max=last, value=last - tree.one_error,
            aria_label="Leaves of the tree, along its pruning path",
        ),
        tag("output", for_="tree-step", id="tree-caption", class_="live"),
        explained(
            f"{capital(tree.measure)} against leaves: points with a standard error are cross-validated, the dotted "
            "line is the error on the training rows. The dashed line is one standard error above the lowest; ringed "
            "are the lowest and the smallest tree below the line.",
        ),
        class_="path",
    )  # fmt: skip


def list_steps(tree: TreeView) -> Html:
    """The path as a table."""
    lines = [
        (
            f"{step.n_leaves:,}", f"{step.alpha:.4g}", short(step.training_error),
            "" if step.error is None else short(step.error),
            "" if step.standard_error is None else short(step.standard_error),
            "lowest error" if number == tree.chosen else "within one error" if number == tree.one_error else "",
        )
        for number, step in enumerate(tree.steps)
    ]  # fmt: skip
    head = ("leaves", "alpha", f"{tree.measure}, training rows", "cross-validated", "±", "")
    return table("From the whole tree to its root", head, lines)


# --- Around the tree ------------------------------------------------------------------------------------------


def show_tools(tree: TreeView) -> Html:
    """Buttons that jump along the path, choose a layout, zoom and search."""
    few = next(k for k, step in enumerate(tree.steps) if step.n_leaves <= FEW_LEAVES or k == len(tree.steps) - 1)
    stops = {tree.one_error: "Smallest within one error", tree.chosen: "Lowest error", 0: "Whole tree"}
    if few > tree.one_error and few > tree.chosen:
        stops = {few: "Quick to read"} | stops

    def button(words: str, **more: str) -> Html:
        return tag("button", words, type="button", **more)

    def group(label: str, *buttons: Html) -> Html:
        return tag("span", *buttons, role="group", aria_label=label)

    return tag(
        "div",
        group(
            "Steps of the path",
            *(button(f"{words} ({tree.steps[step].n_leaves})", data_step=str(step)) for step, words in stops.items()),
        ),
        group(
            "Layout",
            button("Down", data_layout="down"),
            button("Sideways", data_layout="right"),
            button("Outline", data_layout="list"),
        ),
        group(
            "View",
            button("\N{MINUS SIGN}", id="tree-out", aria_label="Zoom out"),
            button("+", id="tree-in", aria_label="Zoom in"),
            button("Fit", id="tree-fit"),
            button("Unfold all", id="tree-all"),
        ),
        tag(
            "span",
            tag(
                "input", type="search", id="tree-search", placeholder="Find in the tree", aria_label="Find in the tree"
            ),
            tag("span", id="tree-found", class_="found", role="status"),
        ),
        class_="tools live",
    )


def show_key(tree: TreeView) -> Html:
    """What the colours of bars mean."""
    if not tree.classes:
        values = leaf_values(tree)
        ends = min(values), max(values)
        swatches = join(
            *(tag("rect", x=12 * k, width=12, height=10, fill=shade(k / 8)) for k in range(9)),
        )
        scale = tag("svg", swatches, width=108, height=10, aria_hidden="true")
        words = f"mean of {tree.target}, from {short(ends[0])} to {short(ends[1])}"
        return tag("ul", tag("li", scale, clip(words)), class_="keys live")
    places, defs = class_places(tree.nodes[0].counts or [0.0] * len(tree.classes)), make_patterns(tree)
    order = sorted(range(len(tree.classes)), key=lambda k: places[k])
    entries = [
        tag("li", tag("svg", tag("rect", width=11, height=10, fill=fill_of(places[k])), width=11, height=10,
                      aria_hidden="true"), shown(tree.classes[k]))
        for k in order[:MAX_KEYS]
    ]  # fmt: skip
    if len(order) > MAX_KEYS:
        entries.append(tag("li", f"and {len(order) - MAX_KEYS} more"))
    return join(defs, tag("ul", *entries, class_="keys live", aria_label=f"Classes of {shown(tree.target)}"))


def make_patterns(tree: TreeView) -> Html:
    """Stripes and dots for classes beyond the colours."""
    found = []
    for place in range(len(PALETTE), min(len(tree.classes), GREY * len(PALETTE))):
        colour, texture = class_colour(place)
        found.append(
            tag("pattern", tag("rect", width=5, height=5, fill=colour), TEXTURES[texture], id=f"class-{place}", width=5,
                height=5, patternUnits="userSpaceOnUse", patternTransform="rotate(45)")
        )  # fmt: skip
    return tag("svg", tag("defs", *found), class_="unseen", aria_hidden="true") if found else join()


def fill_of(place: int) -> str:
    """Fill of a class by its place."""
    colour, texture = class_colour(place)
    return f"url(#class-{place})" if texture in TEXTURES else colour


def leaf_values(tree: TreeView) -> list[float]:
    """Values of the leaves of the whole tree."""
    return [node.value for node in tree.nodes if node.test is None and node.value is not None] or [0.0]


# --- The tree as data and as text -----------------------------------------------------------------------------


def carry(tree: TreeView) -> Html:
    """What the script draws the tree from."""
    places = class_places(tree.nodes[0].counts or [0.0] * len(tree.classes))
    values = leaf_values(tree)
    content = {
        "label": f"{tree.name} for {shown(tree.target)}",
        "target": shown(tree.target),
        "measure": tree.measure,
        "classes": [shown(name) for name in tree.classes],
        "fills": [fill_of(place) for place in places],
        "chosen": tree.chosen,
        "opened": tree.one_error,  # the size that the table of methods names
        "steps": [
            (
                step.n_leaves,
                None if step.error is None else short(step.error),
                None if step.standard_error is None else short(step.standard_error),
                short(step.training_error),
            )
            for step in tree.steps
        ],
        "heights": PathChart(tree).heights(),
        "nodes": [pack(node, min(values), max(values)) for node in tree.nodes],
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":  # so that no text can end the element, or begin another
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return tag("script", Html(text), type="application/json", id="tree-data")


def pack(node: TreeNode, low: float, high: float) -> tuple[object, ...]:
    """A node as a list: parent, branch, test, prediction, rows, rows by class, pruning step, fill of its value.

    At its end is the picture, where there is one.
    """
    parts = fill = None
    if node.counts is not None:
        held = sorted(((n_rows, k) for k, n_rows in enumerate(node.counts) if n_rows), reverse=True)[:MAX_PARTS]
        parts = sorted((k, round(n_rows, 3)) for n_rows, k in held)
    elif node.value is not None:
        level = level_of(node.value, low, high)
        fill = (shade(level), round(level, 3))
    test = None if node.test is None else clip(node.test)
    picture = None if node.picture is None else pack_picture(node.picture, low, high, has_classes=parts is not None)
    facts = node.parent, clip(node.branch), test, clip(node.answer), round(node.n_rows, 3), parts, node.cut, fill
    return facts if picture is None else (*facts, picture)


def level_of(value: float, low: float, high: float) -> float:
    """Where a value lies among those of the leaves, from almost 0 to 1."""
    level = (value - low) / (high - low) if high > low else 1.0
    return min(max(level, LOWEST), 1.0)


def stack_classes(one: tuple[tuple[int, float], ...]) -> list[tuple[int, float]]:
    """The commonest classes of a bin, in their order, and after them the others as class -1."""
    kept = sorted(one, key=lambda part: -part[1])[:MAX_STACKED]
    rest = sum(n_rows for _, n_rows in one) - sum(n_rows for _, n_rows in kept)
    return sorted(kept) + ([(-1, rest)] if rest else [])


def pack_picture(picture: NodePicture, low: float, high: float, *, has_classes: bool) -> tuple[object, ...]:
    """A picture as a list: names, name of the cut, its place, bins of (class, rows) or (fill, rows), rows not known."""
    bins = [
        stack_classes(one) if has_classes else [(shade(level_of(mean, low, high)), n_rows) for n_rows, mean in one]
        for one in picture.bins
    ]
    names = [clip(name) for name in picture.marks]
    return (names, picture.cut, round(picture.share, 4), bins, picture.n_missing, picture.is_number)


def draw_text(tree: TreeView) -> str:
    """The chosen tree, a line for each node; the smallest below it where it is too large to read."""
    step = next(
        (k for k in range(tree.chosen, len(tree.steps)) if tree.steps[k].n_leaves <= MAX_TEXT_LEAVES),
        len(tree.steps) - 1,
    )
    children: list[list[int]] = [[] for _ in tree.nodes]
    for place, node in enumerate(tree.nodes):
        if node.parent >= 0:
            children[node.parent].append(place)
    lines, stack = [], [(0, 0)]
    while stack:
        place, depth = stack.pop()
        node = tree.nodes[place]
        is_leaf = node.cut <= step
        what = f"→ {clip(node.answer)}" if is_leaf else f"{clip(node.test or '')}?"
        words = [clip(node.branch), what, f"({write_rows(node.n_rows)} rows)"]
        lines.append("   " * depth + "  ".join(word for word in words if word))
        if not is_leaf:
            stack += [(child, depth + 1) for child in reversed(children[place])]
    return "\n".join(lines)
