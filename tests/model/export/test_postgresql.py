"""Queries in PostgreSQL, where its server is installed: a cluster of its own in a folder that goes away."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

import spinney
from export_cases import NAMES, fitted, names_of, plain_cells, truth_of

pytestmark = pytest.mark.slow


def find_programs():
    """Where `initdb` and `pg_ctl` are, the newest first; None where they are not."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: -int(place.parent.name))
    return places[0] if places else None


@pytest.fixture(scope="module")
def ask():
    """A function that runs a script in a new cluster and gives its rows, as texts."""
    programs = find_programs()
    if programs is None or shutil.which("psql") is None:
        pytest.skip("there is no PostgreSQL server")
    before = []
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short name: that of a socket has at most 107 letters
    if os.geteuid() == 0:  # the server refuses to run as root
        names = {user.pw_name for user in pwd.getpwall()}
        if "postgres" not in names or shutil.which("setpriv") is None:
            pytest.skip("the server does not run as root, and there is no user postgres")
        shutil.chown(folder, "postgres")
        before = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

    def run(*command):
        subprocess.run([*before, *map(str, command)], check=True, stdout=subprocess.DEVNULL, cwd="/")

    try:
        run(programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres", "-E", "UTF8")
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        run(programs / "pg_ctl", "-D", folder / "data", "-o", options, "-l", folder / "log", "-w", "start")
        yield lambda script: ask_server(folder, script)
        run(programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ask_server(folder, script):
    command = ["psql", "-X", "-q", "-At", "-F", "\x01", "-h", str(folder), "-U", "postgres", "-v", "ON_ERROR_STOP=1"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return [line.split("\x01") for line in done.stdout.splitlines()]


def quote(text, mark):
    return mark + text.replace(mark, mark * 2) + mark


def fill(names, rows):
    """A table `data` of numbers and text."""
    kinds = ["text" if any(isinstance(row[j], str) for row in rows) else "float8" for j in range(len(names))]
    columns = ", ".join(f"{quote(name, chr(34))} {kind}" for name, kind in zip(names, kinds, strict=True))
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    return f"DROP TABLE IF EXISTS data; CREATE TABLE data ({columns}); INSERT INTO data VALUES {values};\n"


def literal(cell):
    if cell is None:
        return "NULL"
    return quote(cell, "'") if isinstance(cell, str) else f"'{cell!r}'::float8".replace("inf", "Infinity")


@pytest.mark.parametrize("name", NAMES)
def test_postgresql_gives_the_bits_of_the_model(name, ask):
    model, rows = fitted(name)
    content = spinney.export(model, "sql", dialect="postgresql").content
    found = ask(fill(names_of(model), plain_cells(rows)) + content)
    expected, predicted = truth_of(model, rows)
    width = expected.shape[1]
    np.testing.assert_array_equal(np.array([row[len(row) - width :] for row in found], float), expected)
    if predicted is not None:
        assert [row[0] for row in found] == predicted


def test_a_nan_is_missing_and_levels_are_quoted(ask):
    import pyarrow as pa

    levels = ["it's", 'a "b"', "\\", "'; DROP TABLE data; --", "\\'"]
    table = pa.table({"n": np.arange(20.0) % 7, 'l"; --': pa.array(levels * 4)})
    y = np.arange(5.0) * 10
    model = spinney.CARTRegressor().fit(table, np.tile(y, 4))
    script = fill(table.column_names, [[float("nan"), level] for level in levels])
    script = script.replace("'nan'", "'NaN'") + spinney.export(model, "sql", dialect="postgresql").content
    for setting in ("on", "off"):
        found = ask(f"SET standard_conforming_strings = on;\n{script.partition('WITH')[0]}"
                    f"SET escape_string_warning = off; SET standard_conforming_strings = {setting};\n"
                    f"WITH{script.partition('WITH')[2]}")  # fmt: skip
        assert [float(row[0]) for row in found] == y.tolist()
