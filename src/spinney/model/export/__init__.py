"""Models that leave Python: one form of trees and sums, and a file for each language it is written in.

| file | holds |
|---|---|
| `exporting.py` | `spinney.export`: writes a model, and compares what was written with it |
| `tree_sum.py` | the one form: trees whose leaves add to sums, and the steps from sums to answers |
| `binary_trees.py` | the same with two branches a node, for runtimes that know no others |
| `json_tables.py` | JSON, whose text other languages embed |
| `evaluator.py` | answers from these tables, row by row |
| `python_source.py` | Python |
| `c_source.py` | C99 |
| `javascript.py` | JavaScript |
| `sql.py` | SQL |
| `sql_dialects.py` | what engines of SQL write differently |
| `onnx_graph.py` | ONNX |
| `pmml.py` | PMML 4.4 |
| `treelite_model.py` | Treelite |
| `rule_text.py` | rules, to be read |
| `literals.py` | which values another language can hold as they are |
| `sample_rows.py` | rows that an export is checked by |
| `scored.py` | what an export answers to them |
"""
