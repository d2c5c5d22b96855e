"""Many trees: which rows each one sees, how they grow side by side or in turn, and how they add up.

| file | holds |
|---|---|
| `sampling.py` | bags of rows: `Draw`, and from parameters to one |
| `draw_units.py` | what a bag is drawn from: rows or groups, strata, chances |
| `subspaces.py` | bags of features |
| `forest.py` | trees side by side, each on its bag |
| `forest_levels.py` | the same on rows that come in parts, from disk |
| `part_bags.py` | the bags of a part of the rows |
| `out_of_bag.py` | votes on rows outside the bags |
| `adaboost.py` | AdaBoost's rounds: weights of members and rows |
| `adaboost_trees.py` | its trees, on codes that are made once |
| `adaboost_levels.py` | the same on rows that come in parts, from disk |
| `boosted_rows.py` | the rows that boosted trees are grown on |
| `alike_rows.py` | those that are alike, as one |
| `boosting.py` | one round of gradient boosting |
| `leaf_values.py` | values of its leaves that are no steps by derivatives, and units of sums by leaf |
| `hessian_bins.py` | its bins of equal hessian |
| `tree_store.py` | its trees so far |
| `boosting_levels.py` | the same on rows that come in parts, from disk |
| `huber_levels.py` | what Huber's loss takes from all rows of these: delta, steps of leaves |
| `vector_boosting.py` | the same with one tree for all classes or outputs |
| `boosting_bags.py` | its bags by number of the round, drawn by threads |
| `gradient_sampling.py` | its bags by the size of gradients |
| `dropout.py` | its rounds that leave out trees before them: DART |
| `rounds.py` | the loop over rounds: measure, record, stop |
| `oob_stopping.py` | stop by the rows that each round leaves out |
| `held_out.py` | rows that are held out, all at once or block by block, and how well they are predicted |
| `boosting_defaults.py` | the rules for "auto" |
| `losses.py` | losses: start, checks, derivatives |
| `custom_loss.py` | a loss of the user's own, by its derivatives |
| `ranking_loss.py` | the loss of lists that are put in order |
| `survival_losses.py` | losses of times, some of them censored |
| `loss_names.py` | losses by name, and those that files hold |
| `best_constant.py` | the constant of least loss |
| `selection.py` | quantiles of rows that come in parts |
| `initial_score.py` | the same beside `init_score` |
| `links.py` | from raw scores to answers |
"""
