"""Second, slow and plain versions of what forests compute: what the fast ones are compared with.

Nothing here is shared with the package. Bags are lists of counts: counts[b][i] is how often row i is in bag b.
"""

from __future__ import annotations

import math
from fractions import Fraction

# --- Uncertainty: one new row at a time, loops over rows and trees ------------------------------------------------


def mean(values):
    return math.fsum(values) / len(values)


def variance(values):
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values) / len(values)


def mean_without(predictions, counts, row):
    """Mean of the trees whose bag lacks the row; None if every bag has it."""
    kept = [t for t, bag in zip(predictions, counts, strict=True) if bag[row] == 0]
    return mean(kept) if kept else None


def jackknife(predictions, counts, correction):
    """Jackknife after bootstrap for one new row: predictions[b] of each tree."""
    n_trees = len(predictions)
    without = [mean_without(predictions, counts, i) for i in range(len(counts[0]))]
    used = [i for i, m in enumerate(without) if m is not None]
    n = len(used)
    raw = (n - 1) / n * math.fsum((without[i] - mean(predictions)) ** 2 for i in used)
    if correction == "none":
        return raw
    if correction == "bootstrap":
        noise = (math.e - 1) * n / n_trees
    else:
        n_out = [sum(bag[i] == 0 for bag in counts) for i in used]
        noise = math.fsum(1 / k - 1 / n_trees for k in n_out)
    return max(raw - noise * variance(predictions), 0.0)


def infinitesimal_jackknife(predictions, counts, correction):
    """Infinitesimal jackknife for one new row: predictions[b] of each tree."""
    n_trees, n_rows = len(predictions), len(counts[0])
    centre = mean(predictions)
    raw, spread = [], []
    for i in range(n_rows):
        times = [float(bag[i]) for bag in counts]
        often = mean(times)
        covariance = math.fsum((k - often) * (t - centre) for k, t in zip(times, predictions, strict=True)) / n_trees
        raw.append(covariance**2)
        spread.append(variance(times))
    found = math.fsum(raw)
    if correction == "bootstrap":
        found = max(found - n_rows / n_trees**2 * math.fsum((t - centre) ** 2 for t in predictions), 0.0)
    elif correction == "counts":
        found = max(found - math.fsum(spread) / n_trees * variance(predictions), 0.0)
    if max(max(bag) for bag in counts) == 1:
        share = sum(sum(bag) for bag in counts) / n_trees / n_rows
        found /= (1 - share) ** 2
    return found


def forest_weights(leaf, leaves, counts, row_weight=None):
    """Meinshausen's weights of the training rows for one new row, exact.

    leaf[b]: the new row's leaf in tree b; leaves[b][i]: that of training row i.
    """
    n_rows = len(leaves[0])
    row_weight = [1] * n_rows if row_weight is None else row_weight
    per_tree = []
    for b, own in enumerate(leaf):
        inside = [counts[b][i] * Fraction(row_weight[i]) if leaves[b][i] == own else Fraction(0) for i in range(n_rows)]
        if sum(inside) > 0:
            per_tree.append([w / sum(inside) for w in inside])
    if not per_tree:
        return [Fraction(0)] * n_rows
    return [sum(column) / len(per_tree) for column in zip(*per_tree, strict=True)]


def forest_quantile(weights, y, level):
    """Smallest target whose cumulative weight is at least `level`, a Fraction."""
    reached = Fraction(0)
    found = math.nan
    for value, weight in sorted(zip(y, weights, strict=True)):
        if weight > 0:
            found = value
            reached += weight
            if reached >= level:
                break
    return found


def rank(coverage, n):
    """ceil(coverage * (n + 1)) for a Fraction."""
    return -((-coverage * (n + 1)) // 1)


def interval_after_bootstrap(predictions, counts, oob_prediction, y, coverage):
    """Jackknife+ after bootstrap for one new row; coverage is a Fraction."""
    lows, highs = [], []
    for i in range(len(y)):
        m = mean_without(predictions, counts, i)
        if m is not None:
            lows.append(m - abs(y[i] - oob_prediction[i]))
            highs.append(m + abs(y[i] - oob_prediction[i]))
    n = len(lows)
    below, above = n + 1 - rank(coverage, n), rank(coverage, n)
    return (
        sorted(lows)[below - 1] if below >= 1 else -math.inf,
        sorted(highs)[above - 1] if above <= n else math.inf,
    )


def set_after_bootstrap(probabilities, counts, oob_probability, y, coverage):
    """Whether each class is in the set of one new row: probabilities[b][c]; coverage is a Fraction."""
    found = []
    for c in range(len(probabilities[0])):
        n = n_above = 0
        for i in range(len(y)):
            share = mean_without([p[c] for p in probabilities], counts, i)
            if share is not None:
                n += 1
                n_above += (1 - share) - (1 - oob_probability[i][y[i]]) > 1e-9
        found.append(n_above < coverage * (n + 1))
    return found
