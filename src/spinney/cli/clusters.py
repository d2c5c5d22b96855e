"""`spinney train --dask` and `--workers`: fits by the workers of a cluster, which read the rows themselves."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, NamedTuple

import click

from spinney.cli.group import Problem
from spinney.cli.methods import find_method, make_estimator
from spinney.cli.scans import FitFacts, ScanOptions, list_names, save_and_tell

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECT_SECONDS = 20
LOST_WORKER = "10 minutes"  # Dask looks 15 s after a death, and gives a worker up that has died again just then

dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Fit by the workers of the Dask cluster whose scheduler is there, such as tcp://host:8786.",
)
workers_option = click.option(
    "--workers", metavar="N", type=click.IntRange(1), help="Fit by so many processes of this machine, by Dask."
)


class ClusterOptions(NamedTuple):
    """Which cluster a fit is done by."""

    address: str | None
    n_workers: int | None

    @property
    def is_wanted(self) -> bool:
        """Whether any was asked for."""
        return self.address is not None or self.n_workers is not None


def train_on_cluster(options: ScanOptions, cluster: ClusterOptions, *, as_json: bool) -> None:
    """Fit a method to files that workers read, and save the model."""
    if cluster.address is not None and cluster.n_workers is not None:
        raise Problem("--dask names a cluster, and --workers starts one: give one of them")
    if options.memory is not None:
        raise Problem("--memory is of fits on this machine, and workers have limits of their own: leave it out")
    if options.target is None:
        raise Problem(f"--target is missing: which column of {options.data} is to be predicted?")
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise Problem("--dask and --workers need Dask: pip install 'spinney[dask]'") from None
    import pyarrow as pa

    from spinney.scale.cluster.file_rows import FileRows, join_pieces, list_pieces, read_names, read_piece
    from spinney.study.tables import looks_continuous

    pieces = list_pieces(options.data)
    names, drop = read_names(pieces[0]), list_names(options.drop)
    missing = [name for name in (options.target, *drop) if name not in names]
    if missing:
        raise Problem(f"{missing[0]!r} is not a column of {options.data}. Its columns: {', '.join(names[:20])}")
    features = [name for name in names if name != options.target and name not in drop]
    start = time.perf_counter()
    y = join_pieces([read_piece(piece, [options.target]) for piece in pieces], is_target=True)
    is_regression = options.task == "regression"
    if options.task == "auto":
        is_regression = y.dtype.kind not in "OUS" and looks_continuous(pa.chunked_array([pa.array(y)]))
    cls = find_method(options.method, is_regression=is_regression, is_told=options.task != "auto")
    estimator = make_estimator(cls, options.params)
    with joining(cluster):
        estimator.fit(FileRows(pieces, features), FileRows(pieces, [options.target], is_target=True))
    known = FitFacts(options.target, len(y), len(features), time.perf_counter() - start, is_regression)
    save_and_tell(options.out, estimator, known, as_json=as_json)


@contextlib.contextmanager
def joining(cluster: ClusterOptions) -> Iterator[None]:
    """Be a client of a cluster; one of processes here is there for as long as the fit."""
    import dask
    from distributed import Client, LocalCluster

    from spinney._threads import n_cores

    if cluster.address is not None:
        try:
            client = Client(cluster.address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise Problem(f"--dask {cluster.address}: there is no scheduler ({error})") from None
        with client:
            yield
        return
    n_workers = cluster.n_workers or 1
    n_threads = max(n_cores() // n_workers, 1)
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": LOST_WORKER}),
        LocalCluster(
            n_workers=n_workers, threads_per_worker=n_threads, dashboard_address=":0", silence_logs=logging.ERROR
        ) as started,
        Client(started),
    ):
        yield
