"""A store is a stranger's file: what it says is checked, what is damaged is refused in one line, disks may be full."""

import errno
import gc
import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV

import spinney
from disk_tables import make_table, model_bytes, split, write_parts
from spinney import BrokenFileError
from spinney.model.container import dump
from spinney.scale import block_files, code_shelf, coded_blocks, column_writing
from spinney.scale.layout import read_layout
from spinney.scale.memory import read_bytes, show_bytes
from spinney.scale.scan import Scan
from spinney.table import coding

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")
MODEL = spinney.GradientBoostingClassifier(n_estimators=2, random_state=0)


@pytest.fixture
def folder(tmp_path):
    """A store of 9,000 rows in three blocks."""
    store = Scan(make_table(9000), "y", weight="w", groups="g", block_rows=4096).store(tmp_path / "t.codes")
    store.close()
    return tmp_path / "t.codes"


def leftovers(path):
    return [one.name for one in path.rglob("*") if ".spinney" in one.name or one.name.startswith("spinney-")]


def test_a_store_tells_what_it_is(folder):
    store = spinney.scan(folder)
    assert repr(store) == f"<store {str(folder)!r}: 9,000 rows, 7 features, target 'y'>"
    assert store.feature_names == ("number", "whole", "holes", "short", "flag", "text", "day")
    assert sorted(path.name for path in folder.iterdir()) == ["schema.json", "values.bin", "values.bin.sha256"]
    assert store.read_weight().tolist() == make_table(9000)["w"].to_pylist()
    assert store.read_groups().tolist() == make_table(9000)["g"].to_pylist()


def test_a_scan_tells_what_it_is_and_reads_nothing(tmp_path):
    scanned = spinney.scan(str(tmp_path / "none" / "*.parquet"), "y")
    assert repr(scanned) == f"<scan of {str(tmp_path / 'none' / '*.parquet')!r}, target 'y'>"
    with pytest.raises(FileNotFoundError, match="no file matches"):
        MODEL.fit(scanned)


def test_a_store_knows_its_columns(folder):
    with pytest.raises(ValueError, match="is a store, which has its columns: leave out target"):
        spinney.scan(folder, "y")
    with pytest.raises(FileExistsError, match="is there already"):
        spinney.scan(make_table(20), "y").store(folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "z"}, "target='z' is not a column of the Table. Its columns: number, whole"),
        ({"target": "numbr"}, "Did you mean 'number'"),
        ({"target": "y", "weight": "y"}, "column 'y' is asked for twice"),
        ({"target": "y", "drop": ["y"]}, "column 'y' is asked for twice"),
        ({"target": "y", "drop": "oops"}, "drop='oops' is not a column"),
        (
            {"target": ["y", "number"]},
            "is a list: a scan has one target. Models of several outputs take rows in memory",
        ),
        ({"target": "day"}, "target 'day' holds dates"),
        ({"target": "y", "weight": "text"}, "column 'text' holds no numbers"),
    ],
)
def test_columns_of_a_scan_must_be_there(arguments, message):
    with pytest.raises(ValueError, match=message):
        spinney.scan(make_table(20), **arguments).read()


def test_targets_and_groups_are_complete(tmp_path):
    table = pa.table({"x": range(5), "y": ["a", "b", None, "a", "b"], "g": [1, 2, 3, None, 4], "n": [1, 2, 3, 4, None]})
    with pytest.raises(ValueError, match=r"Input y contains NaN\. The first is in row 2; leave out such rows"):
        Scan(table, "y").read()
    with pytest.raises(ValueError, match=r"Input y contains NaN\. The first is in row 4"):
        Scan(table, "n").read()
    with pytest.raises(ValueError, match="groups 'g' must not be missing; row 3 is"):
        Scan(table, "x", groups="g").read()
    with pytest.raises(ValueError, match="no column left to learn from"):
        Scan(table.select(["y"]), "y").read()
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("n_columns", [300, 3000])
def test_a_store_may_be_wide(n_columns, tmp_path):
    columns = {f"x{j}": [0.5 * j, 1.0, None] for j in range(n_columns)}
    table = pa.table({**columns, "y": [1.0, 2.0, 3.0]})
    scanned = Scan(table, "y").store(tmp_path / "t.codes")
    assert len(scanned.feature_names) == n_columns
    X, y = split(table, others=())
    model = spinney.CARTRegressor()
    assert model_bytes(model.fit(scanned), tmp_path) == model_bytes(model.fit(X, y), tmp_path)


def test_integers_that_are_one_number_in_different_blocks_are_refused():
    whole = np.arange(9000)
    whole[[5, 8999]] = 2**53, 2**53 + 1
    table = pa.table({"x": whole, "y": np.arange(9000) % 2})
    with pytest.raises(
        ValueError, match="Column 'x' holds 9007199254740992 and 9007199254740993, which are one number"
    ):
        MODEL.fit(Scan(table, "y", block_rows=4096))
    whole[8999] = 2**53 + 2
    with_hole = pa.table({"x": pa.array(whole, mask=whole == 7), "y": np.arange(9000) % 2})
    assert MODEL.fit(Scan(with_hole, "y", block_rows=4096)).n_features_in_ == 1


def test_too_many_categories_are_refused():
    table = pa.table({"x": [f"{i}" for i in range(66_000)], "y": range(66_000)})
    with pytest.raises(ValueError, match=r"Column 'x' has more than 65,535 categories.*identifier"):
        Scan(table, "y").read()


@given(at=st.integers(0, 2**40), bit=st.integers(0, 7), name=st.sampled_from(["schema.json", "values.bin", "both"]))
@settings(max_examples=60)
def test_a_changed_bit_is_noticed(at, bit, name, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "t.codes"
    Scan(make_table(300), "y", weight="w", groups="g").store(path).close()
    victim = path / ("values.bin.sha256" if name == "both" else name)
    data = bytearray(victim.read_bytes())
    data[at % len(data)] ^= 1 << bit
    victim.write_bytes(data)
    with pytest.raises(BrokenFileError) as caught:
        MODEL.fit(spinney.scan(path))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_was_cut_off_or_is_gone_is_refused(folder):
    os.truncate(folder / "values.bin", 1000)
    with pytest.raises(BrokenFileError, match=r"values\.bin has 1000 bytes instead of \d+: it was cut off"):
        spinney.scan(folder)
    (folder / "values.bin").unlink()
    with pytest.raises(BrokenFileError, match=r"values\.bin is missing: the store is not whole"):
        spinney.scan(folder)
    (folder / "schema.json").unlink()
    with pytest.raises(FileNotFoundError):
        spinney.scan(folder).read()
    with pytest.raises(BrokenFileError, match=r"has no schema\.json"):
        read_layout(folder)


def edit(folder, change):
    """Change what a store says of itself, with a hash that goes with it."""
    import hashlib

    path = folder / "schema.json"
    content = json.loads(path.read_text())["store"]
    change(content)
    path.write_bytes(dump({"sha256": hashlib.sha256(dump(content)).hexdigest(), "store": content}))


def column(name):
    return lambda content: next(one for one in content["columns"] if one["name"] == name)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(n_rows=9001),
        lambda c: c.update(n_rows=0),
        lambda c: c.update(n_rows=2**40),
        lambda c: c.update(n_rows="9000"),
        lambda c: c.update(block_rows=4097),
        lambda c: c.update(block_rows=1),
        lambda c: c.update(version=2),
        lambda c: c.update(digest="0" * 64),
        lambda c: c.update(digest="no"),
        lambda c: c.update(columns=[]),
        lambda c: c.update(columns=[7]),
        lambda c: c.update(more=1),
        lambda c: c.update(versions=[]),
        lambda c: c["columns"].pop(),
        lambda c: c["columns"].append(dict(c["columns"][0], name="again")),
        lambda c: c["columns"].append(dict(c["columns"][0])),
        lambda c: column("number")(c).update(dtype="<f4"),
        lambda c: column("number")(c).update(dtype="|O8"),
        lambda c: column("number")(c).update(dtype="<i4", kind="categories"),
        lambda c: column("number")(c).update(values=["a"]),
        lambda c: column("number")(c).update(name=3),
        lambda c: column("number")(c).update(role="weight"),
        lambda c: column("text")(c).update(values=["red"]),
        lambda c: column("text")(c).update(values=["a", "b", "c", 1]),
        lambda c: column("text")(c).update(values=["a", "a", "b", "c"]),
        lambda c: column("text")(c).update(unused=[7]),
        lambda c: column("text")(c).update(values=[]),
        lambda c: column("y")(c).update(values=["no"]),
        lambda c: column("flag")(c).update(role="nothing"),
    ],
)
def test_a_store_that_contradicts_itself_is_refused(change, folder):
    edit(folder, change)
    with pytest.raises(BrokenFileError) as caught:
        MODEL.fit(spinney.scan(folder))
    assert "\n" not in str(caught.value)


def test_codes_that_stand_for_nothing_are_refused(folder):
    expected = model_bytes(
        spinney.RandomForestClassifier(n_estimators=2, random_state=0).fit(spinney.scan(folder)), folder
    )
    for model, name in ((MODEL, "bins"), (spinney.RandomForestClassifier(n_estimators=2, random_state=0), "codes")):
        model.fit(spinney.scan(folder))
        (kept,) = (folder / "codes").glob(f"{name}-*")
        rows = np.fromfile(kept / "rows.bin", np.uint8)
        about = spinney.model.container.read(kept / "about.spn", is_mapped=False)
        stride = len(rows) // 9000
        rows[:stride] = 255
        (kept / "rows.bin").unlink()
        (kept / "rows.bin.sha256").unlink()
        writer = block_files.BlockWriter(kept / "rows.bin")
        for lo in range(0, 9000, 4096):
            writer.write(rows[lo * stride : (lo + 4096) * stride])
        spinney.model.container.write(kept / "about.spn", about.arrays, {**about.text, "digest": writer.close()})
        with pytest.raises(BrokenFileError, match="block 0 has a code that stands for nothing"):
            model.fit(spinney.scan(folder))
        for one in kept.iterdir():
            one.unlink()
        with pytest.raises(BrokenFileError, match="it is made anew"):
            model.fit(spinney.scan(folder))
        kept.rmdir()
    again = spinney.RandomForestClassifier(n_estimators=2, random_state=0).fit(spinney.scan(folder))
    assert model_bytes(again, folder) == expected


def test_codes_of_wider_rows_in_an_old_store_are_made_anew(tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.integers(0, 9, 500).astype(np.float32) for i in range(41)}
    Scan(pa.table({**columns, "y": rng.integers(0, 2, 500)}), "y").store(tmp_path / "t.codes").close()
    model = spinney.RandomForestClassifier(n_estimators=2, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        for module in (coding, coded_blocks, code_shelf):
            patch.setattr(module, "row_stride", lambda n_features: -(-n_features // 32) * 32)
        expected = model_bytes(model.fit(spinney.scan(tmp_path / "t.codes")), tmp_path)
    assert model_bytes(model.fit(spinney.scan(tmp_path / "t.codes")), tmp_path) == expected
    made = (tmp_path / "t.codes" / "codes").glob("codes-*/rows.bin")
    assert sorted(rows.stat().st_size for rows in made) == [500 * 88, 500 * 128]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_cannot_be_written_to_is_read_by_the_permissions(folder, tmp_path):
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    MODEL.fit(spinney.scan(folder))
    with pytest.raises(OSError, match="cannot be written to"):
        spinney.scan(make_table(20), "y").store(folder / "inside.codes")
    folder.chmod(stat.S_IRWXU)
    assert leftovers(tmp_path) == []


def test_a_store_that_cannot_be_written_to_is_read(folder, tmp_path, monkeypatch):
    expected = model_bytes(MODEL.fit(spinney.scan(folder)), tmp_path)

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    for one in (folder / "codes").glob("*/*"):
        one.unlink()
    for one in (folder / "codes").iterdir():
        one.rmdir()
    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    assert model_bytes(MODEL.fit(spinney.scan(folder)), tmp_path) == expected
    with pytest.raises(OSError, match="cannot be written to: choose a disk"):
        spinney.scan(make_table(20), "y").store(tmp_path / "u.codes")


@pytest.mark.parametrize("n_blocks", [0, 1, 5, 12])
def test_a_full_disk_leaves_nothing_behind(n_blocks, tmp_path, monkeypatch):
    expected = model_bytes(MODEL.fit(Scan(make_table(9000), "y", weight="w", drop=["g"])), tmp_path)
    write, n_written = block_files.BlockWriter.write, []

    def fill(self, block):
        n_written.append(1)
        if len(n_written) > n_blocks:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, block)

    monkeypatch.setattr(block_files.BlockWriter, "write", fill)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scanned = Scan(make_table(9000), "y", weight="w", drop=["g"], block_rows=4096)
    with pytest.raises(OSError, match=r"no space left to write .*t\.codes: free some, or choose a disk"):
        scanned.store(tmp_path / "t.codes")
    with pytest.raises(OSError, match=r"no space left to write .*: free some, or set TMPDIR to a folder"):
        MODEL.fit(scanned)
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "t.codes").exists()
    monkeypatch.setattr(block_files.BlockWriter, "write", write)
    store = scanned.store(tmp_path / "t.codes")
    monkeypatch.setattr(block_files.BlockWriter, "write", fill)
    n_written.clear()
    assert model_bytes(MODEL.fit(store), tmp_path) == expected  # codes that find no room are no matter
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("moment", [1, 2])
def test_an_interrupt_leaves_nothing_behind(moment, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pattern = write_parts(make_table(9000), tmp_path, [50])
    add, n_added = column_writing.TableWriter.add, []

    def interrupt(self, part, table):
        n_added.append(1)
        if len(n_added) == moment:
            raise KeyboardInterrupt
        add(self, part, table)

    monkeypatch.setattr(column_writing.TableWriter, "add", interrupt)
    scanned = Scan(pattern, "y", block_rows=4096)
    with pytest.raises(KeyboardInterrupt):
        scanned.store(tmp_path / "t.codes")
    n_added.clear()
    with pytest.raises(KeyboardInterrupt):
        MODEL.fit(scanned)
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "t.codes").exists()
    assert len(scanned.read().columns().read(0).read()) == 9000  # and it can be read again


def test_a_scan_that_was_read_is_stored_without_reading_again(tmp_path):
    table = make_table(9000)
    scanned = Scan(table.to_reader(), "y", weight="w", drop=["g"], block_rows=4096)
    first = model_bytes(MODEL.fit(scanned), tmp_path)
    assert model_bytes(MODEL.fit(scanned.store(tmp_path / "t.codes")), tmp_path) == first
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none to make"):
        scanned.store(tmp_path / "none" / "t.codes")


def test_predictions_of_a_scan_are_asked_for_in_batches():
    scanned = Scan(make_table(60), "y", drop=["w", "g"])
    model = spinney.CARTClassifier().fit(scanned)
    with pytest.raises(TypeError, match="use predict_batches"):
        model.predict(scanned)
    with pytest.raises(TypeError, match="takes rows in memory"):
        spinney.CARTClassifier().cost_complexity_pruning_path(scanned, None)
    assert len(np.concatenate(list(model.predict_batches(scanned)))) == 60


def test_the_folder_of_a_scan_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scanned = Scan(write_parts(make_table(100), tmp_path, [50]), "y")
    MODEL.fit(scanned)
    assert len(leftovers(tmp_path)) == 1
    del scanned
    assert leftovers(tmp_path) == []
    table = make_table(100)
    with pytest.raises(ValueError, match="y must hold numbers"):
        spinney.CARTRegressor().fit(Scan(table, "y"))
    gc.collect()  # the error has led to what was on the way
    assert leftovers(tmp_path) == []


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    pattern = write_parts(make_table(100), tmp_path, [50])
    add = column_writing.TableWriter.add

    def change(self, part, table):
        (tmp_path / "part-8.parquet").touch()
        add(self, part, table)

    monkeypatch.setattr(column_writing.TableWriter, "add", change)
    with pytest.raises(ValueError, match=r"part-8\.parquet has changed since the scan began"):
        Scan(pattern, "y").read()


def test_two_fits_of_one_store_at_once_agree(folder, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    store = spinney.scan(folder)
    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(lambda _: spinney.CARTClassifier(max_depth=5).fit(store), range(4)))
    X, y = split(make_table(9000))
    expected = model_bytes(spinney.CARTClassifier(max_depth=5).fit(X, y, make_table(9000)["w"].to_numpy()), tmp_path)
    assert {model_bytes(model, tmp_path) for model in models} == {expected}
    assert leftovers(folder) == []


@pytest.mark.parametrize("bad", ["4XB", "", "-1GB", 0, -5, 1.5, True, "0MB"])
def test_odd_amounts_of_memory_are_refused(bad):
    with pytest.raises(ValueError, match=r"memory=.*: give a number of bytes"):
        spinney.scan(make_table(5), "y", memory=bad)


def test_amounts_of_memory_are_read_and_shown():
    assert [read_bytes(text) for text in ("1", "2kb", "3 MiB", "0.5GB", "1TiB", 7)] == [
        1,
        2000,
        3 * 2**20,
        5 * 10**8,
        2**40,
        7,
    ]
    assert [show_bytes(n) for n in (1, 1500, 2.5e6, 5.13e9, 1e12)] == ["1 B", "1.5 kB", "2.5 MB", "5.1 GB", "1.0 TB"]


def frames_of(table, n_rows):
    """A table as frames that can be read once."""
    return (table.slice(start, n_rows) for start in range(0, table.num_rows, n_rows))


def test_what_can_be_read_once_is_predicted_after_a_fit_has_read_it():
    table = make_table(60).drop_columns(["w", "g"])
    X, _ = split(table, ())
    for source in (frames_of(table, 25), table.to_reader(25)):
        scanned = spinney.scan(source, target="y")
        model = spinney.CARTClassifier(max_depth=3).fit(scanned)
        assert np.concatenate(list(model.predict_batches(scanned))).tolist() == model.predict(X).tolist()
    found = np.concatenate(list(model.predict_batches(frames_of(table, 25))))
    assert found.tolist() == model.predict(X).tolist()


def test_a_store_is_predicted_by_its_path_and_may_have_columns_more(tmp_path):
    table = make_table(60).drop_columns(["w", "g"])
    spinney.scan(table, target="y").store(tmp_path / "t.codes")
    model = spinney.CARTClassifier(max_depth=3).fit(table.select(["number", "text"]), table["y"].to_numpy())
    expected = model.predict(table.select(["number", "text"])).tolist()
    assert np.concatenate(list(model.predict_batches(tmp_path / "t.codes"))).tolist() == expected


def test_a_scan_is_pickled_as_what_it_stands_for(tmp_path):
    table = make_table(60).drop_columns(["w", "g"])
    tree = spinney.CARTClassifier(max_depth=3)
    scanned = spinney.scan(write_parts(table, tmp_path, []), target="y")
    expected = model_bytes(tree.fit(scanned), tmp_path)
    for one in (scanned, scanned.store(tmp_path / "t.codes")):
        assert model_bytes(tree.fit(pickle.loads(pickle.dumps(one))), tmp_path) == expected
    with pytest.raises(TypeError, match="can be read once"):
        pickle.dumps(spinney.scan(table.to_reader(), target="y"))


def test_who_asks_a_scan_for_its_rows_is_told_what_takes_it(tmp_path):
    scanned = spinney.scan(make_table(60), target="y")
    tree = spinney.CARTClassifier(max_depth=3)
    for one in (scanned, scanned.store(tmp_path / "t.codes")):
        model = tree.fit(one)
        for ask in (
            lambda X=one: GridSearchCV(tree, {"max_depth": [1, 2]}).fit(X),
            lambda X=one, model=model: model.shap_values(X),
            lambda X=one, model=model: spinney.explain(model, X),
        ):
            with pytest.raises(TypeError, match="`fit` and `predict_batches` take it"):
                ask()


def test_two_columns_of_one_name_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,a,y\n1,2,u\n2,3,v\n")
    with pytest.raises(ValueError, match=r"t\.csv has more than one column 'a'"):
        spinney.CARTClassifier().fit(spinney.scan(tmp_path / "t.csv", target="y"))


KILLED = """
    import sys
    from pathlib import Path
    from disk_tables import make_table
    from spinney.scale.scan import Scan
    scan = Scan(make_table(60_000), "y", drop=["w", "g"], block_rows=4096)
    print("storing", flush=True)
    scan.store(Path(sys.argv[1]) / "t.codes")
    print("stored", flush=True)
"""


@pytest.mark.compiled(reason="processes of their own")
def test_a_process_that_is_killed_leaves_no_half_store(tmp_path):
    rng = np.random.default_rng(0)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    n_killed = 0
    for seconds in rng.exponential(0.05, 6):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout.readline() == "storing\n"
            time.sleep(seconds)
            process.kill()
            is_stored = process.stdout.read() == "stored\n"
        n_killed += not is_stored
        store = tmp_path / "t.codes"
        assert store.exists() or not is_stored
        if store.exists():
            spinney.CARTClassifier(max_depth=3).fit(spinney.scan(store))  # which compares all hashes
            shutil.rmtree(store)
        assert all(path.name.startswith(".spinney-") and path.suffix == ".part" for path in tmp_path.iterdir())
    assert n_killed > 0
    Scan(make_table(500), "y", drop=["w", "g"]).store(tmp_path / "t.codes")  # what was left is in nobody's way
