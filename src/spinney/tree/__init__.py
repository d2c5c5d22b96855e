"""One tree: its arrays, how it grows, how it is pruned."""
