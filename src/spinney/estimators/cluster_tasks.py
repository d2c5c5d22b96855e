"""What the workers of a cluster do of a fit: pure functions of what they are given.

join_tables ──► rows ──fit_slice──► a model, or a checkpoint after a while
rows ──prepare──► Sown ──grow_range──► trees; ──describe_sown──► what the client needs to finish
"""

from __future__ import annotations

import contextlib
import copy
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import kernels
from spinney._types import CODE, CONTROL_SIZE
from spinney._warnings import collecting
from spinney.ensemble.forest import Grown, Workbench, find_leaves_out_of_bag, leaf_votes, out_of_bag_of
from spinney.estimators.checkpoints import NAME, PausedError, pausing
from spinney.estimators.checks import draw_seed, drawing_from
from spinney.scale.cluster.collections import join_parts, put_together
from spinney.scale.cluster.workers import count_threads
from spinney.table.coding import row_stride
from spinney.tree.structure import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.forest import ForestGrowth, Plan
    from spinney.scale.cluster.collections import Partitions


class Job(NamedTuple):
    """A fit that is to be done elsewhere."""

    estimator: Any  # not fitted, unless a warm start adds to it
    arguments: dict[str, Any]  # with places for tables
    state: Any  # of the generator that seeds are drawn from, where random_state is no number
    seed: int | None = None  # of a checkpoint, that trees go on with
    slice_seconds: float | None = None  # after which a fit ends with a checkpoint; None: it ends when it is done


class FitResult(NamedTuple):
    """A fitted model, or as far as it has come."""

    model: Any  # None: not yet
    saved: bytes | None  # a checkpoint
    state: Any  # of the generator, after the fit
    warnings: list[Any]


class Sown(NamedTuple):
    """Trees about to be grown: bags and codes, and what the estimator knows by now."""

    known: dict[str, Any]  # attributes: columns, classes
    prepared: Any  # PreparedForest or PreparedBags
    state: Any
    warnings: list[Any]


class SentTree(NamedTuple):
    """A tree on its way, with the leaves of its out-of-bag rows instead of their votes."""

    tree: Tree
    oob_leaves: NDArray[np.int32]
    leaf_rows: NDArray[np.int32]


def join_tables(cut: list[Partitions], parts: list[list[Any]]) -> list[Any]:
    """The tables that `compute` would give."""
    for partitions, of in zip(cut, parts, strict=True):
        assert len(partitions.parts) in {0, len(of)}
    return [join_parts(partitions, of) for partitions, of in zip(cut, parts, strict=True)]


def give(tables: list[Any], _: Any) -> list[Any]:
    """Tables for the client."""
    return tables


# --- one worker -------------------------------------------------------------------------------------------------


def fit_slice(tables: list[Any], part: tuple[Job, bytes | None]) -> FitResult:
    """Fit, from where a checkpoint has ended, for a while or to the end."""
    job, saved = part
    model = as_worker(job.estimator)
    arguments = put_together(job.arguments, tables)
    with collecting() as warnings, drawing_from(job.state) as state, contextlib.ExitStack() as stack:
        if job.slice_seconds is None:
            model.fit(**arguments)
            return FitResult(model, None, state(), warnings)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spinney-")))
        asked, model.checkpoint = str(model.checkpoint), folder
        if saved is not None:
            (folder / NAME).write_bytes(saved)
        stack.enter_context(naming_folder(str(folder), asked))
        try:
            with pausing(job.slice_seconds):
                model.fit(**arguments)
        except PausedError:
            return FitResult(None, (folder / NAME).read_bytes(), state(), warnings)
        return FitResult(model, None, state(), warnings)


def call_method(tables: list[Any], part: tuple[Any, str, dict[str, Any]]) -> tuple[Any, list[Any]]:
    """What a method of a fitted model says of tables, and its warnings."""
    estimator, method, arguments = part
    with collecting() as warnings:
        return getattr(as_worker(estimator), method)(**put_together(arguments, tables)), warnings


def as_worker(estimator: Any) -> Any:
    """A copy that uses the threads of this worker, and says nothing."""
    estimator = copy.copy(estimator)
    known = estimator.get_params(deep=False)
    if known.get("n_jobs", 1) is None:
        estimator.n_jobs = count_threads()
    if known.get("verbose"):
        estimator.verbose = 0
    return estimator


@contextlib.contextmanager
def naming_folder(folder: str, asked: str) -> Iterator[None]:
    """Let errors speak of the folder that the user knows."""
    try:
        yield
    except Exception as error:
        error.args = tuple(part.replace(folder, asked) if isinstance(part, str) else part for part in error.args)
        raise


# --- trees by all workers ---------------------------------------------------------------------------------------


def prepare(job: Job, tables: list[Any]) -> Sown:
    """Draw bags and code the rows."""
    model = as_worker(job.estimator)
    with collecting() as warnings, drawing_from(job.state) as state:
        seed = draw_seed(model.random_state)
        seed = seed if job.seed is None else job.seed
        prepared = model._prepare_growth(**put_together(job.arguments, tables), seed=seed)  # noqa: SLF001
        prepared.growth.out_of_bag = None  # votes are added up by the client
        known = model.get_params(deep=False)
        learnt = {name: value for name, value in vars(model).items() if name not in known}
        return Sown(learnt, prepared, state(), warnings)


def describe_sown(sown: Sown, _: Any) -> Sown:
    """All but the codes, for the client."""
    prepared, plan = sown.prepared, sown.prepared.growth.plan
    growth = copy.copy(prepared.growth)
    growth.plan = without_rows(plan)
    keeps_rows = plan.has_oob or plan.keeps_leaf_rows
    changed = {"growth": growth} if keeps_rows else {"growth": growth, "y": prepared.y[:0]}
    return sown._replace(prepared=prepared._replace(**changed))


def without_rows(plan: Plan) -> Plan:
    """A plan without codes, weights and targets of rows."""
    return replace(
        plan,
        codes=plan.codes.with_rows(np.zeros((0, row_stride(plan.codes.n_features)), CODE)),
        **{name: empty(getattr(plan, name), plan.draw.n_rows) for name in ("weights", "target")},
    )


def empty(values: Any, n_rows: int) -> Any:
    """A tuple whose arrays of all rows are of none."""
    arrays = {
        name: array[:0]
        for name, array in values._asdict().items()
        if isinstance(array, np.ndarray) and array.ndim and len(array) == n_rows
    }
    return values._replace(**arrays)


def grow_range(sown: Sown, part: tuple[int, int]) -> list[SentTree]:
    """Grow trees first .. last, by one thread: there are as many tasks as threads."""
    first, last = part
    growth, compiled = take_growth(sown)
    growth.bench = Workbench(growth.plan, compiled)
    control = np.zeros(CONTROL_SIZE, np.int64)
    sent = []
    for t in range(first, last):
        grown = growth.grow(t, compiled, control)
        sent.append(SentTree(grown.tree, find_oob_leaves(growth.plan, t, grown.tree, compiled), grown.leaf_rows))
    return sent


def vote(sown: Sown, part: tuple[int, list[Tree]]) -> list[NDArray[np.int32]]:
    """Leaves of the out-of-bag rows of trees that were grown before."""
    first, trees = part
    growth, compiled = take_growth(sown)
    return [find_oob_leaves(growth.plan, first + i, tree, compiled) for i, tree in enumerate(trees)]


def take_growth(sown: Sown) -> tuple[ForestGrowth, Any]:
    """A growth of one's own, since other threads grow beside, and the kernels for all the work."""
    return copy.copy(sown.prepared.growth), kernels(sown.prepared.seconds)


def find_oob_leaves(plan: Plan, t: int, tree: Tree, compiled: Any) -> NDArray[np.int32]:
    """Leaves of the rows that are not in the bag of tree t; none where nobody asks for them."""
    if not plan.has_oob:
        return np.zeros(0, np.int32)
    return find_leaves_out_of_bag(plan, t, tree, compiled)


def unpack_tree(plan: Plan, t: int, sent: SentTree) -> Grown:
    """A tree as it was grown, votes and all."""
    if not plan.has_oob:
        return Grown(sent.tree, np.zeros(0, np.int32), np.zeros((0, 1)), sent.leaf_rows)
    votes = leaf_votes(sent.tree, sent.oob_leaves, is_hard=plan.is_hard, shift=plan.shift)
    return Grown(sent.tree, out_of_bag_of(plan, t), votes, sent.leaf_rows)
