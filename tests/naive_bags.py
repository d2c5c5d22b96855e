"""A second, slow and plain version of how bags are drawn by blocks: what the fast one is compared with.

Nothing here is shared with the package. Numbers are Python's: words of 64 bits are whole numbers, and the chances of a
count are whole numbers over a common denominator, exact. A stratum is a list of (id, weight), ids ascending.
"""

from __future__ import annotations

import math

WORD = (1 << 64) - 1


def letters(text):
    """The purpose of a draw as a number."""
    return int.from_bytes(text.encode(), "big")


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def fold(key, *parts):
    """The key of a part of a part of what a key names."""
    for part in parts:
        key = mix(mix((key + 0x9E3779B97F4A7C15) & WORD) ^ ((part * 0x9E3779B97F4A7C15 + 0x94D049BB133111EB) & WORD))
    return key


def below(key, index, bound):
    """Draw number `index` of a key, one of 0 .. bound - 1."""
    return int((fold(key, index) >> 11) / 2**53 * bound)


def binomial(m, left, right):
    """Chances of 0 .. m hits as a function to whole numbers, and their sum."""
    return lambda k: math.comb(m, k) * left**k * right ** (m - k), (left + right) ** m


def hypergeometric(m, left, right):
    """Chances of 0 .. m units of the left ones as a function to whole numbers, and their sum."""
    return lambda k: math.comb(left, k) * math.comb(right, m - k), math.comb(left + right, m)


def deal_left(word, m, left, right, is_replaced):
    """How many of m draws fall into the left half: the chances end to end, from the likeliest count outwards."""
    if left == 0 or right == 0 or m == 0:
        return 0 if left == 0 else m
    if is_replaced:
        chance, total = binomial(m, left, right)
        likeliest = int((m + 1) * (left / (left + right)))
        least, most = 0, m
    else:
        chance, total = hypergeometric(m, left, right)
        likeliest = int((m + 1) * ((left + 1) / (left + right + 2)))
        least, most = max(0, m - right), min(m, left)
    likeliest = min(max(likeliest, least), most)
    order = [likeliest]
    for step in range(1, m + 2):
        order += [k for k in (likeliest + step, likeliest - step) if least <= k <= most]
    reached = 0
    for k in order:
        reached += chance(k)
        if (word >> 11) * total < reached << 53:
            return k
    raise AssertionError("the chances of all counts are less than 1")


def deal(key, stratum, m, size, level, node, is_replaced):
    """Draws of each block below a node, as {block: draws}."""
    if m == 0 or not stratum:
        return {}
    if level == 0:
        return {node: m}
    middle = ((2 * node + 1) << (level - 1)) * size
    left = [unit for unit in stratum if unit[0] < middle]
    right = [unit for unit in stratum if unit[0] >= middle]
    a, b = (sum(weight for _, weight in half) for half in (left, right))
    n_left = deal_left(fold(key, level, node), m, a, b, is_replaced)
    found = deal(key, left, n_left, size, level - 1, 2 * node, is_replaced)
    return found | deal(key, right, m - n_left, size, level - 1, 2 * node + 1, is_replaced)


def draw_in_block(key, block, m):
    """The ids that m draws with replacement give, units by their weights."""
    total = sum(weight for _, weight in block)
    found = []
    for k in range(m):
        at = below(key, k, total)
        for unit, weight in block:
            if at < weight:
                found.append(unit)
                break
            at -= weight
    return found


def choose_in_block(key, block, m):
    """The ids that are chosen without replacement, by selection."""
    found = []
    for place, (unit, _) in enumerate(block):
        n_left = len(block) - place
        if below(key, n_left, n_left) < m - len(found):
            found.append(unit)
    return found


def bag(seed, tree, strata, n_drawn, n_ids, size, is_replaced):
    """How often each id is drawn; n_drawn: from each of the strata; size: of a block."""
    counts = [0] * n_ids
    key = fold(seed, letters("bag"), tree)
    n_levels = 0
    while size << n_levels < n_ids:
        n_levels += 1
    for s, stratum in enumerate(strata):
        shares = deal(fold(key, letters("half"), s), stratum, n_drawn[s], size, n_levels, 0, is_replaced)
        for number, m in shares.items():
            block = [unit for unit in stratum if unit[0] // size == number]
            draw = draw_in_block if is_replaced else choose_in_block
            for unit in draw(fold(key, letters("block"), s, number), block, m):
                counts[unit] += 1
    return counts
