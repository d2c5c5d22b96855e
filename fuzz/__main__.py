"""`python -m fuzz`: damage model files and see what becomes of them; exit code 1 if one did what none may do."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz.workers import Run


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--n", type=int, default=10_000, help="files to damage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="folder for files that did harm")
    chosen = parser.parse_args()
    from fuzz.workers import Run

    begin = time.monotonic()
    run = Run(chosen.n, chosen.seed, chosen.workers, chosen.failures)
    run.run(tell)
    print()
    for fault in run.faults[:50]:
        print(f"file {fault.trial}: {fault.what}")
    seconds = time.monotonic() - begin
    print(f"{describe(run)} in {seconds:.0f} s; most memory {run.peak / 2**20:.1f} MB; {len(run.faults)} faults")
    return 1 if run.faults or sum(run.counts.values()) != chosen.n else 0


def tell(run: Run) -> None:
    """Progress, on one line."""
    if sys.stderr.isatty():
        print(f"\r{describe(run)}, {len(run.faults)} faults", end="", file=sys.stderr, flush=True)


def describe(run: Run) -> str:
    """How many files there were, and what became of them."""
    parts = ", ".join(f"{n} {what}" for what, n in sorted(run.counts.items()))
    return f"{sum(run.counts.values())} files: {parts}"


if __name__ == "__main__":
    sys.exit(main())
