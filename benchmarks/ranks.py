"""How good are the defaults? Log loss or RMSE of ours and of peers on 24 tables, and the average rank.

Every library keeps its defaults (CatBoost 1,000 rounds, others 100; one thread) and gets the same frames, categories
as pandas categories, of CatBoost as text. Each seed draws four folds, stratified by class; a table of more than 2,000
rows takes the first of them only, one of more than 50,000 a sample of so many. soybean takes one fold too, and
kddcup99 5,000 rows: of 19 and 11 classes CatBoost takes minutes for each. Ranks are those of the mean over the folds,
per table and seed; equal scores share a rank. Tables weigh the same, however many seeds they have.

Half of the tables chose the rules behind the defaults, the other half judges: every second one by the alphabet. Both
halves are reported. 21 tables are the shared ones of at least 200 rows, three come with scikit-learn.

- what the peers have scored is kept in `peer_scores.json` beside this file, by version, so that they run once however
  often ours changes; `--cache FILE` takes another file
- `--known` takes the seeds that all peers have been scored on, and runs none of them
- `--stopped` lets the peers grow up to 2,000 rounds, and stop where a fifth of the training rows, held out, is
  predicted no better for 50: to compare with `--set effort=4`
- `--seeds N` takes the first N seeds instead of five
- `--set NAME=VALUE` (repeated) gives ours a parameter: `--set min_samples_leaf=5 --set effort=4`
- `--table NAME` (repeated) takes these tables alone
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.runner import Answer, Scale, installed, report
from benchmarks.tables import DATA, FLIGHT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

PEER_SCORES = Path(__file__).parent / "peer_scores.json"

N_FOLDS = 4
FEW_ROWS = 2_000  # up to so many, every fold is scored
HGB_LEVELS = 254  # scikit-learn's histograms take no more of a category: beyond, its codes are numbers
OURS, FOREST, CATBOOST, HGB = "ours", "our forest", "CatBoost", "HistGradientBoosting"
PEERS = {  # and the modules they are in
    "LightGBM": "lightgbm",
    "XGBoost": "xgboost",
    CATBOOST: "catboost",
    HGB: "sklearn",
}
STOPPED = ", stopped"  # behind the name of a peer that stops early
MOST_STOPPED, PATIENCE, HELD_OUT = 2000, 50, 5  # rounds; rounds without a better one; one row of so many is held out


class Task(NamedTuple):
    """A table and what is learnt from it."""

    name: str
    target: str
    is_regression: bool = False
    inputs: tuple[str, ...] = ()  # empty: all but the target and those left out
    left_out: tuple[str, ...] = ("split",)
    suffix: str = "parquet"  # "": of scikit-learn
    most_rows: int = 50_000  # by sample
    most_folds: int = 4


TASKS = (  # by the alphabet: the first chooses, the second judges, and so on
    Task("adult", "income"),
    # casual and registered sum to the target
    Task("bike_sharing_hour", "cnt", is_regression=True, left_out=("casual", "registered")),
    Task("california_housing", "MedHouseVal", is_regression=True),
    Task("car", "Acceptability"),
    Task("credit_default", "default"),
    Task("diamonds", "price", is_regression=True),
    Task("german_credit", "class"),
    Task("glass", "Type", suffix="csv"),
    Task("ionosphere", "Class"),
    Task("kddcup99_10pct", "label", most_rows=5_000),
    Task("letter", "lettr"),
    Task("mammography", "class"),
    Task("mushroom", "class"),
    # rows without an arrival are left out
    Task("nycflights13", "arr_delay", is_regression=True, inputs=FLIGHT_COLUMNS),
    Task("pima_diabetes", "diabetes", suffix="csv"),
    Task("satimage", "class"),
    Task("sonar", "Class"),
    Task("soybean", "Class", most_folds=1),
    Task("spambase", "type"),
    Task("vehicle", "Class"),
    Task("vowel", "Class"),
    Task("breast_cancer", "target", suffix=""),
    Task("diabetes", "target", is_regression=True, suffix=""),
    Task("digits", "target", suffix=""),
)
CHOOSING = tuple(task.name for task in TASKS[::2])


class Problem(NamedTuple):
    """The rows of a task as every library gets them."""

    task: Task
    X: Any  # a pandas frame
    y: NDArray[Any]  # classes as 0, 1, ...

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for numbers."""
        return 0 if self.task.is_regression else int(self.y.max()) + 1


# --- Tables and folds ---------------------------------------------------------------------------------------


def read_frame(task: Task) -> Any:
    """The table of a task as a pandas frame, text as categories; None, with a line, where it is absent."""
    import pandas as pd

    if not task.suffix:
        import sklearn.datasets

        return getattr(sklearn.datasets, f"load_{task.name}")(as_frame=True).frame
    path = DATA / f"{task.name}.{task.suffix}"
    if not path.exists():
        print(f"{task.name}: left out, no file {path}")
        return None
    frame = pd.read_parquet(path) if task.suffix == "parquet" else pd.read_csv(path)
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    return frame.assign(**{name: frame[name].astype("category") for name in texts})


def read_problem(task: Task, scale: Scale) -> Problem | None:
    """A task's table, or as many rows as the scale has; None, with a line, where it is absent or has one class."""
    frame = read_frame(task)
    if frame is None:
        return None
    frame = frame[frame[task.target].notna()]
    names = task.inputs or [name for name in frame.columns if name not in {task.target, *task.left_out}]
    most = min(scale.rows(len(frame)), task.most_rows)
    rows = np.arange(len(frame))
    if most < len(frame):
        rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:most])
    target = frame[task.target].to_numpy()[rows]
    if not task.is_regression:
        kept = is_common(target)
        rows, target = rows[kept], np.unique(target[kept], return_inverse=True)[1]
        if target.max(initial=0) == 0:
            print(f"{task.name}: left out, {len(rows):,} rows have no second class for every fold")
            return None
    X = frame[list(names)].iloc[rows].reset_index(drop=True)
    for name in X.columns:
        if X[name].dtype == "category":
            X[name] = X[name].cat.remove_unused_categories()
    return Problem(task, X, target.astype(np.float64 if task.is_regression else np.int64))


def is_common(target: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows whose class has a row for every fold."""
    _, code, count = np.unique(np.asarray(target), return_inverse=True, return_counts=True)
    return count[code] >= N_FOLDS


def folds(problem: Problem, seed: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Rows to learn from and rows held out, fold by fold: the same for every library."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if problem.task.is_regression else StratifiedKFold
    every = kind(N_FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(problem.y)), problem.y)
    for at, fold in enumerate(every):
        if at == 0 or (len(problem.y) <= FEW_ROWS and at < problem.task.most_folds):
            yield fold


# --- Scores -------------------------------------------------------------------------------------------------


def make_model(library: str, problem: Problem, seed: int, settings: dict[str, Any]) -> Any:
    """An estimator with its library's defaults; `settings` are for ours."""
    is_regression = problem.task.is_regression
    if library in {OURS, FOREST}:
        import spinney

        name = "GradientBoosting" if library == OURS else "RandomForest"
        kind = getattr(spinney, name + ("Regressor" if is_regression else "Classifier"))
        return kind(n_jobs=1, random_state=seed, **(settings if library == OURS else {}))
    if library == "LightGBM":
        import lightgbm

        kind = lightgbm.LGBMRegressor if is_regression else lightgbm.LGBMClassifier
        return kind(n_estimators=100, n_jobs=1, random_state=seed, verbose=-1)
    if library == CATBOOST:
        import catboost

        kind = catboost.CatBoostRegressor if is_regression else catboost.CatBoostClassifier
        cats = [name for name in problem.X.columns if problem.X[name].dtype == "category"]
        return kind(thread_count=1, random_seed=seed, verbose=0, cat_features=cats, allow_writing_files=False)
    if library == HGB:
        from sklearn import ensemble

        kind = ensemble.HistGradientBoostingRegressor if is_regression else ensemble.HistGradientBoostingClassifier
        return kind(random_state=seed)
    import xgboost

    kind = xgboost.XGBRegressor if is_regression else xgboost.XGBClassifier
    return kind(n_estimators=100, n_jobs=1, random_state=seed, enable_categorical=True)


def table_for(library: str, X: Any) -> Any:
    """A frame as a library takes it."""
    levels = {name: X[name] for name in X.columns if X[name].dtype == "category"}
    if library == CATBOOST:
        return X.assign(
            **{name: each.astype(object).where(each.notna(), "nan").astype(str) for name, each in levels.items()}
        )
    if library == HGB:
        many = {name: each for name, each in levels.items() if each.cat.categories.size > HGB_LEVELS}
        return X.assign(**{name: each.cat.codes.replace(-1, np.nan).astype(float) for name, each in many.items()})
    return X


def fit_stopped(library: str, model: Any, X: Any, y: NDArray[Any], seed: int) -> None:
    """Fit a peer that stops by rows held out."""
    from sklearn.model_selection import train_test_split

    classes = None if y.dtype == np.float64 else y
    learn, judge = train_test_split(np.arange(len(y)), test_size=1 / HELD_OUT, random_state=seed, stratify=classes)
    held_out = (X.iloc[judge], y[judge])
    if library == HGB:
        model.set_params(max_iter=MOST_STOPPED, early_stopping=True, n_iter_no_change=PATIENCE, tol=0.0)
        model.fit(X.iloc[learn], y[learn], X_val=held_out[0], y_val=held_out[1])
        return
    model.set_params(n_estimators=MOST_STOPPED)
    more: dict[str, Any] = {"eval_set": [held_out]}
    if library == "LightGBM":
        import lightgbm

        more = {"eval_X": held_out[0], "eval_y": held_out[1]}
        more["callbacks"] = [lightgbm.early_stopping(PATIENCE, verbose=False)]
    elif library == CATBOOST:
        more["early_stopping_rounds"] = PATIENCE
    else:
        model.set_params(early_stopping_rounds=PATIENCE)
        more["verbose"] = False
    model.fit(X.iloc[learn], y[learn], **more)


def score_fold(model: Any, X: Any, problem: Problem, train: NDArray[Any], test: NDArray[Any], fit: Any = None) -> float:
    """Log loss, or RMSE, of the rows held out; fit: how to, of (model, X, y), where not by `fit` alone."""
    from sklearn.metrics import log_loss, root_mean_squared_error

    y = problem.y
    if fit is None:
        model.fit(X.iloc[train], y[train])
    else:
        fit(model, X.iloc[train], y[train])
    if problem.task.is_regression:
        return float(root_mean_squared_error(y[test], model.predict(X.iloc[test])))
    found = np.clip(np.asarray(model.predict_proba(X.iloc[test]), np.float64), 1e-15, 1.0)
    found /= found.sum(axis=1, keepdims=True)  # float32 probabilities add up to 1 only nearly
    return float(log_loss(y[test], found, labels=np.arange(problem.n_classes)))


class Cache:
    """Scores of peers by table, library, version, rows, seed and fold; kept in a JSON file where one is named."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.scores = self.read()

    def read(self) -> dict[str, float]:
        """What the file holds."""
        if self.path is None or not self.path.exists():
            return {}
        return json.loads(self.path.read_text(encoding="utf-8"))

    def save(self) -> None:
        """Add to the file, replacing it as a whole: a run that is stopped leaves the one before."""
        if self.path is not None:
            fresh = self.path.with_suffix(".new")
            scores = dict(sorted({**self.read(), **self.scores}.items()))
            fresh.write_text(json.dumps(scores, indent=0) + "\n", encoding="utf-8")
            fresh.replace(self.path)


def key_of(library: str, problem: Problem, seed: int, fold: int) -> str:
    """What a peer's score is kept under."""
    version = installed(PEERS[library.removesuffix(STOPPED)])
    return f"{problem.task.name} {library} {version} {len(problem.y)} {seed} {fold}"


def is_known(libraries: list[str], problem: Problem, seed: int, cache: Cache) -> bool:
    """Whether every peer has been scored on all folds of a seed."""
    n_folds = sum(1 for _ in folds(problem, seed))
    peers = [library for library in libraries if library not in {OURS, FOREST}]
    return all(key_of(library, problem, seed, at) in cache.scores for library in peers for at in range(n_folds))


def score_seed(library: str, problem: Problem, seed: int, cache: Cache, settings: dict[str, Any]) -> float:
    """Mean score over the folds of a seed; a peer's folds are looked up first."""
    name = library.removesuffix(STOPPED)
    scores, X = [], table_for(name, problem.X)
    for at, (train, test) in enumerate(folds(problem, seed)):
        is_peer = name in PEERS
        score = cache.scores.get(key_of(library, problem, seed, at)) if is_peer else None
        if score is None:
            fit = (lambda *given: fit_stopped(name, *given, seed)) if library != name else None
            score = score_fold(make_model(name, problem, seed, settings), X, problem, train, test, fit)
            if is_peer:
                cache.scores[key_of(library, problem, seed, at)] = score
                cache.save()  # a fold may have taken minutes
        scores.append(score)
    return float(np.mean(scores))


# --- The question -------------------------------------------------------------------------------------------


def find_libraries() -> list[str]:
    """Ours and the peers that are installed; a line for each of the others."""
    found = [OURS, FOREST]
    for library, module in PEERS.items():
        try:
            import_module(module)
        except ImportError:
            print(f"{library}: left out, not installed")
        else:
            found.append(library)
    return found


def rank(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks along the last axis, 1 for the lowest score; equal ones share the mean of theirs."""
    from scipy.stats import rankdata

    return rankdata(scores, axis=-1)


def describe(task: Task, libraries: list[str], scores: NDArray[np.float64], n_rows: int) -> Answer:
    """A row for a table from scores (n_seeds, n_libraries)."""
    means, ranks = scores.mean(axis=0), rank(scores).mean(axis=0)
    metric = "RMSE" if task.is_regression else "log loss"
    cells = [f"{name} {mean:.5g} (rank {r:.2g})" for name, mean, r in zip(libraries, means, ranks, strict=True)]
    part = "chose" if task.name in CHOOSING else "judges"
    return Answer(
        "ranks",
        f"{task.name}, {n_rows:,} rows, {metric} of {task.target}; {part}",
        cells[0].removeprefix(f"{OURS} "),
        "; ".join(cells[1:]),
        means[0] / means[1:].min() if len(means) > 1 else 1.0,
        " x the best peer's",
        is_least=False,
        note=f"{len(scores)} seeds, over which ours has a standard deviation of {scores[:, 0].std():.2g}",
    )


def conclude(part: str, libraries: list[str], scores: list[NDArray[np.float64]], settings: dict[str, Any]) -> Answer:
    """The average rank from scores (n_seeds, n_libraries) of each table."""
    ranks = np.mean([rank(each).mean(axis=0) for each in scores], axis=0)
    of_means = np.mean([rank(each.mean(axis=0)) for each in scores], axis=0)
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    n_seeds = sorted({len(each) for each in scores})
    return Answer(
        "ranks",
        f"average rank over {len(scores)} tables ({part}) and {' or '.join(map(str, n_seeds))} seeds",
        f"{ranks[0]:.3f}",
        "; ".join(f"{name} {r:.3f}" for name, r in zip(libraries[1:], ranks[1:], strict=True)),
        ranks[0],
        "",
        ranks[1:].min() if len(ranks) > 1 else None,
        is_least=False,
        note=f"of the means over the seeds: {' / '.join(f'{r:.3f}' for r in of_means)}"
        + (f"; ours with {given}" if given else ""),
    )


def run(
    scale: Scale,
    cache: Path | None = None,
    settings: dict[str, Any] | None = None,
    tables: list[str] | None = None,
    seeds: int | None = None,
    *,
    known: bool = False,
    stopped: bool = False,
) -> list[Answer]:
    answers: list[Answer] = []
    libraries, kept, every = find_libraries(), Cache(cache or PEER_SCORES), {}
    if stopped:
        libraries = [library + STOPPED if library in PEERS else library for library in libraries]
    for task in TASKS:
        problem = None if tables and task.name not in tables else read_problem(task, scale)
        if problem is None:
            continue
        scores = np.array(
            [
                [score_seed(library, problem, seed, kept, settings or {}) for library in libraries]
                for seed in range(seeds or scale.repeats)
                if not known or is_known(libraries, problem, seed, kept)
            ]
        )
        if len(scores) == 0:
            print(f"{task.name}: left out, no seed that all peers have been scored on")
            continue
        every[task.name] = scores
        report(answers, describe(task, libraries, scores, len(problem.y)))
    parts = {
        "all": list(every.values()),
        "those that chose": [scores for name, scores in every.items() if name in CHOOSING],
        "those that judge": [scores for name, scores in every.items() if name not in CHOOSING],
    }
    for part, found in parts.items():
        if found:
            report(answers, conclude(part, libraries, found, settings or {}))
    return answers
