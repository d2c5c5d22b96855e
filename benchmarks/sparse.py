"""How fast are scipy's sparse tables, against libraries that go by the stored cells too? One thread, CPU time.

    texts     counts of words, drawn by Zipf's law: a few columns have most of the cells, most columns hardly one
    uniform   every column has about as many cells, and their values are all different

Each side is given what it reads fastest: ours and LightGBM rows (CSR), scikit-learn's trees float32 columns (CSC).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.boosters import LightGBM, Ours, Size
from benchmarks.runner import Answer, Scale, alternate, in_seconds, measure, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

LEAST_RATIO = 1.0
N_ROUNDS = 20
SEED = 0


class Texts(NamedTuple):
    """Rows of words."""

    n_rows: int
    n_words: int
    per_row: int  # words drawn; some twice

    @property
    def title(self) -> str:
        return f"texts {self.n_rows:,} x {self.n_words:,}, {self.per_row} words drawn for a row"

    def draw(self, n_rows: int) -> tuple[sparse.csr_matrix, NDArray[np.float64]]:
        """The table, and a number for each row that goes by its words."""
        rng = np.random.default_rng(SEED)
        share = 1.0 / np.arange(1, self.n_words + 1)
        words = rng.permutation(self.n_words)[rng.choice(self.n_words, n_rows * self.per_row, p=share / share.sum())]
        rows = np.repeat(np.arange(n_rows), self.per_row)
        X = sparse.csr_matrix((np.ones(len(rows)), (rows, words)), shape=(n_rows, self.n_words))
        return X, X @ rng.normal(size=self.n_words) + 2.0 * rng.normal(size=n_rows)


class Uniform(NamedTuple):
    """Cells anywhere."""

    n_rows: int
    n_columns: int
    share: float  # of the cells that are stored

    @property
    def title(self) -> str:
        return f"uniform {self.n_rows:,} x {self.n_columns:,}, {self.share:.1%} of the cells stored"

    def draw(self, n_rows: int) -> tuple[sparse.csr_matrix, NDArray[np.float64]]:
        """The table, and a number for each row that goes by a fifth of its columns."""
        rng = np.random.default_rng(SEED)
        X = sparse.random(n_rows, self.n_columns, self.share, "csr", random_state=rng, data_rvs=rng.standard_normal)
        slopes = rng.normal(size=self.n_columns) * (rng.random(self.n_columns) < 0.2)
        return X, X @ slopes + 0.3 * rng.normal(size=n_rows)


WORDS = Texts(12_000, 20_000, 33)
TREES: tuple[tuple[Texts | Uniform, str, str, int, dict[str, Any]], ...] = (  # ours, the peer's, classes, parameters
    (Uniform(20_000, 5000, 0.002), "CARTClassifier", "DecisionTreeClassifier", 2, {"max_leaf_nodes": 51}),
    (Uniform(20_000, 5000, 0.002), "CARTRegressor", "DecisionTreeRegressor", 0, {"max_leaf_nodes": 51}),
    (Uniform(20_000, 400, 0.04), "CARTRegressor", "DecisionTreeRegressor", 0, {"min_samples_leaf": 5}),
    (WORDS, "RandomForestClassifier", "RandomForestClassifier", 2, {"n_estimators": 10, "random_state": SEED}),
    (WORDS, "ExtraTreesClassifier", "ExtraTreesClassifier", 2, {"n_estimators": 10, "random_state": SEED}),
)
BOOSTED: tuple[tuple[Texts | Uniform, int], ...] = (  # tables and classes
    (WORDS, 2),
    (Uniform(60_000, 3000, 0.002), 2),
    (Texts(20_000, 15_000, 40), 3),
)


def parted(y: NDArray[np.float64], n_classes: int) -> NDArray[Any]:
    """Numbers as so many classes of about equal size; 0: as they are."""
    return np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)) if n_classes else y


def compare(case: str, ours: Callable[[], Any], peer: Callable[[], Any], scale: Scale, note: Any) -> Answer:
    """Two fits in turns; note: of their last models."""
    measure(ours)  # what is compiled or loaded
    mine, theirs = alternate([lambda _: ours(), lambda _: peer()], scale.repeats)
    return Answer(
        "sparse",
        case,
        f"CPU {in_seconds(mine.best.cpu)}",
        f"CPU {in_seconds(theirs.best.cpu)}",
        theirs.best.cpu / mine.best.cpu,
        " x CPU",
        LEAST_RATIO,
        note=note(mine.results[-1], theirs.results[-1]),
    )


def grow(case: tuple[Texts | Uniform, str, str, int, dict[str, Any]], scale: Scale) -> Answer:
    """A tree or a forest of ours against scikit-learn's."""
    import sklearn.ensemble
    import sklearn.tree

    import spinney

    table, name, other, n_classes, params = case
    X, y = table.draw(scale.rows(table.n_rows))
    y = parted(y, n_classes)
    columns = X.astype(np.float32).tocsc()
    kind, peer = getattr(spinney, name), getattr(sklearn.ensemble, other, None) or getattr(sklearn.tree, other)
    more = {"n_jobs": 1} if "n_estimators" in params else {}

    def count_leaves(mine: Any, theirs: Any) -> str:
        counts = [
            sum(tree.get_n_leaves() for tree in getattr(model, "estimators_", [model])) for model in (mine, theirs)
        ]
        return "leaves {:,} / {:,}".format(*counts)

    settings = ", ".join(f"{key}={value}" for key, value in params.items() if key != "random_state")
    return compare(
        f"{name}, {table.title}, {settings}",
        lambda: kind(**params, **more).fit(X, y),
        lambda: peer(**params, **more).fit(columns, y),
        scale,
        count_leaves,
    )


def boost(table: Texts | Uniform, n_classes: int, scale: Scale) -> Answer:
    """Rounds of ours against LightGBM's; both are scored on rows of their own table's kind that they have not seen."""
    n_rows = scale.rows(table.n_rows)
    X, numbers = table.draw(n_rows + n_rows // 4)
    y = parted(numbers, n_classes)
    size = Size(n_rounds=N_ROUNDS)
    ours, peer = Ours(size, n_classes), LightGBM(size, n_classes)

    def score(mine: Any, theirs: Any) -> str:
        said = (side.predict(model, X[n_rows:]) for side, model in ((ours, mine), (peer, theirs)))
        best = ((p > 0.5) if p.ndim == 1 else p.argmax(axis=1) for p in said)
        return "held-out accuracy " + " / ".join(f"{np.mean(labels == y[n_rows:]):.4f}" for labels in best)

    return compare(
        f"boosting, {table.title}, {n_classes} classes, {N_ROUNDS} rounds",
        lambda: ours.fit(X[:n_rows], y[:n_rows]),
        lambda: peer.fit(X[:n_rows], y[:n_rows]),
        scale,
        score,
    )


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    for case in TREES:
        report(answers, grow(case, scale))
    for table, n_classes in BOOSTED:
        report(answers, boost(table, n_classes, scale))
    return answers
