"""Damage guided by coverage: `python -m fuzz.guided FOLDER -max_total_time=600`, with atheris installed.

libFuzzer keeps in FOLDER the files that reach something new; what comes first is the files of every kind of model. Its
own mutations are turns of `fuzz.mutations`, half of them, so that most files have the right hash.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(
    include=["spinney.model", "spinney.tree", "spinney.table", "spinney.estimators.saving"]
):
    import spinney.estimators.saving
    import spinney.model.io  # noqa: F401

from fuzz.corpus import read_corpus, write_corpus
from fuzz.mutations import mutate, split
from fuzz.trial import WAYS, attempt
from spinney import _jit

FOLDER = Path(tempfile.mkdtemp())
FILES: list[bytes] = []


def try_file(data: bytes) -> None:
    """Open a file; a fault ends the run, and libFuzzer keeps the file."""
    path = FOLDER / "damaged"
    path.write_bytes(data)
    outcome = attempt(path, WAYS[len(data) // 64 % len(WAYS)])
    path.unlink()
    if outcome.is_fault:
        raise AssertionError(outcome.what)


def change_file(data: bytes, most: int, seed: int) -> bytes:
    """Another file, by ours or by libFuzzer's mutations."""
    random = Random(seed)
    if random.random() < 0.5:
        return atheris.Mutate(data, most)
    try:
        split(data)
    except (ValueError, TypeError):  # too far from a file
        data = random.choice(FILES)
    try:
        changed = mutate([data], random)
    except (ValueError, TypeError, KeyError, AttributeError):  # a header that libFuzzer has changed
        changed = mutate(FILES, random)
    return changed[:most]


def main() -> None:
    """Write the first files, then let libFuzzer go on."""
    _jit.load_compiled()
    write_corpus(FOLDER)
    FILES.extend(read_corpus(FOLDER))
    begin = FOLDER / "begin"
    begin.mkdir()
    for number, file in enumerate(FILES):
        (begin / str(number)).write_bytes(file)
        for way in WAYS:
            attempt(begin / str(number), way)
    longest = 2 * max(map(len, FILES))
    atheris.Setup([*sys.argv, str(begin), f"-max_len={longest}"], try_file, custom_mutator=change_file)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
