"""The benchmarks run, on tables too small to time anything; no test looks at a time."""

import importlib
import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # `benchmarks` is a folder of the repository, not installed

from benchmarks import runner
from benchmarks.__main__ import QUESTIONS, main
from benchmarks.runner import Answer, Scale, Timing, alternate, append_rows, describe_machine, measure

TINY = Scale(2e-4, 1, 5)


@pytest.mark.parametrize(
    ("question", "n_answers"),
    [
        ("predict", 3),
        ("scaling", 1),
        ("fit", 2),
        ("memory", 2),
        ("startup", 5),
        pytest.param("forest", 13, marks=pytest.mark.slow),
    ],
)
def test_each_question_gets_its_answers(question, n_answers, capsys):
    answers = importlib.import_module(f"benchmarks.{question}").run(TINY)
    assert len(answers) >= n_answers  # one more where the letter table is at hand
    printed = capsys.readouterr().out
    for answer in answers:
        assert answer.question == question
        assert answer.line() in printed
        assert answer.markdown().count("|") == runner.HEADING[0].count("|")


def test_every_question_is_on_the_menu():
    files = {path.stem for path in Path(runner.__file__).parent.glob("*.py")}
    assert files == {*QUESTIONS, "__init__", "__main__", "runner", "tables", "peers"}


def test_the_command_refuses_what_it_cannot_do(capsys):
    for arguments, complaint in (
        (["fits"], "no benchmark 'fits'; there are fit, predict"),
        (["--quick", "--append", "x.md"], "measures too little to be kept"),
        (["forest", "--trees", "0"], "at least one tree"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert complaint in capsys.readouterr().err


def test_the_command_prints_machine_lines_and_rows(capsys, monkeypatch, tmp_path):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # the command sets them; this puts them back
    monkeypatch.setattr("benchmarks.__main__.FULL", TINY)
    path = tmp_path / "results.md"
    assert main(["scaling", "--append", str(path)]) == 0
    printed = capsys.readouterr().out
    row = path.read_text().splitlines()[-1]
    assert row.startswith("| scaling |")
    assert row in printed
    assert "scikit-learn" in printed


def test_sides_take_turns_and_the_best_counts():
    calls = []
    runs = alternate([lambda turn: calls.append(("a", turn)), lambda turn: calls.append(("b", turn))], 3)
    assert calls == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert [len(side.results) for side in runs] == [3, 3]
    assert all(isinstance(side.best, Timing) for side in runs)


def test_measure_returns_the_result_and_counts_children():
    timing, done = measure(lambda: runner.run_fresh("-c", "print(sum(range(3_000_000)))"))
    assert done.stdout.strip() == "4499998500000"
    assert timing.wall > 0
    assert timing.cpu > 0


def test_a_failing_process_is_an_error_with_its_output():
    with pytest.raises(RuntimeError, match="no such thing"):
        runner.run_fresh("-c", "raise SystemExit('no such thing')")


@pytest.mark.parametrize(
    ("value", "limit", "is_least", "is_alike", "verdict"),
    [
        (2.0, 2.0, True, True, "met"),
        (1.9, 2.0, True, True, "missed"),
        (2.1, 2.0, False, True, "missed"),
        (2.0, 2.0, False, True, "met"),
        (9.0, 2.0, True, False, "not alike"),
        (9.0, None, True, True, "reported"),
    ],
)
def test_verdicts(value, limit, is_least, is_alike, verdict):
    answer = Answer("q", "c", "1 s", "2 s", value, " x", limit, is_least=is_least, is_alike=is_alike)
    assert answer.verdict == verdict


def test_a_run_is_added_to_a_file_and_nothing_else_is_changed(tmp_path):
    path = tmp_path / "results.md"
    path.write_text("before\n")
    answer = Answer("fit", "a | b", "1 s", "2 s", 2.0, " x", 2.0)
    append_rows(path, {"CPU": "one"}, [answer])
    lines = path.read_text().splitlines()
    assert lines[0] == "before"
    assert "CPU one" in lines
    assert lines[-1] == "| fit | a / b | 1 s | 2 s | 2 x | ≥ 2 x | met |  |"


def test_the_machine_is_named():
    machine = describe_machine()
    assert {"CPU", "python", "numba", "scikit-learn", "commit", "load"} <= set(machine)
    assert all(machine.values())


def test_peak_memory_sees_an_array_that_is_gone():
    code = (
        "import json, numpy as np\nfrom benchmarks import memory\n"
        "call = lambda: np.ones(20_000_000).sum()\n"
        "print(json.dumps([memory.peak_growth(call), memory.peak_growth(lambda: None)]))"
    )
    grown, idle = json.loads(runner.run_fresh("-c", code).stdout)
    assert grown > 150e6  # of 160e6 bytes
    assert idle < 50e6


def test_sampled_memory_sees_an_array_that_stays_a_while():
    code = (
        "import json, time, numpy as np\nfrom benchmarks import memory\n"
        "def call():\n    held = np.ones(20_000_000)\n    time.sleep(0.2)\n"
        "print(json.dumps(memory.sampled_growth(call)))"
    )
    assert json.loads(runner.run_fresh("-c", code).stdout) > 150e6


def test_the_numeric_table_is_the_same_whatever_the_dtype():
    from benchmarks.tables import draw_numeric

    X, y = draw_numeric(200)
    wide, same_y = draw_numeric(200, "float64")
    assert X.dtype == "float32"
    assert wide.dtype == "float64"
    assert (wide == X).all()
    assert (y == same_y).all()
    assert 0.2 < y.mean() < 0.8


def test_peers_see_the_levels_of_a_category_as_numbers():
    import numpy as np
    import pyarrow as pa
    from benchmarks.peers import plain_column
    from benchmarks.tables import code_levels

    colour = pa.chunked_array([pa.array(["red", None, "blue", "red"]).dictionary_encode()])
    table = pa.table({"colour": colour, "size": [1, 2, 3, 4]})
    coded = code_levels(table)
    assert np.isnan(coded[1, 0])
    assert coded[[0, 2, 3], 0].tolist() == [0, 1, 0]
    assert coded[:, 1].tolist() == [1, 2, 3, 4]
    assert plain_column(table["colour"]).tolist() == ["red", "missing", "blue", "red"]
    assert plain_column(table["size"]).tolist() == [1, 2, 3, 4]


def test_absent_peers_are_left_out_with_a_line(capsys, monkeypatch, tmp_path):
    from benchmarks import peers

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("YDF_PYTHON", str(tmp_path / "python"))
    assert peers.find_peers() == []
    printed = capsys.readouterr().out
    assert "YDF: left out" in printed
    assert "ranger: left out" in printed


def test_a_peer_reports_its_own_time_and_a_failing_one_its_output(tmp_path):
    from benchmarks.peers import Peer

    told = Peer("mock", [sys.executable, "-c", "print('chatter'); print([2.0, 1.5, 0.75])"])
    assert told.fit(tmp_path, 10, False, 0) == (Timing(2.0, 1.5), 0.75)
    broken = Peer("mock", [sys.executable, "-c", "raise SystemExit('no such tree')"])
    with pytest.raises(RuntimeError, match="no such tree"):
        broken.fit(tmp_path, 10, False, 0)


def test_a_score_of_a_forest_is_that_of_its_kind_of_target():
    import numpy as np
    from benchmarks.forest import count_leaves, name_score, rate
    from benchmarks.tables import Split
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X = np.arange(40.0)[:, None]
    for y, is_regression, name, kind in (
        (X[:, 0], True, "R2", RandomForestRegressor),
        (X[:, 0] > 20, False, "AUC", RandomForestClassifier),
        (X[:, 0] // 14, False, "accuracy", RandomForestClassifier),
    ):
        split = Split("t", X, y, X, y, is_regression)
        model = kind(n_estimators=20, random_state=0).fit(X, y)
        assert name_score(split) == name
        assert 0.9 < rate(model, split, X) <= 1.0
        assert count_leaves(model) == np.mean([tree.get_n_leaves() for tree in model.estimators_])
