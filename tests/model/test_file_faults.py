"""Section G of the faults, by number, through `save_model`, `load_model` and `load_predictor`.

What the container refuses by itself is in test_container.py, forests that lead astray in test_hostile_files.py.
"""

import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest

import saved_models
import spinney
from damaged_files import peak_of, rewritten, sealed
from spinney import load_model, load_predictor
from spinney.model import container
from spinney.model.container import DTYPES, BrokenFileError, Place, check_places, pack, unpack

LOADERS = (load_model, load_predictor)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module", params=["cart surrogates", "cart linear", "c45 smoothed", "boosting"])
def whole(request, folder):
    """The bytes of a small model file."""
    path = folder / "whole.spn"
    saved_models.fit(request.param)[0].save_model(path)
    return path.read_bytes()


def assert_refused(path, kind=BrokenFileError, match=None):
    """By both."""
    for load in LOADERS:
        with pytest.raises(kind, match=match):
            load(path)


def test_fault_95_a_model_that_was_cut_off(whole, folder):
    path = folder / "cut.spn"
    for n in {*range(0, len(whole), 37), *range(64), *range(len(whole) - 64, len(whole))}:
        path.write_bytes(whole[:n])
        with pytest.raises(BrokenFileError):
            load_model(path)


def test_fault_96_a_flipped_bit_of_a_model(whole, folder):
    path = folder / "flipped.spn"
    for at in range(0, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
        with pytest.raises(BrokenFileError):
            load_model(path)


# --- 97: the hash is right ------------------------------------------------------------------------------------------


def at_inner(arrays, name, change, kind=None):
    """Change an entry of the first inner node, or of the first of a kind."""
    test = arrays["tree.test"]
    at = int(np.flatnonzero((test & 3) == kind if kind else (test & 3) > 0)[0])
    arrays[name][at] = change(arrays[name][at])


def at_leaf(arrays, name, change):
    at = int(np.flatnonzero((arrays["tree.test"] & 3) == 0)[0])
    arrays[name][at] = change(arrays[name][at])


TREE_FAULTS = {
    "child out of range": lambda a: at_inner(a, "tree.first_child", lambda _: 2**30),
    "negative child": lambda a: at_inner(a, "tree.first_child", lambda _: -5),
    "cycle": lambda a: at_inner(a, "tree.first_child", lambda _: 0),
    "two parents": lambda a: at_inner(a, "tree.first_child", lambda child: child + 2),
    "feature out of range": lambda a: at_inner(a, "tree.test", lambda test: test | (99 << 4)),
    "a leaf with children": lambda a: at_leaf(a, "tree.first_child", lambda _: 1),
    "NaN threshold": lambda a: at_inner(a, "tree.threshold", lambda _: np.nan, 1),
    "bitset offset out of range": lambda a: at_inner(a, "tree.threshold", lambda _: 1e6, 2),
    "bitset offset before the first": lambda a: at_inner(a, "tree.threshold", lambda _: -1.0, 2),
    "a class that is none": lambda a: at_leaf(a, "tree.threshold", lambda _: 7.0),
    "a distribution that is none": lambda a: at_leaf(a, "tree.threshold", lambda _: -99.0),
    "an infinite leaf": lambda a: at_leaf(a, "tree.threshold", lambda _: np.inf),
    "distributions of another width": lambda a: a.update({"tree.distributions": np.ones((4, 3))}),
    "a negative distribution": lambda a: a["tree.distributions"].__imul__(-1.0),
    "negative weights": lambda a: a["tree.weight"].__imul__(-1.0),
    "weights that do not add up": lambda a: at_inner(a, "tree.weight", lambda weight: weight * 2),
    "rows that do not add up": lambda a: at_inner(a, "tree.n_rows", lambda n: n + 1),
    "a negative impurity": lambda a: at_inner(a, "tree.impurity", lambda _: -1.0),
    "a node less": lambda a: a.update({"tree.weight": a["tree.weight"][:-1]}),
    "no nodes": lambda a: a.update({name: a[name][:0] for name in a if a[name].shape == a["tree.test"].shape}),
    "a negative number of levels": lambda a: a["tree.n_levels"].__isub__(9),
    "a surrogate beyond the table": lambda a: a["tree.surrogates.test"].__ior__(99 << 4),
    "surrogates out of order": lambda a: a["tree.surrogates.first"].__setitem__(1, 2**30),
    "a NaN surrogate": lambda a: a["tree.surrogates.threshold"].fill(np.nan),
}


@pytest.fixture(scope="module")
def tree_file(folder):
    path = folder / "tree.spn"
    model, _ = saved_models.fit("cart surrogates")
    model.save_model(path)
    return path


@pytest.mark.parametrize("name", TREE_FAULTS)
def test_fault_97_a_tree_that_leads_astray(name, tree_file):
    load_model(rewritten(tree_file))
    assert_refused(rewritten(tree_file, TREE_FAULTS[name]))


LINEAR_FAULTS = {
    "a term beyond the table": lambda a: a["tree.linear.feature"].fill(99),
    "terms out of order": lambda a: a["tree.linear.first"].__setitem__(1, 2**30),
    "an infinite coefficient": lambda a: a["tree.linear.coefficient"].fill(np.inf),
    "a NaN to fill in": lambda a: a["tree.linear.fill"].fill(np.nan),
}


@pytest.mark.parametrize("name", LINEAR_FAULTS)
def test_fault_97_linear_leaves_that_lead_astray(name, folder):
    path = folder / "linear.spn"
    saved_models.fit("cart linear")[0].save_model(path)
    assert_refused(rewritten(path, LINEAR_FAULTS[name]))


def set_part(*keys, value):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


JSON_FAULTS = {
    "wrong depth": set_part("predictor", "tree", "depth", value=3),  # files say none: it is not overlooked
    "other trees than the summary says": set_part("summary", "n_trees", value=2),
    "other nodes than the summary says": set_part("summary", "n_nodes", value=10**9),
    "other classes than the summary says": set_part("summary", "n_classes", value=9),
    "a class that is none": set_part("predictor", "is", value="os.system"),
    "a tree that is a text": set_part("predictor", "tree", value="x"),
    "smoothing below nothing": set_part("predictor", "smoothing", value=-1.0),
}


@pytest.mark.parametrize("name", JSON_FAULTS)
def test_fault_97_json_that_does_not_fit(name, tree_file):
    assert_refused(rewritten(tree_file, change_json=JSON_FAULTS[name]))


def test_fault_97_a_method_that_is_none(tree_file):
    """Which `load_predictor` does not ask for."""
    with pytest.raises(BrokenFileError, match="not the SVC"):
        load_model(rewritten(tree_file, change_json=set_part("method", value="SVC")))


def test_fault_97_classes_and_weights_that_do_not_fit(folder):
    path = folder / "fit.spn"
    saved_models.fit("adaboost classes")[0].save_model(path)
    assert_refused(rewritten(path, lambda arrays: arrays.update(weights=arrays["weights"][:-1])), match="weights")
    assert_refused(rewritten(path, lambda arrays: arrays["weights"].fill(np.nan)), match="weights")

    def fewer(content):
        labels = content["predictor"]["classes"]
        labels["items"], labels["shape"] = labels["items"][:-1], [len(labels["items"]) - 1]

    assert_refused(rewritten(path, change_json=fewer), match="classes")
    saved_models.fit("boosting classes")[0].save_model(path)
    for change in (
        set_part("predictor", "n_rounds", value=10**6),
        set_part("predictor", "n_rounds", value=-1),
        set_part("predictor", "link", value="logistic"),
        set_part("predictor", "link", value="eval"),
        set_part("predictor", "exponent", value=5000),
    ):
        assert_refused(rewritten(path, change_json=change))
    assert_refused(rewritten(path, lambda arrays: arrays["start"].fill(np.inf)), match="start")


def test_fault_97_a_chain_is_as_deep_as_it_likes(folder):
    """There is no depth in a file that could be wrong: children come after their parents, and walks are loops."""
    X, y = np.arange(600.0)[:, None], 2.0 ** np.arange(600)
    model = spinney.CARTRegressor().fit(X, y)
    model.save_model(folder / "chain.spn")
    loaded = load_predictor(folder / "chain.spn")
    assert loaded.tree.depth == model.tree_.depth > 300
    np.testing.assert_array_equal(loaded.predict(X), y)


# --- 98 and 99: the header ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update({f"a{i}": next(iter(places(header).values())) for i in range(10**5)}),
        lambda header: places(header)["start"].update(shape=[2**33, 2**33]),
        lambda header: places(header)["start"].update(shape=[-1]),
        lambda header: places(header)["start"].update(data_offsets=[0, 2**63]),
    ],
    ids=["100,000 arrays", "product beyond 64 bits", "negative shape", "beyond the file"],
)
def test_fault_98_a_header_that_promises_too_much(change, folder):
    path = folder / "header.spn"
    saved_models.fit("boosting")[0].save_model(path)
    whole = path.read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:end])
    header["__metadata__"]["sha256"] = "0" * 64
    path.write_bytes(sealed(header, whole[end:]))
    load_model(path)
    change(header)
    path.write_bytes(sealed(header, whole[end:]))
    assert_refused(path)
    assert peak_of(lambda: load_model(path)) < 4 * path.stat().st_size + 300_000


def places(header):
    return {name: entry for name, entry in header.items() if name != "__metadata__"}


def test_fault_99_another_format_is_no_model(tree_file):
    for text in ({"format": "other"}, {"format": ""}, {"more": "x"}):
        assert_refused(rewritten(tree_file, **text), match=r"no model of Spinney|texts must be")


# --- 100 to 102: no model at all ------------------------------------------------------------------------------------


class Spy:
    """Leaves a trace where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_fault_100_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "model.spn"
    model, _ = saved_models.fit("forest")
    for content in (model, Spy(tmp_path / "trace"), {"model": model}):
        for protocol in (0, 2, 4, 5):
            path.write_bytes(pickle.dumps(content, protocol))
            assert_refused(path)
        joblib.dump(content, path)
        assert_refused(path)
        joblib.dump(content, path, compress=("gzip", 3))
        assert_refused(path)
    assert not (tmp_path / "trace").exists()
    pickle.loads(pickle.dumps(Spy(tmp_path / "trace")))  # it would have
    assert (tmp_path / "trace").exists()


def test_fault_101_a_bomb_is_not_opened(tmp_path):
    path = tmp_path / "model.spn"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("model.spn", bytes(50_000_000))
    bombs = [path.read_bytes(), gzip.compress(bytes(50_000_000))]
    np.savez_compressed(tmp_path / "arrays.npz", hot=np.zeros(5_000_000))
    bombs.append((tmp_path / "arrays.npz").read_bytes())
    for bomb in bombs:
        path.write_bytes(bomb)
        assert_refused(path)
        assert peak_of(lambda: load_model(path)) < 4 * len(bomb) + 200_000


def test_fault_102_what_is_no_file_of_ours(tmp_path):
    for content in (b"", b"x", bytes(8), bytes(64), b"{}", b"\xff" * 100):
        path = tmp_path / "model.spn"
        path.write_bytes(content)
        assert_refused(path)
    assert_refused(tmp_path, IsADirectoryError)
    assert_refused(tmp_path / "missing.spn", FileNotFoundError)
    assert_refused("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    assert_refused(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs users")
def test_fault_102_a_file_of_somebody_else():
    """As a user who may not read it: root may read everything."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.spn"
        saved_models.fit("cart numbers")[0].save_model(path)
        path.chmod(0)
        Path(name).chmod(0o755)
        before = os.geteuid()
        try:
            if before == 0:
                os.seteuid(65534)
            assert_refused(path, PermissionError)
        finally:
            os.seteuid(before)


# --- 103 and 104: saving ----------------------------------------------------------------------------------------------


def test_fault_103_a_full_disk_leaves_the_old_model(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "model.spn"
    old, X = saved_models.fit("cart numbers")
    old.save_model(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, limits[1]))
        with pytest.raises(OSError, match=r"model\.spn|large"):
            saved_models.fit("forest")[0].save_model(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    np.testing.assert_array_equal(load_model(path).predict(X), old.predict(X))
    assert [child.name for child in tmp_path.iterdir()] == ["model.spn"]


def test_fault_103_a_killed_save_leaves_the_old_model(tmp_path):
    path = tmp_path / "model.spn"
    old, X = saved_models.fit("cart numbers")
    old.save_model(path)
    code = """
        import os, signal, sys
        import spinney
        from spinney import _files

        model = spinney.load_model(sys.argv[1])
        _files.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        model.save_model(sys.argv[1])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    np.testing.assert_array_equal(load_model(path).predict(X), old.predict(X))


def test_fault_104_two_who_save_leave_one_whole_model(tmp_path):
    path = tmp_path / "model.spn"
    models = [saved_models.fit(name)[0] for name in ("cart numbers", "boosting numbers")]
    models[0].save_model(path)

    def save(model):
        for _ in range(20):
            model.save_model(path)

    threads = [threading.Thread(target=save, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    kinds = set()
    while any(thread.is_alive() for thread in threads):
        kinds.add(type(load_model(path)))
    assert kinds <= {type(model) for model in models}
    assert [child.name for child in tmp_path.iterdir()] == ["model.spn"]


# --- 105: large models ------------------------------------------------------------------------------------------------


def test_fault_105_places_beyond_two_gigabytes_are_exact():
    """More than 2**31 nodes: 64 GB, of which nothing is made here but the sums."""
    n = 2**31 + 5
    hot, weight = 16 * n, 8 * n
    found = {
        "hot": Place(0, hot, DTYPES["U64"], (n, 2)),
        "weight": Place(hot, hot + weight, DTYPES["F64"], (n,)),
    }
    check_places(found, hot + weight)
    for wrong in (n - 2**31, n - 2**32, n + 2**31):  # as 32 bits would have it
        with pytest.raises(BrokenFileError):
            check_places({**found, "weight": found["weight"]._replace(shape=(wrong,))}, hot + weight)


def test_fault_105_what_is_too_large_is_said_before_it_is_made(monkeypatch, tmp_path):
    model, X = saved_models.fit("forest numbers")
    monkeypatch.setattr(container, "MOST_HEADER_BYTES", 1000)
    with pytest.raises(ValueError, match="names and settings of the model take"):
        model.save_model(tmp_path / "model.spn")
    assert list(tmp_path.iterdir()) == []
    for layout in ("packed_forest", "packed_steps"):
        monkeypatch.setattr(f"spinney.model.{layout}.MOST_WORDS", 1000)
    predictor = model.predictor()
    with pytest.raises(ValueError, match="too large for one array; predict many rows at once"):
        predictor(predictor.encode(X)[0])
    np.testing.assert_array_equal(predictor.predict(X), model.predict(X))


@pytest.mark.slow
def test_fault_105_a_model_of_more_than_two_gigabytes(tmp_path):
    """The same trees again and again: answers must be those of the few."""
    X = np.random.default_rng(0).normal(size=(3000, 4))
    model = spinney.RandomForestRegressor(n_estimators=4, random_state=0).fit(X, X[:, 0] * X[:, 1])
    few = model.forest_
    n_times = -(-(2**31 + 2**27) // (32 * few.n_nodes))
    shifts = np.repeat(np.arange(n_times) * few.n_nodes, len(few))
    model.forest_ = replace(
        few, hot=np.tile(few.hot, (n_times, 1)), n_rows=np.tile(few.n_rows, n_times),
        weight=np.tile(few.weight, n_times), impurity=np.tile(few.impurity, n_times),
        first_node=np.append(np.tile(few.first_node[:-1], n_times) + shifts, n_times * few.n_nodes),
        first_word=np.zeros(n_times * len(few) + 1, np.int64), first_mixed=np.zeros(n_times * len(few) + 1, np.int64),
    )  # fmt: skip
    path = tmp_path / "model.spn"
    model.save_model(path)
    del model
    assert path.stat().st_size > 2**31
    predictor = load_predictor(path)
    path.unlink()
    said = predictor.predict_trees(X[:3])
    few_said = np.array([tree.threshold[tree.n_nodes - 1] for tree in few])  # of their last leaves
    last = predictor.forest.first_node[-len(few) - 1 :]
    assert last[-1] == predictor.forest.n_nodes > 2**31 / 33
    np.testing.assert_array_equal(predictor.forest.hot[last[1:] - 1, 0].view(np.float64), few_said)
    np.testing.assert_array_equal(said[-len(few) :], said[: len(few)])


# --- 106 and 107: other places ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a model.spn", "größe-模型.spn", "no suffix", "x" * 200])
def test_fault_106_paths_of_models(name, tmp_path, monkeypatch):
    model, X = saved_models.fit("cart numbers")
    monkeypatch.chdir(tmp_path)
    link = tmp_path / "link.spn"
    link.symlink_to(tmp_path / name)
    for path in (tmp_path / name, str(tmp_path / name), name, link):
        model.save_model(path)
        for load in LOADERS:
            np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
    assert link.is_symlink()


def test_fault_107_bytes_are_those_of_every_machine():
    """Written least byte first, and read as numbers of this machine, whatever its order."""
    values = {"F64": 1.5, "F32": -2.5, "U64": 2**40 + 7, "I64": -5, "U32": 9, "I32": -9, "U16": 513, "I16": -2}
    for order in ("<", ">", "="):
        arrays = {name: np.array([value], DTYPES[name].newbyteorder(order)) for name, value in values.items()}
        header, pieces = pack(arrays, {})
        whole = header + b"".join(pieces)
        for name, array in unpack(whole).arrays.items():
            assert array.dtype.isnative
            assert array.tolist() == [values[name]]
        begin = 8 + int.from_bytes(whole[:8], "little")
        layout = json.loads(whole[8:begin])
        first, last = layout["U64"]["data_offsets"]
        assert int.from_bytes(whole[begin + first : begin + last], "little") == values["U64"]


def test_fault_107_a_machine_of_the_other_byte_order(monkeypatch, tmp_path):
    """A file whose order is not ours is to us what our files are to such a machine."""
    model, X = saved_models.fit("forest")
    model.save_model(tmp_path / "here.spn")
    turned = {name: dtype.newbyteorder(">") for name, dtype in DTYPES.items()}
    monkeypatch.setattr(container, "NAMES", {dtype: name for name, dtype in turned.items()})
    monkeypatch.setattr(container, "DTYPES", turned)
    monkeypatch.setattr(container, "ORDER", ">")
    model.save_model(tmp_path / "there.spn")
    assert (tmp_path / "there.spn").read_bytes() != (tmp_path / "here.spn").read_bytes()
    there = load_model(tmp_path / "there.spn")
    assert there.forest_.hot.dtype.isnative
    assert there.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
