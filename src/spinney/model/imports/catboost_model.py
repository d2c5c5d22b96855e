"""Models of CatBoost: JSON files as `save_model(format="json")` writes them, and its classes.

CatBoost rounds a value to float32 and goes right where it is above the border. Its trees ask the same of all nodes of a
depth: leaf number i is the one where bit d of i says whether test d was true. Other shapes of trees (`grow_policy`) are
read as well. Features of categories, text and embeddings are hashed or learnt from, in ways that no tree holds: they
are refused.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.model.container import BrokenFileError
from spinney.model.imports.float32_cuts import cut_rounded
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
from spinney.model.predictors import RoundPredictor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.schema import Schema

LINKS = {  # of losses; what is not here is refused by name
    **dict.fromkeys(
        ("RMSE", "MAE", "Quantile", "MAPE", "Huber", "LogCosh", "Expectile", "Lq", "LogLinQuantile", "GroupQuantile",
         "PairLogit", "PairLogitPairwise", "QueryRMSE", "QuerySoftMax", "YetiRank", "YetiRankPairwise", "LambdaMart",
         "StochasticRank"),
        "identity",
    ),
    **dict.fromkeys(("Poisson", "Tweedie"), "log"),
    **dict.fromkeys(("Logloss", "CrossEntropy"), "logistic"),
    "MultiClass": "softmax",
}  # fmt: skip
GOES_RIGHT = {"AsIs": False, "AsFalse": False, "AsTrue": True}  # missing values
MOST_DEPTH = 16  # of CatBoost's own


class FloatFeatures(NamedTuple):
    """The features of numbers."""

    column: NDArray[np.int64]
    is_missing_left: NDArray[np.bool_]


def from_catboost(model: Any) -> RoundPredictor:
    """Read a model of CatBoost: the result predicts, is drawn, saved and exported as any other.

    Predictions are those of CatBoost, but for the last places of sums: of `predict` for numbers (of a Poisson or
    Tweedie model its exponent), of `predict_proba` for classes.

    Parameters
    ----------
    model : path, CatBoostClassifier, CatBoostRegressor, CatBoostRanker, CatBoost
        A file is JSON: `save_model("model.json", format="json")`. It may be a stranger's: nothing in it is run, and all
        of it is checked.

    Returns
    -------
    RoundPredictor

    Raises
    ------
    BrokenFileError
        The file is no model, or damaged.
    ValueError
        The model has what is not read, which is named: features that are no numbers, a loss whose answers are no link.

    Examples
    --------
    >>> import json, os, tempfile
    >>> import spinney
    >>> tree = {"splits": [{"split_type": "FloatFeature", "float_feature_index": 0, "border": 2.5}],
    ...         "leaf_values": [-1.0, 1.0], "leaf_weights": [2, 2]}
    >>> column = {"feature_index": 0, "flat_feature_index": 0, "feature_id": "", "nan_value_treatment": "AsFalse"}
    >>> model = {"oblivious_trees": [tree], "scale_and_bias": [1, [0.5]],
    ...          "features_info": {"float_features": [column]},
    ...          "model_info": {"params": {"loss_function": {"type": "RMSE"}}}}
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> with open(path, "w") as file:
    ...     json.dump(model, file)
    >>> spinney.from_catboost(path).predict([[1.0], [3.0]])
    array([-0.5,  1.5])
    """
    if isinstance(model, str | os.PathLike):
        name, data = os.fspath(model), read_file(model)
    else:
        name = type(model).__name__
        if not (hasattr(model, "save_model") and hasattr(model, "tree_count_")):
            raise TypeError(f"model={model!r:.60} is neither a file nor a model of CatBoost")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            model.save_model(str(path), format="json")
            data = read_file(path)
    with understanding(name, "CatBoost"):
        return read_content(parse_json(data))


def read_content(content: Any) -> RoundPredictor:
    """The predictor of the JSON of a file."""
    loss = need(content, "model_info", "params", "loss_function", "type")
    link = LINKS.get(loss) if isinstance(loss, str) else None
    if link is None:
        raise NotImportedError(f"the loss {loss!r:.60} is not read: {', '.join(LINKS)} are")
    schema, features = read_features(need(content, "features_info"))
    scale, bias = read_scale(need(content, "scale_and_bias"))
    n_raw = len(bias)
    if (n_raw > 1) != (link == "softmax"):
        raise NotImportedError(f"the loss {loss} with {n_raw} scores is not read")
    trees: list[TreeNodes] = []
    for read, key in ((read_oblivious, "oblivious_trees"), (read_nested, "trees")):
        listed = content.get(key, [])
        if not isinstance(listed, list):
            raise BrokenFileError(f"{key} must be a list")
        for tree in listed:
            trees += read(tree, features, scale, n_raw)
    forest = join_nodes(trees, count_levels(schema), name_columns(schema))
    classes = read_classes(content, 2 if link == "logistic" else n_raw) if link in {"logistic", "softmax"} else None
    predictor = RoundPredictor(schema, classes, forest, bias, link, len(trees) // n_raw)
    predictor.check()
    return predictor


def read_features(info: Any) -> tuple[Schema, FloatFeatures]:
    """The columns, and what the features of numbers are of them."""
    for kind in ("categorical_features", "text_features", "embedding_features", "ctrs"):
        if isinstance(info, dict) and info.get(kind):
            named = [
                str(one.get("feature_id") or one.get("flat_feature_index"))
                for one in info[kind]
                if isinstance(one, dict)
            ]
            raise NotImportedError(f"{kind} ({', '.join(named[:5])}) are not read: numbers alone are")
    listed = need(info, "float_features")
    if not isinstance(listed, list) or not listed:
        raise BrokenFileError("float_features must be a list")
    column = np.array(
        [whole(need(one, "flat_feature_index"), "flat_feature_index", 0, MOST_COLUMNS - 1) for one in listed]
    )
    treatment = [need(one, "nan_value_treatment") for one in listed]
    if not all(isinstance(one, str) and one in GOES_RIGHT for one in treatment):
        raise NotImportedError(f"a nan_value_treatment beyond {', '.join(GOES_RIGHT)} is not read")
    if len(np.unique(column)) < len(column):
        raise BrokenFileError("two features have one flat_feature_index")
    n_columns = int(column.max()) + 1
    given = {int(j): one.get("feature_id") for j, one in zip(column, listed, strict=True)}
    is_named = len(given) == n_columns and all(isinstance(name, str) and name for name in given.values())
    is_named &= any(name != str(j) for j, name in given.items())  # what CatBoost calls columns without names
    names = [str(given[j]) for j in range(n_columns)] if is_named else None
    schema = make_schema(names, [None] * n_columns)
    return schema, FloatFeatures(column, np.array([not GOES_RIGHT[one] for one in treatment]))


def read_scale(pair: Any) -> tuple[float, NDArray[np.float64]]:
    """What the sums are multiplied by, and what is added to them."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise BrokenFileError("scale_and_bias must be a number and one or several")
    scale = float(numbers([pair[0]], "scale")[0])
    bias = numbers(pair[1] if isinstance(pair[1], list) else [pair[1]], "bias")
    if not 1 <= len(bias) <= MOST_CLASSES or not np.isfinite([scale, *bias]).all():
        raise BrokenFileError("scale_and_bias must be finite")
    return scale, bias


def read_classes(content: Any, n_classes: int) -> NDArray[Any]:
    """The names of the classes, or 0, 1, ... where there are none."""
    params = content["model_info"].get("class_params") or {}
    for key in ("class_names", "class_to_label"):
        named = params.get(key)
        if isinstance(named, list) and len(named) == n_classes:
            kinds = {type(name) for name in named}
            if len(kinds) != 1 or not kinds <= {str, int, float, bool} or len(set(named)) < n_classes:
                raise BrokenFileError(f"{key} must be different texts, numbers or booleans")
            return np.array(named)
    return np.arange(n_classes)


def read_splits(
    splits: Any, features: FloatFeatures
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Column, cut and side of missing values of each test."""
    for split in splits:
        kind = need(split, "split_type")
        if kind != "FloatFeature":
            raise NotImportedError(f"tests of {kind!r:.40} are not read: those of FloatFeature are")
    places = [need(split, "float_feature_index") for split in splits]
    place = np.array([whole(one, "float_feature_index", 0, len(features.column) - 1) for one in places], np.int64)
    border = numbers([need(split, "border") for split in splits], "border", np.float32)
    return features.column[place], cut_rounded(border), features.is_missing_left[place]


def read_oblivious(tree: Any, features: FloatFeatures, scale: float, n_raw: int) -> list[TreeNodes]:
    """A tree that asks the same of all nodes of a depth, for each score."""
    splits = need(tree, "splits") or []
    if not isinstance(splits, list) or len(splits) > MOST_DEPTH:
        raise BrokenFileError(f"splits must be a list of at most {MOST_DEPTH}")
    depth = len(splits)
    n_leaves = 1 << depth
    values, weight = (
        numbers(need(tree, "leaf_values"), "leaf_values"),
        numbers(tree.get("leaf_weights", []), "leaf_weights"),
    )
    if len(values) != n_leaves * n_raw:
        raise BrokenFileError(
            f"a tree of depth {depth} has {n_leaves} leaves of {n_raw} values, not {len(values)} values"
        )
    weight = weight if len(weight) == n_leaves else np.ones(n_leaves)
    # A test is a bit of a leaf's number, the first the lowest: with the last at the root leaves stand in that order.
    # CatBoost's pictures and SHAP values have it there, too; path-dependent ones depend on what is asked first.
    column, cut, is_left = read_splits(splits[::-1], features)
    level = np.repeat(np.arange(depth), [1 << d for d in range(depth)])
    none = np.full(n_leaves, NO_CHILD)
    child = 2 * np.arange(n_leaves - 1) + 1
    on_tests, on_leaves = np.zeros(n_leaves - 1), np.zeros(n_leaves)
    rows = np.concatenate([on_tests, weight])
    of_score = scale * values.reshape(n_leaves, n_raw)
    return [
        TreeNodes(
            np.concatenate([child, none]),
            np.concatenate([child + 1, none]),
            np.concatenate([column[level], none]),
            np.concatenate([cut[level], of_score[:, k]]),
            np.concatenate([is_left[level], on_leaves > 0.0]),
            rows,
            rows,
            np.concatenate([np.full(n_leaves - 1, np.nan), on_leaves]),
        )
        for k in range(n_raw)
    ]


def read_nested(tree: Any, features: FloatFeatures, scale: float, n_raw: int) -> list[TreeNodes]:
    """A tree of any shape, whose branches stand in it."""
    found: list[Any] = [tree]
    left, right = [], []
    for node in found:  # which grows
        is_inner = isinstance(node, dict) and "split" in node
        left.append(len(found) if is_inner else NO_CHILD)
        right.append(len(found) + 1 if is_inner else NO_CHILD)
        if is_inner:
            found += [need(node, "left"), need(node, "right")]
    inner = np.flatnonzero(np.array(left) != NO_CHILD)
    feature, is_left = np.zeros(len(found), np.int64), np.zeros(len(found), bool)
    cuts = np.zeros((len(found), n_raw))
    column, cut, is_left[inner] = read_splits([found[at]["split"] for at in inner.tolist()], features)
    feature[inner], cuts[inner] = column, cut[:, None]
    gain, rows = np.zeros(len(found)), np.zeros(len(found))
    gain[inner] = np.nan
    for at in np.flatnonzero(np.array(left) == NO_CHILD).tolist():
        value = need(found[at], "value")
        of_score = numbers(value if isinstance(value, list) else [value], "value")
        if len(of_score) != n_raw:
            raise BrokenFileError(f"a leaf has {len(of_score)} values, not {n_raw}")
        cuts[at] = scale * of_score
        rows[at] = float(numbers([found[at].get("weight", 1)], "weight")[0])
    sides = np.array(left), np.array(right)
    return [TreeNodes(*sides, feature, cuts[:, k], is_left, rows, rows, gain) for k in range(n_raw)]
