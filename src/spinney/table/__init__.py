"""What the data is: columns and their kinds, vocabularies, values, codes.

| file | holds |
|---|---|
| `columns.py` | what the columns of any X are: numbers or categories |
| `sparse.py` | sparse tables: the stored cells, in full by blocks of columns or rows |
| `stored_codes.py` | codes of sparse columns, by the cells that are stored |
| `ingest.py` | X as a table for fit, columns at a time; files |
| `dates.py` | dates and times as numbers: year, month, weekday, days, hour |
| `schema.py` | what each column means to a model; a new X in those terms |
| `records.py` | one row by name, straight to values |
| `prediction_batches.py` | files in batches of rows, for predictions only |
| `sources.py` | files, streams and iterators as blocks of rows, for tables larger than memory |
| `csv_kinds.py` | what the columns of CSV files hold, by all of their rows |
| `coding.py` | codes in value order: what trees and forests grow on |
| `cells.py` | columns that are almost always one value, as what their other rows have |
| `sparse_codes.py` | codes of a sparse table by its stored cells, and the rows of its forests |
| `row_numbers.py` | which rows are alike, by numbers |
| `flags.py` | features of two values as bits of the rows that forests grow on |
| `column_workers.py` | threads that share the columns |
| `binning.py` | bins of codes in bytes: what boosting grows on |
| `bundles.py` | features that share a byte |
| `stored_bundles.py` | the same of a sparse table, written from the cells that are stored |
| `row_cells.py` | the few bytes of a wide row that are not usual |
| `fixed_point.py` | targets and weights as integers |
| `row_sums.py` | float sums over rows, by blocks of the table |
| `shared_columns.py` | columns read once for several models |
"""
