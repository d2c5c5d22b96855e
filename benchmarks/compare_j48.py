"""C4.5 against Weka's J48, node by node: `python benchmarks/compare_j48.py [table ...] [--weka weka.jar]`.

Each table is written as ARFF, attributes in the order of the file and levels as the package orders them; both trees are
read as lists of tests and leaves, and the first line that differs is shown. Needs Java, Weka 3.6.14 (Debian's `weka`)
and the tables beside the repository.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

import j48  # noqa: E402
from spinney._types import MULTIWAY  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
TABLES = [
    "toy_play_tennis", "toy_buys_computer", "toy_dhbw_q1", "toy_dhbw_sport", "toy_contact_lenses",
    "toy_weather_numeric", "car", "mushroom", "soybean", "german_credit", "glass", "sonar", "ionosphere", "vehicle",
    "pima_diabetes", "vowel", "spambase", "satimage", "letter", "adult",
]  # fmt: skip
LINE = re.compile(r"^((?:\|   )*)(\S+) (<=|>|=) (\S+?)(?:: (\S+) \(([\d.]+)(?:/([\d.]+))?\))?$")
CLOSE = 0.0051  # Weka prints two decimals


def write_arff(path, X, y, rows):
    """Write a table; attributes are called a0, a1, ..., levels l0, l1, ..., classes c0, c1, ..."""
    columns = []
    with path.open("w") as file:
        file.write("@relation table\n")
        for j, levels in enumerate(rows.schema.levels):
            kind = "numeric" if levels is None else "{" + ",".join(f"l{k}" for k in range(len(levels))) + "}"
            file.write(f"@attribute a{j} {kind}\n")
            column = rows.values[:, j]
            cells = [repr(float(v)) if levels is None else f"l{int(v)}" for v in np.nan_to_num(column)]
            columns.append(["?" if lost else cell for cell, lost in zip(cells, np.isnan(column), strict=True)])
        file.write("@attribute class {" + ",".join(f"c{k}" for k in range(len(rows.classes))) + "}\n@data\n")
        columns.append([f"c{k}" for k in rows.truth])
        file.writelines(",".join(cells) + "\n" for cells in zip(*columns, strict=True))
    assert len(X) == len(y) == len(rows.truth)


def run_weka(jar, path, options):
    """J48's report on its own training rows."""
    command = ["java", "-Xmx4g", "-cp", jar, "weka.classifiers.trees.J48", *options, "-M", "2", "-t", str(path)]
    return subprocess.run([*command, "-no-cv"], capture_output=True, text=True, check=True).stdout


def read_weka(report):
    """Tests and leaves in J48's order: (depth, feature, branch, class, rows, errors)."""
    found = []
    for line in report.splitlines():
        match = LINE.match(line)
        if match:
            bars, name, sign, value, label, n, e = match.groups()
            branch = (sign, value if sign == "=" else float(value))
            leaf = (None,) * 3 if label is None else (int(label[1:]), float(n), float(e or 0.0))
            found.append((len(bars) // 4, int(name[1:]), branch, *leaf))
    return found


def read_tree(tree):
    """The same of a tree."""
    held = tree.class_weights()
    top = np.where(tree.is_leaf, tree.leaf_class, held.argmax(axis=1))
    found = []
    stack = [(0, 0)]
    while stack:
        node, depth = stack.pop()
        if node:
            parent = int(tree.parent[node])
            b = node - int(tree.first_child[parent])
            branch = ("=", f"l{b}") if tree.kind[parent] == MULTIWAY else ((("<=", ">")[b]), tree.threshold[parent])
            leaf = (None,) * 3
            if tree.is_leaf[node]:
                leaf = (int(top[node]), tree.weight[node], tree.weight[node] - held[node].max())
            found.append((depth - 1, int(tree.feature[parent]), branch, *leaf))
        first = int(tree.first_child[node])
        stack += [(first + b, depth + 1) for b in reversed(range(int(tree.n_branches[node])))]
    return found


def agree(ours, theirs):
    """Whether two lines say the same, as far as Weka prints it."""
    if (ours[:2], ours[2][0], ours[3]) != (theirs[:2], theirs[2][0], theirs[3]):
        return False
    is_level = ours[2][0] == "="
    is_same = ours[2] == theirs[2] if is_level else abs(ours[2][1] - theirs[2][1]) <= 1e-6
    return is_same and (ours[3] is None or all(abs(a - b) < CLOSE for a, b in zip(ours[4:], theirs[4:], strict=True)))


def compare(name, jar, folder):
    """Compare the unpruned and the pruned tree of a table; return whether they agree."""
    X, y = j48.load(DATA, name)
    rows = j48.read(X, y)
    path = folder / f"{name}.arff"
    write_arff(path, X, y, rows)
    is_same = True
    for tree, options in zip(j48.grow_c45(rows), (["-U"], ["-C", "0.25"]), strict=True):
        report = run_weka(jar, path, options)
        ours, theirs = read_tree(tree), read_weka(report)
        size = int(re.search(r"Size of the tree :\s*(\d+)", report).group(1))
        assert len(theirs) == size - 1, f"{name}: {len(theirs)} lines of {size - 1} could be read"
        seconds = re.search(r"Time taken to build model:\s*([\d.]+)", report).group(1)
        lines = zip(ours, theirs, strict=False)
        first = next((k for k, (a, b) in enumerate(lines) if not agree(a, b)), None)
        if first is None and len(ours) == len(theirs):
            print(f"{name:20} {options[0]} {tree.n_nodes:6} nodes agree (J48 took {seconds} s)", flush=True)
            continue
        is_same = False
        print(f"{name:20} {options[0]} {tree.n_nodes} nodes against {size}; line {first}", flush=True)
        if first is not None:
            print(f"  ours   {ours[first]}\n  theirs {theirs[first]}", flush=True)
    return is_same


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--weka", default="/usr/share/java/weka.jar")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        same = [compare(name, arguments.weka, Path(folder)) for name in arguments.tables]
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
