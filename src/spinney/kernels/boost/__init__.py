"""Grow the trees of gradient boosting on rows of bytes.

Words. A *row* is a few 64-bit words of codes, one byte for a *narrow* feature, two for a *wide* one; it moves with the
partition, together with its *packed sum*, gradient << 32 | hessian in units of a tree. A *bin* is the
rows of a node with one code of one feature, and their packed sum; a *histogram* has the sums of all codes, each in
its place, a list of bins only those that rows have, with their codes. A *slot* holds an open node: its best test, its
sums, its histogram. A *shard* is one of the shares that rows are dealt out to; a *batch* are open nodes whose children
threads make ready side by side.

Files:

    gradients        losses, and their derivatives by raw scores
    ranking          the same for lists of rows that are put in order
    pack_gradients   gradients and hessians as one integer a row
    driver           the loop: opens, splits and closes nodes, alone or by threads
    batch            what threads do: their share of the rows of several nodes, then of the features
    shards           the rows of a node by shards: moved, and summed
    rows             the loops over rows behind that: sums per code, two branches of a test
    search           the best test of a node among all features
    scan             the best test of one feature from its sums: the gain is here
    category_chance  what the levels of a category gain by chance
    leaf_values      pruning, the leaf of each row, the values of leaves
    levels           one level of a tree whose rows come in parts, by sums and counts alone
    vector_driver    the loop for trees whose leaves hold a number for each of several outputs
    vector_search    the best test of a node for all of these: sums in cells, scans, choice

One round, for each raw score; doors, which Python calls, are in capitals:

    gradients        FILL            raw scores ─► g, h of each row             Gradients
    pack_gradients   PACK            g, h ─► packed sums                        source.sums
                     GATHER_ROWS     rows of a bag ─► buffer
    driver           GROW            ─► nodes; comes back for room                  (vector_driver: GROW_VECTORS)
    batch              SERVE           beside it, each thread its rows of some nodes, then its features of them
    leaf_values      CLOSE_TREE      tests without gain are removed again
                     MARK_LEAVES     buffer ─► leaf of each row; ROUTE_REST: of rows outside the bag
                     SUM_LEAVES      true g, h by leaf, to 62 bits              LeafSums
                     SETTLE          ─► values of leaves, arrays of the model   WrittenTree
                     ADD_VALUES      ─► raw scores

Inside `grow`:

    pick_node ─► make_children ─► prepare_children ─────────────────► scan_node, choose_test, for each child
       ▲  │       (numbers,        mark_branches: code ─► branch        scan_features: best cut of each feature
       │  │        slots)          move_shard: rows ─► branches           scan_histogram, or list_feature_bins,
       │  ▼                        sum_shard: the smaller child            scan_bins
       │ split_node: the test      subtract_histogram: the other        choose_feature: counts rows if it must
       │                                                                keep_test ─► slot
       └───────────────────────────────────────────────────────────────────┘

State (`common.structs`): BoostTable what is known of features and rows, read only; ByteRows twice, the table as
`source` and a `buffer` in which rows of a node change places; BoostNodes the tree; BoostFrontier the slots, the
queue and the counters of the driver; BoostScratch one a thread; BoostSettings scalars. Sums are whole numbers, so a
tree is the same for any number of threads.
"""
