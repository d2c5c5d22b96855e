"""Every estimator on sparse tables: the model, and what it says, of the table in full, to the bit."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

import spinney
from fault_cases import ENSEMBLES, TREES, is_classifier, make, refuses, same_model
from spinney import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    OOBSelector,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)

KINDS = [*TREES, *ENSEMBLES]
FORMATS = [sparse.csr_matrix, sparse.csc_array, sparse.coo_array]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(autouse=True)
def few_cells(monkeypatch):
    """Blocks of some ten rows: answers are joined from many."""
    monkeypatch.setattr("spinney.table.sparse.CELLS_AT_ONCE", 100)


def make_rows(n_rows=150, seed=0, has_missing=True):
    """Ten columns, mostly 0, one of them throughout; NaN here and there; three classes, and numbers."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, 10)) < 0.25, rng.integers(-4, 9, (n_rows, 10)) / 4, 0.0)
    X[:, 6], X[3] = 0.0, 0.0
    score = X @ np.arange(-5.0, 5.0) + 0.3 * rng.normal(size=n_rows)
    if has_missing:
        X[rng.random(X.shape) < 0.02] = np.nan
    return X, np.digitize(score, [-1.0, 1.0]), score


def target_of(kind, classes, score):
    return classes if is_classifier(kind) else score


METHODS = ("predict", "predict_proba", "predict_log_proba", "apply", "decision_function", "predict_trees")


def assert_same_answers(one, X, other, S):
    for name in METHODS:
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name)(X), getattr(other, name)(S), err_msg=name)
    for name in ("staged_predict", "staged_predict_proba", "staged_decision_function"):
        if hasattr(one, name):
            for a, b in zip(getattr(one, name)(X), getattr(other, name)(S), strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)
    if hasattr(one, "decision_path"):
        a, b = one.decision_path(X), other.decision_path(S)
        a, b = (a[0], b[0]) if isinstance(a, tuple) else (a, b)
        assert (a != b).nnz == 0


@pytest.mark.parametrize("is_thin", [False, True])
def test_same_model_and_answers_as_in_full(kind, is_thin, monkeypatch):
    """Thin: so few cells are stored that rows are not walked in full."""
    monkeypatch.setattr("spinney.table.sparse.WIDE", 1 if is_thin else 11)
    monkeypatch.setattr("spinney.table.sparse.FEW_STORED", 1)
    X, classes, score = make_rows()
    y, weight = target_of(kind, classes, score), np.arange(150) % 4 + 0.5
    new = make_rows(40, seed=1)[0]
    full, weighted = make(kind).fit(X, y), make(kind).fit(X, y, weight)
    for pack in FORMATS:
        model = make(kind).fit(pack(X), y)
        assert same_model(model, full)
        assert model.n_features_in_ == 10
        assert_same_answers(full, new, model, pack(new))
        np.testing.assert_array_equal(model.predictor().predict(pack(new)), full.predict(new))
        np.testing.assert_array_equal(model.predictor().apply(pack(new)), full.predictor().apply(new))
        np.testing.assert_array_equal(model.predict(pack(new[:1])), full.predict(new[:1]))
        assert model.score(pack(X), y) == full.score(X, y)
        assert same_model(make(kind).fit(pack(X), y, weight), weighted)
    assert get_tags(full).input_tags.sparse


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32"])
def test_types_of_numbers(kind, dtype):
    X, classes, score = make_rows(80, has_missing=False)
    X = np.abs(4.0 * X).astype(dtype)
    y = target_of(kind, classes, score)
    full, model = make(kind).fit(X, y), make(kind).fit(sparse.csr_array(X), y)
    assert same_model(model, full)
    np.testing.assert_array_equal(model.predict(sparse.csc_matrix(X)), full.predict(X))


def test_sparse_frames(kind):
    X, classes, score = make_rows(80)
    y, names = target_of(kind, classes, score), [f"word {j}" for j in range(10)]
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X), columns=names)
    full = make(kind).fit(pd.DataFrame(X, columns=names), y)
    model = make(kind).fit(frame, y)
    assert same_model(model, full)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(frame[names[::-1]]), full.predict(frame))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), full.predict(frame))


def test_what_is_refused(kind):
    X, classes, score = make_rows(40)
    y = target_of(kind, classes, score)
    model = make(kind).fit(sparse.csr_array(X), y)
    with refuses(ValueError, "X has 4 features", "expecting 10 features as input"):
        model.predict(sparse.csr_array(X[:, :4]))
    with refuses(ValueError, "inconsistent numbers of samples", "X has 39 rows, y has 40"):
        make(kind).fit(sparse.csr_array(X[1:]), y)
    with refuses(ValueError, "Complex data not supported"):
        model.predict(sparse.csr_array(X.astype(complex)))
    with refuses(TypeError, "Sparse data was passed for y"):
        make(kind).fit(sparse.csr_array(X), sparse.csr_array(score[:, None]))
    with refuses(TypeError, "x is sparse", "`predict`"):
        model.predictor()(sparse.csr_array(X))
    np.testing.assert_array_equal(model.predictor().encode(sparse.coo_array(X)), X)


def test_categories_by_index():
    X, y, _ = make_rows(has_missing=False)
    X[:, 0] = np.abs(4 * X[:, 0])
    S = sparse.csr_array(X)
    for make_model in (
        lambda: CARTClassifier(categorical_features=[0]),
        lambda: RandomForestClassifier(n_estimators=5, random_state=0, categorical_features=[0], oob_score=True),
        lambda: GradientBoostingClassifier(random_state=0, categorical_features=[0], n_iter_no_change=2),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            full, model = make_model().fit(X, y), make_model().fit(S, y)
        assert same_model(model, full)
        np.testing.assert_array_equal(model.predict_proba(S), full.predict_proba(X))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (CARTClassifier, {"pruning": "reduced_error", "random_state": 0}),
        (CARTRegressor, {"ccp_alpha": "cv", "random_state": 0}),
        (CARTClassifier, {"missing": "surrogate"}),
        (CARTRegressor, {"leaf_model": "linear", "max_depth": 2}),
        (C45Classifier, {"pruning": "pessimistic", "raising": True}),
        (spinney.ID3Classifier, {"pruning": "reduced_error", "random_state": 0}),
    ],
)
def test_trees_that_need_their_rows_again(kind, settings):
    X, classes, score = make_rows()
    y = target_of(kind, classes, score)
    full, model = kind(**settings).fit(X, y), kind(**settings).fit(sparse.csc_array(X), y)
    assert same_model(model, full)
    assert_same_answers(full, X, model, sparse.csr_array(X))
    pruned = model.prune("reduced_error", sparse.csr_array(X[::2]), y[::2])
    assert same_model(pruned, full.prune("reduced_error", X[::2], y[::2]))
    assert str(model.explain(sparse.csr_array(X[5:6]))) == str(full.explain(X[5:6]))


def test_forests_on_rows_they_have_seen():
    X, y, score = make_rows(has_missing=False)
    S = sparse.csr_array(X)
    settings = {"n_estimators": 30, "random_state": 0, "oob_score": True}
    full, model = RandomForestClassifier(**settings).fit(X, y), RandomForestClassifier(**settings).fit(S, y)
    assert model.oob_score_ == full.oob_score_
    np.testing.assert_array_equal(model.oob_decision_function_, full.oob_decision_function_)
    for kind in ("impurity_oob", "permutation", "conditional"):
        a, b = model.importance(kind, S, y), full.importance(kind, X, y)
        np.testing.assert_array_equal(a.importance, b.importance, err_msg=kind)
    assert str(model.strength(S, y)) == str(full.strength(X, y))
    assert str(model.decompose(S, label=1)) == str(full.decompose(X, label=1))
    np.testing.assert_array_equal(model.predict_set(S, train=(X, y)), full.predict_set(X, train=(S, y)))
    full, model = RandomForestRegressor(**settings).fit(X, score), RandomForestRegressor(**settings).fit(S, score)
    np.testing.assert_array_equal(model.predict_interval(S), full.predict_interval(X))
    np.testing.assert_array_equal(
        model.predict_quantiles(S, [0.2, 0.8], train=(S, score)),
        full.predict_quantiles(X, [0.2, 0.8], train=(X, score)),
    )
    for kind in ("trees", "infinitesimal"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of so few trees
            np.testing.assert_array_equal(model.predict_variance(S, kind), full.predict_variance(X, kind))
    more = model.set_params(warm_start=True, n_estimators=35).fit(X, score)  # the same data, in another form
    assert len(more) == 35


def test_selecting_columns():
    X, y, _ = make_rows(has_missing=False)
    selector = OOBSelector(RandomForestClassifier(n_estimators=20, random_state=0))
    full, chosen = selector.fit_transform(X, y), selector.fit(sparse.csc_array(X), y).transform(sparse.csc_array(X))
    assert sparse.issparse(chosen)
    np.testing.assert_array_equal(chosen.toarray(), full)


@pytest.mark.parametrize("scoring", ["loss", "accuracy"])
def test_rows_that_boosting_is_evaluated_on(scoring):
    X, y, _ = make_rows()
    new, new_y, _ = make_rows(60, seed=1)
    settings = {"n_estimators": 12, "random_state": 0, "scoring": scoring, "n_iter_no_change": 3}
    for rows in ({}, {"X_val": new, "y_val": new_y}):
        for pack in FORMATS:
            packed = {name: pack(part) if name == "X_val" else part for name, part in rows.items()}
            full = GradientBoostingClassifier(**settings).fit(X, y, **rows)
            model = GradientBoostingClassifier(**settings).fit(pack(X), y, **packed)
            assert same_model(model, full)
            assert model.evals_result_ == full.evals_result_
    model = GradientBoostingRegressor(n_estimators=3, random_state=0, warm_start=True).fit(X, y)
    again = model.set_params(n_estimators=6).fit(sparse.csr_array(X), y)
    assert same_model(again, GradientBoostingRegressor(n_estimators=6, random_state=0).fit(X, y))


@pytest.mark.parametrize("kind", [AdaBoostClassifier, AdaBoostRegressor])
def test_rows_that_adaboost_is_evaluated_on(kind):
    X, classes, score = make_rows()
    y, S = target_of(kind, classes, score), sparse.coo_array(X)
    settings = {"n_estimators": 8, "random_state": 0, "n_iter_no_change": 3}
    full, model = kind(**settings).fit(X, y), kind(**settings).fit(S, y)
    assert same_model(model, full)
    np.testing.assert_array_equal(model.validation_scores_, full.validation_scores_)
    for a, b in zip(model.staged_weights(S, y), full.staged_weights(X, y), strict=True):
        np.testing.assert_array_equal(a, b)
    given = kind(**settings).fit(S, y, X_val=S, y_val=y)
    assert same_model(given, kind(**settings).fit(X, y, X_val=X, y_val=y))


@pytest.mark.parametrize("passthrough", [False, True])
def test_stacks(passthrough):
    X, y, score = make_rows()
    members = [("cart", CARTClassifier(max_depth=4)), ("trees", ExtraTreesClassifier(n_estimators=4, random_state=0))]
    others = [("cart", CARTRegressor(max_depth=4)), ("forest", RandomForestRegressor(n_estimators=4))]
    for kind, parts, target in ((StackingClassifier, members, y), (StackingRegressor, others, score)):
        last = (CARTClassifier if kind is StackingClassifier else CARTRegressor)(max_depth=3)
        stack = kind(parts, last, passthrough=passthrough, random_state=0)
        assert get_tags(stack).input_tags.sparse
        full = stack.fit(X, target).predict(X)
        for pack in FORMATS:
            np.testing.assert_array_equal(stack.fit(pack(X), target).predict(pack(X)), full)
        frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)).rename(columns=lambda j: f"w{j}")
        np.testing.assert_array_equal(stack.fit(frame, target).predict(frame), full)


def test_members_on_bags_of_columns():
    X, y, _ = make_rows()
    settings = {"n_estimators": 25, "max_features": 0.5, "random_state": 0, "oob_score": True}
    full = BaggingClassifier(**settings).fit(X, y)
    model = BaggingClassifier(**settings).fit(sparse.csc_matrix(X), y)
    assert same_model(model, full)
    np.testing.assert_array_equal(model.oob_decision_function_, full.oob_decision_function_)


# --- pipelines ------------------------------------------------------------------------------------------------------


def test_one_hot_columns_in_a_pipeline():
    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue", "grey"])[rng.integers(0, 4, (120, 3))]
    y = np.where(words[:, 0] == "red", words[:, 1] == "blue", words[:, 2] == "grey")
    for kind in (RandomForestClassifier, GradientBoostingClassifier):
        model = kind(n_estimators=10, random_state=0)
        stored, full = (make_pipeline(OneHotEncoder(sparse_output=is_sparse), model) for is_sparse in (True, False))
        np.testing.assert_array_equal(
            stored.fit(words, y).predict_proba(words), full.fit(words, y).predict_proba(words)
        )
        assert stored.score(words, y) > 0.9


def test_words_of_texts_in_a_pipeline():
    rng = np.random.default_rng(0)
    letters = np.array([f"word{k}" for k in range(60)])
    texts = [" ".join(letters[rng.integers(0, 60, 12)]) for _ in range(150)]
    y = np.array(["word3 " in text + " " or "word7 " in text + " " for text in texts])
    pipeline = make_pipeline(TfidfVectorizer(), GradientBoostingClassifier(n_estimators=20, random_state=0))
    assert np.mean(cross_val_predict(pipeline, texts, y, cv=3) == y) > 0.9


# --- memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (GradientBoostingClassifier(n_estimators=3, random_state=0, n_jobs=1), 0.5),
        (RandomForestClassifier(n_estimators=3, random_state=0, n_jobs=1), 0.2),
        (CARTClassifier(max_depth=4), 0.2),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.compiled(reason="interpreted kernels take minutes for so many cells")
def test_memory_is_far_below_the_table_in_full(model, share, monkeypatch):
    monkeypatch.setattr("spinney.table.sparse.CELLS_AT_ONCE", 1 << 20)
    n_rows, n_columns = 8000, 3000
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, n_rows * n_columns, 240_000))
    S = sparse.csr_array((np.ones(len(cells)), np.divmod(cells, n_columns)), shape=(n_rows, n_columns))
    y = S[:, :150].sum(axis=1) > 1.5
    model.fit(S[:500], y[:500]).predict(S[:500])  # what is imported and compiled does not count
    tracemalloc.start()
    try:
        model.fit(S, y)
        in_fit = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        model.predict(S)
        in_predict = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    in_full = 8 * n_rows * n_columns
    assert in_fit < share * in_full
    assert in_predict < 0.25 * in_full
