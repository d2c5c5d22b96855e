"""Fits of scans that are interrupted or killed at any moment: the next gives the same file, and nothing is left."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from disk_tables import make_table, write_parts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="no such signals there"),
    pytest.mark.compiled(reason="processes of their own"),
]
MOMENTS, CHAIN = 10, 3  # of each method and signal; interruptions in a row
FIT = """
    import sys
    import spinney
    from spinney.estimators import checkpoints

    checkpoints.SECONDS, checkpoints.SHARE = 0.0, 0  # after every tree
    data, out, method, run = sys.argv[1:]
    memory, n_rounds = None, 20
    if method.endswith("from disk"):
        from spinney.scale import plan

        plan.fits, plan.LEAST_GATHERED, memory = lambda found: found.by_levels, 1 << 10, 10**9
        n_rounds = 200  # most of the time is theirs, and not the kernels' that are loaded
    if method.startswith("boosting"):
        model = spinney.GradientBoostingClassifier(n_estimators=n_rounds, random_state=0, checkpoint=run)
    elif method.startswith("AdaBoost"):
        model = spinney.AdaBoostClassifier(n_estimators=60, random_state=0, checkpoint=run)
    else:
        model = spinney.RandomForestClassifier(n_estimators=12, random_state=0, oob_score=True, checkpoint=run)
    spinney.scan(data, "y").read()  # loads what is loaded once
    print("ready", flush=True)
    model.fit(spinney.scan(data, "y", weight="w", groups=None, drop=["g"], memory=memory))
    model.set_params(checkpoint=None).save_model(out)
    print("done", flush=True)
"""


class Fits:
    """Processes that fit one model to one table, in a folder and with temporary files of their own."""

    def __init__(self, folder, method):
        self.folder, self.method = folder, method
        self.temporary, self.run, self.out = folder / "tmp", folder / "run", folder / "m.spn"
        for path in (self.temporary, folder / "data"):
            path.mkdir()
        self.data = write_parts(make_table(20_000), folder / "data", [9_000])

    def start(self):
        """A process that has loaded all that it needs, and begins to fit."""
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(FIT), self.data, str(self.out), self.method, str(self.run)],
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if process.stdout.readline() != "ready\n":
            raise AssertionError(process.communicate()[1])
        return process

    def wait_for_trees(self, process):
        """Wait until a checkpoint has been written, or the fit has ended."""
        while process.poll() is None and not (self.run / "checkpoint.spn").exists():
            time.sleep(0.002)

    def end(self, process):
        """Wait for the end, which has to come; the code, and what was said."""
        _, said = process.communicate(timeout=300)
        return process.returncode, said

    def finish(self):
        """Fit to the end, from wherever the last one has left off; the file and the seconds."""
        process = self.start()
        begun = time.monotonic()
        code, said = self.end(process)
        assert code == 0, said
        seconds = time.monotonic() - begun
        content = self.out.read_bytes()
        self.out.unlink()
        return content, seconds

    def list_left(self):
        """What is there beside the table."""
        known = {self.temporary, self.folder / "data"}
        found = [*self.temporary.iterdir(), *self.folder.iterdir(), *self.run.glob("*")]
        return sorted(path.name for path in found if path not in known)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
@pytest.mark.parametrize(
    "method", ["boosting", "forest", "boosting from disk", "forest from disk", "AdaBoost from disk"]
)
def test_a_fit_goes_on_after_any_moment(method, sent, tmp_path):
    fits = Fits(tmp_path, method)
    expected, _ = fits.finish()  # which may compile
    again, seconds = fits.finish()
    assert again == expected
    assert fits.list_left() == []
    moments = random.Random(7)
    n_checkpoints = 0
    for k in range(MOMENTS):
        process = fits.start()
        is_last = (k + 1) % CHAIN == 0 or k + 1 == MOMENTS
        if is_last:  # on a busy machine a moment of the clock alone may come before the first tree, every time
            fits.wait_for_trees(process)
        time.sleep(moments.uniform(0.0, seconds / 10 if is_last else seconds))
        process.send_signal(sent)
        fits.end(process)
        if fits.out.exists():  # it was done before
            assert fits.out.read_bytes() == expected
            fits.out.unlink()
        left = fits.list_left()
        n_checkpoints += "checkpoint.spn" in left
        if sent == signal.SIGINT:
            assert left in ([], ["checkpoint.spn", "run"])
        if is_last:
            found, _ = fits.finish()
            assert found == expected
            assert fits.list_left() == []
    assert n_checkpoints > 0
