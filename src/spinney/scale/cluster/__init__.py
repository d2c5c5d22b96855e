"""Tables that a cluster holds: Dask collections in place of X and y, fitted as if in memory.

    DataFrame, Series, Array ──cut──► partitions ──► workers: joined, coded, grown ──► the model, here

| file | holds |
|---|---|
| `collections.py` | what a Dask collection is, its partitions, and the table that they make |
| `file_rows.py` | rows of files that workers read themselves |
| `piece_types.py` | the types that their columns have over all files |
| `engine.py` | who does the work: tasks over parts, added up, through losses |
| `dask_engine.py` | an engine whose workers are those of a Dask cluster |
| `row_ranges.py` | collections cut anew, into parts of equal lengths |
| `level_parts.py` | rows that are spread over workers, on which trees grow level by level |
| `tree_parts.py` | the same for trees on bags: tops level by level, then the rows of nodes from worker to worker |
| `workers.py` | whether all workers compute the same bits: versions, kernels, processors |
| `choice.py` | how a fit is done, by the bytes that it takes |
| `cluster_line.py` | a line on the terminal while a cluster works |

Nothing here imports Dask before a collection is there.
"""
