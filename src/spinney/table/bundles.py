"""Bundles: features that are never unusual in one row share a byte (Ke et al. 2017), without any loss.

    a, b, c  of a one-hot block        codes of the byte: 0, or 1 (a), 2 (b), 3 (c)
    1 0 0  0 1 0  0 0 1  0 0 0   ──►   1  2  3  0

Most rows of a sparse column have one code, the *usual* one. Features no two of which are unusual in one row are told
apart by one byte: the other codes of each follow those of the one before it. Sums over the rows of a code are then
those of the byte; the sum of the usual code is the rest. They are whole numbers, so the trees are the same to the bit,
and the rows of a one-hot block are as narrow, and as fast, as those of the category it was made of.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spinney._types import IS_BINNED, IS_CATEGORICAL, N_CODES, OFFSET
from spinney.table.binning import MOST_NARROW, Bins, lay_out_bytes

SAMPLE = 2048  # rows that tell which features may share a byte
USUAL_SHARE = 0.5  # of the rows of a sample: two features with less would meet
MOST_TRIED = 64  # bundles that a feature is compared with
MOST_COMPARED = 512  # features that are compared with each other before all rows are read
ROWS_AT_ONCE = 1 << 15  # that are read together, so that their bytes stay in a cache
BYTES_AT_ONCE = 1 << 22  # at most: of rows of thousands of columns there are fewer


class Met(Protocol):
    """Which features are unusual in one row, as far as it is known."""

    def is_free(self, bundle: int, feature: int) -> bool:
        """Whether a feature, by its place among the candidates, meets none of a bundle."""

    def add(self, bundle: int, feature: int) -> None:
        """Take a feature into a bundle, perhaps a new one."""


class MetInRows:
    """Features that meet in some row, by the bits of all rows; see `unusual_rows`."""

    def __init__(self, unusual: NDArray[np.uint64]) -> None:
        self.unusual = unusual
        self.met: list[NDArray[np.uint64]] = []  # of each bundle: rows in which one of its features is unusual

    def is_free(self, bundle: int, feature: int) -> bool:
        """See `Met`."""
        return not np.any(self.met[bundle] & self.unusual[feature])

    def add(self, bundle: int, feature: int) -> None:
        """See `Met`."""
        if bundle == len(self.met):
            self.met.append(np.zeros_like(self.unusual[feature]))
        self.met[bundle] |= self.unusual[feature]


def bundle_features(bins: Bins, least: int = 0) -> Bins:
    """The same codes with as few bytes a row as bundles make of them; `bins` as they are where there are none.

    A feature with a missing value keeps its own byte, as do those of more than 255 codes. least: rows that a branch
    must have; features that cannot part so many are left out.
    """
    sample = bins.rows[:: sample_step(len(bins.rows))]
    usual = usual_codes(bins, sample)
    rare = list_rare(bins, usual, sample, least)
    n_others = count_unusual(bins, rare, usual)
    is_out = np.zeros(bins.n_features, np.bool_)
    is_out[rare] = cannot_part(n_others, bins.features[N_CODES, rare], len(bins.rows), least)
    kept = leave_out(bins, is_out)
    usual[is_out] = 0
    bundles: list[list[int]] = []
    candidates, in_sample = list_candidates(kept, usual, sample)
    if len(candidates):
        bundles = find_bundles(kept, candidates, in_sample, MetInRows(unusual_rows(kept, candidates, usual)))
    return write_bundles(bins, kept, usual, bundles) if bundles or is_out.any() else bins


def sample_step(n_rows: int) -> int:
    """Every how many-th row is of the sample: some two thousand are, evenly spaced."""
    return max(n_rows // SAMPLE, 1)


def usual_codes(bins: Bins, sample: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The usual code of each feature that may share a byte, 0 for the others: that of half of a sample at least.

    Of two codes it is that of the number 0, however frequent: the column of a level that most rows have is the one
    column of its one-hot block that is mostly 1.
    """
    usual, is_told = usual_flags(bins)
    columns = list_columns(sample)
    for j in np.flatnonzero(~is_told & ~bins.is_wide & ~bins.has_missing):
        counts = np.bincount(columns[bins.place[j]])
        if counts.max() >= USUAL_SHARE * len(sample):
            usual[j] = np.argmax(counts)
    return usual


def usual_flags(bins: Bins) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The usual code of features of two numbers one of which is 0, 0 for the others; and which these are."""
    usual = np.zeros(bins.n_features, np.int64)
    edges = np.append(bins.edges[0], [np.nan, np.nan])  # a column may have no code
    low, high = edges[bins.features[OFFSET]], edges[bins.features[OFFSET] + 1]
    is_number = ~bins.is_wide & ~bins.has_missing & (bins.features[IS_CATEGORICAL] == 0)
    is_flag = is_number & (bins.features[N_CODES] == 2) & ((low == 0.0) | (high == 0.0))
    usual[is_flag] = np.where(low == 0.0, 1, 2)[is_flag]
    return usual, is_flag


def list_candidates(
    bins: Bins, usual: NDArray[np.int64], sample: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Features that may share a byte, none or several, and the rows of the sample in which each is unusual, as bits."""
    candidates = np.flatnonzero(usual > 0)
    in_sample = pack_bits(list_columns(sample)[bins.place[candidates]] != usual[candidates, np.newaxis])
    can_share = may_share(in_sample)
    if np.count_nonzero(can_share) < 2:
        return candidates[:0], in_sample[:0]
    return candidates[can_share], in_sample[can_share]


def find_bundles(bins: Bins, candidates: NDArray[np.int64], in_sample: NDArray[np.uint64], met: Met) -> list[list[int]]:
    """Features of a common byte: each goes to a bundle with room that it never meets, if it can to its neighbour's."""
    n_others = bins.features[N_CODES, candidates] - 1
    members: list[list[int]] = []
    n_taken = np.zeros(len(candidates), np.int64)  # codes of each bundle
    met_in_sample = np.zeros(in_sample.T.shape, np.uint64)
    home = 0  # bundle of the feature before
    for k, feature in enumerate(candidates.tolist()):
        n = len(members)
        told = np.flatnonzero(in_sample[k])  # of a word in texts few: 60,000 took 14 s where all were compared
        meets = n_taken[:n] + n_others[k] > MOST_NARROW
        if len(told):
            meets |= np.any(met_in_sample[told, :n] & in_sample[k, told, np.newaxis], axis=0)
        free = np.flatnonzero(~meets)[-MOST_TRIED:]
        nearest_first = free[np.argsort(free != home, kind="stable")].tolist()
        home = next((b for b in nearest_first if met.is_free(b, k)), n)
        if home == n:
            members.append([])
        members[home].append(feature)
        met.add(home, k)
        n_taken[home] += n_others[k]
        met_in_sample[told, home] |= in_sample[k, told]
    return [bundle for bundle in members if len(bundle) > 1]


def may_share(in_sample: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which features meet not every other one in the sample; in_sample: bits (n_features, any)."""
    n = len(in_sample)
    if n > MOST_COMPARED:
        return np.ones(n, np.bool_)
    meets = [np.any(in_sample & mine, axis=1).sum() - mine.any() for mine in in_sample]
    return np.array(meets) < n - 1


def unusual_rows(bins: Bins, features: NDArray[np.int64], usual: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Bits of the rows whose code is not the usual one, (n_features, n_rows / 64)."""
    n_rows, n_at_once = len(bins.rows), rows_at_once(bins, BYTES_AT_ONCE)
    parts = []
    for lo in range(0, n_rows, n_at_once):
        block = list_columns(bins.rows[lo : lo + n_at_once])
        parts.append(pack_bits(block[bins.place[features]] != usual[features, np.newaxis]))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def list_columns(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rows of bytes by columns, (stride, n_rows): words first, then their bytes, in half the time of bytes alone."""
    words = np.ascontiguousarray(rows.view(np.uint64).T)
    return np.ascontiguousarray(words.view(np.uint8).reshape(*words.shape, 8).transpose(0, 2, 1)).reshape(-1, len(rows))


def pack_bits(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Flags (n, any) as bits, in whole words: what stands behind the last flag is 0."""
    packed = np.packbits(flags, axis=1)
    bits = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
    bits[:, : packed.shape[1]] = packed
    return bits.view(np.uint64)


def rows_at_once(bins: Bins, n_bytes: int) -> int:
    """How many rows are read together, a multiple of 64, in so many bytes."""
    return max(min(ROWS_AT_ONCE, n_bytes // bins.rows.shape[1]) // 64 * 64, 64)


def write_bundles(bins: Bins, kept: Bins, usual: NDArray[np.int64], bundles: list[list[int]]) -> Bins:
    """Bins whose features of a bundle share a byte, behind those that have one of their own.

    kept: the bins without codes of features that are left out.
    """
    outline = lay_out_bundles(kept, usual, bundles)
    rows, n_at_once = np.zeros((len(bins.rows), outline.rows.shape[1]), np.uint8), rows_at_once(bins, 4 * BYTES_AT_ONCE)
    for lo in range(0, len(rows), n_at_once):
        bundle_rows(bins.rows[lo : lo + n_at_once], bins, outline, bundles, rows[lo : lo + n_at_once])
    return outline._replace(rows=rows)


def lay_out_bundles(bins: Bins, usual: NDArray[np.int64], bundles: list[list[int]]) -> Bins:
    """What `write_bundles` gives, without rows."""
    base = np.full(bins.n_features, -1)
    for members in bundles:
        n_others = bins.features[N_CODES, members] - 1
        base[members] = 1 + np.cumsum(n_others) - n_others
    is_own = (base < 0) & ~bins.is_wide & (bins.place >= 0)
    n_narrow = int(np.count_nonzero(is_own))
    place = np.where(is_own, np.cumsum(is_own) - 1, -1)
    for b, members in enumerate(bundles):
        place[members] = n_narrow + b
    place, stride = lay_out_bytes(place, bins.is_wide, n_narrow + len(bundles))
    rows = np.zeros((0, stride), np.uint8)
    return bins._replace(rows=rows, place=place, base=base, usual=np.where(base < 0, 0, usual))


def bundle_rows(
    rows: NDArray[np.uint8], bins: Bins, outline: Bins, bundles: list[list[int]], new: NDArray[np.uint8]
) -> None:
    """Write rows of bins as rows of what `lay_out_bundles` has made of them; `new` is all 0."""
    old = list_columns(rows)
    is_own = (outline.base < 0) & ~bins.is_wide & (outline.place >= 0)
    new[:, outline.place[is_own]] = old[bins.place[is_own]].T
    for extra in (0, 1):
        new[:, outline.place[bins.is_wide] + extra] = old[bins.place[bins.is_wide] + extra].T
    for members in bundles:
        byte = np.zeros(old.shape[1], np.uint8)
        for j in members:
            base, usual, n_codes = int(outline.base[j]), int(outline.usual[j]), int(bins.features[N_CODES, j])
            if n_codes == 2:  # 5 us a column of 32,561 rows, by a look-up 60
                byte += (old[bins.place[j]] == 3 - usual) * np.uint8(base)
            else:
                byte += list_codes(base, usual, n_codes)[old[bins.place[j]]]
        new[:, outline.place[members[0]]] = byte


# --- Features that no branch is made by --------------------------------------------------------------------------


def list_rare(bins: Bins, usual: NDArray[np.int64], sample: NDArray[np.uint8], least: int) -> NDArray[np.int64]:
    """Numbers of which so few rows of a sample have another code than one that all rows may tell no more."""
    may_be = np.flatnonzero((usual > 0) & (bins.features[IS_CATEGORICAL] == 0))
    if least < 1 or not len(may_be):
        return may_be[:0]
    n_others = np.count_nonzero(sample[:, bins.place[may_be]] != usual[may_be], axis=0)
    return may_be[cannot_part(n_others, bins.features[N_CODES, may_be], len(sample), least)]


def count_unusual(bins: Bins, features: NDArray[np.int64], usual: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows have another code than the usual one, of each of some features."""
    counts = np.zeros(len(features), np.int64)
    n_at_once = rows_at_once(bins, BYTES_AT_ONCE)
    for lo in range(0, len(bins.rows) if len(features) else 0, n_at_once):
        block = bins.rows[lo : lo + n_at_once].take(bins.place[features], axis=1)
        counts += np.count_nonzero(block != usual[features], axis=0)
    return counts


def cannot_part(n_others: NDArray[np.int64], n_codes: NDArray[np.int64], n_rows: int, least: int) -> NDArray[np.bool_]:
    """Whether numbers have one code in all rows but fewer than `least`, which are on one side of any threshold.

    No node has more of these rows, so no test of the feature has enough rows in both branches. n_others: rows of
    another code than the usual one, which of two codes need not be the more frequent.
    """
    return (n_others < least) | ((n_codes == 2) & (n_rows - n_others < least))


def leave_out(bins: Bins, is_out: NDArray[np.bool_]) -> Bins:
    """The same bins, whose rows still have a byte of features that have neither codes nor a place any more."""
    if not is_out.any():
        return bins
    features = bins.features.copy()
    edges = bins.edges[:, ~np.repeat(is_out, features[N_CODES])]
    features[N_CODES, is_out] = features[IS_BINNED, is_out] = 0
    features[OFFSET, 1:] = np.cumsum(features[N_CODES])[:-1]
    return bins._replace(place=np.where(is_out, -1, bins.place), features=features, edges=edges)


def list_codes(base: int, usual: int, n_codes: int) -> NDArray[np.uint8]:
    """What each code of a feature adds to a byte that it shares, (n_codes + 1,): 0 for the usual one."""
    codes = np.arange(n_codes + 1)
    return np.where((codes == usual) | (codes == 0), 0, base + codes - 1 - (codes > usual)).astype(np.uint8)
