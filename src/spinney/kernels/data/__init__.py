"""Bins of columns and draws of rows."""
