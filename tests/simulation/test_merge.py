"""Systems made of systems, against MuJoCo's own attaching, and against what the parts do alone."""

import warnings

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.interop import MujocoMap

pytestmark = pytest.mark.fast_compile

EXACT = diffrax.PIDController(rtol=1e-8, atol=1e-8)

PLACED = jdyn.pose((0.6, -0.3, 0.2), (0.4, -0.2, 0.7))

# A servo with a lag, a motor on a tendon around a ball and through a site of the world, a spring tendon, a closed loop,
# and sensors that look at all of these.
ARM = """
<mujoco model="arm">
  <compiler angle="radian" eulerseq="zyx"/>
  <worldbody>
    <site name="anchor" pos=".3 .1 .2"/>
    <geom name="post" size=".05" pos=".1 .1 .1" contype="0" conaffinity="0"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping=".3"/><site name="root"/>
      <geom name="rod" type="capsule" size=".03" fromto="0 0 0 0 0 -.5" contype="0" conaffinity="0"/>
      <geom name="ball" size=".06" pos=".05 .02 -.3" contype="0" conaffinity="0" mass="0"/>
      <body name="lower" pos="0 0 -.5">
        <joint name="elbow" axis="0 .6 .8"/>
        <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.4" contype="0" conaffinity="0"/>
        <site name="hand" pos="0 0 -.4" euler=".1 .2 .3"/>
      </body>
    </body>
    <body name="strut" pos=".3 0 1">
      <joint name="hip" axis="0 1 0"/><joint name="slide" type="slide" axis="0 0 1"/>
      <geom type="box" size=".03 .04 .3" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope"><site site="anchor"/><geom geom="ball"/><site site="hand"/></spatial>
    <fixed name="sum" stiffness="5" springlength=".2" damping=".4">
      <joint joint="shoulder" coef=".5"/><joint joint="hip" coef="-1"/>
    </fixed>
  </tendon>
  <actuator>
    <position name="servo" joint="elbow" kp="20" kv="2" ctrlrange="-1 1"/>
    <general name="slow" joint="hip" dyntype="filter" dynprm=".1" gainprm="3"/>
    <motor tendon="rope" gear="-2"/>
  </actuator>
  <sensor>
    <accelerometer name="imu" site="hand"/><gyro name="gyro" site="hand"/>
    <framepos name="seen" objtype="site" objname="hand" reftype="site" refname="anchor"/>
    <tendonpos name="rope" tendon="rope"/><tendonvel name="rope speed" tendon="rope"/>
    <actuatorfrc name="effort" actuator="servo"/><jointpos name="angle" joint="elbow"/>
    <subtreecom name="center" body="upper"/><force name="load" site="hand"/><torque name="root" site="root"/>
  </sensor>
  <keyframe><key name="bent" qpos=".3 .5 .1 .05"/></keyframe>
</mujoco>
"""
BOX = """
<mujoco model="box">
  <worldbody><body name="box" pos="0 0 2"><freejoint name="box"/>
    <geom type="box" size=".1 .2 .3" contype="0" conaffinity="0"/></body></worldbody>
</mujoco>
"""


def load(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        return jdyn.load_system(text)


def quaternion(rotation):
    found = np.zeros(4)
    mujoco.mju_mat2Quat(found, np.asarray(rotation).ravel())
    return found


def attached(spec, text, prefix, pose=None):
    """MuJoCo's model with another one at a pose of its world, or of a site."""
    pose = jdyn.pose() if pose is None else pose
    at = spec.worldbody.add_frame(pos=np.asarray(pose.translation), quat=quaternion(pose.rotation))
    spec.attach(mujoco.MjSpec.from_string(text), prefix=prefix, frame=at)


def assert_mujoco_agrees(system, peer):
    """Accelerations and sensors at random states and commands, with actuators that have states."""
    both = MujocoMap(system.model, peer)
    sense = eqx.filter_jit(lambda state, action: system.sense(state, action))
    dynamics = eqx.filter_jit(lambda state, action: system.step(state, action, dt=1e-7)[1].accelerations)
    for seed in range(3):
        rng, data = np.random.default_rng(seed), mujoco.MjData(peer)
        q = system.model.random(jax.random.key(seed))
        v, action = (jnp.asarray(rng.normal(size=n)) for n in (system.model.nv, peer.nu))
        state = system.state(q, v)
        data.qpos[:], data.qvel[:], data.ctrl[:] = both.q_to_peer(q), both.v_to_peer(q, v), action
        mujoco.mj_forward(peer, data)
        values = sense(state, action)
        assert len(values) == peer.nsensor
        for i in range(peer.nsensor):
            name, at, size = peer.sensor(i).name, peer.sensor_adr[i], peer.sensor_dim[i]
            # Sizes of what is added up are up to some tens.
            np.testing.assert_allclose(np.ravel(values[name]), data.sensordata[at : at + size], atol=1e-9, err_msg=name)
        a = both.a_from_peer(q, v, data.qacc)
        # A step of 1e-7 s changes accelerations by some 1e-5.
        np.testing.assert_allclose(dynamics(state, action), a, atol=1e-4 * (1 + np.max(np.abs(a))))


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
    assert "knows joint 'ball', which becomes fixed" in refused(jdyn.append, held, thrown, "tip", name="tool")
