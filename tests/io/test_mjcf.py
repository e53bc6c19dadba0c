"""MJCF files against MuJoCo: what is loaded, and that it moves as it does there."""

import pathlib
import struct
import sys
import warnings

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jdyn.dynamics import forward_kinematics, inverse_dynamics, mass_matrix
from jdyn.io import load_mjcf
from jdyn.model import Free, ModelError, ModelWarning

pytestmark = pytest.mark.fast_compile

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"

# Rounding of some tens of bodies, relative to the largest entry.
TOLERANCE = 1e-12

EVERYTHING = """
<mujoco model="everything">
  <compiler angle="radian" eulerseq="zyx"/>
  <option gravity="1 2 -9"/>
  <worldbody>
    <body name="base" pos="1 2 3" euler=".1 .2 .3">
      <freejoint name="base"/>
      <inertial pos=".1 .2 .3" quat=".5 .5 .4 .3" mass="2" diaginertia=".3 .2 .15"/>
      <site name="imu" pos=".1 0 .2" euler="0 .4 0"/>
      <body name="arm" pos=".3 .1 0" euler=".7 .2 .1">
        <joint name="s" type="slide" axis="1 1 0" pos=".5 .5 .5" ref=".3" damping=".2"/>
        <joint name="h1" axis="0 .6 .8" pos=".1 .2 .3" armature=".05" stiffness="5" springref=".2"/>
        <joint name="h2" axis="0 1 0" pos="-.1 .2 0" ref=".4" stiffness="3" springref="-.3" damping=".3"/>
        <inertial pos=".1 0 .3" mass="1" fullinertia=".3 .2 .15 .01 .02 .03"/>
        <body name="plate" pos="0 .2 .1" euler="0 .5 0">
          <inertial pos="0 .1 0" mass=".4" diaginertia=".01 .02 .02"/>
          <site name="s"/>
          <body name="wrist" pos=".3 .1 .2">
            <joint name="turn" axis="1 0 0"/>
            <joint name="wrist" type="ball" pos=".1 .2 .3" stiffness="2" damping=".1" armature=".02"/>
            <inertial pos=".1 0 .3" mass="1" diaginertia=".3 .2 .15"/>
          </body>
        </body>
        <body name="rail">
          <joint name="rail" type="slide"/><inertial pos="0 0 0" mass=".3" diaginertia=".1 .1 .1"/>
        </body>
      </body>
    </body>
    <body name="pivot" pos="0 0 1">
      <joint type="ball"/><inertial pos="0 0 1" mass="1" diaginertia=".1 .2 .1"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="h1" gear="3" armature=".1" damping=".2"/>
    <motor joint="rail" gear="-2" armature=".1" damping=".2"/>
  </actuator>
</mujoco>
"""


@pytest.fixture(autouse=True)
def _quiet_mujoco():
    """MuJoCo, where the tests themselves call it, would write its warnings to a file in the working folder."""
    mujoco.set_mju_user_warning(lambda message: None)
    yield
    mujoco.set_mju_user_warning(None)


def load(source, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_mjcf(source, **options)


def compiled(source):
    is_path = isinstance(source, pathlib.Path)
    return mujoco.MjModel.from_xml_path(str(source)) if is_path else mujoco.MjModel.from_xml_string(source)


def one_body(joint, rest="", head="", body=""):
    return (
        f'<mujoco><compiler angle="radian"/>{head}<worldbody><body name="a">{joint}'
        f'<inertial pos=".3 0 0" mass="2" diaginertia=".1 .2 .25"/>{body}</body></worldbody>{rest}</mujoco>'
    )


def touching(geom="", pair=None, head=""):
    """A ball that may touch another one, which stands still."""
    said = "" if pair is None else f'<contact><pair geom1="g" geom2="still" {pair}/></contact>'
    return f"""<mujoco>{head}<worldbody><geom name="still" size=".1"/>
    <body name="a"><joint/><geom name="g" size=".1" {geom}/></body></worldbody>{said}</mujoco>"""


def two_joints(rest, first="", second=""):
    return one_body(f'<joint name="h" {first}/><joint name="k" axis="1 0 0" {second}/>', rest)


# MuJoCo's side.


def to_mujoco(m, qpos):
    """T with qvel = T v, and which rows are the linear velocities of free joints."""
    T, free = np.eye(m.nv), []
    for joint in np.flatnonzero(m.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)):
        dof, coordinate, R = m.jnt_dofadr[joint], m.jnt_qposadr[joint], np.zeros(9)
        mujoco.mju_quat2Mat(R, qpos[coordinate + 3 : coordinate + 7])
        T[dof : dof + 6, dof : dof + 6] = np.block([[np.zeros((3, 3)), R.reshape(3, 3)], [np.eye(3), np.zeros((3, 3))]])
        free.append(dof)
    return T, free


def reference(m, qpos, v, a):
    """Body and site poses, mass matrix and inverse dynamics at jdyn's v and a, by MuJoCo; no contacts, no fluid."""
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    m.opt.density = m.opt.viscosity = 0
    data, (T, free) = mujoco.MjData(m), to_mujoco(m, qpos)
    qacc = T @ a
    for dof in free:
        # The linear part of qvel is R v: its rate has R (ω × v) besides.
        qacc[dof : dof + 3] += T[dof : dof + 3, dof + 3 : dof + 6] @ np.cross(v[dof : dof + 3], v[dof + 3 : dof + 6])
    data.qpos[:], data.qvel[:] = qpos, T @ v
    mujoco.mj_forward(m, data)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, data, M)
    tau = M @ qacc + data.qfrc_bias - data.qfrc_passive
    poses = {m.body(i).name or f"body{i}": (data.xmat[i].reshape(3, 3), data.xpos[i]) for i in range(1, m.nbody)}
    sites = {m.site(i).name: (data.site_xmat[i].reshape(3, 3), data.site_xpos[i]) for i in range(m.nsite)}
    return poses | sites, T.T @ M @ T, T.T @ tau


@jax.jit
def ours(model, q, v, a):
    return forward_kinematics(model, q), mass_matrix(model, q), inverse_dynamics(model, q, v, a)


def named_poses(model, X):
    """World poses of all bodies and frames, by name."""
    R, p = np.asarray(X.rotation), np.asarray(X.translation)
    poses = {name: (R[i], p[i]) for i, name in enumerate(model.body_names)}
    for i, (name, body) in enumerate(zip(model.frame_names, model.topology.frame_bodies, strict=True)):
        frame = np.asarray(model.frames.rotation[i]), np.asarray(model.frames.translation[i])
        poses[name] = frame if body < 0 else (R[body] @ frame[0], R[body] @ frame[1] + p[body])
    return poses


def assert_close(got, expected, what):
    scale = max(1.0, np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * scale, err_msg=what)


def random_state(m, rng):
    qpos = m.qpos0.copy()
    mujoco.mj_integratePos(m, qpos, rng.normal(size=m.nv), 1.0)
    return qpos, rng.normal(size=m.nv), rng.normal(size=m.nv)


def assert_same_dynamics(source):
    m, model, rng = compiled(source), load(source), np.random.default_rng(0)
    assert (model.nq, model.nv) == (m.nq, m.nv)
    for _ in range(3):
        qpos, v, a = random_state(m, rng)
        poses, M, tau = reference(m, qpos, v, a)
        X, our_M, our_tau = ours(model, jnp.asarray(qpos), jnp.asarray(v), jnp.asarray(a))
        our_poses = named_poses(model, X)
        for name, (R, p) in poses.items():
            assert_close(our_poses[name][0], R, f"axes of {name}")
            assert_close(our_poses[name][1], p, f"position of {name}")
        assert_close(our_M, M, "mass matrix")
        assert_close(our_tau, tau, "inverse dynamics")


# Dynamics.


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        "ant",
        "half_cheetah",
        "hopper",
        "humanoid",
        "inverted_double_pendulum",
        "pusher",
        "reacher",
        "swimmer",
        "walker2d",
    ],
)
def test_gymnasium_robots_move_as_in_mujoco(file):
    assert_same_dynamics(ASSETS / f"{file}.xml")


@pytest.mark.parametrize("file", sorted(ASSETS.glob("*.xml")), ids=lambda path: path.stem)
def test_all_gymnasium_robots_load(file):
    m, model = compiled(file), load(file)
    assert (model.nq, model.nv) == (m.nq, m.nv)
    fixed = m.body_mass[m.body_weldid == 0].sum()
    np.testing.assert_allclose(model.inertias.mass.sum(), m.body_mass.sum() - fixed, rtol=1e-14)
    lower, upper = m.jnt_range[m.jnt_limited.astype(bool)].T
    np.testing.assert_array_equal(model.limits.lower[np.isfinite(model.limits.lower)], lower)
    np.testing.assert_array_equal(model.limits.upper[np.isfinite(model.limits.upper)], upper)


def test_every_joint_kind_moves_as_in_mujoco():
    assert_same_dynamics(EVERYTHING)


@pytest.mark.parametrize("flag", ["gravity", "spring", "damper"])
def test_what_the_file_switches_off_stays_off(flag):
    head = f'<option><flag {flag}="disable"/></option>'
    assert_same_dynamics(one_body('<joint axis="0 1 0" stiffness="3" springref="1" damping="2"/>', head=head))


def test_joint_equalities_become_mimic_joints():
    equality = '<equality><joint joint1="h" joint2="k" polycoef=".1 2 0 0 0"/></equality>'
    source = two_joints(equality, 'ref=".3" damping=".2"', 'ref="-.2"')
    m, model = compiled(source), load(source)
    assert (model.nq, model.nv) == (1, 1)
    qpos = np.asarray(model.expand(jnp.asarray([0.7])))
    np.testing.assert_allclose(qpos, [0.3 + 0.1 + 2 * (0.7 + 0.2), 0.7], rtol=0, atol=1e-15)
    G = np.array([2.0, 1.0])
    _, M, tau = reference(m, qpos, G * 0.4, G * -0.5)
    _, our_M, our_tau = ours(model, jnp.asarray([0.7]), jnp.asarray([0.4]), jnp.asarray([-0.5]))
    assert_close(our_M, [[G @ M @ G]], "mass matrix")
    assert_close(our_tau, [G @ tau], "inverse dynamics")


# What is in the model.


def test_joint_properties():
    joint = '<joint name="h" ref=".5" range="-1 2" damping=".7" frictionloss=".3" armature=".05" stiffness="5"/>'
    model = load(one_body(joint))
    properties = [model.damping, model.friction, model.armature, model.stiffness, model.rest]
    np.testing.assert_allclose(np.concatenate(properties), [0.7, 0.3, 0.05, 5, 0], rtol=0, atol=0)
    np.testing.assert_allclose([model.limits.lower[0], model.limits.upper[0]], [-1, 2], rtol=0, atol=0)
    assert np.isinf(model.limits.effort[0])


@pytest.mark.parametrize(
    ("motors", "joint", "effort"),
    [
        ('<motor joint="h" gear="-50" ctrlrange="-.4 .3"/>', "", 20),
        ('<motor joint="h" gear="50" ctrlrange="-9 9" forcerange="-3 2"/>', "", 150),
        ('<general joint="h" gainprm="4" gear="2" ctrlrange="0 1"/><motor joint="h" ctrlrange="-3 3"/>', "", 11),
        ('<motor joint="h" gear="50" ctrlrange="-1 1"/><motor joint="h"/>', "", np.inf),
        ('<motor joint="h" gear="50"/>', 'actuatorfrcrange="-7 7"', 7),
        ('<position joint="h" forcerange="-3 3"/>', "", np.inf),
    ],
)
def test_plain_motors_limit_the_effort(motors, joint, effort):
    model = load(one_body(f'<joint name="h" {joint}/>', f"<actuator>{motors}</actuator>"))
    assert model.limits.effort[0] == pytest.approx(effort, rel=1e-15)


def test_free_joint_coordinates_are_in_jdyns_order():
    source = one_body('<joint type="free" damping=".2" stiffness="3"/>')
    assert_same_dynamics(source)
    np.testing.assert_array_equal(load(source).rest, compiled(source).qpos_spring)


def test_names_are_made_unique():
    body = '<site name="a"/><site name="world"/><body name="h"><joint name="h/1"/><geom size=".1"/></body>'
    model = load(one_body('<joint name="h" pos="1 0 0"/><joint axis="1 0 0" pos="0 1 0"/>', body=body))
    assert model.body_names == ("a/h", "a/a/2", "h")
    assert model.frame_names == ("a", "a_2", "world_2")
    assert model.joint_names == ("h", "a/2", "h/1")


def tetrahedron(size):
    """A binary STL file."""
    v = size * np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *v[a], *v[b], *v[c], 0) for a, b, c in faces)
    return bytes(80) + struct.pack("<I", 4) + rows


def with_mesh(file, compiler="", mesh='scale="1 2 1"'):
    return (
        f'<mujoco><compiler {compiler}/><asset><mesh file="{file}" {mesh}/></asset><worldbody><body name="a">'
        f'<joint/><geom type="mesh" mesh="part" pos="1 2 3" euler="10 20 30"/></body></worldbody></mujoco>'
    )


@pytest.mark.parametrize(
    "mesh", ['scale="1 2 1"', 'scale="1 2 1" refpos=".1 .2 .3"', 'scale="2 2 2" refpos=".1 .2 .3" refquat="1 2 3 4"']
)
def test_meshes_are_read_and_keep_their_pose(mesh, tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "part.stl").write_bytes(tetrahedron(0.1))
    source = tmp_path / "robot.xml"
    source.write_text(with_mesh("part.stl", 'meshdir="meshes"', mesh))
    assert_same_dynamics(source)
    model, m = load(source), compiled(source)
    drawn, touching = model.shapes.entries
    path = str(source.parent / "meshes/part.stl")
    assert (drawn.link, drawn.kind, drawn.path, touching.path, model.name) == ("a", "mesh", path, path, "robot")
    vertices = 0.1 * np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]]) * np.array(model.shapes.sizes[0])
    R, p = (np.array(leaf[0]) for leaf in jax.tree.leaves(model.shapes.placements))
    got = vertices @ R.T + p
    R, expected = np.zeros(9), m.mesh_vert
    mujoco.mju_quat2Mat(R, m.geom_quat[0])
    expected = expected @ R.reshape(3, 3).T + m.geom_pos[0]
    # MuJoCo stores vertices in single precision.
    np.testing.assert_allclose(np.sort(got, axis=0), np.sort(expected, axis=0), rtol=0, atol=1e-6)


def test_a_mesh_that_is_sheared_is_left_out_and_named(tmp_path):
    (tmp_path / "part.stl").write_bytes(tetrahedron(0.1))
    source = tmp_path / "robot.xml"
    source.write_text(with_mesh("part.stl", mesh='scale="1 2 1" refquat="1 2 3 4"'))
    with pytest.warns(ModelWarning, match="shapes geom0: .* sheared"):
        assert load_mjcf(source).shapes is None


def test_dtype():
    assert load(one_body("<joint/>"), dtype=jnp.float32).dtype == jnp.float32


# Bases.


ARM = '<body name="arm" pos="0 0 .2"><joint name="elbow" axis="0 1 0"/><geom size=".1"/></body>'


def test_a_fixed_root_can_be_freed():
    freed = load(one_body("", '<worldbody><body name="floor"/></worldbody>', body=ARM), floating_base=True)
    free = load(one_body('<freejoint name="a"/>', body=ARM))
    assert (freed.body_names, freed.joint_names) == (("a", "arm"), ("a", "elbow"))
    assert freed.topology.kinds == free.topology.kinds
    for ours, expected in zip(jax.tree.leaves(freed.inertias), jax.tree.leaves(free.inertias), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_a_free_root_can_be_fixed():
    free = one_body("<freejoint/>", body=ARM).replace('name="a"', 'name="a" pos="1 2 3"')
    model = load(free, floating_base=False)
    assert (model.body_names, model.frame_names) == (("arm",), ("a",))
    np.testing.assert_allclose(model.placements.translation[0], [1, 2, 3.2], rtol=0, atol=1e-15)
    assert load(free, floating_base=True).topology.kinds[0] is Free


@pytest.mark.parametrize(
    ("source", "got"),
    [
        (one_body('<joint name="h"/>'), "'a' (1 joints)"),
        (one_body("", f'<worldbody><body name="b"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{ARM}</body>'
                      "</worldbody>", body=ARM.replace("arm", "leg").replace("elbow", "knee")),
         "'a' (0 joints), 'b' (0 joints)"),
    ],
)  # fmt: skip
def test_which_base_to_free_must_be_clear(source, got):
    with pytest.raises(ModelError) as error:
        load(source, floating_base=True)
    assert f"floating_base=True needs one root body, without joints of its own; got {got}" in str(error.value)


# What is left out is said.


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (one_body("<joint/>", '<worldbody><geom size="1"/></worldbody>', body='<geom size=".1"/>'),
         "contacts of bodies world, a: jdyn.simulate(..., contact=...), or --contact of"),
        (one_body('<joint name="h" range="-1 1"/>'),
         "if asked for: stops of joints h: jdyn.simulate(..., joint_limits=...)"),
        (two_joints('<equality><joint joint1="h" joint2="k" polycoef="0 1 1 0 0"/></equality>'),
         "equality constraints equality0 (joint); jdyn.load_constraints reads them"),
        (two_joints('<equality><joint name="lock" joint1="h"/></equality>'), "lock (joint); jdyn.load_constraints"),
        (two_joints('<equality><joint joint1="h" joint2="k"/><joint name="back" joint1="k" joint2="h"/></equality>'),
         "equality constraints back (joint); jdyn.load_constraints reads them"),
        (two_joints('<equality><connect name="pin" body1="a" anchor="0 0 1"/></equality>'),
         "equality constraints pin (connect); jdyn.load_constraints reads them"),
        (two_joints('<tendon><fixed name="t"><joint joint="h" coef="2"/></fixed>'
                    '<fixed name="u"><joint joint="k" coef="2"/></fixed></tendon>'
                    '<equality><tendon name="e" tendon1="t" tendon2="u" polycoef="0 1 1 0 0"/>'
                    '<joint joint1="h"/></equality>'),
         "load_constraints reads them, for jdyn.simulate(..., constraints=...)\n"
         "  - not simulated: equality constraints e (tendon)"),
        (two_joints('<tendon><fixed name="t" stiffness="3"><joint joint="h" coef="2"/></fixed></tendon>'), "tendons t"),
        (two_joints('<tendon><fixed name="t"><joint joint="h" coef="2"/></fixed></tendon>'), "simulated: tendons t"),
        (two_joints('<sensor><jointpos name="s" joint="h"/><clock/></sensor>'), "not simulated: sensors s, clock"),
        (touching('surfacevel="1 0 0"'), "surfacevel of contacts of geoms g"),
        (touching('adhesion="3"'), "adhesion of contacts of geoms g"),
        (touching(pair='adhesion="3"'), "properties of contact pairs pair0"),
        (touching(head='<option o_margin="0.1"><flag override="enable"/></option>'), "override of contacts: "
         "o_margin, o_solref, o_solimp, o_friction"),
        (two_joints('<actuator><position name="p" joint="h" kp="10"/></actuator>'),
         "actuators that are not plain motors p"),
        (two_joints('<tendon><fixed name="t"><joint joint="h" coef="2"/></fixed></tendon>'
                    '<actuator><motor name="m" tendon="t" armature="1"/></actuator>'),
         "armature and damping of actuators m"),
        (two_joints('<actuator><muscle name="u" joint="h"/></actuator>'), "actuators that are not plain motors u"),
        (one_body("<joint/>").replace('name="a"', 'name="a" gravcomp="1"'), "gravity compensation of bodies a"),
        (one_body("<joint/>", head='<option density="1" wind="1 0 0"/>'), "forces of the medium: density, wind"),
        (one_body('<joint name="h" damping="1 2"/>'), "nonlinear damping of joints h"),
        (one_body('<joint name="h" stiffness="1 2"/>'), "nonlinear stiffness of joints h"),
        (one_body('<joint name="h" type="free" frictionloss="1"/>'),
         "the world axes of armature or friction loss of free joints h"),
        (one_body("<joint/>", '<worldbody><body name="hand" mocap="true"/></worldbody>'), "mocap bodies hand"),
        (one_body("<joint/>", head='<compiler settotalmass="3"/>'), "MuJoCo says: compiler attribute 'settotalmass'"),
    ],
)  # fmt: skip
def test_what_is_not_simulated_is_named(source, said):
    with pytest.warns(ModelWarning) as caught:
        load_mjcf(source)
    assert [said in str(w.message) for w in caught] == [True]


@pytest.mark.parametrize(
    "source",
    [
        one_body("<joint/>", body='<geom size=".1"/><body><joint/><geom size=".1"/></body>'),
        one_body('<joint name="h" range="-1 1"/>', head='<option><flag limit="disable"/></option>'),
        two_joints('<actuator><motor joint="h" gear="3"/></actuator>'),
        two_joints('<contact><exclude body1="a" body2="b"/></contact>'
                   '<worldbody><body name="b"><joint/><geom size=".1"/></body></worldbody>'),
    ],
)  # fmt: skip
def test_what_is_simulated_is_not_warned_of(source):
    load_mjcf(source)


# Manners.


def test_mujoco_prints_nothing_and_leaves_no_log(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    mujoco.set_mju_user_warning(None)
    load(ASSETS / "half_cheetah.xml")
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert mujoco.get_mju_user_warning() is None


def test_without_mujoco_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r'pip install "jdyn\[mjcf\]"'):
        load_mjcf(one_body("<joint/>"))


def test_includes_meshes_and_attached_models_come_from_the_named_folders(tmp_path):
    parts, robot = tmp_path / "parts", tmp_path / "robot"
    (parts / "deep").mkdir(parents=True)
    robot.mkdir()
    (parts / "part.stl").write_bytes(tetrahedron(0.1))
    (parts / "options.xml").write_text("<mujocoinclude><option gravity='0 0 -2'/></mujocoinclude>")
    arm = with_mesh("part.stl").replace('"a"', '"arm"').replace("<asset>", '<include file="options.xml"/><asset>')
    (parts / "arm.xml").write_text(arm)
    (parts / "deep" / "leg.xml").write_text(
        '<mujocoinclude><body name="leg"><joint/><geom size=".1"/></body></mujocoinclude>'
    )
    (parts / "legs.xml").write_text('<mujocoinclude><include file="deep/leg.xml"/></mujocoinclude>')
    source = robot / "robot.xml"
    source.write_text(
        '<mujoco><include file="options.xml"/><asset><model name="m" file="arm.xml"/>'
        '<texture name="t" type="2d" file="../absent.png"/>'
        '<hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/><material name="w" texture="t"/></asset>'
        '<worldbody><geom type="hfield" hfield="h" material="w"/><include file="legs.xml"/>'
        '<frame><attach model="m" body="arm" prefix="left_"/></frame></worldbody></mujoco>'
    )
    model = load(source, package_dirs=[parts])
    assert model.body_names == ("leg", "left_arm")
    np.testing.assert_array_equal(model.gravity, [0, 0, -2])
    assert model.shapes.entries[-1].path == str(parts / "part.stl")
    with pytest.raises(ModelError) as error:
        load(source)
    assert "3 problems" in str(error.value)
    assert f"line 1, <include>: file 'legs.xml' is not in {robot}" in str(error.value)


@pytest.mark.parametrize(
    "copies",
    [
        '<frame pos="0 0 1"><attach body="a" prefix="p_"/></frame>',
        '<body name="b"><attach body="a" prefix="p_"/><attach frame="f" prefix="q_"/></body>',
        '<replicate count="3" euler="0 0 90"><attach body="a" prefix="p_"/></replicate>',
        '<body name="b"><body name="c"><joint/><geom size=".1"/><attach body="b" prefix="p_"/></body></body>',
    ],
)
def test_parts_of_the_same_document_are_attached(copies):
    part = '<frame name="f"><body name="a"><joint name="j"/><geom name="g" size=".1"/></body></frame>'
    source = f"<mujoco><worldbody>{part}{copies}</worldbody></mujoco>"
    m, model = compiled(source), load(source)
    assert sorted([*model.body_names, *model.frame_names]) == sorted(m.body(i).name for i in range(1, m.nbody))
    assert model.nv == m.nv


@pytest.mark.parametrize("compiler", ["", '<compiler meshdir="m"/>'])
@pytest.mark.parametrize("places", ["sub", "main sub", "main/m sub/m sub", "sub/deep sub", "sub/m"])
def test_meshes_of_included_files_are_where_mujoco_finds_them(compiler, places, tmp_path):
    """In the main file's folder, which `meshdir` is relative to, or beside the file that names them."""
    for size, place in enumerate(places.split(), 1):
        folder = tmp_path / place.removeprefix("main").removeprefix("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part.stl").write_bytes(tetrahedron(size))
    (tmp_path / "sub/deep").mkdir(parents=True, exist_ok=True)
    (tmp_path / "sub/deep/part.xml").write_text(with_mesh("part.stl", compiler="", mesh=""))
    (tmp_path / "sub/middle.xml").write_text('<mujoco><include file="deep/part.xml"/></mujoco>')
    (tmp_path / "sub/near.xml").write_text(with_mesh("part.stl", compiler="", mesh=""))
    for name in ("near", "middle"):
        source = tmp_path / f"{name}.xml"
        source.write_text(f'<mujoco>{compiler}<include file="sub/{name}.xml"/></mujoco>')
        try:
            m = compiled(source)
        except ValueError:
            with pytest.raises(ModelError, match=r"file '.*part.stl' is not in"):
                load(source)
        else:
            np.testing.assert_allclose(load(source).inertias.mass[0], m.body_mass[1], rtol=1e-9)
