"""Small tables that look for trouble: ties, neighbouring floats, infinities, missing cells, odd weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from spinney._criteria import CLASS_CRITERIA, VALUE_CRITERIA

MAX_ROWS = 40
MAX_FEATURES = 5

EDGES = [-math.inf, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1e308, math.inf]
DYADIC_WEIGHTS = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 4.0]
ROUNDED_WEIGHTS = [0.0, 0.1, 0.2, 0.3, 0.7, 1.1, 2.9]  # sums of these depend on the order of a float loop


@dataclass(frozen=True)
class SmallTable:
    """Columns as `naive.grow` takes them; every level and class occurs, perhaps in a row of weight zero."""

    columns: list[list[float]]
    y: list[float] | list[int]
    weights: list[float] | None
    n_classes: int | tuple[int, ...] | None  # None = regression; of several outputs those of each
    is_categorical: list[bool]
    n_levels: list[int]  # 0 for numeric columns

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def has_exact_weights(self) -> bool:
        """Whether float sums of weights are exact."""
        return self.weights is None or all(weight * 4 == int(weight * 4) for weight in self.weights)

    @property
    def criteria(self) -> tuple[str, ...]:
        """Those that the targets suit."""
        if self.n_classes is not None:
            return CLASS_CRITERIA
        weights = self.weights or [1.0] * self.n_rows
        highest = max(y for y, weight in zip(self.y, weights, strict=True) if weight > 0.0)
        # of targets that differ by a billionth, impurities of inner nodes are known to eight digits
        has_deviance = min(self.y) >= 0.0 and 0.0 < highest < 1e8
        return tuple(name for name in VALUE_CRITERIA if name != "poisson" or has_deviance)

    @property
    def rows(self) -> list[list[float]]:
        return [list(row) for row in zip(*self.columns, strict=True)]

    @property
    def data(self) -> dict[str, object]:
        """The keywords of `naive.grow` that describe the data."""
        return {
            "n_classes": self.n_classes,
            "is_categorical": self.is_categorical,
            "n_levels": self.n_levels,
        }


def _columns_of(elements: st.SearchStrategy[float], n_rows: int) -> st.SearchStrategy[list[float]]:
    return st.lists(elements, min_size=n_rows, max_size=n_rows)


def _step(start: float, n_steps: int) -> float:
    for _ in range(n_steps):
        start = math.nextafter(start, math.inf)
    return start


def numeric_columns(n_rows: int) -> st.SearchStrategy[list[float]]:
    """Few distinct values, wide floats, floats one ulp apart, the extremes, or one constant."""
    neighbours = st.sampled_from([0.0, 0.1, 1.0, -3.0, 1e300, -5e-324, 2.0**53]).flatmap(
        lambda start: _columns_of(st.sampled_from([_step(start, k) for k in range(4)]), n_rows)
    )
    return st.one_of(
        _columns_of(st.sampled_from([0.0, 1.0, 2.0, 3.0]), n_rows),
        _columns_of(st.integers(-20, 20).map(lambda k: k / 8), n_rows),
        _columns_of(st.floats(allow_nan=False), n_rows),
        _columns_of(st.sampled_from(EDGES), n_rows),
        neighbours,
        st.just([7.5] * n_rows),
    )


@st.composite
def categorical_columns(draw: st.DrawFn, n_rows: int) -> list[float]:
    """Level indices without gaps; nine levels and more leave the exhaustive search."""
    n_levels = draw(st.sampled_from([1, 2, 3, 4, 6, 8, 9, 12]))
    return compact(draw(_columns_of(st.integers(0, n_levels - 1), n_rows)))


def compact(codes: list[float]) -> list[float]:
    """Renumber so that every code from 0 up occurs; nan stays."""
    present = sorted({code for code in codes if not math.isnan(code)})
    return [code if math.isnan(code) else float(present.index(code)) for code in codes]


@st.composite
def missing_masks(draw: st.DrawFn, n_rows: int) -> list[bool]:
    kind = draw(st.sampled_from(["few", "half", "all"]))
    if kind == "all":
        return [True] * n_rows
    share = st.integers(0, 7).map(lambda k: k == 0) if kind == "few" else st.booleans()
    return draw(st.lists(share, min_size=n_rows, max_size=n_rows))


@st.composite
def weight_columns(draw: st.DrawFn, n_rows: int) -> list[float] | None:
    """None, counts, quarters, or decimals; never all zero."""
    pool = draw(st.sampled_from([None, [0.0, 1.0, 2.0, 3.0], DYADIC_WEIGHTS, ROUNDED_WEIGHTS]))
    if pool is None:
        return None
    weights = draw(_columns_of(st.sampled_from(pool), n_rows))
    return weights if any(weights) else [1.0, *weights[1:]]


def regression_targets(n_rows: int) -> st.SearchStrategy[list[float]]:
    """Small whole numbers, quarters, decimals, whole numbers far from zero."""
    small = st.integers(-3, 3)
    return st.one_of(
        _columns_of(small.map(float), n_rows),
        _columns_of(st.integers(-400, 400).map(lambda k: k / 4), n_rows),
        _columns_of(st.integers(-500, 500).map(lambda k: k / 10), n_rows),
        _columns_of(small.map(lambda k: 1e9 + k), n_rows),
    )


@st.composite
def class_targets(draw: st.DrawFn, n_rows: int) -> list[int]:
    n_classes = draw(st.sampled_from([1, 2, 2, 3, 4, 5]))
    codes = draw(_columns_of(st.integers(0, n_classes - 1), n_rows))
    return [int(code) for code in compact(codes)]


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    is_regression: bool | None = None,
    has_categories: bool = True,
    has_missing: bool = True,
    has_weights: bool = True,
    max_rows: int = MAX_ROWS,
    max_features: int = MAX_FEATURES,
) -> SmallTable:
    """A table; `is_regression=None` draws the task, a `has_...` of False keeps that trouble out."""
    n_rows = draw(st.integers(1, max_rows))
    columns, is_categorical, n_levels = [], [], []
    for _ in range(draw(st.integers(1, max_features))):
        is_category = has_categories and draw(st.booleans())
        column = draw(categorical_columns(n_rows) if is_category else numeric_columns(n_rows))
        if has_missing and draw(st.integers(0, 2)) == 2:
            mask = draw(missing_masks(n_rows))
            column = [math.nan if is_hidden else v for v, is_hidden in zip(column, mask, strict=True)]
        if is_category:
            column = compact(column)
        columns.append(column)
        is_categorical.append(is_category)
        n_levels.append(len({v for v in column if not math.isnan(v)}) if is_category else 0)
    if is_regression is None:
        is_regression = draw(st.booleans())
    y = draw(regression_targets(n_rows) if is_regression else class_targets(n_rows))
    return SmallTable(
        columns=columns,
        y=y,
        weights=draw(weight_columns(n_rows)) if has_weights else None,
        n_classes=None if is_regression else len(set(y)),
        is_categorical=is_categorical,
        n_levels=n_levels,
    )


@st.composite
def many_level_tables(draw: st.DrawFn) -> SmallTable:
    """Three classes or more and nine levels or more: the levels are ordered by principal component."""
    n_levels, n_classes = draw(st.integers(9, 12)), draw(st.integers(3, 5))
    n_more = draw(st.integers(0, MAX_ROWS - n_levels))
    column = [*range(n_levels), *draw(_columns_of(st.integers(0, n_levels - 1), n_more))]
    n_rows = len(column)
    column = [float(level) for level in column]
    if draw(st.booleans()):
        column += [math.nan] * 3
        n_rows += 3
    y = [*range(n_classes), *draw(_columns_of(st.integers(0, n_classes - 1), n_rows - n_classes))]
    return SmallTable([column], y, draw(weight_columns(n_rows)), n_classes, [True], [n_levels])


@st.composite
def textbook_tables(
    draw: st.DrawFn, *, is_regression: bool = False, has_weights: bool = True, max_rows: int = 24
) -> SmallTable:
    """A table for ID3 and C4.5: columns that say something of the target, levels that no row has, missing cells.

    Numbers are halves and quarters, since C4.5 takes values within 1e-5 of each other for one; weights are None, whole,
    or quarters.
    """
    n_rows = draw(st.integers(1, max_rows))
    columns, is_categorical, n_levels = [], [], []
    for _ in range(draw(st.integers(1, 4))):
        is_category = draw(st.booleans())
        size = draw(st.sampled_from([1, 2, 3, 4, 7]))
        cells = st.integers(0, size - 1).map(float) if is_category else st.integers(0, 3 * size).map(lambda k: k / 4)
        column = draw(_columns_of(cells, n_rows))
        if draw(st.booleans()):
            mask = draw(missing_masks(n_rows))
            column = [math.nan if is_hidden else v for v, is_hidden in zip(column, mask, strict=True)]
        columns.append(column)
        is_categorical.append(is_category)
        n_levels.append(size + draw(st.integers(0, 1)) if is_category else 0)
    if is_regression:
        y = draw(_columns_of(st.integers(-8, 8).map(lambda k: k / 4), n_rows))
    else:
        noise = draw(st.sampled_from([[0], [0, 0, 0, 1], [0, 1, 2]]))
        known = [0.0 if math.isnan(v) else v for v in columns[0]]
        y = [int(v + draw(st.sampled_from(noise))) % 3 for v in known]
        y = [int(code) for code in compact([float(code) for code in y])]
    pool = draw(st.sampled_from([None, None, [1.0, 2.0, 3.0], [0.0, 1.0, 2.0], DYADIC_WEIGHTS]))
    weights = draw(_columns_of(st.sampled_from(pool), n_rows)) if has_weights and pool else None
    if weights is not None and not any(weights):
        weights[0] = 1.0
    n_classes = None if is_regression else len(set(y))
    return SmallTable(columns, y, weights, n_classes, is_categorical, n_levels)


@st.composite
def parameters(draw: st.DrawFn, table: SmallTable, *, has_monotonic: bool = True) -> dict[str, object]:
    """Keywords of `naive.grow` that fit a table, most of them left at their defaults.

    Limits that are compared with computed numbers are odd decimals, which no sum of a small table hits:
    exactly on such a boundary rounding would decide.
    """
    is_regression = table.n_classes is None
    drawn: dict[str, object] = {
        "criterion": draw(st.sampled_from(table.criteria)),
        "missing": draw(st.sampled_from(["learned", "branch"])),
    }
    if any(table.is_categorical):
        drawn["cat_penalty"] = draw(st.sampled_from([0.0, 1.0, "auto"]))
    fractions = [0.0371, 0.1113, 0.2219, *([0.125, 0.25, 0.5] if table.has_exact_weights else [])]
    choices: dict[str, st.SearchStrategy[object]] = {
        "max_depth": st.integers(0, 4),
        "min_samples_split": st.integers(2, 12),
        "min_samples_leaf": st.integers(1, 6),
        "min_weight_fraction_leaf": st.sampled_from(fractions),
        "min_impurity_decrease": st.sampled_from([0.00137, 0.0531, 0.217]),
        "max_leaf_nodes": st.integers(2, 8),
    }
    if is_regression:
        choices["min_target_std"] = st.sampled_from([0.3719, 1.137])
    if has_monotonic and (is_regression or table.n_classes == 2) and not all(table.is_categorical):
        choices["monotonic"] = st.tuples(
            *(st.just(0) if is_category else st.sampled_from([-1, 0, 1]) for is_category in table.is_categorical)
        ).map(list)
    for name in draw(st.lists(st.sampled_from(sorted(choices)), max_size=3, unique=True)):
        drawn[name] = draw(choices[name])
    return drawn


@st.composite
def counting(draw: st.DrawFn, **kinds: object) -> tuple[SmallTable, dict[str, object]]:
    """As `growing`, with targets of which many are 0 and none is negative, by Poisson's deviance."""
    table = draw(tables(is_regression=True, **kinds))
    pool = draw(st.sampled_from([[0.0, 0.0, 0.0, 1.0, 2.0, 7.0], [0.0, 0.125, 0.5, 3.75], [0.1, 0.3, 12.7, 1e6]]))
    table = replace(table, y=draw(_columns_of(st.sampled_from(pool), table.n_rows)))
    return table, draw(parameters(table)) | {"criterion": "poisson"}


@st.composite
def several_outputs(draw: st.DrawFn, **kinds: object) -> tuple[SmallTable, dict[str, object]]:
    """As `growing`, of two or three outputs by the squared error, without what asks for one.

    Their units are alike: all go by one, and ties between outputs of another size hang on their last digits.
    """
    table = draw(tables(is_regression=True, **kinds))
    pools = st.sampled_from([[0.0, 1.0, 2.0, 7.0], [-3.75, 0.125, 0.5], [0.1, 0.3, 12.7]])
    columns = [draw(_columns_of(st.sampled_from(draw(pools)), table.n_rows)) for _ in range(draw(st.integers(2, 3)))]
    drawn = draw(parameters(table, has_monotonic=False)) | {"criterion": "squared_error", "cat_penalty": 0.0}
    drawn.pop("min_target_std", None)
    return replace(table, y=[list(row) for row in zip(*columns, strict=True)]), drawn


@st.composite
def outputs_of_classes(draw: st.DrawFn, **kinds: object) -> tuple[SmallTable, dict[str, object]]:
    """As `growing`, of two or three outputs of one to four classes, without what asks for one."""
    table = draw(tables(is_regression=False, **kinds))
    n_classes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=3)))
    columns = [draw(_columns_of(st.integers(0, n - 1), table.n_rows)) for n in n_classes]
    if draw(st.booleans()):  # outputs that say the same
        columns[1] = [code % n_classes[1] for code in columns[0]]
    drawn = draw(parameters(replace(table, n_classes=3), has_monotonic=False))
    drawn |= {"criterion": draw(st.sampled_from(["gini", "entropy"])), "cat_penalty": 0.0}
    return replace(table, y=[list(row) for row in zip(*columns, strict=True)], n_classes=n_classes), drawn


@st.composite
def growing(draw: st.DrawFn, **kinds: object) -> tuple[SmallTable, dict[str, object]]:
    """A table and parameters for it; `kinds` are those of `tables`. Without any, some have many levels."""
    many_levels = not kinds and draw(st.integers(0, 7)) == 7
    table = draw(many_level_tables() if many_levels else tables(**kinds))
    return table, draw(parameters(table))


@st.composite
def judged_by_known_rows(draw: st.DrawFn, **kinds: object) -> tuple[SmallTable, dict[str, object]]:
    """A table and parameters with surrogates; `kinds` are those of `tables`."""
    table, drawn = draw(growing(**kinds))
    return table, {**drawn, "missing": "surrogate", "max_surrogates": draw(st.sampled_from([5, 1, 0]))}


@st.composite
def chosen_by_ratio(draw: st.DrawFn) -> tuple[SmallTable, dict[str, object]]:
    """A table of classes and parameters with the gain ratio, missing values in any way."""
    many_levels = draw(st.integers(0, 7)) == 7
    table = draw(many_level_tables() if many_levels else tables(is_regression=False))
    missing = draw(st.sampled_from(["learned", "branch", "surrogate"]))
    return table, {**draw(parameters(table)), "criterion": "gain_ratio", "missing": missing}


@st.composite
def query_rows(draw: st.DrawFn, table: SmallTable, n_rows: int = 10) -> list[list[float]]:
    """Rows to predict: cells of the table mixed anew, missing cells, and numbers it does not hold."""
    pools = []
    for column, is_category, n_levels in zip(table.columns, table.is_categorical, table.n_levels, strict=True):
        levels = st.sampled_from([float(level) for level in range(n_levels)]) if n_levels else st.nothing()
        elsewhere = levels if is_category else st.sampled_from([0.5, *EDGES])
        pools.append(st.one_of(st.sampled_from(column), st.just(math.nan), elsewhere))
    return draw(st.lists(st.tuples(*pools).map(list), min_size=n_rows, max_size=n_rows))
