"""Locks of Python that kernels take and open, compiled or not."""

import threading

import pytest

from spinney import _jit
from spinney._jit.locks import free_lock, lock_calls, make_lock, open_lock, take_lock

LIMIT = 60_000_000  # microseconds; every test ends long before


def take(call, lock, microseconds):
    return take_lock(call, lock, microseconds)


def let_go(call, lock):
    open_lock(call, lock)


def compiled(function):
    return _jit.door(function)


@pytest.fixture
def lock():
    made = make_lock()
    yield made
    free_lock(made)


@pytest.mark.parametrize("dress", [pytest.param(compiled, marks=pytest.mark.compiled(reason="compiles")), lambda f: f])
def test_a_lock_is_taken_once_for_each_time_it_is_opened(lock, dress):
    calls, take_it, open_it = lock_calls(), dress(take), dress(let_go)
    assert take_it(calls.take, lock, 0) == 0  # it is made taken
    for _ in range(2):
        open_it(calls.open, lock)
        assert take_it(calls.take, lock, 0) == 1
        assert take_it(calls.take, lock, 1000) == 0


@pytest.mark.parametrize("dress", [pytest.param(compiled, marks=pytest.mark.compiled(reason="compiles")), lambda f: f])
def test_who_waits_for_a_lock_goes_on_when_another_thread_opens_it(lock, dress):
    calls, take_it, answers = lock_calls(), dress(take), []
    take_it(calls.take, lock, 0)  # compiles
    thread = threading.Thread(target=lambda: answers.append(take_it(calls.take, lock, LIMIT)))
    thread.start()
    assert answers == []
    open_lock(calls.open, lock)
    thread.join(60)
    assert answers == [1]
