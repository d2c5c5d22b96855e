"""`spinney study`, as a user types it."""

import datetime as dt
import errno
import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import spinney
from spinney.cli import main
from spinney.cli.report import beside
from spinney.cli.writers import Sink
from spinney.study import Study, housing_evidence
from spinney.study import housing as figures
from spinney.study.result import Figure


@pytest.fixture
def fruit(tmp_path):
    """120 rows of fruit whose kind follows from weight and colour."""
    rng = np.random.default_rng(3)
    weight, colour = rng.normal(100, 20, 120).round(1), rng.choice(["red", "green"], 120)
    kind = np.where((weight > 105) | (rng.random(120) < 0.1), "apple", "plum")
    lines = [f"{i + 1},{w},{c},{k}" for i, (w, c, k) in enumerate(zip(weight, colour, kind, strict=True))]
    path = tmp_path / "fruit.csv"
    path.write_text("\n".join(["row,weight,colour,kind", *lines, ""]))
    return path


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Reports of embedded tables go to the current directory."""
    monkeypatch.chdir(tmp_path)


def run(*arguments, report=("--no-report",), **more):
    return CliRunner().invoke(main, ["study", *map(str, arguments), *map(str, report)], **more)


def fails(result, *words):
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    for word in words:
        assert word in result.stderr


def test_doubts_are_said_before_work_and_long_names_are_cut(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{a:.2f}".replace(".", ",") + f";{b:.3f};{'pq'[i % 2]}" for i, (a, b) in enumerate(rng.normal(size=(120, 2)))
    ]
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(["x" * 5000 + ";b;y", *lines, *lines[:30], ""]))
    result = run(path, "--target", "y", "--methods", "cart", "--folds", "2x1", "--plain")
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    before, _, after = words.partition("2 methods")
    assert "decimal comma" in before
    assert "30 rows (20.0%) equal an earlier one" in before
    assert "equal an earlier one" not in after
    assert "x" * 61 not in result.stdout.replace("\n", "")


compiled_only = pytest.mark.compiled(reason="takes minutes interpreted")
QUICK = ("--methods", "cart,c45", "--folds", "3x1")


def test_a_table_is_described_compared_and_judged(fruit):
    result = run(fruit, "--target", "kind", *QUICK)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    read = "fruit.csv (CSV separated by commas): 120 rows, target 'kind' (classification: 2 classes, "
    assert "".join(lines[:2]).startswith(read)
    assert lines[2] == "inputs: 1 number (weight) and 1 category (colour 2); 0.0% of the cells are "
    assert lines[4] == "left out: 'row', it numbers the rows"
    assert lines[5] == "3 methods, accuracy, 3 folds stratified by class"
    assert any("pruned CART" in line for line in lines)
    assert "is best (accuracy" in result.stdout
    assert "\x1b" not in result.output


@pytest.mark.compiled(reason="takes minutes interpreted")
def test_how_a_table_was_read_is_said_before_the_work(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(14)]
    table = pa.table({**{name: rng.normal(size=40) for name in names}, "y": rng.normal(size=40)})
    for path, form in ((tmp_path / "t.parquet", "Parquet"), (tmp_path / "t.arrow", "Arrow")):
        with path.open("wb") as file, Sink(file, form.lower()) as sink:
            sink.write(table)
        text = " ".join(run(path, "--target", "y", "--methods", "cart", "--folds", 2).stdout.split())
        assert f"t{path.suffix} ({form}): 40 rows, target 'y' (regression: numbers)" in text
        assert "inputs: 14 numbers (x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, 2 more); 0.0%" in text
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        path = tmp_path / "t.csv"
        path.write_text("\n".join([f"a{mark}y", *(f"{i % 7}{mark}{i % 2}" for i in range(40))]))
        text = " ".join(run(path, "--target", "y", "--methods", "cart", "--folds", 2).stdout.split())
        assert f"t.csv (CSV separated by {word}): 40 rows" in text


@pytest.mark.compiled(reason="takes minutes interpreted")
def test_a_table_by_stdin(fruit):
    by_name, by_stdin = (
        json.loads(run(data, "--target", "kind", *QUICK, "--json", input=content).stdout)
        for data, content in ((fruit, None), ("-", fruit.read_bytes()))
    )
    assert (by_name["summary"].pop("name"), by_stdin["summary"].pop("name")) == ("fruit.csv", "stdin")
    assert by_stdin["summary"] == by_name["summary"]
    assert [one["scores"] for one in by_stdin["methods"]] == [one["scores"] for one in by_name["methods"]]
    result = run("-", "--target", "kind", *QUICK, input=fruit.read_bytes(), report=())
    assert "report: study.report.html" in result.stdout


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x": [], "y": []}, "no rows"),  # faults 1
        ({"y": [1.5, 2.5] * 20}, "no other column"),  # 3
        ({"x": [dt.date(2026, 1, 1)] * 40, "y": [1.5, 2.5] * 20}, "one value throughout"),  # 18
        ({"x": [dt.timedelta(i) for i in range(40)], "y": [1.5, 2.5] * 20}, "make numbers of it"),  # 18
        ({"x": [1.0] * 40, "y": [1.5, 2.5] * 20}, "one value throughout"),  # 35
        ({"x": list(range(40)), "y": [1.5, float("nan")] * 20}, "20 missing values"),  # 42
        ({"x": list(range(40)), "y": [1.5, float("inf")] * 20}, "infinite"),  # 42
        ({"x": list(range(40)), "y": ["a"] * 40}, "one class only, 'a'"),  # 44: there is nothing to compare
        ({"x": list(range(40)), "y": [1.5] * 40}, "one value throughout, '1.5'"),
        ({"x": list(range(40)), "y": [1.5, 1e300] * 20}, "squares overflow"),  # 43: trees take it, scores do not
        ({"x": list(range(40)), "y": [f"c{i}" for i in range(40)]}, "fewer rows than there are folds"),  # 54
        ({"x": [[1]] * 40, "y": [1.5, 2.5] * 20}, "convert it"),  # 8
    ],
)
def test_faults_of_tables_through_the_command(columns, words, tmp_path):
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    result = run(tmp_path / "t.parquet", "--target", "y", "--methods", "cart", report=())
    fails(result, words)
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


@pytest.mark.parametrize("scale", [1e149, 1e-300])
@pytest.mark.sampled(2)
def test_the_unit_of_the_target_does_not_matter_fault_43(scale, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    scores = []
    for factor in (1.0, scale):
        parquet.write_table(pa.table({"x": x, "y": np.sin(x) * factor}), tmp_path / "t.parquet")
        told = json.loads(run(tmp_path / "t.parquet", "--target", "y", "--methods", "cart", "--json").stdout)
        scores.append(told["methods"][1]["scores"])
    assert scores[1] == pytest.approx(scores[0])


def test_json_is_the_whole_study_and_nothing_else(fruit):
    result = run(fruit, "--target", "kind", *QUICK, "--json", "--seed", 7, "--metric", "log_loss")
    study = Study.from_json(result.stdout)
    assert (study.metric, study.seed, study.n_folds, study.is_greater_better) == ("log_loss", 7, 3, False)
    assert [one.key for one in study.methods] == ["baseline", "c45", "cart"]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_every_width_shows_methods_and_scores(fruit, width):
    result = run(fruit, "--target", "kind", *QUICK, env={"COLUMNS": str(width)})
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= width
    (row,) = (line for line in result.stdout.splitlines() if line.split()[:1] == ["C4.5"])
    assert float(row.split()[1]) > 0.5


def test_plain_is_ascii(fruit):
    result = run(fruit, "--target", "kind", *QUICK, "--plain")
    assert result.stdout.isascii()
    assert "+-" in result.stdout


def test_embedded_tables_know_their_target():
    result = run("contact_lenses", "--methods", "id3", "--folds", "2x1", "--plain")
    assert result.exit_code == 0
    assert "target 'contact-lenses'" in result.stdout


def test_the_best_is_saved(fruit, tmp_path):
    place = tmp_path / "best.spn"
    result = run(fruit, "--target", "kind", "--methods", "cart", "--folds", "3x1", "--save", place)
    assert result.exit_code == 0, result.stderr
    assert "fitted to all 120 rows: saved in" in " ".join(result.stdout.split())
    assert type(spinney.load_model(place)).__name__ == "CARTClassifier"
    before = place.read_bytes()
    fails(run(fruit, "--target", "kind", "--methods", "cart", "--save", place), "exists", "--force")
    assert place.read_bytes() == before
    assert run(fruit, "--target", "kind", *QUICK, "--save", place, "--force").exit_code == 0


def test_where_there_is_no_model_to_save_the_report_is_written(tmp_path):
    rows = "".join(f"{x},{y}\n" for x, y in np.random.default_rng(0).random((40, 2)))
    (tmp_path / "t.csv").write_text("x,y\n" + rows)
    options = ("--target", "y", "--methods", "id3", "--folds", "2x1", "--save", tmp_path / "m.spn")
    result = run(tmp_path / "t.csv", *options, report=())
    fails(result, "nothing beat the baseline")
    assert "No method beats the baseline" in result.stdout
    assert "No method beats the baseline" in (tmp_path / "t.report.html").read_text(encoding="utf-8")
    assert not (tmp_path / "m.spn").exists()


def test_methods_that_fail_in_every_fold_have_a_report_too(tmp_path):
    rows = "".join(f"{k * 7 % 20},{k // 20},{'a' if k < 40 or k % 2 else 'b'}\n" for k in range(60))  # "b" comes late
    (tmp_path / "t.csv").write_text("x,day,y\n" + rows)
    options = ("--target", "y", "--time", "day", "--methods", "cart", "--folds", "2", "--metric", "roc_auc")
    result = run(tmp_path / "t.csv", *options, report=())
    fails(result, "every method failed", "choose another metric")
    assert "nothing to recommend" in result.stdout
    assert "roc_auc is not defined there" in (tmp_path / "t.report.html").read_text(encoding="utf-8")


def between(start, end, text):
    return text.partition(start)[2].partition(end)[0]


@compiled_only
def test_the_numbers_of_the_report_are_those_of_json_and_of_its_lines_of_python(fruit, tmp_path):
    options = (fruit, "--target", "kind", *QUICK, "--drop", "row", "--seed", 3, "--metric", "log_loss")
    told = Study.from_json(run(*options, "--json").stdout)
    assert run(*options, report=()).exit_code == 0
    page = (tmp_path / "fruit.report.html").read_text(encoding="utf-8")
    cells = [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)]
        for line in re.findall(r"<tr[^>]*>.*?</tr>", between('<table class="methods">', "</table>", page))
    ]
    for line, result in zip(cells[1:], told.ranked, strict=True):
        assert line[0] == result.name
        assert line[2:4] == [f"{result.mean:.3f}", f"{told.standard_error(result):.3f}"]
    assert html.escape(told.recommendation, quote=False) in page
    names: dict = {}
    exec(html.unescape(between('aria-label="Lines of Python"><code>', "</code>", page)), names)
    assert [one.scores for one in names["study"].methods] == [one.scores for one in told.methods]


def test_errors_are_one_line_and_nothing_is_written(fruit, tmp_path):
    fails(run(fruit), "--target is missing", "'weight', 'colour'")
    fails(run(fruit, "--target", "kinds"), "Did you mean 'kind'")
    fails(run(fruit, "--target", "kind", "--methods", "forrest"), "did you mean 'forest'")
    fails(run(fruit, "--target", "kind", "--metric", "r2"), "not one for classification")
    fails(run(fruit, "--target", "kind", "--folds", "1"), "at least 2 folds")
    fails(run(fruit, "--target", "kind", "--folds", "five"), "--folds five")
    fails(run(fruit, "--target", "kind", "--budget", "soon"), "no duration")
    fails(run(fruit, "--target", "kind", "--groups", "nobody"), "'nobody'")
    fails(run(fruit, "--target", "kind", "--drop", "kind"), "--drop 'kind'", "target")
    fails(run(fruit, "--target", "kind", "--drop", "colours"), "Did you mean 'colour'")
    fails(run(tmp_path / "absent.csv", "--target", "y"), "absent.csv")
    fails(run("--target", "kind"), "--target needs DATA")
    fails(run(fruit, "--target", "kind", "--save", tmp_path / "none" / "m.spn"), "no directory")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fruit.csv"]


def test_groups_time_and_drop(fruit):
    result = run(fruit, "--target", "kind", "--groups", "colour", "--folds", 2, "--methods", "cart", "--json")
    assert "whole groups of 'colour'" in json.loads(result.stdout)["folds"]
    result = run(fruit, "--target", "kind", "--time", "row", "--drop", "colour", "--methods", "cart", "--json")
    study = json.loads(result.stdout)
    assert "in the order of 'row'" in study["folds"]
    assert study["summary"]["dropped"] == {"row": "it orders the folds", "colour": "you asked for it"}


def test_what_a_column_is_called_is_shown_as_text(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i % 7},{(i * 5) % 11},{'ab'[i % 2]}\n" for i in range(40))
    path.write_text("[red]\x1b[31mx,[/],y\n" + rows)
    result = run(path, "--target", "y", "--methods", "id3", "--folds", "2x1")
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.output


# --- The report ---------------------------------------------------------------------------------------------------

CART = ("--methods", "cart", "--folds", "2x1")


@compiled_only
def test_a_report_is_written_beside_the_data_and_replaces_its_own_kind_alone(fruit, tmp_path):
    place = tmp_path / "fruit.report.html"
    result = run(fruit, "--target", "kind", *CART, report=())
    assert result.exit_code == 0, result.stderr
    assert f"report: {place}" in "".join(result.stdout.splitlines())
    page = place.read_text(encoding="utf-8")
    assert "Pruned CART is best" in page
    assert page.count("<figure>") > 3
    place.write_text(page.replace("Pruned CART is best", "gone"), encoding="utf-8")
    assert run(fruit, "--target", "kind", *CART, report=()).exit_code == 0
    assert "Pruned CART is best" in place.read_text(encoding="utf-8")
    place.write_text("my own notes")
    fails(run(fruit, "--target", "kind", *CART, report=()), "not a report of Spinney", "--force", "--no-report")
    assert place.read_text() == "my own notes"
    assert run(fruit, "--target", "kind", *CART, "--force", report=()).exit_code == 0
    assert "CART" in place.read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"fruit.csv", "fruit.report.html"}


@compiled_only
def test_the_report_goes_where_it_is_told(fruit, tmp_path):
    place = tmp_path / "out.html"
    result = run(fruit, "--target", "kind", *CART, "--json", report=("--report", place))
    Study.from_json(result.stdout)
    assert str(place) in result.stderr
    assert place.is_file()
    assert not (tmp_path / "fruit.report.html").exists()
    assert run(fruit, "--target", "kind", *CART, "--json", report=()).exit_code == 0
    assert not (tmp_path / "fruit.report.html").exists()


def test_a_report_that_cannot_be_is_refused_before_the_work(fruit, tmp_path):
    fails(run(fruit, "--target", "kind", report=("--report", tmp_path / "none" / "r.html")), "no directory")
    fails(run(fruit, "--target", "kind", report=("--report", tmp_path)), "is a directory")
    fails(run(fruit, "--target", "kind", report=("--report", "")), "--report is empty")
    fails(run(fruit, "--target", "kind", report=("--report", "r.html", "--no-report")), "choose one")


@pytest.mark.parametrize(
    ("source", "name"),
    [("a.csv.gz", "a"), ("b.v2.parquet", "b.v2"), ("glass", "glass"), ("-", "study"), (".csv", "study")],
)
def test_reports_are_named_after_the_data(source, name):
    assert str(beside(source)) == f"{name}.report.html"


def test_where_nothing_can_be_written_there_is_a_study_without_a_report(fruit, tmp_path, monkeypatch):
    monkeypatch.setattr("spinney.cli.report.os.access", lambda *_: False)
    result = run(fruit, "--target", "kind", *CART, report=())
    assert result.exit_code == 0
    assert "no report: nothing can be written here" in result.stderr
    assert "is best (accuracy" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["fruit.csv"]


@compiled_only
def test_a_full_disk_loses_nothing_but_the_report(fruit, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "fruit.report.html")

    monkeypatch.setattr("spinney.cli.report.replacing", full)
    result = run(fruit, "--target", "kind", *CART, report=())
    assert result.exit_code == 1
    assert "is best (accuracy" in result.stdout
    assert "No space left" in result.stderr
    assert not (tmp_path / "fruit.report.html").exists()


def test_a_spent_budget_leaves_a_report_that_says_so(fruit, tmp_path):
    result = run(fruit, "--target", "kind", *QUICK, "--budget", "0.001s", report=())
    assert result.exit_code == 0
    page = (tmp_path / "fruit.report.html").read_text(encoding="utf-8")
    assert "rests on the folds that were finished" in page


# --- Stopping -----------------------------------------------------------------------------------------------------


def test_a_spent_budget_is_said(fruit):
    result = run(fruit, "--target", "kind", *QUICK, "--budget", "0.001s")
    assert result.exit_code == 0
    assert "0 of 3 folds, the budget was spent" in " ".join(result.stdout.split())
    assert "nothing to recommend" in result.stdout
    assert "budget is spent" in result.stderr


@compiled_only
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.slow
def test_ctrl_c_leaves_a_table_and_exit_code_130(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    rows = "".join(",".join(f"{value:.6f}" for value in [*row, row.sum()]) + "\n" for row in X)
    (tmp_path / "t.csv").write_text("a,b,c,d,e,f,y\n" + rows)
    arguments = [
        "study",
        str(tmp_path / "t.csv"),
        "--target",
        "y",
        "--methods",
        "id3,forest",
        "--folds",
        "200",
        "--plain",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "spinney", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert process.stdout.readline().startswith("t.csv (CSV separated by commas): 3,000 rows")
    time.sleep(6)  # some folds
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "of 200 folds, it was interrupted" in out
    assert "The study was interrupted" in (tmp_path / "t.report.html").read_text(encoding="utf-8")
    assert "Traceback" not in err


# --- The figure ---------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """A figure of few trees."""
    whole = figures.draw_figure
    monkeypatch.setattr(housing_evidence, "examine_figure", lambda *_, **__: None)  # it takes its time
    monkeypatch.setattr(figures, "draw_figure", lambda **options: whole((2, 4), n_folds=1, **options))


@compiled_only
@pytest.mark.usefixtures("small")
def test_without_data_the_figure_of_the_lectures(tmp_path):
    result = run(report=())
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "california_housing.report.html").read_text(encoding="utf-8")
    assert "is best with 4 trees: R²" in page
    for words in ("The data", "MedInc", "seeded with 42", "min_weight_fraction_leaf=0.1"):
        assert words in page
    assert result.stdout.startswith("California housing: R² on held-out rows")
    assert "XGB R²" in result.stdout
    assert "\x1b" not in result.output
    narrow = run("--plain", env={"COLUMNS": "40"})
    assert narrow.stdout.isascii()
    assert [curve.name for curve in Figure.from_json(run("--json").stdout).curves] == list(figures.ensembles())
    assert max(map(len, run(env={"COLUMNS": "40"}).stdout.splitlines())) <= 40


def test_interrupt_without_data_is_exit_code_130(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(figures, "_measure", interrupt)
    result = run()
    assert result.exit_code == 130
    assert "nothing was finished" in result.stdout
    assert "Traceback" not in result.output


def test_a_study_without_a_method_that_works_is_an_error(monkeypatch, tmp_path):
    def fail(*_):
        raise ValueError("the disk of the moon")

    monkeypatch.setattr(spinney.ID3Classifier, "fit", fail)
    page = tmp_path / "page.html"
    found = run("contact_lenses", "--methods", "id3", "--folds", "4", report=("--report", page))
    assert found.exit_code == 2
    assert found.stderr.strip() == "Error: every method failed: the disk of the moon"
    assert "commonest class" in found.stdout  # the table is there all the same, and the report
    assert page.exists()


def test_a_column_that_gives_the_answer_away_is_named_first(tmp_path):
    rng = np.random.default_rng(4)
    label = rng.choice(["no", "yes"], 200)
    score = np.where(label == "yes", 0.5, 0.0) + 0.49 * rng.random(200)  # one threshold is the label
    place = tmp_path / "t.csv"
    lines = [f"{s:.4f},{x:.3f},{y}" for s, x, y in zip(score, rng.normal(size=200), label, strict=True)]
    place.write_text("\n".join(["score,x,label", *lines, ""]))
    said = " ".join(run(place, "--target", "label", "--methods", "id3", "--plain").stdout.split())
    assert said.index("LEAK? column 'score' gives the answer away: alone it predicts") < said.index("2 methods")
    assert re.search(r"with accuracy (1\.0000|0\.99)", said)
    assert "--drop score" in said
    clean = run(place, "--target", "label", "--methods", "id3", "--drop", "score", "--plain")
    assert clean.exit_code == 0
    assert "LEAK" not in clean.stdout


def test_a_class_of_two_rows_is_left_out_with_a_warning(tmp_path):
    rng = np.random.default_rng(4)
    label = np.array(["no"] * 60 + ["yes"] * 60 + ["perhaps"] * 2)
    place = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": rng.normal(size=122) + (label == "yes"), "label": label}), place)
    result = run(place, "--target", "label", "--methods", "id3", "--plain")
    assert result.exit_code == 0
    assert "left out: rows of classes that have fewer rows than there are folds" in " ".join(result.stdout.split())
    assert "'perhaps' (2)" in result.stdout
