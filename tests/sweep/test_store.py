"""Sweeps that are kept: what a crash costs, and what is refused."""

import errno
import itertools
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import jdyn
from jdyn.sweep import store as stores
from jdyn.sweep.ledger import Ledger

pytestmark = pytest.mark.fast_compile

# The function of this name hides it.
sweeps = sys.modules["jdyn.sweep.sweep"]

DESIGN = jdyn.designs.Grid(a=np.linspace(0, 1, 5), b=[1.0, 2.0, 3.0, np.nan])


def lane(p):
    return {"x": p["a"] * jnp.arange(3.0) + p["b"], "n": jnp.int32(7)}


def run(path, fn=lane, over=DESIGN, chunk=6, **options):
    return jdyn.sweep(fn, over, chunk=chunk, store=path, progress=False, **options)


@pytest.fixture
def written(monkeypatch):
    """Chunks that are written, in the order of being so."""
    chunks, write = [], stores.Store.write

    def noted(self, chunk, outputs):
        write(self, chunk, outputs)
        chunks.append(chunk)

    monkeypatch.setattr(stores.Store, "write", noted)
    return chunks


def test_holds_what_a_sweep_in_memory_has(tmp_path):
    dataset = run(tmp_path / "s")
    expected = jdyn.sweep(lane, DESIGN, progress=False).stack(lane=("a", "b"))
    with xarray.open_zarr(tmp_path / "s", chunks=None) as found:
        for some in (dataset, found):
            assert some["x"].dims == ("lane", "x_0") and some.sizes["lane"] == 20
            for name in ("x", "n", "result"):
                np.testing.assert_array_equal(some[name], expected[name].transpose("lane", ...))
            for name in ("a", "b"):
                np.testing.assert_array_equal(some.coords[name], expected[name])
        for name, meaning in expected["result"].attrs.items():
            np.testing.assert_array_equal(found["result"].attrs[name], meaning)
        assert found.attrs["source"] == f"jdyn {jdyn.__version__}"
    assert dataset["n"].dtype == np.int32 and dataset.attrs["chunk"] == 6


def test_what_is_read_as_needed_can_be_copied_and_sent(tmp_path):
    run(tmp_path / "s")
    for dataset in (jdyn.open_sweep(tmp_path / "s"), run(tmp_path / "s")):
        for again in (pickle.loads(pickle.dumps(dataset)), dataset.copy(deep=True)):
            xarray.testing.assert_identical(again.load(), dataset.load())


def test_axes_of_a_store_are_read_in_parts(tmp_path):
    """As NumPy has them, without reading the rest."""
    design = jdyn.designs.Grid(a=[1.0, 2.0, 3.0]) * jdyn.designs.Samples(b=[10.0, 20.0, 30.0, 40.0])
    fn = lambda p: {"x": p["a"] * jnp.arange(3.0) + p["b"]}  # noqa: E731
    expected = jdyn.sweep(fn, design, progress=False)
    run(tmp_path / "s", fn, design, chunk=5)
    found = jdyn.open_sweep(tmp_path / "s")
    for place in (
        {"a": 1}, {"sample": -1}, {"a": slice(None, None, -1)}, {"a": [2, 0, 2], "sample": [1, 3]}, {"x_0": 1, "a": 2},
        {"a": 0, "sample": 2, "x_0": 0}, {"a": slice(0, 0)}, {"sample": slice(1, 4, 2), "x_0": slice(1, None)}, {},
    ):  # fmt: skip
        some = found.isel(place)
        np.testing.assert_array_equal(some["x"], expected.isel(place)["x"])
        np.testing.assert_array_equal(some["b"], expected.isel(place)["b"])


def test_nothing_finished_is_computed_again(tmp_path, written):
    path = tmp_path / "s"
    first = run(path).load()
    assert sorted(written) == [0, 1, 2, 3]
    written.clear()
    again = run(path).load()
    xarray.testing.assert_identical(again.drop_attrs(), first.drop_attrs())
    assert written == [] and first.attrs["lanes_found"] == 0 and again.attrs["lanes_found"] == 20


def test_lanes_that_have_not_run_say_so(tmp_path, monkeypatch):
    path, write = tmp_path / "s", stores.Store.write

    def failing(self, chunk, outputs):
        if chunk == 1:
            raise OSError(errno.EIO, "Input/output error")
        write(self, chunk, outputs)

    monkeypatch.setattr(stores.Store, "write", failing)
    with pytest.raises(OSError, match="Input/output error"):
        run(path)
    with xarray.open_zarr(path, chunks=None) as found:
        result = found["result"].load()
        assert np.all(result[6:12] == jdyn.Result.not_run) and np.all(np.isnan(found["x"][6:12]))
    flags = dict(zip(result.attrs["flag_values"], result.attrs["flag_meanings"].split(), strict=True))
    assert flags[-1] == "not_run" and flags[0] == "success"


def test_what_a_killed_process_left_is_in_nobodys_way(tmp_path, written):
    """Also if it had the number of this one."""
    path = tmp_path / "s"
    run(path)
    written.clear()
    (path / "finished" / "2.json").rename(path / "finished" / f".2.json.{os.getpid()}")
    run(path)
    assert written == [2] and not list(path.rglob(".*"))


def test_a_store_goes_on_with_its_own_chunks_on_any_machine(tmp_path, written, monkeypatch):
    monkeypatch.setattr(sweeps, "at_once_here", lambda: 2)
    run(tmp_path / "s", chunk=None)
    assert sorted(written) == [0, 1]
    (tmp_path / "s" / "finished" / "1.json").unlink()
    written.clear()
    monkeypatch.setattr(sweeps, "at_once_here", lambda: 5)
    assert run(tmp_path / "s", chunk=None).attrs["chunk"] == 10
    assert written == [1]


def test_nothing_is_compiled_for_a_sweep_that_is_finished(tmp_path, monkeypatch):
    run(tmp_path / "s")
    monkeypatch.setattr(sweeps.Program, "compile", None)
    run(tmp_path / "s")


def test_two_processes_may_begin_a_store(tmp_path, monkeypatch):
    """The one that comes second takes what the first made meanwhile."""
    path, make, made = tmp_path / "s", stores._make, []

    def late(*arguments):
        if not made:
            made.append(1)
            run(path)
        make(*arguments)

    monkeypatch.setattr(stores, "_make", late)
    assert not np.any(run(path)["result"] == jdyn.Result.not_run)
    assert made and [p.name for p in tmp_path.iterdir()] == ["s"]


def test_shards_come_together_in_one_store(tmp_path, written):
    for part, chunks in ((2, [1]), (1, [0, 3]), (3, [2])):
        written.clear()
        dataset = run(tmp_path / "s", shard=(part, 3))
        assert sorted(written) == chunks
    xarray.testing.assert_identical(dataset.load().drop_attrs(), run(tmp_path / "whole").load().drop_attrs())
    for shard, message in (((0, 3), "expected .i, n. with i from 1 to n, got .0, 3."), ((4, 3), "i from 1 to n")):
        with pytest.raises(ValueError, match=message):
            run(tmp_path / "s", shard=shard)
    with pytest.raises(ValueError, match="give each process the same store=path"):
        jdyn.sweep(lane, DESIGN, shard=(1, 2))


def test_units_and_labels_are_kept(tmp_path):
    attrs = {"a": {"units": "kg", "long_name": "payload"}, "x": {"units": "rad"}}
    for dataset in (jdyn.sweep(lane, DESIGN, attrs=attrs), jdyn.sweep(lane, DESIGN, attrs=attrs, store=tmp_path / "s")):
        assert dataset["a"].attrs == attrs["a"] and dataset["x"].attrs == attrs["x"]
    with pytest.raises(ValueError, match="attrs: there is no parameter and no entry 'y'; there are a, b, n, x, result"):
        jdyn.sweep(lane, DESIGN, attrs={"y": {}})


@pytest.mark.parametrize("name", ["left/waist", "my link", "", "finished", "lane"])
def test_names_that_no_file_can_have_are_refused(tmp_path, name):
    for fn, over in (
        (lambda p: {name: p["a"]}, DESIGN),
        (lambda p: {"x": p[name]}, jdyn.designs.Grid(**{name: [1.0]})),
    ):
        with pytest.raises(ValueError, match=f"store: {name!r} cannot be the name of a file in it"):
            run(tmp_path / "s", fn, over)
    assert not list(tmp_path.iterdir())


def test_variables_without_elements_and_of_every_type_are_kept(tmp_path):
    def fn(p):
        return {"none": jnp.zeros(0), "on": p["a"] > 0.5, "z": jax.lax.complex(p["a"], p["b"]), "n": jnp.uint8(3)}

    found, expected = run(tmp_path / "s", fn).load(), jdyn.sweep(fn, DESIGN, progress=False)
    assert found["none"].shape == (20, 0)
    for name in ("on", "z", "n"):
        np.testing.assert_array_equal(found[name], np.ravel(expected[name]))


def test_attributes_change_no_numbers(tmp_path):
    attrs = {"x": {"scale_factor": 2.0}, "n": {"units": "days since 2000-01-01"}}
    dataset = run(tmp_path / "s", attrs=attrs)
    np.testing.assert_array_equal(dataset["x"], jdyn.sweep(lane, DESIGN, progress=False)["x"].values.reshape(20, 3))
    assert jdyn.open_sweep(tmp_path / "s")["n"].dtype == np.int32


def test_whoever_reads_a_damaged_file_is_told(tmp_path):
    run(tmp_path / "s")
    _flip(tmp_path / "s" / "x" / "c" / "2" / "0")
    with xarray.open_zarr(tmp_path / "s", chunks=None) as found, pytest.raises(ValueError, match="checksum"):
        found["x"].load()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / "finished" / "2.json").unlink(),
        lambda path: (path / "finished" / "2.json").write_text("{"),
        lambda path: (path / "x" / "c" / "2" / "0").unlink(),
        lambda path: _flip(path / "x" / "c" / "2" / "0"),
        lambda path: _flip(path / "result" / "c" / "2"),
    ],
    ids=["no entry", "half an entry", "no file", "a byte of a number", "a byte of a result"],
)
def test_what_is_missing_or_damaged_is_computed_again(tmp_path, written, damage):
    path = tmp_path / "s"
    whole = run(path).load()
    written.clear()
    damage(path)
    again = run(path)
    assert written == [2]
    xarray.testing.assert_identical(again.load().drop_attrs(), whole.drop_attrs())


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_full_disk_is_said_and_costs_only_what_was_not_written(tmp_path, written, monkeypatch):
    path, enter = tmp_path / "s", Ledger.enter
    count = itertools.count()

    def full(*arguments):
        if next(count) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        enter(*arguments)

    monkeypatch.setattr(Ledger, "enter", full)
    with pytest.raises(OSError, match=r"cannot be written \(No space left on device\); finished ones are kept"):
        run(path)
    xarray.open_zarr(path, chunks=None).load()
    kept = set(written)
    assert len(kept) >= 2
    written.clear()
    whole = run(path)
    assert set(written) == {0, 1, 2, 3} - kept
    xarray.testing.assert_identical(whole.load().drop_attrs(), run(tmp_path / "other").load().drop_attrs())


def test_ctrl_c_finishes_what_runs_and_says_how_to_go_on(tmp_path, written, monkeypatch):
    write = stores.Store.write

    def interrupted(self, chunk, outputs):
        if chunk == 1:
            os.kill(os.getpid(), signal.SIGINT)
            # Until the interruption has come, and no other begins.
            time.sleep(0.5)
        write(self, chunk, outputs)

    monkeypatch.setattr(stores.Store, "write", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"of 20 lanes, which .*s keeps; the same call goes on from there"):
        run(tmp_path / "s", chunk=1)
    done = set(written)
    # The other thread may have gone on meanwhile, if this one had to wait for a processor.
    assert 1 in done and len(done) < 20
    monkeypatch.setattr(stores.Store, "write", write)
    written.clear()
    run(tmp_path / "s", chunk=1)
    assert set(written) == set(range(20)) - done


def test_another_sweep_is_refused(tmp_path):
    path, factor = tmp_path / "s", 2.0
    run(path)
    others = {
        "over another design": {"over": jdyn.designs.Grid(a=[1.0, 2.0], b=[1.0])},
        "other variables": {"fn": lambda p: {"y": p["a"]}},
        "chunks of 6 lanes, not 5": {"chunk": 5},
        "computed by another function": {"fn": lambda p: lane(p) | {"x": factor * lane(p)["x"]}},
    }
    for message, changed in others.items():
        with pytest.raises(ValueError, match=message):
            run(path, **changed)
    (tmp_path / "text").write_text("mine")
    (tmp_path / "folder").mkdir()
    for name in ("text", "folder"):
        with pytest.raises(ValueError, match="expected the store of a sweep, found something else"):
            run(tmp_path / name)
    assert (tmp_path / "text").read_text() == "mine" and not list((tmp_path / "folder").iterdir())


# In processes of their own.

SLOW = """
import sys
import jax, jax.numpy as jnp, numpy as np, jdyn
jax.config.update("jax_enable_x64", True)

def lane(p):
    # A tenth of a millisecond.
    return {"x": jax.lax.fori_loop(0, 10_000, lambda i, x: jnp.sin(x + p["a"]), p["a"])}

jdyn.sweep(lane, jdyn.designs.LatinHypercube(100_000, a=(0.0, 1.0)), chunk=500, store=sys.argv[1], progress=False)
"""


def started(path, code=SLOW):
    return subprocess.Popen([sys.executable, "-c", code, str(path)])


@pytest.mark.slow
@pytest.mark.parametrize("times", [4, pytest.param(10, marks=pytest.mark.exhaustive)])
def test_a_sweep_that_is_killed_goes_on_to_the_same_result(tmp_path, times):
    """At random moments, the first ones while the store is made: one bit for bit as if nothing had happened."""
    path, rng, kills = tmp_path / "killed", np.random.default_rng(0), 0
    for attempt in range(times):
        sweep = started(path)
        done, begun = _finished(path), time.monotonic()
        patience = rng.uniform(1, 4) if attempt < times / 3 else np.inf
        while _finished(path) <= done and sweep.poll() is None and time.monotonic() < begun + patience:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.5))
        sweep.kill()
        kills += sweep.wait() == -signal.SIGKILL
    assert kills == times
    assert 0 < _finished(path) < 200
    assert started(path).wait() == 0
    assert started(tmp_path / "undisturbed").wait() == 0
    files = [_content(tmp_path / name) for name in ("killed", "undisturbed")]
    assert files[0] == files[1] and len(files[0]) > 600


def _finished(path):
    return len(list((path / "finished").glob("[0-9]*.json"))) if path.exists() else 0


def _content(path: pathlib.Path):
    """All files, but those that a kill left unfinished."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and not file.name.startswith(".")
    }


MEMORY = """
import resource, sys
import jax.numpy as jnp, numpy as np, jdyn
n = int(sys.argv[2])
jdyn.sweep(lambda p: {"x": p["a"] * jnp.arange(200.0)}, jdyn.designs.Samples(a=np.linspace(0, 1, n, dtype=np.float32)),
           chunk=1024, store=sys.argv[1], progress=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_design(tmp_path):
    def peak(n):
        words = [sys.executable, "-c", MEMORY, str(tmp_path / str(n)), str(n)]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout) / 1024

    few, many = peak(10_000), peak(200_000)
    # All results would be 150 MiB; the parameter is 2 MiB, and what else depends on lanes as much.
    assert many - few < 50
