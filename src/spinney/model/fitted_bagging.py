"""What bagging has learnt, as a value: its members, which are trees of one forest or estimators of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._node_layout import feature_of_link
from spinney.ensemble.subspaces import narrow_tree
from spinney.model.fitted_forest import MOST_SEED, find_forest_fault
from spinney.model.fitted_tree import classes_of_one
from spinney.model.predictors import VotePredictor
from spinney.table.schema import Schema

if TYPE_CHECKING:
    from spinney.ensemble.subspaces import Bags
    from spinney.model.earlier_members import EarlierMembers
    from spinney.model.out_of_bag import OutOfBag
    from spinney.tree.forest import Forest
    from spinney.tree.structure import Tree


@dataclass(frozen=True, eq=False)
class TreeMembers:
    """Members that are CART trees of one kind.

    Attributes
    ----------
    forest : Forest
        The trees, with features numbered as in the whole table.
    schema : Schema
        Of the whole table.
    base : estimator
        The tree that the members are copies of, not fitted.
    """

    forest: Forest
    schema: Schema
    base: Any


@dataclass(frozen=True, eq=False)
class OtherMembers:
    """Members of any other kind: fitted estimators, in the order of their numbers."""

    members: list[Any]


@dataclass(frozen=True, eq=False)
class FittedBagging:
    """A fitted bagging ensemble; it has either `trees` or `others`.

    Attributes
    ----------
    bags : Bags
        Which rows and columns each member sees.
    template : estimator or list of estimators
        What the members are copies of.
    classes : array (n_classes,), list of such for several outputs, or None for numbers
    is_soft : bool
        Whether members give shares of classes, instead of naming one.
    fingerprint : str
        Hash of the training data and weights.
    trees : TreeMembers, optional
    others : OtherMembers, optional
    shift : int
        Sums over members of numbers are in units of `2**shift`, so that they stay within float64.
    out_of_bag : OutOfBag, optional
    earlier : EarlierMembers, optional
        Members of fits on other rows; `bags.draw` and fingerprint are those of the last fit.
    """

    bags: Bags
    template: Any
    classes: Any
    is_soft: bool
    fingerprint: str
    trees: TreeMembers | None = None
    others: OtherMembers | None = None
    shift: int = 0
    out_of_bag: OutOfBag | None = None
    earlier: EarlierMembers | None = None

    def __len__(self) -> int:
        if self.trees is not None:
            return len(self.trees.forest)
        return 0 if self.others is None else len(self.others.members)

    @property
    def n_classes(self) -> int:
        """0 for numbers, and for several outputs."""
        return 0 if classes_of_one(self.classes) is None else len(self.classes)

    def make_predictor(self, *, is_hard: bool) -> VotePredictor:
        """What predicts, of trees; is_hard: each tree votes for one class, instead of giving shares."""
        assert self.trees is not None
        return VotePredictor(self.trees.schema, classes_of_one(self.classes), self.trees.forest, is_hard, self.shift)

    def take_tree(self, member: int) -> tuple[Tree, Schema]:
        """The tree of a member, and the schema of the columns it has seen."""
        assert self.trees is not None
        tree, schema = self.trees.forest[member], self.trees.schema
        if self.bags.spaces.is_whole:
            return tree, schema
        columns = self.bags.spaces.columns(member)
        names = None if schema.names is None else tuple(schema.names[j] for j in columns)
        return narrow_tree(tree, columns), Schema(names, tuple(schema.levels[j] for j in columns))

    def find_fault(self, n_features: int, n_outputs: int = 1) -> str | None:
        """What is wrong with an ensemble that was read from a file, before any method reads it; None: nothing."""
        draw, spaces, seed = self.bags
        if not 0 <= seed < MOST_SEED or draw.seed != seed or spaces.seed != seed:
            return "the seed must be that of the bags, and not negative"
        if spaces.n_features != n_features:
            return f"columns are drawn from {spaces.n_features}, but there are {n_features}"
        if (self.trees is None) == (self.others is None) or len(self) == 0:
            return "bagging has trees or other members, at least one"
        fault = None if self.earlier is None else self.earlier.find_fault(len(self))
        if fault is None and self.earlier is not None and self.out_of_bag is not None:
            return "members of other rows have no out-of-bag results"
        if fault is None and self.trees is not None:
            fault = self.find_fault_in_trees(self.trees)
        if fault is None and self.out_of_bag is not None:
            widths = None if self.trees is None else self.trees.forest.widths
            n_columns = n_outputs if widths is None else int(widths.sum())
            fault = self.out_of_bag.find_fault(draw.n_rows, len(self), self.n_classes, self.shift, n_columns, widths)
        return fault

    def find_fault_in_trees(self, trees: TreeMembers) -> str | None:
        """The same, of trees: each asks for columns of its own alone."""
        forest = trees.forest
        fault = find_forest_fault(forest, trees.schema, self.classes)
        if fault is not None or self.bags.spaces.is_whole:
            return fault
        tested = feature_of_link(forest.hot[:, 1])
        for member in range(len(forest)):
            nodes = slice(forest.first_node[member], forest.first_node[member + 1])
            if not np.isin(tested[nodes][~forest.is_leaf[nodes]], self.bags.spaces.columns(member)).all():
                return f"tree {member} asks for columns that it has not seen"
        return None
