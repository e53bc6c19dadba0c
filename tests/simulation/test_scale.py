"""Systems in other sizes, against MuJoCo's models that are written in these sizes, and against themselves."""

from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.model.constraints import Placed
from jdyn.model.units import units_of
from tests.simulation.mujoco_scenes import assert_mujoco_agrees, load

pytestmark = pytest.mark.fast_compile

LENGTH, MASS, TIME = 1.3, 1.7, 0.8


def written(length, mass, time, similar=True):
    """A file with every number in another size: what has to do with time or forces only if motions are similar."""

    def body(*values, kg=0, m=0):
        return " ".join(str(value * mass**kg * length**m) for value in values)

    def force(*values, kg=1, m=0, s=0):
        return " ".join(str(value * (mass**kg * length**m * time**s if similar else 1)) for value in values)

    def m(*values):
        return body(*values, m=1)

    density = body(900, kg=1, m=-3)
    return f"""
<mujoco>
  <option gravity="0 0 {force(-9.81, kg=0, m=1, s=-2)}" density="{force(40, m=-3)}"
          viscosity="{force(0.3, m=-1, s=-1)}" wind="{force(0.3, 0.1, 0, kg=0, m=1, s=-1)}"/>
  <default><geom contype="0" conaffinity="0" density="{density}"/></default>
  <worldbody>
    <site name="anchor" pos="{m(0.3, 0.1, 0.2)}"/>
    <body name="upper" pos="{m(0, 0, 1)}">
      <joint name="turn" axis="0 1 0" damping="{force(0.3, m=2, s=-1)}" stiffness="{force(2, m=2, s=-2)}"
             springref="20" armature="{body(0.1, kg=1, m=2)}"/>
      <geom type="capsule" size="{m(0.03)}" fromto="{m(0, 0, 0, 0, 0, -0.5)}"/>
      <geom name="ball" size="{m(0.06)}" pos="{m(0.05, 0.02, -0.3)}" mass="0"/>
      <body name="lower" pos="{m(0, 0, -0.5)}" gravcomp=".3">
        <joint name="slide" type="slide" axis="0 .6 .8" damping="{force(0.5, s=-1)}" stiffness="{force(3, s=-2)}"
               springref="{m(0.2)}" armature="{body(0.2, kg=1)}"/>
        <joint name="ball" type="ball" pos="0 0 0" damping="{force(0.1, m=2, s=-1)}"/>
        <geom type="box" size="{m(0.1, 0.05, 0.2)}" pos="{m(0, 0.1, -0.2)}"/>
        <site name="hand" pos="{m(0, 0, -0.4)}" euler="10 20 30"/>
      </body>
    </body>
    <body name="wheel" pos="{m(0.6, 0, 1)}">
      <joint name="wheel" axis="0 1 0"/><geom type="cylinder" size="{m(0.2, 0.03)}"/>
      <site name="crank" pos="{m(0, 0, 0.15)}"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope" stiffness="{force(4, s=-2)}" springlength="{m(0.2)}" damping="{force(0.4, s=-1)}">
      <site site="anchor"/><geom geom="ball"/><site site="hand"/></spatial>
    <fixed name="sum" stiffness="{force(5, s=-2)}" springlength="{m(0.2)}">
      <joint joint="turn" coef="{m(0.5)}"/><joint joint="slide" coef="-1"/></fixed>
  </tendon>
  <actuator>
    <position name="angle" joint="turn" kp="{force(20, m=2, s=-2)}" kv="{force(2, m=2, s=-1)}" ctrlrange="-1 1"/>
    <position name="way" joint="slide" kp="{force(20, s=-2)}" kv="{force(2, s=-1)}" ctrlrange="{m(-0.3, 0.4)}"
              forcerange="{force(-3, 2, m=1, s=-2)}"/>
    <velocity name="speed" tendon="rope" kv="{force(3, s=-1)}"/>
    <general name="jet" site="hand" gear="0 1 2 {m(0.1, 0, 0.2)}" ctrlrange="-9 9" gainprm="{force(2, m=1, s=-2)}"/>
    <general name="twist" site="hand" gear="0 0 0 1 0 0.5" gainprm="{force(3, m=2, s=-2)}"/>
    <general name="slow" joint="turn" dyntype="filter" dynprm="{force(0.1, kg=0, s=1)}" gaintype="affine"
             gainprm="{force(3, m=2, s=-2)} {force(1, m=2, s=-2)} 0" biastype="affine"
             biasprm="{force(0.3, m=2, s=-2)} 0 {force(-0.2, m=2, s=-1)}"/>
    <muscle name="muscle" tendon="rope" lengthrange="{m(0.2, 1.6)}" force="{force(7, m=1, s=-2)}"
            vmax="{force(1.5, kg=0, s=-1)}" timeconst="{force(0.01, 0.04, kg=0, s=1)}"/>
    <general name="piston" cranksite="crank" slidersite="anchor" cranklength="{m(2)}"
             gainprm="{force(2, m=1, s=-2)}"/>
  </actuator>
  <sensor>
    <accelerometer name="imu" site="hand"/><gyro name="gyro" site="hand"/><velocimeter name="velocity" site="hand"/>
    <framepos name="seen" objtype="site" objname="hand" reftype="site" refname="anchor"/>
    <tendonpos name="rope" tendon="rope"/><tendonvel name="rope speed" tendon="rope"/>
    <tendonpos name="sum" tendon="sum"/><actuatorfrc name="effort" actuator="way"/>
    <jointpos name="way" joint="slide" cutoff="{m(0.5)}"/><subtreecom name="center" body="upper"/>
    <subtreeangmom name="spin" body="upper"/><actuatorpos name="piston" actuator="piston"/>
  </sensor>
  <keyframe><key name="bent" qpos="0.3 {m(0.2)} 1 0 0 0 0.1"/></keyframe>
</mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize("factors", [{"time": TIME}, {"similar": False}], ids=["similar", "of another size"])
def test_a_system_is_a_file_in_another_size(factors):
    large = jdyn.scale(load(written(1, 1, 1)), length=LENGTH, mass=MASS, **factors)
    text = written(LENGTH, MASS, **({"time": 1.0} | factors))
    expected = load(text)
    assert_mujoco_agrees(large, mujoco.MjModel.from_xml_string(text))
    ours, theirs = jdyn.parameters(large), jdyn.parameters(expected)
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        # Files say nothing of how friction is smoothed, and of stops that there are not.
        if not name.endswith(("friction_speed", "stop_dissipation", "stop_onset")):
            np.testing.assert_allclose(ours[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(large.configurations["bent"], expected.configurations["bent"], rtol=1e-12)


def factor(kg=0, m=0, s=0):
    return MASS**kg * LENGTH**m * TIME**s


def everything():
    """A sliding and a turning joint, a ball joint and another hinge, with all that jdyn has for systems."""
    builder = jdyn.Builder("everything")
    parent, joints = "world", {"slide": jdyn.Prismatic((1, 0, 0.2)), "hinge": jdyn.Revolute((0, 1, 0)),
                               "ball": jdyn.Ball(), "last": jdyn.Revolute((0, 1, 0.3))}  # fmt: skip
    for i, (name, joint) in enumerate(joints.items()):
        builder.add_link(f"{name} link", joint, joint_name=name, parent=parent, placement=(0.1, 0.2 * i, 0.3),
                         mass=1 + i, com=(0.1, 0, 0.2), inertia=(0.2, 0.3, 0.4), damping=0.3)  # fmt: skip
        parent = f"{name} link"
        builder.add_shape(parent, "sphere", 0.05, role="collision", name=name)
    builder.add_frame("tip", parent, (0.1, 0.2, 0.3))
    model = jdyn.with_ground(builder.build())
    at, on, with_lag = jdyn.transmissions, jdyn.actuators, jdyn.actuators.Lag(0.1, range=(-0.3, 0.2))
    rope = at.SpatialTendon([
        at.Pulley(2.0), at.PathPoint("world", [0.3, 0.0, 1.0]), at.WrappedSphere("hinge link", 0.05),
        at.PathPoint("ball link", [0.0, 0.1, 0.1]), at.WrappedCylinder("last link", 0.04), at.PathPoint("tip"),
    ])  # fmt: skip
    cable = at.FixedTendon(["slide", "hinge"], [0.7, -0.2], 0.1)
    inputs = "position", "velocity", "force"
    ranges = [(-0.4, 0.3), (-1.0, 1.0), (-2.0, 2.0)]
    servo = on.PIDServo("slide", 3.0, 2.0, 0.5, slew=on.SlewLimit(0.4, 0.05), integral_range=(-0.1, 0.2),
                        inputs=inputs, command_range=ranges)  # fmt: skip
    actuators = [
        on.Motor("slide", 2.0, command_range=(-0.5, 0.5), force_range=(-3.0, 3.0)),
        on.PositionServo("slide", 20.0, 1.0, period=0.7, activation=with_lag, name="servo"),
        on.PositionServo("hinge", 20.0, 1.0, activation=on.Integrator(range=(-0.2, 0.4)), name="integrated"),
        on.VelocityServo("slide", 3.0, activation=on.Delay(0.1, 4), name="speed"),
        on.Damper(cable, 0.6, name="damper"),
        on.AffineActuator(rope, (2.0, 0.3, 0.1), (0.2, 0.4, 0.3), name="affine"),
        on.ElasticDrive(servo, inertia=0.2, stiffness=30.0, damping=2.0, friction=0.3, gap=0.01, name="elastic"),
        on.DCMotor(
            at.Geared(at.GearedJoint("slide", 3.0), 2.0), 0.5, 0.3, 0.02, efficiency=0.8, current_rate=30.0,
            winding=on.Winding(4.0, 2.0), cogging=on.Cogging(0.2, 12.0, 0.3), voltage_range=(-9.0, 9.0), name="motor",
            bristles=on.Bristles(0.3, 0.5, 0.1, 40.0, 0.4),
            servo=on.PIDServo("slide", 2.0, 1.0, 0.3, inputs=inputs[:2]),
        ),
        on.Muscle(rope, (0.2, 1.6), 7.0, name="muscle"),
        on.OrientationServo(at.BallOrientation("ball"), 4.0, 0.5, largest=1.0, name="orientation"),
        on.OrientationServo(at.FrameOrientation("tip"), 2.0, 0.3, command="quaternion", name="frame"),
        on.Motor(at.GearedFrame("tip", [0.1, 0, 0.2, 0, 1.0, 0.5]), 2.0, name="jet"),
        on.Motor(at.GearedFrame("tip", [0.1, 0, 0.2, 0, 0, 0]), 2.0, name="twist"),
        on.Motor(at.GearedJoint("ball", [0.1, 0.3, 0.2]), 2.0, name="about"),
        on.Motor(at.SliderCrank("tip", "world", 3.0), 0.4, name="crank"),
    ]  # fmt: skip
    of, friction = jdyn.elements, {"coulomb": 0.3, "static": 0.5, "stribeck_speed": 0.2, "viscous": 0.1}
    elements = [
        of.FrameForce("tip", lambda t: jnp.stack([jnp.sin(3 * t), t, 0 * t]), [0.1, 0.2, 0.3], point=[0.1, 0, 0]),
        of.Drag("tip", 0.3, 0.4, 0.2, 0.1, [0.3, 0.2, 0.1], [0, 0.1, 0]),
        of.PointSpring("tip", "world", 5.0, 0.4, 0.3, [0.1, 0, 0], [0, 1.0, 0]),
        of.Medium.of(model, 3.0, 0.4, [0.1, 0, 0.2]), of.EllipsoidMedium.of(model, 2.0, 0.1),
        of.CarriedWeight(("last link",), [0.3], [[0.1, 0, 0]]),
        of.StribeckFriction("slide", smooth=0.05, **friction), of.LuGreFriction("slide", stiffness=50.0, **friction),
        of.LuGreFriction("hinge", stiffness=50.0, fading=0.5, **friction),
        of.TendonSpring(rope, 4.0, 0.3, (0.1, 0.4), 0.2, 0.1, (0.2, 0.9), 30.0, 0.4, 0.02, (1.0, 2.0), (0.1, 0.2)),
        of.TendonSpring(cable, 4.0, 0.3), of.TendonInertia(rope, 0.4), of.TendonInertia(at.GearedJoint("hinge"), 0.3),
    ]  # fmt: skip
    see, pose = jdyn.sensors, jdyn.pose((0.1, 0.2, 0.1), (0.1, 0.2, 0.3))
    sensors = [
        (see.Accelerometer("imu", "tip", pose), (0, 1, -2)), (see.Gyro("gyro", "tip"), (0, 0, -1)),
        (see.Velocimeter("velocity", "tip", pose), (0, 1, -1)), (see.Magnetometer("compass", "tip"), (0, 0, 0)),
        (see.FramePosition("seen", "tip", pose, "hinge link", pose), (0, 1, 0)),
        (see.FrameAxis("axis", "tip"), (0, 0, 0)),
        (see.FrameQuaternion("quaternion", "tip"), (0, 0, 0)), (see.FrameLinearVelocity("v", "tip", pose), (0, 1, -1)),
        (see.FrameAngularVelocity("w", "tip"), (0, 0, -1)), (see.FrameLinearAcceleration("a", "tip", pose), (0, 1, -2)),
        (see.FrameAngularAcceleration("dw", "tip"), (0, 0, -2)), (see.Force("load", "last link"), (1, 1, -2)),
        (see.Torque("torque", "last link", pose), (1, 2, -2)), (see.SubtreeCenterOfMass("com", "world"), (0, 1, 0)),
        (see.SubtreeLinearVelocity("dcom", "ball link"), (0, 1, -1)), (see.Clock("clock"), (0, 0, 1)),
        (see.SubtreeAngularMomentum("spin", "ball link"), (1, 2, -1)), (see.KineticEnergy("kinetic"), (1, 2, -2)),
        (see.PotentialEnergy("potential"), (1, 2, -2)), (see.JointVelocity("dq", "slide"), (0, 1, -1)),
        (see.JointPosition("q", "slide"), (0, 1, 0)), (see.ActuatorForce("effort", "motor"), (1, 1, -2)),
        (see.ActuatorPosition("length", "motor"), (0, 1, 0)), (see.ActuatorVelocity("rate", "affine"), (0, 1, -1)),
        (see.JointActuatorForce("joint", "slide"), (1, 1, -2)), (see.TransmissionPosition("rope", rope), (0, 1, 0)),
        (see.TransmissionVelocity("drope", cable), (0, 1, -1)),
        (see.Rangefinder("range", "world", jdyn.pose((0.5, 0.1, 3.0)), (0, 0, -1.0), missed=9.0), (0, 1, 0)),
        (see.Distance("gap", "slide", "last", 0.5), (0, 1, 0)),
        (see.DistanceNormal("normal", "slide", "last"), (0, 0, 0)),
        (see.DistancePoints("points", "slide", "last"), (0, 1, 0)),
        (see.Sampled(see.Imperfect(see.JointVelocity("late", "slide"), bias=0.3, cutoff=0.5), 0.01), (0, 1, -1)),
    ]  # fmt: skip
    for sensor in [see.JointPosition("dull", "slide"), see.ActuatorForce("dull force", "motor")]:
        units = (0, 1, 0) if "force" not in sensor.name else (1, 1, -2)
        sensors.append((see.Imperfect(sensor, bias=0.3, cutoff=0.5), units))
    system = jdyn.System(model, actuators=actuators, elements=elements, sensors=[each for each, _ in sensors])
    return system.but(controller=Remembering(count=23)), {each.name: units for each, units in sensors}


class Remembering(jdyn.control.DynamicController):
    """Commands by time, state, and a memory that follows the state."""

    count: int

    def start(self, t, q, v):
        return jnp.sin(q[:2])

    def rate(self, t, q, v, memory):
        return 3 * q[:2] + jnp.cos(t) - memory

    def force(self, t, q, v, memory):
        return 0.2 * jnp.sin(jnp.arange(self.count, dtype=q.dtype) + 5 * t + q[0] + v[1] + memory[0])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_all_parts_move_alike():
    """Sensors after a step are those of the system before, in other units."""
    system, units = everything()
    # Both have one program.
    small, large = (
        jdyn.scale(system, **dict(zip(("length", "mass", "time"), map(jnp.asarray, factors), strict=True)))
        for factors in ((1.0, 1.0, 1.0), (LENGTH, MASS, TIME))
    )
    names = system.model.topology.q_names
    of_q = jnp.asarray([LENGTH if name == "slide" else 1.0 for name in names])
    of_v = jnp.asarray([LENGTH if name == "slide" else 1.0 for name in system.model.topology.v_names]) / TIME
    q, t, dt = system.model.random(jax.random.key(0)), 0.3, 0.004
    v = jax.random.normal(jax.random.key(1), (system.model.nv,))

    @eqx.filter_jit
    def moved(system, q, v, t, dt):
        return system.step(system.state(q, v, t=t), dt=dt, t=t, solver=jdyn.solvers.SemiImplicitEuler())

    state, before = moved(small, q, v, jnp.asarray(t), jnp.asarray(dt))
    end, after = moved(large, q * of_q, v * of_v, jnp.asarray(t * TIME), jnp.asarray(dt * TIME))
    assert bool(after.result == jdyn.Result.success)
    assert set(before.sensors) == set(after.sensors) == set(units)
    for name, value in before.sensors.items():
        size = factor(*units[name])
        atol = 1e-10 * size * np.max(np.abs(value))
        np.testing.assert_allclose(after.sensors[name], size * value, rtol=1e-9, atol=atol, err_msg=name)
    np.testing.assert_allclose(end.q, state.q * of_q, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(end.v, state.v * of_v, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(end.parts["controller"].controller, state.parts["controller"].controller, rtol=1e-10)
    jax.tree.map(np.testing.assert_array_equal, small.actuators, jdyn.scale(system).actuators)


def test_constraints_are_in_their_units():
    """Residuals of frames and joints in other places are those of before, in m where they are lengths."""
    of, rng = jdyn.constraints, np.random.default_rng(0)
    system, _ = everything()
    pose = jdyn.pose((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    frames, joints, t = ("tip", "world"), {"slide": jnp.asarray(0.3), "hinge": jnp.asarray(0.7)}, jnp.asarray(0.4)

    def rising(t):
        return jdyn.Transform(jnp.eye(3), jnp.stack([jnp.sin(t), 0 * t, t**2]))

    L, six = LENGTH, [1.0, 1.0, 1.0, LENGTH, LENGTH, LENGTH]
    points = [0.1, 0.2, 0.3], [0.3, 0.1, 0.0]
    for constraint, expected in (
        (of.Connect(*frames, *points), L),
        (of.Hinge(*frames, [0, 1.0, 0], [1.0, 0, 0], *points), [L, L, L, 1, 1]),
        (of.Weld(*frames, pose), six),
        (of.Distance(*frames, 0.4, *points), L),
        (of.PointOnPlane(*frames, [0.3, 0.1, 0.0], [0, 1.0, 0.2], 0.4), L),
        (of.Gear("slide", "hinge", [0.1, 0.2, 0.3]), L),
        (of.Gear("hinge", "slide", [0.1, 0.2, 0.3]), 1),
        (of.JointSum(["slide"], [2.0], 0.4), L),
        (of.JointSum(["slide", "hinge"], [2.0, 0.3], 0.4), 1),
        (of.PrescribedJoint("slide", lambda t: jnp.sin(2 * t)), L),
        (of.PrescribedFrame("tip", rising), six),
        (of.RollingDisk("tip", 0.3, [0, 1.0, 0.2]), L),
        (of.RollingSphere("tip", 0.3), L),
        (of.Guided(of.Weld("hand", "tip", pose), "hand", rising), six),
    ):
        (large,) = jdyn.scale(system.but(constraints=(constraint,)), length=L, mass=MASS, time=TIME).constraints
        poses = [jdyn.pose(rng.normal(size=3), rng.normal(size=3)) for _ in constraint.frames]
        moved = [jdyn.Transform(X.rotation, X.translation * L) for X in poses]
        here = Placed(t, tuple(poses), tuple(joints[name] for name in constraint.joints))
        there = Placed(t * TIME, tuple(moved), tuple(joints[x] * (L if x == "slide" else 1) for x in constraint.joints))
        residual = constraint.residual(here)
        what = type(constraint).__name__
        np.testing.assert_allclose(
            large.residual(there), residual * jnp.asarray(expected), rtol=1e-12, atol=1e-13, err_msg=what
        )
        assert np.all(residual != 0), what


def test_contact_and_stops_are_in_their_units():
    """Forces at depths and speeds, by the law and the materials of two shapes, and springs of joints' ends."""
    ball = jdyn.load("ball")
    depth, rate = jnp.array([0.02]), jnp.array([0.3])
    rubber = jdyn.contact.Material(3e4, 0.2, (0.5, 0.01, 0.02))
    hard = jdyn.contact.Material(jnp.inf, friction=0.3)
    laws = jdyn.contact.HuntCrossley(), jdyn.contact.HuntCrossley(1.5), jdyn.contact.SpringDamper()
    for law in (*laws, jdyn.contact.TwoStiffnesses(0.2)):
        contact = jdyn.CompliantContact(law, rubber, {"ball": hard}, gradient_reach=0.1)
        model = jdyn.with_ground(ball)
        system = jdyn.System(model, contact=contact)
        large = jdyn.scale(system, length=LENGTH, mass=MASS, time=TIME)
        small, big = (each.contact.between(each.touching()) for each in (system, large))
        here, there = (
            each.law.force(depth * m, rate * m / s, each.materials.stiffness[:1], each.materials.dissipation[:1])
            for each, m, s in ((small, 1, 1), (big, LENGTH, TIME))
        )
        np.testing.assert_allclose(there, here * factor(1, 1, -2), rtol=1e-12)
        np.testing.assert_allclose(
            big.materials.friction, np.asarray(small.materials.friction) * [1, LENGTH, LENGTH], rtol=1e-12
        )
        for what, units in {"slip_speed": (0, 1, -1), "spin_speed": (0, 0, -1), "gradient_reach": (0, 1, 0)}.items():
            value = getattr(system.contact, what) * factor(*units)
            np.testing.assert_allclose(getattr(large.contact, what), value, rtol=1e-12)
        still = jdyn.scale(system, length=LENGTH, mass=MASS, similar=False).contact
        assert (still.slip_speed, still.material.stiffness) == (contact.slip_speed, rubber.stiffness)
    cart = jdyn.load("cartpole").with_joint("hinge", lower=-1.0, upper=1.0).with_joint("rail", lower=-1.0)
    for limits in (jdyn.CompliantLimits(80.0, 0.3, 0.02), jdyn.ImpactLimits(0.4, resting_speed=0.1)):
        system = jdyn.System(cart, joint_limits=limits)
        large = jdyn.scale(system, length=LENGTH, mass=MASS, time=TIME)
        small, big = (each.joint_limits.stops(each.model) for each in (system, large))
        unit = jnp.array([[LENGTH, 1.0]])
        deep, fast = jnp.array([[0.05, 0.1], [-0.1, 0.2]]), jnp.array([[0.5, -0.3], [0.2, 1.0]])
        here, there = (
            each.push(each.beyond(-deep * m), fast * m / s) for each, m, s in ((small, 1.0, 1.0), (big, unit, TIME))
        )
        np.testing.assert_allclose(there, here * factor(1, 2, -2) / unit, rtol=1e-12)
        assert np.count_nonzero(here) == 3
        still = jdyn.scale(system, length=LENGTH, similar=False).joint_limits
        assert eqx.tree_equal(still, limits)


@pytest.mark.slow
def test_bounces_and_ticks_are_alike():
    """A cart under a digital controller bounces off the ends of its rail."""
    cart = jdyn.load("cartpole").with_joint("rail", lower=-0.5, upper=0.5).with_joint("hinge", lower=-2.0, upper=2.0)
    law = jdyn.control.ZeroOrderHold(jdyn.PD(cart, jnp.array([1.0, 0.3]), kp=9.0, kd=0.1), 0.02)
    system = jdyn.System(cart, controller=law, joint_limits=jdyn.ImpactLimits(0.6, resting_speed=0.3))
    large = jdyn.scale(system, length=LENGTH, mass=MASS, time=TIME)
    exact = diffrax.PIDController(rtol=1e-9, atol=1e-9)
    start = jnp.array([0.2, 0.1]), jnp.array([0.5, -0.5])
    unit = jnp.array([LENGTH, 1.0])
    before = jdyn.simulate(system, system.state(*start), 1.0, stepsize_controller=exact)
    after = jdyn.simulate(large, large.state(start[0] * unit, start[1] * unit / TIME), TIME, stepsize_controller=exact)
    assert np.isfinite(before.events.ts).sum() == np.isfinite(after.events.ts).sum() >= 1
    np.testing.assert_allclose(after.q[-1], before.q[-1] * unit, atol=1e-6)
    np.testing.assert_allclose(after.v[-1], before.v[-1] * unit / TIME, atol=1e-5)


def test_every_part_of_the_package_says_its_units():
    modules = [jdyn.actuators, jdyn.elements, jdyn.constraints, jdyn.sensors, jdyn.transmissions]
    bases = jdyn.actuators.Actuator, jdyn.ForceElement, jdyn.constraints.Constraint, jdyn.transmissions.Transmission
    kinds = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    found = {
        kind.__name__
        for kind in kinds
        if issubclass(kind, (*bases, jdyn.sensors.Sensor)) and not hasattr(kind, "scaled") and units_of(kind) is None
    }
    # Its coefficients are a function of anything.
    assert found == {"Transmission", "Constraint", "VelocityCoupling"}


def test_what_cannot_be_scaled_says_why():
    system, _ = everything()
    model = system.model

    class Lift(jdyn.ForceElement):
        push: float

        def force(self, t, kinematics, memory):
            return kinematics.push("tip", force=[0.0, 0.0, self.push])

    class Lifted(Lift):
        units: ClassVar = {"push": "N"}

    class Height(jdyn.transmissions.Transmission):
        def length(self, kinematics):
            return kinematics.position("tip")[2]

        def moments(self, kinematics):
            return kinematics.generalized(kinematics.push("tip", force=[0.0, 0.0, 1.0]))

    coupled = jdyn.constraints.VelocityCoupling((), ("hinge",), lambda placed: (jnp.zeros((1, 0, 6)), 1.0, 0.0))
    eased = jdyn.actuators.PositionServo("slide", 3.0, activation=jdyn.actuators.MuscleActivation())
    for parts, words in (
        ({"elements": (Lift(3.0),)}, "Lift has a field 'push' of unknown unit; name it in `units` of the class"),
        ({"constraints": (coupled,)}, "VelocityCoupling has a field 'coefficients' of unknown unit"),
        ({"actuators": (jdyn.actuators.Motor(Height()),)}, "Height has a length of unknown unit; give the class"),
        ({"actuators": (eased,)}, "MuscleActivation follows a command in m, but goes from 0 to 1"),
    ):
        with pytest.raises(ValueError, match=f"scale: {words}"):
            jdyn.scale(jdyn.System(model).but(**parts), length=2.0)
    lifted = jdyn.System(model, elements=[Lifted(3.0)])
    np.testing.assert_allclose(jdyn.scale(lifted, mass=2.0).elements[0].push, 6.0)
    assert jdyn.scale(lifted, mass=2.0, similar=False).elements[0].push == 3.0
    with pytest.raises(ValueError, match="without similar motions times stay what they are; leave out time"):
        jdyn.scale(model, time=2.0, similar=False)


def test_factors_have_derivatives_and_batches():
    """The frequency of a servo, by the factors, for several of them at once, with ranges that have no end."""
    model = jdyn.load("pendulum").with_joint("joint1", lower=-jnp.inf)
    servo = jdyn.actuators.PositionServo("joint1", kp=50.0)
    stop = jdyn.elements.TendonSpring(jdyn.transmissions.FixedTendon(["joint1"], [0.2]), 4.0)
    system = jdyn.System(model, actuators=[servo], elements=[stop], contact=None)

    def square(length, mass, similar):
        large = jdyn.scale(system, length=length, mass=mass, similar=similar)
        everything = sum(jnp.sum(jnp.where(jnp.isfinite(x), x, 0)) for x in jax.tree.leaves(large))
        M = jdyn.mass_matrix(large.model, jnp.zeros(1))[0, 0]
        return large.actuators[0].kp / M + 0 * everything

    slopes = jax.jit(jax.vmap(jax.value_and_grad(square, (0, 1)), (0, 0, None)), static_argnums=2)
    lengths, masses = jnp.array([1.0, 2.0, 3.0]), jnp.array([2.0, 1.0, 0.5])
    start = 50.0 / float(jdyn.mass_matrix(model, jnp.zeros(1))[0, 0])
    value, (by_length, by_mass) = slopes(lengths, masses, True)
    np.testing.assert_allclose(value, start / lengths, rtol=1e-12)
    np.testing.assert_allclose(by_length, -start / lengths**2, rtol=1e-12)
    np.testing.assert_allclose(by_mass, 0, atol=1e-12)
    value, (by_length, by_mass) = slopes(lengths, masses, False)
    np.testing.assert_allclose(value, start / lengths**2 / masses, rtol=1e-12)
    np.testing.assert_allclose(by_length, -2 * value / lengths, rtol=1e-12)
    np.testing.assert_allclose(by_mass, -value / masses, rtol=1e-12)
