"""Distinct values with their weights, sorted on disk, are those that NumPy finds in memory; and memory has a bound."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney import _jit
from spinney.scale import sorted_runs
from spinney.scale.column_cuts import cut_sorted
from spinney.scale.sorted_runs import RECORD_BYTES, Piece, SortedRuns, add_up
from spinney.table.binning import cut_columns

FLOATS = st.one_of(
    st.floats(allow_nan=False, width=32), st.sampled_from([-0.0, 0.0, np.inf, -np.inf, 1.0, 2.0]), st.integers(-3, 3)
)


def add_all(folder, blocks, weights=None, memory=1):
    """Runs that all blocks have been added to."""
    names = iter(range(10**6))
    runs = SortedRuns(memory, lambda: folder / f"run-{next(names)}", has_mass=weights is not None)
    for i, block in enumerate(blocks):
        runs.add(block, None if weights is None else weights[i])
    return runs


def add_all_up(pieces):
    """The distinct values of pieces that follow each other, and the mass of each."""
    assert len({piece.mass is None for piece in pieces}) < 2
    values = np.concatenate([np.empty(0), *(piece.values for piece in pieces)])
    assert np.all(values[:-1] <= values[1:])
    masses = [np.ones(len(piece.values), np.int64) if piece.mass is None else piece.mass for piece in pieces]
    return add_up(Piece(values, np.concatenate([np.empty(0, np.int64), *masses])))


@given(
    blocks=st.lists(st.lists(FLOATS, max_size=60), min_size=1, max_size=9),
    is_weighted=st.booleans(),
    least=st.integers(4, 40),
    piece=st.integers(1, 9),
    dtype=st.sampled_from([np.float32, np.float64]),
    data=st.data(),
)
@settings(max_examples=200)
def test_runs_are_what_sorting_all_gives(blocks, is_weighted, least, piece, dtype, data, tmp_path_factory):
    blocks = [np.array(block, dtype) for block in blocks]
    weights = [
        np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(b), max_size=len(b))), np.int64) for b in blocks
    ]
    whole = np.concatenate(blocks).astype(np.float64)
    values, place = np.unique(whole + 0.0, return_inverse=True)
    mass = np.zeros(len(values), np.int64)
    np.add.at(mass, place, np.concatenate(weights) if is_weighted else 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "LEAST_RECORDS", least)
        patch.setattr(sorted_runs, "LEAST_PIECE", piece)
        folder = tmp_path_factory.mktemp("runs")
        runs = add_all(folder, blocks, weights if is_weighted else None)
        found = [*runs.merge()]
        assert bool(runs.runs) is any(folder.iterdir())
        assert not runs.runs or len(whole) > least  # few rows never go to the disk
        together = add_all_up(found)
        assert together.values.tobytes() == values.tobytes()
        assert together.mass.tolist() == mass.tolist()
        assert runs.total == mass.sum()
        for most in (2, 5, 30):
            if len(whole) and (not is_weighted or mass.sum()):
                runs = add_all(tmp_path_factory.mktemp("runs"), blocks, weights if is_weighted else None)
                check_cuts(runs, whole, np.concatenate(weights) if is_weighted else np.ones(1, np.int64), most)


def check_cuts(runs, column, weight, most):
    """Cuts of the sorted values are those of the column in memory."""
    kernels = _jit.load_compiled()
    (cut,) = cut_columns(column[np.newaxis], [0], weight, most, kernels)
    low, high = cut_sorted(runs, most, kernels)
    assert (low.tobytes(), high.tobytes()) == (cut.low.tobytes(), cut.high.tobytes())
    runs.remove()
    assert runs.runs == []


@pytest.mark.parametrize("kernels", [_jit.interpreted, _jit.load_compiled])
@given(
    mass=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    n_bins=st.integers(2, 12),
    ends=st.lists(st.integers(0, 60)),
)
def test_bins_are_filled_in_steps_as_at_once(kernels, mass, n_bins, ends):
    binning, mass = kernels().data.binning, np.array(mass, np.int64)
    values = np.arange(len(mass), dtype=np.float64)
    expected = np.empty(len(mass), np.int64)
    n_filled = binning.fill_bins(mass, n_bins, expected)
    chain = np.empty(5, np.int64)
    binning.start_chain(mass.sum(), n_bins, chain)
    low, high = np.empty((2, n_bins))
    ends = sorted({0, len(mass), *(end for end in ends if end < len(mass))})
    for lo, hi in itertools.pairwise(ends):
        binning.fill_sorted(values[lo:hi], mass[lo:hi], len(mass) - lo, n_bins, chain, low, high)
    assert chain[0] == n_filled - 1
    assert low[:n_filled].tolist() == [values[expected == b].min() for b in range(n_filled)]
    assert high[:n_filled].tolist() == [values[expected == b].max() for b in range(n_filled)]


@pytest.mark.parametrize("kernels", [_jit.interpreted, _jit.load_compiled])
@given(values=st.lists(st.integers(0, 9), max_size=30), n_wanted=st.integers(1, 12))
def test_the_last_distinct_values_are_found(kernels, values, n_wanted):
    values = np.array(sorted(values), np.float32)
    last = np.unique(values)[-n_wanted:]
    start = int(np.searchsorted(values, last[0])) if len(last) else 0
    assert kernels().data.binning.find_last_values(values, n_wanted) == (start, len(last))


def peak_of(work):
    """The most memory that arrays take together while something is done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["distinct", "weighted", "half zero", "few"])
def test_memory_does_not_grow_with_the_rows(kind, tmp_path):
    memory, n_rows = 1 << 22, 1 << 13
    assert memory // RECORD_BYTES > sorted_runs.LEAST_RECORDS

    def work(n_blocks):
        rng = np.random.default_rng(0)
        names = iter(range(10**6))
        (folder := tmp_path / f"{n_blocks}").mkdir()
        runs = SortedRuns(memory, lambda: folder / f"run-{next(names)}", has_mass=kind == "weighted")
        for _ in range(n_blocks):
            values = rng.random(n_rows)
            if kind == "half zero":
                values[rng.random(n_rows) < 0.45] = 0.0
            elif kind == "few":
                values = np.floor(values * 10_000)
            runs.add(values, rng.integers(1, 9, n_rows) if kind == "weighted" else None)
        n_values = 0
        for piece in runs.merge():
            n_values += len(piece.values)
        assert bool(runs.runs) is (kind != "few")
        assert n_values > (0.5 * n_blocks * n_rows if kind != "few" else 9_990)

    few, many = peak_of(lambda: work(90)), peak_of(lambda: work(270))
    assert max(few, many) < memory
    assert many < 1.1 * few


@pytest.mark.parametrize("kind", ["half greatest", "each in every run"])
def test_memory_of_cuts_does_not_grow_with_the_rows(kind, tmp_path):
    memory, n_rows, most = 1 << 20, 1 << 13, 3000
    kernels = _jit.load_compiled()

    def work(n_blocks):
        rng = np.random.default_rng(0)
        names = iter(range(10**6))
        (folder := tmp_path / f"{n_blocks}").mkdir()
        runs = SortedRuns(memory, lambda: folder / f"run-{next(names)}", has_mass=False)
        for _ in range(n_blocks):
            values = rng.random(n_rows, np.float32)
            if kind == "half greatest":
                values[rng.random(n_rows) < 0.45] = 1.0
            else:
                values = np.floor(values * 20_000)
            runs.add(values)
        low, high = cut_sorted(runs, most, kernels)
        assert len(low) == len(high) > 1000
        assert runs.runs
        assert all(piece.mass is None for piece in runs.merge())

    work(8)  # compiles
    few, many = peak_of(lambda: work(60)), peak_of(lambda: work(240))
    assert many < 1.1 * few


def test_few_values_never_touch_the_disk(tmp_path):
    rng = np.random.default_rng(0)
    blocks = [rng.integers(0, 3000, 1 << 14).astype(np.float32) for _ in range(40)]
    runs = add_all(tmp_path, blocks)
    assert len(add_all_up([*runs.merge()]).values) == 3000
    assert runs.runs == []
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_run_that_is_cut_off_is_noticed(is_weighted, tmp_path):
    rng = np.random.default_rng(0)
    blocks = [rng.random(1 << 14) for _ in range(5)]
    runs = add_all(tmp_path, blocks, [np.full(1 << 14, 2) for _ in range(5)] if is_weighted else None)
    path = runs.runs[0].path
    path.write_bytes(path.read_bytes()[:-16])
    with pytest.raises(OSError, match="was cut off while it was read"):
        [*runs.merge()]
