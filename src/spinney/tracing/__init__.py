"""Traces: every test that each node of a finished tree could have had, and why the one that it has won."""
