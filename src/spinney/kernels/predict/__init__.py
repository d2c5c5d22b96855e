"""Send rows down finished trees: what a model says, and what is found out by asking it.

Words. A *tree* is its nodes in one array, children behind their parent; a node's *cut* is its threshold, the first word
of its subset, or what the leaf says; its *link* packs where it leads and what it asks (`common/node_layout.py`). A
*block* is a copy of some rows next to the processor. A leaf *says* a value, a class, or, where classes are mixed, a row
of *shares*.

Which way a row goes is decided in `common/branch.py` and nowhere else. Who goes how:

    file             rows      trees                                    reads
    lanes            many      thresholds and subsets, one path a row   PackedTrees, 8 rows at a time
    bits             many      those of `lanes`, of few leaves          BitTrees, a test asked of 1,024 rows at once
    ranked           many      thresholds, one path a row               RankedTrees, 12 rows at a time
    symmetric        many      thresholds, the same at all nodes of a   SymmetricTrees, a depth asked of 1,024 rows
                               depth; no classes
    one_row          one       those of `lanes`                         one packed array, 8 trees at a time
    ranked_row       one       those of `ranked`                        one packed array, 16 trees at a time
    any_tree         many      one tree: a branch for each level,       AnyTree, with a stack of open nodes
                               surrogates, rows in pieces

`tree/predict.py` chooses: symmetric or bits where there are rows and trees enough, ranked where leaves are more and
rows pay for its layout, else lanes; any_tree for a tree with other tests than these. `model/packed_forest.py` lays out
the array of one_row, `model/packed_steps.py` that of ranked_row, which `model/base_predictor.py` takes where there are
trees enough; `tree/bitvectors.py` the bits, `tree/ranked.py` the steps, `tree/symmetric.py` the symmetric trees. All
add up leaves in the order of the trees, so all give the same bits.

    Forest ──► PackedTrees ──────► lanes.find, lanes.vote ──┐
           ──► BitTrees, BinSegments ► bits.score ──────────┼──► leaves, sums of what they say
           ──► RankedTrees, BinSegments ► ranked.vote_ranked ┤
           ──► SymmetricTrees ──► symmetric.score_symmetric ─┤
           ──► one array ─────────► one_row.add_up ─────────┤
                                    ranked_row.add_ranked ──┘
    Tree   ──► AnyTree ───────────► any_tree.walk ──► leaf of a row, answers ──► linear.add_terms

What else is asked of finished trees:

    validate         whether every node of a forest from a file is sound, before any of the above reads it
    linear           sums that linear models of leaves are fitted from; what these models add to an answer
    permutation      where rows end when values of a feature are permuted among them
    quantiles        which training rows share leaves with a new row, and the quantiles of their targets
    shap             what each feature adds to an answer, where others are averaged over the branches of their tests
    shap_pairs       what each two features add together
    shap_background  what each feature adds, where others have the values of background rows

Every struct (`PackedTrees`, `BitTrees`, ...) is explained field by field in `common/structs.py`.
"""
