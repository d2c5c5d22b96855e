"""Run tests of the installed scikit-learn with our classes in the place of its own, and compare with what is expected.

Nothing of scikit-learn's is kept here but the names of its tests: `expected.toml` lists those that do not pass, by
reason. A reason is of one of four kinds:

- decision: ours does something else, on purpose; docs/coming-from.md says what
- words: the same, refused or warned of in other words
- inside: looks inside scikit-learn's classes, or at its seeds, so that it does not apply
- lacking: we do not have it

Two shares are told: of the tests that apply, which are all but those of the third kind, and of these without those that
a decision sets aside, how many pass.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

import sklearn

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KINDS = ("decision", "words", "inside", "lacking")
FILES = (
    "tree/tests/test_tree.py",
    "tree/tests/test_export.py",
    "tree/tests/test_monotonic_tree.py",
    "ensemble/tests/test_forest.py",
    "ensemble/tests/test_bagging.py",
    "ensemble/tests/test_weight_boosting.py",
    "ensemble/tests/test_gradient_boosting.py",
    "ensemble/tests/test_base.py",
    "ensemble/tests/test_common.py",
    "ensemble/tests/test_stacking.py",
    "ensemble/tests/test_voting.py",
    "ensemble/_hist_gradient_boosting/tests/test_gradient_boosting.py",
    "ensemble/_hist_gradient_boosting/tests/test_monotonic_constraints.py",
    "ensemble/_hist_gradient_boosting/tests/test_warm_start.py",
    "inspection/tests/test_partial_dependence.py",
    "inspection/tests/test_permutation_importance.py",
    "feature_selection/tests/test_from_model.py",
    "feature_selection/tests/test_rfe.py",
    "inspection/_plot/tests/test_boundary_decision_display.py",
    "inspection/_plot/tests/test_plot_partial_dependence.py",
    "metrics/_plot/tests/test_common_curve_display.py",
    "metrics/tests/test_score_objects.py",
    "model_selection/tests/test_classification_threshold.py",
    "model_selection/tests/test_plot.py",
    "semi_supervised/tests/test_self_training.py",
    "tests/test_base.py",
    "tests/test_calibration.py",
    "tests/test_multiclass.py",
    "tests/test_multioutput.py",
    "tests/test_pipeline.py",
    "utils/_repr_html/tests/test_estimator.py",
    "utils/tests/test_class_weight.py",
    "utils/tests/test_response.py",
)


def run_file(name):
    """The outcomes of one file of tests, by the name of the test: those that meet a class of ours."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.jsonl"
        report.touch()
        paths = [str(ROOT / "src"), str(HERE), os.environ.get("PYTHONPATH", "")]
        variables = {"SPINNEY_PEER_REPORT": str(report), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        path = Path(sklearn.__file__).parent / name
        plugins = [part for off in ("randomly", "cacheprovider", "xdist") for part in ("-p", f"no:{off}")]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "peer_plugin", *plugins]
        command += ["-c", os.devnull, "--rootdir", str(Path(sklearn.__file__).parents[1]), str(path)]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in report.read_text().splitlines()]
    if done.returncode not in {0, 1} or not lines:
        raise RuntimeError(f"{name} could not be run:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return {line["test"]: line for line in lines if line["is_ours"] and line["outcome"] != "skipped"}


def read_expected():
    """The reasons in `expected.toml`: (kind, reason, patterns of tests)."""
    found = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))["reason"]
    return [(item["kind"], item["why"], item["tests"]) for item in found]


def match(pattern, test):
    """Whether a pattern names a test: the file and the function, and where they are given, the parameters.

    A star stands for anything. Without brackets all parameters are meant.
    """
    whole = pattern if "[" in pattern else f"{pattern}[*]"
    choices = {whole, pattern} if "[" not in pattern else {pattern}
    return any(re.fullmatch(re.escape(one).replace(r"\*", ".*"), test) for one in choices)


def compare(outcomes, expected, name):
    """What is other than expected in a file: failures that no reason covers, and reasons that nothing needs."""
    mine = [(why, pattern) for _, why, patterns in expected for pattern in patterns if pattern.startswith(name + "::")]
    failed = {test for test, line in outcomes.items() if line["outcome"] == "failed"}
    uncovered = sorted(test for test in failed if not any(match(pattern, test) for _, pattern in mine))
    idle = [(why, pattern) for why, pattern in mine if not any(match(pattern, test) for test in failed)]
    passing = sorted(test for test in outcomes.keys() - failed if any(match(pattern, test) for _, pattern in mine))
    return uncovered, idle, passing


def count(outcomes, expected):
    """How many tests pass, and how many do not, by kind of reason."""
    totals = Counter()
    for test, line in outcomes.items():
        if line["outcome"] == "passed":
            totals["pass"] += 1
            continue
        kinds = [kind for kind, _, patterns in expected for pattern in patterns if match(pattern, test)]
        totals[kinds[0] if kinds else "not explained"] += 1
    return totals


def main():
    """Print what each file gives, and the sums."""
    expected, totals = read_expected(), Counter()
    names = [name for name in FILES if any(part in name for part in sys.argv[1:] or [""])]
    for name in names:
        outcomes = run_file(name)
        found = count(outcomes, expected)
        totals += found
        print(name, dict(found), flush=True)
        for test in compare(outcomes, expected, name)[0]:
            print("   not explained:", test, "|", outcomes[test]["words"][:150])
    print("all", dict(totals))
    applying = totals.total() - totals["inside"]
    print(f"pass: {totals['pass'] / max(applying, 1):.1%} of the tests that apply,", end=" ")
    print(f"{totals['pass'] / max(applying - totals['decision'], 1):.1%} of those that no decision sets aside")


if __name__ == "__main__":
    main()
