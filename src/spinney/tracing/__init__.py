"""Traces: every test that each node of a finished tree could have had, and why the one that it has won.

| file | holds |
|---|---|
| `trace.py` | `Trace`: every test with its figures |
| `replay.py` | the rows led through a finished tree again |
| `candidates.py` | the tests that a feature offers at a node |
| `category_chance.py` | what levels gain by chance, as the grower has it |
| `reasons.py` | why one test won |
| `tables.py` | a node as a table |
| `text.py` | such tables as text |
| `html.py` | such tables as HTML |
| `wording.py` | names of features, levels, classes, tests |
"""
