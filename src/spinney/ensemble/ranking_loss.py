"""The loss of lists that are put in order: rows of a query are compared with each other, by LambdaMART.

Words as in `kernels.boost.ranking`. The target of a row is one number, `query * 32 + relevance`: whatever rows a fit
takes (those of a bag, those held out) carry their query along.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import log, log_one
from spinney._jit import interpreted, kernels
from spinney.ensemble.best_constant import Floats
from spinney.ensemble.losses import MIN_H, JointLoss
from spinney.kernels.common.structs import Queries

_codes = interpreted().boost.ranking

METRICS = {"ndcg": _codes.NDCG, "map": _codes.MAP}
RELEVANCES = 32  # 0 .. 31, as LightGBM and XGBoost take them: gains double with each
PAIR_SECONDS = 2e-6  # interpreted


def pack_target(query: NDArray[np.int64], relevance: Floats) -> Floats:
    """The target of rows: their query, 0, 1, ..., and relevance as one number."""
    return query * float(RELEVANCES) + relevance


class LambdaRank(JointLoss):
    """1 - NDCG or MAP of the first `places` rows of a query, on average; its pulls at scores are LambdaMART's.

    Parameters
    ----------
    metric : {"ndcg", "map"}
    truncation : int
        Pairs have a row among so many first places.
    places : int
        Places that the value of the loss looks at, which learning curves and early stopping go by.
    """

    name = "lambdarank"
    judges_bags = False  # what a bag leaves of the lists is too short to tell

    def __init__(self, metric: str, truncation: int, places: int) -> None:
        self.metric, self.truncation, self.places = metric, truncation, places

    def check(self, y: Floats) -> None:
        """Raise ValueError for what is no query with a relevance."""
        self._refuse(y, ~(np.isfinite(y) & (y >= 0.0) & (y == np.floor(y))), "queries and relevances", "Pack them")

    def begin_round(self, y: Floats, weight: Floats | None, raw: Floats) -> None:
        """Find the pulls at all scores."""
        del weight
        queries = self._find_lists(y, self.truncation)
        g, h = np.empty((1, len(y))), np.empty((1, len(y)))
        n_pairs = len(y) * min(self.truncation, len(queries.discount))
        chosen = kernels(n_pairs * PAIR_SECONDS)
        chosen.boost.ranking.fill_lambdas(
            METRICS[self.metric],
            self.truncation,
            queries,
            raw[0],
            g[0],
            h[0],
            np.empty(len(queries.discount), np.int64),
            np.empty((2, len(queries.discount))),
        )
        self._of_round = g, np.maximum(h, MIN_H, out=h)

    def value(self, y: Floats, weight: Floats | None, raw: Floats) -> float:
        """1 less the mean NDCG or MAP of the queries, each weighted by the mean weight of its rows."""
        queries = self._find_lists(y, self.places)
        of_query = np.ones(len(queries.starts) - 1)
        if weight is not None:  # before `measure` puts the rows in the order of their scores
            of_query = np.add.reduceat(weight[queries.order], queries.starts[:-1]) / np.diff(queries.starts)
        measured = self.measure(queries, raw[0])
        return 1.0 - math.fsum(of_query * measured) / math.fsum(of_query)

    def measure(self, queries: Queries, raw: Floats) -> Floats:
        """NDCG or MAP of each query, (n_queries,)."""
        values = np.empty(len(queries.starts) - 1)
        chosen = kernels(len(raw) * PAIR_SECONDS)
        spare = np.empty(len(queries.discount), np.int64)
        chosen.boost.ranking.measure_queries(METRICS[self.metric], self.places, queries, raw, values, spare)
        return np.minimum(values, 1.0, out=values)  # sums of one order may be rounded otherwise than those of the best

    def _find_lists(self, y: Floats, places: int) -> Queries:
        """The queries of rows, in the order of their numbers."""
        found: Queries = self._once(y, places, lambda: self._list_rows(y, places))
        return found._replace(order=found.order.copy())  # equal scores stand as rows do, whatever rounds before

    def _list_rows(self, y: Floats, places: int) -> Queries:
        """The queries of rows; places: those that the best order is valued by."""
        query, relevance = np.divmod(y.astype(np.int64), RELEVANCES)
        order = np.argsort(query, kind="stable")
        starts = np.append(np.flatnonzero(np.diff(query[order], prepend=-1)), len(y))
        gain = np.ldexp(1.0, np.arange(RELEVANCES)) - 1.0
        discount = log_one(2.0) / log(np.arange(2.0, int(np.diff(starts).max()) + 2.0))
        by_value = order[np.lexsort((-relevance[order], query[order]))]
        place = np.arange(len(y)) - np.repeat(starts[:-1], np.diff(starts))
        counts = place < places
        if self.metric == "ndcg":
            worth = np.where(counts, gain[relevance[by_value]] * discount[place], 0.0)
        else:
            worth = np.where(counts, (relevance[by_value] > 0).astype(np.float64), 0.0)
        best = np.add.reduceat(worth, starts[:-1])
        per_best = np.divide(1.0, best, out=np.zeros(len(best)), where=best > 0.0)
        return Queries(order, starts, relevance, gain, discount, per_best)

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        found: dict[str, Any] = vars(self)
        return (
            set(found) == {"metric", "truncation", "places"}
            and found["metric"] in METRICS
            and all(type(found[name]) is int and found[name] > 0 for name in ("truncation", "places"))
        )
