"""What the kernels of all methods share, in reading order.

    structs       every struct that kernels pass to each other, field by field
    layout        how a node's test and link are packed into words, and unpacked
    branch        which branch a row takes: the one rule, on codes and on values
    rng           random draws as pure functions of a key
    elementary    exponentials, logarithms and powers with the same bits on every CPU
    criteria      how good a split is: a score for each branch, by criterion
    ties          when a candidate beats the best so far
    thresholds    where a threshold lies between two codes
    sorting       a node's rows in the order of one feature
    bins          a node's rows with one code, taken together
    sums          sums of addends over the rows of a node
    means         exact means and impurities over a range of rows
    queue         open nodes in the order in which they are expanded

None of these knows a driver: `tree`, `boost`, `textbook`, `predict` and `data` import from here, never the reverse.
"""
