"""Systems made of systems, against MuJoCo's own attaching, and against what the parts do alone."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from tests.simulation.mujoco_scenes import ARM, assert_mujoco_agrees, load

pytestmark = pytest.mark.fast_compile

EXACT = diffrax.PIDController(rtol=1e-8, atol=1e-8)

PLACED = jdyn.pose((0.6, -0.3, 0.2), (0.4, -0.2, 0.7))

BOX = """
<mujoco model="box">
  <worldbody><body name="box" pos="0 0 2"><freejoint name="box"/>
    <geom type="box" size=".1 .2 .3" contype="0" conaffinity="0"/></body></worldbody>
</mujoco>
"""


def quaternion(rotation):
    found = np.zeros(4)
    mujoco.mju_mat2Quat(found, np.asarray(rotation).ravel())
    return found


def attached(spec, text, prefix, pose=None):
    """MuJoCo's model with another one at a pose of its world, or of a site."""
    pose = jdyn.pose() if pose is None else pose
    at = spec.worldbody.add_frame(pos=np.asarray(pose.translation), quat=quaternion(pose.rotation))
    spec.attach(mujoco.MjSpec.from_string(text), prefix=prefix, frame=at)


@pytest.mark.slow
def test_merged_systems_are_those_that_mujoco_attaches():
    arm, box = load(ARM), load(BOX)
    cell = jdyn.merge({"left": arm, "right": arm, "part": box}, {"right": PLACED})
    spec = mujoco.MjSpec()
    for part, text, pose in (("left/", ARM, None), ("right/", ARM, PLACED), ("part/", BOX, None)):
        attached(spec, text, part, pose)
    assert [each.name for each in cell.actuators][:2] == ["left/servo", "left/slow"]
    assert_mujoco_agrees(cell, spec.compile())


GRIPPER = """
<mujoco model="gripper">
  <compiler angle="radian"/>
  <worldbody>
    <site name="mount" pos="0 0 -.01"/>
    <body name="left" pos="0 .05 -.1">
      <joint name="left" type="slide" axis="0 1 0"/><geom type="box" size=".01 .01 .05" contype="0" conaffinity="0"/>
    </body>
    <body name="right" pos="0 -.05 -.1">
      <joint name="right" type="slide" axis="0 -1 0"/><geom type="box" size=".01 .01 .05" contype="0" conaffinity="0"/>
      <site name="pad" pos="0 .01 -.05"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="both" stiffness="50"><joint joint="left" coef="1"/><joint joint="right" coef="-1"/></fixed>
  </tendon>
  <actuator><position name="close" joint="right" kp="100" kv="5"/></actuator>
  <sensor>
    <framepos name="pad" objtype="site" objname="pad" reftype="site" refname="mount"/>
    <accelerometer name="pad acceleration" site="pad"/><tendonpos name="apart" tendon="both"/>
  </sensor>
  <keyframe><key name="open" qpos=".02 .03"/></keyframe>
</mujoco>
"""


@pytest.mark.slow
def test_what_an_arm_carries_is_what_mujoco_attaches_at_a_site():
    holding = jdyn.append(
        load(ARM), load(GRIPPER), "lower", jdyn.pose((0.01, 0.02, -0.4), (0.2, 0.1, 0.3)), name="tool"
    )
    spec = mujoco.MjSpec.from_string(ARM)
    spec.delete(spec.keys[0])
    pose = jdyn.pose((0.01, 0.02, -0.4), (0.2, 0.1, 0.3))
    at = spec.body("lower").add_frame(pos=np.asarray(pose.translation), quat=quaternion(pose.rotation))
    spec.attach(mujoco.MjSpec.from_string(GRIPPER), prefix="tool/", frame=at)
    assert_mujoco_agrees(holding, spec.compile())
    np.testing.assert_allclose(holding.configurations["tool/open"], [0, 0, 0, 0, 0.02, 0.03])
    np.testing.assert_allclose(holding.configurations["bent"], [0.3, 0.5, 0.1, 0.05, 0, 0])


def test_sensors_of_what_is_fixed_still_look_at_it_alone():
    center = jdyn.sensors.SubtreeCenterOfMass("center", "ball")
    ball = jdyn.System(jdyn.load("ball"), sensors=[center, jdyn.sensors.Force("load", "ball")])
    holding = jdyn.append(jdyn.System(jdyn.load("pendulum")), ball, "tip", name="tool")
    state = holding.state(jnp.array([0.4]))
    found, mass = holding.sense(state), ball.model.inertias.mass[0]
    at = jdyn.frame_pose(holding.model, state.q, "tool/ball").translation
    np.testing.assert_allclose(found["tool/center"], at, atol=1e-14)
    _, seen = holding.step(state, dt=1e-7)
    # The ball is a metre away from the pivot, and is accelerated as the rod is; a step of 1e-7 s changes that by 1e-6.
    a = seen.accelerations[0]
    along = mass * jnp.array([9.81 * jnp.sin(0.4) + a, 0.0, 9.81 * jnp.cos(0.4)])
    assert jnp.linalg.norm(found["tool/load"]) == pytest.approx(float(jnp.linalg.norm(along)), rel=1e-5)


def test_configurations_that_all_have_are_those_of_the_whole():
    arm, box = load(ARM), load(BOX)
    cell = jdyn.merge({"a": arm, "b": arm, "box": box})
    bent, box_start = arm.configurations["bent"], box.configurations["qpos0"]
    assert set(cell.configurations) == {"qpos0", "a/bent", "b/bent", "a/qpos0", "b/qpos0", "box/qpos0"}
    np.testing.assert_allclose(cell.configurations["b/bent"], jnp.concatenate([jnp.zeros(4), bent, box_start]))
    pair = jdyn.merge({"a": arm, "b": arm, "box": box.model})
    np.testing.assert_allclose(pair.configurations["bent"], jnp.concatenate([bent, bent, box.model.neutral()]))


def with_states():
    """Two systems with states of all kinds: integrals, samples, bristles and a lag, and a constraint."""
    arm, rod = jdyn.load("double_pendulum"), jdyn.load("pendulum")
    rough = jdyn.elements.LuGreFriction("joint2", coulomb=0.2, static=0.3, stribeck_speed=0.1, stiffness=100.0)
    servo = jdyn.actuators.PIDServo("joint2", kp=20.0, ki=5.0, kd=2.0)
    motor = jdyn.actuators.AffineActuator("joint1", [2.0, 0.0, 0.0], activation=jdyn.actuators.Lag(0.1))
    driven = jdyn.System(
        arm,
        actuators=[servo, motor],
        controller=jdyn.control.ZeroOrderHold(lambda t, q, v: jnp.array([0.3, 0.2]) - 0.1 * v, period=0.05),
        elements=[rough, jdyn.elements.PointSpring("tip", "world", 5.0, point_b=(1.0, 0.0, 0.0))],
        sensors=[jdyn.sensors.ActuatorForce("effort", "joint2")],
    )
    held = jdyn.System(
        rod,
        actuators=[jdyn.actuators.Motor("joint1")],
        controller=jdyn.PID(rod, jnp.array([0.4]), kp=20.0, ki=5.0, kd=3.0),
        constraints=[jdyn.constraints.PrescribedJoint("joint1", lambda t: 0.1 * t**2)],
    )
    return {"arm": driven, "rod": held}


@pytest.mark.slow
@pytest.mark.exhaustive
def test_parts_move_as_they_do_alone():
    parts = with_states()
    starts = {"arm": (jnp.array([0.3, 0.5]), jnp.array([0.2, -0.1])), "rod": (jnp.zeros(1), jnp.zeros(1))}
    cell = jdyn.merge(parts)
    q, v = (jnp.concatenate(x) for x in zip(*starts.values(), strict=True))
    motion = jdyn.simulate(cell, cell.state(q, v), 0.5, stepsize_controller=EXACT)
    alone = {
        part: jdyn.simulate(each, each.state(*starts[part]), 0.5, stepsize_controller=EXACT)
        for part, each in parts.items()
    }
    assert motion.success
    for what in ("q", "v", "tau"):
        each = jnp.concatenate([getattr(alone[part], what)[-1] for part in parts])
        np.testing.assert_allclose(getattr(motion, what)[-1], each, atol=1e-6)
    np.testing.assert_allclose(motion.sensors["arm/effort"][-1], alone["arm"].sensors["effort"][-1], atol=1e-6)
    known = alone["arm"].with_system(parts["arm"])
    np.testing.assert_allclose(known.sensors["effort"], alone["arm"].sensors["effort"], atol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_and_batches_pass_through():
    arm = with_states()["arm"]

    def end(kp):
        servo = eqx.tree_at(lambda servo: servo.kp, arm.actuators[0], kp)
        system = eqx.tree_at(lambda system: system.actuators[0], arm, servo)
        cell = jdyn.merge({"left": arm, "right": system}, {"right": (1.0, 0.0, 0.0)})
        state, _ = cell.step(cell.state(jnp.full(4, 0.3)), dt=0.01)
        return state.v

    values, slopes = end(jnp.array(20.0)), jax.jacfwd(end)(jnp.array(20.0))
    np.testing.assert_array_equal(slopes[:2], 0)
    step = 1e-4
    expected = (end(jnp.array(20.0 + step)) - end(jnp.array(20.0 - step))) / (2 * step)
    np.testing.assert_allclose(slopes, expected, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(jax.vmap(end)(jnp.array([20.0, 30.0]))[0], values, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_system_of_systems_is_part_of_another_one():
    arm = load(ARM)
    cell = jdyn.merge({"pair": jdyn.merge({"left": arm, "right": arm}, {"right": PLACED}), "box": load(BOX)})
    flat = jdyn.merge({"left": arm, "right": arm, "box": load(BOX)}, {"right": PLACED})
    assert [each.name for each in cell.sensors][-1] == "pair/right/root"
    state, action = cell.model.random(jax.random.key(0)), jnp.arange(6.0) / 6
    ours, theirs = (each.sense(each.state(state), action) for each in (cell, flat))
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[f"pair/{name}"], value, rtol=1e-12, atol=1e-12)


def test_materials_keep_to_their_shapes():
    soft, hard = (jdyn.contact.Material(stiffness) for stiffness in (1e4, 1e6))
    balls = {
        name: jdyn.System(jdyn.load("ball"), contact=jdyn.CompliantContact(materials={"ball": material}))
        for name, material in {"soft": soft, "hard": hard}.items()
    }
    contact = jdyn.merge(balls).contact
    assert {name: float(each.stiffness) for name, each in contact.materials.items()} == {
        "soft/ball": 1e4, "hard/ball": 1e6,
    }  # fmt: skip
    stiff = jdyn.System(jdyn.load("ball"), contact=jdyn.CompliantContact(material=hard))
    assert "contact: 'a' has" in refused(jdyn.merge, {"a": balls["soft"], "b": stiff})


class Held(jdyn.ForceElement):
    """Names in the forms in which fields may have them; one is text, as `from __future__ import annotations` makes."""

    one: "jdyn.Name" = eqx.field(static=True)
    others: tuple[jdyn.Name, ...] | None = eqx.field(static=True)
    shares: dict[jdyn.Name, float] = eqx.field(static=True)
    word: str = eqx.field(static=True, default="tip")

    def force(self, t, kinematics, memory):
        return kinematics.push(self.one, force=[0.0, 0.0, 1.0])


def test_names_are_renamed_wherever_they_are():
    system = jdyn.System(jdyn.load("pendulum"), elements=[Held("tip", ("link1",), {"tip": 0.5}), Held("tip", None, {})])
    one, other = jdyn.merge({"a": system}).elements
    assert (one.one, one.others, one.shares, one.word) == ("a/tip", ("a/link1",), {"a/tip": 0.5}, "tip")
    assert (other.one, other.others) == ("a/tip", None)


def refused(of, *parts, **options):
    with pytest.raises(ValueError) as found:
        of(*parts, **options)
    return str(found.value)


def test_what_does_not_go_together_is_refused():
    rod = jdyn.load("pendulum")
    held = jdyn.System(rod, controller=jdyn.PD(rod, jnp.ones(1), kp=1.0, kd=1.0))
    driven = jdyn.System(rod, actuators=[jdyn.actuators.Motor("joint1")])
    soft, hard = (jdyn.System(rod, joint_limits=jdyn.CompliantLimits(frequency=x)) for x in (50.0, 100.0))
    assert "'a' gives generalized forces, but other parts have actuators" in refused(
        jdyn.merge, {"a": held, "b": driven}
    )
    assert "joint_limits: 'a' has" in refused(jdyn.merge, {"a": soft, "b": hard})
    assert jdyn.merge({"a": soft, "b": held}).joint_limits.frequency == 50.0
    assert "needs a name" in refused(jdyn.append, held, soft, "tip")
    assert "make the model one" in refused(jdyn.append, rod, soft, "tip")
    ball = jdyn.load("ball")
    thrown = jdyn.System(ball, controller=jdyn.control.Constant(jnp.zeros(6)))
    assert jdyn.append(held, thrown, "tip", name="tool").model.nv == 1
