"""Grow one tree of binary tests: CART, the trees of forests and of extra-trees, stumps.

Words
-----
  code       rank of a value among those of its feature, from 1 on; 0 is missing
  addend     what a row adds to the sums: target (or class), weight, square; whole numbers
  bin        the rows of a node with one code of a feature, and their sums
  cut        the last code that goes to branch 0, the left one; rows whose code is missing go where they fit better
  score      minus the weighted impurity of a branch, up to a term that no split changes (common.criteria)
  slot       room for an open node: one that may still be split
  candidate  the best test so far and its score
  family     *moments* (numbers, two classes: weight and sum) or *classes* (three or more: a weight per class)

Files
-----
  driver             the loop: opens, splits and closes nodes
  search             a node: its sums, its features, the best test
  candidates         the best test so far, which every scan takes and returns
  scan_two_classes   cuts of a number, two classes of small whole weights
  scan_many_classes  the same, three classes or more, by Gini
  scan_moments       cuts of a number, any target that is summed as weight and sum
  rates              scores of such sums by Poisson's deviance
  medians            medians of a node's targets, and deviations from them
  scan_medians       cuts of a number, subsets of levels and random tests by the absolute error
  scan_outputs       the same for several outputs
  scan_logrank       the same for times until an event
  scan_classes       the same, three classes or more
  subsets            subsets of the levels of a category
  level_means        the same by squared error where nothing is missing: forests of numbers
  class_levels       the same for three classes or more by Gini, nothing missing: forests of classes
  components         the order of levels by the shares of three classes or more
  level_bits         which levels the rows of a node have
  category_chance    what such levels gain by chance, by criterion
  random_tests       one drawn test per feature
  small_tests        the same in nodes of few rows
  small_subtrees     all below a node of few rows, of numbers without a missing value, in one go
  bit_subtrees       the same of classes, rows being bits of a word: categories and missing values too
  drawn_tests        one drawn test per feature, judged by rows, or by sums in their place
  four_tests         such tests of a large node of three classes or more, judged four at a time
  feature_order      the order in which a node tries its features, and their codes side by side
  flags              features of two values, which are bits of a row
  cells              features that are almost always one value, of which a node lists the other rows
  scan_cells         the same cuts by these rows, and one for all others: packed addends, and random tests
  scan_cell_sums     the same where addends are not packed: numbers, entropy, fractional weights
  sparse_draws       the order in which random tests draw features where few of them vary
  gain_ratio         gain ratio in the place of gain
  given_sums         sums in the place of rows, where these are elsewhere
  levels             the top of a tree whose rows come in parts
  sorted_lists       rows of a subtree in the order of each feature
  partition          rows of a node moved to its branches
  branch_sums        what branches of two classes add up to
  new_nodes          nodes that are leaves until they are split
  settled_levels     where levels go that no row of a node has
  late_thresholds    thresholds of a tree whose nodes are all made
  surrogates         tests for rows whose value is missing
  stump              a tree of one test, for AdaBoost
  node_stats         weight, impurity and value of every node of a grown tree

Who calls whom
--------------
  tree/grow.py                          memory, units, settings; enlarges arrays when the driver asks for room
    └ driver.grow                       pops open nodes until there are none
        ├ sorted_lists                  orders a subtree's rows once; splits the orders with the rows
        ├ bit_subtrees.grow_bits        extra-trees of classes: all below a node of few rows
        ├ small_subtrees.grow_small     extra-trees of numbers: the same
        ├ search.search                 one node: sums it up, tries its features
        │   ├ scan_two_classes          packed addends, no sorting           ┐
        │   ├ scan_many_classes         the same, three classes or more      │
        │   ├ scan_moments              sorted keys, or bins                 │ each takes the best candidate
        │   ├ scan_classes              the same for three classes or more   │ and returns the better one
        │   ├ subsets                   categories                           │
        │   │   ├ level_means           of numbers                           │
        │   │   └ class_levels          of three classes or more             │
        │   ├ random_tests              one drawn test per feature           │
        │   ├ four_tests                several of them, drawn before        ┘
        │   └ gain_ratio                chooses among the features' candidates
        ├ driver.expand                 writes the test
        │   ├ partition                 moves the rows
        │   ├ branch_sums               notes what branches add up to
        │   └ surrogates                finds tests for rows whose value is missing, and moves these
        └ late_thresholds               places the thresholds, once all nodes are made
    └ node_stats.fill_tree              weight, impurity, value of every node; the bytes for prediction
  tree/stump.py
    └ stump.search_..., split_root      a tree of one test on rows that were sorted once, for AdaBoost

What state flows
----------------
Every function takes the structs of `common.structs` that it needs, in this order:

  slot, best, feature    what is asked
  node                   OpenNode: the node under search, scalars
  rows                   Rows: codes, addends, ids, moved in place, so that a node is a range lo .. hi; sorted lists
  table                  Table: features, values behind codes, targets; read only
  settings               Settings: scalars of the fit
  nodes                  Nodes: the tree so far
  frontier               Frontier: slots of open nodes, their queue, the driver's counters
  scratch                Scratch: memory without meaning between two nodes. Twelve parts of it are None where the method
                         does without: they select a variant of the driver at compile time

Sums are integers (fixed point), so that no result depends on the order of rows. Where a scan looks at every row of
every node it unpacks the arrays that it needs at its head.
"""
