"""Models of other libraries as predictors of ours: a reader for each, and one form of nodes that they all list.

| file | holds |
|---|---|
| `xgboost_model.py` | `spinney.from_xgboost` |
| `lightgbm_model.py` | `spinney.from_lightgbm` |
| `catboost_model.py` | `spinney.from_catboost` |
| `sklearn_model.py` | `spinney.from_sklearn` |
| `tree_table.py` | the nodes of a tree as readers list them, and the forest made of them |
| `float32_cuts.py` | thresholds of values that are rounded to float32 before they are compared |
| `zero_missing.py` | tests that take zeros for missing, as tests that do not |
| `foreign_file.py` | files: read, distrusted, refused by name |
| `ubjson.py` | the binary JSON of XGBoost |
"""
