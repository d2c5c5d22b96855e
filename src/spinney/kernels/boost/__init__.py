"""Grow the trees of gradient boosting on rows of bytes."""
