"""What a report shows beside the scores, as plain data: how well the best method predicts, by what, and a tree.

Every number is of rows that the model did not see, except for impurity importances and the tree's own counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from spinney.study.json_io import read_json, write_json


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """An ensemble by its number of trees: held-out score, its standard error over folds, seconds to fit.

    For a study's methods the seconds are those of the whole ensemble, shared evenly among its trees.
    """

    key: str
    name: str
    trees: tuple[int, ...]
    scores: tuple[float, ...]
    errors: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Separation:
    """One class against the others, by the probability that held-out rows were given.

    `roc` are points (false positive rate, true positive rate), `recall` points (recall, precision), both thinned to a
    few hundred without moving the curve by more than a pixel; `n_rows` are pooled over the folds, `n_positive` of them
    are of the class.
    """

    label: str
    n_positive: int
    n_rows: int
    roc: tuple[tuple[float, float], ...]
    roc_auc: float
    recall: tuple[tuple[float, float], ...]
    average_precision: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probabilities of a class against how often it came: by bin the mean probability, the share, its 95% interval."""

    label: str
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    counts: tuple[int, ...]
    brier: float


@dataclass(frozen=True, slots=True)
class Confusion:
    """Held-out rows by true class (rows of the matrix) and predicted class (columns)."""

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Residuals:
    """Predicted and true values of held-out rows, a sample of at most two thousand; errors are over all `n_rows`.

    `edges` and `counts` are the histogram of true minus predicted value; its ends hold what lies beyond them too.
    """

    predicted: tuple[float, ...]
    actual: tuple[float, ...]
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    rmse: float
    mae: float
    n_rows: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals (or sets of classes) held the truth of held-out rows, by the share they were made for.

    `low` and `high` bound the share at 95%; `width` is the mean width of intervals, or the mean number of classes,
    None where intervals are infinite.
    """

    name: str
    nominal: tuple[float, ...]
    covered: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    width: tuple[float | None, ...]
    n_rows: int


@dataclass(frozen=True, slots=True)
class Importance:
    """What a column is worth to the forest: by impurity, and by permuting it among out-of-bag rows."""

    feature: str
    impurity: float
    impurity_error: float | None
    permutation: float
    permutation_error: float | None


@dataclass(frozen=True, slots=True)
class Worth:
    """How much the score of the examined method falls on held-out rows when a column is shuffled, and its error."""

    feature: str
    fall: float
    error: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The values of a column in bins between `edges`, or by `levels`, of which there may be more (`n_levels`).

    `counts` are rows, `goals` the mean of the target there, or the share of the class `label`; None without rows.
    """

    feature: str
    edges: tuple[float, ...]
    levels: tuple[str, ...]
    counts: tuple[int, ...]
    goals: tuple[float | None, ...]
    label: str | None
    n_missing: int
    n_levels: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Columns that are missing together, and in how many rows just these are; without columns: rows without gaps."""

    features: tuple[str, ...]
    n_rows: int


@dataclass(frozen=True, slots=True)
class Dependence:
    """The prediction as one column varies: the mean over rows, and `lines` of single rows.

    `grid` are numbers, or texts of a category's levels (then `is_number` is False). For classes the prediction is the
    probability of `label`. `counts` are the rows nearest to each point of the grid: where they are few, a curve is a
    guess.
    """

    feature: str
    is_number: bool
    grid: tuple[float, ...] | tuple[str, ...]
    mean: tuple[float, ...]
    lines: tuple[tuple[float, ...], ...]
    counts: tuple[int, ...]
    label: str | None


@dataclass(frozen=True, slots=True)
class Reasons:
    """What columns added to the answers to some rows (SHAP values), from the answer where nothing is known, `base`.

    `values` and `cells` have a tuple for each row, of the `features` that add most; `others` is what the other columns
    add together. For classes the answer is the probability or the score of `label`. `rows` are counted from 1;
    `chosen` are places among them, those of the highest, the middle and the lowest answer.
    """

    label: str | None
    base: float
    features: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    cells: tuple[tuple[float | str | None, ...], ...]
    others: tuple[float, ...]
    n_others: int
    rows: tuple[int, ...]
    chosen: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodePicture:
    """The training rows of a node along the feature that it tests, and where the test cuts them.

    Of a number `marks` are its lowest and highest, and `bins` are of one width; of a category there is a bin for each
    level in `marks`, those of the first branch first. A bin has (class, rows) for each class in it, or of numbers one
    (rows, mean of the target). `share` is how far along the axis, from 0 to 1, the cut is, `cut` what it is called.
    """

    marks: tuple[str, ...]
    cut: str
    share: float
    bins: tuple[tuple[tuple[int, float], ...], ...]
    n_missing: int
    is_number: bool = True


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of the drawn tree, parents before children.

    `branch` is the condition that leads here from `parent` (-1 and "" for the root), `test` the feature of the split
    (None in a leaf of the whole tree), `answer` the prediction of the node as a leaf. `counts` are rows by class,
    `value` is the mean of numbers. `cut` is the step of the pruning path at which the node becomes a leaf (0: a leaf of
    the whole tree), so that at step s the tree consists of the nodes with no ancestor whose `cut` is at most s.
    `picture` is there for the tests of most rows.
    """

    parent: int
    branch: str
    test: str | None
    answer: str
    n_rows: float
    counts: tuple[float, ...] | None
    value: float | None
    cut: int
    picture: NodePicture | None = None


@dataclass(frozen=True, slots=True)
class PruningStep:
    """The tree from one alpha on: leaves, error on the training rows, cross-validated error and its standard error."""

    alpha: float
    n_leaves: int
    training_error: float
    error: float | None
    standard_error: float | None


@dataclass(frozen=True, slots=True)
class TreeView:
    """One tree, grown on all rows: its nodes, its pruning path from the whole tree to the root, and its first split.

    `chosen` is the step that cross-validation chose, `one_error` the simplest within one standard error of it.
    `measure` names the errors ("error rate", "mean squared error"). `trace_columns`, `trace_rows` and `trace_words` are
    the root's candidates as a table of texts, best first, and why the first won.
    """

    name: str
    classes: tuple[str, ...]
    target: str
    nodes: tuple[TreeNode, ...]
    steps: tuple[PruningStep, ...]
    chosen: int
    one_error: int
    measure: str
    trace_columns: tuple[str, ...]
    trace_rows: tuple[tuple[str, ...], ...]
    trace_words: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found about the method `key`; None or empty where the table, the method or the time allowed none.

    `left_out` says, by field, why something is missing that the table has, `remarks` what to know beside what is there.
    `recipe` are lines of Python that repeat the result. `stopped` says what ended it early: "budget" or "interrupt".
    """

    key: str
    name: str
    recipe: str
    learning_curves: tuple[LearningCurve, ...] = ()
    separations: tuple[Separation, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    confusion: Confusion | None = None
    residuals: Residuals | None = None
    coverages: tuple[Coverage, ...] = ()
    importances: tuple[Importance, ...] = ()
    dependences: tuple[Dependence, ...] = ()
    worths: tuple[Worth, ...] = ()
    reasons: Reasons | None = None
    profiles: tuple[Profile, ...] = ()
    gaps: tuple[Gap, ...] = ()
    correlations: tuple[tuple[str, str, float], ...] = ()
    tree: TreeView | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    stopped: str | None = None

    def to_json(self) -> str:
        """As JSON text, indented; `from_json` reads it back."""
        return write_json("evidence", self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The evidence that `to_json` wrote."""
        return read_json("evidence", text, cls, "evidence")
