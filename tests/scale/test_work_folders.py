"""What a killed process leaves is removed by the next; what a living one writes is not."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

import spinney
from disk_tables import make_table
from spinney import _files
from spinney.scale import work_folders
from spinney.scale.work_folders import WorkFolder, clear_leftovers

pytestmark = pytest.mark.skipif(work_folders.fcntl is None, reason="no locks here")
HOLD = """
    import sys, time
    from pathlib import Path
    from spinney.scale.work_folders import WorkFolder
    folder = WorkFolder(Path(sys.argv[1]))
    (folder.path / "rows").write_text("some")
    print(folder.path.name, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds a folder, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    name = process.stdout.readline().strip()
    yield process, tmp_path / name
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_folder_of_a_killed_process_goes_with_the_next(holder, tmp_path):
    process, folder = holder
    assert clear_leftovers(tmp_path) == []
    with WorkFolder(tmp_path) as mine:
        assert {path.name for path in tmp_path.iterdir()} == {folder.name, mine.path.name}
    assert (folder / "rows").read_text() == "some"
    process.send_signal(signal.SIGKILL)
    process.wait()
    with WorkFolder(tmp_path) as mine:
        assert [path.name for path in tmp_path.iterdir()] == [mine.path.name]
    assert [*tmp_path.iterdir()] == []


def test_stores_clear_what_killed_ones_have_left(holder, tmp_path):
    process, folder = holder
    store = spinney.scan(make_table(50), "y").store(tmp_path / "one.codes")
    assert folder.is_dir()
    process.kill()
    process.wait()
    store = spinney.scan(make_table(50), "y").store(tmp_path / "two.codes")
    assert not folder.exists()
    assert store.n_rows == 50
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.codes", "two.codes"]


def test_temporary_tables_clear_what_killed_ones_have_left(holder, tmp_path, monkeypatch):
    process, folder = holder
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    process.kill()
    process.wait()
    spinney.scan(make_table(50), "y").read()
    assert not folder.exists()


def test_other_things_stay(tmp_path):
    for name in ("spinney", ".spinney-a", "a.part"):
        (tmp_path / name).mkdir()
    (tmp_path / ".spinney-0.part").write_text("a file")
    (tmp_path / ".spinney-1.part").symlink_to(tmp_path / "spinney")
    assert clear_leftovers(tmp_path) == []
    assert len([*tmp_path.iterdir()]) == 5


def test_a_folder_that_was_taken_for_a_leftover_is_made_anew(tmp_path, monkeypatch):
    """Another process may look between the making of a folder and its lock."""
    real, n_removed = work_folders.take_lock, []

    def take(path, *, is_patient):
        if is_patient and not n_removed:
            n_removed.append(len(clear_leftovers(tmp_path)))
        return real(path, is_patient=is_patient)

    monkeypatch.setattr(work_folders, "take_lock", take)
    with WorkFolder(tmp_path) as folder:
        assert n_removed == [1]
        assert [*tmp_path.iterdir()] == [folder.path]
        assert _files.unfinished >= {folder.path}
    assert folder.path not in _files.unfinished


def test_a_folder_goes_with_its_object_or_to_its_place(tmp_path):
    folder = WorkFolder(tmp_path)
    del folder
    assert [*tmp_path.iterdir()] == []
    with WorkFolder(tmp_path, is_private=True) as folder:
        assert folder.path.stat().st_mode & 0o777 == 0o700
        folder.move(tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    clear_leftovers(tmp_path)
    assert (tmp_path / "there").is_dir()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="tells no names of open files")
def test_files_are_seen_to_the_disk_where_they_are_to_stay(tmp_path, monkeypatch):
    seen, fsync = [], os.fsync

    def note(number):
        seen.append(Path(f"/proc/self/fd/{number}").readlink().name)
        fsync(number)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(tempfile, "tempdir", os.path.realpath(tempfile.gettempdir()))
    table = spinney.scan(make_table(300), "y", drop=["w", "g"])
    spinney.GradientBoostingClassifier(n_estimators=1).fit(table)
    assert seen == []  # a temporary one goes with its process
    store = table.store(tmp_path / "t.codes")
    names = [path.name for path in store.path.rglob("*") if path.is_file()]
    assert sorted(seen) == sorted(names)
    seen.clear()
    spinney.GradientBoostingClassifier(n_estimators=1).fit(store)
    codes = [path.name for path in store.path.rglob("codes/*/*")]
    assert sorted(seen) == sorted(codes)
    assert len(codes) >= 3


@pytest.mark.parametrize("step", ["rmtree", "take_lock"])
def test_an_interrupt_leaves_no_folder_behind(step, tmp_path, monkeypatch):
    begun = []

    def interrupt(path, **options):
        begun.append(path)
        if len(begun) == 1:
            raise KeyboardInterrupt
        return step_of[step](path, **options)

    step_of = {"rmtree": work_folders.shutil.rmtree, "take_lock": work_folders.take_lock}
    with pytest.raises(KeyboardInterrupt), WorkFolder(tmp_path / ".") as folder:  # noqa: PT012
        (folder.path / "rows").write_text("some")
        if step == "rmtree":
            monkeypatch.setattr(work_folders.shutil, "rmtree", interrupt)
        else:
            monkeypatch.setattr(work_folders, "take_lock", interrupt)
            WorkFolder(tmp_path)
    assert begun
    assert [*tmp_path.iterdir()] == []
    assert not any(path.parent == tmp_path for path in _files.unfinished)
