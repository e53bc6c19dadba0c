"""Sensors by themselves: laws of mechanics, derivatives, imperfections."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn import sensors as s
from tests.errors import tol

pytestmark = pytest.mark.fast_compile

OFFSET = jdyn.pose((0.1, -0.2, 0.3), rpy=(0.3, 0.2, 0.1))
FRAME_SENSORS = [
    s.FramePosition, s.FrameQuaternion, s.FrameAxis, s.FrameLinearVelocity, s.FrameAngularVelocity,
    s.FrameLinearAcceleration, s.FrameAngularAcceleration,
]  # fmt: skip


def all_sensors(frame, reference, joint):
    return [
        *(kind(f"{kind.__name__} in world", frame, OFFSET) for kind in FRAME_SENSORS),
        *(kind(kind.__name__, frame, OFFSET, reference, OFFSET) for kind in FRAME_SENSORS),
        *(kind(kind.__name__, frame, OFFSET) for kind in (s.Gyro, s.Velocimeter, s.Accelerometer, s.Magnetometer)),
        *(kind(kind.__name__, frame, OFFSET) for kind in (s.Force, s.Torque)),
        *(kind(kind.__name__, frame) for kind in (s.SubtreeCenterOfMass, s.SubtreeLinearVelocity)),
        *(kind(kind.__name__, "world") for kind in (s.SubtreeAngularMomentum,)),
        *(kind(kind.__name__, joint) for kind in (s.JointPosition, s.JointVelocity)),
        *(kind(kind.__name__) for kind in (s.Clock, s.KineticEnergy, s.PotentialEnergy)),
    ]


@pytest.fixture(scope="module")
def floating():
    model = jdyn.ROBOTS["chain"](2, floating_base=True)
    return jdyn.System(model, sensors=all_sensors("link2", "link1", "joint2"))


@pytest.mark.slow
def test_free_fall_reads_nothing_and_rest_reads_gravity(floating):
    system = dataclasses.replace(floating, sensors=[s.Accelerometer("imu", "link2", OFFSET), s.Force("cut", "link2")])
    model = system.model
    state = system.state(model.integrate(model.neutral(), 0.3 * jnp.arange(1.0, model.nv + 1)))
    held = jdyn.gravity_forces(model, state.q)
    falling, resting = (system.sense(state, action) for action in (0 * held, held))
    X = jdyn.frame_pose(model, state.q, "link2")
    g = -X.rotation.T @ model.gravity
    np.testing.assert_allclose(falling["imu"], np.zeros(3), atol=1e-12)
    np.testing.assert_allclose(falling["cut"], np.zeros(3), atol=1e-12)
    np.testing.assert_allclose(resting["imu"], OFFSET.rotation.T @ g, atol=1e-12)
    np.testing.assert_allclose(resting["cut"], model.inertias.mass[1] * g, atol=1e-12)


@pytest.mark.slow
def test_an_arm_at_rest_carries_the_weight_above():
    model = jdyn.load("panda")
    system = jdyn.System(
        model,
        controller=jdyn.GravityCompensation(model),
        sensors=[kind(f"{kind.__name__} {b}", b) for kind in (s.Force, s.Torque) for b in model.body_names],
    )
    q = model.neutral() + 0.1 * jnp.arange(1.0, model.nq + 1)
    seen, X = system.sense(system.state(q)), jdyn.forward_kinematics(model, q)
    for body, name in enumerate(model.body_names):
        above = s.SubtreeCenterOfMass("", name)
        weight = -jnp.sum(model.inertias.mass[body:]) * model.gravity
        center = above.value(s.Reading.of(model, q, jnp.zeros(model.nv)))
        torque = jnp.cross(center - X.translation[body], weight)
        np.testing.assert_allclose(seen[f"Force {name}"], X.rotation[body].T @ weight, atol=1e-10)
        np.testing.assert_allclose(seen[f"Torque {name}"], X.rotation[body].T @ torque, atol=1e-10)


def touching_arm(**parts):
    """A double pendulum whose tip is in the ground, drawn by a spring and held by a loop."""
    builder = jdyn.Builder("arm")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        where = jdyn.pose((0.0, 0.0, 0.0 if parent == "world" else -1.0))
        about = {"com": (0.0, 0.0, -0.5), "inertia": 0.1 * jnp.ones(3), "damping": 0.3}
        builder.add_link(name, jdyn.Revolute((0, 1, 0)), parent=parent, placement=where, mass=1.0, **about)
    builder.add_frame("tip", "lower", jdyn.pose((0.0, 0.0, -1.0)))
    builder.add_shape("lower", "sphere", 0.1, placement=jdyn.pose((0.0, 0.0, -1.0)), role="collision", name="foot")
    builder.add_shape("world", "plane", (0, 0), placement=jdyn.pose((0.0, 0.0, -1.71)), role="collision", name="floor")
    model = builder.build()
    return jdyn.System(
        model,
        controller=lambda t, q, v: jnp.array([3.0, -2.0]),
        contact=jdyn.CompliantContact(),
        elements=[jdyn.elements.PointSpring("tip", "world", stiffness=20.0, damping=1.0, rest_length=0.5)],
        **parts,
    )


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
def test_torques_in_joints_are_those_of_motors_whatever_acts_from_outside(held):
    """Contact, springs and constraints push bodies; what is left along the axis of a joint is its motor and damper."""
    rod = jdyn.constraints.Distance("tip", "world", length=1.5, point_b=(0.3, 0.2, 0.4))
    # The lower half of the lower link is a piece of its own.
    piece = jdyn.SpatialInertia.from_com(jnp.array(0.5), jnp.array([0.0, 0.0, -0.7]), 0.02 * jnp.eye(3))
    limb = s.Limb("lower", piece=piece, carried=(), shapes=("foot",))
    sensors = [
        *(kind(f"{kind.__name__} {body}", body) for kind in (s.Force, s.Torque) for body in ("upper", "lower")),
        s.Force("piece", "tip", limb=limb),
        s.FrameLinearAcceleration("a", "lower", jdyn.pose((0.0, 0.0, -0.7)), from_free_fall=True),
        s.FrameAxis("x", "tip", axis="x"),
        s.FrameAxis("z", "tip", axis="z"),
    ]
    system = touching_arm(constraints=[rod] if held else [], sensors=sensors)
    q, v = jnp.array([0.9, -0.8]), jnp.array([-0.1, -1.0])
    state = system.state(q, v)
    seen = system.sense(state)
    torques = [seen["Torque upper"][1], seen["Torque lower"][1]]
    np.testing.assert_allclose(torques, jnp.array([3.0, -2.0]) - 0.3 * v, atol=1e-9)
    if not held:
        motion = jdyn.simulate(system, state, 1e-3, saveat=jnp.array([0.0, 1e-3]))
        foot = motion.contacts.force("foot")[0]
        assert jnp.linalg.norm(foot) > 1
        axes = jnp.stack([seen["x"], jnp.array([0.0, 1.0, 0.0]), seen["z"]])
        np.testing.assert_allclose(seen["piece"], axes @ (0.5 * seen["a"] - foot), atol=1e-9)
        for name, row in motion.sensors.items():
            np.testing.assert_allclose(row[0], seen[name], atol=1e-9)


@pytest.mark.slow
def test_torques_in_joints_are_not_those_of_ropes_and_thrusters():
    """Neither is a motor in the joint. MuJoCo 4.0 leaves ropes out, as here, but takes the thrust for a force that the
    joint transmits."""
    model, at = touching_arm().model.without_shapes(), jdyn.transmissions.PathPoint
    rope = jdyn.transmissions.SpatialTendon([at("world", [1.0, 0.0, 0.5]), at("upper", [0.1, 0.0, -0.9]), at("tip")])
    thruster = jdyn.transmissions.GearedFrame("tip", [0.0, 0.3, 0.0, 2.0, 0.0, 1.0])
    system = jdyn.System(
        model,
        actuators=[jdyn.actuators.Motor(x) for x in ("upper", jdyn.transmissions.Geared(rope, 2.0), thruster)],
        elements=[jdyn.elements.TendonSpring(rope, 50.0, 1.0)],
        sensors=[s.Torque(body, body) for body in ("upper", "lower")],
    )
    v = jnp.array([-0.1, -1.0])
    seen = system.sense(system.state(jnp.array([0.9, -0.8]), v), jnp.array([3.0, 5.0, 7.0]))
    np.testing.assert_allclose([seen["upper"][1], seen["lower"][1]], jnp.array([3.0, 0.0]) - 0.3 * v, atol=1e-9)


def test_relative_accelerations_are_rates_of_relative_velocities(floating):
    model = floating.model
    rng = np.random.default_rng(3)
    q = model.integrate(model.neutral(), jnp.asarray(rng.normal(size=model.nv)))
    v, a = jnp.asarray(rng.normal(size=(2, model.nv)))
    about = ("link2", OFFSET, "link1", OFFSET)

    def velocities(q, v):
        reading = s.Reading.of(model, q, v)
        return [kind("", *about).value(reading) for kind in (s.FrameLinearVelocity, s.FrameAngularVelocity)]

    @jax.jit
    def both():
        reading = s.Reading.of(model, q, v, a=a)
        kinds = (s.FrameLinearAcceleration, s.FrameAngularAcceleration)
        return jax.jvp(velocities, (q, v), (model.rate(q, v), a))[1], [
            kind("", *about).value(reading) for kind in kinds
        ]

    for rate, found in zip(*both(), strict=True):
        np.testing.assert_allclose(found, rate, atol=1e-11)


@pytest.mark.slow
def test_derivatives_at_rest_are_finite_and_agree_in_both_modes(floating):
    model = floating.model

    def all_values(z):
        q, v, tau = jnp.split(z, [model.nq, model.nq + model.nv])
        return jnp.concatenate([jnp.ravel(x) for x in floating.sense(floating.state(q, v), tau).values()])

    z = jnp.concatenate([model.neutral(), jnp.zeros(2 * model.nv)])
    forwards, backwards = jax.jit(lambda z: (jax.jacfwd(all_values)(z), jax.jacrev(all_values)(z)))(z)
    assert jnp.all(jnp.isfinite(forwards)) and jnp.any(forwards != 0)
    np.testing.assert_allclose(forwards, backwards, atol=tol(jnp.float64, condition=1e3))


class TestImperfect:
    def reading(self, t=0.0):
        return s.Reading.of(jdyn.load("pendulum"), jnp.ones(1), jnp.zeros(1), t=t)

    def test_noise_depends_on_key_instant_and_name(self):
        def drawn(t, key, name="tip"):
            clean = s.FramePosition(name, "tip")
            noisy = s.Imperfect(clean, noise=0.1, key=jax.random.key(key))
            return noisy.value(self.reading(t)) - clean.value(self.reading(t))

        first = drawn(0.5, 1)
        assert jnp.all(first == drawn(0.5, 1))
        for other in (drawn(0.5000001, 1), drawn(0.5, 2), drawn(0.5, 1, "other")):
            assert jnp.all(first != other)

    def test_noise_has_its_deviation(self):
        noisy = s.Imperfect(s.Clock("t"), noise=0.1, bias=2.0, key=jax.random.key(0))
        reading, ts = self.reading(), jnp.linspace(0, 1, 2000)
        values = jax.vmap(lambda t: noisy.value(dataclasses.replace(reading, t=t)) - t)(ts)
        assert abs(jnp.mean(values) - 2) < 0.01
        assert abs(jnp.std(values) - 0.1) < 0.01

    def test_steps_and_range(self):
        clock = s.Imperfect(s.Clock("t"), bias=0.1, quantum=0.25, cutoff=1.0)

        def value(t):
            return clock.value(dataclasses.replace(self.reading(), t=t))

        for t, expected, slope in ((0.3, 0.5, 1.0), (0.26, 0.25, 1.0), (3.0, 1.0, 0.0), (-3.0, -1.0, 0.0)):
            found, rate = jax.value_and_grad(value)(jnp.array(t))
            assert (float(found), float(rate)) == (expected, slope)

    def test_a_copy_with_other_numbers_has_the_same_noise(self):
        noisy = s.Imperfect(s.Clock("t"), noise=0.1, key=jax.random.key(0, impl="rbg"))
        shifted = dataclasses.replace(noisy, bias=1.0)
        difference = shifted.value(self.reading()) - noisy.value(self.reading())
        np.testing.assert_allclose(difference, 1.0, atol=1e-15)

    def test_noise_needs_a_key(self):
        with pytest.raises(ValueError, match=r"Imperfect\.key: noise needs a key"):
            s.Imperfect(s.Clock("t"), noise=0.1)


def test_wrong_sensors_are_refused():
    model = jdyn.load("pendulum")
    with pytest.raises(ValueError, match="sensors: expected another name for each, got 't' twice"):
        jdyn.System(model, sensors=[s.Clock("t"), s.Gyro("t", "tip")])
    with pytest.raises(ValueError, match="expected an acceleration relative to free fall or to a reference, got both"):
        s.FrameLinearAcceleration("a", "tip", reference="link1", from_free_fall=True)
    with pytest.raises(ValueError, match="sensors: expected a list of them"):
        jdyn.System(model, sensors=[1.0])
    for sensor, message in (
        (s.Gyro("x", "elbow"), "no body or frame is called 'elbow'"),
        (s.JointPosition("x", "elbow"), "no joint is called 'elbow'"),
        (s.Force("x", "world"), "Force 'x': expected a frame of the body that transmits the force, got 'world'"),
    ):
        system = jdyn.System(model, sensors=[sensor])
        with pytest.raises(ValueError, match=message):
            system.sense(system.state())


def test_a_sensor_that_hides_its_use_of_forces_is_told():
    class Hidden(s.Sensor):
        uses_forces = False

        def value(self, reading):
            return reading.acceleration("tip")

    system = jdyn.System(jdyn.load("pendulum"), sensors=[Hidden("x")])
    with pytest.raises(ValueError, match="says so by `uses_forces`"):
        system.sense(system.state())


def test_numbers_have_names():
    model = jdyn.load("pendulum")
    system = jdyn.System(model, sensors=[s.Magnetometer("north", "tip", field=[1.0, 0.0, 0.0])])
    assert "sensors.0.field" in jdyn.parameters(system)
    changed = jdyn.vary(system, {"sensors.0.field": [0.0, 2.0, 0.0]})
    np.testing.assert_array_equal(changed.sense(changed.state())["north"], [0.0, 2.0, 0.0])
