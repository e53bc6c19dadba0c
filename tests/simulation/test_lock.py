"""Systems of which joints are locked, against MuJoCo's models without these joints, and against motors that hold."""

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

ELBOW, HIP = 0.4, 0.15
# The rope pulls at the upper body: of a body that is cut, forces are taken for those on its other piece.
CALM = ARM.replace('<motor tendon="rope"', '<motor name="pull" tendon="rope"').replace(
    '<site site="hand"/>', '<site site="root"/>'
)
# In a medium, with a body whose weight is carried in part: forces that MuJoCo's load cells do not feel.
WHOLE = CALM.replace("<worldbody>", '<option density="50" viscosity=".5"/><worldbody>', 1).replace(
    '<body name="lower" pos="0 0 -.5"', '<body name="lower" pos="0 0 -.5" gravcomp=".3"'
)


def by_hand(text):
    """A file without two joints, and what acts on these alone."""
    half = ELBOW / 2
    turned = np.array([np.cos(half), *np.sin(half) * np.array([0, 0.6, 0.8])])
    hip = f'quat="{np.cos(HIP / 2)} 0 {np.sin(HIP / 2)} 0"'
    for old, new in {
        '<joint name="elbow" axis="0 .6 .8"/>': "",
        '<joint name="hip" axis="0 1 0"/>': "",
        '<body name="lower" pos="0 0 -.5"': f'<body name="lower" pos="0 0 -.5" quat="{" ".join(map(str, turned))}"',
        '<body name="strut" pos=".3 0 1"': f'<body name="strut" pos=".3 0 1" {hip}',
        '<joint joint="hip" coef="-1"/>': "",
        'springlength=".2"': f'springlength="{0.2 + HIP}"',
        '<position name="servo" joint="elbow" kp="20" kv="2" ctrlrange="-1 1"/>': "",
        '<general name="slow" joint="hip" dyntype="filter" dynprm=".1" gainprm="3"/>': "",
        '<actuatorfrc name="effort" actuator="servo"/><jointpos name="angle" joint="elbow"/>': "",
        'qpos=".3 .5 .1 .05"': 'qpos=".3 .05"',
    }.items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.slow
def test_what_is_left_is_a_file_without_the_joints():
    locked = jdyn.lock(load(CALM), {"elbow": ELBOW, "hip": HIP})
    text = by_hand(CALM)
    expected = load(text)
    assert [each.name for each in locked.actuators] == [each.name for each in expected.actuators] == ["pull"]
    assert [each.name for each in locked.sensors] == [each.name for each in expected.sensors]
    assert_mujoco_agrees(locked, mujoco.MjModel.from_xml_string(text))
    np.testing.assert_allclose(locked.configurations["bent"], expected.configurations["bent"])


@pytest.mark.slow
def test_what_is_left_in_a_medium_is_a_file_without_the_joints():
    locked, expected = jdyn.lock(load(WHOLE), {"elbow": ELBOW, "hip": HIP}), load(by_hand(WHOLE))
    q, v, action = jnp.array([0.3, -0.1]), jnp.array([0.7, 0.4]), jnp.array([0.6])
    ours, theirs = (each.sense(each.state(q, v), action) for each in (locked, expected))
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-12, atol=1e-12, err_msg=name)


def controlled():
    """An arm whose controller has a memory, and knows all joints."""
    arm = jdyn.load("panda").without_shapes()
    goal = jnp.linspace(0.2, -0.5, arm.nv) + arm.neutral()
    return jdyn.System(
        arm,
        controller=jdyn.PID(arm, goal, kp=80.0, ki=20.0, kd=10.0) + jdyn.GravityCompensation(arm),
        elements=[jdyn.elements.StribeckFriction(name, 0.5, 0.8, 0.1) for name in arm.joint_names[:4]],
    )


@pytest.mark.slow
def test_a_system_moves_as_if_motors_held_its_joints():
    system = controlled()
    arm = system.model
    names = arm.joint_names[2], arm.joint_names[5]
    at = {name: float(arm.neutral()[arm.joint_names.index(name)]) + 0.1 for name in names}
    locked = jdyn.lock(system, at)
    assert len(locked.elements) == 3
    holding = [jdyn.constraints.PrescribedJoint(name, lambda t, x=x: x + 0 * t) for name, x in at.items()]
    held = system.but(constraints=tuple(holding))
    left = [i for i, name in enumerate(arm.joint_names) if name not in at]
    q = arm.neutral().at[jnp.array([2, 5])].add(0.1)
    exact = diffrax.PIDController(rtol=1e-8, atol=1e-8)
    ours = jdyn.simulate(locked, locked.state(q[jnp.array(left)]), 0.4, stepsize_controller=exact)
    theirs = jdyn.simulate(held, held.state(q), 0.4, stepsize_controller=exact)
    for what in ("q", "v"):
        np.testing.assert_allclose(
            getattr(ours, what)[-1], getattr(theirs, what)[-1][jnp.array(left)], atol=1e-6, err_msg=what
        )
    np.testing.assert_allclose(ours.tau[-1], theirs.tau[-1][jnp.array(left)], atol=1e-4)


def geared():
    """Three wheels, of which two are geared and three add up."""
    builder = jdyn.Builder("wheels")
    for name in "abc":
        axle = jdyn.Revolute([0.0, 0.0, 1.0])
        builder.add_link(f"wheel {name}", axle, mass=1.0, inertia=jnp.ones(3), joint_name=name)
    total = jdyn.constraints.JointSum(("a", "b", "c"), (1.0, 2.0, -1.0), 0.7)
    return jdyn.System(builder.build(), constraints=[total])


def test_sums_of_joints_count_locked_ones_as_constants():
    (total,) = jdyn.lock(geared(), {"b": 0.2}).constraints
    assert (total.joints, float(total.total)) == (("a", "c"), pytest.approx(0.7 - 2 * 0.2))
    assert jdyn.lock(geared(), {"a": 0.1, "b": 0.2, "c": 0.3}).constraints == ()


def test_what_connects_a_locked_joint_with_another_is_refused():
    gear = jdyn.constraints.Gear("b", "a", (0.0, 2.0))
    system = geared().but(constraints=(gear,))
    with pytest.raises(ValueError, match="Gear connects joint 'a', which is locked, with b;"):
        jdyn.lock(system, {"a": 0.3})
    assert jdyn.lock(system, {"a": 0.3, "b": 0.6}).constraints == ()


def test_numbers_may_be_traced():
    system = geared()

    def speed(angle, weight):
        sum_of = eqx.tree_at(lambda c: c.weights, system.constraints[0], jnp.array([1.0, weight, -1.0]))
        held = jdyn.lock(system.but(constraints=(sum_of,)), {"b": angle})
        return held.constraints[0].total

    by_angle, by_weight = jax.grad(speed, (0, 1))(0.2, 2.0)
    assert (float(by_angle), float(by_weight)) == pytest.approx((-2.0, -0.2))
    np.testing.assert_allclose(jax.vmap(speed, (0, None))(jnp.array([0.1, 0.3]), 2.0), [0.5, 0.1])
