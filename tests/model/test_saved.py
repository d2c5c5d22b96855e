"""Models that are saved and loaded again: files, pickles and copies give the same answers to the last bit."""

import copy
import functools
import io
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError

import saved_models
import spinney
from spinney.model import forest_votes
from spinney.model.container import BrokenFileError, read
from spinney.model.state import read_codes

NAMES = list(saved_models.MODELS)


def answers(model, X):
    """Whatever a model can say."""
    said = {"predict": model.predict(X)}
    for name in ("predict_proba", "apply", "decision_function"):
        if hasattr(model, name):
            said[name] = getattr(model, name)(X)
    return said


def assert_same_answers(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
        if a[name].dtype.kind == "f":
            assert a[name].tobytes() == b[name].tobytes(), name


def load(path):
    return spinney.load_model(path, losses=saved_models.LOSSES)


def test_every_estimator_is_among_the_models():
    kinds = {type(estimator).__name__ for estimator, _, _ in saved_models.MODELS.values()}
    assert kinds == set(saved_models.all_methods())


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_is_the_same(name, tmp_path):
    model, X = saved_models.fit(name)
    path = tmp_path / "model.spn"
    model.save_model(path)
    loaded = load(path)
    assert type(loaded) is type(model)
    assert_same_answers(answers(model, X), answers(loaded, X))
    fitted = {attribute for attribute in vars(model) if attribute.endswith("_") and not attribute.startswith("_")}
    assert fitted <= {*vars(loaded), "trace_"}
    again = tmp_path / "again.spn"
    loaded.save_model(again)
    assert again.read_bytes() == path.read_bytes()
    if "custom" not in name:
        assert str(loaded.get_params(deep=False)) == str(model.get_params(deep=False))
    if hasattr(model, "feature_importances_") and type(model).__name__ not in (
        "BaggingClassifier",
        "AdaBoostClassifier",
    ):
        np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)


@pytest.mark.parametrize("name", NAMES)
def test_pickles_and_copies_are_the_same(name):
    model, X = saved_models.fit(name)
    said = answers(model, X)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model), joblib.load(buffer)):
        assert_same_answers(said, answers(other, X))
        assert vars(other).keys() == vars(model).keys()
        assert pickle.dumps(other) == pickle.dumps(model)


@pytest.mark.parametrize("name", NAMES)
def test_a_predictor_says_what_the_estimator_says(name, tmp_path):
    model, X = saved_models.fit(name)
    path = tmp_path / "model.spn"
    model.save_model(path)
    if not model._has_predictor():
        with pytest.raises(ValueError, match="load_model"):
            spinney.load_predictor(path)
        with pytest.raises(ValueError, match=r"no trees of one forest|gives numbers or classes, and this model curves"):
            model.predictor()
        return
    for predictor in (spinney.load_predictor(path), model.predictor()):
        np.testing.assert_array_equal(predictor.predict(X), model.predict(X))
        answer = model.predict_proba(X) if is_classifier(model) else model.predict(X)
        if is_classifier(model):
            np.testing.assert_array_equal(predictor.predict_proba(X), answer)
        values = predictor.encode(X)
        assert predictor(values).tobytes() == answer.tobytes()
        narrow = values.astype(np.float32)
        of_narrow = predictor(narrow.astype(np.float64))
        assert predictor(narrow).tobytes() == of_narrow.tobytes()
        for row in range(0, len(values), 7):
            assert np.asarray(predictor(values[row])).tobytes() == answer[row].tobytes()
            assert np.asarray(predictor(narrow[row])).tobytes() == of_narrow[row].tobytes()
        if hasattr(model, "apply"):
            np.testing.assert_array_equal(predictor.apply(X).ravel(), model.apply(X).ravel())
        assert predictor.predict_trees(X).shape[1] == len(values)


@pytest.mark.parametrize("name", ["forest", "forest numbers", "boosting", "boosting classes", "adaboost"])
def test_what_trees_say_adds_up(name):
    model, X = saved_models.fit(name)
    predictor = model.predictor()
    said = predictor.predict_trees(X)
    if name.startswith("forest"):
        answer = model.predict_proba(X) if is_classifier(model) else model.predict(X)
        np.testing.assert_allclose(said.mean(axis=0), answer)
        np.testing.assert_array_equal(said, model.predict_trees(X))
    elif name.startswith("boosting"):
        raw = model.decision_function(X).reshape(said.shape[1], -1)
        for k, start in enumerate(predictor.start):
            np.testing.assert_allclose(said[k :: len(predictor.start)].sum(axis=0) + start, raw[:, k], atol=1e-12)
    else:
        votes = said.argmax(axis=2).T @ model.estimator_weights_ / model.estimator_weights_.sum()
        np.testing.assert_allclose(4.0 * votes - 2.0, model.decision_function(X), atol=1e-12)


def test_odd_rows_through_a_predictor():
    model, X = saved_models.fit("forest")
    predictor = model.predictor()
    row = predictor.encode(X)[0]
    expected = predictor(row)
    for same in (
        row.tolist(),
        row[::1].copy(),
        np.asfortranarray(row),
        np.stack([row, row])[:, :][0],
        row.astype(">f8"),
    ):
        np.testing.assert_array_equal(predictor(same), expected)
    strided = np.repeat(row, 2)[::2]
    read_only = row.copy()
    read_only.flags.writeable = False
    for same in (strided, read_only):
        np.testing.assert_array_equal(predictor(same), expected)
    missing = row.copy()
    missing[2] = np.nan
    for level in (-1.0, 5.0, 1e300, np.inf, 2.5, -np.inf):  # no level: as missing
        odd = row.copy()
        odd[2] = level
        np.testing.assert_array_equal(predictor(odd), predictor(missing))
        np.testing.assert_array_equal(predictor(odd[None]), predictor(missing)[None])
    for wrong in (row[:3], np.zeros(5), np.zeros((2, 3)), np.zeros((1, 1, 4)), 3.0):
        with pytest.raises(ValueError, match="a row has 4 values"):
            predictor(wrong)
    for wrong in ([1.0, 2.0, "red", 3.0], row * 1j):
        with pytest.raises((TypeError, ValueError), match="x must be numbers, a category the index of its level"):
            predictor(wrong)


def test_trees_are_packed_for_single_rows_only(tmp_path, monkeypatch):
    """The packed array is memory of each process; what tables need stays in the file."""
    model, X = saved_models.fit("forest")
    model.save_model(tmp_path / "model.spn")
    predictor = spinney.load_predictor(tmp_path / "model.spn")
    packed = []
    sums = type(predictor).row_sums
    monkeypatch.setattr(type(predictor), "row_sums", lambda self: packed.append(1) or sums(self))
    values = predictor.encode(X)
    predictor(values)
    predictor(values[:1])
    predictor.predict(X)
    predictor.apply(X)
    predictor.predict_trees(X)
    assert not packed
    predictor(values[0])
    predictor(values[1])
    assert packed == [1]


def test_a_predictor_is_not_called_with_frames():
    model, X = saved_models.fit("forest named")
    predictor = model.predictor()
    with pytest.raises(TypeError, match="x is a frame: `predict`"):
        predictor(X)
    predictor = saved_models.fit("forest")[0].predictor()
    with pytest.raises(ValueError, match=r"X has 3 features, but the model is expecting 4 features"):
        predictor.predict(np.zeros((2, 3)))


@pytest.mark.parametrize("name", ["cart classes", "c45 smoothed", "forest", "boosting", "adaboost", "adaboost numbers"])
def test_the_number_of_threads_is_looked_at(name):
    model, X = saved_models.fit(name)
    predictor = model.predictor()
    methods = [predictor.predict, predictor.predict_proba] if is_classifier(model) else [predictor.predict]
    for ask in methods:
        with pytest.raises(ValueError, match="n_jobs == 0"):
            ask(X, n_jobs=0)
        for wrong in ("2", 1.5, [1]):
            with pytest.raises(TypeError, match="n_jobs must be a whole number or None, not"):
                ask(X, n_jobs=wrong)
        for n_jobs in (1, 2, -1, np.int64(2)):
            np.testing.assert_array_equal(ask(X, n_jobs=n_jobs), ask(X))


@pytest.mark.parametrize("name", ["adaboost", "adaboost classes", "adaboost numbers"])
def test_threads_of_adaboost_say_the_same(name, monkeypatch):
    monkeypatch.setattr(forest_votes, "FEWEST_ROWS", 16)
    model, X = saved_models.fit(name)
    predictor = model.predictor()
    calls = []
    run_tasks = forest_votes.run_tasks
    monkeypatch.setattr(
        forest_votes, "run_tasks", lambda *args, **options: (calls.append(args), run_tasks(*args, **options))
    )
    values = predictor.encode(X)
    assert predictor.answer(values, 3).tobytes() == predictor.answer(values, 1).tobytes()
    assert [n_workers for _, _, n_workers in calls] == [3, 1]


@pytest.mark.parametrize("name", ["cart named", "forest named"])
def test_warnings_are_at_the_line_that_asks(name):
    model, X = saved_models.fit(name)
    predictor = model.predictor()
    unnamed = np.column_stack([column.to_numpy(zero_copy_only=False) for column in X.columns]).astype(object)
    asked = [model.predict, model.apply, predictor.predict, predictor.encode, predictor.apply, predictor.predict_trees]
    for ask in asked:
        with pytest.warns(UserWarning, match="X does not have valid feature names") as told:
            ask(unnamed)
        assert told[0].filename == __file__


@pytest.mark.parametrize("kind", [spinney.CARTRegressor, spinney.ID3Regressor])
def test_one_row_keeps_the_sign_of_zero(kind):
    predictor = kind().fit([[1.0], [2.0]], [-0.0, 1.0]).predictor()
    answer = predictor.predict([[1.0]])
    assert np.signbit(answer[0]) == np.signbit(predictor(np.array([1.0])))
    assert answer[0] == 0.0


@pytest.mark.slow
def test_a_predictor_needs_no_scikit_learn(tmp_path):
    for name in ("boosting", "forest named", "c45", "adaboost classes"):
        model, X = saved_models.fit(name)
        path = tmp_path / "model.spn"
        model.save_model(path)
        rows = model.predictor().encode(X)[:3].tolist()
        code = f"""
import sys, numpy as np
import spinney
predictor = spinney.load_predictor({str(path)!r})
predictor(np.array({rows!r}, dtype=float)[1])
bad = [name for name in sys.modules if name.partition(".")[0] in ("sklearn", "pandas", "matplotlib", "dask")]
assert not bad, bad
""".replace("nan", "np.nan")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_loss_of_ones_own_must_be_given_again(tmp_path):
    model, X = saved_models.fit("boosting custom")
    path = tmp_path / "model.spn"
    model.save_model(path)
    with pytest.raises(ValueError, match=r"'gradient'.*give it again"):
        spinney.load_model(path)
    for wrong in (saved_models.LOSSES["gradient"], {"gradient": saved_models.gradient}, {"gradient": (1, 2)}):
        with pytest.raises(TypeError, match=r"losses.* must be"):
            spinney.load_model(path, losses=wrong)
    loaded = load(path)
    assert loaded.loss == saved_models.LOSSES["gradient"]
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(spinney.load_predictor(path).predict(X), model.predict(X))


def test_a_loss_of_members_must_be_given_again(tmp_path):
    X, y = saved_models.make_data(0)
    path = tmp_path / "model.spn"
    loss = functools.partial(saved_models.gradient), saved_models.hessian  # it has no name but its class's
    base = spinney.GradientBoostingRegressor(loss=loss, n_estimators=2)
    model = spinney.BaggingRegressor(estimator=base, n_estimators=2, random_state=0).fit(X, y)
    model.save_model(path)
    loaded = spinney.load_model(path, losses={"partial": loss})
    assert loaded.estimator.loss == loss
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_a_file_cannot_hold(tmp_path):
    from sklearn.tree import DecisionTreeClassifier

    X, y = saved_models.make_data(2, has_missing=False)
    path = tmp_path / "model.spn"
    with pytest.raises(NotFittedError):
        spinney.CARTClassifier().save_model(path)
    with pytest.raises(ValueError, match="DecisionTreeClassifier"):
        spinney.BaggingClassifier(estimator=DecisionTreeClassifier(), n_estimators=2).fit(X, y).save_model(path)
    assert not list(tmp_path.iterdir())

    class Mine(spinney.CARTClassifier):
        pass

    with pytest.raises(TypeError, match=r"Mine is not one of Spinney's"):
        Mine().fit(X, y).save_model(path)
    drawn = spinney.RandomForestClassifier(n_estimators=2, random_state=np.random.RandomState(0)).fit(X, y)
    with pytest.warns(UserWarning, match=r"random_state.*is not stored"):
        drawn.save_model(path)
    assert spinney.load_model(path).random_state is None
    drawn.set_params(random_state=0)
    drawn.note = {"by": "me"}
    with pytest.warns(UserWarning, match=r"the attribute note is not stored") as told:
        drawn.save_model(path)
    assert told[0].filename == __file__
    assert not hasattr(spinney.load_model(path), "note")


def test_parameters_and_labels_of_odd_types(tmp_path):
    X, y = saved_models.make_data(0, has_levels=False)
    path = tmp_path / "model.spn"
    model = spinney.GradientBoostingRegressor(
        loss=np.str_("huber"), interaction_cst=[{3, 0}, {2, 1}], n_estimators=np.int64(2)
    ).fit(X, y)
    model.save_model(path)
    loaded = spinney.load_model(path)
    assert loaded.get_params() == model.get_params()
    labels = np.array([np.str_("a"), np.str_("b")], object)[(y > 0).astype(int)]
    spinney.CARTClassifier().fit(X, labels).save_model(path)
    assert spinney.load_model(path).classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("order", ["<", ">"])
def test_one_long_label_among_many(order, tmp_path):
    names = np.array([*(f"n{i}" for i in range(900)), "long " * 40, "\U0001f333"]).astype(f"{order}U200")
    names = np.repeat(names, 2)
    X = np.arange(len(names), dtype=float)[:, None]
    model = spinney.CARTClassifier(max_depth=2).fit(X, names)
    for path in (tmp_path / "model.spn", tmp_path / "again.spn"):
        model.save_model(path)
        loaded = spinney.load_model(path)
        assert loaded.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(loaded.classes_, model.classes_)
        np.testing.assert_array_equal(spinney.load_predictor(path).predict(X), model.predict(X))
        model = loaded
    assert path.read_bytes() == (tmp_path / "model.spn").read_bytes()


def test_letters_that_are_none_are_refused():
    codes = np.arange(6, dtype=np.uint32)
    assert read_codes(codes + 65, "<U3", [2]).tolist() == ["ABC", "DEF"]
    with pytest.raises(BrokenFileError, match="0x10FFFF"):
        read_codes(codes + 0x110000, "<U3", [2])
    for kind, shape in (("<U2", [2]), ("<U3", [3]), ("<U3", [0]), ("<U3", [-2]), ("<U3", 2), (None, [2]), ("|O", [2])):
        with pytest.raises(BrokenFileError, match="labels"):
            read_codes(codes, kind, shape)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model, _ = saved_models.fit("boosting numbers")
    path = tmp_path / "model.spn"
    model.save_model(path)
    before = path.read_bytes()
    model.forest_.impurity[0] = np.inf
    with pytest.raises(ValueError, match=r"no file is written.*impurity"):
        model.save_model(path)
    assert path.read_bytes() == before


def test_a_pickle_that_joblib_maps_is_the_same(tmp_path):
    model, X = saved_models.fit("forest numbers")
    joblib.dump(model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert_same_answers(answers(model, X), answers(mapped, X))
    assert pickle.dumps(mapped) == pickle.dumps(model)
    for other, name in ((model, "a.spn"), (mapped, "b.spn")):
        other.save_model(tmp_path / name)
    assert (tmp_path / "a.spn").read_bytes() == (tmp_path / "b.spn").read_bytes()


def test_warm_start_goes_on_after_loading(tmp_path):
    X, y = saved_models.make_data(3)
    path = tmp_path / "model.spn"
    for kind in (spinney.RandomForestClassifier, spinney.GradientBoostingClassifier):
        model = kind(n_estimators=4, random_state=0, warm_start=True).fit(X, y)
        model.save_model(path)
        loaded = spinney.load_model(path).set_params(n_estimators=7).fit(X, y)
        model.set_params(n_estimators=7).fit(X, y)
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_pruning_goes_on_after_loading(tmp_path):
    X, y = saved_models.make_data(3)
    model = spinney.CARTClassifier().fit(X, y)
    model.save_model(tmp_path / "model.spn")
    loaded = spinney.load_model(tmp_path / "model.spn")
    for method, rows in (("cost_complexity", ()), ("pessimistic", (X, y)), ("reduced_error", (X, y)), ("merge", ())):
        a, b = model.prune(method, *rows), loaded.prune(method, *rows)
        np.testing.assert_array_equal(a.tree_.arrays.threshold, b.tree_.arrays.threshold)


def test_trees_stay_in_the_file(tmp_path):
    model, _ = saved_models.fit("forest")
    path = tmp_path / "model.spn"
    model.save_model(path)
    loaded = spinney.load_model(path)
    assert not loaded.forest_.hot.flags.writeable
    assert not loaded.forest_.hot.flags.owndata
    assert loaded.forest_.hot.ctypes.data % 16 == 0


def test_files_are_read_by_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    for name in NAMES:
        model, _ = saved_models.fit(name)
        model.save_model(tmp_path / "model.spn")
        ours, theirs = read(tmp_path / "model.spn").arrays, safetensors.load_file(tmp_path / "model.spn")
        assert ours.keys() == theirs.keys()
        for key in ours:
            np.testing.assert_array_equal(ours[key], theirs[key])


def test_fault_108_pickles_of_another_version_warn():
    model, X = saved_models.fit("cart classes")
    state = model.__getstate__()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).__setstate__(state)
    other = clone(model)
    with pytest.warns(InconsistentVersionWarning, match=r"CARTClassifier from version 0\.0\.1"):
        other.__setstate__({**state, "version": "0.0.1"})
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_a_damaged_pickle_is_refused():
    model, _ = saved_models.fit("forest")
    state = model.__getstate__()
    (name,) = [name for name in state["arrays"] if name.endswith("forest_.hot")]
    damaged = state["arrays"][name].copy()
    damaged[:, 1] |= np.uint64(1 << 62)
    with pytest.raises(ValueError, match="node"):
        clone(model).__setstate__({**state, "arrays": {**state["arrays"], name: damaged}})


class TreeWithAState(spinney.CARTClassifier):
    """A class of a user's, whose state is its attributes."""

    def __getstate__(self):
        return vars(self).copy()


def test_a_class_with_a_state_of_its_own_is_restored_and_checked():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 3
    model = TreeWithAState(max_depth=3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert pickle.loads(pickle.dumps(TreeWithAState())).get_params() == TreeWithAState().get_params()
    with pytest.raises(ValueError, match="n_classes_"):
        clone(model).__setstate__({**vars(model), "n_classes_": 7})
