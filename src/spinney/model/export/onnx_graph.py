"""ONNX: a graph in float64 that takes raw columns, with `TreeEnsemble` of ai.onnx.ml 5.

Each tree says by itself what its leaf adds, or which leaf it is; the sums are made by `CumSum`, which adds in order, so
that they have the bits of the model's whatever threads a runtime uses. Exponentials are the runtime's own.

A tree of surrogates or of rows that take several branches has no such operator: there a graph works out which part of a
row comes to each node.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._types import LEAF, MULTIWAY, THRESHOLD
from spinney.model.export.binary_trees import EQUAL, LESS_EQUAL, MEMBER, BinaryTrees
from spinney.model.export.json_tables import note_dates
from spinney.model.export.literals import is_float, is_unicode
from spinney.model.export.sample_rows import find_unseen
from spinney.model.export.scored import CannotRunError, Scored
from spinney.model.export.tree_sum import EVERY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.model.export.tree_sum import Column, Surrogate, TreeSum

OPSET, ML_OPSET, IR_VERSION = 18, 5, 10
MODES = {LESS_EQUAL: 0, EQUAL: 4, MEMBER: 6}
LEAST_EXP, MOST_EXP = -708.0, 709.0


def need_onnx() -> Any:
    """The package `onnx`."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError("an export to ONNX needs the packages of the extra: pip install 'spinney[onnx]'") from error
    return onnx


def write_onnx(form: TreeSum) -> bytes:
    """A model as a file of ONNX."""
    onnx = need_onnx()
    form.refuse_linear_sums("ONNX")
    content: bytes = GraphWriter(form, onnx).write().SerializeToString()
    return content


class GraphWriter:
    """Makes the graph.

    Parameters
    ----------
    form : TreeSum
    onnx : module
    """

    def __init__(self, form: TreeSum, onnx: Any) -> None:
        self.form, self.onnx = form, onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.prefix = "%"  # of names that are not a column's
        while any(column.name.startswith(self.prefix) for column in form.columns):
            self.prefix += "%"

    def write(self) -> Any:
        """The whole model."""
        from spinney import __version__

        form, helper = self.form, self.onnx.helper
        table = self.read_columns()
        sums = self.add_up(table)
        answers = sums
        for step, arguments in form.steps:
            answers = getattr(self, f"step_{step}")(answers, **arguments)
        outputs = self.name_outputs(sums, answers)
        graph = helper.make_graph(self.nodes, "trees", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="spinney")
        model.producer_version = __version__
        model.doc_string = note_dates(self.form)
        return model

    # --- parts of a graph ---

    def node(self, kind: str, inputs: Sequence[str], n_outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Append a node; its output, or outputs."""
        names = [f"{self.prefix}{len(self.nodes)}.{at}" for at in range(n_outputs)]
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0] if n_outputs == 1 else names

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """The name of a constant."""
        name = f"{self.prefix}constant {len(self.constants)}"
        array = np.array(values, object if dtype is str else dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def tensor(self, values: Any, dtype: Any) -> Any:
        """A tensor as an attribute."""
        array = np.array(values, object if dtype is str else dtype)
        return self.onnx.numpy_helper.from_array(array)

    # --- columns ---

    def read_columns(self) -> str:
        """Inputs of one column each, and the table of values that trees read, (n_rows, n_columns)."""
        kinds = self.onnx.TensorProto
        parts = []
        for j, column in enumerate(self.form.columns):
            is_text = bool(column.levels) and isinstance((column.levels or ("",))[0], str)
            name = self.name_input(j, column.name)
            kind = kinds.STRING if is_text else kinds.DOUBLE
            self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, [None, 1]))
            parts.append(name if column.levels is None else self.find_levels(name, column, is_text=is_text))
        return str(self.node("Concat", parts, axis=1))

    def name_input(self, j: int, name: str) -> str:
        """The name of an input: that of its column, if ONNX can have it."""
        taken = {"prediction", "probabilities"} | {tensor.name for tensor in self.inputs}
        return (
            name if name and is_unicode(name) and "\0" not in name and name not in taken else f"{self.prefix}column {j}"
        )

    def find_levels(self, name: str, column: Column, *, is_text: bool) -> str:
        """The places of levels; NaN where there is none."""
        known = [
            (level, place)
            for place, level in enumerate(column.levels or ())
            if (is_unicode(level) if isinstance(level, str) else is_float(level))
        ]
        if not known:
            return str(self.node("Mul", [name, self.constant(math.nan)]))
        keys = [level if is_text else float(level) for level, _ in known]
        return str(
            self.node(
                "LabelEncoder",
                [name],
                domain="ai.onnx.ml",
                keys_tensor=self.tensor(keys, str if is_text else np.float64),
                values_tensor=self.tensor([float(place) for _, place in known], np.float64),
                default_tensor=self.tensor([math.nan], np.float64),
            )
        )

    # --- trees ---

    def add_up(self, table: str) -> str:
        """The sums, (n_rows, n_sums)."""
        form = self.form
        n_sums = len(form.start)
        start = self.constant([list(form.start)])
        if form.has_spread or form.surrogates:
            return self.sum_in_order(self.spread(table), start)
        if not form.roots:
            zero = self.ask_trees(table, [(0, 0.0)], [0], 1)
            return str(self.node("Add", [zero, start]))
        by_tree = [{at for leaf in self.leaves_of(t) for at, _ in form.leaves[leaf]} for t in range(len(form.roots))]
        is_plain = all(len(form.leaves[leaf]) == 1 for leaf in range(len(form.leaves)))
        is_plain &= all(sums == {t % n_sums} for t, sums in enumerate(by_tree)) and not form.terms
        if is_plain and len(form.roots) % n_sums == 0:
            values = [form.leaves[leaf][0][1] for leaf in range(len(form.leaves))]
            said = self.ask_leaves(table, values)
            n_rounds = len(form.roots) // n_sums
            said = self.node("Reshape", [said, self.constant([-1, n_rounds, n_sums], np.int64)])
        else:
            number = self.ask_leaves(table, [float(leaf) for leaf in range(len(form.leaves))])
            leaf = self.node("Cast", [number], to=self.onnx.TensorProto.INT64)
            rows = np.zeros((len(form.leaves), n_sums))
            for at, entries in enumerate(form.leaves):
                for k, value in entries:
                    rows[at, k] = value
            said = self.node("Gather", [self.constant(rows), leaf], axis=0)
            if form.terms:
                said = self.node("Add", [said, self.add_terms(table, leaf)])
        return self.sum_in_order(said, start)

    def sum_in_order(self, said: str, start: str) -> str:
        """What trees say, (n_rows, n_trees, n_sums), added to the start, one after the other."""
        first = self.node("Slice", [said, *(self.constant([x], np.int64) for x in (0, 1, 1))])
        first = self.node("Add", [self.node("Mul", [first, self.constant(0.0)]), self.node_shape_start(start)])
        joined = self.node("Concat", [first, said], axis=1)
        running = self.node("CumSum", [joined, self.constant(1, np.int64)])
        return str(self.node("Gather", [running, self.constant(-1, np.int64)], axis=1))

    def node_shape_start(self, start: str) -> str:
        """The start as one more tree, (1, 1, n_sums)."""
        return str(self.node("Unsqueeze", [start, self.constant([0], np.int64)]))

    def leaves_of(self, t: int) -> list[int]:
        """Numbers of the leaves of a tree."""
        nodes = self.form.tree_of(t)
        kind, first = self.form.nodes.kind, self.form.nodes.first
        return [int(first[node]) for node in nodes if kind[node] == LEAF]

    def ask_leaves(self, table: str, values: list[float]) -> str:
        """A value of the leaf of each tree, (n_rows, n_trees); values: by number of the leaf."""
        targets = [0] * len(values)
        for t in range(len(self.form.roots)):
            for leaf in self.leaves_of(t):
                targets[leaf] = t
        return self.ask_trees(table, list(zip(targets, values, strict=True)), self.form.roots, len(self.form.roots))

    def ask_trees(self, table: str, leaves: list[tuple[int, float]], roots: list[int], n_targets: int) -> str:
        """The operator; leaves: target and weight of each."""
        unrolled = BinaryTrees(self.form)
        heads = [unrolled.unroll(root) for root in roots] if self.form.roots else [unrolled.lone(0)]
        optional = {}
        members = [x for levels in unrolled.subsets.values() for x in (*map(float, levels), math.nan)]
        if members:
            optional["membership_values"] = self.tensor(members, np.float64)
        return str(
            self.node(
                "TreeEnsemble",
                [table],
                domain="ai.onnx.ml",
                n_targets=n_targets,
                aggregate_function=1,
                post_transform=0,
                tree_roots=heads,
                nodes_featureids=unrolled.feature,
                nodes_modes=self.tensor([MODES[mode] for mode in unrolled.mode], np.uint8),
                nodes_splits=self.tensor(unrolled.split, np.float64),
                nodes_truenodeids=[to for to, _ in unrolled.true],
                nodes_trueleafs=[int(is_leaf) for _, is_leaf in unrolled.true],
                nodes_falsenodeids=[to for to, _ in unrolled.false],
                nodes_falseleafs=[int(is_leaf) for _, is_leaf in unrolled.false],
                nodes_missing_value_tracks_true=unrolled.missing,
                leaf_targetids=[target for target, _ in leaves],
                leaf_weights=self.tensor([weight for _, weight in leaves], np.float64),
                **optional,
            )
        )

    def add_terms(self, table: str, leaf: str) -> str:
        """What the linear models of leaves add, (n_rows, 1, 1)."""
        form = self.form
        coefficients = np.zeros((len(form.leaves), len(form.columns)))
        fills = np.zeros_like(coefficients)
        for at, terms in form.terms.items():
            for column, coefficient, fill in terms:
                coefficients[at, column], fills[at, column] = coefficient, fill
        flat = self.node("Reshape", [leaf, self.constant([-1], np.int64)])
        fill = self.node("Gather", [self.constant(fills), flat], axis=0)
        off = self.node("Sub", [table, fill])
        off = self.node("Where", [self.node("IsNaN", [off]), self.constant(0.0), off])
        product = self.node("Mul", [self.node("Gather", [self.constant(coefficients), flat], axis=0), off])
        total = self.node("ReduceSum", [product, self.constant([1], np.int64)], keepdims=1)
        return str(self.node("Unsqueeze", [total, self.constant([2], np.int64)]))

    # --- trees without an operator ---

    def spread(self, table: str) -> str:
        """What each leaf of a tree adds, from left to right, (n_rows, n_leaves, n_sums)."""
        form, nodes = self.form, self.form.nodes
        shares = {0: self.constant([[1.0]])}
        said, values, waiting = [], [], [0]
        while waiting:
            node = waiting.pop()
            if nodes.kind[node] == LEAF:
                said.append(shares.pop(node))
                row = [0.0] * len(form.start)
                for k, value in form.leaves[nodes.first[node]]:
                    row[k] = value
                values.append(row)
                continue
            share, first = shares.pop(node), int(nodes.first[node])
            branches = range(first, first + form.n_branches(node))
            for child, part in zip(branches, self.list_parts(table, node), strict=True):
                shares[child] = self.node("Mul", [share, part])
            waiting.extend(reversed(branches))
        parts = self.node("Unsqueeze", [self.node("Concat", said, axis=1), self.constant([2], np.int64)])
        return str(self.node("Mul", [parts, self.constant([values])]))

    def list_parts(self, table: str, node: int) -> list[str]:
        """Which part of a row takes each branch of a node, (n_rows, 1) each."""
        form, nodes = self.form, self.form.nodes
        column, first, missing = int(nodes.column[node]), int(nodes.first[node]), int(nodes.missing[node])
        value = self.take(table, column)
        is_missing = self.node("IsNaN", [value])
        if nodes.kind[node] == THRESHOLD:
            branch = self.is_above(value, float(nodes.cut[node]))
        elif nodes.kind[node] == MULTIWAY:
            branch = self.node("Where", [is_missing, self.constant(0.0), value])
        else:
            branch = self.is_outside(value, column, form.subsets[nodes.subset[node]])
        otherwise = self.constant([[float(missing)]])
        for test in reversed(form.surrogates.get(node, [])):
            otherwise = self.ask_surrogate(table, test, otherwise)
        branch = self.node("Where", [is_missing, otherwise, branch])
        parts = []
        for at in range(form.n_branches(node)):
            taken = self.node("Equal", [branch, self.constant(float(at))])
            part = self.node("Cast", [taken], to=self.onnx.TensorProto.DOUBLE)
            if missing == EVERY:  # which stays where no surrogate has decided
                is_every = self.node("Equal", [branch, self.constant(float(EVERY))])
                part = self.node("Where", [is_every, self.constant(float(nodes.share[first + at])), part])
            parts.append(part)
        return parts

    def ask_surrogate(self, table: str, test: Surrogate, otherwise: str) -> str:
        """The branch by a surrogate, as a number; `otherwise` where it cannot decide."""
        value = self.take(table, test.column)
        unknown = self.node("IsNaN", [value])
        if test.known < 0:
            branch = self.is_above(value, test.cut)
        else:
            branch = self.is_outside(value, test.column, self.form.subsets[test.subset])
            stranger = self.is_outside(value, test.column, self.form.subsets[test.known])
            unknown = self.node("Or", [unknown, self.node("Equal", [stranger, self.constant(1.0)])])
        if test.is_reversed:
            branch = self.node("Sub", [self.constant(1.0), branch])
        return str(self.node("Where", [unknown, otherwise, branch]))

    def take(self, table: str, column: int) -> str:
        """A column of the table, (n_rows, 1)."""
        return str(self.node("Gather", [table, self.constant([column], np.int64)], axis=1))

    def is_above(self, value: str, cut: float) -> str:
        """1 where a value is above a threshold, else 0."""
        return str(
            self.node("Cast", [self.node("Greater", [value, self.constant(cut)])], to=self.onnx.TensorProto.DOUBLE)
        )

    def is_outside(self, value: str, column: int, subset: tuple[int, ...]) -> str:
        """1 where a level is not in a subset, else 0; of missing ones any of them."""
        outside = np.ones(max(len(self.form.columns[column].levels or ()), 1))
        outside[list(subset)] = 0.0
        known = self.node("Where", [self.node("IsNaN", [value]), self.constant(0.0), value])
        level = self.node("Cast", [known], to=self.onnx.TensorProto.INT64)
        return str(self.node("Gather", [self.constant(outside), level], axis=0))

    # --- steps ---

    def step_divide(self, x: str, by: float) -> str:
        """Divide by a number."""
        return str(self.node("Div", [x, self.constant(by)]))

    def step_multiply(self, x: str, by: float) -> str:
        """Multiply by a number."""
        return str(self.node("Mul", [x, self.constant(by)]))

    def step_exp(self, x: str) -> str:
        """Exp, clipped as prediction does it."""
        clipped = self.node("Clip", [x, self.constant(LEAST_EXP), self.constant(MOST_EXP)])
        return str(self.node("Exp", [clipped]))

    def step_sort(self, x: str) -> str:
        """In ascending order."""
        k = self.constant([len(self.form.start)], np.int64)
        values, _ = self.node("TopK", [x, k], 2, axis=1, largest=0, sorted=1)
        return str(values)

    def step_median(self, x: str, weights: list[float]) -> str:
        """The weighted median."""
        count = self.constant([len(weights)], np.int64)
        values, order = self.node("TopK", [x, count], 2, axis=1, largest=0, sorted=1)
        below = self.node("CumSum", [self.node("Gather", [self.constant(weights), order]), self.constant(1, np.int64)])
        half = self.node(
            "Mul", [self.node("Gather", [below, self.constant([-1], np.int64)], axis=1), self.constant(0.5)]
        )
        is_enough = self.node("GreaterOrEqual", [below, half])
        place = self.node(
            "ArgMax", [self.node("Cast", [is_enough], to=self.onnx.TensorProto.INT32)], axis=1, keepdims=1
        )
        return str(self.node("GatherElements", [values, place], axis=1))

    def step_contrast(self, x: str, total: float, others: float, weight: float) -> str:
        """Votes of each class against those of the others."""
        rest = self.node("Div", [self.node("Sub", [self.constant(total), x]), self.constant(others)])
        return str(self.node("Div", [self.node("Sub", [x, rest]), self.constant(weight)]))

    def step_logistic(self, x: str) -> str:
        """Probabilities of two classes; both keep their digits near 0."""
        e = self.step_exp(self.node("Neg", [self.node("Abs", [x])]))
        likely = self.node("Div", [self.constant(1.0), self.node("Add", [self.constant(1.0), e])])
        unlikely = self.node("Mul", [e, likely])
        is_first = self.node("Less", [x, self.constant(0.0)])
        first = self.node("Where", [is_first, likely, unlikely])
        second = self.node("Where", [is_first, unlikely, likely])
        return str(self.node("Concat", [first, second], axis=1))

    def step_softmax(self, x: str) -> str:
        """Probabilities of classes."""
        axis = self.constant([1], np.int64)
        e = self.step_exp(self.node("Sub", [x, self.node("ReduceMax", [x, axis], keepdims=1)]))
        total = self.node(
            "Gather", [self.node("CumSum", [e, self.constant(1, np.int64)]), self.constant([-1], np.int64)], axis=1
        )
        return str(self.node("Div", [e, total]))

    # --- outputs ---

    def name_outputs(self, sums: str, answers: str) -> list[Any]:
        """`prediction`, and for classes `probabilities`."""
        form, kinds = self.form, self.onnx.TensorProto
        info = self.onnx.helper.make_tensor_value_info
        if form.classes is None:
            self.rename(answers, "prediction")
            return [info("prediction", kinds.DOUBLE, [None, form.n_answers])]
        if form.choice == "sign":
            is_second = self.node("Greater", [sums, self.constant(0.0)])
            code = self.node("Squeeze", [is_second, self.constant([1], np.int64)])
            code = self.node("Cast", [code], to=kinds.INT64)
        else:
            code = self.node("ArgMax", [sums if form.choice == "sums" else answers], axis=1, keepdims=0)
        labels, kind = self.list_labels()
        self.rename(self.node("Gather", [labels, code], axis=0), "prediction")
        self.rename(answers, "probabilities")
        return [info("prediction", kind, [None]), info("probabilities", kinds.DOUBLE, [None, form.n_answers])]

    def list_labels(self) -> tuple[str, Any]:
        """The classes as a constant, and its type."""
        kinds, classes = self.onnx.TensorProto, self.form.classes or ()
        if isinstance(classes[0], str):
            return self.constant(list(classes), str), kinds.STRING
        if isinstance(classes[0], bool):
            return self.constant(list(classes), np.bool_), kinds.BOOL
        if isinstance(classes[0], int):
            return self.constant(list(classes), np.int64), kinds.INT64
        return self.constant(list(classes), np.float64), kinds.DOUBLE

    def rename(self, name: str, output: str) -> None:
        """Give a value the name of an output."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [name], [output]))


# --- running ------------------------------------------------------------------------------------------------------


def run_onnx(content: bytes, form: TreeSum, cells: list[list[Any]]) -> Scored:
    """Ask onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        raise CannotRunError("onnxruntime is not installed") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    feed = {}
    for j, (tensor, column) in enumerate(zip(session.get_inputs(), form.columns, strict=True)):
        feed[tensor.name] = feed_column([row[j] for row in cells], column)
    found = dict(zip((output.name for output in session.get_outputs()), session.run(None, feed), strict=True))
    if form.classes is None:
        return Scored(np.asarray(found["prediction"]), None)
    return Scored(np.asarray(found["probabilities"]), found["prediction"].tolist())


def feed_column(cells: list[Any], column: Column) -> NDArray[Any]:
    """A column as a tensor (n_rows, 1); text that is missing is text that is no level."""
    if column.levels and isinstance(column.levels[0], str):
        other = find_unseen(column) or "another level that was never seen"
        return np.array([other if cell is None or not is_unicode(cell) else cell for cell in cells], object)[:, None]
    return np.array([math.nan if cell is None or isinstance(cell, str) else float(cell) for cell in cells])[:, None]
