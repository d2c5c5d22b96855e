"""Tables larger than memory: read by blocks of rows, kept on disk as columns and codes, fitted as if in memory.

    scan ──► source (table/sources.py) ──write_store──► folder: schema.json, values.bin ──► Store
    Store ──open_columns──► columns read one at a time ──► the table that every estimator is fitted on
    Store ──bin_blocks──► CodedBlocks: codes on disk, which need no memory that grows with the rows
    CodedBlocks, RowFiles ──► DiskEngine: what boosting by levels runs its tasks on, where memory is short

| file | holds |
|---|---|
| `scan.py` | `spinney.scan`: an object that stands for a table |
| `store.py` | a folder of columns and codes, read without trust |
| `layout.py` | what a store says of itself: `schema.json` |
| `block_files.py` | files of blocks with a hash for each, written once and read by place |
| `column_writing.py` | from a source to the columns of a store |
| `stored_table.py` | the columns of a store as the table of a fit |
| `sorted_runs.py` | the distinct values of a column in their order, on disk where they are many |
| `column_cuts.py` | the cuts of columns, which are never held |
| `coded_blocks.py` | codes in blocks of rows: what they stand for, and their rows one block at a time |
| `block_coding.py` | from a table on disk to its codes on disk |
| `block_bundles.py` | features of such codes that share a byte |
| `work_folders.py` | folders that are being written, and what killed processes have left of theirs |
| `row_files.py` | what is known of rows while a model grows from disk |
| `engine.py` | tasks mapped over blocks on disk, and their sums |
| `stored_rows.py` | the rows of a store as tables of Arrow |
| `code_shelf.py` | codes of a table, kept in its store for the next fit |
| `spilling.py` | sources that can be read once or are elsewhere, written to a folder first |
| `addresses.py` | files behind an address, found and fetched by fsspec |
| `memory.py` | bytes as people write them |
| `plan.py` | what a fit will read, write and hold, before it does |
| `reading_line.py` | a line on the terminal while a table is read |
| `cluster/` | Dask collections, and the workers of a cluster |
| `faults.py` | errors of disks in one line |
"""
