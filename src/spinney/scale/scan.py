"""`spinney.scan`: an object that stands for a table, which is read when a fit asks for it, in blocks of rows."""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from spinney.scale.addresses import is_address
from spinney.scale.column_writing import make_column, write_columns
from spinney.scale.faults import writing
from spinney.scale.layout import BLOCK_ROWS, FEATURE, GROUPS, TARGET, WEIGHT, is_store
from spinney.scale.memory import read_bytes
from spinney.scale.plan import FitPlan, make_plan
from spinney.scale.spilling import is_lazy, is_read_once, naming, spill_batches, spill_files, spill_lazy
from spinney.scale.store import Store, refuse_array
from spinney.scale.work_folders import WorkFolder, open_temporary
from spinney.table.prediction_batches import BLOCK_BYTES
from spinney.table.sources import list_files, open_source, stamp_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spinney.table.sources import Source, Stamp


def scan(
    source: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    groups: str | None = None,
    drop: Sequence[str] = (),
    memory: int | str | None = None,
) -> Scan | Store:
    """Stand for a table that need not fit into memory, and that the ordinary `fit` takes in place of X and y.

    Nothing is read until a fit or `store` asks for it. Then the rows are read once, in blocks, and their columns are
    written to a folder: a temporary one (`TMPDIR` says where), or the one that `store` names. The model is that of the
    same table in memory, to the byte. Where there is a client of Dask, and no limit of memory, its workers read Parquet
    and Arrow files themselves, and fit.

    Parameters
    ----------
    source : path, list of paths, frame, Arrow stream, or iterator of frames
        A Parquet, CSV (also gzipped) or Arrow file, a folder of such files, or a pattern, ``"clicks/*.parquet"``.
        Files go by their names, numbers in them as numbers (part-2 before part-10), those of a list as they stand;
        rows as in the files. Or anything with ``__arrow_c_stream__`` (frames of polars and pandas, tables and readers
        of pyarrow, relations of DuckDB), a lazy frame of polars, an iterator of frames or batches. Or an address,
        ``"s3://clicks/*.parquet"``, where fsspec is installed: its files are copied to disk first. Or the folder of a
        store, which knows the other columns itself.
    target : str, optional
        The column to predict.
    weight, groups : str, optional
        Columns of row weights, and of groups that are drawn together into the bags of forests.
    drop : sequence of str
        Columns to leave out.
    memory : int or str, optional
        Bytes that a fit may take, such as ``"4GB"``: one that needs more is refused before it reads. None: no limit.

    Returns
    -------
    Scan, or Store for the folder of one

    Examples
    --------
    >>> import pyarrow as pa
    >>> import spinney
    >>> frame = pa.table({"size": [1.0, 2.0, 3.0, 4.0], "price": [10.0, 20.0, 30.0, 40.0]})
    >>> train = spinney.scan(frame, target="price")
    >>> train
    <scan of the Table, target 'price'>
    >>> spinney.CARTRegressor().fit(train).predict([[3.2]])
    array([30.])
    """
    limit = read_bytes(memory)
    if isinstance(source, list | tuple) and not source:
        raise ValueError(f"source={source!r} names no files: give at least one path")
    if isinstance(source, str | os.PathLike) and is_store(Path(source)):
        given = {"target": target, "weight": weight, "groups": groups, "drop": drop or None}
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise ValueError(f"{os.fspath(source)} is a store, which has its columns: leave out {', '.join(extra)}")
        return Store(source, limit)
    return Scan(source, target, weight=weight, groups=groups, drop=drop, memory=limit)


class Scan:
    """A table that is read when it is asked for; what `scan` gives.

    Attributes
    ----------
    target, weight, groups : str or None
        Columns by their role.
    drop : tuple of str
    memory : int or None
        Bytes that a fit may take.
    """

    def __init__(
        self,
        source: Any,
        target: str | None = None,
        *,
        weight: str | None = None,
        groups: str | None = None,
        drop: Sequence[str] = (),
        memory: int | None = None,
        block_rows: int = BLOCK_ROWS,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        if isinstance(drop, str):
            drop = (drop,)
        self.target, self.weight, self.groups, self.drop = target, weight, groups, tuple(drop)
        self.memory = memory
        self._given = source
        self._block_rows, self._block_bytes = block_rows, block_bytes
        self._spilled: Store | None = None
        self._stamps: dict[str, Stamp] = {}  # of the files that were read

    def __repr__(self) -> str:
        given = self._given
        shown = repr(os.fspath(given)) if isinstance(given, str | os.PathLike) else f"the {type(given).__name__}"
        target = "no target" if self.target is None else f"target {self.target!r}"
        return f"<scan of {shown}, {target}>"

    def __getstate__(self) -> dict[str, Any]:
        """What it stands for; the temporary folder of this process stays behind."""
        if is_read_once(self._given):
            raise TypeError(
                f"{self!r} can be read once, and so not be pickled: keep its rows by store(path), and pickle that"
            )
        return {**vars(self), "_spilled": None, "_stamps": {}}

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        refuse_array(self)

    def plan(self, estimator: Any) -> FitPlan:
        """What a fit will read, write and hold, before it does: `print` it.

        Parameters
        ----------
        estimator : estimator of this library
            Not fitted; its class counts.

        Returns
        -------
        FitPlan
            How many rows there are, and what follows from it, is known where the files say it (Parquet), and once the
            scan has been read.
        """
        if self._spilled is not None:
            return self._spilled.plan(estimator)
        source = self._peek()
        if source is None:
            return FitPlan(None, 0, None, None, 1, None, self.memory)
        columns = [
            make_column(name, role, source.types[name]).column for name, role in self.assign_roles(source.names).items()
        ]
        return make_plan(estimator, columns, source.n_rows, source.n_bytes, self.memory)

    def _peek(self) -> Source | None:
        """The source without reading its rows; None where that cannot be."""
        given = self._given
        if is_address(given):
            return None
        if isinstance(given, str | os.PathLike):
            is_text = any(path.name.lower().endswith((".csv", ".csv.gz")) for path in list_files(given))
            return None if is_text else open_source(given)
        return open_source(given) if hasattr(given, "num_rows") and hasattr(given, "__arrow_c_stream__") else None

    # --- reading ---

    def store(self, path: str | os.PathLike[str]) -> Store:
        """Read the table and keep it in a folder, for this and every later fit.

        Parameters
        ----------
        path : path
            A new folder, by custom with the suffix `.codes`. It is there as a whole or not at all.

        Returns
        -------
        Store
            What `fit` takes in place of X and y; `spinney.scan(path)` opens it again. Codes that a fit makes of the
            columns are kept in the folder too, where it can be written to.
        """
        place = Path(path)
        if place.exists():
            raise FileExistsError(f"{place} is there already: remove it, or give another path")
        if not place.absolute().parent.is_dir():
            raise FileNotFoundError(f"there is no folder {place.parent} to make {place.name} in")
        with writing(place, "choose a disk with more room"), WorkFolder(place.parent) as beside:
            self._write(beside.path)
            beside.move(place)
        return Store(place, self.memory)

    def read(self) -> Store:
        """The table on disk, in a temporary folder that goes when this object goes.

        It is read once; files that have changed since are refused, since a fit would not know them.
        """
        self.refuse_changed()
        if self._spilled is None:
            with writing(Path(tempfile.gettempdir()), "set TMPDIR to a folder on a disk with more room"):
                folder = open_temporary()
                try:
                    self._write(folder.path)
                    self._spilled = Store(folder.path, self.memory, home=folder)
                except BaseException:
                    folder.remove()
                    raise
        return self._spilled

    def _write(self, folder: Path) -> None:
        """Write the columns of the source to a folder; those that were read already are copied."""
        self.refuse_changed()
        if self._spilled is not None:
            for path in self._spilled.path.iterdir():
                shutil.copyfile(path, folder / path.name)
            return
        with self._open(folder) as source:
            write_columns(source, self.assign_roles(source.names), folder, self._block_rows)
            if not is_address(self._given):  # whose copies go
                self._stamps = {part.name: part.stamp for part in source.parts if part.stamp is not None}

    def refuse_changed(self) -> None:
        """Refuse files that are not as they were when they were read, or are more or fewer."""
        if self._spilled is None or not self._stamps or is_read_once(self._given):
            return
        given = self._given if isinstance(self._given, list | tuple) else [self._given]
        now = {str(path): path for one in given for path in list_files(one)}
        for name in [*self._stamps, *now]:
            if name not in now or not now[name].exists():
                fault = "is gone"
            elif name not in self._stamps:
                fault = "has come"
            elif stamp_of(now[name]) != self._stamps[name]:
                fault = "has changed"
            else:
                continue
            raise ValueError(
                f"{name} {fault} since this scan has read the table: call spinney.scan(...) anew to read it as it is "
                "now; a store (`scan(...).store(path)`) would have kept it as it was"
            )

    @contextlib.contextmanager
    def _open(self, folder: Path) -> Iterator[Source]:
        """The source; what can be read once is written to a folder inside `folder` first."""
        given = self._given
        is_arrow = hasattr(given, "__arrow_c_stream__")
        if not is_lazy(given) and not is_address(given) and (is_arrow or not is_read_once(given)):
            source = open_source(given, self._block_bytes)
            if source.is_one_shot:
                tell(f"{source.parts[0].name} can be read once: its rows go to {folder.parent} first")
            yield source
            return
        if is_address(given):
            tell(f"{self._given_name} is an address: its files go to {folder.parent} first")
        else:
            tell(f"the {type(given).__name__} can be read once: its rows go to {folder.parent} first")
        inside = folder / "rows"
        inside.mkdir()
        try:
            spill = spill_lazy if is_lazy(given) else spill_files if is_address(given) else spill_batches
            names = spill(given, inside)
            with naming(names):
                yield open_source(list(names), self._block_bytes)
        finally:
            shutil.rmtree(inside, ignore_errors=True)

    def assign_roles(self, names: Sequence[str]) -> dict[str, str]:
        """The role of each column of these that is read, features in their order."""
        asked = {"target": self.target, "weight": self.weight, "groups": self.groups}
        for argument, name in asked.items():
            if isinstance(name, list | tuple):
                raise ValueError(  # noqa: TRY004, as any bad content
                    f"{argument}={name!r:.60} is a list: a scan has one {argument}. Models of several outputs take "
                    "rows in memory, fit(X, Y) of a sample; or fit one model for each"
                )
        for argument, name in [*asked.items(), *(("drop", name) for name in self.drop)]:
            if name is not None and name not in names:
                close = difflib.get_close_matches(str(name), names, n=1)
                hint = f"Did you mean {close[0]!r}?" if close else f"Its columns: {', '.join(names[:20])}"
                raise ValueError(f"{argument}={name!r} is not a column of {self._given_name}. {hint}")
        taken = [name for name in (*asked.values(), *self.drop) if name is not None]
        twice = next((name for i, name in enumerate(taken) if name in taken[:i]), None)
        if twice is not None:
            raise ValueError(f"column {twice!r} is asked for twice among target, weight, groups and drop")
        roles = {name: FEATURE for name in names if name not in taken}
        if not roles:
            raise ValueError(f"{self._given_name} has no column left to learn from")
        others = zip((TARGET, WEIGHT, GROUPS), asked.values(), strict=True)
        return roles | {name: role for role, name in others if name is not None}

    @property
    def _given_name(self) -> str:
        given = self._given
        return os.fspath(given) if isinstance(given, str | os.PathLike) else f"the {type(given).__name__}"


def tell(text: str) -> None:
    """Say what is done, on stderr."""
    if sys.stderr is not None:
        print(f"spinney: {text}", file=sys.stderr)  # noqa: T201
