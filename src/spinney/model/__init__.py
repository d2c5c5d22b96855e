"""What was learnt, without how: frozen values, what is asked of them, and their files.

| file | holds |
|---|---|
| `fitted_tree.py` | one tree |
| `fitted_forest.py` | a forest |
| `fitted_bagging.py` | bagging |
| `fitted_boosting.py` | gradient boosting |
| `fitted_adaboost.py` | AdaBoost |
| `fitted_stacking.py` | stacking |
| `base_predictor.py` | `Predictor`: from a row, or a table of them, to an answer |
| `predictors.py` | its four kinds: a tree, votes, rounds, weighted members |
| `packed_forest.py` | a forest as one array, for one row at a time |
| `packed_steps.py` | the same of thresholds, for a row whose values are ranks |
| `forest_votes.py` | votes of trees, added up |
| `alike_votes.py` | rows that are predicted once for all that are alike |
| `weighted_votes.py` | votes that have weights, and weighted medians |
| `boosted_scores.py` | raw scores, added up over rounds |
| `tree_votes.py` | what single trees of a forest say |
| `earlier_members.py` | members that were fitted on other rows |
| `out_of_bag.py` | what members say of rows outside their bags |
| `importance.py` | which features matter to a forest |
| `importance_table.py` | importances as a table that prints and plots |
| `permutation.py` | what is lost when values are permuted |
| `correlation.py` | which features go together, for conditional permutation |
| `shap.py` | SHAP values: what each column added to an answer |
| `shap_table.py` | these as a table |
| `shap_trees.py` | trees as the library `shap` takes them |
| `row_explanation.py` | why one row got its answer |
| `counterfactual.py` | the smallest change that changes an answer |
| `hazards.py` | hazards and survival by the trees of a survival forest |
| `dependence.py` | how answers depend on one column |
| `path_dependence.py` | the same from trees alone |
| `explained_trees.py` | predictors as sums of trees, for explanations |
| `quadrature.py` | points and weights of integrals |
| `quantiles.py` | quantiles of the target by shared leaves |
| `uncertainty.py` | variances, intervals and sets of classes |
| `forest_uncertainty.py` | the same of a fitted forest |
| `ensemble_theory.py` | why ensembles work, in numbers |
| `adaboost_bounds.py` | what AdaBoost promises: bounds and margins |
| `any_model.py` | what predicts, of whatever users call a model |
| `io.py` | model files: versions, what is in them |
| `state.py` | models as text and arrays, and back |
| `container.py` | the file around these, read without trust |
"""
