"""Fits of Dask collections: the same model as of the tables that `compute` gives, to the byte.

arguments ──take_apart──► partitions, measured ──choose_way──► one:   rows ──fit_slice──► the model
├─► trees: codes ──grow_range──► trees ──► the model
└─► levels: codes of parts ──work──► sums ──► the model (forests: and rows below the top of a tree ──► pieces of it)
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from spinney._files import replacing
from spinney._warnings import warn
from spinney.ensemble.out_of_bag import OutOfBagSums
from spinney.estimators.checkpoints import NAME, SECONDS, open_checkpoint, open_state
from spinney.estimators.checks import all_or_nothing, set_state, take_state
from spinney.estimators.cluster_rows import ClusterRows, Spread, take_heads
from spinney.estimators.cluster_tasks import (
    FitResult,
    Job,
    SentTree,
    Sown,
    call_method,
    describe_sown,
    fit_slice,
    give,
    grow_range,
    join_tables,
    prepare,
    unpack_tree,
    vote,
)
from spinney.estimators.forest_checkpoint import check_leaf_rows, take_trees
from spinney.estimators.parameters import parameter
from spinney.model.container import read
from spinney.scale.cluster.choice import LEVELS, ONE, TREES, choose_way, refuse_beyond
from spinney.scale.cluster.cluster_line import ClusterLine
from spinney.scale.cluster.collections import Place, compute_here, cut, measure_part, put_together, take_apart
from spinney.scale.cluster.dask_engine import DaskEngine, Part, find_client
from spinney.scale.cluster.file_rows import spread_scan
from spinney.scale.cluster.level_parts import find_address
from spinney.scale.cluster.row_ranges import Joining
from spinney.scale.scan import Scan
from spinney.tree.forest import ForestParts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spinney.ensemble.forest import ForestGrowth
    from spinney.estimators.checkpoints import Checkpoint
    from spinney.scale.cluster.choice import ClusterPlan
    from spinney.scale.cluster.collections import Partitions
    from spinney.scale.cluster.engine import Engine, Held
    from spinney.tree.forest import Forest

TASK_SECONDS = 1.0  # that a task takes at least, where trees are quick: a task costs the scheduler a millisecond
MOST_TREES = 64  # of a task
TRIMMED_BYTES = 32 << 20  # of a table, from which on workers give memory back after a fit
NOT_APART = "its trees are not grown apart from each other"
VOTED = 8  # trees of a checkpoint that are sent back to vote, at once


class Opened(NamedTuple):
    """What a fit was given, on the cluster."""

    arguments: dict[str, Any]  # with places for tables
    parts: list[list[Part]]  # of each table
    rows: Held  # the tables, joined
    plan: ClusterPlan
    pieces: Sequence[Partitions] = ()  # how the partitions of each are joined
    lengths: Sequence[list[int]] = ()  # rows of them


def fit_collections(estimator: Any, fit: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Fit an estimator to collections; fit: its method for tables in memory."""
    with_places, collections = take_apart(arguments)
    client = find_client()
    if client is None:
        return fit(estimator, **put_together(with_places, compute_here(collections.values())))
    with all_or_nothing(estimator), contextlib.ExitStack() as stack, DaskEngine(client) as engine:
        estimator._validate_params()  # noqa: SLF001
        engine.check_workers()
        opened = open_collections(engine, estimator, with_places, collections)
        refuse_beyond(opened.plan, type(estimator).__name__)
        state = take_state(getattr(estimator, "random_state", 0))
        if opened.plan.table_bytes > TRIMMED_BYTES:
            stack.callback(engine.trim)
        end = DOERS[opened.plan.way](engine, estimator, opened, state)
        set_state(getattr(estimator, "random_state", 0), end)
        return estimator


def spread_files(arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments with what workers read of the files of a scan; None: the scan is read here, or there is no client."""
    if arguments["X"].memory is not None:  # a limit of this machine, whatever client there is
        return None
    if find_client() is None or find_address() is not None:  # which would wait for itself
        return None
    if any(arguments.get(name) is not None for name in ("y", "sample_weight", "groups")):
        return None  # what is given twice is told where scans are read
    files = spread_scan(arguments["X"])
    return None if files is None else {**arguments, **files}


def plan_fit(estimator: Any, X: Any, y: Any = None, **arguments: Any) -> ClusterPlan:
    """What `fit` will do with Dask collections on the cluster of the current client, before it does it.

    The partitions are computed to be measured: `persist` them first where that takes long.

    Parameters
    ----------
    estimator : estimator of this library
        Not fitted; its class and parameters count.
    X, y : Dask DataFrame, Series or Array
        Or X a scan of files that workers read.
    **arguments
        What else `fit` is to be given.

    Returns
    -------
    ClusterPlan
        `print` shows it: which way is gone, by how many workers, and what memory the busiest one takes.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client, LocalCluster
    >>> from spinney import RandomForestRegressor, plan_fit
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(250, 3))
    >>> cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")
    >>> with cluster, Client(cluster):
    ...     plan = plan_fit(RandomForestRegressor(n_estimators=10), X, X[:, 0])
    >>> plan.way, plan.n_rows, plan.n_parts
    ('one', 1000, 4)
    """
    given = {"X": X, "y": y, **arguments}
    if isinstance(X, Scan):
        given = spread_files(given) or given
    with_places, collections = take_apart(given)
    if "X" not in collections:
        raise TypeError(f"X is no Dask collection but {type(X).__name__}: a scan has a plan of its own, scan(...).plan")
    client = find_client()
    if client is None:
        raise ValueError(
            "there is no Dask client, and fit would compute the collections here: make a Client(...) first"
        )
    with DaskEngine(client) as engine:
        return open_collections(engine, estimator, with_places, collections).plan


def open_collections(
    engine: DaskEngine, estimator: Any, arguments: dict[str, Any], collections: dict[str, Any]
) -> Opened:
    """Let workers compute the partitions, and see how large they are."""
    import dask

    pieces = [cut(collection, name) for name, collection in collections.items()]
    parts = [[Part(delayed) for delayed in of.parts] for of in pieces]
    engine.load([part for of in parts for part in of])
    sizes: list[list[Any]] = [[None] * len(of) for of in parts]
    places = {id(part): (i, j) for i, of in enumerate(parts) for j, part in enumerate(of)}
    for part, size in engine.map("size", measure_part, (part for of in parts for part in of), is_short=True):
        i, j = places[id(part)]
        sizes[i][j] = size
    first = list(collections).index("X") if "X" in collections else 0
    apart = None if can_grow_apart(estimator, arguments) else NOT_APART
    known = {TREES: apart, LEVELS: find_spread_gap(estimator, arguments, count_outputs(arguments.get("y"), sizes))}
    forced = dask.config.get("spinney.plan", None)
    ordered = [sizes[first], *(of for i, of in enumerate(sizes) if i != first)]
    plan = choose_way(estimator, ordered, engine.list_workers(), gaps=known, forced=forced)
    joined = [of._replace(parts=[]) for of in pieces]  # how, without what
    lengths = [[size.n_rows for size in of] for of in sizes]
    rows = engine.hold("rows", join_tables, joined, parts)
    rows.is_large = True  # the plan counts on the largest worker
    return Opened(arguments, parts, rows, plan, joined, lengths)


def can_grow_apart(estimator: Any, arguments: dict[str, Any]) -> bool:
    """Whether trees can be grown elsewhere, each by itself."""
    has_growth = getattr(estimator, "_has_growth", None)
    if has_growth is None or not has_growth():
        return False
    known = {"X", "y", "sample_weight", "groups", "strata"}
    return set(arguments) <= known and estimator._find_old(warm_start=estimator.warm_start) is None  # noqa: SLF001


def count_outputs(y: Any, sizes: list[list[Any]]) -> int:
    """Columns of y; sizes: of the partitions of each table."""
    if isinstance(y, Place):
        return max((size.n_columns for size in sizes[y.number]), default=1)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return int(shape[1]) if len(shape) > 1 else 1


def find_spread_gap(estimator: Any, arguments: dict[str, Any], n_outputs: int = 1) -> str | None:
    """What keeps an estimator from growing on rows that are spread over workers, as a message has it; None: nothing."""
    growing = estimator._level_growing()  # noqa: SLF001
    if growing is None or not hasattr(estimator, "_fit_spread"):
        return f"{type(estimator).__name__} needs all rows at one worker"
    if not isinstance(arguments.get("X"), Place):
        return "X is not on the cluster"
    init = parameter(estimator, "init", None)
    gaps = {
        f"init={type(init).__name__}": init is not None and not isinstance(init, str),
        "keep_members=True": bool(parameter(estimator, "keep_members", False)),
        "missing='surrogate'": parameter(estimator, "missing", None) == "surrogate",
        "leaf_model='linear'": parameter(estimator, "leaf_model", None) == "linear",
        "init_score": "init_score" in arguments,
        "trace=True": bool(arguments.get("trace")),
        "y of several columns": n_outputs > 1,
    }
    gap = growing.gap or next((name for name, is_gap in gaps.items() if is_gap), None)
    return None if gap is None else f"{gap} needs all rows at one worker"


def bare(estimator: Any) -> Any:
    """The estimator as it goes to workers: without a model, unless a warm start adds to it."""
    return estimator if getattr(estimator, "warm_start", False) else clone(estimator)


def take_model(estimator: Any, attributes: dict[str, Any]) -> None:
    """Take the fitted attributes of a copy; parameters are the estimator's own."""
    parameters = estimator.get_params(deep=False)
    for name in vars(estimator).keys() - parameters.keys():
        delattr(estimator, name)
    vars(estimator).update({name: value for name, value in attributes.items() if name not in parameters})


def call_at_one(estimator: Any, method: str, arguments: dict[str, Any]) -> Any:
    """What a method of a fitted model says of collections: the same as of the tables that `compute` gives."""
    with_places, collections = take_apart(arguments)
    client = find_client()
    if client is None:
        return getattr(estimator, method)(**put_together(with_places, compute_here(collections.values())))
    with DaskEngine(client) as engine:
        engine.check_workers()
        pieces = [cut(collection, name) for name, collection in collections.items()]
        parts = [[Part(delayed) for delayed in of.parts] for of in pieces]
        rows = engine.hold("rows", join_tables, [of._replace(parts=[]) for of in pieces], parts)
        found, warnings = engine.run(method, call_method, (estimator, method, with_places), rows)
    repeat(warnings)
    return found


# --- one worker -------------------------------------------------------------------------------------------------


def fit_at_one(engine: Engine, estimator: Any, opened: Opened, state: Any) -> Any:
    """Fit on one worker; the state of the generator after it."""
    is_eager = bool(getattr(estimator, "verbose", False))
    with ClusterLine(engine, None, sum(next(iter(opened.lengths), ())), is_eager=is_eager) as line:
        engine.on_idle = line.show
        try:
            result = run_at_one(engine, estimator, opened, state)
        finally:
            engine.on_idle = None
    take_model(estimator, vars(result.model))
    repeat(result.warnings)
    return result.state


def run_at_one(engine: Engine, estimator: Any, opened: Opened, state: Any) -> FitResult:
    """The model that one worker fits, after as many slices as it takes."""
    folder = getattr(estimator, "checkpoint", None)
    if folder is None:
        job = Job(bare(estimator), opened.arguments, state)
        whole: FitResult = engine.run("fit", fit_slice, (job, None), opened.rows)
        return whole
    if getattr(estimator, "max_time", None) is not None:
        raise ValueError("max_time and checkpoint do not go together on a cluster: set one of them to None")
    kept = KeptFile(Path(folder))
    saved = kept.find()
    while True:
        job = Job(bare(estimator), opened.arguments, state, slice_seconds=SECONDS)
        result: FitResult = engine.run("fit", fit_slice, (job, saved), opened.rows)
        if result.model is not None:
            kept.remove()
            return result
        saved = result.saved
        assert saved is not None
        kept.write(saved)


class KeptFile:
    """The checkpoint of a fit whose trees are grown elsewhere, as a file here.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"checkpoint={str(folder)!r} is a file: give a folder")
        self.folder, self.path = folder, folder / NAME
        self.has_made_folder = False

    def find(self) -> bytes | None:
        """What an earlier fit has left."""
        return self.path.read_bytes() if self.path.exists() else None

    def write(self, content: bytes) -> None:
        """Keep what a worker has sent; the fit goes on without where that cannot be."""
        try:
            self.has_made_folder = self.has_made_folder or not self.folder.exists()
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as file:
                file.write(content)
        except OSError as error:
            warn(f"no checkpoint is written, and the fit goes on: {error}")

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        self.path.unlink(missing_ok=True)
        if self.has_made_folder:
            with contextlib.suppress(OSError):
                self.folder.rmdir()


def repeat(messages: list[Any]) -> None:
    """Give the warnings of a worker at the user's line."""
    for message in messages:
        warn(message)


# --- rows spread over all workers -------------------------------------------------------------------------------


def fit_on_parts(engine: Engine, estimator: Any, opened: Opened, state: Any) -> Any:
    """Grow trees on rows that are spread over workers; the state of the generator after it."""
    del state
    spreads = {name: spread(engine, opened, opened.arguments.get(name)) for name in ("X", "y", "sample_weight")}
    X, y, weight = spreads.values()
    assert X is not None
    for one in (y, weight):
        if one is not None and one.n_rows != X.n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {X.n_rows} rows, "
                f"{'y' if one is y else 'sample_weight'} has {one.n_rows}."
            )
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    here = {name: value for name, value in opened.arguments.items() if name not in spreads}
    others = put_together(here, Tables(engine, opened))
    estimator._fit_spread(ClusterRows(engine, X, y, weight), others)  # noqa: SLF001
    return take_state(getattr(estimator, "random_state", 0))


def spread(engine: Engine, opened: Opened, given: Any) -> Spread | None:
    """Where the rows of an argument are; None: there is none."""
    if given is None:
        return None
    if not isinstance(given, Place):
        here = given if hasattr(given, "iloc") else np.asarray(given)
        return Spread([len(here)], None, [], here)
    parts = opened.parts[given.number]
    joining = Joining(opened.pieces[given.number], take_heads(engine, parts))
    return Spread(opened.lengths[given.number], joining, parts)


class Tables:
    """Tables of collections here, each computed when it is asked for: rows to evaluate on are the client's."""

    def __init__(self, engine: Engine, opened: Opened) -> None:
        self.engine, self.opened = engine, opened

    def __getitem__(self, number: int) -> Any:
        """Table number of the arguments."""
        held = self.engine.hold("evaluated", join_tables, [self.opened.pieces[number]], [self.opened.parts[number]])
        (table,) = self.engine.run("evaluated", give, None, held)
        self.engine.forget([held])
        return table


# --- trees by all workers ---------------------------------------------------------------------------------------


def fit_by_trees(engine: Engine, estimator: Any, opened: Opened, state: Any) -> Any:
    """Grow whole trees on all workers; the state of the generator after it."""
    job = Job(bare(estimator), opened.arguments, state, seed=peek_seed(estimator.checkpoint))
    sown = engine.hold("codes", prepare, job, opened.rows)
    told: Sown = engine.run("plan", describe_sown, None, sown)
    engine.release([opened.rows])  # codes are all that is left to be done with
    prepared = told.prepared
    growth: ForestGrowth = prepared.growth
    if growth.plan.has_oob:
        plan = growth.plan
        growth.out_of_bag = OutOfBagSums(prepared.y, plan.target.n_classes, plan.has_weight, plan.shift)
    checkpoint = open_checkpoint(estimator, growth.plan.seed, None, lambda: prepared.bag_data)
    n_rows, is_eager = growth.plan.draw.n_rows, bool(estimator.verbose)
    with ClusterLine(engine, prepared.n_trees, n_rows, is_eager=is_eager) as line:
        engine.on_idle = line.show
        engine.compile_first()
        forest = grow_apart(engine, sown, prepared, checkpoint, line.show)
    take_model(estimator, told.known)
    repeat(told.warnings)
    estimator._finish_growth(prepared, forest)  # noqa: SLF001
    if checkpoint is not None:
        checkpoint.remove()
    return told.state


def peek_seed(folder: Any) -> int | None:
    """The seed of a checkpoint that is there, whether it is of this fit or not: what it is of is seen later."""
    path = None if folder is None else Path(folder) / NAME
    if path is None or not path.exists():
        return None
    with contextlib.suppress(Exception):  # of a damaged file, which `open_checkpoint` refuses
        return int(open_state(read(path, is_mapped=False))["seed"])
    return None


def grow_apart(
    engine: Engine, sown: Held, prepared: Any, checkpoint: Checkpoint | None, show: Callable[[int], None]
) -> Forest:
    """All trees, by an engine; taken in their order, whatever order they come in."""
    growth, n_trees = prepared.growth, prepared.n_trees
    growth.parts = ForestParts(n_trees)
    with contextlib.ExitStack() as stack:
        n_taken = 0
        if checkpoint is not None:
            n_taken = begin(engine, sown, prepared, checkpoint)
            growth.on_tree = checkpoint.note
            stack.enter_context(checkpoint.saving(lambda: take_trees(growth)))
        pace = Pace(n_taken, n_trees)
        come: dict[int, Any] = {}
        for (first, _), trees in engine.map("tree", grow_range, pace.ranges(), sown):
            pace.note(first, len(trees))
            come.update({first + i: tree for i, tree in enumerate(trees)})
            while n_taken in come:
                growth.add(unpack_tree(growth.plan, n_taken, come.pop(n_taken)))
                n_taken += 1
            show(n_taken)
    return growth.parts.join(growth.legend)


def begin(engine: Engine, sown: Held, prepared: Any, checkpoint: Checkpoint) -> int:
    """Take up the trees of a checkpoint; their out-of-bag votes are cast again, by workers."""
    growth, plan = prepared.growth, prepared.growth.plan
    n_found = checkpoint.check_trees(prepared.schema, plan.target.n_classes, prepared.n_trees)
    if checkpoint.found is None:
        return 0
    forest, more = checkpoint.found
    with checkpoint.trusting():
        growth.leaf_rows = list(check_leaf_rows(more, n_found if plan.keeps_leaf_rows else 0, plan.draw.n_rows))
    for tree in forest:
        growth.parts.add(tree)
    if growth.out_of_bag is not None:
        parts = ((first, list(forest)[first : first + VOTED]) for first in range(0, n_found, VOTED))
        leaves = {first: found for (first, _), found in engine.map("vote", vote, parts, sown)}
        for first in sorted(leaves):
            for t, leaf in enumerate(leaves[first], first):
                grown = unpack_tree(plan, t, SentTree(forest[t], leaf, leaf[:0]))
                growth.out_of_bag.add(grown.oob_rows, grown.oob_votes)
    return n_found


class Pace:
    """Ranges of trees for tasks that are neither too short nor so long that workers wait for the last.

    Parameters
    ----------
    first, last : int
        Trees to be grown.
    """

    def __init__(self, first: int, last: int) -> None:
        self.next, self.last = first, last
        self.n_done, self.begun = 0, time.monotonic()
        self.n_at_once = 1
        self.started: dict[int, float] = {}

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges, as they are asked for."""
        while self.next < self.last:
            first, self.next = self.next, min(self.next + self.n_at_once, self.last)
            self.started[first] = time.monotonic()
            yield first, self.next

    def note(self, first: int, n_trees: int) -> None:
        """Learn from a task how long trees take."""
        seconds = max(time.monotonic() - self.started.pop(first, 0.0), 1e-3)
        n_left = self.last - self.next
        wanted = int(n_trees * TASK_SECONDS / seconds)
        self.n_at_once = max(1, min(wanted, MOST_TREES, n_left // 16))


DOERS = {ONE: fit_at_one, TREES: fit_by_trees, LEVELS: fit_on_parts}
