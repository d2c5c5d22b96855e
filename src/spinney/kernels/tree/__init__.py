"""Grow one tree of binary tests: CART, the trees of forests and of extra-trees, stumps."""
