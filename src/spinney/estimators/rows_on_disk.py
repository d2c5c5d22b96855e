"""Target and weights of a table on disk, read block by block: what a fit knows of its rows when it holds none of them.

    store ──classes, extremes──► what the rows are ──weights of classes, units──► files of the rows to learn from
                                                     └──► hashes, as of rows in memory

Rows of weight 0 are left out of the files, so that these are cut into blocks anew.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.estimators.boosting_data import find_exponent
from spinney.estimators.checks import (
    MODERATE,
    NO_CLASS_WEIGHT,
    NO_WEIGHT,
    check_complete,
    check_numbers,
    check_weights,
    find_class_weights,
    refuse_negative,
)
from spinney.estimators.fingerprints import StreamedMark
from spinney.model.fitted_boosting import in_units
from spinney.scale.row_files import RowFiles
from spinney.table.columns import Categories
from spinney.table.fixed_point import fix_block, fix_weight_blocks
from spinney.table.row_sums import ExactSum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.losses import Loss
    from spinney.scale.column_cuts import Rows
    from spinney.scale.store import Store
    from spinney.table.fixed_point import Weights

    Floats = NDArray[np.float64]

Y, WEIGHT, KEEP = "y", "weight", "keep"  # files
COPIES = 3  # of each class, where a few values stand for a target: enough that none looks like a number


class LabelBlocks:
    """The target of a store as a loss takes it, and its weights, block by block.

    Parameters
    ----------
    model : estimator
        Whose classes are set, if it has classes.
    store : Store
    """

    def __init__(self, model: Any, store: Store) -> None:
        self.model, self.store = model, store
        self.is_classifier = hasattr(model, "predict_proba")
        if self.is_classifier:
            self.read_classes()

    def read_classes(self) -> None:
        """Find the classes, and set them."""
        values = self.store.list_labels()
        if isinstance(values, np.ndarray):
            few: Any = np.tile(values, COPIES)
        else:
            few = Categories(np.arange(len(values), dtype=np.int32), list(values), is_ordered=False)
        self.model._read_target(few, COPIES * len(values))  # noqa: SLF001

    def targets(self) -> Iterator[Floats]:
        """Codes of classes, or numbers."""
        store, first = self.store, 0
        for k in range(store.n_blocks):
            block = store.read_target(range(k, k + 1))
            if isinstance(block, Categories):
                if not self.is_classifier:
                    check_numbers(self.model, block, len(block.codes))  # says that text is no number
                place = np.searchsorted(self.model.classes_, np.array(block.values, dtype=object))
                y = place[block.codes].astype(np.float64)
            else:
                assert block is not None
                check_complete(block, first)
                classes = self.model.classes_ if self.is_classifier else None
                y = block.astype(np.float64) if classes is None else np.searchsorted(classes, block).astype(np.float64)
            first += len(y)
            yield y

    def weights(self) -> Iterator[Floats]:
        """Weights of rows, which the store has."""
        first = 0
        for k in range(self.store.n_blocks):
            weight = self.store.read_weight(range(k, k + 1))
            assert weight is not None
            if not np.isfinite(weight).all():
                check_weights(weight, len(weight))  # says what is wrong
            refuse_negative(weight, first)
            first += len(weight)
            yield weight

    @property
    def has_weights(self) -> bool:
        """Whether the store has weights."""
        return self.store.read_weight(range(1)) is not None


class RowMeaning(NamedTuple):
    """How target and weights as they were given become those that trees learn from, row by row."""

    per_class: Floats | None  # weights of classes
    class_exponent: int  # that weights of rows lose beside them
    exponent: int = 0  # targets are in units of 2**exponent ...
    power: int = 0  # ... and weights of 2**power

    def weigh(self, y: Floats, weight: Floats | None) -> Floats | None:
        """Weights of rows times those of their classes; None: 1 each."""
        if self.per_class is None:
            return weight
        given = 1.0 if weight is None else np.ldexp(weight, -self.class_exponent)
        return self.per_class[y.astype(np.int64)] * given

    def read(self, y: Floats, weight: Floats | None) -> tuple[Floats, Floats | None, NDArray[np.bool_] | None]:
        """Target and weights of the rows to learn from, and which these are; None: all."""
        weight = self.weigh(y, weight)
        if weight is None:
            return in_units(y, self.exponent), None, None
        is_used = weight > 0.0
        y, weight = in_units(y[is_used], self.exponent), np.ldexp(weight[is_used], -self.power)
        return y, weight, None if is_used.all() else is_used


class ClassFactors:
    """What the weights of rows are multiplied by, by class; see `weigh_classes`.

    Parameters
    ----------
    labels : LabelBlocks
    class_weight : "balanced" or dict, optional
    rounds : bool
        As of `weigh_classes`.
    """

    def __init__(self, labels: LabelBlocks, class_weight: Any = None, *, rounds: bool = False) -> None:
        model, self.labels = labels.model, labels
        self.class_weight = class_weight
        self.has_weights = labels.has_weights
        largest = max((float(weight.max()) for weight in labels.weights()), default=0.0) if self.has_weights else 1.0
        if largest == 0.0:
            raise ValueError(NO_WEIGHT)
        self.exponent = 0  # that weights lose beside class weights, where they are near the ends of float64
        self.per_class: Floats | None = None
        self.factors: Floats | None = None
        if self.class_weight is None:
            return
        if self.has_weights and not MODERATE[0] < largest < MODERATE[1]:
            self.exponent = math.frexp(largest)[1]
        n_classes = model.n_classes_
        sums = [ExactSum() for _ in range(n_classes)]
        for y, weight in self.pairs():
            rounds = rounds and bool(np.all(weight == np.floor(weight)))
            for k in range(n_classes):
                sums[k].add(weight[y == k])
        each = np.arange(n_classes)
        totals = np.array([one.value for one in sums])
        self.per_class = find_class_weights(self.class_weight, model.classes_, each, totals, rounds=rounds)
        self.factors = np.zeros(n_classes)

    def pairs(self) -> Iterator[tuple[Floats, Floats]]:
        """Target and weights of each block, before class weights."""
        for y, weight in zip(self.labels.targets(), self.given(), strict=False):
            yield y, np.ones(len(y)) if weight is None else np.ldexp(weight, -self.exponent)

    def given(self) -> Iterator[Floats | None]:
        """Weights of each block, or None for ever."""
        if self.has_weights:
            yield from self.labels.weights()
        while not self.has_weights:
            yield None

    def blocks(self) -> Iterator[tuple[Floats, Floats | None]]:
        """Target and weights of each block; the factors that classes have had are noted."""
        meaning = self.meaning
        for y, weight in zip(self.labels.targets(), self.given(), strict=False):
            weighed = meaning.weigh(y, weight)
            if self.factors is not None and weighed is not None:
                given = weighed
                if weight is not None:
                    given = np.divide(weighed, weight, out=weighed * 0.0, where=weight > 0.0)
                np.maximum.at(self.factors, y.astype(np.int64), given)
            yield y, weighed

    @property
    def meaning(self) -> RowMeaning:
        """The same as what whoever has a row can do."""
        return RowMeaning(self.per_class, self.exponent)


class RowsOnDisk(NamedTuple):
    """The rows to learn from, in files: "y", and "weight" unless all are 1."""

    files: RowFiles
    weights: Weights  # without values
    power: int  # weights are in units of 2**power ...
    exponent: int  # ... and targets of 2**exponent
    marks: tuple[str, str]  # hashes of target and weights of all rows
    factors: Floats | None  # of classes
    keep: Rows | None  # which rows of the table they are; None: all
    meaning: RowMeaning

    def blocks(self) -> Iterator[tuple[Floats, Weights]]:
        """Target of the rows, and the weights of all with the values of these."""
        for k in range(self.files.n_blocks):
            y = self.files.read(Y, k)
            if self.weights.is_unit:
                yield y, self.weights
            else:
                yield y, self.weights._replace(values=fix_block(self.files.read(WEIGHT, k), self.weights))

    def fixed_weights(self) -> Rows:
        """Fixed-point weights of the rows, one where all are alike."""
        if self.weights.is_unit:
            return self.weights.values
        return self.files.view(WEIGHT, lambda weight: fix_block(weight, self.weights))

    def close(self) -> None:
        """Give the space of the files back."""
        self.files.close()
        if self.keep is not None:
            self.keep.files.close()  # type: ignore[attr-defined]


def read_rows(
    factors: ClassFactors,
    make_loss: Callable[[], Loss],
    folder: Path,
    n_together: int = 1,
    is_held: Rows | None = None,
) -> tuple[RowsOnDisk, Loss]:
    """Read target and weights of a store, and write those of the rows to learn from to files in a folder.

    n_together: blocks of the store that are one part of the files; is_held: rows of the store that are left out.
    """
    labels, loss = factors.labels, make_loss()
    greatest = [max(float(np.max(np.abs(y))), 0.0) for y in labels.targets()]
    exponent = find_exponent(np.array([max(greatest)]), loss)
    writing = RowWriting(factors, folder, n_together, is_held)
    with writing.closing_on_error():
        writing.run(exponent, lambda y, is_used, first: check_target(loss, y, is_used, first))
        loss.check(np.array([writing.highest]))
        power = moderate_weights(writing.files, writing.largest) if writing.has_weights else 0
        return writing.finish(factors.meaning._replace(exponent=exponent, power=power)), loss


class RowWriting:
    """Target and weights of a store on their way to files, those of the rows to learn from alone.

    Parameters
    ----------
    factors : ClassFactors
    folder : Path
    n_together : int
        Blocks of the store that are one part of the files.
    is_held : rows of bool, optional
        Rows of the store that are left out.

    Attributes
    ----------
    largest, highest : float
        Weight of the rows to learn from, and target of these and those left out, at most.
    has_weights : bool
        Whether there are weights, of rows or classes.
    """

    def __init__(self, factors: ClassFactors, folder: Path, n_together: int = 1, is_held: Rows | None = None) -> None:
        self.store, self.factors, self.is_held = factors.labels.store, factors, is_held
        self.files = RowFiles(folder, n_together * self.store.block_rows)
        self.everyone = RowFiles(folder, self.store.block_rows, self.store.n_rows)
        self.marks = StreamedMark(self.store.n_rows), StreamedMark(self.store.n_rows)
        self.largest, self.highest, self.has_weights = 0.0, -math.inf, False

    @contextlib.contextmanager
    def closing_on_error(self) -> Iterator[None]:
        """Give the space of the files back where something goes wrong."""
        try:
            yield
        except BaseException:
            self.files.close()
            self.everyone.close()
            raise

    def run(self, exponent: int, check: Callable[[Floats, NDArray[np.bool_], int], None] | None = None) -> None:
        """Write the rows; exponent: targets are in units of 2**exponent; check: refuses targets."""
        writers = [RowWriter(self.files, Y), RowWriter(self.files, WEIGHT)]
        first = 0
        for k, (y, weight) in enumerate(self.factors.blocks()):
            is_used = np.ones(len(y), np.bool_) if weight is None else weight > 0.0
            if check is not None:
                check(y, is_used, first)
            self.marks[0].add(y)
            if is_used.any():
                self.highest = max(self.highest, float(y[is_used].max()))
            if self.is_held is not None:
                is_used &= ~self.is_held[first : first + len(y)]
            writers[0].add(in_units(y[is_used], exponent))
            if weight is not None:
                self.has_weights = True
                self.marks[1].add(weight)
                self.largest = max(self.largest, float(weight[is_used].max(initial=0.0)))
                writers[1].add(weight[is_used])
            if weight is not None or self.is_held is not None:
                self.everyone.write(KEEP, k, is_used)
            first += len(y)
        refuse_no_rows(writers[0].n_rows, self.factors)
        self.files.n_rows = writers[0].n_rows
        for writer in writers:
            writer.flush()

    def finish(self, meaning: RowMeaning) -> RowsOnDisk:
        """What is there."""
        files, has_weights = self.files, self.has_weights
        weights = fix_weight_blocks(lambda: list_weights(files, has_weights=has_weights), files.n_rows)
        keep = self.everyone.view(KEEP) if files.n_rows < self.store.n_rows else None
        if keep is None:
            self.everyone.close()
        found = self.marks[0].finish(), self.marks[1].finish() if has_weights else ""
        return RowsOnDisk(files, weights, meaning.power, meaning.exponent, found, self.factors.factors, keep, meaning)


def refuse_no_rows(n_rows: int, factors: ClassFactors) -> None:
    """Refuse weights that leave no row to learn from."""
    if n_rows == 0:
        raise ValueError(NO_WEIGHT if factors.per_class is None else NO_CLASS_WEIGHT)


def check_target(loss: Loss, y: Floats, is_used: NDArray[np.bool_], first: int) -> None:
    """Refuse a target that the loss is not defined for; rows that are not used may hold anything."""
    try:
        loss.check(np.append(np.where(is_used, y, 1.0 if loss.n_classes == 0 else 0.0), 1.0))  # no loss refuses 1
    except ValueError as error:
        if first == 0:
            raise
        raise ValueError(f"{error} Rows are counted from row {first} of the table on.") from None


def list_weights(files: RowFiles, *, has_weights: bool) -> Iterator[Floats]:
    """Weights of the rows to learn from, block by block."""
    for k in range(files.n_blocks if has_weights else 0):
        yield files.read(WEIGHT, k)


def moderate_weights(files: RowFiles, largest: float) -> int:
    """Take a power of two out of weights near the ends of float64; its exponent. See `boosting_data.moderate`."""
    if MODERATE[0] < largest < MODERATE[1]:
        return 0
    power = math.frexp(largest)[1]
    for k in range(files.n_blocks):
        files.write(WEIGHT, k, np.ldexp(files.read(WEIGHT, k), -power))
    return power


class RowWriter:
    """Numbers of rows on their way to a file: they gather until a block is full."""

    def __init__(self, files: RowFiles, name: str) -> None:
        self.files, self.name = files, name
        self.held: list[Floats] = []
        self.n_held = self.n_rows = self.n_blocks = 0

    def add(self, values: Floats) -> None:
        """Take the numbers of the next rows."""
        self.held.append(values)
        self.n_held += len(values)
        self.n_rows += len(values)
        size = self.files.block_rows
        while self.n_held >= size:
            together = np.concatenate(self.held)
            self.files.write(self.name, self.n_blocks, together[:size])
            self.n_blocks += 1
            self.held, self.n_held = [together[size:]], self.n_held - size

    def flush(self) -> None:
        """Write what is left."""
        if self.n_held:
            self.files.write(self.name, self.n_blocks, np.concatenate(self.held))
            self.n_blocks += 1


def find_folder(store: Store) -> Path:
    """Where files of rows are made: beside the store, or among temporary files where nobody may write there."""
    beside = store.path.absolute().parent
    return beside if os.access(beside, os.W_OK) else Path(tempfile.gettempdir())
