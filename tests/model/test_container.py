"""The container of model files: what is written is read, and nothing else is."""

import hashlib
import json
import mmap
import multiprocessing
import os
import pickle
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from damaged_files import peak_of, sealed
from spinney.model import container
from spinney.model.container import (
    DTYPES,
    FREE_JSON_BYTES,
    JSON_TIMES,
    BrokenFileError,
    load_json,
    pack,
    read,
    unpack,
    weigh_json,
    write,
)

ARRAYS = {
    "hot": np.arange(6, dtype=np.uint64).reshape(3, 2),
    "weight": np.array([1.5, -0.0, np.nan]),
    "is_on": np.array([True, False, True]),
    "nothing": np.zeros((0, 3), np.float32),
    "codes": np.arange(-3, 4, dtype=np.int8),
}
TEXT = {"format": "some", "model": '{"a":"b\\u00e4 \\"sha256\\":\\"x"}'}


def as_bytes(arrays, text):
    header, pieces = pack(arrays, text)
    return header + b"".join(pieces)


WHOLE = as_bytes(ARRAYS, TEXT)


def assert_same(found, arrays, text):
    assert found.text == text
    assert set(found.arrays) == set(arrays)
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == np.ascontiguousarray(array).tobytes()
        assert not found.arrays[name].flags.writeable


def header_of(**entries):
    return {"__metadata__": {"sha256": "0" * 64}, **entries}


def entry(dtype="F64", shape=(2,), offsets=(0, 16), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


# -------------------------------------------------------------------------------------------------- round trips


@given(
    st.dictionaries(
        st.text(st.characters(codec="ascii"), max_size=8),
        hnp.arrays(
            st.sampled_from(list(DTYPES.values())), hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
        ),
        max_size=6,
    ).filter(lambda arrays: "__metadata__" not in arrays),
    st.dictionaries(st.text(st.characters(codec="ascii"), max_size=8), st.text(st.characters(codec="ascii"))).filter(
        lambda text: "sha256" not in text
    ),
)
def test_what_is_written_is_read(arrays, text):
    whole = as_bytes(arrays, text)
    assert_same(unpack(whole), arrays, text)
    assert as_bytes(dict(reversed(arrays.items())), dict(reversed(text.items()))) == whole


def test_a_file_is_mapped_or_copied(tmp_path):
    path = tmp_path / "model.spn"
    write(path, ARRAYS, TEXT)
    assert path.read_bytes() == WHOLE
    mapped, copied = read(path), read(path, is_mapped=False)
    for found in (mapped, copied):
        assert_same(found, ARRAYS, TEXT)
        for array in found.arrays.values():
            assert array.flags.aligned
            assert array.flags.c_contiguous
    assert isinstance(owner(mapped.arrays["hot"]), mmap.mmap)
    assert isinstance(owner(copied.arrays["hot"]), bytes)


def owner(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_fault_107_layout_of_arrays_does_not_matter():
    turned = {**ARRAYS, "hot": np.asfortranarray(ARRAYS["hot"]), "weight": ARRAYS["weight"].astype(">f8")}
    assert as_bytes(turned, TEXT) == WHOLE


def test_the_hash_is_that_of_the_file_with_zeros_in_its_place():
    digest = unpack_header(WHOLE)["__metadata__"]["sha256"]
    assert hashlib.sha256(WHOLE.replace(digest.encode(), b"0" * 64)).hexdigest() == digest


def unpack_header(whole):
    return json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"x": np.array(["text"])}, {}),
        ({"x": np.array([None])}, {}),
        ({"x": np.zeros(2, np.complex128)}, {}),
        ({"x": np.zeros(2, np.float16)}, {}),
        ({"x": np.zeros((1, 1, 1, 1))}, {}),
        ({"__metadata__": np.zeros(1)}, {}),
        ({str(i): np.zeros(1) for i in range(257)}, {}),
        ({"ü": np.zeros(1)}, {}),
        ({}, {"sha256": ""}),
        ({}, {"a": "ü"}),
        ({}, {str(i): "" for i in range(64)}),
        ({}, {"a": "x" * (16 << 20)}),
    ],
    ids=range(12),
)
def test_what_has_no_place_is_not_written(arrays, text, tmp_path):
    with pytest.raises(ValueError, match=r"place|holds|ASCII|take"):
        write(tmp_path / "model.spn", arrays, text)
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------------- the real library


def test_the_real_library_reads_ours(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    numpy = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "model.spn"
    write(path, ARRAYS, TEXT)
    found = numpy.load_file(path)
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["model"] == TEXT["model"]


def test_what_the_real_library_writes_is_no_model(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "other.safetensors"
    for metadata in (None, {"format": "pt"}, {"sha256": "0" * 64}):
        numpy.save_file({"w": np.zeros(3)}, path, metadata)
        with pytest.raises(BrokenFileError):
            read(path)


# -------------------------------------------------------------------------------------------------- damaged files


def test_fault_95_every_truncation_is_an_error():
    for n in range(len(WHOLE)):
        with pytest.raises(BrokenFileError):
            unpack(WHOLE[:n])
    with pytest.raises(BrokenFileError):
        unpack(WHOLE + b"\0")


def test_fault_96_every_flipped_bit_is_an_error():
    for at in range(len(WHOLE)):
        for bit in range(8):
            broken = bytearray(WHOLE)
            broken[at] ^= 1 << bit
            with pytest.raises(BrokenFileError):
                unpack(bytes(broken))


def test_fault_96_bytes_in_other_places_are_an_error():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        broken = bytearray(WHOLE)
        a, b, n = (int(x) for x in rng.integers([len(WHOLE), len(WHOLE), 40]))
        broken[a : a + n] = WHOLE[b : b + n]
        if bytes(broken) != WHOLE:
            with pytest.raises(BrokenFileError):
                unpack(bytes(broken))


def test_the_sealed_file_is_read():
    """What the tests below change is all that is wrong with their files."""
    values = np.array([1.0, 2.0])
    found = unpack(sealed(header_of(x=entry()), values.tobytes()))
    assert_same(found, {"x": values}, {})


@pytest.mark.parametrize(
    "wrong",
    [
        entry(shape=(-2,)),
        entry(shape=(-1, -2)),
        entry(shape=(2.0,)),
        entry(shape=(True, 2)),
        entry(shape=(2**64 + 2,)),
        entry(shape=(2**33, 2**33)),  # 2**66, which is 2**2 to whoever multiplies in 64 bits
        entry(shape=(2**62, 4, 2)),
        entry(shape=(2**61 + 2,)),
        entry(shape=(1, 1, 1, 2)),
        entry(shape=(None,)),
        entry(shape=("2",)),
        entry(shape=(3,)),
        entry(shape=(0, 2**40), offsets=(0, 0)),
        entry(shape=()),
        {**entry(), "shape": 2},
        {**entry(), "shape": None},
        entry(offsets=(0, 15)),
        entry(offsets=(0, 24)),
        entry(offsets=(8, 24)),
        entry(offsets=(16, 0)),
        entry(offsets=(-16, 0)),
        entry(offsets=(0.0, 16.0)),
        entry(offsets=(False, 16)),
        entry(offsets=(0,)),
        entry(offsets=(0, 16, 16)),
        entry(offsets=(2**64, 2**64 + 16)),
        entry(dtype="F16"),
        entry(dtype="O"),
        entry(dtype="f64"),
        entry(dtype=["F64"]),
        entry(dtype=None),
        entry(dtype="F" * 100_000),
        entry(more=1),
        {"dtype": "F64", "shape": [2]},
        [],
        None,
        "x",
    ],
    ids=repr,
)
def test_fault_98_an_array_that_is_not_what_it_says_is_refused(wrong):
    with pytest.raises(BrokenFileError) as caught:
        unpack(sealed(header_of(x=wrong), np.ones(2).tobytes()))
    assert len(str(caught.value)) < 300


def test_fault_98_arrays_overlap_nowhere_and_leave_nothing_out():
    ones = np.ones(4).tobytes()
    first = entry()
    for second in (entry(), entry(offsets=(8, 24)), entry(offsets=(24, 40)), entry(offsets=(16, 16), shape=(0,))):
        with pytest.raises(BrokenFileError):
            unpack(sealed(header_of(x=first, y=second), ones))
    assert len(unpack(sealed(header_of(x=first, y=entry(offsets=(16, 32))), ones)).arrays) == 2
    with pytest.raises(BrokenFileError):  # out of their order
        unpack(sealed(header_of(y=first, x=entry(offsets=(16, 32))), ones))
    with pytest.raises(BrokenFileError, match="there are 40"):
        unpack(sealed(header_of(x=first, y=entry(offsets=(16, 32))), ones + b"12345678"))


def test_what_is_neither_true_nor_false_is_refused():
    unpack(sealed(header_of(x=entry("BOOL", (2,), (0, 2))), b"\0\1"))
    with pytest.raises(BrokenFileError, match="neither true nor false"):
        unpack(sealed(header_of(x=entry("BOOL", (2,), (0, 2))), b"\2\1"))


def test_arrays_that_are_not_aligned_are_refused():
    """A kernel would be compiled anew for them."""
    values = np.ones(2).tobytes()
    with pytest.raises(BrokenFileError, match="does not fit"):
        unpack(sealed(header_of(x=entry()), values, alignment=1))


HASH = b'"sha256":"' + b"0" * 64 + b'"'
SEAL = b'"__metadata__":{' + HASH + b"}"
PLACE = b'{"data_offsets":[0,0],"dtype":"F64","shape":[0]}'
HEADERS = {
    "nothing": b"",
    "no object": b"[]",
    "an empty object": b"{}",
    "no metadata": b'{"x":' + PLACE + b"}",
    "metadata that is a list": b'{"__metadata__":[]}',
    "metadata without a hash": b'{"__metadata__":{"a":"b"}}',
    "empty metadata": b'{"__metadata__":{}}',
    "a hash that is a number": b'{"__metadata__":{"sha256":0}}',
    "a text that is a number": b'{"__metadata__":{"a":1,"sha256":"' + b"0" * 64 + b'"}}',
    "a name twice": b"{" + SEAL + b',"x":' + PLACE + b',"x":' + PLACE + b"}",
    "a name twice, once in disguise": b"{" + SEAL + b',"x":' + PLACE + b',"\\u0078":' + PLACE + b"}",
    "metadata twice": b"{" + SEAL + b"," + SEAL + b"}",
    "a hash twice": b'{"__metadata__":{"sha256":"' + b"0" * 64 + b'","sha256":"' + b"0" * 64 + b'"}}',
    "a hash in disguise": b'{"__metadata__":{"sha25\\u0036":"' + b"0" * 64 + b'"}}',
    "NaN": b"{" + SEAL + b',"x":NaN}',
    "infinity": b"{" + SEAL + b',"x":{"data_offsets":[0,Infinity],"dtype":"F64","shape":[0]}}',
    "deep nesting": b"{" + SEAL + b',"x":' + b"[" * 100_000,
    "deep objects": b'{"x":' * 100_000,
    "non-ASCII": b"{" + SEAL + b',"\xc3\xbc":' + PLACE + b"}",
    "non-ASCII escaped": b"{" + SEAL + b',"\\u00fc":' + PLACE + b"}",
    "a control character": b"{" + SEAL + b',"a\n":' + PLACE + b"}",
    "an escape that is none": b"{" + SEAL + b',"a\\x":' + PLACE + b"}",
    "a string without an end": b"{" + SEAL + b',"aaaa',
    "spaces": b"{ " + SEAL + b"}",
    "a comma too many": b"{" + SEAL + b",}",
    "something behind": b"{" + SEAL + b"} x",
    "another object behind": b"{" + SEAL + b"}{}",
    "a byte order mark": b"\xef\xbb\xbf{" + SEAL + b"}",
    "a huge number": b"{" + SEAL + b',"x":{"data_offsets":[0,' + b"9" * 100_000 + b'],"dtype":"F64","shape":[0]}}',
    "a number with a leading zero": b"{" + SEAL + b',"x":{"data_offsets":[00,0],"dtype":"F64","shape":[0]}}',
    "257 arrays": b"{" + SEAL + b"".join(b',"%d":' % i + PLACE for i in range(257)) + b"}",
    "65 texts": b'{"__metadata__":{' + b"".join(b'"%d":"",' % i for i in range(64)) + HASH + b"}}",
}


def test_the_shortest_file_is_read():
    assert unpack(sealed(b"{" + SEAL + b"}")) == ({}, {})


@pytest.mark.parametrize("name", HEADERS)
def test_fault_98_a_header_that_is_not_ours_is_refused(name):
    with pytest.raises(BrokenFileError) as caught:
        unpack(sealed(HEADERS[name]))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "header",
    [
        b"{" + SEAL + b"".join(b',"%d":{}' % i for i in range(100_000)) + b"}",
        b"{" + SEAL + b"".join(b',"%d":' % i + PLACE for i in range(100_000)) + b"}",
        b"{" + SEAL + b',"x":[' + b"{}," * 1_000_000 + b"]}",
        b'{"__metadata__":{' + b"".join(b'"%d":"",' % i for i in range(100_000)) + b'"sha256":""}}',
        b'{"__metadata__":{"a":"' + b"x" * 4_000_000 + b'",' + HASH + b"}}",
        b'{"__metadata__":{"a":"' + b"x" * 4_000_000 + b'\\ud83d\\ude00",' + HASH + b"}}",
    ],
    ids=["empty objects", "arrays", "a list", "texts", "a long text", "a long text of wide letters"],
)
def test_fault_98_a_long_header_takes_no_more_than_its_file(header):
    whole = sealed(header)
    assert peak_of(lambda: unpack(whole)) < 4 * len(whole) + 200_000


@pytest.mark.parametrize("length", [0, 7, 2**20, 16 << 20, 2**31, 2**32, 2**63, 2**64 - 1, 2**64 - 8])
def test_fault_98_a_header_longer_than_the_file_is_refused_before_it_is_read(length):
    whole = length.to_bytes(8, "little") + WHOLE[8:]

    def action():
        with pytest.raises(BrokenFileError, match=r"does not fit|should be"):
            unpack(whole)

    assert peak_of(action) < 200_000


def test_fault_98_a_huge_header_is_refused(tmp_path):
    """Of a file that is as long as it says, though it has no blocks on the disk."""
    path = tmp_path / "model.spn"
    with path.open("wb") as file:
        file.write((2 << 30).to_bytes(8, "little"))
        file.truncate((2 << 30) + 64)
    assert peak_of(lambda: read(path)) < 200_000
    with pytest.raises(BrokenFileError, match="does not fit"):
        read(path)


# ------------------------------------------------------------------------------------------ what is no file of ours


def test_faults_100_to_102_what_is_no_model_is_refused(tmp_path):
    path = tmp_path / "model.spn"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("model", bytes(10_000_000))
    contents = [b"", b"1234567", pickle.dumps(ARRAYS), path.read_bytes(), b"\x1f\x8b" + bytes(100), bytes(1000)]
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(BrokenFileError, match=r"model\.spn"):
            read(path)


def test_fault_102_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing.spn")
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
    with pytest.raises(IsADirectoryError):
        write(tmp_path, {}, {})
    with pytest.raises(FileNotFoundError, match=r"nowhere.model\.spn.$"):
        write(tmp_path / "nowhere" / "model.spn", {}, {})
    with pytest.raises((FileNotFoundError, NotADirectoryError)):
        read(Path(__file__) / "model.spn")
    assert list(tmp_path.iterdir()) == []


def test_an_open_file_is_no_path(tmp_path):
    """Nor is its number: the file would be closed behind its owner's back."""
    path = tmp_path / "model.spn"
    write(path, ARRAYS, TEXT)
    with path.open("rb") as file:
        for wrong in (file.fileno(), file, True, None, [path]):
            with pytest.raises(TypeError, match="path must be the name of a file, not"):
                read(wrong)
        assert file.read(8) == WHOLE[:8]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_fault_102_a_pipe_or_device_is_refused_without_waiting(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to("/dev/zero")
    for path in (pipe, "/dev/zero", "/dev/null", link):
        with pytest.raises(BrokenFileError, match="a pipe or a device"):
            read(path)


def test_fault_102_a_pipe_that_takes_the_place_of_a_file_is_refused(tmp_path, monkeypatch):
    """Between the question and the opening."""
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    write(file, {}, {})
    about = file.stat()
    monkeypatch.setattr(container.os, "stat", lambda _: about)
    with pytest.raises(BrokenFileError, match="a pipe or a device"):
        read(pipe)


# -------------------------------------------------------------------------------------------------- paths and modes


@pytest.mark.parametrize("name", ["a model.spn", "größe-模型.spn", "x" * 250 + ".spn", "-rf", "a\nb", "%s{}"])
def test_fault_106_names_of_files_are_free(name, tmp_path):
    for path in (tmp_path / name, str(tmp_path / name)):
        write(path, ARRAYS, TEXT)
        assert_same(read(path), ARRAYS, TEXT)
    assert [child.name for child in tmp_path.iterdir()] == [name]


def test_fault_106_a_relative_path_is_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("model.spn", ARRAYS, TEXT)
    assert_same(read("model.spn"), ARRAYS, TEXT)


def test_fault_106_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    link, file = tmp_path / "link.spn", tmp_path / "there" / "file.spn"
    link.symlink_to(file)
    for text in ({"a": "1"}, {"a": "2"}):  # the file is new, then old
        write(link, {}, text)
        assert link.is_symlink()
        assert read(link).text == read(file).text == text
    assert len(list(tmp_path.iterdir())) == 2


def test_the_mode_is_that_of_the_file_before_or_of_new_files(tmp_path):
    path, plain = tmp_path / "model.spn", tmp_path / "plain"
    plain.touch()
    write(path, {}, {})
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o600)
    write(path, {}, {"a": "b"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# ------------------------------------------------------------------------------------------------------ whole files


def test_fault_103_a_write_that_fails_leaves_the_old_file(tmp_path):
    """As on a full disk: the limit is on the size of a file."""
    path = tmp_path / "model.spn"
    write(path, ARRAYS, TEXT)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
        with pytest.raises(OSError, match=r".+"):
            write(path, {"large": np.zeros(1 << 16)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert [child.name for child in tmp_path.iterdir()] == ["model.spn"]
    assert_same(read(path), ARRAYS, TEXT)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_fault_103_an_interrupted_write_leaves_no_trace(step, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    path = tmp_path / "model.spn"
    write(path, ARRAYS, TEXT)
    with monkeypatch.context() as patch:
        patch.setattr(*((os, step) if step == "fsync" else (Path, step)), interrupt)
        with pytest.raises(KeyboardInterrupt):
            write(path, {}, {})
    assert [child.name for child in tmp_path.iterdir()] == ["model.spn"]
    assert_same(read(path), ARRAYS, TEXT)


def test_fault_103_a_killed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.spn"
    write(path, ARRAYS, TEXT)
    code = """
        import os, signal, sys
        import numpy as np
        from spinney.model import container

        def die(_):
            os.kill(os.getpid(), signal.SIGKILL)

        container.os.fsync = die
        container.write(sys.argv[1], {"other": np.zeros(100_000)}, {})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert_same(read(path), ARRAYS, TEXT)


def write_often(path, number, n):
    for _ in range(n):
        write(path, {"x": np.full(20_000, float(number))}, {"number": str(number)})


def test_fault_104_two_writers_and_a_reader_see_whole_files(tmp_path):
    path = tmp_path / "model.spn"
    write_often(path, 0, 1)
    context = multiprocessing.get_context("spawn")
    writer = context.Process(target=write_often, args=(path, 1, 30))
    thread = threading.Thread(target=write_often, args=(path, 2, 30))
    writer.start()
    thread.start()
    held = read(path)  # stays what it was, whatever replaces the file
    first = held.text["number"]
    while thread.is_alive() or writer.is_alive():
        found = read(path)
        assert (found.arrays["x"] == float(found.text["number"])).all()
    writer.join()
    thread.join()
    assert writer.exitcode == 0
    assert (held.arrays["x"] == float(first)).all()
    assert [child.name for child in tmp_path.iterdir()] == ["model.spn"]


# --------------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a":1,"a":2}',
        "NaN",
        "-Infinity",
        "1e999",
        "[" * 100_000,
        "9" * 5000,
        "[" + "0," * 300_000 + "0]",
        '"\ud800',
    ],
    ids=range(10),
)
def test_json_that_is_none_or_too_much_is_refused(text):
    with pytest.raises(BrokenFileError):
        load_json(text, 0)


def test_json_that_the_file_pays_for_is_read():
    text = "[" + "0," * 300_000 + "0]"
    assert len(load_json(text, 2_000_000)) == 300_001
    assert load_json('{"a":[1,2.5,"ä",null,true]}', 0) == {"a": [1, 2.5, "ä", None, True]}


JSON = {
    "empty objects": "[" + "{}," * 30_000 + "0]",
    "empty lists": "[" + "[]," * 30_000 + "0]",
    "short lists": "[" + "[0]," * 30_000 + "0]",
    "deep lists": "[" + ("[" * 500 + "]" * 500 + ",") * 60 + "0]",
    "whole numbers": "[" + "0," * 30_000 + "0]",
    "long numbers": "[" + "123456789012," * 30_000 + "0]",
    "numbers": "[" + "1e5," * 30_000 + "0]",
    "texts": "[" + ",".join(f'"{i:x}"' for i in range(30_000)) + "]",
    "wide texts": "[" + ",".join(f'"\\u20ac{i:x}"' for i in range(30_000)) + "]",
    "wider texts": "[" + '"\\ud83d\\ude00",' * 30_000 + "0]",
    "a long wide text": '"' + "\\ud83d\\ude00" * 30_000 + '"',
    "a large object": "{" + ",".join(f'"{i:x}":0' for i in range(30_000)) + "}",
    "objects of one": "[" + '{"a":0},' * 30_000 + "0]",
    "objects of one each": "[" + ",".join(f'{{"{i:x}":0}}' for i in range(30_000)) + "]",
    "objects of some": "[" + ",".join(f'{{"{i:x}":0,"{i + 1:x}":1,"{i + 2:x}":2}}' for i in range(10_000)) + "]",
}


@pytest.mark.parametrize("name", JSON)
def test_json_takes_no_more_than_was_foreseen(name):
    """And nothing of it is read where the file does not pay for that."""
    text = JSON[name]
    assert peak_of(lambda: load_json(text, 1 << 30)) < weigh_json(text) + 50_000
    n_paid = weigh_json(text) // JSON_TIMES
    load_json(text, n_paid)

    def action():
        with pytest.raises(BrokenFileError, match="too many for a file"):
            load_json(text, n_paid - FREE_JSON_BYTES // JSON_TIMES - 1)

    assert peak_of(action) < 50_000


@given(st.recursive(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3), st.lists))
def test_small_json_is_paid_for_by_any_file(content):
    assert load_json(json.dumps(content), 0) == content
