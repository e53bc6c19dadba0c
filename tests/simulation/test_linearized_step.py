"""Linearized steps against MuJoCo, finite differences, and the model's own linearization."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn import actuators, sensors
from jdyn.interop import MujocoMap
from jdyn.simulation.deviation import deviating, deviation, deviation_size
from tests.contact.scenes import ball

pytestmark = pytest.mark.fast_compile

ONE_EVALUATION = jdyn.solvers.SemiImplicitEuler()

MJCF = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.01" integrator="Euler"><flag eulerdamp="disable" contact="disable"/></option>
  <worldbody>
    <body pos="0 0 .5">
      <joint name="shoulder" axis="0 1 .2" damping=".3" armature=".05"/>
      <inertial pos=".1 0 .1" mass="2" diaginertia=".1 .2 .25"/>
      <body pos="0 .1 -.2" quat="1 .5 0 0">
        <joint name="rail" type="slide" axis="1 0 0" stiffness="20" damping="1"/>
        <inertial pos="0 .03 -.1" mass="1" diaginertia=".02 .03 .04"/>
        <body pos="0 0 -.3">
          <joint name="wrist" type="ball" damping=".1"/>
          <inertial pos="0 0 -.02" mass=".5" diaginertia=".01 .012 .013"/>
          <site name="tool" pos=".1 0 -.1" euler=".3 .2 .1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="servo" joint="shoulder" kp="20" kv="2"/>
    <general name="slow" joint="rail" dyntype="filter" dynprm=".1" gainprm="30" biastype="affine" biasprm="0 -8 -1"/>
  </actuator>
  <sensor>
    <jointpos joint="rail"/><jointvel joint="shoulder"/><gyro site="tool"/><accelerometer site="tool"/>
    <framepos objtype="site" objname="tool"/><actuatorfrc actuator="servo"/><actuatorfrc actuator="slow"/>
  </sensor>
</mujoco>
"""


@pytest.mark.slow
def test_against_mujoco():
    """Its Euler steps are semi-implicit, explicit in dampers if asked to be; differences of 1e-6 err by 1e-10."""
    system, theirs = jdyn.load_system(MJCF), mujoco.MjModel.from_xml_string(MJCF)
    between, data, rng = MujocoMap(system.model, theirs), mujoco.MjData(theirs), np.random.default_rng(0)
    q = system.model.integrate(system.model.neutral(), jnp.asarray(rng.normal(size=5)))
    v, u, activation = rng.normal(size=5), rng.normal(size=2), 0.7
    data.qpos, data.qvel = between.q_to_peer(q), between.v_to_peer(q, v)
    data.ctrl, data.act = u, activation
    sizes = [(11, 11), (11, 2), (theirs.nsensordata, 11), (theirs.nsensordata, 2)]
    matrices = [np.zeros(size) for size in sizes]
    mujoco.mjd_transitionFD(theirs, data, 1e-6, True, *matrices)

    state = system.state(q, jnp.asarray(v))
    parts = jax.tree.map(lambda x: jnp.full_like(x, activation), state.parts)
    step = system.linearize_step(jdyn.State(state.q, state.v, parts), u, 0.01, solver=ONE_EVALUATION)
    assert step.state_names[-2:] == ("v.wrist[2]", "controller.actuators.slow")
    assert step.action_names == ("servo", "slow")
    assert len(step.sensor_names) == theirs.nsensordata and step.sensor_names[2] == "gyro[0]"
    # Joints that turn, slide or are balls: where they are does not matter to how velocities correspond.
    T, I = between.velocity_map(np.asarray(q)), np.eye(1)
    to_theirs = np.block([[T, np.zeros((5, 6))], [np.zeros((5, 5)), T, np.zeros((5, 1))], [np.zeros((1, 10)), I]])
    from_theirs = np.linalg.inv(to_theirs)
    found = to_theirs @ step.A @ from_theirs, to_theirs @ step.B, step.C @ from_theirs, step.D
    for ours, expected in zip(found, matrices, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-8 * max(1, np.abs(expected).max()))


def _differences(system, state, action, dt, solver):
    """[A B; C D] by central differences, one after another."""
    nx, h = deviation_size(state), 1e-5
    end, _ = system.step(state, action, dt, solver=solver)

    def outcome(z):
        near, acting = deviating(system.model, state, z[:nx]), action + z[nx:]
        seen = system.sense(near, acting)
        arrived, _ = system.step(near, acting, dt, solver=solver)
        return jnp.concatenate(
            [deviation(system.model, end, arrived), *(jnp.ravel(seen[x.name]) for x in system.sensors)]
        )

    units = h * jnp.eye(nx + len(action))
    forth, back = jnp.split(jax.lax.map(outcome, jnp.concatenate([units, -units])), 2)
    return (forth - back).T / (2 * h)


def driven():
    """An arm with states of actuators and of a controller."""
    arm = jdyn.load("double_pendulum")
    drives = [
        actuators.PositionServo("joint1", kp=20.0, activation=actuators.Lag(0.1)),
        actuators.PIDServo("joint2", kp=6.0, ki=5.0, kd=0.5),
    ]
    seen = [sensors.Accelerometer("imu", "tip"), sensors.ActuatorForce("force", "joint1")]
    commands = jdyn.control.FirstOrderLag(jdyn.control.Constant(jnp.array([0.3, -0.2])), time_constant=0.05)
    system = jdyn.System(arm, actuators=drives, sensors=seen, controller=commands)
    return system, system.state(jnp.array([0.4, -0.3]), jnp.array([0.5, 0.2])), jnp.array([0.1, 0.2])


def geared():
    """The same with a gear between both joints that is not linear."""
    system, _, action = driven()
    gear, angle, speed = jdyn.constraints.Gear("joint2", "joint1", (0.2, -2.0, 0.3)), 0.4, 0.5
    system = system.but(constraints=(gear,))
    q = jnp.array([angle, 0.2 - 2 * angle + 0.3 * angle**2])
    return system, system.state(q, speed * jnp.array([1, -2 + 0.6 * angle])), action


def touching(contact):
    """A ball that has sunk into the ground a little, slides and spins."""
    system = jdyn.System(ball(), contact=contact, sensors=[sensors.FrameLinearVelocity("speed", "body")])
    state = system.state(system.model.neutral().at[2].set(0.0999), jnp.array([0.2, 1, 0.5, 0.3, 0, -0.01]))
    return system, state, jnp.array([0.1, 0, 0, 1, 0, 0])


COMPLIANT, CONVEX = (functools.partial(touching, law) for law in (jdyn.CompliantContact(), jdyn.ConvexContact()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scene", "solver"),
    [
        (geared, ONE_EVALUATION),
        (COMPLIANT, ONE_EVALUATION),
        *(pytest.param(scene, None, marks=pytest.mark.exhaustive) for scene in (driven, geared, CONVEX)),
    ],
    ids=["gear", "compliant contact", "default, actuators", "default, gear", "default, convex contact"],
)
def test_against_finite_differences(scene, solver):
    system, state, action = scene()
    step = system.linearize_step(state, action, 0.005, solver=solver)
    expected = jax.jit(lambda state, action: _differences(system, state, action, 0.005, solver))(state, action)
    found = np.block([[step.A, step.B], [step.C, step.D]])
    assert step.result == jdyn.Result.success
    assert found.shape == tuple(map(len, (step.state_names + step.sensor_names, step.state_names + step.action_names)))
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.exhaustive
def test_lanes_in_single_precision():
    """Parts that a state lacks start anew, and an action that is left out is zero."""
    system, state, _ = driven()
    single = system.astype(jnp.float32)
    expected = system.linearize_step(state, dt=0.005, solver=ONE_EVALUATION)
    qs, vs = (jnp.stack([2 * x, x]).astype(jnp.float32) for x in (state.q, state.v))
    steps = jax.vmap(lambda q, v: single.linearize_step(jdyn.State(q, v), dt=0.005, solver=ONE_EVALUATION))(qs, vs)
    for name in "ABCD":
        found, exact = getattr(steps, name), getattr(expected, name)
        assert found.dtype == jnp.float32 and found.shape == (2, *exact.shape)
        np.testing.assert_allclose(found[1], exact, atol=1e-4 * np.abs(exact).max())
    np.testing.assert_allclose(steps.sensors["imu"][1], expected.sensors["imu"], rtol=1e-4)


def test_what_cannot_be_linearized_is_refused():
    system, state, action = driven()
    with pytest.raises(ValueError, match=r"action: expected shape \(2,\), a command for each actuator"):
        system.linearize_step(state, jnp.ones(3))
    with pytest.raises(ValueError, match="dt: expected a positive number, got 0"):
        system.linearize_step(state, action, 0.0)
    with pytest.raises(ValueError, match="state: expected one of the system"):
        system.linearize_step(state.q)  # pyright: ignore
