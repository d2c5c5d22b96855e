"""What both kinds of bagging share: bags of rows and columns, fitting, adding up.

fit:   X, y ──► make_bagging_draw, Subspaces ──► Bags ──► CART trees: code_for_bags ──► SubspaceGrowth ──┐
└─► other members: MemberFits ─────────────────────┴─► FittedBagging
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt

from spinney._cost import growing_seconds
from spinney._threads import count_workers
from spinney.ensemble.forest import Plan, as_member, member_key, vote_again
from spinney.ensemble.out_of_bag import OutOfBagSums
from spinney.ensemble.sampling import Draw, bagging_params, make_bagging_draw, positive_rows
from spinney.ensemble.subspaces import Bags, SubspaceGrowth, Subspaces
from spinney.estimators.bagging_by_levels import fit_bagging_by_levels, plan_bags
from spinney.estimators.bagging_warm_start import WARM, Start, refuse_columns, start_from
from spinney.estimators.bags_on_cluster import ClusterBags
from spinney.estimators.bags_on_disk import DiskBags
from spinney.estimators.base import Estimator
from spinney.estimators.cart import (
    CARTRegressor,
    cart_params,
    count_features,
    grows_in_forests,
    is_fast,
    make_tree_estimator,
)
from spinney.estimators.checkpoints import CHECKPOINT_CONSTRAINTS, open_checkpoint, refuse_members
from spinney.estimators.checks import (
    all_or_nothing,
    check_codes,
    check_monotone,
    draw_seed,
    open_x,
    weigh_classes,
)
from spinney.estimators.class_outputs import refuse_oob, weigh_outputs
from spinney.estimators.fingerprints import fingerprint, mark_weights
from spinney.estimators.forest_checkpoint import keeping_trees, mark_bag_data
from spinney.estimators.forest_training import BAG_CONSTRAINTS, find_shift
from spinney.estimators.kept import Kept, Part, find_hash_fault, set_parts
from spinney.estimators.other_members import (
    MemberFits,
    MemberPlan,
    Template,
    check_members,
    find_member_fault,
    hold_rows,
    list_templates,
    mark_rows,
    sum_decisions,
    sum_member_votes,
    takes_outputs,
)
from spinney.estimators.out_of_bag import OOB_KEPT, finish_out_of_bag, restore_out_of_bag
from spinney.estimators.parameters import parameter
from spinney.estimators.routing import make_router, route
from spinney.estimators.scanned import give_rows, is_scanned, open_store
from spinney.estimators.scoring import find_oob_scorer
from spinney.estimators.training import OpenedData, TrainingData, code_for_bags, open_training, refuse_asked
from spinney.model.container import BrokenFileError
from spinney.model.earlier_members import EarlierMembers, refuse_earlier
from spinney.model.fitted_bagging import FittedBagging, OtherMembers, TreeMembers
from spinney.scale.plan import GrowingBytes, TopGrowing
from spinney.table.schema import Schema, encode
from spinney.tree.forest import Forest, join_forests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.estimators.checkpoints import Checkpoint
    from spinney.estimators.cluster_rows import ClusterRows
    from spinney.estimators.training import BagRows, Effort
    from spinney.model.out_of_bag import OutOfBag
    from spinney.model.predictors import VotePredictor

ARGUMENTS = ("X", "y", "sample_weight", "groups", "strata")  # of `fit`
BAGGING_CONSTRAINTS: dict[str, list[Any]] = {
    "estimator": [HasMethods(["fit", "predict"]), list, None],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    **BAG_CONSTRAINTS,
    "max_features": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0.0, 1.0, closed="right")],
    "bootstrap_features": ["boolean"],
    "oob_score": ["boolean", str, callable],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    **CHECKPOINT_CONSTRAINTS,
}


def members_have(method: str) -> Any:
    """A check for `available_if`: whether all members, or what they will be copies of, have a method."""

    def check(bag: Any) -> bool:
        try:
            templates = list_templates(bag, bag._default())  # noqa: SLF001
        except (TypeError, ValueError):  # which `fit` tells
            return False
        return all(hasattr(template.estimator, method) for template in templates)

    return check


class PreparedBags(NamedTuple):
    """Trees on bags about to be grown, and what their model keeps beside them: can be pickled, and grown elsewhere."""

    growth: SubspaceGrowth
    schema: Schema
    y: NDArray[Any]  # (n_rows,) codes of classes, or numbers
    bags: Bags
    base: Any  # what all trees are copies of
    mark: str  # the fingerprint of X, y and weights
    seconds: float  # that all of it takes, interpreted
    n_trees: int  # to be grown
    bag_data: dict[str, str] = {}  # noqa: RUF012  (nobody adds to it)  hashes of all that trees follow from
    start: Start = Start()


class Bagging(Estimator[FittedBagging]):
    """What both kinds of bagging share.

    A bag of our own trees is a forest, and is grown and read like one: codes are made once, and prediction runs through
    all trees at once. Other members are fitted one by one.
    """

    _growing_bytes: ClassVar[GrowingBytes] = GrowingBytes(has_bins=False, copies=1, state=100, is_shared_out=True)
    _keeps: ClassVar[dict[str, Kept]] = {
        "_schema": Kept(Schema, is_needed=False),
        "forest_": Kept(Forest, is_needed=False),
        "_members": Kept(list, is_needed=False, check=check_members),
        "estimator_": Kept(BaseEstimator | list),
        "_base": Kept(BaseEstimator, is_needed=False),
        "_bags": Kept(Bags, stored=(Bags, Draw, Subspaces)),
        "_is_soft": Kept(bool),
        "_fingerprint": Kept(str, check=find_hash_fault),
        "_n_before": Kept(int, is_needed=False),
        **OOB_KEPT,
    }
    forest_ = Part("trees.forest")
    estimator_ = Part("template")
    oob_curve_ = Part("out_of_bag.curve")
    oob_score_ = Part("out_of_bag.score")
    _schema = Part("trees.schema")
    _base = Part("trees.base")
    _members = Part("others.members")
    _bags = Part("bags")
    _is_soft = Part("is_soft")
    _fingerprint = Part("fingerprint")
    _n_before = Part("earlier.n_members")
    _oob_votes = Part("out_of_bag.votes")
    _oob_n_votes = Part("out_of_bag.n_votes")
    _oob_is_hard = Part("out_of_bag.is_hard")

    _takes_columns: ClassVar[bool] = False
    _default: ClassVar[Any]  # the class of the members where `estimator` is None
    _oob_predictions: ClassVar[str]  # the name of the attribute that holds them

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = self._list_given()
        if members and all(hasattr(member, "__sklearn_tags__") for member in members):
            inputs = [get_tags(member).input_tags for member in members]
            for name in ("allow_nan", "sparse", "categorical", "string"):
                setattr(tags.input_tags, name, all(getattr(tag, name) for tag in inputs))
        return tags

    def _list_given(self) -> list[Any]:
        """What members are copies of, not checked."""
        given = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        members = [item[1] if isinstance(item, tuple) and len(item) == 2 else item for item in given]
        return [self._default() if member is None else member for member in members]

    # --- fitting ---

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's metadata routing asks: arguments of this estimator, and those of its members.

        Returns
        -------
        MetadataRouter
        """
        return make_router(self, self._find_template())

    def _find_template(self) -> Any:
        """What all members are copies of; None where they are of several kinds."""
        templates = list_templates(self, self._default())
        return templates[0].estimator if len(templates) == 1 else None

    def _route(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Arguments of a method that are the members'."""
        return route(self, method, self._find_template(), params, ARGUMENTS if method == "fit" else ("X",))

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        strata: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan
            What the members take; frames reach them as frames.
        y : array-like (n_rows,) or (n_rows, n_outputs)
            Classes of any type, or numbers for a regressor; several outputs of classes for CART trees alone. A scan
            brings its own and its weights.
        sample_weight : array-like (n_rows,), optional
            A bootstrap draws rows in proportion to their weight; without bags, and where rows are drawn without
            replacement, by group or by stratum, the members weigh them. Rows of weight 0 are in no bag; members that
            take weights get them with theirs, as all rows outside their bag.
        groups : array-like (n_rows,), optional
            Rows of one group are drawn together, so that an out-of-bag row has no relative in the bag.
        strata : array-like (n_rows,), optional
            Bags draw from every stratum in proportion to its size.
        **fit_params
            Arguments of the members' `fit` that they have asked for by `set_fit_request`, where scikit-learn's metadata
            routing is on.
        """
        with all_or_nothing(self):
            self._validate_params()
            params = self._route("fit", fit_params)
            templates = list_templates(self, self._default())
            has_trees = is_fast(templates, self._default)
            if is_scanned(X) and not has_trees:
                raise ValueError(
                    f"{type(self).__name__} of members that no forest has takes rows in memory, and X is a scan: use "
                    "CART trees as members, without surrogates, linear leaves, or prunings but a number ccp_alpha, or "
                    "read a sample of the rows"
                )
            if is_scanned(X):
                store, plan = open_store(self, X, y, sample_weight, groups)
                if plan.by_levels:
                    self._fitted = fit_bagging_by_levels(self, lambda tree: DiskBags(self, tree, store, plan), strata)
                    return self
                X, y, sample_weight, groups = give_rows(store, plan)
            known: Any = getattr(self, "feature_names_in_", None)
            data = open_training(self, X, y, sample_weight)
            self._refuse_outputs(data.y)
            group_codes, stratum_codes = self._check_units(groups, strata, data.y)
            old = self._find_old(warm_start=self.warm_start)
            names: Any = getattr(self, "feature_names_in_", None)
            if old is not None and not np.array_equal(known, names):
                raise ValueError(f"{WARM}; the names of the columns differ. Set warm_start=False to begin anew.")
            seed = draw_seed(self.random_state) if old is None else old.bags.seed
            table = data.read(templates[0].estimator) if has_trees else None
            checkpoint = None
            if table is None:
                refuse_members(self, templates[0].estimator)
            else:
                checkpoint = self._open_checkpoint(table, group_codes, stratum_codes, seed, old)
            seed = seed if checkpoint is None else checkpoint.seed
            draw, weight = self._draw_rows(data.n_rows, data.weight, group_codes, stratum_codes, seed)
            draw = draw if old is None else draw.by_blocks_of(old.bags.draw)
            data = data._replace(weight=weight)
            if table is not None:
                bags = Bags(draw, self._make_spaces(seed, table.table.schema.n_features), seed)
                self._fitted = self._fit_trees(templates, table._replace(weight=weight), bags, old, checkpoint)
                return self
            bags = Bags(draw, self._make_spaces(seed, self.n_features_in_), seed)
            if bags.spaces.has_repeats and data.is_frame:
                raise ValueError(
                    "bootstrap_features=True draws columns more than once, but a frame holds each column once: "
                    "pass an array, or set bootstrap_features=False"
                )
            self._fitted = self._fit_others(templates, data, bags, old, params)
            return self

    def _fit_spread(self, rows: ClusterRows, others: dict[str, Any]) -> None:
        """Fit to rows at the workers of a cluster; others: arguments of `fit` beside X, y and weights."""
        self._validate_params()
        with contextlib.ExitStack() as stack:

            def open_rows(tree: Any) -> ClusterBags:
                return stack.enter_context(contextlib.closing(ClusterBags(self, tree, rows, others.get("groups"))))

            self._fitted = fit_bagging_by_levels(self, open_rows, others.get("strata"))

    def _draw_rows(
        self,
        n_rows: int,
        weight: NDArray[np.float64] | None,
        groups: NDArray[np.int32] | None,
        strata: NDArray[np.int32] | None,
        seed: int,
    ) -> tuple[Draw, NDArray[np.float64] | None]:
        """How bags of rows are drawn, and the weights that are left to the members."""
        drawing = bagging_params(
            self.bootstrap,
            self.max_samples,
            self.block_size,
            parameter(self, "stratify", None),
            has_oob=bool(self.oob_score),
        )
        return make_bagging_draw(drawing, n_rows, weight, groups, strata, seed)

    def _check_units(
        self, groups: Any, strata: Any, target: NDArray[Any]
    ) -> tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]:
        """Codes of groups and strata of the rows, which bags are drawn by."""
        stratum_codes = check_codes(strata, "strata", len(target))
        if parameter(self, "stratify", None) is not None:
            if stratum_codes is not None:
                raise ValueError("stratify draws by class, strata= by the given labels: use one")
            stratum_codes = target.astype(np.int32)
        return check_codes(groups, "groups", len(target)), stratum_codes

    def _make_spaces(self, seed: int, n_features: int) -> Subspaces:
        """How bags of columns are drawn."""
        if isinstance(self.max_features, Integral):
            n_drawn = int(self.max_features)
            if n_drawn > n_features:
                raise ValueError(f"max_features={n_drawn} must be <= n_features={n_features}; give 1.0 for all of them")
        else:
            n_drawn = max(1, int(float(self.max_features) * n_features))
        return Subspaces(n_features, n_drawn, seed, bool(self.bootstrap_features))

    def _open_checkpoint(
        self,
        data: TrainingData,
        groups: NDArray[np.int32] | None,
        strata: NDArray[np.int32] | None,
        seed: int,
        old: FittedBagging | None,
    ) -> Checkpoint | None:
        """Where trees are kept while they are grown; data: with the weights of rows before any draw has used them."""

        def mark() -> dict[str, str]:
            return mark_bag_data(fingerprint(data.table, data.y, self._labels), data.weight, groups, strata)

        return open_checkpoint(self, seed, old, mark)

    def _fit_trees(
        self,
        templates: list[Template],
        data: TrainingData,
        bags: Bags,
        old: FittedBagging | None,
        checkpoint: Checkpoint | None,
    ) -> FittedBagging:
        """Grow CART trees on codes that are made once."""
        prepared, effort = self._prepare_trees(templates, data, bags, old)
        if old is not None and prepared.n_trees == 0 and not prepared.start.is_resumed:
            return old  # nothing was learnt from these rows
        growth, forest = prepared.growth, None if old is None or old.trees is None else old.trees.forest
        if prepared.n_trees > 0:
            with keeping_trees(checkpoint, growth, data.table.schema, prepared.n_trees, effort.kernels):
                new = growth.run(
                    0 if old is None else len(old),
                    prepared.n_trees,
                    effort.kernels,
                    effort.count_workers(self.n_jobs, prepared.n_trees),
                    is_short=effort.is_short,
                    verbose=bool(self.verbose),
                )
            forest = new if forest is None else join_forests(forest, new)
        assert forest is not None
        fitted = self._finish_trees(templates, prepared, forest)
        if checkpoint is not None:
            checkpoint.remove()
        return fitted

    def _prepare_trees(
        self, templates: list[Template], data: TrainingData, bags: Bags, old: FittedBagging | None
    ) -> tuple[PreparedBags, Effort]:
        """Code the rows, and set up what grows on them."""
        labels, is_soft = self._labels, self._gives_shares(templates)
        like = "" if old is None else old.fingerprint
        mark = fingerprint(data.table, data.y, labels, like=like) + mark_weights(data.weight, like=like)
        if old is not None and old.trees is not None:
            refuse_columns(data.table.schema, old.trees.schema)
        n_outputs = 1 if data.y.ndim == 1 else data.y.shape[1]
        start = Start()
        if old is not None:
            start = start_from(self, old, mark, bags, n_outputs, is_soft=is_soft, has_trees=True)
        base = clone(templates[0].estimator).set_params(random_state=0)  # trees draw by keys of their own
        base._validate_params()  # noqa: SLF001
        is_balanced = labels is not None and base.class_weight == "balanced"
        if labels is not None and not is_balanced:
            weigh = weigh_outputs if data.y.ndim == 2 else weigh_classes
            data = data._replace(weight=weigh(base.class_weight, self.classes_, data.y, data.weight))
        n_new, n_drawn = self.n_estimators - start.n_old, bags.spaces.n_drawn
        rows = code_for_bags(data, labels, base, n_drawn, n_new, self.n_jobs)
        plan = self._make_plan(base, rows, bags, data, is_balanced=is_balanced)
        sums = self._start_out_of_bag(plan, data.y, old)
        if sums is not None and old is not None and old.trees is not None and not sums.curve:
            vote_again(plan, old.trees.forest, sums, rows.effort.kernels)
        growth = SubspaceGrowth(plan, rows.legend, bags.spaces, sums)
        seconds = growing_seconds(data.table.n_rows, n_drawn, n_new)
        base.set_params(random_state=None).max_features_ = count_features(base.max_features, n_drawn)
        prepared = PreparedBags(growth, data.table.schema, data.y, bags, base, mark, seconds, n_new, start=start)
        return prepared, rows.effort

    def _make_plan(
        self, base: Any, rows: BagRows, bags: Bags, data: TrainingData, *, is_balanced: bool = False
    ) -> Plan:
        """What the trees share; data: with the weights that trees see."""
        n_drawn = bags.spaces.n_drawn
        params = replace(cart_params(base, data.table.n_rows, n_drawn), has_random_feature_order=self.estimator is None)
        draws_features = params.max_features is not None or not bags.spaces.is_whole
        return Plan(
            codes=rows.codes,
            weights=rows.weights,
            target=rows.target,
            draw=bags.draw,
            params=as_member(params, bags.draw, draws_features=draws_features),
            seed=bags.seed,
            monotone=check_monotone(base.monotonic_cst, self, data.table.schema),
            has_weight=positive_rows(data.weight),
            balances_bags=is_balanced,
            ccp_alpha=float(base.ccp_alpha),
            has_oob=bool(self.oob_score),
            is_hard=self._is_hard,
            shift=self._find_shift(data.y),
        )

    def _finish_levels(
        self, templates: list[Template], growth: Any, schema: Schema, bags: Bags, base: Any, mark: str, forest: Forest
    ) -> FittedBagging:
        """The model of trees that were grown from disk."""
        prepared = PreparedBags(growth, schema, np.zeros(0), bags, base, mark, 0.0, len(forest))
        return self._finish_trees(templates, prepared, forest)

    def _level_growing(self) -> TopGrowing:
        """How trees are grown from disk, where memory cannot hold the rows."""
        return plan_bags(self)

    def _has_growth(self) -> bool:
        """Whether the trees can be grown elsewhere, each by itself."""
        return is_fast(list_templates(self, self._default()), self._default)

    def _prepare_growth(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, strata: Any = None, seed: int
    ) -> PreparedBags:
        """Do all of a fit but growing, with bags by a seed."""
        self._validate_params()
        templates = list_templates(self, self._default())
        data = open_training(self, X, y, sample_weight)
        self._refuse_outputs(data.y)
        units = self._check_units(groups, strata, data.y)
        table = data.read(templates[0].estimator)
        draw, weight = self._draw_rows(data.n_rows, data.weight, *units, seed)
        bags = Bags(draw, self._make_spaces(seed, table.table.schema.n_features), seed)
        prepared, _ = self._prepare_trees(templates, table._replace(weight=weight), bags, None)
        if self.checkpoint is None:
            return prepared
        mark = fingerprint(table.table, data.y, self._labels)
        return prepared._replace(bag_data=mark_bag_data(mark, data.weight, *units))

    def _finish_growth(self, prepared: PreparedBags, forest: Forest) -> None:
        """Set the model of trees that were grown elsewhere."""
        self._fitted = self._finish_trees(list_templates(self, self._default()), prepared, forest)

    def _finish_trees(self, templates: list[Template], prepared: PreparedBags, forest: Forest) -> FittedBagging:
        """The model of all trees; those of `prepared.growth` have voted on their out-of-bag rows."""
        plan = prepared.growth.plan
        self.n_outputs_ = forest.n_outputs
        return FittedBagging(
            bags=prepared.bags,
            template=self._describe(templates),
            classes=None if self._labels is None else self.classes_,
            is_soft=self._gives_shares(templates),
            fingerprint=prepared.mark,
            trees=TreeMembers(forest, prepared.schema, prepared.base),
            shift=max(plan.shift, prepared.start.shift),
            out_of_bag=self._finish_out_of_bag(prepared.growth.out_of_bag, is_hard=plan.is_hard),
            earlier=prepared.start.earlier,
        )

    def _fit_others(
        self,
        templates: list[Template],
        data: OpenedData,
        bags: Bags,
        old: FittedBagging | None,
        params: dict[str, Any],
    ) -> FittedBagging:
        """Fit members of any kind, one by one."""
        rows, y, weight = data.rows(), data.y, data.weight
        is_soft = self._gives_shares(templates)
        classes = None if self._labels is None else self.classes_
        mark = mark_rows(rows, bags.spaces.n_features, y, classes)
        mark += mark_weights(weight, like=mark)
        n_outputs = 1 if y.ndim == 1 else y.shape[1]
        start = Start()
        if old is not None:
            start = start_from(self, old, mark, bags, n_outputs, is_soft=is_soft, has_trees=False)
        n_new = self.n_estimators - start.n_old
        if old is not None and n_new == 0 and not start.is_resumed:
            return old  # nothing was learnt from these rows
        plan = MemberPlan(
            templates,
            rows,
            y if classes is None else classes[y],
            classes,
            weight,
            bags,
            is_hard=not is_soft,
            has_oob=bool(self.oob_score),
            shift=self._find_shift(y),
            params=params,
        )
        sums = self._start_out_of_bag(plan, y, old)
        # nobody knows how long a member takes, or whether it lets others run: threads only where they are asked for
        n_workers = count_workers(self.n_jobs, max(n_new, 1), 0.0)
        self.n_outputs_ = n_outputs
        new = MemberFits(plan, sums).run(start.n_old, n_new, n_workers, verbose=bool(self.verbose))
        return FittedBagging(
            bags=bags,
            template=self._describe(templates),
            classes=classes,
            is_soft=is_soft,
            fingerprint=mark,
            others=OtherMembers([*(() if old is None or old.others is None else old.others.members), *new]),
            shift=max(plan.shift, start.shift),
            out_of_bag=self._finish_out_of_bag(sums, is_hard=plan.is_hard),
            earlier=start.earlier,
        )

    def _gives_shares(self, templates: list[Template]) -> bool:
        """Whether members give shares of classes, and these are wanted."""
        has_shares = self._labels is not None and all(hasattr(t.estimator, "predict_proba") for t in templates)
        return has_shares and not self._is_hard

    def _describe(self, templates: list[Template]) -> Any:
        """What the members are copies of, as `estimator_` gives it."""
        return [t.estimator for t in templates] if isinstance(self.estimator, list) else templates[0].estimator

    def _find_shift(self, y: NDArray[Any]) -> int:
        """Power of two in whose units numbers are summed; 0 for classes."""
        return find_shift(y) if self._labels is None else 0

    def _start_out_of_bag(
        self, plan: Plan | MemberPlan, y: NDArray[Any], old: FittedBagging | None
    ) -> OutOfBagSums | None:
        """Sums of out-of-bag votes, with those of a warm start that are of the same kind; None: not asked for."""
        if not plan.has_oob:
            return None
        find_oob_scorer(self.oob_score)  # what is none is refused before the work
        sums = OutOfBagSums(y, plan.target.n_classes, plan.has_weight, plan.shift, plan.target.widths)
        if old is not None and old.out_of_bag is not None and old.out_of_bag.is_hard == plan.is_hard:
            sums.resume(old.out_of_bag.votes, old.out_of_bag.n_votes, old.out_of_bag.curve)
        return sums

    def _finish_out_of_bag(self, sums: OutOfBagSums | None, *, is_hard: bool) -> OutOfBag | None:
        if sums is None:
            return None
        return finish_out_of_bag(self, sums, find_oob_scorer(self.oob_score), is_hard=is_hard)

    def _refuse_outputs(self, y: NDArray[Any]) -> None:
        """Refuse several outputs where something takes one."""
        if y.ndim == 1:
            return
        refuse_asked(self._asks_one_output(), y.shape[1])
        if self._labels is not None and self.oob_score:
            refuse_oob(self.classes_)

    # --- the fitted ensemble ---

    @property
    def _is_hard(self) -> bool:
        """Whether each member is to vote for one class."""
        return bool(parameter(self, "voting", "soft") == "hard")

    def _set_fitted(self, values: dict[str, Any]) -> None:
        """Set fitted attributes by the names that files have."""
        set_parts(self, values, self._restore)

    def _restore(self, values: dict[str, Any]) -> FittedBagging:
        """The fitted ensemble from the attributes of a file."""
        names = ("forest_", "_schema", "_base")
        missing = [name for name in names if name not in values]
        if missing and len(missing) < len(names):
            raise BrokenFileError(f"the trees of a bag lack {', '.join(missing)}")
        return FittedBagging(
            bags=values["_bags"],
            template=values["estimator_"],
            classes=values.get("classes_"),
            is_soft=values["_is_soft"],
            fingerprint=values["_fingerprint"],
            trees=None if missing else TreeMembers(*(values[name] for name in names)),
            others=OtherMembers(values["_members"]) if "_members" in values else None,
            shift=values.get("_shift", 0),
            out_of_bag=restore_out_of_bag(values, self._oob_predictions),
            earlier=EarlierMembers(values["_n_before"]) if "_n_before" in values else None,
        )

    def _find_fault(self) -> str | None:
        """What is wrong with a fitted ensemble that was just read."""
        fitted = self._find_fitted()
        n_features = self.n_features_in_ if fitted.trees is None else fitted.trees.schema.n_features
        fault = fitted.find_fault(n_features, self._count_outputs())
        if fault is not None or fitted.trees is None:
            return fault or find_member_fault(fitted)
        return None if type(fitted.trees.base) is self._default else "the trees are copies of no CART tree"

    def _has_predictor(self) -> bool:
        """Whether the members are trees of one forest."""
        return self._find_fitted().trees is not None and super()._has_predictor()

    def _count_outputs(self) -> int:
        trees = self._find_fitted().trees
        return int(vars(self).get("n_outputs_", 1)) if trees is None else trees.forest.n_outputs

    def _find_one_output(self) -> dict[str, bool]:
        """What takes one output, and whether it is there: settings of the bag, and those of its members."""
        stratify = parameter(self, "stratify", None)
        asked = {f"stratify={stratify!r}": stratify is not None, "voting='hard'": self._is_hard}
        members = self._list_given()
        if len(members) == 1 and grows_in_forests(members[0], self._default):
            return asked | members[0]._asks_one_output()  # noqa: SLF001
        takes = self._default is CARTRegressor and all(map(takes_outputs, members))
        return asked | {"estimator other than CART trees": not takes}

    def _make_predictor(self) -> VotePredictor:
        return self._find_fitted().make_predictor(is_hard=self._is_hard)

    def _mean_votes(self, X: Any, method: str, given: dict[str, Any]) -> NDArray[np.float64]:
        """Mean of the members' votes, shape (n_rows, n_classes or n_outputs); given: arguments that are theirs."""
        fitted = self._find_fitted()
        params = self._route(method, given)
        if fitted.trees is not None:
            values = encode(open_x(self, X, is_fit=False), fitted.trees.schema)
            means = self._make_predictor().answer(values, self.n_jobs)
            return means if means.ndim == 2 else means[:, None]
        rows = hold_rows(X, open_x(self, X, is_fit=False))
        total = sum_member_votes(fitted, rows, count_workers(self.n_jobs, len(fitted), 0.0), params)
        return np.ldexp(total / len(fitted), fitted.shift)

    def _mean_decisions(self, X: Any, given: dict[str, Any]) -> NDArray[np.float64]:
        """Mean of the members' decision functions, shape (n_rows,) or (n_rows, n_classes)."""
        fitted = self._find_fitted()
        params = self._route("decision_function", given)
        rows = hold_rows(X, open_x(self, X, is_fit=False))
        return sum_decisions(fitted, rows, count_workers(self.n_jobs, len(fitted), 0.0), params) / len(fitted)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Impurity decrease by feature, the mean over the trees, scaled to sum 1, shape (n_features,)."""
        trees = self._find_fitted().trees
        if trees is None:
            raise AttributeError("feature_importances_ is there for bags of CART trees only")
        return trees.forest.importances()

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members; trees are made anew at each access."""
        return [self[t] for t in range(len(self))]

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """The rows of each bag, ascending, repeated as often as drawn; recomputed, not stored."""
        fitted = self._find_fitted()
        refuse_earlier(fitted.earlier, "estimators_samples_ are", AttributeError)
        return [fitted.bags.draw.rows(t) for t in range(len(fitted))]

    @property
    def estimators_features_(self) -> list[NDArray[np.int64]]:
        """The columns of each member, ascending; recomputed, not stored."""
        fitted = self._find_fitted()
        return [fitted.bags.spaces.columns(t) for t in range(len(fitted))]

    def __len__(self) -> int:
        return len(self._find_fitted())

    def __getitem__(self, member: int) -> Any:
        fitted = self._find_fitted()
        t = range(len(fitted))[member]
        return self._make_tree(fitted, t) if fitted.others is None else fitted.others.members[t]

    @staticmethod
    def _make_tree(fitted: FittedBagging, member: int) -> Any:
        """The tree of a member as an estimator of its own, for the columns it has seen."""
        assert fitted.trees is not None
        tree, schema = fitted.take_tree(member)
        cart = clone(fitted.trees.base).set_params(random_state=member_key(fitted.bags.seed, member))
        max_features = count_features(cart.max_features, schema.n_features)
        return make_tree_estimator(cart, tree, schema, fitted.classes, max_features)
