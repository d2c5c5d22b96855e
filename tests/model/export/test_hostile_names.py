"""Names, levels and classes are a stranger's: whatever they hold, they stay data in every language."""

import json
import sqlite3

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney
from export_cases import FLAGS, ask_node, ask_python, ask_sqlite, compile_c, needs_gcc, needs_node

HOSTILE = [
    '"; DROP TABLE data; --',
    "'; DROP TABLE data; --",
    "*/ int main(void) { return 1; } /*",
    '"); import os; os.abort() #',
    "'''\"\"\"\\",
    "</script><script>alert(1)</script>",
    "${process.exit(1)}`",
    "__proto__",
    "constructor",
    "line\nbreak\r\n\t",
    "\u2028\u2029",
    "??/",
    "%s %d %(name)s {0}",
    "\\'; DROP TABLE data; --",
    "NAME_answer",
    "Größe 量 🌳",
    "a" * 300,
    "null",
    "",
]


def make_model(levels, column="column", classes=("no", "yes")):
    """A tree that tells the first half of the levels from the second, and their table."""
    levels = [*levels, "one more"]
    half = len(levels) // 2
    table = pa.table({column: pa.array(levels * 4)})
    y = np.array(classes)[(np.arange(len(levels)) >= half).astype(int)]
    model = spinney.CARTClassifier().fit(table, np.tile(y, 4))
    assert model.predict(table).tolist() == np.tile(y, 4).tolist()
    return model, levels, y.tolist()


def test_levels_in_python():
    model, levels, y = make_model(HOSTILE)
    content = spinney.export(model, "python").content
    assert content.isascii()
    assert ask_python(content, [[level] for level in levels])[1] == y


def test_levels_in_sqlite():
    model, levels, y = make_model(HOSTILE)
    content = spinney.export(model, "sql").content
    assert ask_sqlite(content, ["column"], [[level] for level in levels])[1] == y


@needs_node
def test_levels_in_javascript():
    model, levels, y = make_model(HOSTILE)
    content = spinney.export(model, "js").content
    assert content.isascii()
    assert "</script>" not in content
    assert ask_node({"m": content}, {"m": [[level] for level in levels]})["m"][1] == y


@needs_gcc
def test_levels_and_names_in_c(tmp_path):
    model, levels, y = make_model(HOSTILE, HOSTILE[2], classes=HOSTILE[:2])
    content = spinney.export(model, "c").content
    rows = "".join(f'    show("{"".join(f"{chr(92)}x{byte:02x}" for byte in level.encode())}");\n' for level in levels)
    main = f"""#include <stdio.h>
double model_level(int column, const char *text);
int model_class(const double *x);
extern const char *const model_classes[];
static void show(const char *text) {{
    double x = model_level(0, text);
    printf("%s\\n", model_classes[model_class(&x)]);
}}
int main(void) {{
{rows}    show("never seen");
    return 0;
}}
"""
    program = compile_c({"model": content}, main, tmp_path, FLAGS)
    import subprocess

    printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed[:-1] == y


@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
def test_names_of_columns(name):
    model, levels, y = make_model(["a", "b"], name)
    rows = [[level] for level in levels]
    assert ask_sqlite(spinney.export(model, "sql").content, [name], rows)[1] == y
    content = spinney.export(model, "python").content
    assert ask_python(content, [{name: level} for level in levels])[1] == y
    assert json.loads(spinney.export(model, "json").content)["columns"][0]["name"] == name


@needs_node
def test_names_of_columns_in_javascript():
    names = [name for name in HOSTILE if name]
    found = {name: make_model(["a", "b"], name) for name in names}
    contents = {name: spinney.export(model, "js", check=False).content for name, (model, _, _) in found.items()}
    rows = {name: [{name: level} for level in levels] for name, (_, levels, _) in found.items()}
    for name, (_, classes) in ask_node(contents, rows).items():
        assert classes == found[name][2]


@pytest.mark.parametrize("table", ["spinney_0", 'a"b', "drop table data", "SPINNEY_1"])
def test_names_of_tables_and_keys(table):
    model, levels, y = make_model(["a", "b"])
    exported = spinney.export(model, "sql", table=table, key=['id"; --', "column"])
    assert exported.difference == 0.0
    rows = [[level, i] for i, level in enumerate(levels)]
    with sqlite3.connect(":memory:") as connection:
        quoted = table.replace('"', '""')
        connection.execute(f'CREATE TABLE "{quoted}" ("column", "id""; --")')
        connection.executemany(f'INSERT INTO "{quoted}" VALUES (?, ?)', rows)
        found = connection.execute(exported.content).fetchall()
    assert [row[:3] for row in found] == [
        (i, level, label) for i, (level, label) in enumerate(zip(levels, y, strict=True))
    ]


def test_classes_are_labels_of_any_text():
    model, levels, y = make_model(["a", "b"], classes=(HOSTILE[0], HOSTILE[1]))
    rows = [[level] for level in levels]
    assert ask_sqlite(spinney.export(model, "sql").content, ["column"], rows)[1] == y
    assert ask_python(spinney.export(model, "python").content, rows)[1] == y


@settings(max_examples=40)
@given(levels=st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True), name=st.text(min_size=1))
def test_any_text_is_a_level_and_a_name(levels, name):
    name = name.replace("\0", "0")
    model, levels, y = make_model([level for level in levels if level != "one more"], name)
    assert ask_python(spinney.export(model, "python").content, [[level] for level in levels])[1] == y
    exported = spinney.export(model, "sql")
    assert exported.difference == 0.0
    assert ask_sqlite(exported.content, [name], [[level] for level in levels])[1] == y


def test_columns_that_an_engine_takes_for_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    table = pa.table({"a": X[:, 0], "A": X[:, 1]})
    model = spinney.CARTRegressor().fit(table, X.sum(axis=1))
    with pytest.raises(ValueError, match="'a' and 'A' have one name to sqlite: rename one"):
        spinney.export(model, "sql")
    assert '"A"' in spinney.export(model, "sql", dialect="postgresql").content
    long = pa.table({"é" * 31 + "one": X[:, 0], "é" * 31 + "other": X[:, 1]})  # of which PostgreSQL keeps 63 bytes
    model = spinney.CARTRegressor().fit(long, X.sum(axis=1))
    with pytest.raises(ValueError, match="have one name to postgresql: rename one"):
        spinney.export(model, "sql", dialect="postgresql")
    assert spinney.export(model, "sql").difference == 0.0


def test_a_column_that_the_table_lacks_is_an_error_not_text():
    model, _, _ = make_model(["a", "b"])
    content = spinney.export(model, "sql").content
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE data (other)")
        with pytest.raises(sqlite3.OperationalError, match="column"):
            connection.execute(content)
