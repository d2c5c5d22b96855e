"""Bags of features: which columns each member of an ensemble sees, and trees that grow on some columns only.

A tree of a subspace grows on a narrow copy of the codes; its features are then renumbered as in the whole table, so
that all trees of an ensemble make one forest:

    columns by (seed, member) ──► codes[:, columns] ──grow──► tree of k features ──widen──► tree of all features
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._node_layout import feature_of, kind_of, missing_of, pack_test
from spinney.ensemble.forest import ForestGrowth, Grown, Plan, grow_one
from spinney.ensemble.out_of_bag import OutOfBagSums
from spinney.ensemble.sampling import Draw, draw_key
from spinney.table.coding import Codes, row_stride
from spinney.tree.structure import Legend, Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.sparse_codes import SparseCodes

FEATURES = 0x46454154  # the parts of the seed's key that columns and seeds of members are drawn from
MEMBERS = 0x4D454D42


def member_seed(seed: int, member: int, index: int = 0) -> int:
    """Seed of a member for scikit-learn's generators, below 2**31; `index` tells apart those of its parts."""
    return draw_key(seed, MEMBERS, member, index) >> 32


@dataclass(frozen=True, eq=False)
class Subspaces:
    """Which columns each member sees: a pure function of (seed, member).

    Parameters
    ----------
    n_features : int
        Columns of the table.
    n_drawn : int
        Columns of a member.
    seed : int
        Of the ensemble, not negative.
    has_repeats : bool
        Draw with replacement: a column can come more than once.

    Examples
    --------
    >>> len(Subspaces(n_features=10, n_drawn=4, seed=0).columns(7))
    4
    """

    n_features: int
    n_drawn: int
    seed: int
    has_repeats: bool = False
    draw: Draw = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Columns are drawn as rows are, from a key of their own."""
        kind = "bootstrap" if self.has_repeats else "paste"
        seed = draw_key(self.seed, FEATURES)
        # without blocks: no file says how columns were drawn, and they are always drawn at once
        object.__setattr__(self, "draw", Draw(kind, self.n_features, self.n_drawn, seed, block_bits=None))

    def store(self) -> dict[str, Any]:
        """What files hold: what was given."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    @classmethod
    def restore(cls, parts: dict[str, Any]) -> Subspaces:
        """Subspaces of what a file holds; ValueError where parts are missing, or no columns can be drawn."""
        names = {f.name for f in fields(cls) if f.init}
        if set(parts) != names:
            raise ValueError(f"a {cls.__name__} has the parts {sorted(names)}, not {sorted(parts)}")
        return cls(**parts)

    @property
    def is_whole(self) -> bool:
        """Whether every member sees every column once."""
        return not self.has_repeats and self.n_drawn == self.n_features

    def columns(self, member: int) -> NDArray[np.int64]:
        """The columns of a member, ascending, shape (n_drawn,)."""
        return self.draw.rows(member)


class Bags(NamedTuple):
    """Which rows and columns each member sees, and what else it draws: all pure functions of its number."""

    draw: Draw
    spaces: Subspaces
    seed: int

    def store(self) -> dict[str, Any]:
        """What files hold."""
        return self._asdict()

    @classmethod
    def restore(cls, parts: dict[str, Any]) -> Bags:
        """Bags of what a file holds; ValueError unless these are a draw of rows, one of columns, and a seed."""
        bags: Any = cls(**parts)
        if not (isinstance(bags.draw, Draw) and isinstance(bags.spaces, Subspaces) and type(bags.seed) is int):
            raise ValueError("bags have a draw, spaces and a seed")
        return cls(**parts)

    def columns(self, member: int) -> NDArray[np.int64] | None:
        """The columns of a member; None: all of them, as they are."""
        return None if self.spaces.is_whole else self.spaces.columns(member)


def narrow_codes(codes: Codes | SparseCodes, columns: NDArray[np.int64]) -> Codes:
    """Some columns of a table in codes; the values behind the codes stay where they are."""
    rows = np.zeros((codes.n_rows, row_stride(len(columns))), codes.rows.dtype)
    np.take(codes.rows, columns, axis=1, out=rows[:, : len(columns)])
    features, has_missing = np.take(codes.features, columns, axis=1), codes.has_missing[columns]
    return codes.with_rows(rows)._replace(features=features, has_missing=has_missing)


def renumber(tree: Tree, number: NDArray[np.int64], n_levels: NDArray[np.int32]) -> Tree:
    """The same tree where feature j is called number[j]; n_levels: of the features by their new numbers."""
    moved = pack_test(number[feature_of(tree.test)], missing_of(tree.test), kind_of(tree.test))
    return replace(tree, test=np.where(tree.is_leaf, tree.test, moved).astype(np.uint32), n_levels=n_levels)


def widen_tree(tree: Tree, columns: NDArray[np.int64], n_levels: NDArray[np.int32]) -> Tree:
    """A tree of some columns as one of the whole table; its names are left to the forest."""
    return replace(renumber(tree, columns, n_levels), legend=None)


def narrow_tree(tree: Tree, columns: NDArray[np.int64]) -> Tree:
    """A tree of the whole table as one of the columns it was grown on; undoes `widen_tree`, but for repeats."""
    place = np.zeros(tree.n_features, np.int64)
    place[columns[::-1]] = np.arange(len(columns))[::-1]  # the first place of a repeated column
    narrow = renumber(tree, place, tree.n_levels[columns])
    names = tree.legend
    if names is None:
        return narrow
    return narrow.with_legend(
        Legend(
            tuple(names.features[j] for j in columns),
            tuple(names.levels[j] for j in columns),
            names.classes,
            tuple(names.has_missing[j] for j in columns),
            names.criterion,
        )
    )


def grow_member(
    plan: Plan, spaces: Subspaces, member: int, n_levels: NDArray[np.int32], kernels: Any, control: NDArray[np.int64]
) -> Grown:
    """Grow tree number `member` on its own columns; votes and pruning are those of the same columns."""
    columns = spaces.columns(member)
    narrow = replace(
        plan,
        codes=narrow_codes(plan.codes, columns),
        monotone=None if plan.monotone is None else plan.monotone[columns],
    )
    grown = grow_one(narrow, member, kernels, control)
    return grown._replace(tree=widen_tree(grown.tree, columns, n_levels))


class SubspaceGrowth(ForestGrowth):
    """A forest under way whose trees see some columns each.

    Parameters
    ----------
    plan : Plan
        As for a forest; `plan.params.max_features` counts among the columns of a member.
    legend : Legend
        Of the whole table.
    spaces : Subspaces
    out_of_bag : OutOfBagSums, optional
        As for a forest.
    """

    def __init__(self, plan: Plan, legend: Legend, spaces: Subspaces, out_of_bag: OutOfBagSums | None = None) -> None:
        super().__init__(plan, legend, out_of_bag)
        self.spaces = spaces
        self.n_levels = np.array([0 if levels is None else len(levels) for levels in legend.levels], np.int32)

    def grow(self, tree: int, kernels: Any, control: NDArray[np.int64]) -> Grown:
        """Grow tree number `tree` on its columns."""
        if self.spaces.is_whole:
            return super().grow(tree, kernels, control)
        return grow_member(self.plan, self.spaces, tree, self.n_levels, kernels, control)
