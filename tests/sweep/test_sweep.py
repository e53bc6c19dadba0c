"""Sweeps: labels, chunks, failures, and what they cost."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

PENDULUM = jdyn.load("pendulum")


def swing(p):
    """End of a swing from a given angle; the pendulum's mass does not matter, its gravity does."""
    model = PENDULUM.with_gravity(jnp.stack([jnp.zeros_like(p["g"]), jnp.zeros_like(p["g"]), -p["g"]]))
    trajectory = jdyn.simulate(model, p["q0"][None], jnp.zeros(1), 0.5, saveat=[0.25, 0.5], throw=False)
    return {"q": trajectory.q[:, 0], "speed": trajectory.v[-1, 0], "result": trajectory.result}


@pytest.fixture(scope="module")
def grid():
    over = jdyn.designs.Grid(g=[1.6, 9.81, np.nan], q0=[0.1, 0.5, 1.0, 1.5])
    return over, jdyn.sweep(swing, over, chunk=5, progress=False)


@pytest.mark.slow
def test_axes_carry_names_values_and_order(grid):
    _, dataset = grid
    assert dataset["q"].dims == ("g", "q0", "q_0") and dataset["speed"].dims == ("g", "q0")
    assert dataset["q"].shape == (3, 4, 2)
    np.testing.assert_array_equal(dataset["q0"], [0.1, 0.5, 1.0, 1.5])
    moon = swing({"g": jnp.array(1.6), "q0": jnp.array(1.0)})
    np.testing.assert_allclose(dataset["q"].sel(g=1.6, q0=1.0), moon["q"], rtol=1e-12)
    assert dataset.attrs["chunk"] == 5 and dataset.attrs["compile_seconds"] > 0 and dataset.attrs["run_seconds"] > 0


def test_a_failed_lane_has_its_code_and_nan_and_spoils_no_other(grid):
    _, dataset = grid
    good, bad = dataset.isel(g=slice(2)), dataset.isel(g=2)
    assert np.all(good["result"] == jdyn.Result.success) and np.all(np.isfinite(good["q"]))
    assert np.all(bad["result"] == jdyn.Result.bad_model)
    assert np.all(np.isnan(bad["q"])) and np.all(np.isnan(bad["speed"]))
    meanings = dataset["result"].attrs["flag_meanings"].split()
    assert meanings[int(bad["result"][0])] == "bad_model"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 12, None])
def test_chunks_change_nothing(grid, chunk):
    over, dataset = grid
    other = jdyn.sweep(swing, over, chunk=chunk, progress=False)
    np.testing.assert_allclose(other["q"], dataset["q"], rtol=1e-12)
    np.testing.assert_array_equal(other["result"], dataset["result"])


def test_one_program_serves_all_chunks_and_the_last_is_cut():
    traces = []

    def lane(p):
        traces.append(1)
        return {"twice": 2 * p["x"]}

    dataset = jdyn.sweep(lane, jdyn.designs.Grid(x=np.arange(10.0)), chunk=4, progress=False)
    assert len(traces) == 1
    np.testing.assert_array_equal(dataset["twice"], 2 * np.arange(10.0))


def test_samples_carry_arrays_and_label_them():
    offsets = np.arange(6.0).reshape(3, 2)
    over = jdyn.designs.Samples(offset=offsets, scale=[1.0, 2.0, 3.0])
    dataset = jdyn.sweep(lambda p: {"y": p["scale"] * p["offset"]}, over, progress=False)
    assert dataset["y"].dims == ("sample", "y_0") and dataset["offset"].dims == ("sample", "offset_0")
    np.testing.assert_array_equal(dataset["y"], offsets * np.array([[1.0], [2.0], [3.0]]))


def test_without_a_result_lanes_that_are_not_finite_are_marked():
    dataset = jdyn.sweep(lambda p: {"root": jnp.sqrt(p["x"])}, jdyn.designs.Grid(x=[-1.0, 4.0]), progress=False)
    assert dataset["result"].values.tolist() == [jdyn.Result.nonfinite, jdyn.Result.success]


def test_precision_chosen_by_a_context_reaches_every_chunk():
    for double in (False, True):
        with jax.enable_x64(not double), jax.enable_x64(double):
            dataset = jdyn.sweep(
                lambda p: {"y": p["x"] + 1}, jdyn.designs.Grid(x=[1.0, 2.0, 3.0]), chunk=1, progress=False
            )
        assert dataset["y"].dtype == (np.float64 if double else np.float32)


def test_whole_numbers_that_single_precision_has_not_are_refused():
    with jax.enable_x64(False), pytest.raises(ValueError, match="'s': whole numbers beyond int32 need jax_enable_x64"):
        jdyn.sweep(lambda p: {"y": p["s"]}, jdyn.designs.Samples(s=np.array([2**40 + 5, 3])), progress=False)


def test_codes_of_one_s_own_are_kept():
    dataset = jdyn.sweep(lambda p: {"result": jnp.int32(99), "y": p["x"]}, jdyn.designs.Grid(x=[1.0]), progress=True)
    assert dataset["result"] == 99 and np.isnan(dataset["y"])


def test_parts_and_workers_have_chunks_each():
    sweep = sys.modules["jdyn.sweep.sweep"]
    largest = sweep.CPU_CHUNK if jax.default_backend() == "cpu" else sweep.ACCELERATOR_CHUNK
    assert sweep._usual_chunk(1000, 8) == 125 and sweep._usual_chunk(3, 8) == 1
    assert sweep._usual_chunk(10**6, 8) <= largest


def test_a_dataset_survives_the_disk(grid, tmp_path):
    import xarray

    _, dataset = grid
    dataset.to_netcdf(tmp_path / "sweep.nc", engine="scipy")
    with xarray.open_dataset(tmp_path / "sweep.nc", engine="scipy") as read:
        xarray.testing.assert_allclose(read.load(), dataset)
        assert read.attrs["device"] == dataset.attrs["device"]


def test_progress_is_shown_on_standard_error(capsys):
    """If asked for, or where it is a terminal or the kernel of a notebook, which it is not for importing one."""
    import ipykernel.kernelapp  # noqa: F401

    for progress, shown in ((True, True), (None, False)):
        jdyn.sweep(lambda p: {"y": p["x"]}, jdyn.designs.Grid(x=[1.0, 2.0]), progress=progress)
        captured = capsys.readouterr()
        assert ("2/2" in captured.err) == shown and captured.out == ""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jdyn.designs.Grid(), "Grid: no parameter is given"),
        (lambda: jdyn.designs.Grid(x=[]), "'x': expected at least one value"),
        (lambda: jdyn.designs.Grid(x=np.zeros((2, 2))), r"'x': expected numbers of shape \(n,\)"),
        (lambda: jdyn.designs.Grid(x=["a"]), "'x': expected real numbers"),
        (lambda: jdyn.designs.Samples(x=[1.0, 2.0], y=[1.0]), "x has 2, y has 1"),
        (lambda: jdyn.designs.Samples(sample=[1.0]), "'sample' is the name of the axis"),
        (lambda: jdyn.sweep(lambda p: p["x"], jdyn.designs.Grid(x=[1.0])), "must return a dict of arrays"),
        (lambda: jdyn.sweep(lambda p: {"y": "no"}, jdyn.designs.Grid(x=[1.0])), "'y' is of type str"),
        (lambda: jdyn.sweep(lambda p: {"x": p["x"]}, jdyn.designs.Grid(x=[1.0])), "already the name of something else"),
        (lambda: jdyn.sweep(lambda p: {}, jdyn.designs.Grid(x=[1.0])), "returns an empty dict"),
        (
            lambda: jdyn.sweep(lambda p: {"y": p["result"]}, jdyn.designs.Grid(result=[1.0])),
            "call the parameter something else",
        ),
        (
            lambda: jdyn.sweep(lambda p: {"result": jnp.zeros(2)}, jdyn.designs.Grid(x=[1.0])),
            "expected a scalar 'result'",
        ),
        (
            lambda: jdyn.sweep(lambda p: {"a": jnp.zeros(2), "a_0": p["x"]}, jdyn.designs.Grid(x=[1.0])),
            "'a_0' of what fn",
        ),
        (
            lambda: jdyn.sweep(lambda p: {"y": p["x"]}, jdyn.designs.Grid(x=[1.0]), chunk=0),
            "chunk: expected a positive",
        ),
        (
            lambda: jdyn.sweep(lambda p: {"result": p["x"] > 0}, jdyn.designs.Grid(x=[1.0])),
            "codes of jdyn.Result as 'result'",
        ),
        (lambda: jdyn.sweep(lambda p: {"x_0": p["x"][0]}, jdyn.designs.Samples(x=np.ones((3, 2)))), "'x_0' of what fn"),
        (
            lambda: jdyn.designs.Samples(x=np.ones((3, 2))) * jdyn.designs.Grid(x_0=[1.0]),
            "both designs have axes called 'x_0'",
        ),
        (lambda: jdyn.designs.Grid(x=np.array([1], "m8[s]")), "'x': expected real numbers"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
