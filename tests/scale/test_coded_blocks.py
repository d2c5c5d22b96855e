"""Codes that are made on disk are those that are made in memory, to the bit; files of codes are read without trust."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney
from disk_tables import make_table
from spinney import BrokenFileError, _jit
from spinney.model import container
from spinney.scale import column_cuts, sorted_runs
from spinney.scale.block_bundles import find_shared
from spinney.scale.block_coding import bin_blocks, code_blocks
from spinney.scale.block_files import BlockWriter, hashes_of
from spinney.scale.scan import Scan
from spinney.table.binning import make_bins
from spinney.table.bundles import bundle_features
from spinney.table.coding import make_codes
from spinney.table.fixed_point import fix_weights
from spinney.table.ingest import read_columns

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")
BLOCK = 4096
KINDS = ("normal", "ties", "holes", "odd", "whole", "constant", "empty", "short", "zeros")
ALL_ONE = np.ones(1, np.int64)


def make_column(kind, n_rows, rng):
    """Numbers of a kind that binning or coding could get wrong."""
    values = rng.normal(size=n_rows)
    if kind == "ties":
        values = np.round(values, 1)
    elif kind == "holes":
        values[rng.random(n_rows) < 0.4] = np.nan
    elif kind == "odd":
        values = rng.choice([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e308, 1.0], n_rows)
    elif kind == "whole":
        values = rng.integers(-500, 500, n_rows).astype(np.float64)
    elif kind == "constant":
        values[:] = 7.5
    elif kind == "empty":
        values[:] = np.nan
    elif kind == "short":
        values = values.astype(np.float32)
    elif kind == "zeros":
        values[rng.random(n_rows) < 0.9] = 0.0
    return values


def assert_same(expected, found):
    """Both have the same arrays, types included."""
    assert type(expected) is type(found)
    for name in expected._fields:
        one, other = getattr(expected, name), getattr(found, name)
        assert one.dtype == other.dtype, name
        assert one.shape == other.shape, name
        assert one.tobytes() == other.tobytes(), name


def assert_coded_alike(table, weight, keep, max_codes, memory=1, categories="from_dtype"):
    """Bins, bundles and codes of an Arrow table are the same from blocks as in memory."""
    kernels = _jit.load_compiled()
    in_memory = read_columns(table, categories)
    stored = read_columns(Scan(table, block_rows=BLOCK).read().columns(), categories)
    for max_bins in (max_codes, None):
        bins = make_bins(in_memory, weight, 65_535 if max_bins is None else max_bins, kernels, keep)
        with bin_blocks(stored, weight, max_bins, kernels, keep, memory=memory, has_bundles=False) as blocks:
            assert_same(bins, blocks.load())
            assert (blocks.n_rows, blocks.block_rows) == (len(bins.rows), BLOCK)
            assert blocks.n_blocks == -(-len(bins.rows) // BLOCK)
        with bin_blocks(stored, weight, max_bins, kernels, keep, memory=memory) as blocks:
            assert_same(bundle_features(bins), blocks.load())
    with code_blocks(stored, weight, max_codes, kernels, keep, memory=memory) as blocks:
        assert_same(make_codes(in_memory, weight, max_codes, kernels, keep), blocks.load())


@given(
    seed=st.integers(0, 2**32),
    n_rows=st.one_of(st.integers(1, 3 * BLOCK), st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    weights=st.sampled_from(["none", "whole", "fractions", "classes", "some zero"]),
    share=st.sampled_from([1.0, 0.8, 0.02]),
    max_codes=st.sampled_from([2, 7, 255, 300, 4000, 65_535]),
    is_on_disk=st.booleans(),
)
@settings(max_examples=60)
def test_codes_of_blocks_are_those_of_memory(seed, n_rows, kinds, weights, share, max_codes, is_on_disk):
    rng = np.random.default_rng(seed)
    columns = {f"x{j}": make_column(kind, n_rows, rng) for j, kind in enumerate(kinds)}
    columns["text"] = pa.array(np.where(rng.random(n_rows) < 0.1, None, rng.choice(["a", "b", "c"], n_rows)))
    keep = None if share == 1.0 else rng.random(n_rows) < share
    if keep is not None and not keep.any():
        keep[0] = True
    n_kept = n_rows if keep is None else int(keep.sum())
    weight = {
        "none": None,
        "whole": rng.integers(1, 9, n_kept).astype(np.float64),
        "fractions": rng.random(n_kept) + 0.1,
        "classes": np.where(rng.random(n_kept) < 0.2, 3.7, 0.4),
        "some zero": np.maximum(rng.integers(-5, 9, n_kept), 0) + (np.arange(n_kept) == 0.0),
    }[weights]
    with pytest.MonkeyPatch.context() as patch:
        if is_on_disk:
            patch.setattr(sorted_runs, "RECORD_BYTES", 2**30)
            patch.setattr(sorted_runs, "VALUE_BYTES", 2**30)
            patch.setattr(sorted_runs, "LEAST_RECORDS", 700)
        assert_coded_alike(pa.table(columns), fix_weights(weight, n_kept).values, keep, max_codes)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_values", [65_534, 65_535, 65_536, 90_000])
def test_more_values_than_codes(n_values, is_weighted, monkeypatch):
    monkeypatch.setattr(sorted_runs, "LEAST_RECORDS", 10_000)
    monkeypatch.setattr(sorted_runs, "RECORD_BYTES", 2**30)
    monkeypatch.setattr(sorted_runs, "VALUE_BYTES", 2**30)
    rng = np.random.default_rng(0)
    n_rows = 100_000
    column = rng.permutation(np.concatenate([np.arange(n_values), rng.integers(0, n_values, n_rows - n_values)]) / 7)
    weight = rng.integers(1, 9, n_rows) if is_weighted else ALL_ONE
    assert_coded_alike(pa.table({"x": column}), weight, None, 65_535)


def test_every_kind_of_column():
    table = make_table(9000).drop_columns(["y", "w", "g"])
    assert_coded_alike(table, ALL_ONE, None, 255)


def test_a_category_of_more_levels_than_a_byte_holds():
    levels = np.random.default_rng(0).integers(0, 400, 9000).astype(str)
    few = pa.array(levels.astype(int) % 3, mask=np.arange(9000) > 8500)
    table = pa.table({"level": levels, "x": np.arange(9000.0), "few": few})
    assert_coded_alike(table, ALL_ONE, None, 255)
    assert_coded_alike(table, ALL_ONE, None, 255, categories=["level", "few"])


def test_columns_are_coded_in_groups_where_memory_is_short():
    columns = {f"x{j}": make_column(KINDS[j % len(KINDS)], 5000, np.random.default_rng(j)) for j in range(200)}
    assert_coded_alike(pa.table(columns), ALL_ONE, None, 255)


# --- Bundles --------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), n_rows=st.integers(BLOCK, 3 * BLOCK), n_rare=st.integers(0, 12))
@settings(max_examples=40)
def test_bundles_of_blocks_are_those_of_memory(seed, n_rows, n_rare):
    """One-hot columns, and others that meet in few rows, which the sample does not show."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 9, n_rows)
    columns = {f"hot{j}": (chosen == j).astype(np.float64) for j in range(8)}
    for j in range(n_rare):
        rare = np.zeros(n_rows)
        rare[rng.integers(0, n_rows, rng.integers(1, 40))] = rng.integers(1, 200)
        columns[f"rare{j}"] = rare
    columns["number"] = rng.normal(size=n_rows)
    assert_coded_alike(pa.table(columns), ALL_ONE, None, 255)


def test_bundles_that_meet_in_one_row_are_found_out():
    """A guess by the sample is wrong here, and so is the next: every pair meets in one row that the sample lacks."""
    n_rows, n_columns = 3 * BLOCK, 6
    columns = np.zeros((n_columns, n_rows))
    for j in range(n_columns):
        columns[j, 10 * j + 1] = 1.0
        columns[:, BLOCK + 1 + 2 * j] = 0.0
    rows = iter(range(2 * BLOCK + 1, n_rows, 3))
    for i in range(n_columns):
        for j in range(i):
            if (i + j) % 2:
                columns[[i, j], next(rows)] = 1.0
    table = pa.table({f"x{j}": column for j, column in enumerate(columns)})
    stored = read_columns(Scan(table, block_rows=BLOCK).read().columns())
    with bin_blocks(stored, ALL_ONE, 255, _jit.load_compiled(), memory=1, has_bundles=False) as blocks:
        assert find_shared(blocks)[1] == [[0, 2, 4], [1, 3, 5]]
    assert_coded_alike(table, ALL_ONE, None, 255)


# --- Memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [bin_blocks, code_blocks])
def test_memory_does_not_grow_with_the_rows(code, monkeypatch):
    monkeypatch.setattr(column_cuts, "open_temporary", fail_unless_few := CountingFolders())
    kernels, memory = _jit.load_compiled(), 8 << 20
    peaks = []
    for n_blocks in (12, 48):
        rng = np.random.default_rng(0)
        table = pa.table({f"x{j}": rng.normal(size=n_blocks * BLOCK * 4) for j in range(3)})
        stored = read_columns(Scan(table, block_rows=4 * BLOCK).read().columns())
        del table
        code(stored, ALL_ONE, 255, kernels, memory=memory).close()  # loads what is loaded once
        tracemalloc.start()
        code(stored, ALL_ONE, 255, kernels, memory=memory).close()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert fail_unless_few.n_opened > 0
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 2 * memory


class CountingFolders:
    """What `open_temporary` does, counted."""

    def __init__(self):
        self.n_opened, self.open = 0, column_cuts.open_temporary

    def __call__(self):
        self.n_opened += 1
        return self.open()


# --- Files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path):
    """A table of 9,000 rows in three blocks, in a store."""
    columns = make_table(9000).drop_columns(["y", "w", "g"])
    return read_columns(Scan(columns, block_rows=BLOCK).store(tmp_path / "t.codes").columns())


def take(stored, **options):
    return bin_blocks(stored, ALL_ONE, 255, _jit.load_compiled(), memory=1, **options)


def test_codes_go_to_the_shelf_and_are_found_there(stored, tmp_path, monkeypatch):
    first = take(stored)
    rows = first.load().rows
    assert first.folder.parent == tmp_path / "t.codes" / "codes"
    monkeypatch.setattr("spinney.scale.block_coding.cut_columns_on_disk", None)
    with take(stored) as again:
        assert again.folder == first.folder
        assert again.load().rows.tobytes() == rows.tobytes()
    assert sorted(path.name for path in first.folder.iterdir()) == ["about.spn", "rows.bin", "rows.bin.sha256"]


def test_fits_in_memory_and_blocks_share_a_shelf(tmp_path):
    store = Scan(make_table(9000), "y", weight="w", groups="g", block_rows=BLOCK).store(tmp_path / "t.codes")
    spinney.RandomForestClassifier(n_estimators=1, random_state=0).fit(store)
    (made,) = (tmp_path / "t.codes" / "codes").iterdir()
    weight = fix_weights(store.read_weight(), 9000).values
    with code_blocks(read_columns(store.columns()), weight, 65_535, _jit.load_compiled(), memory=1) as blocks:
        assert blocks.folder == made


def test_a_store_that_cannot_be_written_to_gives_temporary_codes(stored, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(stored.shelf, "write", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blocks = take(stored)
    assert blocks.folder.parent == tmp_path
    assert blocks.n_rows == 9000
    blocks.close()
    assert [path.name for path in tmp_path.iterdir()] == ["t.codes"]


def test_a_block_is_read_into_memory_that_is_there(stored):
    with take(stored) as blocks:
        whole = blocks.load().rows
        buffer = np.empty((BLOCK, blocks.stride), np.uint8)
        for k in (2, 0, 1, 2):
            rows = blocks.read(k, buffer)
            assert np.shares_memory(rows, buffer)
            assert rows.tobytes() == whole[k * BLOCK : (k + 1) * BLOCK].tobytes()
            assert len(rows) == blocks.rows_of(k)


def test_a_block_that_changes_after_it_was_checked_is_noticed(stored):
    with take(stored) as blocks:
        blocks.load()
        path = blocks.folder / "rows.bin"
        content = bytearray(path.read_bytes())
        content[5 * blocks.stride] ^= 1
        path.write_bytes(bytes(content))
        with pytest.raises(BrokenFileError, match="block 0, from byte 0 on, is not as it was written"):
            blocks.read(0)
        path.write_bytes(bytes(content[:-1]))
        with pytest.raises(BrokenFileError, match="block 2"):
            blocks.read(2)


def rewrite(folder, change_rows=None, change_about=None):
    """Change codes or what they stand for, with hashes that agree."""
    about = container.read(folder / "about.spn", is_mapped=False)
    arrays, text = {name: array.copy() for name, array in about.arrays.items()}, dict(about.text)
    if change_about is not None:
        change_about(arrays, text)
    if change_rows is not None:
        rows = np.fromfile(folder / "rows.bin", np.uint8).reshape(9000, -1)
        change_rows(rows)
        (folder / "rows.bin").unlink()
        hashes_of(folder / "rows.bin").unlink()
        writer = BlockWriter(folder / "rows.bin")
        for lo in range(0, 9000, BLOCK):
            writer.write(rows[lo : lo + BLOCK])
        text["digest"] = writer.close()
    container.write(folder / "about.spn", arrays, text)


@pytest.mark.parametrize(("feature", "code"), [("whole", 0), ("text", 5), ("flag", 3), ("day.month", 13)])
def test_codes_that_stand_for_nothing_are_refused(feature, code, stored):
    with take(stored) as blocks:
        place = blocks.place[stored.schema.names.index(feature)]

    def change(rows):
        rows[8999, place] = code

    rewrite(blocks.folder, change)
    with take(stored, has_bundles=False) as blocks:
        blocks.read(0)
        with pytest.raises(BrokenFileError, match="block 2 has a code that stands for nothing"):
            blocks.read(2)


@pytest.mark.parametrize("feature", [0, 1])
def test_wide_codes_that_stand_for_nothing_are_refused(feature, stored):
    kernels = _jit.load_compiled()
    with code_blocks(stored, ALL_ONE, 300, kernels, memory=1) as blocks:
        assert blocks.features[0, feature] <= 300
    rewrite(blocks.folder, lambda rows: rows.view("<u2").__setitem__((4096, feature), 301))
    with (
        code_blocks(stored, ALL_ONE, 300, kernels, memory=1) as blocks,
        pytest.raises(BrokenFileError, match="block 1 has a code that stands for nothing"),
    ):
        blocks.load()


def put(name, value):
    """A change of one array or text."""

    def change(arrays, text):
        (arrays if name in arrays else text)[name] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("kind", "codes"),
        put("n_rows", "0"),
        put("n_rows", "9001"),
        put("n_rows", "9" * 30),
        put("n_rows", "-5"),
        put("block_rows", "1"),
        put("digest", "0" * 64),
        put("extra", "1"),
        lambda arrays, _: arrays.pop("usual"),
        lambda arrays, _: arrays["n_codes"].__setitem__(0, -1),
        lambda arrays, _: arrays["n_codes"].__setitem__(0, 70_000),
        lambda arrays, _: arrays["edges"].__setitem__((0, 0), np.nan),
        lambda arrays, _: arrays["edges"].__setitem__((0, 1), -1e9),
        lambda arrays, _: arrays["bundle"].__setitem__(0, -2),
        lambda arrays, _: arrays["bundle"].__setitem__(slice(0, 2), 0),
        lambda arrays, _: arrays["bundle"].__setitem__(4, 0),
        lambda arrays, _: arrays["usual"].__setitem__(0, 1),
        put("edges", np.zeros((3, 5))),
        put("has_missing", np.zeros(3, np.bool_)),
        put("usual", np.zeros(11)),
    ],
)
def test_what_codes_cannot_stand_for_is_refused(change, stored):
    with take(stored) as blocks:
        folder = blocks.folder
    rewrite(folder, change_about=change)
    with pytest.raises(BrokenFileError) as caught:
        take(stored, has_bundles=False)
    assert "\n" not in str(caught.value)


def test_a_folder_without_its_files_is_refused(stored):
    with take(stored) as blocks:
        folder = blocks.folder
    (folder / "about.spn").unlink()
    with pytest.raises(BrokenFileError, match=r"about\.spn is missing: remove .* it is made anew"):
        take(stored, has_bundles=False)
