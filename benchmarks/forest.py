"""How fast are forests? 100 trees of full depth, default settings, one thread unless said otherwise.

- fit: against scikit-learn's random forest and extra-trees, judged by CPU time; categories are given to ours as
  they are and to the peer as numbers, then to both as numbers: searches of subsets and of thresholds are not like with
  like (`--trees` sets how many trees the peer grows: its time is scaled up to 100).
  In extra-trees the peer counts features that do not vary in a node among those it draws, ours, as Geurts et al. have
  it, do not: ours try more tests. "every feature" lets both sides try the same number, all that vary
- peers: against YDF and ranger, where installed
- small: 1,000 rows, 100 trees on both sides
- threads: two against one, on the clock
- predict: 100,000 rows
- importance: permutation of every feature on the out-of-bag rows, in units of the fit
- memory: the peak of a process that fits 1,000,000 x 28, and the bytes of a node

The held-out score is that of forests with as many trees as the peer has.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier as PeerExtraClassifier
from sklearn.ensemble import ExtraTreesRegressor as PeerExtraRegressor
from sklearn.ensemble import RandomForestClassifier as PeerForestClassifier
from sklearn.ensemble import RandomForestRegressor as PeerForestRegressor
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

from benchmarks.memory import STATUS, read_status
from benchmarks.peers import find_peers, write_split
from benchmarks.runner import Answer, Scale, Timing, alternate, in_seconds, measure, report, run_fresh
from benchmarks.tables import Split, adult, all_splits, as_numbers, draw_numeric, housing, numeric, one_hot_splits
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

N_TREES = 100
LEAST_RATIO = {"random forest": 6.0, "extra-trees": 4.0, "extra-trees, every feature": 4.0}
LEAST_OTHER = 3.0
LEAST_SMALL = 1.0
LEAST_THREADS = 1.8
LEAST_PREDICT = 3.0
MOST_IMPORTANCE = 1.0
MOST_GIGABYTES = 4.0
MOST_BYTES = 16.0  # of a node: hot ones, and as many cold ones
MOST_TURNS = 3  # a turn of forests takes minutes
SCORE_SLACK = 0.01  # by which ours may be worse and still count as the same work


class Kind(NamedTuple):
    """A method: our estimators and the peer's, for classes and for numbers."""

    name: str
    ours: tuple[Any, Any]
    peer: tuple[Any, Any]
    tries_all: bool = False  # every node tries every feature, on both sides


KINDS = (
    Kind(
        "random forest",
        (RandomForestClassifier, RandomForestRegressor),
        (PeerForestClassifier, PeerForestRegressor),
    ),
    Kind(
        "extra-trees",
        (ExtraTreesClassifier, ExtraTreesRegressor),
        (PeerExtraClassifier, PeerExtraRegressor),
    ),
)
EVEN = KINDS[1]._replace(name="extra-trees, every feature", tries_all=True)  # of numbers that is the default


class Keeper:
    """A turn that fits a forest and keeps the last alone: a peer's forest can take a gigabyte."""

    def __init__(self, make: Callable[[int], Any], X: Any, y: Any) -> None:
        self.make, self.X, self.y = make, X, y
        self.model: Any = None

    def __call__(self, turn: int) -> None:
        self.model = None
        self.model = self.make(turn).fit(self.X, self.y)


def makers(kind: Kind, split: Split, n_peer: int) -> tuple[Callable[..., Any], Callable[[int], Any]]:
    """Makers of the forests of both sides, by seed; ours by number of trees too."""
    ours, peer = (side[split.is_regression] for side in (kind.ours, kind.peer))
    params: dict[str, Any] = {"max_features": 1.0} if kind.tries_all else {}
    return (
        lambda seed, n_trees=N_TREES: ours(n_estimators=n_trees, n_jobs=1, random_state=seed, **params),
        lambda seed: peer(n_estimators=n_peer, n_jobs=1, random_state=seed, **params),
    )


def scaled(timing: Timing, factor: float) -> Timing:
    return Timing(timing.wall * factor, timing.cpu * factor)


def name_score(split: Split) -> str:
    if split.is_regression:
        return "R2"
    return "AUC" if len(np.unique(split.y)) == 2 else "accuracy"


def rate(model: Any, split: Split, X_test: Any) -> float:
    """Held-out R2, area under the curve for two classes, or accuracy."""
    if split.is_regression:
        return float(r2_score(split.y_test, model.predict(X_test)))
    if name_score(split) == "AUC":
        return float(roc_auc_score(split.y_test == model.classes_[1], model.predict_proba(X_test)[:, 1]))
    return float(accuracy_score(split.y_test, model.predict(X_test)))


def count_leaves(model: Any) -> float:
    """Leaves of a tree, the mean over a forest of either side."""
    if hasattr(model, "forest_"):
        return float(np.count_nonzero(model.forest_.is_leaf) / len(model.forest_))
    return float(np.mean([tree.get_n_leaves() for tree in model.estimators_]))


# --- The questions ------------------------------------------------------------------------------------------


def ask_fit(answers: list[Answer], split: Split, kind: Kind, scale: Scale) -> tuple[Any, Any]:
    """Fit both sides in turns; return the last forests."""
    X, X_test = split.of_peer
    make_ours, make_peer = makers(kind, split, scale.peer_trees)
    sides = Keeper(make_ours, split.X, split.y), Keeper(make_peer, X, split.y)
    first, _ = measure(lambda: sides[0](0))
    ours, peer = alternate(sides, min(scale.repeats, MOST_TURNS))
    theirs = scaled(peer.best, N_TREES / scale.peer_trees)
    rivals = make_ours(0, scale.peer_trees).fit(split.X, split.y), sides[1].model
    scores = [rate(model, split, rows) for model, rows in zip(rivals, (split.X_test, X_test), strict=True)]
    leaves = [count_leaves(side.model) for side in sides]
    metric = f"held-out {name_score(split)} of {scale.peer_trees} trees"
    report(
        answers,
        Answer(
            "forest",
            f"{kind.name}, {split.name}{', peer: levels as numbers' if split.coded else ''}",
            str(ours.best),
            f"{theirs} from {scale.peer_trees} trees",
            theirs.cpu / ours.best.cpu,
            " x CPU",
            LEAST_RATIO[kind.name],
            is_alike=scores[0] >= scores[1] - SCORE_SLACK,
            note=f"clock {theirs.wall / ours.best.wall:.3g} x; {metric} {scores[0]:.4f} / {scores[1]:.4f}; "
            f"leaves a tree {leaves[0]:,.0f} / {leaves[1]:,.0f}; "
            f"compiling or loading kernels before that {in_seconds(max(first.wall - ours.best.wall, 0.0))}",
        ),
    )
    return sides[0].model, sides[1].model


def ask_peers(answers: list[Answer], split: Split, scale: Scale, peers: list[Any]) -> None:
    """Our random forest and those of other programs in turns; the others time themselves."""
    make_ours, _ = makers(KINDS[0], split, scale.peer_trees)
    side = Keeper(make_ours, split.X, split.y)
    metric = "R2" if split.is_regression else "accuracy"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_split(split, folder)
        for peer in peers:
            mine, theirs, scores = [], [], []
            for turn in range(min(scale.repeats, MOST_TURNS)):
                mine.append(measure(lambda turn=turn: side(turn))[0])
                timing, score = peer.fit(folder, scale.peer_trees, split.is_regression, turn)
                theirs.append(scaled(timing, N_TREES / scale.peer_trees))
                scores.append(score)
            a, b = (Timing(min(t.wall for t in turns), min(t.cpu for t in turns)) for turns in (mine, theirs))
            ours = make_ours(0, scale.peer_trees).fit(split.X, split.y)
            score = float(
                (r2_score if split.is_regression else accuracy_score)(split.y_test, ours.predict(split.X_test))
            )
            report(
                answers,
                Answer(
                    "forest",
                    f"{peer.name}, {split.name}",
                    str(a),
                    f"{peer.name} {b} from {scale.peer_trees} trees",
                    b.cpu / a.cpu,
                    " x CPU",
                    LEAST_OTHER,
                    is_alike=score >= np.mean(scores) - SCORE_SLACK,
                    note=f"clock {b.wall / a.wall:.3g} x; held-out {metric} of {scale.peer_trees} trees "
                    f"{score:.4f} / {np.mean(scores):.4f}; a process of its own, reading not counted",
                ),
            )


def ask_small(answers: list[Answer], scale: Scale) -> None:
    n_rows = 1000 if scale.share >= 0.1 else scale.rows(1000)
    for split in (numeric(scale), housing(scale)):
        for kind in KINDS:
            make_ours, make_peer = makers(kind, split, N_TREES)
            X, y = np.ascontiguousarray(split.X[:n_rows]), split.y[:n_rows]
            sides = Keeper(make_ours, X, y), Keeper(make_peer, X, y)
            sides[0](0)
            ours, peer = alternate(sides, scale.repeats)
            report(
                answers,
                Answer(
                    "forest",
                    f"{kind.name}, {n_rows:,} rows of {split.name.split()[0]}",
                    str(ours.best),
                    str(peer.best),
                    peer.best.wall / ours.best.wall,
                    " x",
                    LEAST_SMALL,
                    note=f"CPU {peer.best.cpu / ours.best.cpu:.3g} x",
                ),
            )


def ask_threads(answers: list[Answer], split: Split, scale: Scale) -> None:
    make, _ = makers(KINDS[0], split, scale.peer_trees)
    one, two = alternate(
        [Keeper(lambda _, n=n: make(0).set_params(n_jobs=n), split.X, split.y) for n in (1, 2)],
        min(scale.repeats, MOST_TURNS),
    )
    report(
        answers,
        Answer(
            "forest",
            f"two threads against one, {split.name}",
            f"{two.best}; one {one.best}",
            "",
            one.best.wall / two.best.wall,
            " x",
            LEAST_THREADS,
            note=f"CPU of two {two.best.cpu / one.best.cpu:.3g} x that of one",
        ),
    )


def ask_predict(answers: list[Answer], split: Split, forests: tuple[Any, Any], scale: Scale) -> None:
    """Both predict the rows they have grown on and those held out: their time does not depend on which."""
    X = np.concatenate([split.X, split.X_test])[: scale.rows(100_000)]
    forests[0].predict(X)
    ours, peer = alternate([lambda _, m=model: m.predict(X) for model in forests], scale.repeats)
    theirs = scaled(peer.best, N_TREES / scale.peer_trees)
    report(
        answers,
        Answer(
            "forest",
            f"predict, {len(X):,} x {X.shape[1]} {X.dtype}, {N_TREES} trees",
            str(ours.best),
            f"{theirs} from {scale.peer_trees} trees",
            theirs.wall / ours.best.wall,
            " x",
            LEAST_PREDICT,
            note=f"CPU {theirs.cpu / ours.best.cpu:.3g} x",
        ),
    )


def ask_importance(answers: list[Answer], scale: Scale) -> None:
    split = adult(scale)
    if split is None:
        return
    if not hasattr(RandomForestClassifier, "importance"):
        print("importance: left out, forests have no such method")
        return
    make, _ = makers(KINDS[0], split, N_TREES)
    fit = Keeper(make, split.X, split.y)

    def permute(_turn: int) -> Any:
        return fit.model.importance(kind="permutation", X=split.X, y=split.y)

    fit(0)
    permute(0)
    grown, permuted = alternate([fit, permute], min(scale.repeats, MOST_TURNS))
    report(
        answers,
        Answer(
            "forest",
            f"permutation importance of all features, {split.name}",
            f"{permuted.best}; fit {grown.best}",
            "",
            permuted.best.wall / grown.best.wall,
            " x the fit",
            MOST_IMPORTANCE,
            is_least=False,
            note=f"CPU {permuted.best.cpu / grown.best.cpu:.3g} x",
        ),
    )


def ask_memory(answers: list[Answer], scale: Scale) -> None:
    n_rows = scale.rows(1_000_000)
    n_trees = N_TREES if scale.share >= 1.0 else scale.peer_trees
    found = json.loads(run_fresh("-m", "benchmarks.forest", str(n_rows), str(n_trees)).stdout.splitlines()[-1])
    report(
        answers,
        Answer(
            "forest",
            f"memory, {n_rows:,} x 28 float32, {n_trees} trees",
            f"{found['peak'] / 1e9:.2f} GB at the peak of the process",
            "",
            found["peak"] / 1e9,
            " GB",
            MOST_GIGABYTES,
            is_least=False,
            note=f"X is {found['table'] / 1e9:.2f} GB, the forest {found['forest'] / 1e9:.2f} GB; "
            f"{found['n_nodes']:,} nodes; fit in {in_seconds(found['seconds'])}",
        ),
    )
    for name in ("hot", "cold"):
        report(
            answers,
            Answer(
                "forest",
                f"{name} bytes of a node",
                f"{found[name] / 1e6:.3g} MB",
                "",
                found[name] / found["n_nodes"],
                " bytes",
                MOST_BYTES,
                is_least=False,
                note="can be dropped" if name == "cold" else "what prediction reads, subsets and mixed leaves apart",
            ),
        )


def child(n_rows: int, n_trees: int) -> dict[str, float]:
    """What the process does whose memory is measured."""
    X, y = draw_numeric(n_rows)
    timing, model = measure(lambda: RandomForestClassifier(n_estimators=n_trees, random_state=0).fit(X, y))
    peak = read_status("VmHWM") if STATUS.exists() else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    forest = model.forest_
    hot, cold = forest.hot.nbytes, forest.n_rows.nbytes + forest.weight.nbytes + forest.impurity.nbytes
    return {
        "peak": peak,
        "table": X.nbytes,
        "hot": hot,
        "cold": cold,
        "forest": hot + cold + forest.subsets.nbytes + forest.distributions.nbytes,
        "n_nodes": forest.n_nodes,
        "seconds": timing.wall,
    }


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    splits = all_splits(scale)
    for at, split in enumerate(splits):
        for kind in (*KINDS, EVEN)[: 2 if split.is_regression else 3]:
            forests = ask_fit(answers, split, kind, scale)
            if at == 0 and kind is KINDS[0]:
                ask_predict(answers, split, forests, scale)
            del forests
    coded = [as_numbers(split) for split in splits if split.coded is not None]
    for split in (*coded, *one_hot_splits(scale)):
        for kind in KINDS:
            ask_fit(answers, split, kind, scale)
    ask_threads(answers, splits[0], scale)
    ask_small(answers, scale)
    ask_importance(answers, scale)
    ask_memory(answers, scale)
    peers = find_peers()
    for split in splits if peers else ():
        if not split.name.startswith(("kddcup", "nycflights")):
            ask_peers(answers, split, scale, peers)
    return answers


if __name__ == "__main__":
    print(json.dumps(child(int(sys.argv[1]), int(sys.argv[2]))))
