"""The bags of an ensemble: which rows a tree sees, and how often.

No bag is ever stored: it is a pure function of (seed, tree), so that out-of-bag rows, honest parts and permutation
importances can be had again at any time, in any order, on any thread.

    rows ──groups──► units, by stratum ──draw by (seed, tree)──► counts of units ──► counts of rows

Units beyond one block are drawn by blocks (`kernels.data.block_draws`): the part of a bag that falls into a range of
rows is had at the cost of that range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import log
from spinney._jit import Kernels, interpreted, kernels
from spinney._types import ROW
from spinney._warnings import warn
from spinney.ensemble.draw_units import (
    DrawUnits,
    find_strata,
    fix_chances,
    make_guide,
    mean_chances,
    plain_strata,
    share_draws,
    split_rates,
)
from spinney.kernels.common.structs import DrawGuide, DrawSpan, PoissonRates

KINDS = ("whole", "bootstrap", "paste", "poisson")
BLOCK_BITS = 16  # a block is 65,536 units: their counts stay in the second cache; see docs/decisions/0022
MOST_DRAWN = 2**31 - 1  # counts are int32
INTERPRETED_SECONDS = 5e-6  # of the interpreted kernels for one row or draw: measured, 4 to 5.5
PART_BITS = 62  # of a rank in `part_bag`
NO_BAGS = (  # scikit-learn's words
    "`max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set `max_sample=None`. "
)
WORD = 0xFFFFFFFFFFFFFFFF
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # of `kernels.common.rng`
SMALL_BAG = 10  # rows, below which scikit-learn warns as well


@dataclass(frozen=True, eq=False)
class Draw:
    """How the bags of an ensemble are drawn; the bag of a tree is a pure function of (seed, tree).

    Parameters
    ----------
    kind : {"whole", "bootstrap", "paste", "poisson"}
        "whole": every row once, whatever `n_drawn`, strata and groups. "bootstrap": with replacement. "paste": without.
        "poisson": the count of a row is drawn from a Poisson distribution of mean n_drawn / n_rows by (seed, tree, row)
        alone, the other rows do not matter; where a bag would be empty, one row is drawn.
    n_rows : int
    n_drawn : int
        Rows, or groups where there are groups, drawn for a bag; for "poisson" in the mean. Not used if `is_balanced`.
    seed : int
        Of the ensemble, not negative; its lowest 64 bits count.
    probability : array of shape (n_rows,), optional
        Rows are drawn in proportion to it; a row of 0 is never drawn, as if it were not there. A group is drawn in
        proportion to the mean over its rows that are not 0.
    strata : int32 array of shape (n_rows,), optional
        Codes from 0. Every stratum gives draws in proportion to its number of rows (groups), rounded by largest
        remainder to a sum of `n_drawn`.
    is_balanced : bool
        Every stratum gives as many draws as the smallest has rows (Chen, Liaw and Breiman 2004).
    groups : int32 array of shape (n_rows,), optional
        Codes from 0. Whole groups are drawn, a row has the count of its group. A group lies in one stratum.
    block_bits : int, optional
        Where there are more than 2**block_bits rows (codes of groups), "bootstrap" and "paste" draw by blocks of so
        many. None: all at once, as models did that were saved before there were blocks; bags of one block are the same.

    Examples
    --------
    >>> draw = Draw("bootstrap", n_rows=5, n_drawn=5, seed=0)
    >>> int(draw.counts(tree=7).sum())
    5
    """

    kind: str
    n_rows: int
    n_drawn: int
    seed: int
    probability: NDArray[np.float64] | None = None
    strata: NDArray[np.int32] | None = None
    is_balanced: bool = False
    groups: NDArray[np.int32] | None = None
    block_bits: int | None = BLOCK_BITS

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn, and take arrays as the kernels want them."""
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {self.kind!r}")
        if self.n_rows < 1:
            raise ValueError(f"n_rows must be at least 1, got {self.n_rows}")
        if not 1 <= self.n_drawn <= MOST_DRAWN:
            raise ValueError(f"n_drawn must lie between 1 and {MOST_DRAWN}, got {self.n_drawn}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")
        if self.is_balanced and self.strata is None:
            raise ValueError("is_balanced needs strata: give a code for each row")
        object.__setattr__(self, "probability", check_probability(self.probability, self.n_rows))
        object.__setattr__(self, "strata", check_codes("strata", self.strata, self.n_rows))
        object.__setattr__(self, "groups", check_codes("groups", self.groups, self.n_rows))
        if not self.is_plain:
            _ = self.units  # refuses strata and groups that do not go together
        if self.kind == "paste":
            self.check_paste()

    @property
    def is_plain(self) -> bool:
        """Whether all rows are alike."""
        return self.probability is None and self.strata is None and self.groups is None

    @cached_property
    def n_ids(self) -> int:
        """Rows, or codes of groups."""
        return self.n_rows if self.groups is None else int(self.groups.max()) + 1

    @property
    def has_blocks(self) -> bool:
        """Whether there is more than one block that draws are dealt to."""
        if self.block_bits is None or self.kind not in {"bootstrap", "paste"}:
            return False
        return self.n_ids > 1 << self.block_bits

    # Tables of up to 44 bytes a row are made when first needed: a model that is opened and predicts needs none, and
    # a number of rows in a stranger's file must not cost memory. Threads that need them at once make the same.

    @cached_property
    def units(self) -> DrawUnits:
        """What is drawn from, and how often."""
        return self.list_units()

    @cached_property
    def guide(self) -> DrawGuide | None:
        """Table that speeds up draws with replacement from rows of unequal chances; None: such draws are not made."""
        return make_guide(self.units) if self.kind == "bootstrap" and not self.units.is_plain else None

    @cached_property
    def rates(self) -> PoissonRates | None:
        """Rates of the Poisson counts of the rows; None: counts are drawn in another way."""
        return self.find_rates() if self.kind == "poisson" else None

    def with_tables(self) -> Draw:
        """The same, its tables made at once: before many threads draw."""
        _ = (self.rates,) if self.is_plain else (self.units, self.guide, self.rates)
        return self

    def by_blocks_of(self, old: Draw) -> Draw:
        """The same by the blocks of another: what a warm start adds is drawn as what there is."""
        return self if self.block_bits == old.block_bits else replace(self, block_bits=old.block_bits).with_tables()

    def store(self) -> dict[str, Any]:
        """What files hold: what was given. The tables made of it are made again.

        Blocks are named where they matter: files of one block, and older ones, have no such part.
        """
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        if not self.has_blocks:
            del parts["block_bits"]
        return parts

    @classmethod
    def restore(cls, parts: dict[str, Any]) -> Draw:
        """A draw of what a file holds; ValueError where nothing can be drawn by it."""
        types = {"kind": str, "n_rows": int, "n_drawn": int, "seed": int, "is_balanced": bool}
        if not all(type(parts.get(name)) is kind for name, kind in types.items()):
            raise ValueError("a draw has a kind, counts and a seed")
        for name, kinds in (("probability", "f"), ("strata", "iu"), ("groups", "iu")):
            part = parts.get(name)
            if part is not None and not (isinstance(part, np.ndarray) and part.dtype.kind in kinds):
                raise ValueError("a draw has arrays of chances, strata and groups, or none")
        block_bits = parts.get("block_bits")
        if block_bits is not None and (type(block_bits) is not int or block_bits != BLOCK_BITS):
            raise ValueError(f"bags are drawn by blocks of 2**{BLOCK_BITS} rows, or without blocks")
        return cls(**{**parts, "block_bits": block_bits})

    def __getstate__(self) -> dict[str, Any]:
        """What files hold, and copies."""
        return self.store()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` gave."""
        self.__dict__.update({"block_bits": None, **state})

    def check_paste(self) -> None:
        """Without replacement there must be enough to draw from."""
        n_units = self.n_rows if self.is_plain else len(self.units.order)
        if not self.is_balanced and self.n_drawn > n_units:
            what = "rows" if self.groups is None else "groups"
            raise ValueError(
                f"without replacement at most all {n_units} {what} with a positive chance can be drawn, "
                f"not {self.n_drawn}; draw fewer, or with replacement"
            )

    def list_units(self) -> DrawUnits:
        """What is drawn from, and how often from each stratum; equal chances are as good as none."""
        chances, weight = self.probability, None
        if chances is not None and float(chances.min()) != float(chances.max()):
            weight = fix_chances(chances)
        is_alike = weight is None
        if self.groups is not None:
            weight = mean_chances(self.groups, weight)
        n_ids = self.n_rows if weight is None else len(weight)
        ids = np.arange(n_ids) if weight is None else np.flatnonzero(weight)
        if self.has_blocks and weight is not None:  # the chances that are left may be alike
            is_alike = bool(np.all(weight[ids] == weight[ids[0]]))
        sizes = np.array([len(ids)])
        if self.strata is not None:
            stratum = self.strata if self.groups is None else find_strata(self.groups, self.strata)
            ids = ids[np.argsort(stratum[ids], kind="stable")]
            sizes = np.bincount(stratum[ids])
        n_drawn = share_draws(self.n_drawn, sizes)
        if self.is_balanced:
            n_drawn = np.where(sizes > 0, sizes[sizes > 0].min(), 0)
        return DrawUnits(
            n_ids,
            ids.astype(ROW),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            n_drawn.astype(np.int64),
            None if is_alike or weight is None else weight[ids],
        )

    def find_rates(self) -> PoissonRates:
        """Poisson means of the units."""
        if self.is_plain:
            return split_rates(np.array([self.n_drawn / self.n_rows]))
        units = self.units
        n_units = len(units.order)
        if units.weight is None and not self.is_balanced:
            mean = np.array([self.n_drawn / n_units])
        else:
            sizes = np.diff(units.begin)
            wanted = units.n_drawn if self.is_balanced else self.n_drawn * sizes / n_units
            line = units.line
            mean = np.repeat(wanted / np.maximum(np.diff(line[units.begin]), 1), sizes) * np.diff(line)
        return split_rates(mean)

    def counts(self, tree: int, first: int = 0, last: int | None = None) -> NDArray[np.int32]:
        """How often each row is in the bag of this tree, shape (n_rows,), or each row of first .. last - 1.

        A range costs about as much as its rows and two blocks, also where the table has many more; with groups as much
        as all from the lowest to the highest code in it. Drawing without replacement by unequal chances, which no
        estimator does, goes through all rows.
        """
        last = self.n_rows if last is None else last
        if self.kind == "whole":
            counts = np.ones(last - first, np.int32)
        elif self.groups is None:
            counts = self.draw_units(tree, first, last)
        else:
            codes = self.groups[first:last]
            low, high = (int(codes.min()), int(codes.max()) + 1) if len(codes) else (0, 0)
            counts = self.draw_units(tree, low, high)[codes - low]
        if self.probability is not None and (self.kind == "whole" or self.groups is not None):
            counts[self.probability[first:last] == 0.0] = 0
        return counts

    @property
    def n_blocks(self) -> int:
        """Blocks that draws are dealt to."""
        return -(-self.n_rows >> (self.block_bits or 0))

    def block_range(self, part: int, n_parts: int) -> tuple[int, int]:
        """The rows, from and up to, of one of several parts of whole blocks: a part of a block would cost the whole."""
        size = 1 << (self.block_bits or 0)
        lo, hi = (min(self.n_blocks * k // n_parts * size, self.n_rows) for k in (part, part + 1))
        return lo, hi

    def rows(self, tree: int) -> NDArray[np.int64]:
        """The bag of this tree as row ids, ascending, each as often as it was drawn."""
        counts = self.counts(tree)
        rows = np.flatnonzero(counts)
        return np.repeat(rows, counts[rows])

    def draw_units(self, tree: int, first: int, last: int) -> NDArray[np.int32]:
        """How often each id of first .. last - 1 was drawn."""
        if self.kind == "poisson":
            return self.draw_poisson(tree, first, last)
        if self.has_blocks and (self.is_plain or self.kind == "bootstrap" or self.units.weight is None):
            return self.draw_blocks(tree, first, last)
        units = self.units
        counts = np.zeros(units.n_ids, np.int32)
        k = kernels(INTERPRETED_SECONDS * max(units.n_ids, self.n_drawn)).data.draws
        key = word(self.seed), word(tree)
        if self.kind == "paste" and units.weight is not None:
            counts[self.choose_weighted(units, units.weight, key, k)] = 1
        elif self.kind == "paste":
            k.choose_evenly(*key, units.strata, counts)
        elif self.guide is None:
            k.draw_evenly(*key, int(units.n_drawn[0]), counts)
        else:
            k.draw_weighted(*key, units.strata, self.guide, counts)
        return counts if len(counts) == last - first else counts[first:last]

    def draw_blocks(self, tree: int, first: int, last: int) -> NDArray[np.int32]:
        """How often each id of first .. last - 1 was drawn, by the blocks that hold them alone."""
        bits = self.block_bits or 0
        n_levels = ((self.n_ids - 1) >> bits).bit_length()
        strata = self.units.strata if not self.is_plain else plain_strata(self.n_rows, self.n_drawn)
        span = DrawSpan(first, last, bits, n_levels)
        path = np.zeros((n_levels + 1, 3), np.int64)
        counts = np.zeros(last - first, np.int32)
        draws_of_row = max(self.n_drawn / self.n_ids, 1.0)
        k = kernels(INTERPRETED_SECONDS * max(last - first, 1 << bits) * draws_of_row).data.block_draws
        key = word(self.seed), word(tree)
        if self.kind == "paste":
            k.choose_blocks(*key, strata, span, path, counts)
        else:
            k.draw_blocks(*key, strata, None if self.is_plain else self.guide, span, path, counts)
        return counts

    def draw_poisson(self, tree: int, first: int, last: int) -> NDArray[np.int32]:
        """How often each id of first .. last - 1 was drawn, by itself; where no unit was drawn at all, one is."""
        counts, n_drawn = self.count_poisson(tree, first, last)
        step = 1 << BLOCK_BITS
        if n_drawn == 0 and not any(self.count_poisson(tree, k, k + step)[1] for k in range(0, self.n_ids, step)):
            n_units = self.n_rows if self.is_plain else len(self.units.order)
            with np.errstate(over="ignore"):
                place = int(interpreted().data.draws.draw_last(word(self.seed), word(tree), n_units))
            unit = place if self.is_plain else int(self.units.order[place])
            if first <= unit < last:
                counts[unit - first] = 1
        return counts

    def count_poisson(self, tree: int, first: int, last: int) -> tuple[NDArray[np.int32], int]:
        """Poisson counts of the ids of first .. last - 1, and their sum."""
        last = min(last, self.n_ids)
        rates = self.rates
        order = np.arange(first, last, dtype=ROW)
        if not self.is_plain:
            places = self.units.between(first, last)
            order = self.units.order[places]
            if rates is not None and len(rates.mean) > 1:
                rates = PoissonRates(rates.n_pieces[places], rates.mean[places], rates.none[places])
        counts = np.zeros(last - first, np.int32)
        k = kernels(INTERPRETED_SECONDS * (last - first)).data.draws
        return counts, int(k.draw_poisson(word(self.seed), word(tree), order, rates, first, counts))

    @staticmethod
    def choose_weighted(
        units: DrawUnits, weight: NDArray[np.int64], key: tuple[np.uint64, np.uint64], k: Any
    ) -> NDArray[np.int32]:
        """The ids drawn one after the other in proportion to the weights that are left.

        The first to ring of clocks with exponential times of rate `weight` (Efraimidis and Spirakis 2006).
        """
        fractions = np.empty(len(units.order))
        k.fill_fractions(*key, units.order, fractions)
        times = -log(fractions) / weight
        drawn = []
        for first, last, n in zip(units.begin[:-1].tolist(), units.begin[1:].tolist(), units.n_drawn, strict=True):
            ids = units.order[first:last]
            drawn.append(ids if n == last - first else ids[np.argpartition(times[first:last], n)[:n]])
        return np.concatenate(drawn)


def draw_key(seed: int, *parts: int) -> int:
    """A seed of 63 bits from a seed and what it is for: a pure function, `kernels.common.rng.fold` part by part.

    In Python's own integers: those of NumPy take 35 us for two parts, these 3, and every tree draws a key.
    """
    key = int(seed) & WORD
    for part in parts:
        key = scatter(scatter((key + GOLDEN) & WORD) ^ ((int(part) * GOLDEN + SECOND) & WORD))
    return key >> 1


def scatter(x: int) -> int:
    """Scatter the bits of a word: `kernels.common.rng.mix`."""
    x = ((x ^ (x >> 30)) * FIRST) & WORD
    x = ((x ^ (x >> 27)) * SECOND) & WORD
    return x ^ (x >> 31)


def word(number: int) -> np.uint64:
    """The lowest 64 bits of a seed or of a tree's number, as the kernels take them."""
    return np.uint64(int(number) & WORD)


def check_codes(name: str, codes: Any, n_rows: int) -> NDArray[np.int32] | None:
    """Codes from 0, one a row; there cannot be more codes than rows, so that tables of them stay small."""
    if codes is None:
        return None
    codes = np.asarray(codes)
    if codes.shape != (n_rows,):
        raise ValueError(f"{name} has shape {codes.shape}, expected {(n_rows,)}: one code for each row")
    if codes.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integer codes, got {codes.dtype}")
    is_bad = (codes < 0) | (codes >= n_rows)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(
            f"{name} must hold codes 0 .. {n_rows - 1}, got {codes[row]} in row {row}; "
            f"number them with np.unique({name}, return_inverse=True)"
        )
    return np.require(codes, np.int32, ["C", "W"])


def check_probability(probability: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Chances of the rows: finite, not negative, not all zero."""
    if probability is None:
        return None
    chances = np.asarray(probability, np.float64)
    if chances.shape != (n_rows,):
        raise ValueError(f"probability has shape {chances.shape}, expected {(n_rows,)}: one for each row")
    is_bad = ~(np.isfinite(chances) & (chances >= 0.0))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(f"probability must be finite and not negative, got {chances[row]} in row {row}")
    if not np.any(chances > 0.0):
        raise ValueError("probability is 0 in every row: at least one must be positive")
    return chances


def draw_size(
    max_samples: Any, n_rows: int, sample_weight: NDArray[np.float64] | None = None, *, replaces: bool = True
) -> int:
    """Rows drawn for a bag: as many as `n_rows` (None), a number (int), or a multiple of them (float).

    The rule is that of forests in scikit-learn 1.9: a fraction is rounded down, to 1 at least, and with sample weights
    it is one of their sum, so that a row of weight 2 counts as two rows; a bag is then drawn in proportion to the
    weights (`Draw.probability`), and the tree sees plain counts. None is `n_rows`, also with weights. More than all
    rows can be drawn with replacement alone (`replaces`).

    With groups, pass the number of groups, and no weights.
    """
    if max_samples is None:
        return n_rows
    if isinstance(max_samples, bool | np.bool_) or not isinstance(max_samples, Real):
        raise TypeError(f"max_samples must be None, an int or a float, got {max_samples!r}")
    total = float(n_rows) if sample_weight is None else sum_weights(sample_weight)
    most = MOST_DRAWN if replaces else n_rows
    what = "the most that can be counted" if replaces else "the number of rows: none is drawn twice"
    if isinstance(max_samples, Integral):
        if not 1 <= int(max_samples) <= most:
            raise ValueError(
                f"max_samples={max_samples} must lie between 1 and {most}, {what}; give None for as many as there are "
                "rows"
            )
        return int(max_samples)
    fraction = float(max_samples)
    if not fraction > 0.0 or fraction == math.inf or (fraction > 1.0 and not replaces):
        where = "above 0.0" if replaces else "in (0.0, 1.0], for without replacement none is drawn twice"
        raise ValueError(
            f"max_samples={max_samples} must be a fraction of the rows {where}; give an int for a number of rows"
        )
    if fraction * total > MOST_DRAWN:
        raise ValueError(
            f"max_samples={max_samples} of {total:g}, the number of rows or the sum of their weights, draws more than "
            f"{MOST_DRAWN} rows; give an int, or smaller weights"
        )
    n_drawn = max(int(fraction * total), 1)
    if (
        sample_weight is not None
        and (n_drawn < SMALL_BAG or n_drawn * n_drawn * n_drawn < n_rows)
        and n_drawn < fraction * n_rows - 1
    ):
        warn(
            f"Using the fractional value max_samples={max_samples} when the total sum of sample weights is {total:g} "
            f"results in a low number ({n_drawn}) of bootstrap samples. We recommend passing `max_samples` as an "
            "integer."
        )
    return n_drawn


def sum_weights(weight: NDArray[np.float64]) -> float:
    """The sum, rounded once: the same for any order of rows; infinite where a float cannot hold it."""
    try:
        return math.fsum(weight)
    except OverflowError:
        return math.inf


def split_bag(
    counts: NDArray[np.int32], tree: int, seed: int, fraction: float, groups: NDArray[np.int32] | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Part the bag of an honest tree: counts for its structure, counts for the values of its leaves.

    About `fraction` of the distinct rows go to the structure, each with its full count, by (seed, tree, row) alone;
    with groups, all rows of a group go together. Neither part is empty, unless the bag has one row (group) only, which
    then goes to the structure.
    """
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"the fraction of the structure part must lie between 0 and 1, got {fraction}")
    counts = np.require(counts, np.int32, ["C", "W"])
    codes = check_codes("groups", groups, len(counts))
    parts = np.empty((2, len(counts)), np.int32)
    k: Kernels = kernels(INTERPRETED_SECONDS * len(counts))
    share = int(math.ldexp(fraction, PART_BITS))
    k.data.draws.part_bag(
        word(seed), word(tree), share, np.empty(0, np.int32) if codes is None else codes, counts, parts
    )
    return parts[0], parts[1]


# --- from parameters to a draw --------------------------------------------------------------------------------------


class DrawParams(NamedTuple):
    """The parameters of an estimator that decide how bags are drawn, and those that need rows outside the bags."""

    bootstrap: bool | str = True  # "poisson" for Poisson counts
    replace: bool = True
    max_samples: float | None = None
    block_size: int | None = None  # rows that follow each other and are drawn together
    stratify: str | None = None  # "class" or "balanced"
    has_oob: bool = False  # `oob_score` is set
    prunes_oob: bool = False  # `pruning="oob"`


def make_draw(
    params: DrawParams,
    n_rows: int,
    weight: NDArray[np.float64] | None,
    groups: NDArray[np.int32] | None,
    strata: NDArray[np.int32] | None,
    seed: int,
) -> tuple[Draw, NDArray[np.float64] | None]:
    """How bags are drawn, and the weights (n_rows,) that are left for the trees to see; None: 1 each.

    A plain bootstrap draws rows by their weight, and its trees see counts (scikit-learn 1.9). Draws without
    replacement, from strata and of groups would blunt or lose the weights: there the trees see them. Rows of
    weight 0 are never drawn, and weigh nothing in what is made of all rows, such as bins.
    """
    if not params.bootstrap and params.replace:
        refuse_without_bags(params, groups, strata)
        return whole_draw(n_rows, weight, seed), weight
    kind = "poisson" if params.bootstrap == "poisson" else "bootstrap" if params.replace else "paste"
    refuse_clashes(params, groups)
    if params.block_size is not None:
        groups = (np.arange(n_rows) // min(int(params.block_size), n_rows)).astype(np.int32)
    is_balanced = params.stratify == "balanced"
    by_weight = params.replace and groups is None and strata is None
    chance = weight if by_weight else equal_chances(weight)
    n_units = n_rows if by_weight else count_units(n_rows, chance, groups)
    n_drawn = draw_size(params.max_samples, n_units, weight if by_weight else None, replaces=params.replace)
    if kind == "paste" and n_drawn >= n_units and not is_balanced:
        refuse_full_bags(params)
    draw = Draw(kind, n_rows, n_drawn, seed, chance, strata, is_balanced, groups).with_tables()
    return draw, equal_chances(weight) if by_weight else weight


def count_units(n_rows: int, chance: NDArray[np.float64] | None, groups: NDArray[np.int32] | None) -> int:
    """Rows, or groups, that can be drawn."""
    if groups is None:
        return n_rows if chance is None else int(np.count_nonzero(chance > 0.0))
    return len(np.unique(groups if chance is None else groups[chance > 0.0]))


def bagging_params(
    bootstrap: bool | str,
    max_samples: float | None,
    block_size: int | None,
    stratify: str | None,
    *,
    has_oob: bool,
) -> DrawParams:
    """The parameters of bagging, where `bootstrap=False` draws each row at most once, in terms of those of a forest."""
    return DrawParams(
        bootstrap=bootstrap if isinstance(bootstrap, str) else True,
        replace=bool(bootstrap),
        max_samples=max_samples,
        block_size=block_size,
        stratify=stratify,
        has_oob=has_oob,
    )


def make_bagging_draw(
    params: DrawParams,
    n_rows: int,
    weight: NDArray[np.float64] | None,
    groups: NDArray[np.int32] | None,
    strata: NDArray[np.int32] | None,
    seed: int,
) -> tuple[Draw, NDArray[np.float64] | None]:
    """As `make_draw`, for members of any kind: where each bag would hold every row once, there are no bags."""
    draw, left = make_draw(params._replace(has_oob=False), n_rows, weight, groups, strata, seed)
    if params.replace or draw.units.n_drawn.sum() < len(draw.units.order):
        return draw, left
    wanted = {
        "Out of bag estimation": params.has_oob,
        "block_size or groups": draw.groups is not None,
        "stratify or strata": draw.strata is not None and not draw.is_balanced,  # classes may be of one size
    }
    refuse_wanted(
        wanted,
        "only available if bootstrap=True or max_samples is below the number of rows: as it is, every member sees "
        "all rows",
    )
    return whole_draw(n_rows, weight, seed), weight


def whole_draw(n_rows: int, weight: NDArray[np.float64] | None, seed: int) -> Draw:
    """No bags: each tree sees all rows of positive weight."""
    return Draw("whole", n_rows, n_rows, seed, equal_chances(weight)).with_tables()


def positive_rows(weight: NDArray[np.float64] | None) -> NDArray[np.bool_] | None:
    """Which rows have a positive weight, (n_rows,); None where all have."""
    if weight is None or np.all(weight > 0.0):
        return None
    return weight > 0.0


def equal_chances(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """A chance of 1 for rows of positive weight and 0 for the others, (n_rows,); None where all have a weight."""
    rows = positive_rows(weight)
    return None if rows is None else rows.astype(np.float64)


def refuse_clashes(params: DrawParams, groups: Any) -> None:
    """Refuse parameters of the draw that exclude each other."""
    if params.bootstrap == "poisson" and not params.replace:
        raise ValueError("bootstrap='poisson' draws rows more than once, replace=False forbids it: use one")
    if params.block_size is not None and groups is not None:
        raise ValueError("block_size draws blocks of rows in the order of the table, groups= draws groups: use one")
    if params.block_size is not None and params.stratify is not None:
        raise ValueError("block_size draws blocks, whose rows may be of several classes, stratify by class: use one")
    if params.stratify == "balanced" and params.max_samples is not None:
        raise ValueError(
            "stratify='balanced' draws as many rows of each class as the smallest has, max_samples another number: "
            "use one"
        )


def refuse_full_bags(params: DrawParams) -> None:
    """Refuse what needs rows outside the bags where there are none."""
    refuse_wanted(
        {"oob_score": params.has_oob, "pruning='oob'": params.prunes_oob},
        f"needs rows outside the bags, but replace=False with max_samples={params.max_samples} puts all rows in every "
        "bag: give a smaller max_samples",
    )


def refuse_without_bags(params: DrawParams, groups: Any, strata: Any) -> None:
    """Refuse what makes no sense where every tree sees all rows."""
    refuse_wanted(
        {"Out of bag estimation": params.has_oob},
        "only available if bootstrap=True, or replace=False with max_samples",
    )
    wanted = {
        "pruning='oob'": params.prunes_oob,
        NO_BAGS + "max_samples": params.max_samples is not None,
        "stratify": params.stratify is not None,
        "block_size": params.block_size is not None,
        "groups": groups is not None,
        "strata": strata is not None,
    }
    refuse_wanted(
        wanted,
        "needs bags, but with bootstrap=False every tree sees all rows: set bootstrap=True, or replace=False to draw "
        "without replacement",
    )


def refuse_wanted(wanted: dict[str, bool], reason: str) -> None:
    """Refuse the first parameter or argument that is wanted."""
    for name, is_wanted in wanted.items():
        if is_wanted:
            raise ValueError(f"{name} {reason}")
