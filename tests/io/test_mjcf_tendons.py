"""Tendons of MuJoCo files against MuJoCo: lengths, moments, and motion with what resists them."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.io.mjcf import compile_document
from jdyn.io.mjcf_source import read
from jdyn.io.mjcf_tendons import transmission_of
from jdyn.io.mjcf_translation import Translation
from tests.actuators.test_mjcf_actuators import assert_as_in_mujoco
from tests.io.test_mjcf import compiled, load, random_state, to_mujoco

pytestmark = pytest.mark.fast_compile

# A finger in the world, and a body that moves freely beside it.
ROBOT = """<mujoco>
  <compiler angle="radian"/><option><flag contact="disable"/></option>
  <worldbody>
    <site name="a" pos="-.3 .02 .1"/><site name="b" pos=".1 -.05 .35"/><site name="up" pos="0 .05 .2"/>
    <geom name="post" type="cylinder" size=".06 .2" pos="0 0 .1" euler="1.2 .3 .1"/>
    <body name="upper" pos="0 0 .1">
      <joint name="s" type="slide" axis="1 0 1" ref=".1"/>
      <joint name="h" axis="0 1 0" pos=".02 0 .01" ref=".3"/>
      <inertial pos=".05 .01 .02" mass="1" diaginertia=".02 .03 .04"/>
      <geom name="drum" type="cylinder" size=".05 .1" pos=".2 0 0" euler="1.5 .2 0"/>
      <geom name="ball" type="sphere" size=".06" pos=".1 .02 .01" euler=".1 .2 .3"/>
      <site name="c" pos=".1 .12 .02"/><site name="within" pos=".1 .03 .01"/><site name="within drum" pos=".21 0 0"/>
      <site name="over" pos=".1 .02 .2"/><site name="beside drum" pos=".2 .02 .1"/>
      <body name="lower" pos=".25 0 0">
        <joint name="e" axis="0 1 .2"/><joint name="w" type="ball" pos=".05 0 0"/>
        <inertial pos=".1 0 .02" mass=".5" diaginertia=".01 .01 .02"/>
        <site name="d" pos=".1 -.08 .03"/><site name="f" pos=".12 .05 .06"/>
        <geom name="tip" type="sphere" size=".03" pos=".15 0 0"/>
      </body>
    </body>
    <body name="load" pos=".1 .3 .4">
      <freejoint/><inertial pos="0 .01 0" mass=".3" diaginertia=".01 .02 .01"/>
      <site name="g" pos=".05 0 .02"/><site name="k" pos="-.04 0 .03"/>
      <geom name="bulb" type="sphere" size=".07" pos="0 0 -.02"/>
    </body>
  </worldbody>
  <tendon>{}</tendon>
</mujoco>"""


def sites(*names):
    """Path of a tendon: sites; pulleys, as numbers; and pairs of a body and a side site, or None."""
    parts = []
    for name in names:
        if isinstance(name, str):
            parts.append(f'<site site="{name}"/>')
        elif isinstance(name, int | float):
            parts.append(f'<pulley divisor="{name}"/>')
        else:
            body, side = name
            parts.append(f'<geom geom="{body}"' + (f' sidesite="{side}"/>' if side else "/>"))
    return "".join(parts)


PATHS = {
    "straight": sites("a", "c", "d", "g"),
    "sphere": sites("a", ("ball", None), "d"),
    "free sphere": sites("c", ("bulb", None), "f", ("tip", None), "b"),
    "cylinder": sites("c", ("drum", None), "d"),
    "fixed cylinder": sites("a", ("post", None), "g"),
    "side of a sphere": sites("a", ("ball", "over"), "g"),
    "side of a cylinder": sites("b", ("drum", "beside drum"), "f"),
    "moving side": sites("b", ("post", "k"), "f"),
    "inside a sphere": sites("a", ("ball", "within"), "d"),
    "inside a cylinder": sites("b", ("drum", "within drum"), "g"),
    "pulleys": sites(2, "a", ("ball", None), "d", 3, "c", "g", 0.5, "b", ("post", "up"), "f", "k"),
}
SPATIAL = {name: f"<spatial>{path}</spatial>" for name, path in PATHS.items()}
FIXED = '<fixed><joint joint="s" coef="1.5"/><joint joint="e" coef="-.4"/></fixed>'


def seen_by_mujoco(m, qpos):
    """Lengths and moments of all tendons in one state, moments along MuJoCo's velocities."""
    data = mujoco.MjData(m)
    data.qpos[:] = qpos
    mujoco.mj_forward(m, data)
    moments = np.zeros((m.ntendon, m.nv))
    mujoco.mju_sparse2dense(moments, data.ten_J, m.ten_J_rownnz, m.ten_J_rowadr, m.ten_J_colind)
    return data.ten_length.copy(), moments, data.ten_wrapnum.copy()


def tendons(source):
    document = read(source, ())
    translation = Translation(mujoco, compile_document(mujoco, document)[0], document, None)
    return [transmission_of(translation, i) for i in range(translation.m.ntendon)]


@eqx.filter_jit
def lengths_and_moments(model, tendons, q):
    kinematics = jdyn.elements.Kinematics.of(model, q, jnp.zeros(model.nv))
    return jnp.stack([x.length(kinematics) for x in tendons]), jnp.stack([x.moments(kinematics) for x in tendons])


@eqx.filter_jit
def slopes(model, tendons, q):
    at = jnp.zeros(model.nv)
    return jax.jacrev(lambda e: lengths_and_moments(model, tendons, model.integrate(q, e))[0])(at)


@pytest.mark.slow
def test_lengths_and_moments_are_mujocos():
    text = ROBOT.format(FIXED + "".join(SPATIAL.values()))
    m, model, rng, ours = compiled(text), load(text), np.random.default_rng(0), tendons(text)
    names, parts = ["fixed", *SPATIAL], []
    rings = np.array([i for i, name in enumerate(names) if "inside" in name])
    for _ in range(50):
        qpos, *_ = random_state(m, rng)
        length, moment = lengths_and_moments(model, ours, jnp.asarray(qpos))
        np.testing.assert_allclose(moment[rings], slopes(model, [ours[i] for i in rings], jnp.asarray(qpos)), atol=1e-9)
        expected, arms, wraps = seen_by_mujoco(m, qpos)
        np.testing.assert_allclose(length, expected, atol=1e-9)
        for name, mine, theirs in zip(names, moment, arms @ to_mujoco(m, qpos)[0], strict=True):
            # MuJoCo's iterations end where angles at a ring are as good as this.
            np.testing.assert_allclose(mine, theirs, atol=1e-6 if "inside" in name else 1e-9, err_msg=name)
        parts.append(wraps)
    # Each wraps in some states, and not in others.
    for name, counts in zip(names, np.array(parts).T, strict=True):
        assert len(set(counts.tolist())) > 1 or name in ("fixed", "straight"), name


# What resists lengths.


RESISTING = ROBOT.format(
    '<fixed stiffness="40" damping="3" springlength=".2"><joint joint="s" coef="1.5"/><joint joint="e" coef="-.4"/>'
    f'</fixed><spatial name="rope" stiffness="60" damping="2" springlength="0 .4">{PATHS["sphere"]}</spatial>'
    f'<spatial stiffness="20" springlength=".7 .8">{PATHS["pulleys"]}</spatial>'
    f'<spatial damping="1.5">{PATHS["side of a cylinder"]}</spatial><spatial>{PATHS["straight"]}</spatial>'
)


def loaded(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return jdyn.load_system(text)


@pytest.mark.slow
def test_tendons_accelerate_as_much_as_mujocos():
    m, system, rng = compiled(RESISTING), loaded(RESISTING), np.random.default_rng(1)
    model = system.model
    assert len(system.elements) == 4

    @jax.jit
    def accelerations(q, v):
        tau = sum(element.generalized(model, 0.0, q, v) for element in system.elements)
        kinematics = jdyn.elements.Kinematics.of(model, q, v)
        return jdyn.forward_dynamics(model, q, v, tau), sum(x.energy(kinematics, None) for x in system.elements)

    data = mujoco.MjData(m)
    for _ in range(20):
        qpos, v, _ = random_state(m, rng)
        T, free = to_mujoco(m, qpos)
        data.qpos[:], data.qvel[:] = qpos, T @ v
        mujoco.mj_forward(m, data)
        mujoco.mj_energyPos(m, data)
        a, energy = map(np.asarray, accelerations(jnp.asarray(qpos), jnp.asarray(v)))
        qacc = T @ a
        for dof in free:
            spin, through = v[dof : dof + 3], v[dof + 3 : dof + 6]
            qacc[dof : dof + 3] += T[dof : dof + 3, dof + 3 : dof + 6] @ np.cross(spin, through)
        np.testing.assert_allclose(qacc, data.qacc, rtol=1e-8, atol=1e-8)
        # MuJoCo counts heights from elsewhere.
        stored = data.energy[0] + m.opt.gravity[2] * (m.body_mass @ data.xipos[:, 2])
        np.testing.assert_allclose(energy, stored, rtol=1e-9)


@pytest.mark.slow
def test_actuators_pull_tendons():
    tendons = FIXED.replace("<fixed", '<fixed name="sum"') + "".join(
        spatial.replace("<spatial", f'<spatial name="{name}"')
        for name, spatial in SPATIAL.items()
        if name in ("pulleys", "side of a cylinder")
    )
    actuators = """<actuator>
      <motor tendon="sum" gear="2"/><position tendon="pulleys" kp="20" kv="2"/>
      <muscle tendon="side of a cylinder" lengthrange=".2 1.5" force="30"/><damper tendon="sum" kv="3" ctrlrange="0 1"/>
    </actuator></mujoco>"""
    assert_as_in_mujoco(ROBOT.format(tendons).replace("</mujoco>", actuators), count=20)


def two_slides(tendon, head="", rest=""):
    return f"""<mujoco><option gravity="0 0 0"/>{head}<worldbody>
      <body name="a"><joint name="x" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
        <body name="b"><joint name="y" type="slide" axis="0 1 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
          <site name="s"/><site name="near" pos="0 1 .01"/>
        </body>
      </body>
      <site name="w" pos="0 2 0"/><geom name="g" type="sphere" size=".1" pos="0 1 0" contype="0" conaffinity="0"/>
    </worldbody><tendon><fixed name="t" {tendon}><joint joint="x" coef="2"/><joint joint="y" coef="-1"/></fixed>
    {rest}</tendon></mujoco>"""


def test_limits_and_friction_become_stops_and_friction():
    (element,) = loaded(two_slides('range="-1 .5" frictionloss="3"')).elements
    np.testing.assert_array_equal(element.range, [-1, 0.5])
    # Masses of 3 and 1 resist the length by 1 / (2² / 3 + 1).
    np.testing.assert_allclose(element.stop_stiffness, 1e4 / (4 / 3 + 1), rtol=1e-9)
    assert (element.friction, element.stiffness, element.damping) == (3, 0, 0)


@pytest.mark.parametrize("flag", ["spring", "damper", "limit", "frictionloss", "constraint"])
def test_what_a_file_switches_off_stays_off(flag):
    everything = 'stiffness="2" damping="3" range="-1 1" frictionloss="4"'
    head = f'<option><flag {flag}="disable"/></option>'
    (whole,), (part,) = (loaded(two_slides(everything, x)).elements for x in ("", head))
    changed = [name for name in vars(whole) if not eqx.tree_equal(getattr(whole, name), getattr(part, name))]
    stops, friction = ["range", "stop_stiffness"], ["friction"]
    off = {"spring": ["stiffness"], "damper": ["damping"], "limit": stops, "frictionloss": friction}
    assert sorted(changed) == sorted(off.get(flag, [*stops, *friction]))


def test_springs_and_dampers_with_higher_powers_are_mujocos():
    text = two_slides('stiffness="3 2 1.5" damping=".5 .3 .2" springlength="-.1 .2"').replace(
        '<joint name="x"', '<joint name="x" stiffness="-4 2 .5" damping="0 1 2" springref=".3"'
    )
    m, system = compiled(text), loaded(text)
    assert len(system.elements) == 2
    data, rng = mujoco.MjData(m), np.random.default_rng(0)

    @jax.jit
    def ours(q, v):
        kinematics = jdyn.elements.Kinematics.of(system.model, q, v)
        tau = sum(element.generalized(system.model, 0.0, q, v) for element in system.elements)
        energy = sum(element.energy(kinematics, None) for element in system.elements)
        return jdyn.forward_dynamics(system.model, q, v, tau), energy + jdyn.potential_energy(system.model, q)

    for _ in range(10):
        data.qpos[:], data.qvel[:] = rng.normal(size=m.nv), rng.normal(size=m.nv)
        mujoco.mj_forward(m, data)
        mujoco.mj_energyPos(m, data)
        a, energy = ours(jnp.asarray(data.qpos), jnp.asarray(data.qvel))
        np.testing.assert_allclose(a, data.qacc, atol=1e-12)
        np.testing.assert_allclose(energy, data.energy[0], atol=1e-12)


def test_tendons_that_nothing_resists_are_no_elements():
    assert loaded(two_slides("")).elements == ()


@pytest.mark.parametrize(
    "tendon, rest, message",
    [
        ('actuatorfrcrange="-1 1"', "", "actuatorfrcrange of tendons t"),
        ('stiffness="1" springyield=".2"', "", "plastic yield of tendons t"),
        (
            "",
            '<spatial name="u"><site site="w"/><geom geom="g" sidesite="near"/><site site="s"/></spatial>',
            "motion of side sites within bodies that carry tendons u",
        ),
    ],
)
def test_what_is_left_out_is_named(tendon, rest, message):
    text = two_slides(tendon, rest=rest).replace(
        '<site name="near" pos="0 1 .01"/>', '<site name="near" pos="0 1 .01"/>'
    )
    with pytest.warns(jdyn.ModelWarning, match=f"not simulated: {message}"):
        jdyn.load_system(text)


def test_a_model_alone_has_no_tendons():
    with pytest.warns(jdyn.ModelWarning, match="not simulated: tendons t; jdyn.load_system has them"):
        jdyn.load(two_slides('stiffness="1"'))
