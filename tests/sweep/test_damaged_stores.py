"""Whatever happens to a file of a store, no wrong number comes without a word."""

import shutil
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.sweep.contents import contents_of
from jdyn.sweep.stored import lane_of

pytestmark = pytest.mark.fast_compile

DESIGN = jdyn.designs.Grid(a=np.linspace(1, 2, 5), b=[1.0, 2.0, 3.0, 4.0])
NOT_RUN = jdyn.Result.not_run


def lane(p):
    return {"x": p["a"] * jnp.arange(1.0, 4.0) + p["b"], "n": jnp.asarray(10 * p["b"], jnp.int32)}


def run(path):
    return jdyn.sweep(lane, DESIGN, chunk=6, store=path, progress=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "whole"
    run(path)
    return path


@pytest.fixture(scope="module")
def expected():
    return jdyn.sweep(lane, DESIGN, progress=False)


FILES = [
    "zarr.json",
    "finished/store.json",
    *(f"{name}/zarr.json" for name in ("a", "b", "x", "n", "result")),
    *(f"{name}/c/0" for name in ("a", "b")),
    *(f"{name}/c/{chunk}" for name in ("n", "result") for chunk in (1, 3)),
    *(f"x/c/{chunk}/0" for chunk in (1, 3)),
    *(f"finished/{chunk}.json" for chunk in (1, 3)),
]


def absent(path):
    path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def swapped(*pairs):
    def swap(store):
        for first, second in pairs:
            before = (store / first).read_bytes()
            (store / first).write_bytes((store / second).read_bytes())
            (store / second).write_bytes(before)

    return swap


def replaced(name, old, new):
    def replace(store):
        text = (store / name).read_text()
        assert old in text
        (store / name).write_text(text.replace(old, new, 1))

    return replace


DAMAGES = {
    f"{name} {damage.__name__}": lambda store, name=name, damage=damage: damage(store / name)
    for name in FILES
    for damage in (absent, cut, flipped)
}
LATER = [("x/c/1/0", "x/c/2/0"), ("n/c/1", "n/c/2"), ("result/c/1", "result/c/2")]
DAMAGES |= {
    "x of two chunks swapped": swapped(LATER[0]),
    "n of two chunks swapped": swapped(LATER[1]),
    "two chunks swapped": swapped(*LATER),
    "two chunks and their entries swapped": swapped(*LATER, ("finished/1.json", "finished/2.json")),
    "two entries swapped": swapped(("finished/1.json", "finished/2.json")),
    "two parameters swapped": swapped(("a/c/0", "b/c/0")),
    "descriptions of parameters swapped": swapped(("a/zarr.json", "b/zarr.json")),
    "a file of a parameter in that of a variable": swapped(("a/c/0", "n/c/1")),
    "a folder absent": lambda store: shutil.rmtree(store / "x"),
    "a parameter absent": lambda store: shutil.rmtree(store / "a"),
    "the ledger absent": lambda store: shutil.rmtree(store / "finished"),
    "other axes": replaced("zarr.json", '"a",\n        5', '"a",\n        4'),
    "another chunk": replaced("zarr.json", '"chunk": 6', '"chunk": 5'),
    "another type": replaced("zarr.json", '"data_type": "float64"', '"data_type": "int64"'),
    "another byte order": replaced("zarr.json", '"endian": "little"', '"endian": "big"'),
    "another unit": replaced("zarr.json", '"attributes": {}', '"attributes": {"units": "mm"}'),
    "another meaning of results": replaced("zarr.json", "success max_steps", "max_steps success"),
}  # fmt: skip


def test_there_are_sixty_damages():
    assert len(DAMAGES) >= 60


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_no_damage_gives_a_wrong_number_without_a_word(whole, expected, tmp_path, damage):
    path = tmp_path / "s"
    shutil.copytree(whole, path)
    damage(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for check in (_check_dataset, _check_lanes, _check_again):
            try:
                check(path, expected)
            except (ValueError, OSError) as error:
                assert str(path) in str(error)
    assert all(str(path) in str(warning.message) for warning in caught)


def _check_dataset(path, expected):
    found = jdyn.open_sweep(path).load()
    for name in ("a", "b"):
        np.testing.assert_array_equal(found[name], expected[name])
        assert found[name].attrs == {}
    ran = np.asarray(found["result"] != NOT_RUN)
    assert found["result"].attrs["flag_meanings"] == expected["result"].attrs["flag_meanings"]
    assert np.all(found["result"].values[ran] == 0)
    np.testing.assert_array_equal(found["x"].values[ran], expected["x"].values[ran])
    np.testing.assert_array_equal(found["n"].values[ran], expected["n"].values[ran])
    assert np.all(np.isnan(found["x"].values[~ran])) and np.all(found["n"].values[~ran] == 0)


def _check_lanes(path, expected):
    for number in (0, 7, 19):
        contents = contents_of(path)
        parameters, outputs = lane_of(contents, number)
        one = expected.isel(a=number // 4, b=number % 4)
        assert {name: float(x) for name, x in parameters.items()} == {"a": float(one["a"]), "b": float(one["b"])}
        assert contents.words["function"] == "lane"
        if outputs["result"] != NOT_RUN:
            np.testing.assert_array_equal(outputs["x"], one["x"])
            assert outputs["n"] == one["n"]


def _check_again(path, expected):
    """The sweep makes good what it can."""
    run(path)
    _check_dataset(path, expected)
    assert np.all(jdyn.open_sweep(path)["result"] == 0)


def test_damaged_lanes_are_named(whole, tmp_path):
    path = tmp_path / "s"
    shutil.copytree(whole, path)
    (path / "x" / "c" / "1" / "0").unlink()
    with pytest.warns(UserWarning, match="lanes 6 to 11 are damaged and count as not_run"):
        result = jdyn.open_sweep(path)["result"].values.ravel()
    np.testing.assert_array_equal(result == NOT_RUN, (np.arange(20) // 6) == 1)


def test_parameters_come_from_the_design(whole, tmp_path):
    path = tmp_path / "s"
    shutil.copytree(whole, path)
    (path / "a" / "c" / "0").unlink()
    with pytest.raises(ValueError, match="a/c/0 is missing"):
        jdyn.replay(path, 5, lane)
    with pytest.warns(UserWarning, match="a/c/0 is damaged or missing, and is written anew"):
        run(path)
    np.testing.assert_array_equal(jdyn.replay(path, 5, lambda p: p["a"]), DESIGN.lanes(np.array(5))["a"])


def test_lanes_without_a_result_have_not_run(whole, tmp_path, monkeypatch):
    """Also for whoever reads the store without jdyn: the process was killed between two files."""
    import xarray
    import zarr

    path, written = tmp_path / "s", []
    shutil.copytree(whole, path)
    for file in ("result/c/1", "finished/1.json"):
        (path / file).unlink()
    with xarray.open_zarr(path, chunks=None) as found:
        assert np.all(found["result"][6:12] == NOT_RUN)
    before = zarr.Array.__setitem__

    def noted(self, key, value):
        written.append(self.basename)
        before(self, key, value)

    monkeypatch.setattr(zarr.Array, "__setitem__", noted)
    run(path)
    assert sorted(written) == ["n", "result", "x"] and written[-1] == "result"
