"""The line that tells how far a scan has read."""

import io

import pytest

from disk_tables import make_table, write_parts
from spinney.scale import reading_line
from spinney.scale.column_writing import TableWriter
from spinney.scale.scan import Scan


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def hurried(monkeypatch):
    """Draw at once, and after each batch of rows."""
    monkeypatch.setattr(reading_line, "PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr(reading_line, "REFRESH_SECONDS", 0.0)


@pytest.mark.usefixtures("hurried")
def test_a_terminal_is_told_rows_and_speed_and_left_clean(tmp_path, monkeypatch):
    terminal = Terminal()
    pattern = write_parts(make_table(700), tmp_path, [300])
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", terminal)
        Scan(pattern, "y").read()
    lines = terminal.getvalue().split(reading_line.WIPE)
    assert lines[0] == lines[-1] == ""
    assert [line.partition(" rows")[0] for line in lines[1:-1]] == ["reading: 300 of 700", "reading: 700 of 700"]
    assert all(line.endswith(" rows/s") for line in lines[1:-1])


@pytest.mark.usefixtures("hurried")
def test_the_line_goes_when_reading_fails(tmp_path, monkeypatch):
    terminal = Terminal()

    def fail(self, part, table):
        add(self, part, table)
        if self.n_rows + self.n_held > 300:
            raise OSError("the disk is gone")

    add = TableWriter.add
    monkeypatch.setattr(TableWriter, "add", fail)
    pattern = write_parts(make_table(700), tmp_path, [300])
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", terminal)
        with pytest.raises(OSError, match="the disk is gone"):
            Scan(pattern, "y").read()
    assert "reading: 300 of 700" in terminal.getvalue()
    assert terminal.getvalue().endswith(reading_line.WIPE)


@pytest.mark.usefixtures("hurried")
def test_a_pipe_is_told_nothing(tmp_path, capsys):
    Scan(write_parts(make_table(700), tmp_path, []), "y").read()
    assert capsys.readouterr() == ("", "")
