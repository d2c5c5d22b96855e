"""Textbook trees, ID3 and C4.5: a branch for each level of a category, and rows in pieces where a value is missing.

Words
  entry     a row in a node, or a piece of one: its row (`ids`) and what it adds to sums (`addends`)
  arena     the entries of all open nodes, behind each other as the nodes lie on the stack; `spare` is as large
  branch    an answer to a test: a level, or a side of a cut. Entries whose value is missing have a branch of their own
            (ID3), or take every branch with a piece of their weight (C4.5)
  figures   how good the best test of each feature of a node is: gain, split information, gain ratio, ...
  power     f(w) = w log2 w in fixed point; sums of it are exact, so nothing depends on the order of rows
  raising   pruning that puts a node's heaviest branch in the node's place

Files
  driver        the loop over nodes; the figures of one node for people; values of a regression tree
  scan_classes  the best test of a feature, for classes
  scan_values   the same for numbers
  figures       what both scans share; the choice among features
  branches      entries of a node moved to its branches, some in pieces
  prune         pessimistic pruning with subtree raising

Who calls whom, and what state flows (`kernels.common.structs`)

  driver.grow(table, arena, spare, settings, nodes, stack, scratch, control)
    │  TextbookTable and TextbookSettings are read; TextbookNodes and TextbookStack are the tree under way;
    │  TextbookScratch has no meaning between two nodes: ScanScratch, Branches
    ├─ add_node                    sums of a node: may it be split?  then push it
    ├─ scan_node                   Figures of every feature
    │    ├─ scan_classes.scan_feature    ClassSpan: histogram or sorted keys ─► scan_levels or scan_cuts ─► try_cut
    │    └─ scan_values.scan_feature     ValueSpan: bins                     ─► scan_levels or scan_cuts
    ├─ figures.choose              the feature, by gain, by ratio, or as C4.5 does
    ├─ take_test                   the branch of each entry
    └─ branches.count_entries, move_entries      Parting: the entries change places, some in pieces

        arena   ... | open | open | node at hand         before
                ... | open | open | branch 2 | branch 1 | branch 0    after: branch 0 is next

  driver.scan, list_cuts           the same figures for one node, for people: why this test?
  driver.settle_values             values and impurities of a regression tree

  prune.prune(table, arena, settings, nodes, stack, scratch, control)
    ├─ enter ─► part_node          children first
    └─ send_down ─► part_node      errors of a subtree to which other entries go

Two families share all of it but the scans: classes (`ScanScratch.sums`) and numbers (`ScanScratch.bins`); the other
one is None, so a first fit compiles its own family alone. Comparing a cut to the best (`try_cut`) is inlined: a call
for each cut doubled the time of C4.5 (docs/decisions/0013).
"""
