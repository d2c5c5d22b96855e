"""How trees name things: numbers, features, levels, classes, rows, the models of leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

MAX_LEVELS = 12  # of a set that are spelled out
MAX_TERMS = 3  # of a formula
MAX_CLASSES = 4  # of a node
PLURALS = {"branch": "branches", "leaf": "leaves"}
CUT = 1e-9  # relative tolerance of a threshold's decimals
_ODD = frozenset(',:<>={}"\\')  # would read as part of a test


def number(x: float, tolerance: float = 1e-6) -> str:
    """The shortest decimal within a relative tolerance, at least six digits, without an exponent where it is short."""
    x = float(x)  # of NumPy, an infinite one would warn below
    text = repr(x)
    for digits in range(6, 18):
        text = f"{x:.{digits}g}"
        if abs(float(text) - x) <= tolerance * abs(x):
            break
    if "e" in text and 1e-4 <= abs(x) < 1e16:
        text = np.format_float_positional(float(text), trim="-")
    return text


def rounded(x: float) -> str:
    """A number in four digits, without an exponent where it is short."""
    text = f"{x:.4g}"
    return np.format_float_positional(float(text), trim="-") if "e" in text and 1e-4 <= abs(x) < 1e7 else text


def rounded_cut(x: float) -> str:
    """A threshold in four digits; in full where it is halfway between whole numbers, as of years."""
    is_half = abs(x) < 1e5 and (x - 0.5).is_integer()
    return f"{x:g}" if is_half else rounded(x)


def apart(x: float, y: float) -> tuple[str, str]:
    """Two numbers in text, as short as keeps unequal ones apart."""
    texts = number(x, CUT), number(y, CUT)
    return texts if texts[0] != texts[1] or x == y else (repr(x), repr(y))


def percent(share: float) -> str:
    """A share as a percentage, one decimal; only the whole is 100 %, only nothing 0 %."""
    text = f"{100.0 * share:.1f}"
    if text == "100.0" and share < 1.0:
        return "> 99.9 %"
    if text == "0.0" and share > 0.0:
        return "< 0.1 %"
    return f"{text.removesuffix('.0')} %"


def quoted(name: Any) -> str:
    """A name as it is, or in double quotes, escaped, where it would be misread: commas, braces, blanks at its ends."""
    text = str(name)
    if text and text == text.strip() and text.isprintable() and not _ODD.intersection(text):
        return text
    inside = "".join(
        f"\\{c}" if c in '"\\' else c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )
    return f'"{inside}"'


def caption(name: Any) -> str:
    """A name that stands alone: quoted only where it could not be seen or would break the line."""
    text = str(name)
    return text if text and text == text.strip() and text.isprintable() else quoted(name)


def feature_name(tree: Tree, feature: int) -> str:
    """What people call a feature."""
    return quoted(tree.legend.features[feature]) if tree.legend else f"x{feature}"


def class_name(tree: Tree, k: int) -> str:
    """What people call class k."""
    return quoted(tree.legend.classes[k]) if tree.legend and tree.legend.classes else str(k)


def class_name_of(tree: Tree, output: int, k: int) -> str:
    """What people call class k of one of several outputs."""
    return quoted(tree.legend.classes[output][k]) if tree.legend and tree.legend.classes else str(k)


def level_name(tree: Tree, feature: int, level: int) -> str:
    """What people call a level of a feature."""
    known = tree.legend.levels[feature] if tree.legend else None
    return quoted(known[level]) if known else str(level)


def level_names(
    tree: Tree, feature: int, levels: Sequence[int] | NDArray[np.int64], most: int = MAX_LEVELS
) -> list[str]:
    """Names of levels of a feature, shortened where there are many."""
    names = [level_name(tree, feature, int(k)) for k in levels[:most]]
    return names if len(levels) <= most else [*names, f"... {len(levels) - most} more"]


def one_of(names: Sequence[str]) -> str:
    """The condition on a category: to be the one level, or one of several."""
    return f"= {names[0]}" if len(names) == 1 else f"in {{{', '.join(names)}}}"


def has_missing(tree: Tree, feature: int) -> bool:
    """Whether the training rows had missing values of a feature, as far as is known."""
    return tree.legend.has_missing[feature] if tree.legend else False


def count(n: int, noun: str) -> str:
    """A number of things."""
    return f"{n} {noun}" if n == 1 else f"{n} {PLURALS.get(noun, noun + 's')}"


def weight_of(tree: Tree, weight: float) -> str:
    """A weight; where it may be made of parts of rows, in two decimals or two digits."""
    if weight == int(weight) or not tree.spreads_missing.any():
        return number(weight)
    return f"{weight:.2f}".rstrip("0").removesuffix(".") if weight >= 1.0 else f"{weight:.2g}"


def row_count(tree: Tree, node: int) -> str:
    """Rows of a node; their weight too, where parts of rows may be among them."""
    n = int(tree.n_rows[node])
    weight = float(tree.weight[node])
    is_shared = n > 0 and weight != n and bool(tree.spreads_missing.any())
    return f"{count(n, 'row')}, weight {weight_of(tree, weight)}" if is_shared else count(n, "row")


def formula(tree: Tree, leaf: int, most: int = MAX_TERMS) -> str:
    """The linear model of a leaf, with four digits and its first terms."""
    assert tree.linear is not None
    terms = range(int(tree.linear.first[leaf]), int(tree.linear.first[leaf + 1]))
    text = rounded(tree.linear.intercept(leaf, float(tree.threshold[leaf])))
    for t in terms[:most]:
        slope = float(tree.linear.coefficient[t])
        text += f" {'-' if slope < 0 else '+'} {rounded(abs(slope))} {feature_name(tree, int(tree.linear.feature[t]))}"
    return text if len(terms) <= most else f"{text} + ... {len(terms) - most} more"
