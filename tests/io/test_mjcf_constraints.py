"""Equalities of MuJoCo files against MuJoCo: the rows that it computes, and motion as its equalities stiffen."""

import warnings

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.constraints import closed, constraint_rows
from tests.io.test_mjcf import EVERYTHING, load, one_body, two_joints

pytestmark = pytest.mark.fast_compile

# Every joint kind, lumped bodies, hinges off the origin, coordinates with `ref`, and all forms of equalities.
EQUALITIES = EVERYTHING.replace(
    "</mujoco>",
    """
  <default><default class="rod"><equality solref=".004 1" solimp=".99 .999 .001"/></default></default>
  <worldbody>
    <site name="post" pos=".4 .5 .6" euler=".1 .2 .3"/>
    <body name="disc" pos="2 1 0">
      <joint name="d" axis="1 2 3" ref=".2"/><inertial pos="0 0 .1" mass="1" diaginertia=".1 .1 .1"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="first"><joint joint="s" coef="2"/><joint joint="h1" coef="-1"/></fixed>
    <fixed name="next"><joint joint="h1" coef=".5"/><joint joint="d" coef="3"/></fixed>
  </tendon>
  <equality>
    <connect name="to world" body1="wrist" anchor=".1 .2 .3"/>
    <connect name="bodies" body1="plate" body2="pivot" anchor=".3 -.2 .1"/>
    <connect name="sites" site1="s" site2="post"/>
    <weld name="weld to world" body1="plate"/>
    <weld name="weld bodies" body1="rail" body2="pivot" anchor=".2 .3 .4" torquescale="2" class="rod"/>
    <weld name="posed" body1="rail" body2="disc" relpose=".1 .2 .3 1 .5 .2 .1" anchor=".1 .2 -.1"/>
    <weld name="position alone" body1="rail" body2="disc" relpose="0 0 0 0 0 0 0"/>
    <weld name="weld sites" site1="imu" site2="s"/>
    <weld name="no torque" body1="plate" body2="disc" torquescale="0" anchor=".1 .2 -.1"/>
    <weld name="no torque, posed" body1="plate" body2="disc" torquescale="0" relpose=".1 .2 .3 1 0 0 0" anchor="1 0 0"/>
    <weld name="no torque, sites" site1="post" site2="imu" torquescale="0"/>
    <joint name="quartic" joint1="s" joint2="h2" polycoef=".1 2 .3 -.2 .1"/>
    <joint name="locked" joint1="h1" polycoef=".3 1 2 3 4"/>
    <joint name="locked at ref" joint1="h2"/>
    <joint name="mimic" joint1="rail" joint2="h2" polycoef=".1 2 0 0 0"/>
    <joint name="second" joint1="rail" joint2="turn" polycoef=".1 2 0 0 0"/>
    <joint name="off" joint1="d" active="false"/>
    <tendon name="held" tendon1="first" polycoef=".1 5 0 0 0"/>
    <tendon name="together" tendon1="first" tendon2="next" polycoef=".1 .2 0 0 0"/>
  </equality>
</mujoco>
""",
)
NAMES = [
    *("to world", "bodies", "sites", "weld to world", "weld bodies", "posed", "position alone", "weld sites"),
    *("no torque", "no torque, posed", "no torque, sites", "quartic", "locked", "locked at ref", "second"),
    *("held", "together"),
]

FOUR_BAR = """
<mujoco>
  <compiler angle="radian"/><option timestep="2e-4" integrator="RK4"><flag contact="disable"/></option>
  <worldbody>
    <body name="crank"><joint axis="0 1 0" ref=".3"/><geom type="capsule" fromto="0 0 0 .1 0 .2" size=".01"/>
      <body name="coupler" pos=".1 0 .2">
        <joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .4 0 .1" size=".01"/>
      </body>
    </body>
    <body name="rocker" pos=".5 0 0">
      <joint axis="0 1 0" ref="-.2"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".01"/>
    </body>
  </worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor=".4 0 .1" solref="{} 1"/></equality>
</mujoco>
"""


def constraints(source):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        return jdyn.load_constraints(source)


@eqx.filter_jit
def residual(model, several, q):
    return constraint_rows(model, several, jnp.zeros(()), q, jnp.zeros(model.nv)).residual


def efc(m, qpos):
    """MuJoCo's rows by equality."""
    data = mujoco.MjData(m)
    data.qpos[:] = qpos
    mujoco.mj_forward(m, data)
    equality = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    rows = {m.equality(i).name: data.efc_pos[equality & (data.efc_id == i)] for i in range(m.neq)}
    return data, rows


def in_mujocos_terms(m, data, name, ours):
    """MuJoCo's rows from those of a constraint: points in world axes, sines of half angles, of the second frame in the
    first."""
    i = m.equality(name).id
    kind, first, numbers = m.eq_type[i], m.eq_obj1id[i], m.eq_data[i]
    if kind in (int(mujoco.mjtEq.mjEQ_JOINT), int(mujoco.mjtEq.mjEQ_TENDON)):
        return ours
    sites = m.eq_objtype[i] == int(mujoco.mjtObj.mjOBJ_SITE)
    R = (data.site_xmat if sites else data.xmat)[first].reshape(3, 3)
    if len(ours) == 3:
        rotation = np.zeros(3) if kind == int(mujoco.mjtEq.mjEQ_WELD) else []
        return np.concatenate([-R @ ours, rotation])
    anchor, turn = (np.zeros(3), np.array([1.0, 0, 0, 0])) if sites else (numbers[:3], numbers[6:10])
    held, off, quaternion = np.zeros(9), np.zeros(9), np.zeros(4)
    angle = np.linalg.norm(ours[:3])
    mujoco.mju_axisAngle2Quat(quaternion, ours[:3] / angle, angle)
    mujoco.mju_quat2Mat(off, quaternion)
    mujoco.mju_quat2Mat(held, turn)
    apart = ours[3:] + off.reshape(3, 3) @ anchor - anchor
    return np.concatenate([-R @ held.reshape(3, 3) @ apart, -numbers[10] * quaternion[1:]])


@pytest.mark.slow
def test_rows_are_mujocos():
    m, model, several = mujoco.MjModel.from_xml_string(EQUALITIES), load(EQUALITIES), constraints(EQUALITIES)
    assert len(several) == len(NAMES)
    sizes = [
        6 if isinstance(one, jdyn.constraints.Weld) else 3 if isinstance(one, jdyn.constraints.Connect) else 1
        for one in several
    ]
    for seed in range(3):
        q = model.random(jax.random.key(seed))
        data, rows = efc(m, np.asarray(model.expand(q)))
        for name, ours in zip(NAMES, np.split(residual(model, several, q), np.cumsum(sizes)[:-1]), strict=True):
            got, expected = in_mujocos_terms(m, data, name, ours), rows[name]
            # q and -q are one rotation.
            if len(ours) == 6 and got[3:] @ expected[3:] < 0:
                got[3:] *= -1
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12, err_msg=name)
        assert len(rows["off"]) == 0
        assert abs(rows["mimic"]) < 1e-14


@pytest.mark.slow
def test_a_four_bar_moves_as_mujocos_does_as_its_pin_stiffens():
    source = FOUR_BAR.format(0.02)
    model, loops = load(source), constraints(source)
    # MuJoCo finds the rocker's point where the coordinates are `ref`, not zero.
    np.testing.assert_allclose(loops[0].point_b, [0, 0, 0.3], rtol=0, atol=1e-15)
    tight = diffrax.PIDController(rtol=1e-8, atol=1e-8)
    q0 = jnp.array([0.3, 0.0, -0.2])
    motion = jdyn.simulate(model, q0, jnp.zeros(3), 0.4, constraints=loops, stepsize_controller=tight)
    assert np.max(np.abs(motion.q[-1] - q0)) > 1
    errors = []
    for time_constant in (0.02, 0.01, 0.005, 0.0025, 0.00125):
        m = mujoco.MjModel.from_xml_string(FOUR_BAR.format(time_constant))
        data = mujoco.MjData(m)
        for _ in range(2000):
            mujoco.mj_step(m, data)
        errors.append(np.max(np.abs(data.qpos - motion.q[-1])))
    # The pin gives way in proportion to the square of the time constant.
    assert np.all(np.array(errors[:-1]) > 2 * np.array(errors[1:])), errors
    assert errors[-1] < 5e-5


def test_locked_joints_stay():
    source = two_joints(
        '<equality><joint joint1="h" polycoef=".2 9 0 0 0"/><joint joint1="k"/></equality>', 'ref=".3"', 'ref="-.1"'
    )
    model, locks = load(source), constraints(source)
    # Their positions are leaves.
    np.testing.assert_allclose(jax.tree.leaves(locks), [0.5, -0.1], rtol=0, atol=1e-15)
    q = jnp.array([0.5, -0.1])
    np.testing.assert_allclose(residual(model, closed(model, locks, jnp.zeros(()), q), q), 0, rtol=0, atol=1e-15)


def test_names_are_those_of_the_model():
    """Where `load` has to find other names than the file's, and where it changes the base."""
    body = '<site name="a" pos="0 .1 0"/><site/><body pos="1 0 0"><joint/><geom size=".1"/><site name="world"/></body>'
    source = one_body(
        "<freejoint/>",
        '<equality><weld body1="a"/><connect site1="a" site2="world"/></equality>'
        '<worldbody><site name="b"/><body><joint/><joint axis="1 0 0"/><geom size=".1"/></body></worldbody>',
        body=body,
    )
    weld, connect = constraints(source)
    assert (weld.frames, connect.frames) == (("a", "world"), ("a_2", "world_2"))
    for floating_base in (True, False):
        model = load(source, floating_base=floating_base)
        assert jax.eval_shape(residual, model, (weld, connect), model.neutral()).shape == (9,)


@pytest.mark.parametrize(
    ("equality", "said"),
    [
        ('<weld name="w" body1="a" solref=".01 1"/>', "softness (solref, solimp) of equality constraints w"),
        ('<connect name="c" body1="a" anchor="0 0 0" solimp=".9 .99 .001"/>',
         "softness (solref, solimp) of equality constraints c"),
        ('<weld name="w" body1="a" torquescale="3"/>', "torquescale of equality constraints w"),
        ('<tendon name="e" tendon1="t" tendon2="u" polycoef="0 1 1 0 0"/>', "equality constraints e (tendon)"),
    ],
)  # fmt: skip
def test_what_is_not_simulated_is_named(equality, said):
    with pytest.warns(jdyn.ModelWarning) as caught:
        jdyn.load_constraints(_with(equality))
    assert [f"not simulated: {said}" in str(w.message) for w in caught] == [True]


def _with(equality):
    return one_body(
        '<joint name="h"/><joint name="k" axis="1 0 0"/>',
        f'<equality>{equality}</equality><tendon><fixed name="t"><joint joint="h" coef="2"/></fixed>'
        '<fixed name="u"><joint joint="k" coef="2"/></fixed></tendon>'
        '<worldbody><body name="hand" mocap="true"><site name="palm"/></body></worldbody>',
        body='<site name="s"/>',
    )


@pytest.mark.parametrize(
    "source",
    [
        _with('<weld body1="a" active="false"/><joint joint1="h" joint2="k"/>'),
        _with('<weld body1="a"/>').replace("<worldbody>", '<option><flag equality="disable"/></option><worldbody>', 1),
        '<robot name="r"><link name="l"/></robot>',
        "panda",
    ],
)
def test_what_has_no_constraints_is_not_warned_of(source):
    assert jdyn.load_constraints(source) == ()


def test_unknown_robots_are_named():
    with pytest.raises(ValueError, match="no bundled robot is called 'pand'; did you mean 'panda'"):
        jdyn.load_constraints("pand")
