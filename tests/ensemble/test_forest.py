"""Trees of a forest that use each other's memory are those that are grown alone."""

import numpy as np
import pytest

from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from spinney._jit import interpreted
from spinney._types import CONTROL_SIZE
from spinney.ensemble import forest as module
from spinney.ensemble.forest import ForestGrowth, Workbench, grow_one, take_codes
from spinney.ensemble.sampling import draw_key, word

ARRAYS = ("hot", "subsets", "n_rows", "weight", "impurity", "distributions")


@pytest.mark.parametrize("seed", [0, 7, 2**63 + 5, 2**64 - 1])
@pytest.mark.parametrize("parts", [(), (3,), (0x47524F57, 12), (1, 2, 2**40)])
def test_a_key_is_folded_as_the_kernels_fold(seed, parts):
    key, rng = word(seed), interpreted().common.rng
    with np.errstate(over="ignore"):
        for part in parts:
            key = rng.fold(key, word(part))
    assert draw_key(seed, *parts) == int(key) >> 1


@pytest.mark.parametrize("drawn", [[0, 1, 2, 3, 4], [1, 4], [0]])
@pytest.mark.parametrize("has_room", [False, True])
def test_codes_of_a_bag_are_a_copy(drawn, has_room):
    """Also where every row is drawn: rows are moved as a tree grows."""
    codes = np.arange(20, dtype=np.uint16).reshape(5, 4)
    held = np.zeros((7, 4), np.uint16)[:5] if has_room else None
    taken = take_codes(codes, np.array(drawn), held)
    np.testing.assert_array_equal(taken, codes[drawn])
    assert not np.shares_memory(taken, codes)
    assert not has_room or np.shares_memory(taken, held)


def draw_table(n_classes):
    generator = np.random.default_rng(3)
    X = generator.integers(0, 12, (90, 4)).astype(float)
    X[generator.random(X.shape) < 0.05] = np.nan
    score = np.nan_to_num(X[:, 0]) + generator.normal(size=90)
    y = score if n_classes == 0 else np.digitize(score, [3, 7][: n_classes - 1])
    return X, y


@pytest.mark.parametrize(
    ("estimator", "n_classes", "params"),
    [
        (RandomForestClassifier, 2, {}),
        (RandomForestClassifier, 3, {"bootstrap": "poisson", "criterion": "entropy"}),
        (RandomForestClassifier, 2, {"max_leaf_nodes": 6}),
        (RandomForestRegressor, 0, {"bootstrap": "poisson"}),
        (RandomForestRegressor, 0, {"max_features": 2, "criterion": "absolute_error"}),
        (ExtraTreesClassifier, 3, {}),
        (ExtraTreesRegressor, 0, {"bootstrap": True}),
    ],
)
def test_trees_do_not_depend_on_whose_memory_they_use(estimator, n_classes, params, monkeypatch):
    growths, run = [], ForestGrowth.run

    def keep(growth, first, n_trees, kernels, *args, **options):
        growths.append((growth, kernels))
        return run(growth, first, n_trees, kernels, *args, **options)

    monkeypatch.setattr(ForestGrowth, "run", keep)
    X, y = draw_table(n_classes)
    estimator(n_estimators=2, random_state=0, **params).fit(X, y)
    [(growth, kernels)] = growths
    control, bench = np.zeros(CONTROL_SIZE, np.int64), Workbench(growth.plan, kernels)
    made, held = [], module.Growth.allocate
    monkeypatch.setattr(module.Growth, "allocate", lambda self, *args: made.append(1) or held(self, *args))
    n_made = 0
    for number in range(12):
        alone = grow_one(growth.plan, number, kernels, control).tree
        before = len(made)
        shared = grow_one(growth.plan, number, kernels, control, bench=bench).tree
        n_made += len(made) - before
        for name in ARRAYS:
            assert np.array_equal(getattr(alone, name), getattr(shared, name)), (number, name)
    is_special = params.get("criterion") == "absolute_error"  # its memory depends on the rows
    assert n_made == 12 if is_special else 1 <= n_made < 8
