"""What this process has loaded and spent: the only state behind the choice of kernels."""

from __future__ import annotations

COMPILE_SECONDS = 8.0
"""What compiling one of the longest doors costs, once for a machine; see benchmarks/startup.py."""

LONGEST = (
    "tree.driver.grow",
    "boost.driver.grow",
    "boost.batch.serve",
    "boost.vector_driver.grow_vectors",
    "boost.vector_driver.search_features",
    "textbook.driver.grow",
)  # the driver and all it calls; a variant of it takes ten times as long as any other kernel

SHORT_SHARE = 1 / 8  # of COMPILE_SECONDS: what any other door costs, about a second


class Process:
    """Rent that was paid and what was bought; a lost update between threads would do no harm."""

    def __init__(self) -> None:
        self.is_compiled_loaded = False  # Numba and modules of kernels are
        self.waits_always = False  # small work too is compiled, whatever it costs
        self.rents: dict[str, float] = {}  # seconds that doors took interpreted since they were last bought
        self.rent = 0.0  # seconds that all doors took interpreted

    def pay(self, door: str, seconds: float) -> None:
        """Note what a door took interpreted."""
        self.rents[door] = self.rents.get(door, 0.0) + seconds
        self.rent += seconds

    def has_paid(self, door: str) -> bool:
        """Whether a door took as long interpreted as it takes to compile."""
        price = COMPILE_SECONDS if door in LONGEST else COMPILE_SECONDS * SHORT_SHARE
        return self.rents.get(door, 0.0) >= price

    def buy(self, door: str) -> None:
        """Note that a variant of a door is being compiled: the next variant is rented anew."""
        self.rents.pop(door, None)


process = Process()
