"""Tests of LightGBM that take zeros for missing, as tests that do not.

Such a test sends what lies within 1e-35 of zero, and what is missing, to one side, whatever its threshold. Where the
threshold would send zeros there anyway, or lies among them, one test does the same. Else the values of one side lie on
both sides of the zeros: a test below them, one above them and the threshold take the place of the one, with copies of
what is below it, in which tests that are decided by then are left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spinney.model.imports.foreign_file import NotImportedError
from spinney.model.imports.tree_table import NO_CHILD, TreeNodes

ZERO = float(np.float32(1e-35))  # what is not farther from 0 is zero
BELOW = math.nextafter(-ZERO, -math.inf)
MOST_TIMES, FREE_NODES = 64, 1024  # as large as before a tree may become, and what it may have in any case


class Range(NamedTuple):
    """What is known of a feature on a path."""

    low: float = -math.inf  # values are above it
    high: float = math.inf  # and up to it
    may_miss: bool = True


class ZeroSplitter:
    """Makes a tree without tests that take zeros for missing.

    Parameters
    ----------
    nodes : TreeNodes
    takes_zero : list of bool
        Which tests take zeros for missing.
    """

    def __init__(self, nodes: TreeNodes, takes_zero: list[bool]) -> None:
        self.nodes = nodes
        self.takes_zero = takes_zero
        self.source: list[int] = []  # node that each new one is a copy of
        self.left: list[int] = []
        self.right: list[int] = []
        self.cut: list[float] = []
        self.is_missing_left: list[bool] = []
        self.most = MOST_TIMES * len(nodes.left) + FREE_NODES

    def split(self) -> TreeNodes:
        """The whole tree."""
        self.add(0)
        waiting: list[tuple[int, int, dict[int, Range]]] = [(0, 0, {})]  # new node, what it is to be, what is known
        while waiting:
            at, old, known = waiting.pop()
            old = self.skip(old, known)
            self.set(at, old, float(self.nodes.cut[old]), is_missing_left=bool(self.nodes.is_missing_left[old]))
            if self.nodes.left[old] != NO_CHILD:
                waiting += self.expand(at, old, known)
        source = np.array(self.source)
        return self.nodes._replace(
            left=np.array(self.left), right=np.array(self.right), cut=np.array(self.cut),
            is_missing_left=np.array(self.is_missing_left),
            **{name: getattr(self.nodes, name)[source] for name in ("feature", "weight", "n_rows", "gain")},
            is_subset=None if self.nodes.is_subset is None else self.nodes.is_subset[source],
        )  # fmt: skip

    def add(self, old: int) -> int:
        """Append a node."""
        if len(self.source) >= self.most:
            raise NotImportedError("zero_as_missing: without it a tree would be more than 64 times as large")
        self.source.append(old)
        self.left.append(NO_CHILD)
        self.right.append(NO_CHILD)
        self.cut.append(0.0)
        self.is_missing_left.append(False)
        return len(self.source) - 1

    def set(self, at: int, old: int, cut: float, *, is_missing_left: bool) -> None:
        """Fill a node."""
        self.source[at], self.cut[at], self.is_missing_left[at] = old, cut, is_missing_left

    def branch(self, at: int, cut: float, *, is_missing_left: bool) -> tuple[int, int]:
        """Give a node a threshold and two children."""
        self.cut[at], self.is_missing_left[at] = cut, is_missing_left
        old = self.source[at]
        self.left[at], self.right[at] = self.add(old), self.add(old)
        return self.left[at], self.right[at]

    def skip(self, old: int, known: dict[int, Range]) -> int:
        """The first node from here on that is not decided by what is known."""
        nodes = self.nodes
        while nodes.left[old] != NO_CHILD and self.takes_zero[old]:
            at = known.get(int(nodes.feature[old]), Range())
            is_left = bool(nodes.is_missing_left[old])
            cut = float(nodes.cut[old])
            if at.low >= -ZERO and at.high <= ZERO:  # zeros
                side: bool | None = is_left
            elif at.low >= ZERO or at.high <= BELOW:  # no zeros
                side = True if at.high <= cut else False if at.low >= cut else None
            else:
                side = None
            if side is None or (at.may_miss and side != is_left):
                return old
            old = int(nodes.left[old] if side else nodes.right[old])
        return old

    def expand(self, at: int, old: int, known: dict[int, Range]) -> list[tuple[int, int, dict[int, Range]]]:
        """Branch a new node as an old one does; what is to be done below it."""
        nodes = self.nodes
        left, right, feature = int(nodes.left[old]), int(nodes.right[old]), int(nodes.feature[old])
        cut, is_left = float(nodes.cut[old]), bool(nodes.is_missing_left[old])
        if not self.takes_zero[old]:
            a, b = self.branch(at, cut, is_missing_left=is_left)
            return [(a, left, known), (b, right, known)]
        here = known.get(feature, Range())

        def within(low: float, high: float, *, may_miss: bool) -> dict[int, Range]:
            met = Range(max(low, here.low), min(high, here.high), here.may_miss and may_miss)
            return {**known, feature: met}

        if BELOW < cut < ZERO:
            cut = ZERO if is_left else BELOW
        if (cut >= ZERO) == is_left or here.low >= ZERO or here.high <= BELOW:
            a, b = self.branch(at, cut, is_missing_left=is_left)
            low, high = within(-math.inf, cut, may_miss=is_left), within(cut, math.inf, may_miss=not is_left)
            return [(a, left, low), (b, right, high)]
        beside, among = (left, right) if cut >= ZERO else (right, left)  # of the zeros on their way; of zeros
        first, last = (BELOW, cut) if cut >= ZERO else (cut, BELOW)
        if cut >= ZERO:  # below zero left, zeros right, up to the cut left, above it right
            a, b = self.branch(at, BELOW, is_missing_left=False)
            c, d = self.branch(b, ZERO, is_missing_left=True)
            e, f = self.branch(d, cut, is_missing_left=False)
            return [
                (a, beside, within(-math.inf, first, may_miss=False)),
                (c, among, within(BELOW, ZERO, may_miss=True)),
                (e, beside, within(ZERO, last, may_miss=False)),
                (f, among, within(cut, math.inf, may_miss=False)),
            ]
        a, b = self.branch(
            at, cut, is_missing_left=False
        )  # up to the cut left, below zero right, zeros left, others right
        c, d = self.branch(b, last, is_missing_left=False)
        e, f = self.branch(d, ZERO, is_missing_left=True)
        return [
            (a, among, within(-math.inf, first, may_miss=False)),
            (c, beside, within(cut, BELOW, may_miss=False)),
            (e, among, within(BELOW, ZERO, may_miss=True)),
            (f, beside, within(ZERO, math.inf, may_miss=False)),
        ]
