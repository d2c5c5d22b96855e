"""Which features may stand on one path of a boosted tree: `interaction_cst` as a user writes it."""

from __future__ import annotations

from itertools import combinations
from numbers import Integral
from typing import TYPE_CHECKING, Any

from spinney.estimators.checks import refuse_date, refuse_places

if TYPE_CHECKING:
    from spinney.table.schema import Schema


def check_interactions(constraint: Any, schema: Schema) -> list[list[int]] | None:
    """Groups of features that may stand on one path; features in none of them make up a group of their own."""
    n_features = schema.n_features
    if constraint is None:
        return None
    if isinstance(constraint, str):
        size = 1 if constraint == "no_interactions" else min(2, n_features)
        return [list(group) for group in combinations(range(n_features), size)]
    names = {name: j for j, name in enumerate(schema.names or ())}
    groups = []
    for group in constraint:
        if isinstance(group, str) or not hasattr(group, "__iter__"):
            raise ValueError(
                "Interaction constraints must be a sequence of tuples or lists: interaction_cst has sets of columns, "
                f"and not {group!r}"
            )
        groups.append(sorted({find_feature(feature, names, schema) for feature in group}))
    rest = sorted(set(range(n_features)).difference(*groups))
    return [group for group in [*groups, rest] if group]


def find_feature(feature: Any, names: dict[Any, int], schema: Schema) -> int:
    """Index of a feature given by index or name."""
    n_features = schema.n_features
    if isinstance(feature, str):
        if feature not in names:
            refuse_date(schema, "interaction_cst", feature)
            known = f"the columns are {list(names)[:10]}" if names else "X has no column names"
            raise ValueError(f"interaction_cst names {feature!r}, but {known}")
        return names[feature]
    refuse_places(schema, "interaction_cst")
    is_index = isinstance(feature, Integral) and not isinstance(feature, bool)
    if not is_index or not 0 <= feature < n_features:
        raise ValueError(
            "Interaction constraints must consist of integer indices in [0, n_features - 1] = "
            f"[0, {n_features - 1}], specifying the position of features, or of their names: interaction_cst has "
            f"{feature!r}"
        )
    return int(feature)
