"""Mocap bodies of MuJoCo files guide what equalities hold."""

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.constraints import constraint_rows
from jdyn.spatial.rotation import quaternion_exp, quaternion_to_matrix
from tests.io.test_mjcf_constraints import efc, in_mujocos_terms

pytestmark = pytest.mark.fast_compile

SCENE = """<mujoco><option gravity="0 0 -3"/><compiler angle="radian"/>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody>
  <body name="hand" mocap="true" pos="0 0 1" euler=".1 .2 .3"><site name="palm" pos=".1 .2 .3" euler=".3 .2 .1"/>
    <body name="finger" pos="0 .1 .2" euler=".5 .4 .3"><site name="nail" pos=".1 0 0"/></body></body>
  <body name="other" mocap="true" pos="1 0 1" quat="1 1 0 0"/>
  <body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/>
    <site name="s" pos=".1 0 0" euler=".2 0 0"/></body>
  <body name="b" pos="1 0 1"><joint name="ball" type="ball"/><geom size=".1" pos=".1 0 0"/></body>
</worldbody>
<equality>{}</equality>
<keyframe><key name="home" mpos="1 2 3 4 5 6" mquat="2 0 0 0 0 0 1 1"/><key mpos="0 0 0 7 8 9"/></keyframe></mujoco>"""
EQUALITIES = """
  <weld name="bodies" body1="hand" body2="a" relpose=".1 .2 .3 1 2 3 4" anchor=".2 .1 0"/>
  <weld name="reversed" body1="b" body2="hand"/>
  <weld name="sites" site1="palm" site2="s"/>
  <weld name="sites reversed" site1="s" site2="nail"/>
  <connect name="point" body1="other" body2="b" anchor=".1 .2 .3"/>
  <connect name="points" site1="s" site2="nail"/>
  <weld name="guides" body1="finger" body2="other"/>"""
WELD = SCENE.format('<weld body1="hand" body2="a" relpose="0 0 0 1 0 0 0"/>')


def path(t):
    turn = quaternion_exp(jnp.stack([0.3 * jnp.sin(2 * t), 0.2 * t**2, 0.5 * t]))
    return jdyn.Transform(quaternion_to_matrix(turn), jnp.stack([jnp.sin(3 * t), t**2, 1 - 0.5 * t]))


def pose(position, quaternion):
    return jdyn.Transform(quaternion_to_matrix(jnp.asarray(quaternion)), jnp.asarray(position))


@eqx.filter_jit
def residual(model, constraints, q):
    return constraint_rows(model, constraints, jnp.zeros(()), q, jnp.zeros(model.nv)).residual


@pytest.mark.slow
def test_rows_are_mujocos():
    text = SCENE.format(EQUALITIES)
    system, m, rng = jdyn.load_system(text), mujoco.MjModel.from_xml_string(text), np.random.default_rng(0)
    # MuJoCo has no rows of the last one.
    sizes = [3 if "point" in m.equality(i).name else 6 for i in range(m.neq - 1)]
    for _ in range(3):
        data = mujoco.MjData(m)
        data.mocap_pos[:], data.mocap_quat[:] = rng.normal(size=(2, 3)), rng.normal(size=(2, 4))
        data.mocap_quat /= np.linalg.norm(data.mocap_quat, axis=1, keepdims=True)
        data.qpos[:] = rng.normal(size=m.nq)
        mujoco.mj_normalizeQuat(m, data.qpos)
        mujoco.mj_forward(m, data)
        poses = {name: pose(data.mocap_pos[i], data.mocap_quat[i]) for i, name in enumerate(["hand", "other"])}
        guided = jdyn.constraints.guide(system.constraints, poses)
        ours = np.split(np.asarray(residual(system.model, guided, jnp.asarray(data.qpos))), np.cumsum(sizes)[:-1])
        equality = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        for i in range(len(sizes)):
            name = m.equality(i).name
            got, expected = in_mujocos_terms(m, data, name, ours[i]), data.efc_pos[equality & (data.efc_id == i)]
            # q and -q are one rotation.
            if len(ours[i]) == 6 and got[3:] @ expected[3:] < 0:
                got[3:] *= -1
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12, err_msg=name)


def test_guides_start_where_the_file_has_them():
    system, m = jdyn.load_system(WELD), mujoco.MjModel.from_xml_string(WELD)
    _, rows = efc(m, m.qpos0)
    (weld,) = system.constraints
    np.testing.assert_allclose(weld.pose(0.0).translation, [0, 0, 1])
    # The file turns the hand, and not what is welded to it.
    (expected,) = rows.values()
    ours = residual(system.model, system.constraints, jnp.asarray(m.qpos0))
    assert np.linalg.norm(expected) > 0.1
    np.testing.assert_allclose(2 * np.sin(np.linalg.norm(ours[:3]) / 2), 2 * np.linalg.norm(expected[3:]), rtol=1e-12)


@pytest.mark.slow
def test_a_body_follows_the_path_of_its_guide():
    system = jdyn.load_system(WELD)
    led = system.but(constraints=jdyn.constraints.guide(system.constraints, {"hand": path}))
    # At first the path is where the file is, and moves along x, down, and turns about z.
    v0 = jnp.zeros(led.model.nv).at[:6].set(jnp.array([0.6, 0.0, 0.5, 3.0, 0.0, -0.5]))
    ts = jnp.linspace(0.0, 1.0, 5)
    motion = jdyn.simulate(led, led.state(v=v0), 1.0, saveat=ts)
    wanted, speeds = jax.jit(jax.vmap(lambda t: (path(t), jax.jacfwd(path)(t).translation)))(ts)
    turned = jax.vmap(quaternion_to_matrix)(motion.q[:, 3:7])
    np.testing.assert_allclose(motion.q[:, :3], wanted.translation, atol=1e-9)
    np.testing.assert_allclose(turned, wanted.rotation, atol=1e-9)
    np.testing.assert_allclose(jnp.einsum("tij,tj->ti", turned, motion.v[:, 3:6]), speeds, atol=1e-9)


@pytest.mark.slow
def test_another_pose_at_every_step_is_one_program():
    system, traced = jdyn.load_system(WELD), []

    @jax.jit
    def step(system, state, pose):
        traced.append(pose)
        led = system.but(constraints=jdyn.constraints.guide(system.constraints, {"hand": pose}))
        return led.step(state, None, dt=0.01, solver=jdyn.solvers.SemiImplicitEuler())[0]

    state = system.state()
    for height in (1.0, 1.01, 1.02):
        state = step(system, state, pose([0.0, 0.0, height], [1.0, 0, 0, 0]))
        np.testing.assert_allclose(state.q[:3], [0, 0, height], atol=1e-6)
    assert len(traced) == 1


def test_poses_of_keyframes_are_mujocos():
    m, found = mujoco.MjModel.from_xml_string(WELD), jdyn.load_mocap_poses(WELD)
    assert list(found) == ["qpos0", "home", "key1"]
    for key, name in enumerate(list(found)[1:]):
        for body, each in enumerate(["hand", "other"]):
            np.testing.assert_allclose(found[name][each].translation, m.key_mpos[key].reshape(-1, 3)[body])
            turn = m.key_mquat[key].reshape(-1, 4)[body]
            expected = pose(np.zeros(3), turn / np.linalg.norm(turn)).rotation
            np.testing.assert_allclose(found[name][each].rotation, expected, atol=1e-15)
    assert jdyn.load_mocap_poses("panda") == {}
    with pytest.raises(jdyn.ModelError, match="mpos of keyframe 'home' is '1 2', expected 6 finite numbers"):
        jdyn.load_mocap_poses(WELD.replace('mpos="1 2 3 4 5 6"', 'mpos="1 2"'))


def test_unknown_guides_are_named():
    system = jdyn.load_system(WELD)
    with pytest.raises(ValueError, match="no guide is called 'hands'; there are hand"):
        jdyn.constraints.guide(system.constraints, {"hands": path})


def test_guides_of_merged_systems_have_names_of_their_own():
    """Their poses count from the world of their system."""
    system = jdyn.load_system(WELD)
    both = jdyn.merge({"left": system, "right": system}, placements={"right": (0.0, 5.0, 0.0)})
    led = jdyn.constraints.guide(both.constraints, {"right/hand": pose([0.0, 0, 3], [1.0, 0, 0, 0])})
    q = jnp.asarray([0.0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0])
    found = residual(both.model, led, jnp.concatenate([q, q.at[2].set(3.0)]))
    # `both` counts coordinates of free bodies from the world of each system too.
    np.testing.assert_allclose(found[6:], 0, atol=1e-15)
    assert jnp.max(jnp.abs(found[:6])) > 0.1


@pytest.mark.parametrize(
    "inside, rest, said",
    [
        ('<geom size=".1" contype="1"/>', '<worldbody><geom size="1" conaffinity="1"/></worldbody>', "shapes"),
        ('<body><joint/><geom size=".1" contype="0"/></body>', "", "joints"),
        ('<site name="t"/>', '<tendon><spatial><site site="t"/><site site="s"/></spatial></tendon>', "tendons"),
        ("", '<sensor><framepos objtype="body" objname="a" reftype="body" refname="hand"/></sensor>', "sensors"),
    ],
)
def test_what_does_not_move_with_mocap_bodies_is_named(inside, rest, said):
    free = '<worldbody><body name="free"><freejoint/>'
    rest = rest.replace("<worldbody>", free).replace("</worldbody>", "</body></worldbody>")
    text = WELD.replace('<site name="palm"', inside + '<site name="palm"').replace("</mujoco>", rest + "</mujoco>")
    with pytest.warns(jdyn.ModelWarning, match=f"motion of {said} on mocap bodies hand, which are fixed here"):
        jdyn.load_system(text)
