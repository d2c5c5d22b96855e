"""Treelite: a model in its binary form, for the runtimes that read it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.model.export.binary_trees import EQUAL, LESS_EQUAL, BinaryTrees
from spinney.model.export.json_tables import list_dates
from spinney.model.export.scored import Scored

if TYPE_CHECKING:
    from spinney.model.export.tree_sum import TreeSum

INSTEAD = "export it to c, python, javascript or json"


class Link(NamedTuple):
    """From sums to answers in the words of Treelite.

    Attributes
    ----------
    name : str
        Of the postprocessor.
    factor : float
        What values of leaves are multiplied by.
    is_mean : bool
    """

    name: str
    factor: float = 1.0
    is_mean: bool = False


def need_treelite() -> Any:
    """The package `treelite`."""
    try:
        import treelite
        import treelite.gtil
        import treelite.model_builder
    except ImportError as error:
        raise ImportError("an export to Treelite needs its package: pip install 'spinney[treelite]'") from error
    return treelite


def write_treelite(form: TreeSum) -> bytes:
    """A model as bytes that `treelite.Model.deserialize_bytes` reads."""
    treelite = need_treelite()
    if form.has_spread or form.surrogates or form.terms:
        what = (
            "rows that take several branches"
            if form.has_spread
            else "surrogates"
            if form.surrogates
            else "linear leaves"
        )
        raise ValueError(f"Treelite has no {what}: {INSTEAD}")
    content: bytes = build(form, find_link(form), treelite.model_builder).commit().serialize_bytes()
    return content


def find_link(form: TreeSum) -> Link:
    """The steps of a model in the words of Treelite."""
    name = "identity" if form.classes is None else "identity_multiclass"
    factor, is_mean = 1.0, False
    for step, arguments in form.steps:
        if step == "divide" and not is_mean and arguments["by"] == len(form.roots) and form.choice == "answers":
            is_mean = True
        elif step in {"divide", "multiply"}:
            factor = factor / arguments["by"] if step == "divide" else factor * arguments["by"]
        elif step == "contrast":  # but for a constant, which softmax does not see
            factor *= (1.0 + 1.0 / arguments["others"]) / arguments["weight"]
        elif step in {"exp", "logistic", "softmax"} and name != "exponential":
            name = {"exp": "exponential", "logistic": "sigmoid", "softmax": "softmax"}[step]
            if step == "exp" and len(form.steps) > 1:
                raise ValueError(f"Treelite does not scale numbers of a log link: {INSTEAD}")
        else:
            raise ValueError(f"Treelite has no step {step!r} from the sums of trees to answers: {INSTEAD}")
    if is_mean and factor != 1.0:
        raise ValueError(f"the numbers are too far from 1 to be averaged by Treelite: {INSTEAD}")
    return Link(name, factor, is_mean)


def build(form: TreeSum, link: Link, builders: Any) -> Any:
    """The trees in a builder of Treelite."""
    n_sums, n_trees = len(form.start), max(len(form.roots), 1)
    is_vector = n_sums > 1 and not all(len(e) == 1 and e[0][0] == t % n_sums for t, e in leaves_by_tree(form))
    task = "kRegressor" if form.classes is None else "kBinaryClf" if link.name == "sigmoid" else "kMultiClf"
    metadata = builders.Metadata(
        num_feature=len(form.columns),
        task_type=task,
        average_tree_output=link.is_mean,
        num_target=1,
        num_class=[n_sums],
        leaf_vector_shape=(1, n_sums if is_vector else 1),
    )
    builder = builders.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=metadata,
        tree_annotation=builders.TreeAnnotation(
            num_tree=n_trees,
            target_id=[0] * n_trees,
            class_id=[-1 if is_vector else t % n_sums for t in range(n_trees)],
        ),
        postprocessor=builders.PostProcessorFunc(name=link.name),
        base_scores=[start * link.factor for start in form.start],
        attributes={"dates": list_dates(form)} if form.dates else None,
    )
    add_trees(builder, form, link.factor, is_vector=is_vector)
    return builder


def leaves_by_tree(form: TreeSum) -> list[tuple[int, list[tuple[int, float]]]]:
    """What every leaf adds, with the number of its tree."""
    found = []
    for t in range(len(form.roots)):
        nodes = form.tree_of(t)
        numbers = form.nodes.first[nodes.start : nodes.stop][form.nodes.kind[nodes.start : nodes.stop] == 0]
        found += [(t, form.leaves[number]) for number in numbers.tolist()]
    return found


def add_trees(builder: Any, form: TreeSum, factor: float, *, is_vector: bool) -> None:
    """Every tree, node by node: children behind their parents."""
    for root in form.roots or [-1]:
        trees = BinaryTrees(form)
        builder.start_tree()
        if root < 0 or form.nodes.kind[root] == 0:
            entries = [] if root < 0 else form.leaves[form.nodes.first[root]]
            builder.start_node(0)
            builder.leaf(leaf_value(entries, form, factor, is_vector=is_vector))
            builder.end_node()
            builder.end_tree()
            continue
        trees.unroll(root)
        n_inner = len(trees.mode)
        leaves: list[int] = []

        def key_of(end: tuple[int, bool], n_inner: int = n_inner, leaves: list[int] = leaves) -> int:
            if not end[1]:
                return end[0]
            leaves.append(end[0])
            return n_inner + len(leaves) - 1

        for node in range(n_inner):
            builder.start_node(node)
            ends = {"left_child_key": key_of(trees.true[node]), "right_child_key": key_of(trees.false[node])}
            default = {"default_left": bool(trees.missing[node])}
            if trees.mode[node] == LESS_EQUAL:
                builder.numerical_test(trees.feature[node], trees.split[node], opname="<=", **default, **ends)
            else:
                levels = [int(trees.split[node])] if trees.mode[node] == EQUAL else list(trees.subsets[node])
                builder.categorical_test(
                    trees.feature[node], category_list=levels, category_list_right_child=False, **default, **ends
                )
            builder.end_node()
        for at, number in enumerate(leaves):
            builder.start_node(n_inner + at)
            builder.leaf(leaf_value(form.leaves[number], form, factor, is_vector=is_vector))
            builder.end_node()
        builder.end_tree()


def leaf_value(entries: list[tuple[int, float]], form: TreeSum, factor: float, *, is_vector: bool) -> Any:
    """What a leaf adds."""
    if not is_vector:
        return entries[0][1] * factor if entries else 0.0
    row = [0.0] * len(form.start)
    for k, value in entries:
        row[k] = value * factor
    return row


def run_treelite(content: bytes, form: TreeSum, cells: list[list[Any]]) -> Scored:
    """Ask the reference runtime of Treelite, which takes values: a level by its place."""
    treelite = need_treelite()
    values = np.empty((len(cells), len(form.columns)))
    for j, column in enumerate(form.columns):
        places = None if column.levels is None else {level: float(at) for at, level in enumerate(column.levels)}
        for i, row in enumerate(cells):
            cell = row[j] if places is None else places.get(row[j])
            values[i, j] = math.nan if cell is None else cell
    model = treelite.Model.deserialize_bytes(content)
    answers = np.asarray(treelite.gtil.predict(model, values, nthread=1), np.float64).reshape(len(cells), -1)
    if form.classes is None:
        return Scored(answers, None)
    if answers.shape[1] == 1 and len(form.classes) == 2:
        answers = np.concatenate([1.0 - answers, answers], axis=1)
    return Scored(answers, [form.classes[at] for at in answers.argmax(axis=1).tolist()])
