"""One tree: its arrays, how it grows, how it predicts, how it is pruned.

| file | holds |
|---|---|
| `structure.py` | `Tree`: the arrays of nodes, and what must hold of them |
| `forest.py` | `Forest`: many trees end to end |
| `answers.py` | what nodes predict beside their leaves: medians, several outputs |
| `broken.py` | `BrokenTreeError`, and the check of types |
| `grow.py` | binary trees: their memory, the calls of `kernels/tree`, the finished tree |
| `grow_params.py` | how they grow: parameters, units, settings for kernels |
| `workspace.py` | their memory |
| `stump.py` | trees of one test, for AdaBoost |
| `boost.py` | boosted trees: the same for `kernels/boost` |
| `packed_units.py` | units of the sums that they are grown by |
| `followers.py` | threads that make their nodes ready and wait for each other in a kernel |
| `row_shards.py` | which of their rows are whose, among threads |
| `routed_rows.py` | room to find the leaves of rows that they were not grown on |
| `levels.py` | boosted trees on rows in parts, level by level |
| `top_levels.py` | binary trees on rows in parts: the top by sums, subtrees, and the tree of both |
| `times.py` | times until an event: the same for `kernels/tree/scan_logrank.py` |
| `vector_boost.py` | boosted trees of several outputs, one for all |
| `textbook.py` | ID3 and C4.5: the same for `kernels/textbook` |
| `interruptible.py` | a driver that Ctrl-C stops |
| `surrogates.py` | surrogate tests of nodes |
| `linear.py` | linear models in leaves |
| `refit.py` | new leaf values from other rows: honest trees |
| `predict.py` | the leaf of each row, and what leaves say; which kernel does it |
| `bitvectors.py` | trees of few leaves as bits, for `kernels/predict/bits.py` |
| `ranked.py` | trees of thresholds for values that are ranks, for `kernels/predict/ranked.py` |
| `symmetric.py` | trees that ask the same at all nodes of a depth, for `kernels/predict/symmetric.py` |
| `split_measures.py` | impurities and gains for arrays: what traces and prunings read |
| `prune.py` | cost-complexity pruning |
| `reduced_error.py` | reduced-error pruning |
| `pessimistic.py` | pessimistic pruning |
| `pruning_report.py` | what a pruning has done |
| `subset_words.py` | subsets of levels as words, plain or packed |
| `subtree.py` | what is left of a tree when nodes become leaves |
| `sklearn_view.py` | a tree by scikit-learn's names |
"""
