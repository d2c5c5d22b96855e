"""Tables before any tree: bins of columns, and draws of rows.

    binning    sorted columns ──► cut ──► lowest and highest value of each bin ──► lay_segments ──► BinSegments
               values, BinSegments ──► code ──► ByteTable: a byte or two for each value, row by row
               ByteTable, mass of its codes ──► fill_bins ──► recode ──► ByteTable of fewer bins
    sorted_pieces    a column that threads have sorted in pieces ──► cut_pieces ──► its bins, as by cut
    whole_numbers    columns of whole numbers ──► read_rows, read_columns, rank_numbers ──► their codes, without sorting
    bundles    rows in which features are unusual ──► find_bundles ──► which of them may share a byte
    alike_rows    codes and targets ──► number_alike ──► which rows are alike; sum_alike adds up over all of them
    draws      (seed, tree) ──► how often each row is in the bag of that tree; DrawStrata, DrawGuide and PoissonRates
               say what is drawn from, and with which chances
    block_draws    the same for the rows of a DrawSpan: a tree of halves ──► draws of a block ──► counts
        halves     the draws of a range ──► those of its left half, by one random number
    bags       such counts ──► gather_bag ──► codes, classes and counts of the rows that were drawn

`table/binning.py` and `ensemble/sampling.py` make the structs and call these; `predict/bits.py` finds the rank of a
value among thresholds by the same segments.
"""
