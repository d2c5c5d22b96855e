"""Members of an ensemble that were fitted on other rows: a warm start has added to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EarlierMembers:
    """The first members, of fits on other rows, or with other weights or bags: their bags cannot be had again.

    Attributes
    ----------
    n_members : int
        How many; the others are on the rows of the last fit, and know their bags.
    """

    n_members: int

    def find_fault(self, n_members: int) -> str | None:
        """What is wrong with a number that was read from a file; n_members: of all."""
        if not 1 <= self.n_members < n_members:
            return f"{self.n_members} members of earlier fits must be from 1 to {n_members - 1}"
        return None


def refuse_earlier(earlier: EarlierMembers | None, what: str, error: type[Exception] = ValueError) -> None:
    """Refuse what needs the bags of all members; what: names it, with its verb."""
    if earlier is not None:
        raise error(
            f"{what} the bags of all trees, but the first {earlier.n_members} were grown on other rows, and then "
            "warm_start added to them: fit all of them on one table, with warm_start=False"
        )
