"""Gradient boosting as the textbook has it: steps and sizes that are numbers, and nothing drawn.

Tests of sums, rows, weights, warm starts and peers use these; what the defaults do is `test_boosting_defaults`.
"""

PLAIN = {
    "learning_rate": 0.1,
    "n_estimators": 100,
    "max_leaf_nodes": 31,
    "min_samples_leaf": 20,
    "subsample": 1.0,
    "max_features": None,
    "reg_lambda": 1.0,
    "cat_penalty": 0.0,
    "max_cat_threshold": 8,
}


def plain(**settings):
    """`PLAIN` with other settings in place of some; Friedman's method pulls no leaf towards 0."""
    friedman = {} if settings.get("newton", True) else {"reg_lambda": 0.0}
    return {**PLAIN, **friedman, **settings}
