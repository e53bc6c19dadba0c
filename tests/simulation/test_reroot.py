"""Systems with another root, against MuJoCo's models that are written from that root."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from tests.simulation.mujoco_scenes import assert_mujoco_agrees, load

pytestmark = pytest.mark.fast_compile

# A biped in honey with a knee on the way from the torso to the shin, and an arm beside it.
OUTSIDE = """
  <option density="40" viscosity=".3"/>
  <default><geom contype="0" conaffinity="0"/></default>
"""
LINKS = {
    "torso": '<geom type="box" size=".1 .15 .2" pos="0 .02 .1"/><site name="imu" pos=".05 0 .2" euler="10 20 30"/>',
    "thigh": '<geom type="capsule" size=".05" fromto="0 0 0 .05 0 -.3"/><site name="thigh" pos="0 0 -.1"/>',
    "shin": '<geom type="capsule" size=".04" fromto="0 0 0 0 0 -.3"/><site name="sole" pos="0 0 -.3"/>',
    "arm": '<geom type="capsule" size=".03" fromto="0 0 0 0 0 -.3"/><site name="hand" pos="0 0 -.3"/>',
}
SHOULDER = '<joint name="shoulder" axis="1 0 .5" damping=".1" range="-60 90"/>'
HIP = '<joint name="hip" pos="0 0 0" axis="{} 1 .2" damping=".2" stiffness="2" springref="10" armature=".02"/>'
KNEE = '<joint name="knee" axis="0 1 0" range="-10 120"/>'
ACTS = """
  <tendon><spatial name="rope"><site site="hand"/><site site="sole"/></spatial></tendon>
  <actuator>
    <position name="servo" joint="hip" kp="20" kv="2" ctrlrange="-1 1"/>
    <general name="slow" joint="knee" dyntype="filter" dynprm=".1" gainprm="3"/>
    <motor name="pull" tendon="rope" gear="-2"/><motor name="jet" site="hand" gear="0 1 2 .1 0 .2"/>
  </actuator>
  <sensor>
    <accelerometer name="imu" site="imu"/><gyro name="gyro" site="imu"/>
    <framepos name="seen" objtype="site" objname="hand" reftype="site" refname="thigh"/>
    <tendonpos name="rope" tendon="rope"/><jointpos name="angle" joint="knee"/>
    <actuatorfrc name="effort" actuator="servo"/>
    <subtreecom name="center" body="{root}"/><subtreeangmom name="arm" body="arm"/>
  </sensor>
"""


def shaped(text):
    return f"<mujoco>{OUTSIDE}<worldbody>{text}</worldbody>"


BY_TORSO = (
    shaped(
        f"""<body name="torso" gravcomp=".3"><freejoint name="base"/>{LINKS["torso"]}
        <body name="arm" pos="0 .2 .25">{SHOULDER}{LINKS["arm"]}</body>
        <body name="thigh" pos=".02 .1 -.1" euler="5 0 0">{HIP.format(0)}{LINKS["thigh"]}
          <body name="shin" pos=".05 0 -.35" euler="0 0 15">{KNEE}{LINKS["shin"]}</body></body></body>"""
    )
    + ACTS.format(root="torso")
    + '<keyframe><key name="bent" qpos="0 0 1 1 0 0 0 .3 .5 .7"/></keyframe></mujoco>'
)


def inverse(pos, euler):
    """Pose of what carries, in what is carried."""
    X = jdyn.pose(pos, np.deg2rad(euler)).inverse()
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ravel(X.rotation))
    return f'pos="{" ".join(map(str, X.translation))}" quat="{" ".join(map(str, quaternion))}"'


def by_shin():
    """The same from the shin: joints turn what carried them, the other way."""
    turned = '<joint name="{}" pos="{}" axis="{}" {}/>'
    # Axes of the joints in the thigh and in the torso, opposite ones, at the frames of the old children.
    knee = np.array(jdyn.pose(rpy=np.deg2rad([0, 0, 15])).rotation @ np.array([0.0, -1.0, 0.0]))
    hip = np.array(jdyn.pose(rpy=np.deg2rad([5, 0, 0])).rotation @ np.array([0.0, -1.0, -0.2]))
    words = [" ".join(map(str, x)) for x in (knee, hip)]
    knee = turned.format("knee", ".05 0 -.35", words[0], 'range="-10 120"')
    hip = turned.format("hip", ".02 .1 -.1", words[1], 'damping=".2" stiffness="2" springref="10" armature=".02"')
    text = shaped(
        f"""<body name="shin"><freejoint name="base"/>{LINKS["shin"]}
        <body name="thigh" {inverse((0.05, 0, -0.35), (0, 0, 15))}>{knee}{LINKS["thigh"]}
          <body name="torso" gravcomp=".3" {inverse((0.02, 0.1, -0.1), (5, 0, 0))}>{hip}{LINKS["torso"]}
            <body name="arm" pos="0 .2 .25">{SHOULDER}{LINKS["arm"]}</body></body></body></body>"""
    )
    return text + ACTS.format(root="shin") + "</mujoco>"


@pytest.mark.slow
def test_a_system_is_a_file_from_the_other_root():
    system = load(BY_TORSO)
    other = jdyn.reroot(system, "shin")
    assert [each.name for each in other.sensors] == [each.name for each in system.sensors]
    assert_mujoco_agrees(other, mujoco.MjModel.from_xml_string(by_shin()))
    q = other.configurations["bent"]
    expected = jdyn.rerooted_state(system.model, other.model, system.configurations["bent"], jnp.zeros(system.model.nv))
    np.testing.assert_allclose(q, expected[0], rtol=1e-14)
    for link in ("torso", "imu", "hand"):
        old, new = (
            jdyn.frame_pose(each.model, each.configurations["bent"], link).translation for each in (system, other)
        )
        np.testing.assert_allclose(old, new, atol=1e-14)


def states(system, other, count=4):
    """Random states of a system, and those that are the same of another one."""
    model, to_other = system.model, jax.vmap(lambda q, v: jdyn.rerooted_state(system.model, other.model, q, v))
    q = jax.vmap(model.random)(jax.random.split(jax.random.key(0), count))
    v = jax.random.normal(jax.random.key(1), (count, model.nv))
    return (q, v), to_other(q, v)


@pytest.mark.slow
@pytest.mark.parametrize("with_actuators", [True, False])
def test_a_system_moves_as_before(with_actuators):
    """Accelerations of all links, and other sensors, at random states; the controller knows the old coordinates."""
    system = load(BY_TORSO)
    model, rng = system.model, np.random.default_rng(2)
    of_q, of_v = (
        jnp.asarray(rng.normal(size=(4 if with_actuators else model.nv, n))) for n in (model.nq - 1, model.nv)
    )

    def controller(t, q, v):
        # Quaternions of opposite signs are the same.
        return of_q @ jnp.concatenate([q[:3], q[3] * q[4:7], q[7:]]) + of_v @ v

    sensors = [
        kind(f"{kind.__name__} {link}", link)
        for link in ("imu", "thigh", "sole", "hand")
        for kind in (jdyn.sensors.FrameLinearAcceleration, jdyn.sensors.FrameAngularAcceleration)
    ]
    sensors += [jdyn.sensors.Force("load", "hand"), jdyn.sensors.SubtreeCenterOfMass("all", "world")]
    system = system.but(controller=controller, sensors=(*system.sensors, *sensors))
    if not with_actuators:
        seen = tuple(each for each in system.sensors if each.name != "effort")
        system = system.but(actuators=(), sensors=seen)
    other = jdyn.reroot(system, "sole")
    assert other.model.body_names[0] == "sole"
    ours, theirs = (
        jax.jit(jax.vmap(lambda q, v, each=each: each.sense(each.state(q, v))))(*at)
        for each, at in zip((system, other), states(system, other), strict=True)
    )
    assert set(ours) == set(theirs)
    for name, value in ours.items():
        np.testing.assert_allclose(theirs[name], value, rtol=1e-12, atol=1e-12 * np.max(np.abs(value)), err_msg=name)


def chain():
    """Three links one after another, with shapes."""
    builder, parent = jdyn.Builder("chain"), "world"
    for i, name in enumerate(("a", "b", "c")):
        joint = jdyn.Revolute((0, 1, 0)) if i else jdyn.Free()
        builder.add_link(f"link {name}", joint, parent=parent, placement=(0.1 * i, 0, 0.3 * i), joint_name=name,
                         mass=1.0 + i, com=(0, 0.01, 0.1), inertia=(0.1, 0.2, 0.15))  # fmt: skip
        parent = f"link {name}"
        builder.add_shape(parent, "sphere", 0.05)
    return builder.build()


def test_what_depends_on_the_root_is_refused():
    model = chain()
    pushed = jdyn.transmissions.GearedFrame("link c", [0, 0, 1.0, 0, 0, 0], reference="link b")
    for parts, words in (
        ({"sensors": [jdyn.sensors.JointPosition("at", "a")]}, "JointPosition 'at' is about the free joint 'a'"),
        ({"sensors": [jdyn.sensors.Force("load", "link b")]}, "Force 'load' is about the force that 'link b' takes"),
        ({"sensors": [jdyn.sensors.SubtreeCenterOfMass("c", "link b")]}, "Limb of 'link b' is no more what"),
        ({"actuators": [jdyn.actuators.Motor(jdyn.transmissions.GearedJoint("a", jnp.ones(6)))]}, "GearedJoint is a"),
        ({"actuators": [jdyn.actuators.Motor(pushed)]}, "would turn 'link c' in the place of 'link b' as soon as"),
    ):
        with pytest.raises(ValueError, match=f"reroot: .*{words}"):
            jdyn.reroot(jdyn.System(model).but(**parts), "link c")
    system = jdyn.System(model)
    assert jdyn.reroot(system, "link a") is system


@pytest.mark.slow
def test_numbers_of_systems_may_be_traced():
    """The pull on a link of which only part of the weight is carried, by a mass, for each of several."""
    model = chain()
    system = jdyn.System(model, elements=[jdyn.elements.CarriedWeight(("link a",), [0.5], [[0.0, 0.0, 0.1]])])
    system = system.but(sensors=(jdyn.sensors.Accelerometer("felt", "link a"),))

    def felt(mass, rerooted):
        heavy = jdyn.vary(system, {"body:link b.mass": mass})
        heavy = jdyn.reroot(heavy, "link c") if rerooted else heavy
        q, v = model.neutral().at[7:].set(0.4), jnp.linspace(-1, 1, model.nv)
        return jnp.sum(heavy.sense(heavy.state(*jdyn.rerooted_state(model, heavy.model, q, v)))["felt"])

    slopes = jax.jit(jax.vmap(jax.grad(felt), (0, None)), static_argnums=1)
    masses = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(slopes(masses, True), slopes(masses, False), rtol=1e-11)
    assert np.all(slopes(masses, True) != 0)


@pytest.mark.slow
def test_a_controller_goes_on_as_before():
    """Generalized forces of a controller that holds the old root, too, in a simulation with implicit stages."""
    model = chain()
    system = jdyn.System(model, controller=jdyn.PD(model, model.neutral(), kp=20.0, kd=2.0))
    other = jdyn.reroot(system, "link c")
    q, v = model.neutral().at[7:].set(jnp.array([0.5, -0.3])), jnp.linspace(-1, 1, model.nv)
    before = jdyn.simulate(system, system.state(q, v), 0.5)
    after = jdyn.simulate(other, other.state(*jdyn.rerooted_state(model, other.model, q, v)), 0.5)
    q, v = jdyn.rerooted_state(model, other.model, before.q[-1], before.v[-1])
    # Both are right to the default tolerance of 1e-6 of a step.
    np.testing.assert_allclose(other.model.difference(q, after.q[-1]), 0, atol=1e-5)
    np.testing.assert_allclose(after.v[-1], v, atol=1e-5)
