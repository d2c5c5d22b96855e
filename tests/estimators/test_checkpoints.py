"""A fit that was interrupted goes on from its checkpoint, and its model is that of a fit at once, byte for byte."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import spinney
from disk_tables import make_table, model_bytes, split, write_parts
from spinney.estimators import checkpoints
from spinney.estimators.checkpoints import NAME, Checkpoint
from spinney.scale.scan import Scan

FEW = {"n_estimators": 6, "random_state": 0}
CLASSIFIERS = [
    spinney.RandomForestClassifier(oob_score=True, **FEW),
    spinney.RandomForestClassifier(bootstrap="poisson", class_weight="balanced_subsample", voting="hard", **FEW),
    spinney.RandomForestClassifier(pruning="oob", ccp_alpha=0.001, **FEW),
    spinney.ExtraTreesClassifier(**FEW),
    spinney.BaggingClassifier(oob_score=True, max_features=0.7, **FEW),
    spinney.AdaBoostClassifier(**FEW),
    spinney.AdaBoostClassifier(spinney.CARTClassifier(max_depth=3, ccp_alpha=0.001), n_iter_no_change=4, **FEW),
    spinney.GradientBoostingClassifier(**FEW),
    spinney.GradientBoostingClassifier(subsample=0.6, max_features=0.5, max_features_per_tree=0.8, **FEW),
    spinney.GradientBoostingClassifier(n_iter_no_change=4, validation_fraction=0.2, scoring="roc_auc", **FEW),
    spinney.GradientBoostingClassifier(candidates="hessian", max_bins=16, class_weight="balanced", **FEW),
]
REGRESSORS = [
    *(
        spinney.GradientBoostingRegressor(loss=loss, **FEW)
        for loss in ("squared_error", "absolute_error", "huber", "poisson", "quantile")
    ),
    spinney.GradientBoostingRegressor(loss="quantile", alpha=[0.2, 0.8], **FEW),
    spinney.GradientBoostingRegressor(newton=False, loss="gamma", **FEW),
    spinney.RandomForestRegressor(oob_score=True, **FEW),
    spinney.RandomForestRegressor(honest=True, keep_members=True, **FEW),
    spinney.ExtraTreesRegressor(bootstrap=True, **FEW),
    spinney.BaggingRegressor(**FEW),
    spinney.AdaBoostRegressor(**FEW),
]
IGNORED = pytest.mark.filterwarnings("ignore:.*in every bag", "ignore:pruning='oob'")


def interrupt(model, n_whole, monkeypatch, *data, **more):
    """Fit, and be interrupted after so many whole trees or rounds."""
    left = iter(range(n_whole - 1))

    def note(_):
        if next(left, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "note", note)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*data, **more)


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def make_rows(n_rows=400, seed=0, *, target="classes"):
    return split(make_table(n_rows, seed, target=target))


def keeping(model, folder):
    return clone(model).set_params(checkpoint=folder)


@IGNORED
@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=str)
def test_a_fit_that_goes_on_gives_the_bytes_of_a_fit_at_once(model, tmp_path, monkeypatch):
    X, y = make_rows(target="numbers" if model in REGRESSORS else "classes")
    weight = np.arange(len(y)) % 4 / 2  # rows of weight 0 among them
    expected = model_bytes(clone(model).fit(X, y, sample_weight=weight), tmp_path)
    run = tmp_path / "run"
    for n_whole in (2, 1):  # interrupted twice
        interrupt(keeping(model, run), n_whole, monkeypatch, X, y, sample_weight=weight)
        assert list_names(run) == [NAME]
    assert model_bytes(keeping(model, run).fit(X, y, sample_weight=weight), tmp_path) == expected
    assert not run.exists()


@IGNORED
@pytest.mark.filterwarnings("ignore:random_state=RandomState")
@pytest.mark.parametrize(
    "model",
    [
        spinney.GradientBoostingClassifier(subsample=0.6, **FEW),
        spinney.RandomForestClassifier(oob_score=True, **FEW),
        spinney.AdaBoostClassifier(**FEW),
    ],
    ids=str,
)
def test_three_classes_and_no_seed_go_on_with_what_was_drawn(model, tmp_path, monkeypatch):
    X, y = make_rows(target="three")
    run = tmp_path / "run"
    drawn = clone(model).set_params(random_state=np.random.RandomState(5))
    expected = model_bytes(clone(model).set_params(random_state=np.random.RandomState(5)).fit(X, y), tmp_path)
    interrupt(drawn.set_params(checkpoint=run), 3, monkeypatch, X, y)
    again = keeping(model, run).set_params(random_state=np.random.RandomState(6)).fit(X, y)
    assert model_bytes(again, tmp_path) == expected


@pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")
@IGNORED
@pytest.mark.parametrize(
    "model",
    [
        spinney.GradientBoostingClassifier(subsample=0.7, n_iter_no_change=4, validation_fraction=0.2, **FEW),
        spinney.RandomForestClassifier(oob_score=True, **FEW),
        spinney.AdaBoostClassifier(**FEW),
        spinney.BaggingClassifier(oob_score=True, **FEW),
    ],
    ids=str,
)
def test_a_fit_of_a_scan_goes_on_in_memory_and_the_other_way_round(model, tmp_path, monkeypatch):
    table = make_table(9000)
    weight = table["w"].to_numpy()
    scanned = Scan(write_parts(table, tmp_path, [5000]), "y", weight="w", drop=["g"], block_rows=4096)
    X, y = split(table)
    expected = model_bytes(clone(model).fit(X, y, sample_weight=weight), tmp_path)
    run = tmp_path / "run"
    interrupt(keeping(model, run), 2, monkeypatch, scanned)
    interrupt(keeping(model, run), 1, monkeypatch, X, y, sample_weight=weight)
    assert model_bytes(keeping(model, run).fit(scanned), tmp_path) == expected


@pytest.mark.parametrize("model", [CLASSIFIERS[0], CLASSIFIERS[8], CLASSIFIERS[5]], ids=lambda m: type(m).__name__)
@IGNORED
def test_a_fit_of_a_sparse_table_goes_on(model, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.where(rng.random((300, 8)) < 0.3, rng.normal(size=(300, 8)).round(1), 0.0))
    y = (X.toarray()[:, :3].sum(axis=1) + 0.3 * rng.normal(size=300)) > 0.0
    expected = model_bytes(clone(model).fit(X, y), tmp_path)
    interrupt(keeping(model, tmp_path / "run"), 3, monkeypatch, X, y)
    assert model_bytes(keeping(model, tmp_path / "run").fit(X, y), tmp_path) == expected


def test_rounds_are_kept_once_their_callbacks_have_been_called(tmp_path):
    X, y = make_rows()
    model = spinney.GradientBoostingClassifier(checkpoint=tmp_path / "run", **FEW)
    expected = model_bytes(clone(model).set_params(checkpoint=None).fit(X, y), tmp_path)
    seen = []

    def stop(iteration, _):
        seen.append(iteration)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(X, y, callbacks=stop)
    assert model_bytes(clone(model).fit(X, y, callbacks=stop), tmp_path) == expected
    assert seen == [1, 2, 3, 3, 4, 5, 6]


def test_a_fit_that_was_over_grows_no_more(tmp_path, monkeypatch):
    X, y = make_rows()
    boosted = spinney.GradientBoostingClassifier(checkpoint=tmp_path / "run", n_estimators=30, random_state=0)

    def enough(iteration, _):
        return iteration == 4

    expected = model_bytes(clone(boosted).set_params(checkpoint=None).fit(X, y, callbacks=enough), tmp_path)
    interrupt(clone(boosted), 4, monkeypatch, X, y, callbacks=enough)
    assert model_bytes(clone(boosted).fit(X, y), tmp_path) == expected
    perfect = spinney.AdaBoostClassifier(spinney.CARTClassifier(), checkpoint=tmp_path / "run", **FEW)
    expected = model_bytes(clone(perfect).set_params(checkpoint=None).fit(X, y), tmp_path)
    interrupt(clone(perfect), 1, monkeypatch, X, y)
    assert model_bytes(clone(perfect).fit(X, y), tmp_path) == expected


@pytest.mark.compiled(reason="as many rounds as a rule wants, of 1,500 rows")
def test_rounds_that_stop_by_rows_outside_their_bags_stop_where_they_would(tmp_path, monkeypatch):
    X, y = make_rows(1500)
    model = spinney.GradientBoostingClassifier(subsample=0.5, learning_rate=0.2, random_state=0)
    whole = clone(model).fit(X, y)
    assert 20 < whole.n_estimators_ < 60
    expected = model_bytes(whole, tmp_path)
    interrupt(keeping(model, tmp_path / "run"), 15, monkeypatch, X, y)
    assert model_bytes(keeping(model, tmp_path / "run").fit(X, y), tmp_path) == expected


def test_a_checkpoint_is_written_when_it_is_due(tmp_path, monkeypatch):
    X, y = make_rows()
    written = []
    monkeypatch.setattr(checkpoints, "write", lambda path, *_: written.append(path))
    spinney.RandomForestClassifier(checkpoint=tmp_path, n_jobs=1, **FEW).fit(X, y)
    assert written == []  # 30 seconds have not passed
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 0)
    spinney.RandomForestClassifier(checkpoint=tmp_path, n_jobs=1, **FEW).fit(X, y)
    assert written == [tmp_path / NAME] * 6


# --- what is refused --------------------------------------------------------------------------------------------


def begin(model, run, monkeypatch, *data, **more):
    interrupt(keeping(model, run), 2, monkeypatch, *data, **more)
    return (run / NAME).read_bytes()


@pytest.mark.parametrize(
    "model", [CLASSIFIERS[0], CLASSIFIERS[4], CLASSIFIERS[5], CLASSIFIERS[7]], ids=lambda m: type(m).__name__
)
def test_another_table_parameter_or_version_is_refused(model, tmp_path, monkeypatch):
    X, y = make_rows()
    run = tmp_path / "run"
    content = begin(model, run, monkeypatch, X, y)
    refuse = [
        (keeping(model, run).set_params(n_estimators=7), (X, y), {}, "n_estimators=7, and was 6"),
        (keeping(model, run).set_params(random_state=1), (X, y), {}, "random_state=1, and was 0"),
        (keeping(model, run), make_rows(seed=1), {}, "X or y differs"),
        (keeping(model, run), (X, np.roll(y, 1)), {}, "X or y differs"),
        (keeping(model, run), (X, y), {"sample_weight": np.arange(len(y)) + 1.0}, "sample_weight"),
        (spinney.ExtraTreesClassifier(checkpoint=run, **FEW), (X, y), {}, f"one of {type(model).__name__}"),
    ]
    if hasattr(model, "oob_score"):
        refuse.append((keeping(model, run), (X, y), {"groups": np.arange(len(y)) // 2}, "groups differs"))
    for other, data, more, message in refuse:
        with pytest.raises(ValueError, match=f"another fit: .*{re.escape(message)}.* remove .*{NAME} to begin anew"):
            other.fit(*data, **more)
    monkeypatch.setattr(spinney, "__version__", "99.0")
    with pytest.raises(ValueError, match=r"of Spinney .*, and this is 99\.0"):
        keeping(model, run).fit(X, y)
    assert (run / NAME).read_bytes() == content  # refusals leave it alone


@pytest.mark.parametrize("model", [CLASSIFIERS[6], CLASSIFIERS[7]], ids=lambda m: type(m).__name__)
def test_other_rows_to_evaluate_on_are_refused(model, tmp_path, monkeypatch):
    X, y = make_rows()
    X_val, y_val = make_rows(seed=1)
    begin(model, tmp_path / "run", monkeypatch, X, y, X_val=X_val, y_val=y_val)
    with pytest.raises(ValueError, match=r"another fit: .*(y_val|evaluate on)"):
        keeping(model, tmp_path / "run").fit(X, y, X_val=X_val, y_val=np.roll(y_val, 1))


def test_threads_and_words_make_no_difference(tmp_path, monkeypatch):
    X, y = make_rows()
    model = CLASSIFIERS[3]
    begin(model, tmp_path / "run", monkeypatch, X, y)
    again = keeping(model, tmp_path / "run").set_params(n_jobs=2, verbose=0).fit(X, y)
    expected = model_bytes(clone(model).set_params(n_jobs=2).fit(X, y), tmp_path)
    assert model_bytes(again, tmp_path) == expected


@pytest.mark.parametrize("how", ["cut", "bit", "empty", "other", "model"])
def test_a_damaged_checkpoint_is_told_in_one_line(how, tmp_path, monkeypatch):
    X, y = make_rows()
    run = tmp_path / "run"
    content = begin(CLASSIFIERS[0], run, monkeypatch, X, y)
    damaged = {
        "cut": content[:-100],
        "bit": content[:-50] + bytes([content[-50] ^ 1]) + content[-49:],
        "empty": b"",
        "other": b"not a checkpoint at all",
        "model": model_bytes(spinney.CARTClassifier().fit(X, y), tmp_path),
    }
    (run / NAME).write_bytes(damaged[how])
    with pytest.raises(spinney.BrokenFileError) as caught:
        keeping(CLASSIFIERS[0], run).fit(X, y)
    text = str(caught.value)
    assert "\n" not in text
    assert str(run / NAME) in text
    assert "Remove the file to begin anew" in text


def test_trees_of_another_table_are_refused_though_their_file_is_whole(tmp_path, monkeypatch):
    X, y = make_rows()
    run = tmp_path / "run"
    begin(CLASSIFIERS[3], run, monkeypatch, X, y)
    mine = (run / NAME).read_bytes()
    kept = checkpoints.open_state(checkpoints.read(run / NAME, is_mapped=False))
    narrow = spinney.ExtraTreesClassifier(**FEW).fit(X.select(["number"]), y).forest_
    saved = checkpoints.Saved(narrow, {"leaf_rows": []})
    checkpoints.write(run / NAME, *Checkpoint(run, kept["about"], kept["seed"]).pack(saved))
    assert (run / NAME).read_bytes() != mine
    with pytest.raises(spinney.BrokenFileError, match="the trees are of another table"):
        keeping(CLASSIFIERS[3], run).fit(X, y)


def test_what_cannot_be_kept_is_refused(tmp_path):
    X, y = make_rows()
    numbers = X.select(["number", "whole"])
    with pytest.raises(ValueError, match="checkpoint keeps trees, and members of this BaggingClassifier are Logistic"):
        spinney.BaggingClassifier(LogisticRegression(), checkpoint=tmp_path).fit(numbers, y)
    with pytest.raises(ValueError, match="checkpoint keeps trees, and members of this AdaBoostClassifier are Logistic"):
        spinney.AdaBoostClassifier(LogisticRegression(), checkpoint=tmp_path).fit(numbers, y)
    with pytest.raises(ValueError, match="checkpoint keeps trees, and init=LogisticRegression"):
        spinney.GradientBoostingClassifier(init=LogisticRegression(), checkpoint=tmp_path).fit(numbers, y)
    forest = spinney.RandomForestClassifier(warm_start=True, checkpoint=tmp_path, **FEW).fit(X, y)
    with pytest.raises(ValueError, match="warm_start goes on with the model of the last fit, checkpoint with a folder"):
        forest.set_params(n_estimators=8).fit(X, y)
    (tmp_path / "file").write_text("here")
    with pytest.raises(ValueError, match="is a file: give a folder"):
        spinney.RandomForestClassifier(checkpoint=tmp_path / "file", **FEW).fit(X, y)


def test_a_disk_that_is_full_is_told_and_the_fit_goes_on(tmp_path, monkeypatch):
    X, y = make_rows()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "write", fail)
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    with pytest.warns(UserWarning, match="no checkpoint is written, and the fit goes on: .*no space left to write"):
        model = spinney.ExtraTreesClassifier(checkpoint=tmp_path / "run", **FEW).fit(X, y)
    assert len(model) == 6


def test_files_and_copies_do_not_know_the_folder_of_a_checkpoint(tmp_path):
    X, y = make_rows()
    model = spinney.ExtraTreesClassifier(checkpoint=str(tmp_path / "run"), **FEW).fit(X, y)
    assert b"checkpoint" not in model_bytes(model, tmp_path)
    assert spinney.load_model(tmp_path / "model.spn").checkpoint is None
    assert clone(model).checkpoint == str(tmp_path / "run")


# --- processes that are killed ----------------------------------------------------------------------------------

CHILD = """
    import sys
    from pathlib import Path
    import spinney
    from spinney.estimators import checkpoints
    from disk_tables import make_table, split
    checkpoints.SECONDS, checkpoints.SHARE = 0.0, 0
    name, folder = sys.argv[1], Path(sys.argv[2])
    X, y = split(make_table(3000))
    model = getattr(spinney, name)(n_estimators=60, random_state=0, checkpoint=folder / "run")
    print("fitting", flush=True)
    model.fit(X, y)
    model.save_model(folder / "child.spn")
"""
MOST_KILLED = 4  # processes, before one is left to end
KILLED = ["RandomForestClassifier", "GradientBoostingClassifier", "AdaBoostClassifier"]


def kill_until_done(name, folder, rng):
    """Run a fit in processes that are killed at random moments until one ends; how many were killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for n_killed in range(MOST_KILLED + 1):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), name, str(folder)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout.readline() == "fitting\n", process.stderr.read()
            time.sleep(rng.exponential(0.5))
            if n_killed < MOST_KILLED:
                process.kill()
            errors = process.communicate()[1]
        assert process.returncode in {0, -signal.SIGKILL}, errors
        if process.returncode == 0:
            return n_killed
        left = {one for one in list_names(folder) if "child.spn" not in one}  # it may have been at saving the model
        assert left <= {"run", "model.spn"}
        names = list_names(folder / "run") if (folder / "run").exists() else []
        assert all(name == NAME or name.endswith(".part") for name in names)
    raise AssertionError("no process has ended")


def check_killed(name, folder, seed):
    X, y = split(make_table(3000))
    expected = model_bytes(getattr(spinney, name)(n_estimators=60, random_state=0).fit(X, y), folder)
    kill_until_done(name, folder, np.random.default_rng(seed))
    assert (folder / "child.spn").read_bytes() == expected
    assert list_names(folder) == ["child.spn", "model.spn"]


@pytest.mark.compiled(reason="processes of their own")
@pytest.mark.parametrize("name", KILLED)
def test_a_process_that_was_killed_goes_on(name, tmp_path):
    check_killed(name, tmp_path, 0)


@pytest.mark.slow
@pytest.mark.compiled(reason="processes of their own")
@pytest.mark.parametrize("seed", range(20))
def test_processes_that_are_killed_at_random_moments_go_on(seed, tmp_path):
    check_killed(KILLED[seed % 3], tmp_path, seed)
