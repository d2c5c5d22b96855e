"""What is derived once, though threads want it at the same moment and processes are forked meanwhile."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from spinney import AdaBoostClassifier, GradientBoostingRegressor, _jit
from spinney._cached import derive, once
from spinney.model import weighted_votes
from spinney.tree import forest as forests


class Owner:
    """Derives one thing from another, and counts how often."""

    def __init__(self):
        self.calls = []

    @once
    def first(self):
        self.calls.append("first")
        time.sleep(0.05)  # others come meanwhile
        return object()

    @once
    def second(self):
        self.calls.append("second")
        return [self.first]


def at_once(work, n=8):
    """What threads that begin together say."""
    barrier = threading.Barrier(n)

    def begin(_):
        barrier.wait()
        return work()

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(begin, range(n)))


def test_eight_threads_derive_once():
    owner = Owner()
    found = at_once(lambda: owner.second)
    assert owner.calls == ["second", "first"]
    assert all(one is found[0] for one in found)
    assert isinstance(Owner.first, once)


def test_what_fails_is_tried_again():
    owner = Owner()
    with pytest.raises(ZeroDivisionError):
        derive(owner, "share", lambda: 1 / 0)
    assert derive(owner, "share", lambda: 1 / 2) == 0.5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_a_thread_derives():
    """The thread is not in the child: nobody there would open its lock."""
    owner, is_begun, may_end = Owner(), threading.Event(), threading.Event()

    def make():
        is_begun.set()
        may_end.wait()

    thread = threading.Thread(target=derive, args=(owner, "long", make))
    thread.start()
    is_begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends a child that hangs
        os._exit(0 if derive(owner, "other", lambda: 7) == 7 else 1)
    status = os.waitpid(child, 0)[1]
    may_end.set()
    thread.join()
    assert status == 0


def counted(monkeypatch, module, name):
    """Count the calls of a function of a module."""
    function, calls = getattr(module, name), []

    def call(*args, **options):
        calls.append(args)
        time.sleep(0.05)
        return function(*args, **options)

    monkeypatch.setattr(module, name, call)
    return calls


def test_threads_lay_out_the_bits_of_a_forest_once(monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = GradientBoostingRegressor(n_estimators=8, n_jobs=1, random_state=0).fit(X, X[:, 0] * X[:, 1])
    kernels = _jit.load_compiled()
    fresh = replace(model.forest_)
    calls = counted(monkeypatch, forests, "lay_bits")
    found = at_once(lambda: fresh.bits(X, kernels))
    assert len(calls) == 1
    assert all(bits is found[0] for bits in found)
    state = fresh.__getstate__()
    assert not any("bits" in name for name in state)  # a pickle has the trees only


def fresh(model):
    """Give a fitted AdaBoost another object for the same trees."""
    fitted = model._fitted
    model._fitted = replace(fitted, trees=fitted.trees._replace(forest=replace(fitted.trees.forest)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_adaboost_weighs_its_trees_once(n_classes, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.digitize(X[:, 0] * X[:, 1], np.linspace(-0.3, 0.3, n_classes - 1))
    model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    fresh(model)  # nothing is derived yet
    weighed = counted(monkeypatch, weighted_votes, "replace")
    calls = counted(monkeypatch, weighted_votes, "find_leaf_classes")
    first, *others = at_once(lambda: model.predict_proba(X).tobytes())
    assert all(other == first for other in others)
    predictor = model.predictor()
    assert predictor(X).tobytes() == first
    predictor(X[0])
    assert len(calls) == 1
    assert len(weighed) == (n_classes == 2)
    model.estimator_weights_ = model.estimator_weights_[::-1].copy()  # other weights are not overlooked
    again = model.predict_proba(X)
    fresh(model)
    np.testing.assert_array_equal(model.predict_proba(X), again)
