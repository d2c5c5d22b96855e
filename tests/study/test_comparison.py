"""The comparative study on a slice of its table."""

from io import StringIO

from rich.console import Console

from spinney import datasets, study


def test_rows_are_in_order_and_believable():
    seen = []
    table = datasets.load("california_housing").slice(0, 1500)
    rows = study.compare(table, n_splits=3, on_fit=seen.append)
    assert [row.method for row in rows] == list(dict.fromkeys(seen))
    assert len(seen) == 3 * len(rows)
    baseline, linear, full, restrained, pruned, forest, extra, boosted = rows
    assert baseline.score <= 0 < linear.score
    assert full.score < restrained.score
    assert min(forest.score, extra.score, boosted.score) > restrained.score
    assert baseline.leaves is None
    assert linear.leaves is None
    assert full.leaves > restrained.leaves > 1
    assert full.leaves > pruned.leaves > 1
    assert all(row.score_sd >= 0 and row.fit_seconds > 0 for row in rows)


def test_the_table_shows_every_row():
    rows = [study.Row("a", 0.5, 0.01, 1.25, 1234.4), study.Row("b", -0.0002, 0.0, 0.0, None)]
    text = StringIO()
    study.print_rows(rows, Console(file=text, width=100), "title")
    assert "title" in text.getvalue()
    assert "1,234" in text.getvalue()
    assert "-" not in text.getvalue()
