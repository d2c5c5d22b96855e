"""Models of XGBoost: JSON and UBJSON files, `Booster` and the classes of its scikit-learn interface.

XGBoost rounds a value to float32 and sends what is below the threshold to the left; a category goes right if it is in
the set of its node. Leaves are float32, and so are its sums: ours are float64, and differ in what float32 rounds.
"""

from __future__ import annotations

import math
import os
import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._elementary import log_one
from spinney._node_layout import WORD_BITS
from spinney._types import MAX_CODES
from spinney.model.container import BrokenFileError
from spinney.model.imports.float32_cuts import cut_rounded_below
from spinney.model.imports.foreign_file import (
    MOST_CLASSES,
    MOST_COLUMNS,
    NotImportedError,
    count_levels,
    make_schema,
    name_columns,
    need,
    numbers,
    parse_json,
    read_file,
    understanding,
    whole,
)
from spinney.model.imports.tree_table import NO_CHILD, TreeNodes, join_nodes
from spinney.model.imports.ubjson import parse_ubjson
from spinney.model.predictors import RoundPredictor

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINKS = {  # of objectives; what is not here is refused by name
    **dict.fromkeys(
        ("reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:absoluteerror", "reg:pseudohubererror",
         "reg:quantileerror", "rank:pairwise", "rank:ndcg", "rank:map", "binary:logitraw"),
        "identity",
    ),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"), "log"),
    **dict.fromkeys(("binary:logistic", "reg:logistic"), "logistic"),
    **dict.fromkeys(("multi:softprob", "multi:softmax"), "softmax"),
}  # fmt: skip
ODDS = {"binary:logistic", "reg:logistic"}  # whose base score is a probability
CATEGORICAL = 1  # as split_type
MOST_LEVELS = MAX_CODES - 2 * WORD_BITS  # of a column
MOST_ALL_LEVELS = 1 << 22  # of all: a file names the last one in a few letters


class CategorySets(NamedTuple):
    """The tests of categories of one tree: nodes, and the categories that go right."""

    nodes: list[int]
    chosen: list[NDArray[np.int64]]


def from_xgboost(model: Any) -> RoundPredictor:
    """Read a model of XGBoost: the result predicts, is drawn, saved and exported as any other.

    Predictions are those of XGBoost but for the roundings of its sums, which are float32. Where the model stopped
    early, they are those of the best iteration, as `XGBClassifier.predict` gives them (`Booster.predict` uses all
    rounds unless it is told).

    Parameters
    ----------
    model : path, Booster, XGBClassifier, XGBRegressor, XGBRanker, ...
        A file is JSON or UBJSON as `save_model` writes it. It may be a stranger's: nothing in it is run, and all of it
        is checked.

    Returns
    -------
    RoundPredictor
        Classes are 0, 1, ...; a category that XGBoost knew by its code is that whole number.

    Raises
    ------
    BrokenFileError
        The file is no model, or damaged.
    ValueError
        The model has what is not read, which is named: `gblinear`, several targets, vector leaves, an objective whose
        answers are no link.

    Examples
    --------
    >>> import json, os, tempfile
    >>> import spinney
    >>> tree = {"left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [0, 0, 0],
    ...         "split_conditions": [2.5, -1.0, 1.0], "default_left": [1, 0, 0], "sum_hessian": [4, 2, 2],
    ...         "loss_changes": [1, 0, 0], "tree_param": {"size_leaf_vector": "1"}}
    >>> model = {"learner": {"learner_model_param": {"num_feature": "1", "num_class": "0", "base_score": "5E-1"},
    ...                      "objective": {"name": "reg:squarederror"},
    ...                      "gradient_booster": {"name": "gbtree", "model": {"trees": [tree], "tree_info": [0]}}}}
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> with open(path, "w") as file:
    ...     json.dump(model, file)
    >>> spinney.from_xgboost(path).predict([[1.0], [3.0]])
    array([-0.5,  1.5])
    """
    if isinstance(model, str | os.PathLike):
        name, data = os.fspath(model), read_file(model)
    else:
        name = type(model).__name__
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        if not hasattr(booster, "save_raw"):
            raise TypeError(f"model={model!r:.60} is neither a file nor a model of XGBoost")
        data = bytes(booster.save_raw("ubj"))
    with understanding(name, "XGBoost"):
        return read_learner(need(parse_either(data), "learner"))


def parse_either(data: bytes) -> Any:
    """JSON or UBJSON: the byte behind the first brace tells them apart."""
    if data[:1] != b"{":
        raise BrokenFileError("it is neither JSON nor UBJSON: save it by save_model('model.json')")
    return parse_ubjson(data) if data[1:2] in b"iUIulL#$" and len(data) > 1 else parse_json(data)


def read_learner(learner: Any) -> RoundPredictor:
    """The predictor of the one part of a file that is a model."""
    params = need(learner, "learner_model_param")
    n_features = whole(need(params, "num_feature"), "num_feature", 1, MOST_COLUMNS)
    n_classes = whole(params.get("num_class", "0"), "num_class", 0, MOST_CLASSES)
    objective = need(learner, "objective", "name")
    link = LINKS.get(objective) if isinstance(objective, str) else None
    if link is None:
        raise NotImportedError(f"the objective {objective!r:.60} is not read: {', '.join(LINKS)} are")
    if whole(params.get("num_target", "1"), "num_target", 0) > 1:
        raise NotImportedError("several targets or quantiles (num_target) are not read: train a model for each")
    if (n_classes > 1) != (link == "softmax"):
        raise NotImportedError(f"the objective {objective} with num_class={n_classes} is not read")
    booster, factors = open_booster(need(learner, "gradient_booster"))
    trees = need(booster, "trees")
    if not isinstance(trees, list) or not all(isinstance(tree, dict) for tree in trees):
        raise BrokenFileError("trees must be a list of objects")
    for tree in trees:
        if whole(need(tree, "tree_param").get("size_leaf_vector", "0"), "size_leaf_vector") > 1:
            raise NotImportedError("trees with a vector in each leaf (multi_strategy='multi_output_tree') are not read")
    sets = [read_sets(tree) for tree in trees]
    levels = find_levels(learner, booster, trees, sets, n_features)
    names = learner.get("feature_names") or None
    schema = make_schema(names, levels)
    n_levels = count_levels(schema)
    weights = np.ones(len(trees)) if factors is None else factors
    if len(weights) != len(trees) or not np.isfinite(weights).all():
        raise BrokenFileError(f"{len(weights)} weights (weight_drop) for {len(trees)} trees")
    n_raw = max(n_classes, 1)
    nodes = [
        read_xgboost_tree(tree, found, w, n_levels)
        for tree, found, w in zip(trees, sets, weights.tolist(), strict=True)
    ]
    order = order_trees(need(booster, "tree_info"), len(trees), n_raw)
    if not nodes:
        nodes, order = [single_leaf()], [0] * n_raw
    forest = join_nodes([nodes[t] for t in order], n_levels, name_columns(schema))
    n_rounds = find_rounds(learner, booster, len(order) // n_raw)
    start = read_start(need(params, "base_score"), objective, link, n_raw)
    classes = np.arange(2 if link == "logistic" else n_classes) if link in {"logistic", "softmax"} else None
    predictor = RoundPredictor(schema, classes, forest, start, link, n_rounds)
    predictor.check()
    return predictor


def open_booster(booster: Any) -> tuple[Any, NDArray[np.float64] | None]:
    """The trees of a booster, and the weight of each where it is DART."""
    name = need(booster, "name")
    if name == "gbtree":
        return need(booster, "model"), None
    if name == "dart":
        weights = numbers(need(booster, "weight_drop"), "weight_drop", np.float32)
        return need(booster, "gbtree", "model"), weights.astype(np.float64)
    raise NotImportedError(f"the booster {name!r:.40} is not read: gbtree and dart are")


def single_leaf() -> TreeNodes:
    """A tree that adds nothing."""
    none = np.full(1, NO_CHILD)
    return TreeNodes(none, none, none, np.zeros(1), np.zeros(1, bool), np.ones(1), np.ones(1), np.zeros(1))


def read_sets(tree: dict[str, Any]) -> CategorySets:
    """The sets of categories of a tree."""
    if not len(tree.get("categories_nodes", ())):
        return CategorySets([], [])
    nodes, begin, size, categories = (
        numbers(need(tree, name), name, np.int64)
        for name in ("categories_nodes", "categories_segments", "categories_sizes", "categories")
    )
    is_inside = (begin >= 0) & (size >= 0) & (begin + size <= len(categories))
    if not len(nodes) == len(begin) == len(size) or not is_inside.all():
        raise BrokenFileError("sets of categories go beyond their list")
    if bool(np.any((categories < 0) | (categories >= MOST_LEVELS))):
        raise NotImportedError(f"categories from {MOST_LEVELS} on are not read")
    chosen = [categories[lo : lo + n] for lo, n in zip(begin.tolist(), size.tolist(), strict=True)]
    return CategorySets(nodes.tolist(), chosen)


def find_levels(
    learner: Any, booster: Any, trees: list[Any], sets: list[CategorySets], n_features: int
) -> list[list[Any] | None]:
    """The levels of each column: those of a frame that the model was trained on, else codes.

    XGBoost sends a code that no set has to the left, a missing one wherever the node says: where these differ, there
    are at least 64 codes more than sets name, which rows may bring.
    """
    types = learner.get("feature_types") or []
    known = read_categories(booster.get("cats"))
    levels = [known.get(j) or None if j < len(types) and types[j] == "c" else None for j in range(n_features)]
    tops, must_differ = find_tops(trees, sets, n_features)
    if sum(top + 2 * WORD_BITS for top in tops.values()) > MOST_ALL_LEVELS:
        raise NotImportedError(f"columns of more than {MOST_ALL_LEVELS:,} categories together are not read")
    for j, top in tops.items():
        named = levels[j]
        if named is None:
            levels[j] = list(range(((top + 1) // WORD_BITS + 2) * WORD_BITS if j in must_differ else top + 1))
        elif top >= len(named):
            raise BrokenFileError(f"column {j} has {len(named)} categories, a test asks for number {top}")
    return levels


def find_tops(trees: list[Any], sets: list[CategorySets], n_features: int) -> tuple[dict[int, int], set[int]]:
    """The largest code that sets of each column name; the columns whose missing values go where other codes do not."""
    tops: dict[int, int] = {}
    must_differ = set()
    for tree, found in zip(trees, sets, strict=True):
        feature = numbers(need(tree, "split_indices"), "split_indices", np.int64)
        is_left = numbers(need(tree, "default_left"), "default_left", np.int64)
        for node, chosen in zip(found.nodes, found.chosen, strict=True):
            if not (0 <= node < len(feature) == len(is_left) and 0 <= feature[node] < n_features):
                raise BrokenFileError("a set of categories is of no node, or of no column")
            j = int(feature[node])
            tops[j] = max(tops.get(j, 0), int(chosen.max(initial=0)))
            if not is_left[node]:
                must_differ.add(j)
    return tops, must_differ


def read_categories(cats: Any) -> dict[int, list[Any]]:
    """The categories of frames by column; text stands as its bytes end to end."""
    found: dict[int, list[Any]] = {}
    for j, column in enumerate(need(cats, "enc") if isinstance(cats, dict) else ()):
        if "offsets" in column:
            offsets = numbers(column["offsets"], "offsets", np.int64).tolist()
            text = bytes(numbers(column["values"], "values", np.int64).astype(np.uint8))
            if any(not 0 <= lo <= hi <= len(text) for lo, hi in pairwise(offsets)):
                raise BrokenFileError(f"the names of the categories of column {j} go beyond their text")
            found[j] = read_names(text, offsets, j)
        else:
            values = numbers(need(column, "values"), "values")
            found[j] = [int(x) if x == math.floor(x) else x for x in values.tolist()]
    return found


def read_names(text: bytes, offsets: list[int], j: int) -> list[str]:
    """The names of a column's categories, if they are whole.

    XGBoost (3.2) counts letters where it takes names from pandas, and bytes where they come from Arrow: from the first
    letter beyond ASCII on, those of pandas are cut, and nothing in a file tells which of the two it is.
    """
    fix = "rename them in ASCII before training, or train on a pyarrow table"
    try:
        names = [text[lo:hi].decode("utf-8") for lo, hi in pairwise(offsets)]
    except UnicodeDecodeError:
        raise NotImportedError(
            f"the names of the categories of column {j} are cut in the middle of a letter, as XGBoost does with names "
            f"beyond ASCII that it takes from pandas: {fix}"
        ) from None
    if not text.isascii():
        warnings.warn(
            f"The names of the categories of column {j} have letters beyond ASCII. XGBoost cuts such names where it "
            f"takes them from pandas, and they are then not found in a table: compare some predictions; {fix}.",
            stacklevel=2,
        )
    return names


def read_xgboost_tree(
    tree: dict[str, Any], sets: CategorySets, factor: float, n_levels: NDArray[np.int32]
) -> TreeNodes:
    """The nodes of one tree; factor: what its leaves are multiplied by."""
    left, right, feature, kind, is_left = (
        numbers(tree.get(name, []), name, np.int64)
        for name in ("left_children", "right_children", "split_indices", "split_type", "default_left")
    )
    condition = numbers(need(tree, "split_conditions"), "split_conditions", np.float32)
    kind = kind if len(kind) else np.zeros(len(left), np.int64)
    if len(condition) != len(left) or len(kind) != len(left):
        raise BrokenFileError("split_conditions and split_type need an entry for each node")
    is_leaf = left == NO_CHILD
    is_subset = (kind == CATEGORICAL) & ~is_leaf
    if bool(np.any((kind != 0) & (kind != CATEGORICAL))):
        raise NotImportedError("a split_type beyond numbers and categories is not read")
    cut = np.where(is_leaf, factor * condition.astype(np.float64), cut_rounded_below(condition))
    subsets: list[NDArray[np.bool_]] = []
    if is_subset.any():
        place = dict(zip(sets.nodes, sets.chosen, strict=True))
        for node in np.flatnonzero(is_subset).tolist():
            if node not in place:
                raise BrokenFileError(f"node {node} asks for a set of categories that there is not")
            goes_left = np.ones(n_levels[feature[node]], bool)
            goes_left[place[node]] = False
            cut[node] = len(subsets)
            subsets.append(goes_left)
    cover = numbers(tree.get("sum_hessian", np.ones(len(left))), "sum_hessian")
    gain = numbers(tree.get("loss_changes", np.zeros(len(left))), "loss_changes")
    return TreeNodes(left, right, feature, cut, is_left != 0, cover, cover, gain, subsets, is_subset)


def order_trees(tree_info: Any, n_trees: int, n_raw: int) -> list[int]:
    """The trees in rounds of one for each class."""
    of_class = numbers(tree_info, "tree_info", np.int64)
    if len(of_class) != n_trees or bool(np.any((of_class < 0) | (of_class >= n_raw))):
        raise BrokenFileError(f"tree_info does not say for each of {n_trees} trees which of {n_raw} scores it adds to")
    own = [np.flatnonzero(of_class == k) for k in range(n_raw)]
    if len({len(trees) for trees in own}) != 1:
        raise BrokenFileError("classes have different numbers of trees")
    return np.stack(own, axis=1).reshape(-1).tolist()


def find_rounds(learner: Any, booster: Any, n_rounds: int) -> int:
    """How many rounds predict: all, or those up to the best iteration where the model stopped early."""
    attributes = learner.get("attributes", {})
    best = attributes.get("best_iteration") if isinstance(attributes, dict) else None
    if best is None:
        return n_rounds
    n_side = whole(booster.get("gbtree_model_param", {}).get("num_parallel_tree", "1"), "num_parallel_tree", 0, 1 << 20)
    return min((whole(best, "best_iteration") + 1) * max(n_side, 1), n_rounds)


def read_start(text: Any, objective: str, link: str, n_raw: int) -> NDArray[np.float64]:
    """Raw scores before the first tree, computed from the base score in float32 as XGBoost does."""
    try:
        base = [np.float32(part) for part in str(text).strip("[]").split(",")]
    except ValueError:
        raise BrokenFileError(f"base_score={text!r:.40} is no number") from None
    base = base * n_raw if len(base) == 1 else base
    if len(base) != n_raw or not all(math.isfinite(x) for x in base):
        raise BrokenFileError(f"base_score={text!r:.60} is not {n_raw} finite numbers")
    if objective in ODDS or link == "log":
        is_inside = all(0.0 < x < 1.0 for x in base) if objective in ODDS else all(x > 0.0 for x in base)
        if not is_inside:
            raise BrokenFileError(f"base_score={text!r:.40} is none of {objective}")
        one = np.float32(1.0)
        logs = [-log_one(float(one / x - one)) if objective in ODDS else log_one(float(x)) for x in base]
        base = [np.float32(x) for x in logs]
    return np.array(base, np.float64)
