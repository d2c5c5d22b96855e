"""Fitted models, rows that try them, and what runs their exports: written without `spinney.model.export`."""

import functools
import json
import math
import os
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest

import saved_models
from spinney._types import THRESHOLD

LARGE = "boosting defaults"  # 300 trees, which interpreted kernels take half a minute to grow
NAMES = [name for name in saved_models.MODELS if name not in {*saved_models.OF_SEVERAL_KINDS, LARGE}]
GCC, NODE = shutil.which("gcc"), shutil.which("node")
needs_gcc = pytest.mark.skipif(GCC is None, reason="there is no gcc")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node")


@functools.cache
def fitted(name):
    """A model of every kind, and rows of it as lists of cells: others than trained it, on thresholds, infinite."""
    model, X = saved_models.fit(name)
    cells = X.tolist() if isinstance(X, np.ndarray) else [list(row.values()) for row in X.to_pylist()]
    return model, [*cells, *edge_rows(model, cells)]


def trees_of(model):
    """The trees of a model."""
    return [model.tree_.arrays] if hasattr(model, "tree_") else list(model.forest_)


def edge_rows(model, cells):
    """Rows with values exactly on thresholds and next to them, infinite, missing, and levels never seen."""
    trees = trees_of(model)
    rows = []
    for j in range(trees[0].n_features):
        cuts = np.unique(np.concatenate([t.threshold[(t.kind == THRESHOLD) & (t.feature == j)] for t in trees]))
        cuts = cuts[np.isfinite(cuts)][:20]
        wanted = [*cuts, *np.nextafter(cuts, math.inf), *np.nextafter(cuts, -math.inf), None]
        if trees[0].linear is None and not isinstance(cells[0][j], str):
            wanted += [math.inf, -math.inf]
        if trees[0].n_levels[j]:
            wanted = ["never seen" if isinstance(cells[0][j], str) else 99.0, None]
        for i, value in enumerate(wanted):
            row = list(cells[i % len(cells)])
            row[j] = value if value is None or isinstance(value, str) else float(value)
            rows.append(row)
    rows.append([None] * trees[0].n_features)
    return rows


def table_of(model, rows):
    """Rows as the table that a model reads."""
    if not hasattr(model, "feature_names_in_"):
        return np.array([[np.nan if cell is None else cell for cell in row] for row in rows])
    import pyarrow as pa

    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(c, pa.string() if any(isinstance(x, str) for x in c) else pa.float64()) for c in columns]
    names = list(model.feature_names_in_)
    return pa.table(dict(zip(names, arrays, strict=True)))


def names_of(model):
    """Names of the columns."""
    return list(getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)]))


def truth_of(model, rows):
    """What a model answers, (n_rows, n_answers), and predicts."""
    table = table_of(model, rows)
    if hasattr(model, "classes_"):
        return model.predict_proba(table), model.predict(table).tolist()
    answers = model.predict(table)
    return answers.reshape(len(rows), -1), None


def plain_cells(rows):
    """Rows with None for NaN."""
    return [[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows]


# --- what runs exports --------------------------------------------------------------------------------------------


def ask_python(content, rows):
    module = {}
    exec(compile(content, "export", "exec"), module)
    answers = np.array([module["answer"](row) for row in rows])
    return answers, None if module["CLASSES"] is None else [module["predict"](row) for row in rows]


def ask_sqlite(content, names, rows, table="data"):
    """Answers of a query on a table of all columns; classes where there is a column of them."""
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    with sqlite3.connect(":memory:") as connection:
        safe = table.replace('"', '""')
        connection.execute(f'CREATE TABLE "{safe}" ({quoted})')
        marks = ", ".join("?" * len(names))
        connection.executemany(f'INSERT INTO "{safe}" VALUES ({marks})', rows)
        cursor = connection.execute(content)
        columns = [column[0] for column in cursor.description]
        found = cursor.fetchall()
    if not columns[-1].startswith("probability_"):
        return np.array(found, float), None
    at = columns.index("prediction")
    return np.array([row[at + 1 :] for row in found], float), [row[at] for row in found]


def ask_node(contents, rows_by_name):
    """Answers of scripts, all in one process, by name."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for at, content in enumerate(contents.values()):
            (Path(folder) / f"m{at}.js").write_text(content, encoding="utf-8")
        code = """
        const fs = require("fs");
        const jobs = JSON.parse(fs.readFileSync(0, "utf8"));
        const out = jobs.map((rows, at) => {
          const m = require(process.argv[1] + "/m" + at + ".js");
          return rows.map((row) => [m.answer(row).map(String), m.classes === null ? null : m.predict(row)]);
        });
        process.stdout.write(JSON.stringify(out));"""
        jobs = [[show_row(row) for row in rows_by_name[name]] for name in contents]
        text = json.dumps(jobs).replace('"<inf>"', "1e999").replace('"<-inf>"', "-1e999")
        done = subprocess.run([NODE, "-e", code, folder], input=text, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return {
        name: (np.array([[float(x) for x in row] for row, _ in part]), [label for _, label in part])
        for name, part in zip(contents, found, strict=True)
    }


def show_row(row):
    """A row, by name or by place, that JSON holds."""
    return row if isinstance(row, dict) else [show_json(cell) for cell in row]


def show_json(cell):
    """A cell that JSON holds."""
    return f"<{cell}>" if isinstance(cell, float) and math.isinf(cell) else cell


FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-fsanitize=address,undefined"]
FLAGS += ["-fno-sanitize-recover=all"]


def compile_c(sources, main, folder, flags=FLAGS):
    """Compile exports and a main function; the program."""
    paths = []
    for name, content in {**sources, "main": main}.items():
        path = folder / f"{name}.c"
        path.write_text(content, encoding="ascii")
        paths.append(str(path))
    program = folder / "program"
    done = subprocess.run([GCC, *flags, "-o", str(program), *paths, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return program


def ask_c(sources, values_by_name, n_answers, folder, flags=FLAGS):
    """Answers and classes of exports by name, which are compiled into one program; values are encoded rows."""
    parts = ["#include <stdio.h>\n#include <stdlib.h>\n"]
    body = ["int main(void) {\n    double x[64], out[1024]; int n, i, j;\n"]
    for name in sources:
        has_classes = f"int {name}_class(" in sources[name]
        parts.append(f"void {name}_answer(const double *x, double *out);\nint {name}_class(const double *x);\n")
        width = values_by_name[name].shape[1]
        chosen = f"{name}_class(x)" if has_classes else "0"
        body.append(f"""    if (scanf("%d", &n) != 1) return 1;
    for (i = 0; i < n; i++) {{
        for (j = 0; j < {width}; j++) if (scanf("%lf", &x[j]) != 1) return 1;
        {name}_answer(x, out);
        printf("%d", {chosen});
        for (j = 0; j < {n_answers[name]}; j++) printf(" %a", out[j]);
        printf("\\n");
    }}
""")
    program = compile_c(sources, "".join([*parts, *body, "    return 0;\n}\n"]), folder, flags)
    lines = []
    for values in values_by_name.values():
        lines.append(str(len(values)))
        lines += [" ".join(float(x).hex() if np.isfinite(x) else str(float(x)) for x in row) for row in values]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [str(program)], input="\n".join(lines), capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[:3000]
    printed = iter(done.stdout.splitlines())
    found = {}
    for name, values in values_by_name.items():
        rows = [next(printed).split() for _ in range(len(values))]
        answers = np.array([[float.fromhex(x) if "x" in x else float(x) for x in row[1:]] for row in rows])
        found[name] = answers, [int(row[0]) for row in rows]
    return found
