"""Every compiled function and nothing else: on tuples of arrays, without classes, exceptions or allocation.

    data      columns ─► codes, bytes; which rows a tree sees
      ▼
    tree      CART, forests, extra-trees, stumps ┐
    boost     gradient boosting                  ├─► nodes ─► predict   rows ─► leaves, votes, sums; checks of trees
    textbook  ID3, C4.5, their pruning           ┘
      ▲
    common    what they share; `common/structs.py` has the groups of arrays that kernels pass to each other

A folder has its words and its diagram at its head (`__init__.py`). Folders import from `common`, `predict` from `data`
too, and none from another. A function takes at most eight arguments, the groups it needs among them; Python calls
*doors*, kernels call each other.
"""
