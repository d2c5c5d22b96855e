"""Grow and prune ID3 and C4.5 trees: many branches, pieces of rows."""
