"""Coordinated worlds beside closed forms and one system of all objects."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.world.test_world import arm, two_arms, two_balls

BALL, RADIUS = jdyn.load("ball"), 0.1
TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-10)


def row_of_balls(count, e=1.0):
    """Balls a metre apart, of which the first one moves."""
    world = jdyn.World(contact=jdyn.RigidContact(restitution=e, friction=0.0), gravity=(0.0, 0.0, 0.0))
    for i in range(count):
        world = world.with_object(f"ball{i}", BALL, placement=(i, 0.0, 0.0), v=[0, 0, 0, 0 if i else 1, 0, 0])
    return world


@pytest.mark.exhaustive
def test_islands_are_of_what_meets(tmp_path):
    """Each ball of a row stops where it hits the next one, 0.8 m further."""
    coordinator = jdyn.world.Coordinator(window=0.1)
    motion = row_of_balls(3).simulate(3.0, saveat=jnp.linspace(0, 3, 13), coordinator=coordinator)
    hits = motion.impacts.records
    assert [hit.pair for hit in hits] == [("ball0/ball", "ball1/ball"), ("ball1/ball", "ball2/ball")]
    np.testing.assert_allclose([hit.t for hit in hits], [0.8, 1.6], rtol=1e-12)
    ts = np.linspace(0, 3, 13)
    for i in range(3):
        way = np.clip(ts - 0.8 * i, 0, 0.8 if i < 2 else None)
        np.testing.assert_allclose(motion[f"ball{i}"].q[:, 0], i * 0.0 + way, atol=1e-12)
    met = [island for window in motion.windows for island in window.islands]
    assert set(met) == {("ball0", "ball1"), ("ball1", "ball2")}
    for window in motion.windows:
        # They are apart by no more than what is possible in a window, and what boxes are larger by.
        if window.t1 < 0.5 or window.t0 > 2.0:
            assert window.islands == ()
    assert motion.windows[0].t0 == 0 and motion.windows[-1].t1 == 3
    np.testing.assert_allclose(motion.energy, 0.5, rtol=1e-12)
    motion.save(tmp_path / "motion.npz")
    played = jdyn.world.WorldMotion.load(tmp_path / "motion.npz")
    np.testing.assert_array_equal(played.q, motion.q)
    assert (played.windows[3], played.impacts.records[1].t) == (motion.windows[3], hits[1].t)


@pytest.mark.slow
def test_coordinated_objects_move_as_one_system_does():
    """Balls off centre with friction and spin, both up to errors of steps."""
    rows = {"saveat": jnp.linspace(0, 2, 5), "max_events": 8}
    together = two_balls().simulate(2.0, **rows)
    apart = two_balls().simulate(2.0, **rows, coordinator=jdyn.world.Coordinator(window=0.1))
    np.testing.assert_allclose(apart.q, together.q, atol=1e-5)
    np.testing.assert_allclose(apart.v, together.v, atol=1e-5)
    (one,), (other,) = apart.impacts.records, together.impacts.records
    np.testing.assert_allclose([one.t, one.energy], [other.t, other.energy], rtol=1e-5)
    np.testing.assert_allclose(one.impulse, other.impulse, rtol=1e-5)


def test_a_stiff_object_does_not_shorten_the_steps_of_others():
    """Nor do they change what controllers, actuators and sensors do."""
    stiff = arm().but(actuators=[jdyn.actuators.PositionServo("joint1", kp=5e4, kd=20.0)])
    slow = two_arms()
    world = slow.with_object("stiff", stiff, q=[0.42], placement=(2.0, 0.0, 0.0), solver=jdyn.solvers.CashKarp())
    coordinator, rows = jdyn.world.Coordinator(window=0.25), jnp.linspace(0, 1, 11)
    motion = world.simulate(1.0, saveat=rows, coordinator=coordinator)
    without = slow.simulate(1.0, saveat=rows, coordinator=coordinator)
    for name in ("left", "right"):
        assert int(motion.steps[name]) == int(without.steps[name]) < int(motion.steps["stiff"]) / 5
        np.testing.assert_array_equal(motion[name].q, without[name].q)
    together = world.simulate(1.0, saveat=rows)
    np.testing.assert_allclose(motion.q, together.q, atol=1e-5)
    for name in world.names:
        np.testing.assert_array_equal(motion[name].sensors["angle"], motion[name].q[:, 0])
        np.testing.assert_array_equal(motion[name].commands, 0.4)
    np.testing.assert_allclose(motion["left"].tau, together["left"].tau, atol=1e-3)


def test_memories_are_those_of_each_object():
    """PID controllers beside an object without one: integrals of each, in one system and apart."""
    model = jdyn.load("pendulum")
    world = jdyn.World(contact=None).with_object("free", model, q=[0.2])
    for name, goal in (("low", 0.3), ("high", 0.6)):
        pid = jdyn.PID(model, jnp.array([goal]), kp=30.0, ki=20.0, kd=6.0)
        world = world.with_object(name, jdyn.System(model, controller=pid))
    rows = jnp.linspace(0, 1, 5)
    motion = world.simulate(1.0, saveat=rows, coordinator=jdyn.world.Coordinator(window=0.2))
    together = world.simulate(1.0, saveat=rows)
    np.testing.assert_allclose(motion.q, together.q, atol=1e-5)
    for one, other in zip(*(jax.tree.leaves(x.trajectory.parts) for x in (motion, together)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_allclose(motion["high"].tau, together["high"].tau, atol=1e-4)


def test_what_is_for_one_system_alone_is_refused():
    coordinator = jdyn.world.Coordinator(window=0.25)
    world = two_arms()
    for refused, message in (
        (lambda: jdyn.world.Coordinator(window=0.0), "window: expected a positive number, got 0.0"),
        (lambda: jdyn.world.Coordinator(looks=0), "looks: expected a positive number, got 0"),
        (lambda: world.simulate(-1.0, coordinator=coordinator), "t1: expected a time after t0 = 0.0, got -1.0"),
        (
            lambda: jax.jit(lambda world: world.simulate(1.0, coordinator=coordinator).q)(world),
            "coordinator: it runs on the host, not under jit, vmap or grad; leave it out there",
        ),
        (
            lambda: world.simulate(1.0, coordinator=coordinator, adjoint=diffrax.ForwardMode()),
            "adjoint: it is for one system of all objects",
        ),
        (
            lambda: world.simulate(1.0, coordinator=coordinator, saveat=diffrax.SaveAt(steps=True)),
            "saveat: steps are those of one system",
        ),
    ):
        with pytest.raises(ValueError) as error:
            refused()
        assert message in str(error.value)


@pytest.mark.slow
def test_shapes_that_overlap_at_the_start_are_named():
    overlapping = two_balls().with_start("right", q=[-0.85, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    rows = {"saveat": jnp.linspace(0, 2, 5), "max_events": 8}
    with pytest.raises(jdyn.SimulationError, match="world: 'left/ball' and 'right/ball' overlap by"):
        overlapping.simulate(2.0, **rows, coordinator=jdyn.world.Coordinator(window=0.1))
    failed = overlapping.simulate(2.0, **rows, coordinator=jdyn.world.Coordinator(window=0.1), throw=False)
    assert failed.result == jdyn.Result.overlap
    assert failed.q.shape == (5, 14) and np.all(np.isnan(failed.q))


@pytest.mark.exhaustive
def test_coordinated_errors_fall_with_the_tolerance():
    rows = {"saveat": jnp.linspace(0, 2, 5), "max_events": 8, "stepsize_controller": TIGHT}
    together = two_balls().simulate(2.0, **rows)
    apart = two_balls().simulate(2.0, **rows, coordinator=jdyn.world.Coordinator(window=0.1))
    # Errors of about 1e-10 in each of some dozens of steps add up.
    np.testing.assert_allclose(apart.q, together.q, atol=1e-8)
    np.testing.assert_allclose(apart.v, together.v, atol=1e-8)


@pytest.mark.exhaustive
def test_the_ground_joins_nothing():
    """Two balls fall on a floor, far from each other: an island each, and only near the floor."""
    floor = jdyn.Builder("floor")
    floor.add_shape("world", "plane", (0, 0), role="collision", name="top")
    world = jdyn.World(contact=jdyn.RigidContact(restitution=0.5, friction=0.2)).with_object("floor", floor.build())
    for i, height in enumerate((0.5, 1.0)):
        world = world.with_object(f"ball{i}", BALL, placement=(2.0 * i, 0.0, 0.0), q=[0, 0, height, 1, 0, 0, 0])
    motion = world.simulate(2.0, saveat=jnp.linspace(0, 2, 21), coordinator=jdyn.world.Coordinator(window=0.05))
    assert {len(island) for window in motion.windows for island in window.islands} == {2}
    assert motion.windows[0].islands == ()
    for i, height in enumerate((0.5, 1.0)):
        first = np.sqrt(2 * (height - RADIUS) / 9.81)
        hits = motion[f"ball{i}"].impacts.records
        np.testing.assert_allclose(hits[0].t, first, rtol=1e-6)
        assert hits[0].pair == ("floor/top", f"ball{i}/ball")
        # Bounces end at √(2 h/g) (1 + e)/(1 − e).
        np.testing.assert_allclose(hits[-1].t, 3 * first, rtol=1e-3)
        np.testing.assert_allclose(motion[f"ball{i}"].q[-1, 2], RADIUS, atol=1e-6)
    kept = motion.energy - motion.energy_of_impacts
    np.testing.assert_allclose(kept, kept[0], rtol=1e-5)
