"""What there is to know of a trajectory, between its rows, and on disk."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.spatial.transform

import jdyn
from tests.drawn import unit

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-11, atol=1e-13)


def gyro():
    """A free body with a wheel on a ball joint and a damped hinge."""
    builder = jdyn.Builder("gyro")
    builder.add_link("hull", jdyn.Free(), mass=2.0, com=(0.05, 0, 0.02), inertia=(0.03, 0.07, 0.09))
    builder.add_link("wheel", jdyn.Ball(), parent="hull", placement=(0.3, 0, 0), mass=0.7, inertia=(0.02, 0.01, 0.02))
    builder.add_link("arm", jdyn.Revolute((1, 1, 0)), parent="hull", mass=0.4, com=(0, 0, 0.3), inertia=[0.01] * 3)
    return builder.build()


MODEL = gyro()
Q0 = unit([0.76, -0.23, -0.83, -0.6, -0.18, 0.7, -0.34, 0.66, 0.04, 0.65, -0.37, 2.95], 3, 7)
V0 = jnp.array([-0.19, -1.04, 0.43, -0.16, -0.7, -1.68, 0.56, -0.04, 0.54, -0.42])
CONTROLLER = jdyn.control.FirstOrderLag(jdyn.PD(MODEL, MODEL.neutral(), kp=0.2, kd=0.1), 0.3)


@pytest.fixture(scope="module")
def fine():
    ts = jnp.linspace(0, 1, 65)
    return jdyn.simulate(
        MODEL, Q0, V0, 1.0, controller=CONTROLLER, stepsize_controller=TIGHT, solver=diffrax.Dopri8(), saveat=ts
    )


@pytest.mark.slow
def test_rows_are_computed_from_model_and_controller(fine):
    """Energy changes by the power of the controller, linear momentum by weight and the wrench on the free joint: to
    rounding, with their derivatives along the motion."""
    a, tau = fine.accelerations, fine.tau
    np.testing.assert_array_equal(tau, fine.parts["controller"][1])

    def at(q, v):
        rows = dataclasses.replace(fine, q=q, v=v)
        return rows.energy, rows.momentum

    dq = jax.jit(jax.vmap(MODEL.rate))(fine.q, fine.v)
    _, (power, force) = jax.jit(lambda *rates: jax.jvp(at, (fine.q, fine.v), rates))(dq, a)
    np.testing.assert_allclose(power, jnp.sum(tau * fine.v, axis=1), rtol=0, atol=1e-12 * jnp.max(jnp.abs(a)))
    weight = jnp.sum(MODEL.inertias.mass) * MODEL.gravity
    wrench = jnp.einsum("tij,tj->ti", fine.poses.rotation[:, 0], tau[:, 3:6])
    np.testing.assert_allclose(force[:, 3:], wrench + weight[None], rtol=0, atol=1e-12 * jnp.max(jnp.abs(a)))


def test_poses_are_those_of_the_bodies(fine):
    poses = fine.poses
    assert poses.translation.shape == (65, 3, 3)
    np.testing.assert_array_equal(poses.translation[:, 0], fine.q[:, :3])
    expected = scipy.spatial.transform.Rotation.from_quat(np.asarray(fine.q[:, 3:7]), scalar_first=True).as_matrix()
    np.testing.assert_allclose(poses.rotation[:, 0], expected, rtol=0, atol=1e-15)


@pytest.mark.slow
def test_what_stands_between_rows_converges_with_their_distance(fine):
    """Hermite's cubic is of fourth order, its rate of third."""
    errors = []
    for every in (16, 8, 4):
        rows = slice(None, None, every)
        coarse = dataclasses.replace(fine, ts=fine.ts[rows], q=fine.q[rows], v=fine.v[rows], parts={})
        between = coarse.resample(fine.ts)
        distance = jax.vmap(MODEL.difference)(fine.q, between.q)
        errors.append((jnp.max(jnp.abs(distance)), jnp.max(jnp.abs(between.v - fine.v))))
        np.testing.assert_allclose(between.q[::every], coarse.q, rtol=0, atol=1e-14)
        np.testing.assert_allclose(between.v[::every], coarse.v, rtol=0, atol=1e-12)
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(np.abs(orders[-1] - [4, 3]) < 0.4), (orders, errors)
    assert errors[-1][0] < 1e-3


def test_outside_of_the_rows_there_is_nothing(fine):
    for t in (-1e-3, 1.001, jnp.nan):
        q, v = fine.interpolate(t)
        assert np.all(np.isnan(q)) and np.all(np.isnan(v))
    np.testing.assert_allclose(fine.interpolate(1.0)[1], fine.v[-1], rtol=0, atol=1e-13)


@pytest.mark.slow
def test_rows_are_met_beside_rows_that_are_not_there():
    pendulum = jdyn.load("pendulum")

    def swing(t1, saveat):
        return jdyn.simulate(pendulum, [0.4], [0.0], t1, saveat=saveat, solver=diffrax.Tsit5())

    steps = swing(0.5, diffrax.SaveAt(steps=True, t0=True))
    reached = int(steps.stats["accepted_steps"])
    np.testing.assert_allclose(steps.interpolate(0.5)[0], steps.q[reached], rtol=0, atol=1e-15)
    twice = swing(0.5, [0.0, 0.0, 0.25, 0.5, 0.5])
    for t, row in ((0.0, 0), (0.25, 2), (0.5, 3)):
        np.testing.assert_allclose(twice.interpolate(t)[0], twice.q[row], rtol=0, atol=1e-15)
    nowhere = swing(0.0, None)
    np.testing.assert_array_equal(nowhere.interpolate(0.0)[0], [0.4])
    assert "time" in steps.to_xarray().coords


def test_what_does_not_fit_is_refused(fine):
    with pytest.raises(ValueError, match=r"controller: expected the one that was simulated, with a memory of shapes"):
        _ = fine.with_system(jdyn.System(MODEL, controller=jdyn.control.Constant(jnp.zeros(MODEL.nv)))).tau
    with pytest.raises(ValueError, match=r"system: expected a jdyn.System or a jdyn.Model, got a?"):
        fine.with_system(CONTROLLER)  # pyright: ignore
    with pytest.raises(ValueError, match=r"contacts: shapes of this system do not touch"):
        _ = fine.contacts
    with pytest.raises(ValueError, match=r"t: expected a scalar, got shape \(3,\); `resample`"):
        fine.interpolate(jnp.zeros(3))
    with pytest.raises(ValueError, match=r"ts: expected shape \(times,\), got \(\)"):
        fine.resample(0.5)
    outside = fine.resample(jnp.array([-1.0, 0.5]))
    np.testing.assert_array_equal(jnp.isnan(outside.parts["controller"][1]), jnp.isnan(outside.v))


def test_digits_are_not_lost_in_silence(fine, tmp_path):
    fine.save(tmp_path / "flight.npz")
    with jax.enable_x64(False), pytest.warns(UserWarning, match="in float64, read as float32; set jax_enable_x64"):
        jdyn.Trajectory.load(tmp_path / "flight.npz")


@pytest.mark.slow
def test_interpolation_has_derivatives_and_goes_backwards():
    pendulum = jdyn.load("pendulum")

    def at(theta0):
        # Steps that do not depend on what is differentiated, for differences.
        back = jdyn.simulate(
            pendulum, theta0[None], [0.0], -0.5, saveat=jnp.linspace(0, -0.5, 9), dt0=-0.02,
            stepsize_controller=diffrax.ConstantStepSize(),
        )  # fmt: skip
        return back.interpolate(-0.22)[0][0]

    # A motion from rest is even in time.
    forward = jdyn.simulate(pendulum, [0.4], [0.0], 0.5, saveat=[0.22]).q[0, 0]
    np.testing.assert_allclose(at(jnp.array(0.4)), forward, rtol=0, atol=1e-5)
    h = 1e-4
    difference = (at(jnp.array(0.4 + h)) - at(jnp.array(0.4 - h))) / (2 * h)
    np.testing.assert_allclose(jax.grad(at)(jnp.array(0.4)), difference, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_batches():
    options = dict(controller=CONTROLLER, saveat=jnp.linspace(0, 1, 9), in_axes={"v0": 0})
    arguments = MODEL, Q0, jnp.stack([0.5 * V0, V0]), 1.0
    batch = jdyn.simulate_batch(*arguments, **options)
    most = jdyn.simulate_batch(*arguments, **options, reduce=lambda trajectory: jnp.max(trajectory.energy))
    np.testing.assert_allclose(most, jnp.max(batch.energy, axis=1), rtol=1e-13)
    single = jax.tree.map(lambda x: x[1], batch)
    for of in (
        lambda t: t.energy, lambda t: t.momentum, lambda t: t.accelerations,
        lambda t: t.poses.translation,
    ):  # fmt: skip
        np.testing.assert_allclose(of(batch)[1], of(single), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match=r"interpolate: expected one motion, got a batch of shape \(2,\).*jax.vmap"):
        batch.interpolate(0.5)
    both = jax.vmap(lambda trajectory: trajectory.interpolate(0.5)[0])(batch)
    np.testing.assert_allclose(both[1], single.interpolate(0.5)[0], rtol=0, atol=1e-14)
    dataset = batch.to_xarray()
    assert dataset["q"].dims == ("lane", "time", "q_coordinate")
    np.testing.assert_array_equal(dataset["q"].sel(q_coordinate="arm"), batch.q[..., -1])
    assert list(dataset["v_coordinate"].values[:2]) == ["hull[0]", "hull[1]"]


@pytest.mark.slow
def test_lanes_with_times_of_their_own_are_labelled_so():
    pendulum = jdyn.load("pendulum")
    ends = jnp.array([0.1, 0.2])
    batch = jdyn.simulate_batch(
        pendulum, jnp.ones((2, 1)), jnp.zeros((2, 1)), ends, in_axes={"q0": 0, "v0": 0, "t1": 0},
        solver=diffrax.Tsit5(),
    )  # fmt: skip
    dataset = batch.to_xarray()
    np.testing.assert_array_equal(dataset["t"], batch.ts)
    assert "time" not in dataset.coords and dataset["result"].attrs["flag_meanings"].startswith("success")


def _bare(motion):
    """The motion alone, which is what files have."""
    return dataclasses.replace(motion, known=None, commands=None)


def test_a_saved_trajectory_comes_back(fine, tmp_path):
    fine.save(tmp_path / "flight.npz")
    back = jdyn.Trajectory.load(tmp_path / "flight.npz")
    assert jax.tree.structure(back.events) == jax.tree.structure(fine.events)
    assert back.parts.keys() == {"controller"} and back.stats.keys() == fine.stats.keys()
    for saved, loaded in zip(jax.tree.leaves(_bare(fine)), jax.tree.leaves(back), strict=True):
        assert saved.dtype == loaded.dtype
        np.testing.assert_array_equal(saved, loaded)
    with pytest.raises(ValueError, match=r"was loaded, and does not know its system; see Trajectory.with_system"):
        _ = back.tau
    np.testing.assert_array_equal(back.with_system(fine.system).tau, fine.tau)
    np.testing.assert_array_equal(back.to_xarray()["v_coordinate"], np.arange(MODEL.nv))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flight.npz"]


def test_no_damaged_file_is_read(fine, tmp_path):
    """Every cut, and every changed byte: refused, or of no consequence where a byte means nothing to a reader."""
    path = tmp_path / "flight.npz"
    fine.save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    leaves = [np.asarray(x) for x in jax.tree.leaves(_bare(fine))]
    refused = 0
    for length in [0, 1, 10, *rng.integers(11, len(whole), 20)]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"flight.npz: expected a jdyn trajectory"):
            jdyn.Trajectory.load(path)
    for place in rng.integers(0, len(whole), 150):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            back = jdyn.Trajectory.load(path)
        except ValueError as error:
            assert "flight.npz: expected a jdyn trajectory" in str(error)
            refused += 1
        else:
            for saved, loaded in zip(leaves, jax.tree.leaves(back), strict=True):
                np.testing.assert_array_equal(saved, loaded)
    assert refused > 75


def test_other_files_are_named_for_what_they_are(fine, tmp_path):
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    np.save(tmp_path / "array.npy", np.ones(3))
    for name in ("other.npz", "array.npy"):
        with pytest.raises(ValueError, match=f"{name}: expected a jdyn trajectory, found a damaged or a different"):
            jdyn.Trajectory.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        jdyn.Trajectory.load(tmp_path / "none.npz")
    from jdyn.io.archive import save_archive

    save_archive(tmp_path / "new.npz", "trajectory", 2, {}, {})
    with pytest.raises(ValueError, match="written in version 2 of its format; this jdyn reads up to 1"):
        jdyn.Trajectory.load(tmp_path / "new.npz")
    save_archive(tmp_path / "map.npz", "map", 1, {}, {})
    with pytest.raises(ValueError, match="expected a jdyn trajectory, found a jdyn map"):
        jdyn.Trajectory.load(tmp_path / "map.npz")
    save_archive(tmp_path / "little.npz", "trajectory", 1, {"ts": np.ones(3)}, {"entries": ["ts"], "absent": []})
    with pytest.raises(ValueError, match=r"little.npz: expected a jdyn trajectory, found one that lacks"):
        jdyn.Trajectory.load(tmp_path / "little.npz")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ts", lambda ts: np.full_like(ts, np.nan)[None]),
        ("ts", lambda ts: np.where(np.arange(len(ts)) == 1, np.nan, ts)),
        ("ts", lambda ts: np.where(np.arange(len(ts)) == 1, np.inf, ts)),
        ("ts", lambda ts: np.where(np.arange(len(ts)) == 2, ts[0], ts)),
        ("ts", lambda ts: np.ones((3, 7))),
        ("v", lambda v: v[:-1]),
        ("q", lambda q: q.astype(int)),
        ("result", lambda result: np.zeros(3, int)),
        ("events.which", lambda which: np.zeros(len(which) + 1, int)),
        ("events.q", lambda q: np.zeros((len(q), q.shape[1] + 1))),
        ("events.q", lambda q: q[0] if len(q) else np.zeros(q.shape[1])),
        ("stats.accepted_steps", lambda count: np.zeros(4, int)),
        ("parts.controller.0", lambda memory: memory[:-1]),
    ],
)
def test_arrays_that_are_none_of_one_motion_are_refused(fine, tmp_path, name, change):
    from jdyn.io.archive import load_archive, save_archive

    path = tmp_path / "m.npz"
    fine.save(path)
    arrays, header = load_archive(path, "trajectory", 1)
    arrays[name] = change(arrays[name])
    save_archive(path, "trajectory", 1, arrays, header)
    with pytest.raises(ValueError, match=r"m.npz: expected a jdyn trajectory, found a damaged or a different file"):
        jdyn.Trajectory.load(path)


def test_a_motion_without_events_is_a_table_of_its_rows():
    model = jdyn.load("double_pendulum")
    motion = jdyn.simulate(model, jnp.array([0.1, 0.2]), jnp.zeros(2), 0.1, saveat=jnp.linspace(0, 0.1, 3))
    dataset = motion.to_xarray()
    table = dataset.to_dataframe()
    assert len(table) == 3 * model.nq * model.nv and "event" not in dataset.dims
    np.testing.assert_array_equal(dataset[["q", "v"]].to_dataframe()["q"].groupby("time").max(), motion.q.max(axis=1))


def test_coordinates_have_labels_and_units(fine):
    builder = jdyn.Builder("kinds")
    kinds = [jdyn.Free(), jdyn.Planar((0, 0, 1), (1, 0, 0)), jdyn.Ball(), jdyn.Helical((1, 0, 0), 0.1)]
    for i, kind in enumerate(kinds):
        builder.add_link(f"l{i}", kind, parent="world", mass=1.0, inertia=(1.0, 1.0, 1.0), joint_name=f"j{i}")
    model = builder.build()

    def of_the_model(saved):
        q, v = (jnp.zeros((len(saved.q), n)) for n in (model.nq, model.nv))
        return dataclasses.replace(saved, q=q, v=v)

    motion = dataclasses.replace(of_the_model(fine), events=of_the_model(fine.events), parts={})
    dataset = motion.with_system(model).to_xarray()
    assert dataset["q"].sel(q_coordinate="j1[2]")["q_unit"].item() == "rad"
    assert dataset["q_unit"].values.tolist() == [*"mmm1111", "m", "m", "rad", *"1111", "rad"]
    assert dataset["v_unit"].values.tolist() == [
        *["rad/s"] * 3, *["m/s"] * 3, "m/s", "m/s", *["rad/s"] * 5
    ]  # fmt: skip
