"""Models of LightGBM: text files as `save_model` writes them, `Booster` and the classes of its scikit-learn interface.

LightGBM compares float64 and sends what is not above the threshold to the left. A category goes left if its bit is set,
and right if it is missing or was never seen. What is missing in a column of numbers goes to a side of its own (NaN), or
is taken for zero (None), or zeros are taken for missing (Zero): the node says which. Before anything else, what is
within 1e-35 of zero is zero.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import MAX_CODES
from spinney.model.container import BrokenFileError
from spinney.model.imports.foreign_file import (
    MOST_CLASSES,
    MOST_COLUMNS,
    NotImportedError,
    count_levels,
    make_schema,
    name_columns,
    parse_json,
    read_file,
    understanding,
    whole,
)
from spinney.model.imports.tree_table import NO_CHILD, TreeNodes, join_nodes
from spinney.model.imports.zero_missing import BELOW, ZeroSplitter
from spinney.model.imports.zero_missing import ZERO as NEAREST
from spinney.model.predictors import RoundPredictor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.schema import Schema

LINKS = {  # of objectives; what is not here is refused by name
    **dict.fromkeys(
        ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg"), "identity"
    ),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "log"),
    **dict.fromkeys(("binary", "cross_entropy"), "logistic"),
    "multiclass": "softmax",
}
END = "end of trees"
VERSIONS = ("v2", "v3", "v4")
IS_CATEGORICAL, IS_DEFAULT_LEFT, FIRST_KIND, N_KINDS = 1, 2, 4, 4  # of decision_type: bits, then what is missing
NONE, ZERO, NAN = range(3)  # what is missing
BITS = 32  # of a word of a set of categories


class ModelText(NamedTuple):
    """A file taken apart: what it says of the model, of each tree and behind the trees."""

    head: dict[str, str]
    trees: list[dict[str, str]]
    foot: dict[str, str]


def from_lightgbm(model: Any) -> RoundPredictor:
    """Read a model of LightGBM: the result predicts, is drawn, saved and exported as any other.

    Predictions are those of LightGBM, but for the last places of sums.

    Parameters
    ----------
    model : path, Booster, LGBMClassifier, LGBMRegressor, LGBMRanker
        A file is text as `save_model` writes it. It may be a stranger's: nothing in it is run, and all of it is
        checked.

    Returns
    -------
    RoundPredictor
        Classes are 0, 1, ... of a file or Booster. Categories are those of the frame that the model was trained on, or
        whole numbers.

    Raises
    ------
    BrokenFileError
        The file is no model, or damaged.
    ValueError
        The model has what is not read, which is named: an objective whose answers are no link (`multiclassova`,
        `cross_entropy_lambda`), `reg_sqrt`.

    Examples
    --------
    >>> import os, tempfile
    >>> import spinney
    >>> text = '''tree
    ... version=v4
    ... num_class=1
    ... num_tree_per_iteration=1
    ... max_feature_idx=0
    ... objective=regression
    ... feature_names=Column_0
    ... feature_infos=[1:4]
    ...
    ... Tree=0
    ... num_leaves=2
    ... num_cat=0
    ... split_feature=0
    ... threshold=2.5
    ... decision_type=8
    ... left_child=-1
    ... right_child=-2
    ... leaf_value=10 20
    ...
    ... end of trees
    ... '''
    >>> path = os.path.join(tempfile.mkdtemp(), "model.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write(text)
    >>> spinney.from_lightgbm(path).predict([[1.0], [3.0]])
    array([10., 20.])
    """
    classes = None
    if isinstance(model, str | os.PathLike):
        name, data = os.fspath(model), read_file(model)
    else:
        name, classes = type(model).__name__, getattr(model, "classes_", None)
        booster = getattr(model, "booster_", model)
        if not hasattr(booster, "model_to_string"):
            raise TypeError(f"model={model!r:.60} is neither a file nor a model of LightGBM")
        data = booster.model_to_string().encode()
    with understanding(name, "LightGBM"):
        return read_text(take_apart(data), classes)


def take_apart(data: bytes) -> ModelText:
    """The lines of a file as names and values."""
    lines = data.decode("utf-8").replace("\r\n", "\n").split("\n")
    if lines[0].strip() != "tree":
        raise BrokenFileError("its first line is not 'tree': save it by save_model('model.txt')")
    if END not in lines:
        raise BrokenFileError(f"there is no {END!r}: it was cut off")
    end = lines.index(END)
    head: dict[str, str] = {}
    trees: list[dict[str, str]] = []
    part = head
    for line in lines[1:end]:
        name, equals, value = line.partition("=")
        if name == "Tree":
            trees.append({})
            part = trees[-1]
        elif name in part:
            raise BrokenFileError(f"{name!r:.40} stands twice")
        elif name:
            part[name] = value if equals else "1"
    return ModelText(head, trees, read_foot(lines[end + 1 :]))


def read_foot(lines: list[str]) -> dict[str, str]:
    """Parameters, and the categories of a frame, which stand behind the trees."""
    foot: dict[str, str] = {}
    for line in lines:
        name, colon, rest = line.strip().partition(":")
        if colon and name == "pandas_categorical":
            foot[name] = rest
        elif colon and name.startswith("["):
            foot.setdefault(name[1:], rest.strip(" ]"))
    return foot


def read_text(text: ModelText, classes: Any) -> RoundPredictor:
    """The predictor of a file; classes: those of a classifier, if it is one."""
    head = text.head
    if head.get("version") not in VERSIONS:
        raise NotImportedError(f"the version {head.get('version')!r:.20} is not read: {', '.join(VERSIONS)} are")
    n_features = whole(head.get("max_feature_idx"), "max_feature_idx", 0, MOST_COLUMNS - 1) + 1
    n_raw = whole(head.get("num_tree_per_iteration"), "num_tree_per_iteration", 1, MOST_CLASSES)
    link, factor = read_objective(head.get("objective", ""), n_raw)
    if not text.trees or len(text.trees) % n_raw:
        raise BrokenFileError(f"{len(text.trees)} trees are no rounds of {n_raw}")
    n_rounds = len(text.trees) // n_raw
    if "average_output" in head:
        factor /= n_rounds
    schema = read_columns(text, n_features)
    n_levels = count_levels(schema)
    codes = [list_codes(schema, j, text) for j in range(n_features)]
    nodes = [read_lightgbm_tree(tree, factor, codes) for tree in text.trees]
    forest = join_nodes(nodes, n_levels, name_columns(schema))
    n_classes = {"logistic": 2, "softmax": n_raw}.get(link, 0)
    if n_classes:
        classes = np.arange(n_classes) if classes is None or len(classes) != n_classes else np.asarray(classes)
    predictor = RoundPredictor(schema, classes if n_classes else None, forest, np.zeros(n_raw), link, n_rounds)
    predictor.check()
    return predictor


def read_objective(objective: str, n_raw: int) -> tuple[str, float]:
    """The link of an objective, and what raw scores are multiplied by before it."""
    name, *options = objective.split() or [""]
    settings = dict(option.partition(":")[::2] for option in options)
    if not name:  # a function of the user's
        if n_raw > 1:
            raise NotImportedError("several scores (num_class) of an objective of your own are not read")
        return "identity", 1.0
    if name not in LINKS:
        raise NotImportedError(f"the objective {name!r:.60} is not read: {', '.join(LINKS)} are")
    if "sqrt" in settings:
        raise NotImportedError("reg_sqrt, which squares the answers, is not read")
    link = LINKS[name]
    if (n_raw > 1) != (link == "softmax"):
        raise NotImportedError(f"the objective {name} with num_tree_per_iteration={n_raw} is not read")
    return link, float(settings.get("sigmoid", "1")) if name == "binary" else 1.0


def read_columns(text: ModelText, n_features: int) -> Schema:
    """Names and levels of the columns."""
    names: list[str] | None = text.head.get("feature_names", "").split(" ")
    if names == [f"Column_{j}" for j in range(n_features)]:
        names = None  # LightGBM gives these where a table had none
    infos = text.head.get("feature_infos", "").split(" ")
    if len(infos) != n_features:
        raise BrokenFileError(f"feature_infos tells of {len(infos)} columns, there are {n_features}")
    seen = {
        j: sorted({int(code) for code in info.split(":")} - {-1})
        for j, info in enumerate(infos)
        if info != "none" and not info.startswith("[")
    }
    asked = find_asked(text, n_features)
    levels: list[list[Any] | None] = [None] * n_features
    for j in seen.keys() | asked.keys():
        levels[j] = sorted({*seen.get(j, ()), *asked.get(j, ())})
    frame = parse_json(text.foot.get("pandas_categorical", "null").encode())
    if frame:
        told = [part for part in text.foot.get("categorical_feature", "").split(",") if part]
        columns = sorted({int(part) for part in told}) if told else sorted(seen)
        if len(frame) != len(columns) or not all(0 <= j < n_features for j in columns):
            raise NotImportedError(
                f"pandas_categorical has categories of {len(frame)} columns, {len(columns)} are categorical: which "
                "belong together it does not say (ordered categories are numbers to LightGBM): train on codes"
            )
        for j, categories in zip(columns, frame, strict=True):
            if levels[j] and levels[j][-1] >= len(categories):  # type: ignore[index]
                raise BrokenFileError(f"column {j} has {len(categories)} categories, a test asks for {levels[j][-1]}")  # type: ignore[index]
            levels[j] = categories or None
    return make_schema(names, levels)


def find_asked(text: ModelText, n_features: int) -> dict[int, set[int]]:
    """The categories that sets of a column hold."""
    asked: dict[int, set[int]] = {}
    for tree in text.trees:
        if tree.get("num_cat", "0") == "0":
            continue
        decision, feature = read_whole(tree, "decision_type"), read_whole(tree, "split_feature")
        threshold, words = read_numbers(tree, "threshold"), read_words(tree)
        for at in np.flatnonzero(decision & IS_CATEGORICAL).tolist():
            j = int(feature[at])
            if not 0 <= j < n_features:
                raise BrokenFileError(f"a test asks for column {j} of {n_features}")
            found = words.list_set(threshold[at])
            mine = asked.setdefault(j, set())
            if len(found) + len(mine) <= 2 * MAX_CODES:  # else there are too many
                mine.update(found.tolist())
            if len(found) > MAX_CODES or len(mine) > MAX_CODES:
                raise NotImportedError(f"column {j} has more than {MAX_CODES:,} categories, which are not read")
    return asked


def list_codes(schema: Schema, j: int, text: ModelText) -> NDArray[np.int64]:
    """The code of each level of a column: its place in the categories of a frame, or itself."""
    levels = schema.levels[j]
    if levels is None:
        return np.zeros(0, np.int64)
    is_frame = text.foot.get("pandas_categorical", "null") not in {"null", "[]"}
    return np.arange(len(levels)) if is_frame else np.array(levels, np.int64)


def read_numbers(tree: dict[str, str], name: str, default: str = "") -> NDArray[np.float64]:
    """A row of numbers."""
    return np.array([float(part) for part in tree.get(name, default).split()], np.float64)


def read_whole(tree: dict[str, str], name: str) -> NDArray[np.int64]:
    """A row of whole numbers."""
    return np.array([int(part) for part in tree.get(name, "").split()], np.int64)


class SetWords(NamedTuple):
    """The sets of categories of a tree, as words of 32 bits end to end."""

    edges: NDArray[np.int64]
    words: NDArray[np.int64]

    def list_set(self, number: float) -> NDArray[np.int64]:
        """The categories of a set, by its number."""
        edges, words, at = self.edges, self.words, int(number)
        if not (0 <= at < len(edges) - 1 and 0 <= edges[at] <= edges[at + 1] <= len(words)):
            raise BrokenFileError("a set of categories goes beyond its words")
        bits = np.unpackbits(words[edges[at] : edges[at + 1]].astype("<u4").view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.int64)


def read_words(tree: dict[str, str]) -> SetWords:
    """The sets of categories of a tree."""
    edges, words = read_whole(tree, "cat_boundaries"), read_whole(tree, "cat_threshold")
    if bool(np.any((words < 0) | (words >= 1 << BITS))):
        raise BrokenFileError("cat_threshold must be words of 32 bits")
    return SetWords(edges, words)


def read_lightgbm_tree(tree: dict[str, str], factor: float, codes: list[NDArray[np.int64]]) -> TreeNodes:
    """The nodes of one tree: tests, then leaves; factor: what its leaves are multiplied by."""
    n_leaves = whole(tree.get("num_leaves"), "num_leaves", 1)
    n_tests = n_leaves - 1
    value = factor * read_numbers(tree, "leaf_value")
    count = read_numbers(tree, "leaf_count") if tree.get("leaf_count") else np.ones(n_leaves)
    feature, decision = (read_whole(tree, name)[:n_tests] for name in ("split_feature", "decision_type"))
    child = [read_whole(tree, name)[:n_tests] for name in ("left_child", "right_child")]
    threshold = read_numbers(tree, "threshold")[:n_tests]
    gain = read_numbers(tree, "split_gain")[:n_tests] if tree.get("split_gain") else np.zeros(n_tests)
    if {len(part) for part in (feature, decision, *child, threshold, gain)} != {n_tests}:
        raise BrokenFileError(f"a tree of {n_leaves} leaves has {n_tests} tests, and an entry for each")
    if len(value) != n_leaves or len(count) != n_leaves:
        raise BrokenFileError(f"leaf_value and leaf_count need {n_leaves} entries")
    none = np.full(n_leaves, NO_CHILD)
    left, right = (np.concatenate([np.where(side < 0, n_tests - 1 - side, side), none]) for side in child)
    is_category = (decision & IS_CATEGORICAL) != 0
    missing = (decision // FIRST_KIND) % N_KINDS
    is_left = np.where(missing == NONE, threshold >= 0.0, (decision & IS_DEFAULT_LEFT) != 0) & ~is_category
    is_among = (threshold > BELOW) & (threshold < NEAREST) & (missing != ZERO)
    cut = np.concatenate([np.where(is_among, np.where(threshold >= 0.0, NEAREST, BELOW), threshold), value])
    subsets: list[NDArray[np.bool_]] = []
    words = read_words(tree)
    for at in np.flatnonzero(is_category).tolist():
        chosen = words.list_set(threshold[at])
        cut[at] = len(subsets)
        if not 0 <= feature[at] < len(codes):
            raise BrokenFileError(f"a test asks for column {feature[at]} of {len(codes)}")
        subsets.append(np.isin(codes[feature[at]], chosen))
    on_tests, on_leaves = np.zeros(n_tests), np.zeros(n_leaves)
    rows = np.concatenate([on_tests, count])
    nodes = TreeNodes(
        left,
        right,
        np.concatenate([feature, none]),
        cut,
        np.concatenate([is_left, on_leaves > 0.0]),
        rows,
        rows,
        np.concatenate([gain, on_leaves]),
        subsets,
        np.concatenate([is_category, on_leaves > 0.0]),
    )
    takes_zero = (missing == ZERO) & ~is_category
    if tree.get("is_linear", "0") == "1":
        if takes_zero.any():
            raise NotImportedError("zero_as_missing with linear_tree, which LightGBM itself refuses, is not read")
        return add_linear(nodes, read_terms(tree, n_leaves, factor))
    if not takes_zero.any():
        return nodes
    join_nodes([nodes], np.array([len(part) for part in codes], np.int32), None)  # before it is walked
    return ZeroSplitter(nodes, [*takes_zero.tolist(), *[False] * n_leaves]).split()


class LeafModel(NamedTuple):
    """The linear model of a leaf, which holds where none of its features is missing."""

    constant: float
    features: NDArray[np.int64]
    coefficients: NDArray[np.float64]


def read_terms(tree: dict[str, str], n_leaves: int, factor: float) -> list[LeafModel]:
    """The linear models of the leaves; factor: what they are multiplied by."""
    sizes = read_whole(tree, "num_features")
    constants = factor * read_numbers(tree, "leaf_const")
    features, coefficients = read_whole(tree, "leaf_features"), factor * read_numbers(tree, "leaf_coeff")
    is_sound = len(sizes) == len(constants) == n_leaves and bool(np.all(sizes >= 0))
    if not is_sound or not len(features) == len(coefficients) == sizes.sum():
        raise BrokenFileError(
            f"leaf_const, num_features, leaf_features and leaf_coeff are not those of {n_leaves} leaves"
        )
    ends = np.cumsum(sizes)[:-1]
    parts = zip(constants.tolist(), np.split(features, ends), np.split(coefficients, ends), strict=True)
    return [LeafModel(*part) for part in parts]


def add_linear(nodes: TreeNodes, models: list[LeafModel]) -> TreeNodes:
    """The tree with linear leaves.

    Above each stand tests that send a row with a missing feature to the plain value of the leaf: every known value is
    up to infinity.
    """
    first = len(nodes.left) - len(models)
    parts: dict[str, list[Any]] = {name: getattr(nodes, name).tolist() for name in TreeNodes._fields[:8]}
    is_subset = [] if nodes.is_subset is None else nodes.is_subset.tolist()
    terms = {}
    for number, model in enumerate(models):
        at = first + number
        value, weight, n_rows = parts["cut"][at], parts["weight"][at], parts["n_rows"][at]
        for feature in model.features.tolist():
            n = len(parts["left"])
            parts["left"][at], parts["right"][at] = n, n + 1
            parts["feature"][at], parts["cut"][at], parts["is_missing_left"][at] = feature, np.inf, False
            for name, pair in (
                ("left", (NO_CHILD, NO_CHILD)), ("right", (NO_CHILD, NO_CHILD)), ("feature", (0, 0)),
                ("cut", (value, value)), ("is_missing_left", (False, False)), ("weight", (weight, 0.0)),
                ("n_rows", (n_rows, 0.0)), ("gain", (0.0, 0.0)),
            ):  # fmt: skip
                parts[name] += pair
            is_subset += [False, False]
            at = n
        parts["cut"][at] = model.constant
        if len(model.features):
            terms[at] = model.features, model.coefficients
    arrays: dict[str, Any] = {name: np.array(part, getattr(nodes, name).dtype) for name, part in parts.items()}
    return nodes._replace(**arrays, is_subset=np.array(is_subset, bool), terms=terms)
