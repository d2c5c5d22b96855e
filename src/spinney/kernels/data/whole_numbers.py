"""Code a column of whole numbers by counting: no value is sorted, and each is read twice."""

from __future__ import annotations

import numpy as np

from spinney._jit import door


@door
def code_by_counting(
    column: np.ndarray, low: float, is_present: np.ndarray, of_place: np.ndarray, codes: np.ndarray
) -> bool:
    """Write the codes, from 1 in value order, of values low, low + 1, ...; return whether all were such.

    No value is below `low`, missing or infinite, or has a place of its own behind the last of `is_present`, booleans
    that are false at first and tell afterwards which values there are. `of_place` is filled with the code of each.
    """
    n_between = np.int64(0)
    for i in range(column.shape[0]):
        above = column[i] - low
        place = np.int64(above)
        n_between += np.int64(np.float64(place) != above)
        is_present[np.uint64(place)] = True
    if n_between > 0:
        return False
    code = np.int64(0)
    for place in range(is_present.shape[0]):
        code += np.int64(is_present[place])
        of_place[place] = np.uint16(code)
    for i in range(column.shape[0]):
        codes[i] = of_place[np.uint64(np.int64(column[i] - low))]
    return True
