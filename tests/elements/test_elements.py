"""Force elements: those that are there against closed forms and MuJoCo, and one of a user."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jdyn
from tests.contact.scenes import ball

pytestmark = pytest.mark.fast_compile

ARM = jdyn.load("double_pendulum")
Q0, V0 = jnp.array([0.4, -0.3]), jnp.array([0.5, 0.2])
END = diffrax.SaveAt(t1=True)


# A body of 1 kg that is free to move, without weight.
BODY, CENTRE = jdyn.vary(jdyn.ROBOTS["chain"](1, floating_base=True), {"gravity": jnp.zeros(3)}), [0.0, 0.0, -0.5]


class Magnet(jdyn.ForceElement):
    """What a user may write: a frame is drawn to a point of the world."""

    frame: jdyn.Name = eqx.field(static=True)
    place: jax.Array
    strength: float

    def force(self, t, kinematics, memory):
        away = kinematics.position(self.frame) - self.place
        return kinematics.push(self.frame, force=-self.strength * away / (0.1 + away @ away) ** 2)


MAGNET = Magnet("tip", jnp.array([1.0, 0.0, -0.5]), 3.0)


# One of a user.


def end(strength, start, solver=None, **changes):
    system = jdyn.System(ARM, elements=[dataclasses.replace(MAGNET, strength=strength, **changes)])
    return jdyn.simulate(system, system.state(start, V0), 0.5, saveat=END, solver=solver).q[-1]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_an_element_of_a_user_is_differentiated_and_batched():
    check_grads(jax.jit(end), (3.0, Q0), order=1, modes=["rev"], atol=1e-5, rtol=1e-5)
    strengths = jnp.array([0.0, 3.0, 6.0])
    batch = jax.vmap(end, (0, None))(strengths, Q0)
    np.testing.assert_allclose(batch, [end(strength, Q0) for strength in strengths], atol=1e-10)
    assert np.abs(batch[0] - batch[1]).max() > 0.1
    systems = jax.vmap(lambda x: jdyn.vary(jdyn.System(ARM, elements=[MAGNET]), {"elements.0.strength": x}))(strengths)
    lanes = jdyn.simulate_batch(systems, jdyn.State(Q0, V0), 0.5, in_axes={"system": 0})
    np.testing.assert_allclose(lanes.q[:, -1], batch, atol=1e-6)
    assert np.isfinite(lanes.accelerations).all()


@pytest.mark.slow
@pytest.mark.parametrize("solver", [jdyn.solvers.ROSJ43(), jdyn.solvers.Rodas5P()], ids=["ROSJ43", "Rodas5P"])
def test_slopes_change_no_result(solver):
    ends = [end(3.0, Q0, solver, implicit=implicit) for implicit in ("no", "joints", "coupled")]
    np.testing.assert_allclose(ends, np.broadcast_to(ends[0], (3, 2)), atol=1e-5)


@pytest.mark.slow
def test_a_trajectory_knows_elements():
    motion = jdyn.simulate(ARM, Q0, V0, 0.5, elements=[MAGNET])
    q, v = motion.q[7], motion.v[7]
    tau = MAGNET.generalized(ARM, 0.0, q, v)
    np.testing.assert_allclose(motion.accelerations[7], jdyn.forward_dynamics(ARM, q, v, tau), atol=1e-9)
    np.testing.assert_array_equal(motion.tau, np.zeros_like(motion.v))
    system = motion.system
    assert jdyn.parameters(system)["elements.0.strength"] == 3.0
    state, _ = system.step(system.state(Q0, V0), dt=1e-4)
    np.testing.assert_allclose((state.v - V0) / 1e-4, motion.accelerations[0], rtol=1e-3)


class Engine(jdyn.ForceElement):
    """A thrust that follows a command with a lag."""

    command: float
    lag: float

    def start(self, t, kinematics):
        return jnp.zeros_like(kinematics.q[0])

    def rate(self, t, kinematics, memory):
        return (self.command - memory) / self.lag

    def force(self, t, kinematics, memory):
        return kinematics.push("link1", force=jnp.array([0.0, 0.0, 1.0]) * memory)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [None, jdyn.solvers.Rodas5P()], ids=["Automatic", "Rodas5P"])
def test_an_element_has_a_state(solver, tmp_path):
    """It is integrated, saved, and part of accelerations and derivatives."""
    drag = jdyn.elements.Drag("link1", point=CENTRE)
    system = jdyn.System(BODY, elements=[drag, Engine(3.0, 0.2)])
    start = system.state()
    motion = jdyn.simulate(system, start, 1.0, solver=solver)
    assert start.parts["elements"] == (None, 0.0)
    decay = np.exp(-motion.ts / 0.2)
    np.testing.assert_allclose(motion.parts["elements"][1], 3 * (1 - decay), atol=5e-5)
    np.testing.assert_allclose(motion.v[:, 5], 3 * (motion.ts - 0.2 * (1 - decay)), atol=5e-5)
    motion.save(tmp_path / "motion.npz")
    for known in (motion, jdyn.Trajectory.load(tmp_path / "motion.npz").with_system(system)):
        np.testing.assert_allclose(known.accelerations[:, 5], 3 * (1 - decay), atol=5e-5)
    if solver is not None:
        return
    one, _ = system.step(start, dt=0.01)
    np.testing.assert_allclose(one.parts["elements"][1], motion.parts["elements"][1][1], atol=1e-6)
    rest = jdyn.simulate(system, one, 1.0, t0=0.01)
    np.testing.assert_allclose(rest.q[-1], motion.q[-1], atol=1e-6)

    def end(lag):
        changed = jdyn.vary(system, {"elements.1.lag": lag})
        return jdyn.simulate(changed, start, 1.0, saveat=END).v[-1, 5]

    np.testing.assert_allclose(jax.grad(end)(0.2), 3 * (6 * np.exp(-5.0) - 1), atol=1e-4)


def test_refusals():
    with pytest.raises(ValueError, match=r"elements: expected a list of them, such as \[jdyn.elements.PointSpring"):
        jdyn.System(ARM, elements=[lambda t, q, v: -v])
    with pytest.raises(ValueError, match=r"Magnet.implicit: expected 'no', 'joints' or 'coupled', got 'yes'"):
        dataclasses.replace(MAGNET, implicit="yes")
    with pytest.raises(ValueError, match="no body or frame is called 'tib'; there are link1"):
        jdyn.simulate(ARM, Q0, V0, 0.1, elements=[jdyn.elements.Drag("tib")])

    class Wrong(jdyn.ForceElement):
        def force(self, t, kinematics, memory):
            return jnp.ones(3)

    with pytest.raises(ValueError, match=r"Wrong.force: expected generalized forces of shape \(2,\) for 'double_pend"):
        jdyn.simulate(ARM, Q0, V0, 0.1, elements=[Wrong()])


# Closed forms and MuJoCo.


@pytest.mark.slow
def test_a_mass_on_a_spring_goes_round_an_ellipse():
    spring = jdyn.elements.PointSpring("link1", "world", stiffness=4.0, point_a=CENTRE, point_b=CENTRE)
    motion = jdyn.simulate(BODY, BODY.neutral().at[0].set(1.0), jnp.zeros(6).at[4].set(3.0), 2.0, elements=[spring])
    turn = 2 * motion.ts
    np.testing.assert_allclose(motion.q[:, 0], np.cos(turn), atol=2e-5)
    np.testing.assert_allclose(motion.q[:, 1], 1.5 * np.sin(turn), atol=2e-5)
    np.testing.assert_allclose(motion.energy, 0.5 * (4 + 9), rtol=1e-5)
    rows = {str(line.get_label()): np.asarray(line.get_ydata()) for line in jdyn.plots.energy(motion).lines}
    np.testing.assert_allclose(rows["elements"], motion.energy - rows["kinetic"], atol=1e-12)


def test_drag_has_a_terminal_velocity():
    """And what turns in it slows down."""
    model, speed = jdyn.vary(BODY, {"gravity": jnp.array([0.0, 0.0, -9.81])}), np.sqrt(9.81 / 0.5)
    inertia = jdyn.parameters(model)["body:link1.inertia"][2, 2]
    air = jdyn.elements.Drag("link1", quadratic=0.5, turning=inertia, wind=[0.0, 0.0, 1.0], point=CENTRE)
    start = jnp.array([0, 0, 0.3, 0, 0, 1.0])
    motion = jdyn.simulate(model, model.neutral(), start, 2.0, elements=[air])
    np.testing.assert_allclose(1 - motion.v[:, 5], speed * np.tanh(9.81 / speed * motion.ts), atol=2e-4)
    np.testing.assert_allclose(motion.v[:, 2], 0.3 * np.exp(-motion.ts), atol=1e-5)


ROBOT = """<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <site name="wall" pos="0.2 0.1 0.5"/>
    <body name="base">
      <joint name="slide" type="slide" axis="1 0 1"/>
      <joint name="turn" axis="0 0 1"/>
      <inertial pos="0.05 0 0.02" mass="2" diaginertia="0.02 0.03 0.04"/>
      <body name="arm" pos="0.1 0 0" euler="0.3 0 0.2">
        <joint name="hinge" axis="0 1 0"/>
        <inertial pos="0 0 -0.2" mass="1" diaginertia="0.01 0.01 0.005"/>
        <site name="hand" pos="0 0.02 -0.4" euler="0.5 0 0"/>
      </body>
    </body>
  </worldbody>{}
</mujoco>"""
SITES = '<site site="wall"/><site site="hand"/>'
TENDON = f'<tendon><spatial stiffness="50" damping="3" springlength="0.3">{SITES}</spatial></tendon>'


@pytest.mark.slow
def test_mujoco_accelerates_as_much():
    """By a spatial tendon, and a force and a torque in world axes; the tendon's energy is the same, too."""
    mujoco = pytest.importorskip("mujoco")
    model, peer = jdyn.load(ROBOT.format("")), mujoco.MjModel.from_xml_string(ROBOT.format(TENDON))
    data = mujoco.MjData(peer)
    tendon = jdyn.elements.PointSpring("hand", "world", 50.0, 3.0, 0.3, point_b=[0.2, 0.1, 0.5])
    force, torque = jnp.array([1.0, -2.0, 3.0]), jnp.array([0.3, 0.1, -0.2])
    gust = jdyn.elements.FrameForce("arm", lambda t: t * force, torque, point=[0.0, 0.0, -0.2])
    q, v = jnp.array([0.2, -0.4, 0.7]), jnp.array([0.5, -1.0, 0.3])
    data.qpos[:], data.qvel[:], data.xfrc_applied[2] = q, v, np.concatenate([2 * force, torque])
    mujoco.mj_forward(peer, data)
    mujoco.mj_energyPos(peer, data)
    motion = jdyn.simulate(model, q, v, 2.001, t0=2.0, elements=[tendon, gust])
    np.testing.assert_allclose(motion.accelerations[0], data.qacc, rtol=1e-9)
    stored = motion.energy[0] - jdyn.kinetic_energy(model, q, v)
    np.testing.assert_allclose(stored, data.energy[0], rtol=1e-9)
    thruster = jdyn.elements.FrameForce("arm", [0.0, 0.0, 2.0], axes="frame")
    up = jdyn.frame_pose(model, q, "arm").rotation[:, 2]
    expected = jdyn.elements.FrameForce("arm", 2 * up).generalized(model, 0.0, q, v)
    np.testing.assert_allclose(thruster.generalized(model, 0.0, q, v), expected, atol=1e-12)


# Derivatives and stiffness.


@pytest.mark.parametrize("rest_length", [0.0, 3.0])
def test_slopes_of_a_spring(rest_length):
    """Symmetric and positive semidefinite ones, and Jacobians as far as they say so."""
    spring = jdyn.elements.PointSpring("tip", "world", 7.0, 2.0, rest_length, point_b=[0.2, 0.0, 0.3])
    slopes = jax.jit(lambda q, v: spring.slopes(jnp.array(0.0), jdyn.elements.Kinematics.of(ARM, q, v), None))(
        Q0, 0 * V0
    )
    by_v = jax.jit(jax.jacfwd(lambda v: spring.generalized(ARM, 0.0, Q0, v)))(0 * V0)
    np.testing.assert_allclose(slopes[1], -by_v, atol=1e-12)
    for slope in slopes:
        np.testing.assert_allclose(slope, slope.T, atol=1e-12)
        assert np.linalg.eigvalsh(slope).min() > -1e-12


MEETING = jdyn.elements.PointSpring("tip", "world", 5.0, 1.0, point_b=[0.0, 0.0, -2.0])


@pytest.mark.parametrize(
    "element", [MEETING, dataclasses.replace(MEETING, rest_length=0.3), jdyn.elements.Drag("tip", 0.1, 0.2, 0.1, 0.2)]
)
def test_derivatives_are_finite_where_points_meet_and_nothing_moves(element):
    still = jnp.zeros(2)
    for mode in (jax.jacfwd, jax.jacrev):
        by_q, by_v = jax.jit(mode(lambda q, v: element.generalized(ARM, 0.0, q, v), (0, 1)))(still, still)
        assert np.isfinite(by_q).all() and np.isfinite(by_v).all()
    if element is MEETING:
        J = jdyn.jacobian(ARM, still, "tip", frame="aligned")[3:]
        np.testing.assert_allclose(by_q, -5.0 * J.T @ J, atol=1e-12)


@pytest.mark.slow
def test_slopes_lengthen_steps():
    """Of a damper that is stiff for both joints: also in steps of a given length, in float32."""
    damper = jdyn.elements.PointSpring("tip", "world", 1e3, 1e4, point_b=[1.0, 0, -1.0])
    implicit, explicit = (
        jdyn.simulate(ARM, Q0, V0, 0.5, elements=[dataclasses.replace(damper, implicit=how)])
        for how in ("coupled", "no")
    )
    np.testing.assert_allclose(explicit.q[-1], implicit.q[-1], atol=1e-4)
    assert 5 * int(implicit.stats["accepted_steps"]) < int(explicit.stats["accepted_steps"])
    system = jdyn.System(ARM.astype(jnp.float32), elements=[damper])
    state, _ = system.step(system.state(Q0.astype(jnp.float32), V0.astype(jnp.float32)), dt=0.005)
    assert state.q.dtype == jnp.float32
    np.testing.assert_allclose(state.q, implicit.q[1], atol=1e-3)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_functions_close_over_what_is_differentiated():
    """In reverse mode, backwards in time as well."""

    def fallen(thrust, t1):
        rocket = jdyn.elements.FrameForce("link1", lambda t: jnp.array([0.0, 0.0, thrust]) * t, point=CENTRE)
        motion = jdyn.simulate(BODY, BODY.neutral(), jnp.zeros(6), t1, elements=[rocket])
        return motion.q[-1, 2]

    for t1 in (1.0, -1.0):
        value, slope = jax.value_and_grad(fallen)(3.0, t1)
        np.testing.assert_allclose([value, slope], [t1**3 / 2, t1**3 / 6], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("contact", [jdyn.ConvexContact(), jdyn.CompliantContact()])
def test_a_stiff_spring_lifts_a_ball_off_the_ground_in_long_steps(contact):
    spring = jdyn.elements.PointSpring("body", "world", 1e4, 5e2, 0.05, point_b=[0.0, 0.0, 0.4])
    system = jdyn.System(ball(), contact=contact, elements=[spring])

    def stepped(state, _):
        return system.step(state, dt=0.01)[0], None

    start = system.state(system.model.neutral().at[2].set(0.1))
    state, _ = jax.jit(lambda state: jax.lax.scan(stepped, state, length=80))(start)
    np.testing.assert_allclose(state.q[2], 0.35 - 9.81 / 1e4, atol=1e-6)


class Whirl(jdyn.ForceElement):
    """A force across the displacement of two slides: its slopes have no symmetric part."""

    implicit = "coupled"

    strength: jax.Array

    def force(self, t, kinematics, memory):
        x, y = kinematics.q
        return self.strength * jnp.stack([y, -x])


@pytest.mark.slow
def test_slopes_that_are_not_symmetric_leave_derivatives_of_convex_steps_right():
    """Against differences, of a ball on two slides, far above the ground, with k h² of a tenth and of two masses."""
    builder = jdyn.Builder("slides")
    builder.add_link("x", jdyn.Prismatic((1, 0, 0)), mass=0.0)
    builder.add_link("ball", jdyn.Prismatic((0, 1, 0)), parent="x", placement=(0, 0, 1), mass=1.0, inertia=1e-3)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    model, q0 = builder.build(), jnp.array([0.3, -0.2])

    @jax.jit
    def after(q, strength):
        system = jdyn.System(model, contact=jdyn.ConvexContact(), elements=(Whirl(strength),))
        return system.step(system.state(q), dt=0.01)[0].v

    for strength in (1e3, 2e4):
        steps = 1e-5 * jnp.eye(2)
        expected = jnp.stack([(after(q0 + e, strength) - after(q0 - e, strength)) / 2e-5 for e in steps], axis=1)
        np.testing.assert_allclose(jax.jacfwd(after)(q0, strength), expected, rtol=1e-6, atol=1e-6 * strength * 0.01)
        assert np.max(np.abs(expected)) > 1
