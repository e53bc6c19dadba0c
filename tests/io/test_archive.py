"""Files of arrays: any change of a file is told, and a foreign one is refused in a sentence and in little memory."""

import io
import os
import resource
import zipfile

import numpy as np
import pytest

import jdyn
from jdyn.io.archive import HEADER, load_archive, save_archive

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(7, np.int32), "c": np.zeros((0, 2))}


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "whole.npz"
    save_archive(path, "thing", 1, ARRAYS, {"more": "words"})
    return path


def test_what_is_written_is_read(whole):
    arrays, header = load_archive(whole, "thing", 1)
    assert header == {"more": "words"} and arrays.keys() == ARRAYS.keys()
    for name, expected in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], expected)
        assert arrays[name].dtype == expected.dtype
    with np.load(whole) as by_numpy:
        np.testing.assert_array_equal(by_numpy["a"], ARRAYS["a"])


def test_every_flipped_bit_is_told(whole, tmp_path):
    """One of each byte, and every cut."""
    content, path = whole.read_bytes(), tmp_path / "changed.npz"
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ (1 << place % 8)]) + content[place + 1 :])
        with pytest.raises(ValueError, match=r"changed.npz: expected a jdyn thing"):
            load_archive(path, "thing", 1)
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"changed.npz: expected a jdyn thing"):
            load_archive(path, "thing", 1)


def test_files_of_before_are_read(tmp_path):
    """They have no digest."""
    text = b'{"format": "jdyn thing", "version": 1}'
    np.savez_compressed(tmp_path / "old.npz", **{HEADER: np.frombuffer(text, np.uint8)}, **ARRAYS)
    np.testing.assert_array_equal(load_archive(tmp_path / "old.npz", "thing", 1)[0]["a"], ARRAYS["a"])


def npy(shape, content, dtype="<f8"):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue() + content


def zipped(path, entries, kind=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in entries:
            archive.writestr(name, content)


HEADING = (f"{HEADER}.npy", npy((38,), b'{"format": "jdyn thing", "version": 1}', "|u1"))
HARMS = {
    "a shape that is not there": [HEADING, ("a.npy", npy((10**10,), bytes(8)))],
    "a negative shape": [HEADING, ("a.npy", npy((-1,), bytes(8)))],
    "many axes": [HEADING, ("a.npy", npy((1,) * 200, bytes(8)))],
    "an object": [HEADING, ("a.npy", npy((1,), b"cos\nsystem\n(S'true'\ntR.", "|O"))],
    "a type that is none": [HEADING, ("a.npy", npy((1,), bytes(8), "<f77"))],
    "a name that is no array": [HEADING, ("../a.txt", b"text")],
    "a name twice": [HEADING, ("a.npy", npy((1,), bytes(8))), ("a.npy", npy((1,), bytes(8)))],
    "no header": [("a.npy", npy((1,), bytes(8)))],
    "a header without end": [(f"{HEADER}.npy", npy((200_000,), b"[" * 200_000, "|u1"))],
    "a header that is a list": [(f"{HEADER}.npy", npy((2,), b"[]", "|u1"))],
    "a version that is true": [(f"{HEADER}.npy", npy((41,), b'{"format": "jdyn thing", "version": true}', "|u1"))],
    "a version of zero": [(f"{HEADER}.npy", npy((38,), b'{"format": "jdyn thing", "version": 0}', "|u1"))],
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("entries", HARMS.values(), ids=HARMS)
def test_foreign_files_are_refused_in_a_sentence(tmp_path, entries):
    zipped(tmp_path / "foreign.npz", entries)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"foreign.npz: ") as error:
        load_archive(tmp_path / "foreign.npz", "thing", 1)
    assert len(str(error.value)) < 500
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 2**19
    assert not (tmp_path.parent / "a.txt").exists()


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("jdyn.io.archive.MOST_UNPACKED", 2**20)
    zipped(tmp_path / "bomb.npz", [HEADING, ("a.npy", npy((2**20,), bytes(2**23)))])
    with pytest.raises(ValueError, match=r"bomb.npz: .* bytes unpack to 83\d+"):
        load_archive(tmp_path / "bomb.npz", "thing", 1)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir()])
def test_what_is_no_file_is_not_waited_for(tmp_path, make):
    make(tmp_path / "odd.npz")
    with pytest.raises(ValueError, match=r"odd.npz: expected a file, found a (pipe|device|folder)"):
        jdyn.Trajectory.load(tmp_path / "odd.npz")


def test_large_files_are_not_compressed(tmp_path, monkeypatch):
    """So that a small one that unpacks to much is a foreign one."""
    monkeypatch.setattr("jdyn.io.archive.MOST_UNPACKED", 10_000)
    save_archive(tmp_path / "large.npz", "thing", 1, {"a": np.zeros(100_000)}, {})
    assert (tmp_path / "large.npz").stat().st_size > 800_000
    assert load_archive(tmp_path / "large.npz", "thing", 1)[0]["a"].shape == (100_000,)
