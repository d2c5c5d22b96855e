"""A tree as an SVG picture, laid out here: no other program, font or network is used.

Every box shows the feature its node splits on or its prediction, its rows, and a bar: the classes side by side, or how
high the value is. Branches are as thick as the rows they carry. Colours can be told apart with any colour vision, and
are named too. What is shortened is whole in a tooltip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from spinney.reading.colours import DOTTED, STRIPED, class_colour, class_places, shade
from spinney.reading.conditions import describe_condition, surrogate_condition, surrogates_of
from spinney.reading.layout import place_across, place_along, shorten, stack_ends, text_width, wrap
from spinney.reading.outline import Item, Label, closed_words, edge_label, feature_caption, make_outline
from spinney.reading.several_outputs import refuse_outputs
from spinney.reading.text import SHARED, Contents, draw, shares_missing, summary
from spinney.reading.wording import caption, count, percent, rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.tree.structure import Tree

AUTO, DOWN, RIGHT = "auto", "down", "right"
MAX_WIDTH = 1100.0  # of a picture that grows downward of itself: that of a page
MAX_ALT_LINES = 60  # of the text that stands in for the picture
MAX_NAMES = 200  # levels of a branch that a tooltip names
MAX_KEYS = 24  # classes in the key

TITLE, SMALL = 13.0, 11.0  # sizes of text
MARGIN = 16.0
PAD = 10.0  # inside a box, left and right
SPACE = 14.0  # between words of a line
BAR = 7.0
TALL, FLAT = 58.0, 39.0  # heights of boxes of two lines and of one
MIN_BOX = 76.0
MAX_BOX = {False: 190.0, True: 250.0}  # width, of flat ones too
LABEL = 18.0  # height of the text of a branch
MAX_LABEL = {DOWN: 150.0, RIGHT: 130.0}
GAP = {DOWN: 16.0, RIGHT: 9.0}  # between boxes of a line
BEND = {DOWN: 34.0, RIGHT: 46.0}  # between lines, where branches part
THIN, THICK = 1.2, 8.0  # of branches
LOWEST = 0.03  # of a bar: that of the lowest value is seen
MIN_PART = 0.3  # of a bar that is drawn
LINE = 20.0  # of the key
MIN_KEY, MAX_KEY = 360.0, 200.0
SCALE = 9  # shades in the key

TEXTURES = {
    STRIPED: '<rect width="2" height="5" fill="#FFFFFF"/>',
    DOTTED: '<circle cx="2.5" cy="2.5" r="1.3" fill="#FFFFFF"/>',
}
STYLE = """
.spinney-tree text{font-family:Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;font-size:11px;fill:#1F2328}
.spinney-tree .name{font-size:13px;font-weight:bold}
.spinney-tree .more{fill:#57606A}
.spinney-tree .ground{fill:#FFFFFF}
.spinney-tree .test{fill:#F3F4F6;stroke:#AFB8C1}
.spinney-tree .leaf{fill:#FFFFFF;stroke-width:1.6}
.spinney-tree .closed{fill:#FFFFFF;stroke:#8C959F;stroke-dasharray:4 3}
.spinney-tree .track{fill:#D8DEE4;stroke:#8C959F;stroke-width:.7}
.spinney-tree .branch{fill:none;stroke:#C3CAD3}
.spinney-tree .empty{stroke-dasharray:3 3}
@media (prefers-color-scheme:dark){
.spinney-tree text{fill:#E6EDF3}
.spinney-tree .more{fill:#A9B4C0}
.spinney-tree .ground,.spinney-tree .leaf,.spinney-tree .closed{fill:#0D1117}
.spinney-tree .test{fill:#1C2129;stroke:#57606A}
.spinney-tree .track{fill:#30363D}
.spinney-tree .branch{stroke:#444C56}
}"""


@dataclass(frozen=True)
class Box:
    """An item with its words and its place; x, y is its upper left corner."""

    item: Item
    depth: int
    name: str
    more: str
    label: str  # of its branch
    width: float
    height: float
    is_flat: bool  # name and rows in one line
    x: float = 0.0
    y: float = 0.0

    @property
    def label_width(self) -> float:
        """Width of the text of its branch."""
        return text_width(self.label, SMALL) + 8 if self.label else 0.0


def to_svg(tree: Tree, max_leaves: int, max_depth: int | None, direction: str) -> str:
    """SVG source of a tree."""
    refuse_outputs(tree, "a picture")
    items = make_outline(tree, max_leaves, max_depth)
    contents = Contents(tree)
    if direction == AUTO:
        drafts = {way: arrange(make_boxes(tree, items, contents, way), way) for way in (DOWN, RIGHT)}
        is_narrow = width_of(drafts[DOWN]) <= max(MAX_WIDTH, width_of(drafts[RIGHT]))
        direction = DOWN if is_narrow else RIGHT
        boxes = drafts[direction]
    else:
        boxes = arrange(make_boxes(tree, items, contents, direction), direction)
    return TreePainter(tree, contents, boxes, direction).paint()


# --- boxes ---


def make_boxes(tree: Tree, items: Sequence[Item], contents: Contents, direction: str) -> list[Box]:
    """The items with their words and sizes."""
    boxes: list[Box] = []
    for item in items:
        depth, label = 0, ""
        if item.parent >= 0:
            depth = boxes[item.parent].depth + 1
            asks = edge_label(tree, items[item.parent].node, item, MAX_NAMES, is_brief=True)
            label = fit_label(asks, MAX_LABEL[direction])
        is_flat = direction == RIGHT and not item.is_open
        name, more = name_of(tree, item, contents), more_of(tree, item, contents)
        wide, also = text_width(name, TITLE, is_bold=True), text_width(more, SMALL)
        width = wide + also + SPACE if is_flat else max(wide, also)
        width = min(max(width + 2 * PAD, MIN_BOX), MAX_BOX[is_flat])
        boxes.append(
            Box(
                item=item,
                depth=depth,
                name=shorten(name, width - 2 * PAD - (also + SPACE if is_flat else 0.0), TITLE, is_bold=True),
                more=shorten(more, width - 2 * PAD, SMALL),
                label=label,
                width=width,
                height=FLAT if is_flat else TALL,
                is_flat=is_flat,
            )
        )
    return boxes


def fit_label(label: Label, width: float) -> str:
    """As many names as there is room for, and the number of the others."""
    n = len(label.names)
    if text_width(str(label), SMALL) > width:
        fits = (text_width(label.head(k), SMALL) <= width for k in range(2, n))  # each is wider than the one before
        n = min(n, 1 + sum(takewhile(bool, fits)))
    rest = text_width(label.head(n), SMALL) - text_width(label.names[0], SMALL) if label.names else 0.0
    if n == 1 and len(label.names) > 0:
        label = replace(label, names=(shorten(label.names[0], max(width - rest, width / 2), SMALL), *label.names[1:]))
    return label.head(n)


def name_of(tree: Tree, item: Item, contents: Contents) -> str:
    """The feature that an item splits on, or its prediction."""
    if item.n_hidden:
        return closed_words(item)
    if item.is_open:
        return feature_caption(tree, item.node)
    if tree.n_classes:
        k = int(tree.leaf_class[item.node])
        return caption(tree.legend.classes[k]) if tree.legend and tree.legend.classes else str(k)
    return contents.prediction(item.node) if tree.linear is not None else rounded(float(tree.threshold[item.node]))


def more_of(tree: Tree, item: Item, contents: Contents) -> str:
    """Rows of an item; the share of a leaf's class, the mean of a test."""
    rows = count(item.rows(tree), "row")
    if item.n_hidden or len(item.nodes) > 1:
        return rows
    if tree.n_classes == 0:
        return f"{rows} · {rounded(float(contents.values[item.node]))}" if item.is_open else rows
    if item.is_open or contents.weights is None or contents.weights[item.node].sum() == 0.0:
        return rows
    shares = contents.weights[item.node]
    share = float(shares.max() / shares.sum())
    return rows if share == 1.0 else f"{rows} · {percent(round(share, 2))}"


def arrange(boxes: list[Box], direction: str) -> list[Box]:
    """Place the boxes, the first line at 0."""
    depths, labels = [box.depth for box in boxes], widest_labels(boxes)
    is_down, gap = direction == DOWN, GAP[direction]
    parents = [box.item.parent for box in boxes]
    if is_down:
        across = place_across(parents, [max(box.width, box.label_width) + gap for box in boxes])
        along = place_along(depths, [box.height for box in boxes], [BEND[direction] + LABEL for _ in labels])
    else:
        across = stack_ends(parents, [box.height + gap for box in boxes])
        widths = [box.width if box.item.is_open else 0.0 for box in boxes]
        along = place_along(depths, widths, [BEND[direction] + label + 4 for label in labels])
    placed = []
    for box, centre in zip(boxes, across, strict=True):
        middle, line = centre - gap / 2, along[box.depth]
        x, y = (middle - box.width / 2, line) if is_down else (line, middle - box.height / 2)
        placed.append(replace(box, x=x, y=y))
    return placed


def widest_labels(boxes: Sequence[Box]) -> list[float]:
    """Width of the widest label of each depth."""
    widest = [0.0] * (max(box.depth for box in boxes) + 1)
    for box in boxes:
        widest[box.depth] = max(widest[box.depth], box.label_width)
    return widest


def width_of(boxes: Sequence[Box]) -> float:
    """Width of a drawing, from 0."""
    return max(max(box.x + box.width, box.x + (box.width + box.label_width) / 2) for box in boxes)


# --- painting ---


def at(x: float) -> str:
    """A coordinate."""
    return f"{x:.2f}".rstrip("0").removesuffix(".")


def element(tag: str, *inside: str, **attributes: str | float | None) -> str:
    """An element of elements; `class_` is the attribute `class`, `stroke_width` is `stroke-width`."""
    words = [
        f' {name.rstrip("_").replace("_", "-")}="{escape(value) if isinstance(value, str) else at(value)}"'
        for name, value in attributes.items()
        if value is not None
    ]
    head = f"<{tag}{''.join(words)}"
    return f"{head}>{''.join(inside)}</{tag}>" if inside else f"{head}/>"


class TreePainter:
    """Writes the elements of one picture."""

    def __init__(self, tree: Tree, contents: Contents, boxes: list[Box], direction: str) -> None:
        self.tree = tree
        self.contents = contents
        self.boxes = boxes
        self.widest = widest_labels(boxes)
        self.is_down = direction == DOWN
        self.place_of = class_places(
            [0.0] * tree.n_classes if contents.weights is None else contents.weights[0].tolist()
        )
        self.textured: set[int] = set()  # places of classes whose patterns are used
        values = tree.threshold[tree.is_leaf] if not tree.n_classes else np.zeros(1)
        self.low, self.high = float(values.min()), float(values.max())

    def paint(self) -> str:
        """The whole picture."""
        wide = width_of(self.boxes)
        tall = max(box.y + box.height for box in self.boxes)
        key = self.key(max(wide, MIN_KEY))
        full = max(wide, key.width)
        left = MARGIN + ((full - wide) / 2 if self.is_down else 0.0)
        body = [
            *(self.branch(box) for box in sorted(self.boxes[1:], key=lambda box: -box.item.weight(self.tree))),
            *(self.label(box) for box in self.boxes[1:]),
            *(self.box(box) for box in self.boxes),
        ]
        width, height = full + 2 * MARGIN, tall + 2 * MARGIN + key.height
        parts = [
            element("title", escape(summary(self.tree))),
            element("desc", escape(alternative(self.tree))),
            element("style", STYLE),
            *self.patterns(),
            element("rect", class_="ground", width=width, height=height, rx=8),
            element("g", *body, transform=f"translate({at(left)} {at(MARGIN)})"),
            element("g", *key.elements, transform=f"translate({at(MARGIN)} {at(MARGIN + tall)})"),
        ]
        return element(
            "svg",
            *(f"\n{part}" for part in parts),
            xmlns="http://www.w3.org/2000/svg",
            class_="spinney-tree",
            role="img",
            width=width,
            height=height,
            viewBox=f"0 0 {at(width)} {at(height)}",
        )

    def branch(self, box: Box) -> str:
        """The line to a box from its parent."""
        parent = self.boxes[box.item.parent]
        weight = box.item.weight(self.tree)
        thick = THIN + (THICK - THIN) * weight / float(self.tree.weight[0])
        if self.is_down:
            x0, y0 = parent.x + parent.width / 2, parent.y + parent.height
            x1, y1 = box.x + box.width / 2, box.y - LABEL
            bend = (box.y - LABEL - y0) / 2
            path = f"M{at(x0)} {at(y0)}C{at(x0)} {at(y0 + bend)} {at(x1)} {at(y1 - bend)} {at(x1)} {at(y1)}"
        else:
            x0, y0 = parent.x + parent.width, parent.y + parent.height / 2
            y1 = box.y + box.height / 2
            x1 = box.x - self.widest[box.depth] - 4
            bend = BEND[RIGHT] / 2
            path = (
                f"M{at(x0)} {at(y0)}H{at(x1 - 2 * bend)}C{at(x1 - bend)} {at(y0)} {at(x1 - bend)} {at(y1)} "
                f"{at(x1)} {at(y1)}H{at(box.x - box.label_width - 4)}"
            )
        look = "branch" if weight > 0.0 else "branch empty"
        return element("path", class_=look, stroke_width=thick, d=path)

    def label(self, box: Box) -> str:
        """The condition of the branch to a box, where its line ends."""
        width = box.label_width
        if self.is_down:
            x, y = box.x + box.width / 2 - width / 2, box.y - LABEL
        else:
            x, y = box.x - width - 4, box.y + box.height / 2 - LABEL / 2
        parent = self.boxes[box.item.parent].item.node
        tip = f"{feature_caption(self.tree, parent)}: {edge_label(self.tree, parent, box.item, MAX_NAMES)}"
        return element(
            "g",
            element("title", escape(tip)),
            element("text", escape(box.label), x=x + width / 2, y=y + LABEL - 6, text_anchor="middle"),
        )

    def box(self, box: Box) -> str:
        """The box of an item: its ground, its words, its bar."""
        item = box.item
        look, stroke = "test", None
        if item.n_hidden:
            look = "closed"
        elif not item.is_open:
            look, stroke = "leaf", self.colour(item)
        left, middle, right = box.x + PAD, box.x + box.width / 2, box.x + box.width - PAD
        name, more = escape(box.name), escape(box.more)
        if box.is_flat:
            words = [
                element("text", name, class_="name", x=left, y=box.y + 18),
                element("text", more, class_="more", x=right, y=box.y + 18, text_anchor="end"),
            ]
        else:
            words = [
                element("text", name, class_="name", x=middle, y=box.y + 19, text_anchor="middle"),
                element("text", more, class_="more", x=middle, y=box.y + 35, text_anchor="middle"),
            ]
        return element(
            "g",
            element("title", escape(self.tip(item))),
            element("rect", class_=look, stroke=stroke, x=box.x, y=box.y, width=box.width, height=box.height, rx=6),
            *words,
            *self.bar(item, left, box.y + box.height - BAR - 7, right - left),
        )

    def bar(self, item: Item, x: float, y: float, width: float) -> list[str]:
        """The classes of an item side by side, or how high its value is."""
        parts = (
            [(self.shade_of(item), max(self.level_of(item), LOWEST))]
            if self.tree.n_classes == 0
            else self.class_parts(item)
        )
        bars, begin = [element("rect", class_="track", x=x, y=y, width=width, height=BAR)], x
        for fill, share in parts:
            part = width * share
            if part >= MIN_PART:
                bars.append(element("rect", fill=fill, x=begin, y=y, width=part, height=BAR))
            begin += part
        return bars

    def class_parts(self, item: Item) -> list[tuple[str, float]]:
        """Fill and share of each class of an item, in the order of the classes."""
        if self.contents.weights is None:
            is_leaf = not item.is_open and not item.n_hidden
            return [(self.fill(self.place_of[int(self.tree.leaf_class[item.node])]), 1.0)] if is_leaf else []
        weights = self.contents.weights[list(item.nodes)].sum(axis=0)
        total = float(weights.sum())
        return [(self.fill(self.place_of[k]), float(weights[k]) / total) for k in np.flatnonzero(weights).tolist()]

    def fill(self, place: int) -> str:
        """Fill of a class by its place: a colour or a pattern."""
        colour, texture = class_colour(place)
        if texture in TEXTURES:
            self.textured.add(place)
            return f"url(#spinney-{place})"
        return colour

    def colour(self, item: Item) -> str:
        """Colour of the frame of a leaf."""
        if self.tree.n_classes:
            return class_colour(self.place_of[int(self.tree.leaf_class[item.node])])[0]
        return self.shade_of(item)

    def level_of(self, item: Item) -> float:
        """Where the value of an item stands between the lowest leaf, near 0, and the highest, 1."""
        half = self.high / 2 - self.low / 2  # halved: the range of large numbers may not be one
        if half <= 0.0:
            return 1.0
        nodes = list(item.nodes)
        weight = self.tree.weight[nodes]
        levels = (self.contents.values[nodes] / 2 - self.low / 2) / half
        return min(max(float(np.average(levels, weights=weight if weight.sum() > 0 else None)), LOWEST), 1.0)

    def shade_of(self, item: Item) -> str:
        """Colour of the value of an item."""
        return shade(self.level_of(item))

    def tip(self, item: Item) -> str:
        """What is known of an item, whole."""
        tree = self.tree
        if len(item.nodes) > 1:
            return f"{count(len(item.nodes), 'branch')}, {count(item.rows(tree), 'row')}"
        lines = [f"node {item.node}: {self.contents.describe(item.node)}"]
        if not tree.is_leaf[item.node]:
            lines.append(f"splits on {feature_caption(tree, item.node)}")
        places = surrogates_of(tree, item.node)
        if places:
            others = ", else ".join(describe_condition(tree, surrogate_condition(tree, place, 0)) for place in places)
            lines.append(f"where it is missing, first branch: {others}")
        return "\n".join(lines)

    def patterns(self) -> list[str]:
        """Stripes and dots for the classes beyond the colours."""
        if not self.textured:
            return []
        found = []
        for place in sorted(self.textured):
            colour, texture = class_colour(place)
            ground = element("rect", width=5, height=5, fill=colour)
            found.append(
                element(
                    "pattern", ground, TEXTURES[texture], id=f"spinney-{place}", width=5, height=5,
                    patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
                )
            )  # fmt: skip
        return [element("defs", *found)]

    # --- key ---

    def key(self, width: float) -> Key:
        """What the colours mean, and how missing values went."""
        key = Key(width)
        if self.tree.n_classes:
            self.class_key(key)
        elif self.high > self.low:
            key.add_scale(rounded(self.low), rounded(self.high))
        if shares_missing(self.tree):
            for line in wrap(SHARED, width, SMALL):
                key.begin_line()
                key.add(line, None)
        return key

    def class_key(self, key: Key) -> None:
        """A swatch for each class that has rows."""
        tree = self.tree
        held = (
            range(tree.n_classes)
            if self.contents.weights is None
            else np.flatnonzero(self.contents.weights[0]).tolist()
        )
        classes = sorted(held, key=lambda k: self.place_of[k])
        for k in classes[:MAX_KEYS]:
            name = caption(tree.legend.classes[k]) if tree.legend and tree.legend.classes else str(k)
            key.add(shorten(name, MAX_KEY, SMALL), self.fill(self.place_of[k]))
        if len(classes) > MAX_KEYS:
            key.add(f"+ {len(classes) - MAX_KEYS} more", None)


class Key:
    """Lines of swatches and words below a picture."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.x, self.y, self.width = 0.0, 0.0, 0.0
        self.elements: list[str] = []

    @property
    def height(self) -> float:
        """Height of all lines."""
        return self.y + LINE if self.elements else 0.0

    def begin_line(self) -> None:
        """Go to the next line."""
        if self.elements:
            self.x, self.y = 0.0, self.y + LINE

    def add(self, text: str, fill: str | None) -> None:
        """Add a word, with a swatch where it has a colour."""
        swatch = 0.0 if fill is None else 16.0
        width = swatch + text_width(text, SMALL)
        if self.x > 0.0 and self.x + width > self.limit:
            self.begin_line()
        base = self.y + LINE
        if fill is not None:
            self.elements.append(element("rect", fill=fill, x=self.x, y=base - 9, width=11, height=10))
        self.elements.append(element("text", escape(text), class_="more", x=self.x + swatch, y=base))
        self.width = max(self.width, self.x + width)
        self.x += width + SPACE

    def add_scale(self, low: str, high: str) -> None:
        """Add the shades from the lowest value to the highest."""
        self.add(low, None)
        for part in range(SCALE):
            x, y = self.x - 6 + part * 10, self.y + LINE - 9
            self.elements.append(element("rect", fill=shade(part / (SCALE - 1)), x=x, y=y, width=10, height=10))
        self.x += SCALE * 10 + 2
        self.add(high, None)


def alternative(tree: Tree) -> str:
    """The tree in text, for those who do not see the picture."""
    n_lines = np.cumsum([len(level) for level in tree.nodes_by_depth])  # down to each depth
    return draw(tree, max(int(np.searchsorted(n_lines, MAX_ALT_LINES, side="right")) - 1, 0))
