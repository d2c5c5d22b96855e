"""Rounds on rows in parts on disk: the trees, scores and losses of rows in memory, to the bit, holding few rows."""

import contextlib
import copy
import errno
import math
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fast
from spinney._types import CONTROL_SIZE, CONTROL_STOP, IS_CATEGORICAL
from spinney.ensemble import boosting
from spinney.ensemble.best_constant import weighted_quantile
from spinney.ensemble.boosted_rows import BoostedRows
from spinney.ensemble.boosting import Boosting, Constraints
from spinney.ensemble.boosting_levels import LevelBoosting
from spinney.ensemble.initial_score import find_start_by_blocks
from spinney.ensemble.loss_names import make_loss
from spinney.ensemble.oob_stopping import OutOfBagCurve, OutOfBagStop
from spinney.ensemble.selection import find_quantiles
from spinney.scale.coded_blocks import BINS, CodedBlocks, write_blocks
from spinney.scale.engine import DiskEngine
from spinney.scale.row_files import RowFiles
from spinney.table.binning import make_bins
from spinney.table.bundles import bundle_features
from spinney.table.columns import open_columns
from spinney.table.fixed_point import fix_weight_blocks, fix_weights
from spinney.table.ingest import read_columns
from spinney.table.row_sums import SUM_BLOCK, ExactSum
from spinney.tree.boost import BoostParams

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")
EDGES = [-1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308]
ARRAYS = ("hot", "n_rows", "weight", "impurity", "first_node", "first_word", "subsets")


def draw_table(n_rows, n_classes, seed, *, has_bundles=False, n_levels=30):
    """Columns of numbers with holes, one of categories, and a target: classes, or positive numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 8)).round(2)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 1] = rng.integers(0, n_levels, n_rows)
    if has_bundles:
        hot = rng.integers(0, 5, n_rows)
        X[:, 3:8] = (hot[:, None] == np.arange(5)) * rng.integers(1, 4, n_rows)[:, None]
    signal = 2 * np.nan_to_num(X[:, 0]) + np.sin(X[:, 1]) + rng.normal(size=n_rows)
    y = np.abs(signal) + 0.5 if n_classes == 0 else np.digitize(signal, np.linspace(-1.0, 1.0, n_classes - 1))
    return X, y.astype(np.float64)


def bin_columns(X, weight, max_bins, *, has_bundles):
    bins = make_bins(
        read_columns(open_columns(X), [1], None), fix_weights(weight, len(X)).values, max_bins, fast.compiled()
    )
    return bundle_features(bins) if has_bundles else bins


@contextlib.contextmanager
def on_disk(folder, bins, y, weight, n_raw, block_rows=SUM_BLOCK, n_workers=1, n_together=1, n_held=0):
    """An engine that has all of it in parts, the outline of its codes, and the weights of its rows."""
    place = Path(folder) / f"codes-{len(list(Path(folder).iterdir()))}"
    place.mkdir()
    write_blocks(place, bins, block_rows)
    blocks = CodedBlocks(place, BINS, bins.features[IS_CATEGORICAL] != 0)
    block_rows *= n_together
    files = RowFiles(Path(folder), block_rows, len(y))
    weights = fix_weight_blocks(lambda: [np.ones(1) if weight is None else weight], len(y))
    for k in range(files.n_blocks):
        rows = slice(k * block_rows, k * block_rows + files.rows_of(k))
        files.write("y", k, y[rows])
        files.write("raw", k, np.zeros((n_raw, files.rows_of(k))))
        if not weights.is_unit:
            files.write("weight", k, weight[rows])
    engine = DiskEngine(blocks, files, n_workers, n_held)
    try:
        yield engine, blocks.outline, weights
    finally:
        engine.close()
        blocks.close()


def check_same(
    folder, X, y, weight, loss, params, *, n_rounds=2, n_workers=1, max_bins=255, block_rows=SUM_BLOCK, **more
):
    """Grow rounds in memory and from disk."""
    kernels, control = fast.compiled(), np.zeros(CONTROL_SIZE, np.int64)
    constraints = Constraints(more.get("monotone"), more.get("interactions"))
    bins = bin_columns(X, weight, max_bins, has_bundles=more.get("has_bundles", False))
    memory = Boosting(
        BoostedRows(bins, y, weight, np.zeros((loss.n_raw, len(y)))), loss, params, kernels, constraints=constraints
    )
    parts = (block_rows, n_workers, more.get("n_together", 1), more.get("n_held", 0))
    with on_disk(folder, bins, y, weight, loss.n_raw, *parts) as (engine, outline, weights):
        own = copy.copy(loss)  # huber's knows delta
        disk = LevelBoosting(engine, outline, weights, len(y), own, params, kernels, constraints=constraints)
        for one in (memory, disk):
            one.out_of_bag = OutOfBagCurve(stop=OutOfBagStop()) if params.subsample < 1.0 else None
            for _ in range(n_rounds):
                one.grow_round(control)
        expected, found = memory.forest(), disk.forest()
        for name in ARRAYS:
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
        raw = np.concatenate([engine.read("raw", k) for k in range(engine.files.n_blocks)], axis=1)
    assert raw.tobytes() == memory.raw.tobytes()
    assert disk.train_loss() == memory.train_loss()
    assert disk.likely_gain == memory.likely_gain
    if memory.out_of_bag is not None:
        np.testing.assert_array_equal(disk.out_of_bag.improvement, memory.out_of_bag.improvement)
        np.testing.assert_array_equal(disk.out_of_bag.score, memory.out_of_bag.score)
    return expected


LOSSES = {
    "log_loss": (2, 4),
    "exponential": (2,),
    **dict.fromkeys(["squared_error", "poisson", "gamma", "tweedie", "absolute_error", "quantile", "huber"], (0,)),
}
SELECTED = {"absolute_error", "quantile", "huber"}  # whose leaves ask for quantiles, of rows of whole weights
WEIGHTS = {
    "none": lambda _n, _rng: None,
    "whole": lambda n, rng: rng.integers(1, 4, n).astype(np.float64),
    "fractions": lambda n, rng: rng.random(n) + 0.1,
    "tiny": lambda n, rng: (rng.random(n) + 0.1) * 1e-30,
}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rounds_from_disk_are_those_in_memory(data, tmp_path_factory):
    draw = data.draw
    n_rows = draw(st.sampled_from([5, 300, 4095, 4097, 8192, 9000, 13_000]), "rows")
    name = draw(st.sampled_from(sorted(LOSSES)), "loss")
    n_classes = draw(st.sampled_from(LOSSES[name]), "classes")
    newton = draw(st.booleans(), "newton")
    alpha = draw(st.sampled_from([0.5, 0.9, 0.9 if name == "huber" else [0.2, 0.75]]), "level")
    loss = make_loss(name, n_classes=n_classes, newton=newton, alpha=alpha)
    max_leaf_nodes = draw(st.sampled_from([2, 3, 8, 31, None]), "leaves")
    params = BoostParams(
        max_leaf_nodes=max_leaf_nodes,
        max_depth=draw(st.sampled_from([1, 4, 7] if max_leaf_nodes is None else [None, 3]), "depth"),
        min_samples_leaf=draw(st.sampled_from([1, 5, 20, 400]), "leaf rows"),
        min_samples_split=draw(st.sampled_from([2, 100]), "split rows"),
        min_weight_fraction_leaf=draw(st.sampled_from([0.0, 0.01]), "leaf weight"),
        reg_lambda=draw(st.sampled_from([0.0, 1.0]), "L2"),
        lambda_falls=draw(st.booleans(), "falling L2"),
        reg_alpha=draw(st.sampled_from([0.0, 0.5]), "L1"),
        gamma=draw(st.sampled_from([0.0, 1.0]), "gamma"),
        pruning=draw(st.sampled_from(["pre", "post"]), "pruning"),
        subsample=draw(st.sampled_from([1.0, 0.5]), "subsample"),
        leaf_rows=draw(st.sampled_from(["bag", "all"]), "leaf_rows"),
        max_features=draw(st.sampled_from([None, 3]), "features of a node"),
        max_tree_features=draw(st.sampled_from([None, 4]), "features of a tree"),
        newton=newton,
        cat_penalty=draw(st.sampled_from([0.0, 1.0]), "penalty"),
        max_cat_threshold=draw(st.sampled_from([2**31 - 1, 4]), "levels"),
        seed=draw(st.integers(0, 5), "seed"),
    )
    has_bundles = draw(st.booleans(), "bundles")
    n_levels, max_bins = draw(st.sampled_from([(30, 255), (700, 255), (30, 2000)]), "levels and bins")
    X, y = draw_table(n_rows, n_classes, params.seed, has_bundles=has_bundles, n_levels=n_levels)
    kinds = ["none", "whole"] if name in SELECTED else sorted(WEIGHTS)
    weight = WEIGHTS[draw(st.sampled_from(kinds), "weights")](n_rows, np.random.default_rng(1))
    check_same(
        tmp_path_factory.mktemp("rows"),
        X,
        y,
        weight,
        loss,
        params,
        n_workers=draw(st.sampled_from([1, 3]), "threads"),
        max_bins=max_bins,
        has_bundles=has_bundles,
        monotone=draw(st.sampled_from([None, np.array([1, 0, -1, 0, 0, 0, 0, 0], np.int8)]), "monotone"),
        interactions=draw(st.sampled_from([None, [[0, 1, 2], [2, 3, 4, 5, 6, 7]]]), "interactions"),
        block_rows=draw(st.sampled_from([SUM_BLOCK, 2 * SUM_BLOCK]), "block"),
        n_together=draw(st.sampled_from([1, 2]), "blocks of a part"),
        n_held=draw(st.sampled_from([0, 1, 9]), "parts that are held"),
    )


@pytest.mark.parametrize("newton", [True, False])
@pytest.mark.parametrize("target", ["numbers", "few", "one", "far"])
def test_huber_from_disk_is_that_in_memory(target, newton, tmp_path):
    X, y = draw_table(9000, 0, 0)
    if target == "few":
        y = np.where(y > np.quantile(y, 0.97), y.round(1), 0.0)  # delta of most residuals would be 0
    elif target == "one":
        y[:] = 2.5
    elif target == "far":
        y *= 1e150
    loss = make_loss("huber", newton=newton, alpha=0.9)
    for weight in (None, np.random.default_rng(1).integers(1, 4, len(y)).astype(np.float64)):
        params = BoostParams(subsample=0.7, leaf_rows="all", newton=newton)
        check_same(tmp_path, X, y, weight, copy.copy(loss), params, n_held=1)

    def blocks():
        for first in range(0, len(y), 4000):
            own = weights._replace(values=weights.values[first : first + 4000])
            yield y[first : first + 4000], own

    weights, by_blocks = fix_weights(weight, len(y)), copy.copy(loss)
    assert find_start_by_blocks(by_blocks, blocks, weights).tobytes() == loss.start(y, weight).tobytes()
    assert by_blocks.parameter == loss.parameter


@pytest.mark.parametrize(("n_held", "n_reads"), [(0, 8), (1, 6), (4, 0), (9, 0)])
def test_parts_that_are_held_are_read_once(n_held, n_reads, tmp_path, monkeypatch):
    X, y = draw_table(13_000, 2, 0)
    bins = bin_columns(X, None, 255, has_bundles=False)
    loss, control, reads = make_loss("log_loss", n_classes=2), np.zeros(CONTROL_SIZE, np.int64), []
    with on_disk(tmp_path, bins, y, None, 1, n_held=n_held) as (engine, outline, weights):
        params = BoostParams(max_leaf_nodes=2)  # a pass that packs, and one that splits
        grown = LevelBoosting(engine, outline, weights, len(y), loss, params, fast.compiled())
        grown.grow_round(control)
        read = CodedBlocks.read
        monkeypatch.setattr(CodedBlocks, "read", lambda self, *args: (reads.append(args[0]), read(self, *args))[1])
        write, written = RowFiles.write, []
        monkeypatch.setattr(RowFiles, "write", lambda self, *args: (written.append(args[1]), write(self, *args))[1])
        grown.grow_round(control)
    assert len(reads) == n_reads
    assert set(written) == set(range(n_held, 4))


@pytest.mark.parametrize("n_held", [0, 1, 4])
def test_scores_of_held_parts_can_be_changed(n_held, tmp_path):
    X, y = draw_table(9000, 2, 0)
    bins = bin_columns(X, None, 255, has_bundles=False)
    loss = make_loss("log_loss", n_classes=2)
    with on_disk(tmp_path, bins, y, None, 1, n_held=n_held) as (engine, outline, weights):
        grown = LevelBoosting(engine, outline, weights, len(y), loss, BoostParams(), fast.compiled())
        grown.grow_round(np.zeros(CONTROL_SIZE, np.int64))
        before = np.concatenate([engine.read("raw", k)[0] for k in range(3)])

        def double(scores):
            scores *= 2.0

        grown.change_scores([(5000, double), (4000, double)])
        after = np.concatenate([engine.read("raw", k)[0] for k in range(3)])
    np.testing.assert_array_equal(after, 2.0 * before)


@pytest.mark.parametrize("max_leaf_nodes", [200, 120])
def test_trees_of_more_nodes_than_a_byte_tells(max_leaf_nodes, tmp_path):
    X, y = draw_table(13_000, 2, 0)
    params = BoostParams(max_leaf_nodes=max_leaf_nodes, min_samples_leaf=5)
    expected = check_same(tmp_path, X, y, None, make_loss("log_loss", n_classes=2), params)
    assert len(expected.n_rows) == 2 * (2 * max_leaf_nodes - 1)  # two rounds, nothing held them up


@pytest.mark.parametrize("subsample", [1.0, 0.7])
def test_random_rounding_follows_the_row_and_not_the_part(subsample, tmp_path, monkeypatch):
    monkeypatch.setattr(boosting, "FEW_BITS_WEIGHT", 1000.0)
    X, y = draw_table(13_000, 2, 0)
    params = BoostParams(subsample=subsample)
    expected = check_same(tmp_path, X, y, None, make_loss("log_loss", n_classes=2), params)
    monkeypatch.setattr(boosting, "FEW_BITS_WEIGHT", 1e9)
    others = check_same(tmp_path, X, y, None, make_loss("log_loss", n_classes=2), params)
    assert expected.impurity.tobytes() != others.impurity.tobytes()  # else rounding would not show


def test_memory_does_not_depend_on_the_number_of_rows(tmp_path):
    loss, params, kernels = make_loss("log_loss", n_classes=2), BoostParams(subsample=0.7), fast.compiled()
    peaks = []
    for n_rows in (17 * SUM_BLOCK, 68 * SUM_BLOCK):  # bags are drawn by blocks in both
        X, y = draw_table(n_rows, 2, 0)
        bins = bin_columns(X, None, 255, has_bundles=False)
        with on_disk(tmp_path, bins, y, None, 1) as (engine, outline, weights):
            grown = LevelBoosting(engine, outline, weights, n_rows, loss, params, kernels)
            grown.grow_round(np.zeros(CONTROL_SIZE, np.int64))
            tracemalloc.start()
            try:
                grown.grow_round(np.zeros(CONTROL_SIZE, np.int64))
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]  # of four times the rows; which parts are held at the same time is chance
    assert peaks[1] < 68 * SUM_BLOCK * 8  # less than codes alone would take


@pytest.mark.parametrize("n_held", [0, 2])
def test_no_task_changes_its_part(n_held, tmp_path, monkeypatch):
    def fix(values):
        fixed = values.view()  # codes are read into the same memory again
        fixed.flags.writeable = False
        return fixed

    X, y = draw_table(9000, 4, 0)
    read = RowFiles.read_rows

    def read_fixed(self, *args):
        values = read(self, *args)
        values.flags.writeable = False
        return values

    monkeypatch.setattr(RowFiles, "read_rows", read_fixed)
    update = DiskEngine.read
    monkeypatch.setattr(DiskEngine, "read", lambda self, *args: fix(update(self, *args)))
    params = BoostParams(subsample=0.5, cat_penalty=1.0, min_weight_fraction_leaf=0.01)
    weight = np.arange(9000) % 3 + 0.5
    check_same(tmp_path, X, y, weight, make_loss("log_loss", n_classes=4), params, n_held=n_held)


def test_a_stop_is_heard_between_parts_and_nothing_is_left_behind(tmp_path):
    X, y = draw_table(9000, 2, 0)
    bins = bin_columns(X, None, 255, has_bundles=False)
    loss, control = make_loss("log_loss", n_classes=2), np.zeros(CONTROL_SIZE, np.int64)
    with on_disk(tmp_path, bins, y, None, 1) as (engine, outline, weights):
        grown = LevelBoosting(engine, outline, weights, len(y), loss, BoostParams(), fast.compiled())
        control[CONTROL_STOP] = 1
        with pytest.raises(KeyboardInterrupt):
            grown.grow_round(control)
        assert [path.name for path in tmp_path.iterdir()] == ["codes-0"]  # files of rows have no names


def test_a_full_disk_is_told_in_one_line(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    files = RowFiles(tmp_path, SUM_BLOCK, 10)
    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(OSError, match=r"no space left to write .*: free some, or choose a disk with more room"):
        files.write("y", 0, np.zeros(10))
    files.close()


def test_rows_that_were_cut_off_are_told(tmp_path):
    files = RowFiles(tmp_path, SUM_BLOCK, 10)
    files.write("y", 0, np.arange(10.0))
    np.testing.assert_array_equal(files.view("y")[2:5], [2.0, 3.0, 4.0])
    os.ftruncate(files.files["y"][0].fileno(), 8)
    with pytest.raises(OSError, match="rows that were written there have gone"):
        files.read("y", 0)
    files.close()


@given(st.lists(st.floats(-1e300, 1e300), max_size=40), st.integers(1, 7))
def test_a_sum_in_parts_is_that_of_all_rounded_once(numbers, size):
    total = ExactSum()
    for first in range(0, len(numbers), size):
        total.add(np.array(numbers[first : first + size]))
    assert total.value == math.fsum(numbers)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([*EDGES, 1.5, 1.25, -2.0]), st.integers(1, 3)), min_size=1),
    st.sampled_from([0.5, 0.1, 0.9, 1 / 3]),
    st.integers(1, 9),
    st.booleans(),
)
def test_quantiles_of_rows_in_parts_are_those_of_all(rows, level, size, is_weighted):
    group, x, weight = (np.array(column) for column in zip(*rows, strict=True))
    x = np.asarray(x, np.float64)

    def count(prefixes):
        parts = [slice(first, first + size) for first in range(0, len(x), size)]
        return sum(prefixes.count_rows(x[one], group[one], weight[one] if is_weighted else None) for one in parts)

    found = find_quantiles(count, 3, level)
    for g in range(3):
        mine = group == g
        expected = 0.0
        if mine.any():
            weights = fix_weights(weight[mine].astype(np.float64) if is_weighted else None, int(mine.sum()))
            expected = weighted_quantile(x[mine], weights, level)
        assert found[g] == expected
