"""Stores that someone has made to do harm: each is refused in a sentence, at once and in little memory."""

import contextlib
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import warnings

import google_crc32c
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.cli import main
from jdyn.sweep.contents import contents_of
from jdyn.sweep.outputs import USUAL
from jdyn.sweep.replay import spec_of
from jdyn.sweep.stored import lane_of

pytestmark = pytest.mark.fast_compile

SPEC = {
    "robot": "pendulum", "horizon": 0.1,
    "design": {"parameters": {"m": {"of": "body:link1.mass", "values": [1.0, 2.0, 3.0]}}},
}  # fmt: skip


class Swept:
    """A function that says of itself what a spec would."""

    def to_json(self):
        return json.dumps(SPEC)

    def __call__(self, p):
        return {"x": p["m"] * jnp.arange(1.0, 4.0)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "whole"
    jdyn.sweep(Swept(), jdyn.designs.Grid(m=[1.0, 2.0, 3.0]), chunk=2, store=path, progress=False)
    return path


# What someone does who knows the format: all digests are those of the files.


def sealed(path):
    seal = path / "finished" / "store.json"
    names = json.loads(seal.read_text())
    digests = {name: digest(path / name) for name in names}
    seal.write_text(json.dumps(digests))
    for chunk in (0, 1):
        entry = path / "finished" / f"{chunk}.json"
        found = json.loads(entry.read_text())
        files = {name: digest(path / name / "c" / str(chunk) / ("0" if name == "x" else "")) for name in found["files"]}
        entry.write_text(json.dumps({"store": digest(seal), "chunk": chunk, "files": files}))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "0" * 64


def forged(change):
    """With other words in the description."""

    def forge(path):
        file = path / "zarr.json"
        group = json.loads(file.read_text())
        change(group)
        file.write_text(json.dumps(group))
        sealed(path)

    return forge


def identity(**entries):
    return forged(lambda group: group["attributes"]["jdyn_sweep"].update(entries))


def attributes(**entries):
    return forged(lambda group: group["attributes"].update(entries))


def variable(name, **entries):
    return forged(lambda group: group["consolidated_metadata"]["metadata"][name].update(entries))


def called(name):
    """With another name of the output x, everywhere."""

    def rename(group):
        described = group["consolidated_metadata"]["metadata"]
        described[name] = described.pop("x")
        described[name]["dimension_names"] = ["lane", f"{name}_0"]
        outputs = group["attributes"]["jdyn_sweep"]["outputs"]
        outputs[name] = outputs.pop("x")

    return forged(rename)


def function(**entries):
    return attributes(function=json.dumps(SPEC | entries))


def text(name, content):
    def write(path):
        (path / name).write_text(content)
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, FileNotFoundError, RecursionError):
            sealed(path)

    return write


def instead(name, make):
    """Something else in the place of a file."""

    def replace(path):
        file = path / name
        shutil.rmtree(file) if file.is_dir() else file.unlink()
        make(file)

    return replace


def linked(target):
    return lambda file: file.symlink_to(target)


def frame(size):
    """What unpacks to so many zeros, in a few bytes for each 128 KiB (RFC 8878)."""
    blocks = -(-size // 2**17)
    sizes = [2**17] * (blocks - 1) + [size - (blocks - 1) * 2**17]
    headers = ((size << 3 | 1 << 1 | (i == blocks - 1)).to_bytes(3, "little") for i, size in enumerate(sizes))
    return b"\x28\xb5\x2f\xfd\xe0" + size.to_bytes(8, "little") + b"".join(header + b"\0" for header in headers)


def bomb(size, *before):
    def write(path):
        for harm in before:
            harm(path)
        content = frame(size)
        (path / "x/c/0/0").write_bytes(content + google_crc32c.value(content).to_bytes(4, "little"))
        sealed(path)

    return write


def claims(size):
    """A file that says that it unpacks to much."""

    def write(path):
        file = path / "x/c/0/0"
        file.write_bytes(frame(48)[:5] + size.to_bytes(8, "little") + file.read_bytes()[6:])
        sealed(path)

    return write


def large(shape, lanes=3, chunk=2):
    """A description of what is not there, consistent in itself."""

    def enlarge(group):
        identity = group["attributes"]["jdyn_sweep"]
        identity["outputs"]["x"][0] = shape
        identity["chunk"] = chunk
        group["attributes"]["axes"] = [["m", lanes]]
        for name, described in group["consolidated_metadata"]["metadata"].items():
            rest = shape if name == "x" else []
            described["shape"] = [lanes, *rest]
            size = min(lanes, 65536) if name == "m" else chunk
            described["chunk_grid"]["configuration"]["chunk_shape"] = [size, *rest]
            described["dimension_names"] = ["lane", *(f"x_{i}" for i in range(len(rest)))]

    return forged(enlarge)


DEEP = "[" * 100_000 + "]" * 100_000
MASS = {"of": "body:link1.mass", "low": 1.0, "high": 2.0}
SCRIPT = "<img src=x onerror=alert(1)>"
HOSTILE = {
    "a pipe as description": instead("zarr.json", os.mkfifo),
    "a pipe as seal": instead("finished/store.json", os.mkfifo),
    "a pipe as entry": instead("finished/0.json", os.mkfifo),
    "a pipe as parameter": instead("m/c/0", os.mkfifo),
    "a pipe as result": instead("result/c/0", os.mkfifo),
    "a pipe as description of a variable": instead("x/zarr.json", os.mkfifo),
    "a device as description": instead("zarr.json", linked("/dev/zero")),
    "a device as seal": instead("finished/store.json", linked("/dev/zero")),
    "a device as entry": instead("finished/0.json", linked("/dev/zero")),
    "a device as parameter": instead("m/c/0", linked("/dev/zero")),
    "a device as output": instead("x/c/0/0", linked("/dev/random")),
    "a link to another file": instead("x/c/0/0", linked("/etc/hostname")),
    "a link as folder": instead("m", linked("/etc")),
    "a link as folder of an output": instead("x/c", linked("/etc")),
    "a link as ledger": instead("finished", linked("/dev")),
    "a link to itself": instead("zarr.json", linked("zarr.json")),
    "a folder as description": instead("zarr.json", pathlib.Path.mkdir),
    "a folder as parameter": instead("m/c/0", pathlib.Path.mkdir),
    "a folder as seal": instead("finished/store.json", pathlib.Path.mkdir),
    "a description without end": text("zarr.json", DEEP),
    "a deep object": text("zarr.json", '{"attributes":' * 50_000),
    "a seal without end": text("finished/store.json", DEEP),
    "an entry without end": text("finished/0.json", DEEP),
    "a long description": text("zarr.json", " " * 2**24 + "{}"),
    "a list as description": text("zarr.json", "[]"),
    "a number as attributes": text("zarr.json", '{"attributes": 7}'),
    "no words at all": text("zarr.json", ""),
    "no UTF-8": lambda path: (path / "zarr.json").write_bytes(b"\xff\xfe\x00"),
    "another version": identity(version=4),
    "a version that is no number": identity(version=["x" * 10**6]),
    "no version": forged(lambda group: group["attributes"]["jdyn_sweep"].pop("version")),
    "no chunk": identity(chunk=None),
    "a chunk of no lanes": identity(chunk=0),
    "a chunk of -1": identity(chunk=-1),
    "a chunk of 1e30": identity(chunk=10**30),
    "a chunk of 1.5": identity(chunk=1.5),
    "a chunk that is true": identity(chunk=True),
    "no outputs": identity(outputs={}),
    "outputs as a list": identity(outputs=["x"]),
    "no result": identity(outputs={"x": [[3], "float64"]}),
    "objects as numbers": identity(outputs={"x": [[3], "O"], "result": [[], "int32"]}),
    "a type that is none": identity(outputs={"x": [[3], "f99"], "result": [[], "int32"]}),
    "a negative shape": identity(outputs={"x": [[-3], "float64"], "result": [[], "int32"]}),
    "a shape of many axes": identity(outputs={"x": [[1] * 10_000, "float64"], "result": [[], "int32"]}),
    "a huge shape": large([10**9]),
    "a huge shape of several axes": large([10**5, 10**5]),
    "many lanes": large([3], lanes=10**12),
    "many lanes in a chunk": large([3], lanes=10**9, chunk=10**9),
    "axes that are none": attributes(axes=None),
    "axes that are numbers": attributes(axes=[1, 2]),
    "an axis without length": attributes(axes=[["m", 0]]),
    "two axes of one name": attributes(axes=[["m", 3], ["m", 1]]),
    "axes beyond all numbers": attributes(axes=[[f"a{i}", 2**31] for i in range(30)]),
    "parameters along no axis": attributes(parameter_axes={"m": ["nowhere"]}),
    "no axes of parameters": attributes(parameter_axes=None),
    "no words of a function": attributes(function=7),
    "a description that lacks a variable": forged(lambda group: group["consolidated_metadata"]["metadata"].pop("x")),
    "no descriptions": forged(lambda group: group.pop("consolidated_metadata")),
    "another codec": variable("x", codecs=[{"name": "numcodecs.pickle"}]),
    "a codec with a shard": variable("x", codecs=[{"name": "sharding_indexed", "configuration": {}}]),
    "a place of chunks outside": variable("x", chunk_key_encoding={"name": "v2", "configuration": {}}),
    "another shape": variable("x", shape=[3, 4]),
    "an attribute that is a table": variable("x", attributes={"units": {"a": {}}}),
    "a script as name": called(SCRIPT),
    "a way out as name": called("../../outside"),
    "an absolute path as name": called("/etc/passwd"),
    "dots as name": called(".."),
    "a long name": called("x" * 100_000),
    "a name with an end": called("x\x00y"),
    "a name with colours": called("\x1b[31mred"),
    "a file that unpacks to 1 GiB": bomb(2**30),
    "a file that unpacks to 10 GiB": bomb(10 * 2**30),
    "a file that unpacks to as much as any may": bomb(2**28, large([2**24])),
    "a file that unpacks to more than any may": bomb(2**29, large([2**25])),
    "a file that says that it unpacks to 10 GB": claims(10 * 2**30),
    "a file that says that it unpacks to 16 EB": claims(2**64 - 1),
    "a spec that is a list": attributes(function="{[]}"),
    "a spec without end": attributes(function='{"robot":' * 50_000),
    "a spec of a device": function(robot="/dev/zero"),
    "a spec of a password": function(robot="/etc/passwd"),
    "a spec of many rows": function(rows=10**12),
    "a spec of no robot": function(robot=SCRIPT),
    "a spec of a long name": function(robot="x" * 10**6),
    "a spec of many lanes": function(design={"kind": "sobol", "lanes": 2**40, "parameters": {"m": MASS}}),
    "a spec of many values": function(design={"parameters": {"m": MASS | {"count": 10**12}}}),
    "a spec with other parameters": function(design={"parameters": {"joint:joint1.damping": {"values": [1.0]}}}),
    "a spec of NaN": function(horizon=float("nan")),
}  # fmt: skip


def test_there_are_sixty_hostile_stores():
    assert len(HOSTILE) >= 60


@contextlib.contextmanager
def alarm(seconds):
    def too_late(*_):
        raise AssertionError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("harm", HOSTILE.values(), ids=HOSTILE)
def test_no_hostile_store_ends_in_a_traceback_a_hang_or_much_memory(whole, tmp_path, harm):
    path = tmp_path / "s"
    shutil.copytree(whole, path)
    harm(path)
    before = sorted(tmp_path.rglob("*"))
    said, memory = [], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings(record=True) as caught, alarm(20):
        warnings.simplefilter("always")
        for use in (_read, _read_a_lane, _look_at_its_spec, _go_on):
            try:
                use(path)
            except (ValueError, OSError) as error:
                said.append(str(error))
    said += [str(warning.message) for warning in caught]
    assert said and all(0 < len(words) < 1000 and "\x1b" not in words for words in said)
    # Kibibytes, on Linux.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 2**20
    assert sorted(tmp_path.rglob("*")) == before


def _read(path):
    found = jdyn.open_sweep(path)
    np.asarray(found["result"]), np.asarray(found["m"]), np.asarray(found["x"][0, :3])


def _read_a_lane(path):
    lane_of(contents_of(path), 0)


def _look_at_its_spec(path):
    contents = contents_of(path)
    spec = spec_of(contents, "give the function")
    assert spec.entries == SPEC


def _go_on(path):
    jdyn.sweep(Swept(), jdyn.designs.Grid(m=[1.0, 2.0, 3.0]), chunk=2, store=path, progress=False)


@pytest.mark.parametrize("words", [["replay", "--lane", "0"], ["view", "--lane", "0", "--export", "page.html"]])
@pytest.mark.parametrize("name", ["a pipe as description", "a script as name", "many lanes", "a spec of a device"])
def test_commands_say_so_in_a_sentence(whole, tmp_path, monkeypatch, capsys, words, name):
    path = tmp_path / "s"
    shutil.copytree(whole, path)
    HOSTILE[name](path)
    monkeypatch.chdir(tmp_path)
    with alarm(60):
        assert main([words[0], str(path), *words[1:]]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("jdyn: ") and len(line) < 1000
    assert not (tmp_path / "page.html").exists()


def test_a_lane_with_other_outputs_than_its_spec_is_not_run_again(whole, capsys):
    with alarm(60):
        assert main(["replay", str(whole), "--lane", "0"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    usual = ", ".join(USUAL)
    assert line == f"jdyn: {whole}: expected the outputs of its spec, {usual}, result, got x, result"
