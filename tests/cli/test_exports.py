"""`spinney export`."""

import json
import sqlite3

import pytest

import spinney
from command_line import TENNIS, fails, run, works
from spinney.cli.exports import DIALECTS, LANGUAGES
from spinney.model.export import exporting, sql_dialects


@pytest.fixture
def model(tmp_path):
    data = tmp_path / "tennis.csv"
    data.write_text(TENNIS)
    path = tmp_path / "tennis.spn"
    works("train", data, "--target", "play", "--method", "cart", "--out", path)
    return path


def test_every_language_is_offered():
    assert set(LANGUAGES) == set(exporting.TARGETS)
    assert set(DIALECTS) == set(sql_dialects.DIALECTS)


@pytest.mark.parametrize("to", LANGUAGES)
def test_to_stdout_it_is_what_python_gives(model, to):
    if to in {"onnx", "treelite"}:
        pytest.importorskip(to, reason=f"{to} is not installed")
    result = run("export", model, "--to", to)
    assert result.exit_code == 0, result.stderr
    exported = spinney.export(model, to)
    content = exported.content
    assert result.stdout_bytes == (content.encode() if isinstance(content, str) else content)
    assert result.stderr.splitlines()[-1] == f"{to}, {len(content):,} {exported.unit}: {exported.verdict}"


def test_a_file_with_options(model, tmp_path):
    out = tmp_path / "tennis.sql"
    told = works(
        "export", model, "--out", out, "--table", "my days", "--key", "day", "--check", tmp_path / "tennis.csv"
    )
    assert told.endswith("the same as the model on 206 rows\n")
    with sqlite3.connect(":memory:") as database:
        database.execute('CREATE TABLE "my days" (day, outlook, humidity)')
        database.execute("INSERT INTO \"my days\" VALUES (7, 'overcast', 'high'), (8, 'sunny', 'high')")
        assert [row[:2] for row in database.execute(out.read_text())] == [(7, "yes"), (8, "no")]
    assert "E'" not in out.read_text()
    fails(run("export", model, "--out", out), "tennis.sql exists; --force replaces it")
    told = json.loads(works("export", model, "--out", out, "--force", "--dialect", "postgresql", "--json"))
    assert told == {
        "to": "sql",
        "file": str(out),
        "rows": 0,
        "difference": None,
        "other_classes": 0,
        "note": "there is no PostgreSQL in a process; run the query on rows whose answers are known",
    }


def test_refusals_are_one_line(model, tmp_path):
    fails(run("export", model), "say what to export to: --to sql, c, python")
    fails(run("export", model, "--to", "sql", "--json"), "give --out FILE")
    fails(run("export", model, "--out", tmp_path / "model.xyz"), "the suffix does not say what to export to")
    fails(run("export", model, "--to", "python", "--table", "t"), "there is no option 'table': 'python' takes none")
    fails(run("export", tmp_path / "absent.spn", "--to", "c"), "absent.spn")
    fails(run("export", model, "--to", "c", "--name", "a b"), "name='a b': it must be a name in C")
    assert not (tmp_path / "model.xyz").exists()


def test_rows_to_check_are_read_as_predict_reads_them(tmp_path):
    data, path = tmp_path / "sales.csv", tmp_path / "sales.spn"
    lines = [f"2021-{k % 12 + 1:02}-{k % 28 + 1:02},{k % 3},{'hi' if k % 12 > 5 else 'lo'}" for k in range(60)]
    data.write_text("\n".join(["sold,shop,y", *lines]) + "\n")
    works("train", data, "--target", "y", "--method", "cart", "--out", path)
    told = works("export", path, "--out", tmp_path / "sales.py", "--check", data)
    assert told.endswith("the same as the model on 260 rows\n")
    other = tmp_path / "other.csv"
    other.write_text("shop,y\n1,hi\n")
    fails(run("export", path, "--to", "c", "--check", other), "lacks columns that the model was fitted on: 'sold'")
    other.write_text("sold,shop\n")
    fails(run("export", path, "--to", "c", "--check", other), "has no rows")


def test_a_dash_is_stdout(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain, dashed = (run("export", model, "--to", "python", *more) for more in ((), ("--out", "-")))
    assert dashed.stdout == plain.stdout != ""
    assert not (tmp_path / "-").exists()


def test_a_table_may_be_in_a_schema(model):
    result = run("export", model, "--to", "sql", "--dialect", "postgresql", "--schema", "lecture", "--table", "days")
    assert 'FROM "lecture"."days" AS t' in result.stdout
    assert 'FROM "lecture"."data" AS t' in run("export", model, "--to", "sql", "--schema", "lecture").stdout
    fails(run("export", model, "--to", "c", "--schema", "lecture"), "there is no option 'table'")
