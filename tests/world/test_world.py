"""Worlds beside single simulations, closed forms and arithmetic."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.errors import tol

BALL, RADIUS, MASS = jdyn.load("ball"), 0.1, 1.0


def arm():
    """A pendulum with all that a system may have beside contact."""
    model = jdyn.load("pendulum")
    return jdyn.System(
        model,
        controller=jdyn.control.Constant(jnp.array([0.4])),
        actuators=[jdyn.actuators.PositionServo("joint1", kp=50.0, kd=5.0)],
        sensors=[jdyn.sensors.JointPosition("angle", "joint1")],
    )


@functools.cache
def two_arms():
    world = jdyn.World().with_object("left", arm(), q=[1.0])
    return world.with_object("right", arm(), placement=(1.0, 0.0, 0.0), q=[-0.5], v=[0.3])


def two_balls(e=0.5, friction=0.3, v=(1.0, 0.0, 0.0), spin=(0.0, 0.0, 5.0), y=0.05):
    """Two balls without weight; the left one comes along x, off the centre of the right one by y."""
    world = jdyn.World(contact=jdyn.RigidContact(restitution=e, friction=friction), gravity=(0.0, 0.0, 0.0))
    world = world.with_object("left", BALL, placement=(0.0, y, 0.0), v=[*spin, *v])
    return world.with_object("right", BALL, placement=(1.0, 0.0, 0.0))


def collided(world, **options):
    return world.simulate(2.0, saveat=jnp.linspace(0, 2, 5), max_events=8, **options)


def test_a_world_of_one_object_is_its_system():
    world = jdyn.World().with_object("arm", arm(), q=[1.0])
    motion = world.simulate(0.5)
    alone = jdyn.simulate(arm(), arm().state(jnp.array([1.0])), 0.5)
    # As far as another order of sums rounds.
    np.testing.assert_allclose(motion["arm"].q, alone.q, atol=1e-12)
    np.testing.assert_allclose(motion["arm"].v, alone.v, atol=1e-12)
    np.testing.assert_allclose(motion["arm"].sensors["angle"], alone.sensors["angle"], atol=1e-12)
    np.testing.assert_array_equal(motion["arm"].commands, np.full((101, 1), 0.4))
    np.testing.assert_allclose(motion["arm"].tau, alone.tau, atol=1e-10)
    np.testing.assert_allclose(motion["arm"].energy, alone.energy, atol=1e-12)


def test_objects_that_nothing_joins_move_as_alone():
    motion = two_arms().simulate(0.5)
    assert motion.names == ("left", "right")
    for name, q, v in (("left", 1.0, 0.0), ("right", -0.5, 0.3)):
        alone = jdyn.simulate(arm(), arm().state(jnp.array([q]), jnp.array([v])), 0.5)
        # Both within the tolerance of 1e-6 in each step.
        np.testing.assert_allclose(motion[name].q, alone.q, atol=1e-5)
        np.testing.assert_array_equal(motion[name].sensors["angle"], motion[name].q[:, 0])
    np.testing.assert_allclose(motion["right"].poses.translation[:, 0, 0], 1.0)
    with pytest.raises(KeyError, match="no object is called 'middle'; there are left, right"):
        motion["middle"]


def momenta(model, q, v):
    """Linear momentum, and angular momentum about the origin, of two balls."""
    poses = jdyn.forward_kinematics(model, q)
    linear = MASS * np.einsum("bij,bj->bi", poses.rotation, v.reshape(2, 6)[:, 3:])
    spin = 0.4 * MASS * RADIUS**2 * np.einsum("bij,bj->bi", poses.rotation, v.reshape(2, 6)[:, :3])
    return np.append(np.sum(linear, axis=0), np.sum(np.cross(poses.translation, linear) + spin, axis=0)), linear


def test_collisions_keep_momentum_and_say_what_they_take():
    """Two balls off centre, with friction and spin: closed form along the normal, arithmetic for all else."""
    motion = collided(two_balls())
    left, right = motion["left"], motion["right"]
    (hit,) = right.impacts.records
    assert hit.pair == ("left/ball", "right/ball")
    normal = np.array([np.sqrt(1 - 0.25**2), -0.25, 0])
    # Up to errors of steps of the spinning ball before.
    np.testing.assert_allclose(hit.t, 1 - 2 * RADIUS * normal[0], rtol=1e-6)
    np.testing.assert_allclose(hit.impulse @ normal, MASS / 2 * 1.5 * normal[0], rtol=1e-6)
    events, model = motion.trajectory.events, motion.trajectory.system.model
    before, _ = momenta(model, events.q[0], events.v[0])
    after, linear = momenta(model, events.q[1], events.v[1])
    np.testing.assert_allclose(before, after, atol=1e-12)
    np.testing.assert_allclose(hit.impulse, linear[1], atol=1e-12)
    energy = [jdyn.kinetic_energy(model, q, v) for q, v in zip(events.q[:2], events.v[:2], strict=True)]
    np.testing.assert_allclose(hit.energy, energy[1] - energy[0], atol=1e-12)
    (other,) = left.impacts.records
    np.testing.assert_array_equal(other.impulse, -hit.impulse)
    assert other.pair == ("right/ball", "left/ball")
    np.testing.assert_allclose(left.energy + right.energy, motion.energy, rtol=1e-12)
    kept = motion.energy - motion.energy_of_impacts
    np.testing.assert_allclose(kept, kept[0], rtol=1e-6)
    assert motion.energy_of_impacts[0] == 0 > motion.energy_of_impacts[-1] == hit.energy
    np.testing.assert_array_equal(left.contact_force, 0)


def test_worlds_and_motions_are_kept_bit_for_bit(tmp_path):
    world = two_balls(e=0.7)
    motion = collided(world)
    world.save(tmp_path / "world.npz")
    motion.save(tmp_path / "motion.npz")
    loaded = jdyn.World.load(tmp_path / "world.npz")
    _same(world, loaded)
    _same(motion, played := jdyn.world.WorldMotion.load(tmp_path / "motion.npz"))
    np.testing.assert_array_equal(collided(loaded).q, motion.q)
    assert played.impacts.records[0].energy == motion.impacts.records[0].energy
    with pytest.raises(ValueError, match=r"world.npz: expected a jdyn motion of a world, found a jdyn world"):
        jdyn.world.WorldMotion.load(tmp_path / "world.npz")


def _same(one, other):
    leaves = [jax.tree.leaves(x) for x in (one, other)]
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for x, y in zip(*leaves, strict=True):
        assert type(x) is type(y)
        np.testing.assert_array_equal(x, y)


class Spring(jdyn.Controller):
    stiffness: jax.Array

    def __call__(self, t, q, v):
        return -self.stiffness * q


def test_files_hold_all_of_a_system_and_classes_of_users(tmp_path):
    world = two_arms().with_object("own", jdyn.System(jdyn.load("puma560"), controller=None), placement=(0, 2, 0))
    world.save(tmp_path / "arms.npz")
    _same(world, jdyn.World.load(tmp_path / "arms.npz"))
    sprung = jdyn.World().with_object("a", jdyn.System(jdyn.load("pendulum"), controller=Spring(jnp.ones(1))))
    sprung.save(tmp_path / "sprung.npz")
    with pytest.raises(ValueError, match=r"sprung.npz: it has objects of .*Spring', a class that is not jdyn's"):
        jdyn.World.load(tmp_path / "sprung.npz")
    _same(sprung, jdyn.World.load(tmp_path / "sprung.npz", classes=[Spring]))
    pushed = jdyn.World().with_object("a", jdyn.System(jdyn.load("pendulum"), controller=lambda t, q, v: -q))
    with pytest.raises(ValueError, match=r"save: world.objects.0.system.controller is .*function.*no file can hold"):
        pushed.save(tmp_path / "pushed.npz")


def test_objects_come_and_go():
    world = two_arms()
    more = world.with_object("ball", BALL, q=[0, 0, 2, 1, 0, 0, 0])
    assert more.names == ("left", "right", "ball") and world.names == ("left", "right")
    assert more.merged().model.joint_names == ("left/joint1", "right/joint1", "ball/ball")
    less = more.without("left")
    assert less.names == ("right", "ball") and less["right"].q == -0.5
    moved = less.with_start("right", q=[0.25])
    assert (moved["right"].q, moved["right"].v, less["right"].q) == (0.25, 0.0, -0.5)
    np.testing.assert_array_equal(moved.start().q, [0.25, 0, 0, 2, 1, 0, 0, 0])
    assert more.islands() == (("left",), ("right",), ("ball",))
    assert two_balls().islands() == (("left", "right"),)
    assert two_balls().but(contact=None).islands() == (("left",), ("right",))
    rod = jdyn.constraints.Distance("left/tip", "right/tip", 1.0)
    assert world.but(constraints=(rod,)).islands() == (("left", "right"),)


def test_bad_worlds_are_refused():
    """One clear sentence each."""
    world = two_arms()
    floor = jdyn.Builder("floor", gravity=(0.0, 0.0, -1.6))
    floor.add_shape("world", "plane", (0, 0), role="collision")
    limited, held = (arm().but(joint_limits=jdyn.CompliantLimits(frequency=f)) for f in (50.0, 70.0))
    for refused, message in (
        (lambda: jdyn.World().merged(), "world: it has no objects; "),
        (lambda: jdyn.World().simulate(1.0), "world: it has no objects; "),
        (lambda: jdyn.World(contact="rigid"), "contact: expected jdyn.RigidContact"),
        (lambda: world.with_object("left", BALL), "name: the world has an object 'left' already"),
        (lambda: world.with_object("a/b", BALL), "name: expected letters, digits, '_', '-' and '.', got 'a/b'"),
        (lambda: world.with_object("", BALL), "name: expected letters"),
        (lambda: world.with_object(3, BALL), "name: expected letters"),
        (lambda: world.with_object("ball", "ball"), "system: expected a jdyn.System or a jdyn.Model, got a str"),
        (lambda: world.with_object("ball", BALL, placement=(1.0, 2.0)), "placement of 'ball': expected shape"),
        (lambda: world.with_object("ball", BALL, q=[1.0]), "q: expected shape"),
        (lambda: world.with_object("floor", floor.build()), "gravity: 'left' falls by"),
        (lambda: world.with_object("a", limited).with_object("b", held), "joint_limits: the world has"),
        (
            lambda: world.with_object("ball", jdyn.System(BALL, contact=jdyn.CompliantContact())),
            "system: 'ball' has a contact of its own; ",
        ),
        (lambda: world.without("middle"), "name: no object is called 'middle'; there are left, right"),
        (lambda: world.with_start("middle"), "name: no object is called 'middle'"),
    ):
        with pytest.raises(ValueError) as error:
            refused()
        assert message in str(error.value)
    with pytest.raises(KeyError, match="no object is called 'middle'"):
        world["middle"]
    with pytest.raises(ValueError, match="impacts: there are some with rigid contact alone"):
        _ = world.simulate(0.5).impacts


def test_a_start_that_overlaps_names_the_pair():
    overlapping = two_balls().with_start("right", q=[-0.85, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    expected = f"world: 'left/ball' and 'right/ball' overlap by {2 * RADIUS - np.hypot(0.15, 0.05):.3g} m at the start"
    with pytest.raises(jdyn.SimulationError, match=expected):
        collided(overlapping)
    assert collided(overlapping, throw=False).result == jdyn.Result.overlap


def test_an_object_answers_for_its_four_parts():
    model, q, v = jdyn.load("puma560"), jnp.linspace(0.1, 0.6, 6), jnp.linspace(-0.5, 0.5, 6)
    turned = jdyn.pose((1.0, 2.0, 3.0), (0.0, 0.0, np.pi / 2))
    thing = jdyn.World().with_object("arm", model, placement=turned, q=q, v=v)["arm"]
    tip = model.body_names[-1]
    np.testing.assert_allclose(thing.dynamic.mass_matrix, jdyn.mass_matrix(model, q), atol=1e-14)
    np.testing.assert_allclose(thing.dynamic.bias_forces, jdyn.bias_forces(model, q, v), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(thing.dynamic.kinetic_energy, jdyn.kinetic_energy(model, q, v), rtol=1e-12)
    lifted = jdyn.potential_energy(model, q) + 9.81 * 3 * jnp.sum(model.inertias.mass)
    np.testing.assert_allclose(thing.dynamic.potential_energy, lifted, rtol=1e-12)
    J = jdyn.jacobian(model, q, tip, frame="aligned")
    R = np.kron(np.eye(2), turned.rotation)
    np.testing.assert_allclose(thing.kinematic.jacobian(tip), R @ J, atol=1e-12)
    np.testing.assert_allclose(thing.kinematic.velocity(tip), R @ J @ v, atol=1e-12)
    impulse = jnp.array([1.0, -2.0, 0.5])
    expected = np.linalg.solve(jdyn.mass_matrix(model, q), (R @ J)[3:].T @ impulse)
    np.testing.assert_allclose(thing.dynamic.response(tip, impulse), expected, rtol=1e-9)
    place = turned @ jdyn.frame_pose(model, q, tip)
    np.testing.assert_allclose(thing.kinematic.pose(tip).translation, place.translation, atol=1e-12)
    assert len(thing.graphical.surfaces("skeleton")) > 6
    ball = two_balls()["right"]
    np.testing.assert_allclose(ball.geometric.box.upper, [1 + RADIUS, RADIUS, RADIUS], rtol=1e-12)
    assert ball.geometric.shapes == ("right/ball",)
    assert ball.at(jnp.array([0, 0, 1.0, 1, 0, 0, 0])).geometric.box.upper[2] == 1 + RADIUS


def test_worlds_are_arguments_of_compiled_functions():
    world = two_arms()
    end = jax.jit(lambda world: world.simulate(0.5, saveat=jnp.array([0.5])).q)(world)
    np.testing.assert_allclose(end[0], world.simulate(0.5, saveat=jnp.array([0.5])).q[0], rtol=tol("float64"))


@pytest.mark.slow
def test_two_objects_move_as_the_merged_system():
    world = two_balls()
    system = world.merged()
    alone = jdyn.simulate(system, world.start(), 2.0, saveat=jnp.linspace(0, 2, 5), max_events=8)
    np.testing.assert_allclose(collided(world).q, alone.q, atol=1e-12)
    np.testing.assert_allclose(collided(world).v, alone.v, atol=1e-12)


@pytest.mark.exhaustive
def test_many_worlds_bounce_at_once():
    """Speeds after a head-on impact: (1 − e)/2 and (1 + e)/2."""

    def bounced(e, speed):
        world = two_balls(e, 0.0, spin=(0.0, 0.0, 0.0), y=0.0).with_start(
            "left", v=jnp.array([0.0, 0, 0, 1, 0, 0]) * speed
        )
        motion = collided(world)
        return motion["left"].v[-1, 3], motion["right"].v[-1, 3], motion.impacts

    e, speed = jnp.array([0.0, 0.5, 1.0]), jnp.array([1.0, 1.5, 2.0])
    left, right, impacts = jax.vmap(bounced)(e, speed)
    np.testing.assert_allclose(left, speed * (1 - e) / 2, atol=1e-12)
    np.testing.assert_allclose(right, speed * (1 + e) / 2, atol=1e-12)
    lost = jnp.sum(impacts.energy, axis=(1, 2))
    np.testing.assert_allclose(lost, -MASS / 4 * speed**2 * (1 - e**2), atol=1e-12)
    lane = jax.tree.map(lambda x: x[1], impacts)
    np.testing.assert_allclose(lane.records[0].t, 0.8 / 1.5, rtol=1e-12)
    with pytest.raises(ValueError, match="records: expected the impacts of one motion, got a batch"):
        _ = impacts.records


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_pass_through_a_collision():
    """Place of the right ball, (1 + e) u/2 (2 − 0.8/u), and its derivatives."""

    def place(e, u):
        world = two_balls(e, 0.0, spin=(0.0, 0.0, 0.0), y=0.0).with_start("left", v=jnp.array([0.0, 0, 0, 1, 0, 0]) * u)
        return collided(world)["right"].q[-1, 0]

    e, u = 0.6, 1.3
    value, slopes = jax.value_and_grad(place, (0, 1))(e, u)
    np.testing.assert_allclose(value, (1 + e) / 2 * (2 * u - 0.8), rtol=1e-10)
    np.testing.assert_allclose(slopes, [(2 * u - 0.8) / 2, 1 + e], rtol=1e-8)
