"""What the kernels of all methods share, in reading order.

    structs            every struct that kernels pass to each other, field by field
    node_layout        how a node's test and link are packed into words, and unpacked
    branch             which branch a row takes: the one rule, on codes and on values
    packed_levels      subsets of features with many levels, as few words as they need
    bits               where a bit of a word is set, and how many are
    rng                random draws as pure functions of a key
    elementary         exponentials, logarithms and powers with the same bits on every CPU
    criteria           how good a split is: a score for each branch, by criterion
    category_chance    what the levels of a category gain by chance, which is taken off a subset of them
    ties               when a candidate beats the best so far
    thresholds         where a threshold lies between two codes
    sorting            a node's rows in the order of one feature
    bins               a node's rows with one code, taken together
    sums               sums of addends over the rows of a node
    leaf_means         values and impurities of leaves of numbers: exact means over a range of rows
    queue              open nodes in the order in which they are expanded

None of these knows a driver: `tree`, `boost`, `textbook`, `predict` and `data` import from here, never the reverse.
"""
