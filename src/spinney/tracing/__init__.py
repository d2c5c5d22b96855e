"""Traces: every test that each node of a finished tree could have asked, and why the one that it asks won."""
