"""The classes users meet: scikit-learn's contract, parameters, checks, errors.

A public class is three of ours deep: `Estimator`, a family (`base_...`), and the class with parameters and docstring.

| file | holds |
|---|---|
| `base.py` | `Estimator`, `Classifier`, `Regressor`: what every class shares |
| `parameters.py` | parameters by scikit-learn's rules, and stricter |
| `hints.py` | which name was meant: what other libraries call our parameters |
| `checks.py` | X, y, weights and parameters, checked |
| `class_outputs.py` | classes of several outputs: checked, weighed, parted |
| `fingerprints.py` | hashes of training data, to know them again |
| `one_row.py` | one row as people write it |
| `training.py` | X, y and weights read, weighed, coded and binned, for all |
| `scanned.py` | scans and stores in place of X and y |
| `batches.py` | predictions of rows that are read in batches |
| `taking_collections.py` | Dask collections in place of X, for every class |
| `lazy_predictions.py` | predictions of collections |
| `cluster_fits.py` | fits of collections: what the client does |
| `cluster_tasks.py` | fits of collections: what workers do |
| `cluster_rows.py` | the tables of a fit at workers, in parts of equal lengths |
| `spread_rows.py` | what columns, target, weights, cuts and hashes these tables have |
| `level_tasks.py` | what workers do with such a part before trees grow on it |
| `stand_ins.py` | our classes where scikit-learn asks for its own |
| `kept.py` | what a class keeps of a fit, declared |
| `saving.py` | model files and pickles of what is kept |
| `checkpoints.py` | what a fit has grown so far, in a folder, to go on from |
| `scoring.py` | scores of predictions that are known already |
| `base_tree.py` | the family of single trees |
| `cart.py` | CART |
| `id3.py` | ID3 |
| `c45.py` | C4.5 |
| `growers.py` | how single trees are grown |
| `pruning.py` | how they are pruned: which method, what it needs |
| `cross_validated_pruning.py` | how far: the alpha of a cross-validation |
| `sklearn_tree.py` | a tree as scikit-learn's own estimator |
| `trace.py` | `spinney.trace` |
| `base_forest.py` | the family of forests |
| `forest_classifier.py` | what forests of classes have |
| `forest_regressor.py` | what forests of numbers have |
| `random_forest.py` | random forests |
| `extra_trees.py` | extremely randomised trees |
| `forest_training.py` | from parameters and data to a fitted forest; what bags accept |
| `warm_starts.py` | what a warm start may go on with |
| `forest_checkpoint.py` | trees on bags in a checkpoint |
| `out_of_bag.py` | out-of-bag results of a fit |
| `oob_selector.py` | `OOBSelector`: features by their out-of-bag importance |
| `base_bagging.py` | the family of bagging |
| `bagging.py` | bagging, pasting, random subspaces |
| `bagging_warm_start.py` | what its warm start goes on with |
| `other_members.py` | members that are not our trees |
| `routing.py` | metadata routing to members |
| `base_boosting.py` | the family of gradient boosting |
| `gradient_boosting.py` | gradient boosting |
| `boosted_numbers.py` | what boosting of numbers, ranks and times shares |
| `ranker.py` | boosting that ranks |
| `survival.py` | boosting of times until an event |
| `forest_survival.py` | forests of times until an event |
| `concordance.py` | Harrell's concordance |
| `interactions.py` | `interaction_cst`: which features may stand on one path |
| `boosting_constraints.py` | which values its parameters may have |
| `boosting_data.py` | what a fit of gradient boosting reads |
| `boosting_parts.py` | the parts of a boosted model, made again from a file or joined |
| `bags_on_disk.py` | trees on bags of rows that stay on disk |
| `bags_on_cluster.py` | the same of rows that are spread over workers |
| `forest_by_levels.py` | a fit of a forest whose rows stay on disk |
| `bagging_by_levels.py` | the same of a bag of CART trees |
| `cart_by_levels.py` | the same of one tree of CART |
| `boosting_by_levels.py` | a fit of gradient boosting whose rows stay on disk |
| `boosting_on_cluster.py` | a fit of gradient boosting whose rows are spread over workers |
| `rows_on_disk.py` | its target and weights, and those of AdaBoost, read block by block |
| `held_rows.py` | rows of a table on disk that are held out |
| `boosting_checkpoint.py` | rounds of gradient boosting in a checkpoint |
| `base_model.py` | `init=estimator`: the model that boosting begins with |
| `evaluation_sets.py` | `X_val`, `eval_set`: rows to evaluate rounds on |
| `round_scores.py` | scores of these rows, round by round |
| `base_adaboost.py` | the family of AdaBoost |
| `adaboost.py` | AdaBoost |
| `adaboost_plan.py` | how its members that are trees are grown and kept |
| `adaboost_by_levels.py` | a fit of AdaBoost whose rows stay on disk |
| `adaboost_checkpoint.py` | rounds of AdaBoost in a checkpoint |
| `base_stacking.py` | the family of stacking |
| `stacking.py` | stacking |
| `cross_fitting.py` | what members of a stack predict for rows they have not seen |
"""
