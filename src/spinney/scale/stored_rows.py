"""The rows of a store as tables of Arrow, block by block: features, then the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.scale.store import Booleans
from spinney.table.columns import Categories, Dates

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from spinney.scale.store import Store
    from spinney.table.columns import Column


def name_columns(store: Store) -> list[str]:
    """Names of the features, and of the target where there is one."""
    return [*store.feature_names, *([] if store.target is None else [store.target])]


def read_tables(store: Store) -> Iterator[pa.Table]:
    """Tables of the rows, in their order."""
    import pyarrow as pa

    names = name_columns(store)
    for k, columns in enumerate(store.batches()):
        arrays = [as_arrow(columns.read(j)) for j in range(columns.n_columns)]
        if store.target is not None:
            target = store.read_target(range(k, k + 1))
            arrays.append(as_arrow(target) if isinstance(target, Categories) else pa.array(target))
        yield pa.table(arrays, names=names)


def as_arrow(column: Column) -> Any:
    """A column as Arrow has it: booleans as such, and wide integers with all digits."""
    import pyarrow as pa

    if isinstance(column, Categories):
        codes = pa.array(column.codes, pa.int32(), mask=np.asarray(column.codes) < 0)
        return pa.DictionaryArray.from_arrays(codes, pa.array(column.values), ordered=column.is_ordered)
    if isinstance(column, Dates):
        return pa.array(column.values, pa.timestamp("us", tz="UTC" if column.has_zone else None))
    if not isinstance(column, Booleans) and column.cells is None:
        return pa.array(column.read(), from_pandas=True)  # NaN is missing
    values, is_known = column.exact()
    cells = np.full(len(is_known), None)
    cells[is_known] = values.tolist()
    return pa.array(cells.tolist())
