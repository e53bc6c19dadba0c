"""Written MJCF moves in MuJoCo as the model does here, and reads back as the same model."""

import dataclasses
import pathlib
import struct
import warnings

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.contact import collision_pairs
from jdyn.model import Builder, Continuous, Model, ModelWarning, Revolute, random_tree
from jdyn.model.constraints import Placed
from jdyn.model.vary import joint_geometry

pytestmark = pytest.mark.fast_compile

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"

# Joints that MJCF has as they are.
KEPT = (jdyn.Revolute, jdyn.Continuous, jdyn.Prismatic, jdyn.Ball, jdyn.Free)


def quiet(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return function(*args, **kwargs)


def written(model, path) -> pathlib.Path:
    file = pathlib.Path(path, "robot.xml")
    quiet(jdyn.save_mjcf, model, file)
    return file


def peer(file):
    """MuJoCo's model without friction and limits, which are soft there, and without contacts."""
    m = mujoco.MjModel.from_xml_path(str(file))
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    return m


def frictionless(model):
    return dataclasses.replace(model, friction=jnp.zeros_like(model.friction))


def state_of(model, seed=0):
    rng = np.random.default_rng(seed)
    return np.asarray(model.random(jax.random.key(seed))), *rng.normal(size=(2, model.nv))


def assert_moves_alike(model, file):
    """Accelerations, relative to the largest one and the condition of what robots are made of."""
    m = peer(file)
    between, data = jdyn.interop.MujocoMap(model, m), mujoco.MjData(m)
    q, v, tau = state_of(model)
    data.qpos, data.qvel = between.q_to_peer(q), between.v_to_peer(q, v)
    data.qfrc_applied = between.tau_to_peer(q, tau)
    mujoco.mj_forward(m, data)
    ours = np.asarray(jdyn.forward_dynamics(frictionless(model), q, v, tau))
    expected = between.a_from_peer(q, v, data.qacc)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-10 * max(1.0, np.max(np.abs(expected))))


def by_joint(model: Model) -> dict[str, dict]:
    """All numbers of bodies and joints, by the names of joints."""
    topology, found = model.topology, {}
    for body, name in enumerate(topology.joint_names):
        q, v = topology.q_slice(body), topology.v_slice(body)
        parent = topology.parents[body]
        found[name] = {
            "body": topology.body_names[body],
            "parent": "world" if parent < 0 else topology.body_names[parent],
            "kind": Revolute if topology.kinds[body] is Continuous else topology.kinds[body],
            "placement": jax.tree.map(lambda x, body=body: x[body], model.placements),
            "inertia": jax.tree.map(lambda x, body=body: x[body], model.inertias),
            "geometry": joint_geometry(model, body),
            "of v": [getattr(model, key)[v] for key in ("armature", "damping", "friction", "stiffness")],
            "of q": [model.rest[q], model.limits.lower[q], model.limits.upper[q]],
            "effort": model.limits.effort[v],
        }
    return found


def assert_same(model, back):
    """The same bodies, joints, frames and numbers, in whatever order; limits of velocity are no part of MJCF."""
    ours, theirs = by_joint(model), by_joint(back)
    assert set(ours) == set(theirs)
    for name, numbers in ours.items():
        others = theirs[name]
        assert [numbers[key] for key in ("body", "parent", "kind")] == [
            others[key] for key in ("body", "parent", "kind")
        ]
        free = numbers["kind"] is jdyn.Free
        for key in ("inertia", "geometry", "of v", "of q", "effort") + (() if free else ("placement",)):
            found = zip(jax.tree.leaves(numbers[key]), jax.tree.leaves(others[key]), strict=True)
            for one, other in found:
                zero_effort = key == "effort" and not np.any(one)
                # MuJoCo normalizes quaternions and axes, and has moments about the centre of mass.
                np.testing.assert_allclose(other, np.inf if zero_effort else one, rtol=1e-12, atol=2e-14, err_msg=key)
    frames, others = frames_of(model), frames_of(back)
    assert set(frames) <= set(others)
    for name, (carrier, numbers) in frames.items():
        assert others[name][0] == carrier
        np.testing.assert_allclose(others[name][1], numbers, atol=1e-14)


def frames_of(model):
    names = ("world", *model.body_names)
    return {
        name: (names[body + 1], np.concatenate([np.ravel(x[row]) for x in jax.tree.leaves(model.frames)]))
        for row, (name, body) in enumerate(zip(model.frame_names, model.topology.frame_bodies, strict=True))
    }


PLAIN = [name for name in jdyn.ROBOTS if set(jdyn.load(name).topology.kinds) <= set(KEPT)]
QUICK = ("panda", "quadruped")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PLAIN]
)
def test_bundled_robots(name, tmp_path):
    model = jdyn.load(name)
    file = written(model, tmp_path)
    assert_moves_alike(model, file)
    assert_same(model, quiet(jdyn.load, file))


@pytest.mark.parametrize("name", ["double_pendulum", "stanford_arm", "cartpole_with_walls"])
def test_bodies_as_thin_as_rounding_in_single_precision(name, tmp_path):
    """Rods have no moment about themselves, but for rounding."""
    model = jdyn.load(name, dtype=jnp.float32)
    m = peer(written(model, tmp_path))
    np.testing.assert_allclose(m.body_mass.sum(), jnp.sum(model.inertias.mass), rtol=1e-6)


def test_a_random_tree(tmp_path):
    """With every number that joints have."""
    tree = random_tree(3, 12, kinds=KEPT[:4])
    rng = np.random.default_rng(1)
    numbers = {key: np.abs(rng.normal(size=tree.damping.shape)) for key in ("damping", "armature", "stiffness")}
    # One number for all coordinates of a ball joint.
    for body in range(tree.nb):
        for values in numbers.values():
            values[tree.topology.v_slice(body)] = values[tree.topology.v_slice(body)][0]
    tree = dataclasses.replace(tree, **{key: jnp.asarray(x) for key, x in numbers.items()})
    file = written(tree, tmp_path)
    assert_moves_alike(tree, file)
    assert_same(tree, quiet(jdyn.load, file))


@pytest.mark.parametrize("kind", [jdyn.Universal((0, 0.6, 0.8), (1, 0, 0.2)), jdyn.Planar((0.6, 0, 0.8), (0, 1, 0))])
def test_joints_with_several_axes_are_chains_of_one_body(kind, tmp_path):
    builder = Builder("arm")
    count = kind.nv
    moments = np.array([[0.2, 0.01, 0], [0.01, 0.3, 0.02], [0, 0.02, 0.25]])
    builder.add_link(
        "a", kind, mass=1.0, com=(0.1, 0.2, -0.3), inertia=moments, placement=jdyn.pose((1, 2, 3), (0.1, 0.2, 0.3)),
        damping=np.arange(count), stiffness=1.0, rest=0.1 * np.arange(count), armature=0.1, lower=-1.0, upper=2.0,
    )  # fmt: skip
    model = builder.build()
    file = written(model, tmp_path)
    m = peer(file)
    assert (m.nbody, m.njnt) == (2, count)
    q, v, tau = state_of(model)
    data = mujoco.MjData(m)
    data.qpos, data.qvel, data.qfrc_applied = q, v, tau
    mujoco.mj_forward(m, data)
    np.testing.assert_allclose(jdyn.forward_dynamics(model, q, v, tau), data.qacc, atol=1e-10)
    back = quiet(jdyn.load, file)
    assert back.joint_names == tuple(f"a[{number}]" for number in range(count))
    np.testing.assert_allclose(back.limits.upper, [2.0] * count)
    np.testing.assert_allclose(jdyn.forward_dynamics(back, q, v, tau), data.qacc, atol=1e-10)


def test_joints_that_follow_others(tmp_path):
    builder = Builder("gripper")
    still = {"mass": 1.0, "inertia": 0.1}
    builder.add_link("a", jdyn.Prismatic((0, 1, 0)), **still)
    builder.add_link("b", jdyn.Revolute((0, 0, 1)), parent="a", mimic=jdyn.Mimic("a", -0.5, 0.1), **still)
    model = builder.build()
    back = quiet(jdyn.load, written(model, tmp_path))
    assert back.topology.mimics == model.topology.mimics
    np.testing.assert_allclose(back.expand(jnp.array([0.3])), [0.3, -0.5 * 0.3 + 0.1])


def test_bodies_without_mass(tmp_path):
    """One with nothing but a joint becomes a joint of the next one, another gets a mass that changes nothing."""
    builder = Builder("cross")
    builder.add_link("first", jdyn.Revolute((0, 0, 1)), placement=jdyn.pose((0, 0, 1), (0.3, 0, 0)), joint_name="j1")
    builder.add_link("second", jdyn.Prismatic((1, 2, 0)), parent="first", placement=(0.1, 0.2, 0.3), joint_name="j2")
    builder.add_link(
        "third", jdyn.Revolute((0, 1, 0)), parent="second", placement=jdyn.pose((0, 0.5, 0), (0, 0.4, 0.2)), mass=1.0,
        com=(0.1, 0, 0.3), inertia=np.diag([0.1, 0.2, 0.15]), joint_name="j3",
    )  # fmt: skip
    builder.add_link("fork", jdyn.Revolute((1, 0, 0)), parent="third", placement=(0, 0, 0.5), joint_name="j4")
    for name, y in (("left", 0.1), ("right", -0.1)):
        builder.add_link(name, jdyn.Revolute((0, 0, 1)), parent="fork", placement=(0, y, 0), mass=0.5, inertia=0.01)
    model = builder.build()
    with pytest.warns(ModelWarning, match="bodies without mass, which have 2e-15 kg there: those of 'fork'"):
        jdyn.save_mjcf(model, tmp_path / "robot.xml")
    m = peer(tmp_path / "robot.xml")
    assert [m.body(i).name for i in range(1, m.nbody)] == ["third", "fork", "left", "right"]
    q, v, tau = state_of(model)
    data = mujoco.MjData(m)
    data.qpos, data.qvel, data.qfrc_applied = q, v, tau
    mujoco.mj_forward(m, data)
    np.testing.assert_allclose(jdyn.forward_dynamics(model, q, v, tau), data.qacc, atol=1e-10)
    back = quiet(jdyn.load, tmp_path / "robot.xml")
    assert back.joint_names == model.joint_names
    assert back.body_names == ("third/j1", "third/j2", "third", "fork", "left", "right")


# Shapes.


def cube(path):
    """A cube as an STL file."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    data = b"\0" * 80 + struct.pack("<I", len(triangles))
    for triangle in triangles:
        data += struct.pack("<12fH", 0, 0, 0, *corners[list(triangle)].ravel(), 0)
    path.write_bytes(data)


def shaped(tmp_path):
    (tmp_path / "meshes").mkdir()
    cube(tmp_path / "meshes" / "cube.stl")
    builder = Builder("shaped", gravity=(1, 2, 3))
    still = {"mass": 1.0, "inertia": 0.1}
    builder.add_link("base", jdyn.Fixed(), placement=(0, 0, 0.2))
    builder.add_link("a", jdyn.Revolute((0, 0, 1)), parent="base", **still)
    builder.add_link("tip", jdyn.Fixed(), parent="a", placement=jdyn.pose((0, 0, 1), (0.1, 0.2, 0.3)))
    builder.add_link("b", jdyn.Revolute((0, 1, 0)), parent="a", placement=(1, 0, 0), **still)
    builder.add_link("c", jdyn.Revolute((0, 1, 0)), parent="b", placement=(1, 0, 0), **still)
    where = jdyn.pose((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    rough = jdyn.contact.Touching(friction=(0.4, 0.01, 0.001), contype=3, conaffinity=5, condim=4)
    builder.add_shape("base", "box", (1, 2, 3), name="foot")
    builder.add_shape("a", "sphere", 0.2, placement=where, color=(1, 0, 0, 0.5), touching=rough, name="s")
    builder.add_shape("tip", "cylinder", (0.1, 0.5), placement=where, role="collision")
    builder.add_shape("b", "capsule", (0.1, 0.5), role="visual")
    builder.add_shape("b", "ellipsoid", (0.1, 0.2, 0.3), role="collision", name="e")
    builder.add_shape("c", "mesh", (1, 2, 3), path=tmp_path / "meshes" / "cube.stl", placement=where)
    builder.add_shape("c", "mesh", path=tmp_path / "meshes" / "scan.dae", role="visual")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    heights = 0.3 + 0.1 * np.random.default_rng(0).random((3, 4))
    builder.add_shape("world", "height field", (4, 6), heights=heights, role="collision", name="hills")
    builder.exclude("tip", "c")
    builder.include("foot", "s")
    return builder.build()


def about(model):
    """What shapes are, by role and name; links are those of bodies or frames."""
    shapes, found = model.shapes, {}
    for row, entry in enumerate(shapes.entries):
        place = [np.asarray(x[row]) for x in jax.tree.leaves(shapes.placements)]
        if entry.kind == "height field":
            # The placement may be lower, and the heights larger by as much.
            place[1] = place[1] + np.array([0, 0, np.min(shapes.heights_of(row))])
        touch = (entry.contype, entry.conaffinity, entry.condim, *np.asarray(shapes.friction[row]))
        found[entry.role, entry.name] = (
            (entry.kind, entry.link, entry.path, entry.color, touch if entry.role == "collision" else ()),
            np.concatenate([np.asarray(shapes.size(row)), *map(np.ravel, place)]),
        )
    return found


def test_shapes_read_back(tmp_path):
    model = shaped(tmp_path)
    with pytest.warns(ModelWarning, match="cannot represent meshes without a file that MuJoCo reads of 'c'"):
        jdyn.save_mjcf(model, tmp_path / "robot.xml")
    assert 'file="meshes/cube.stl"' in (tmp_path / "robot.xml").read_text()
    back = quiet(jdyn.load, tmp_path / "robot.xml")
    ours, theirs = about(model), about(back)
    lost = {key for key, ((kind, _, path, _, _), _) in ours.items() if kind == "mesh" and path.endswith(".dae")}
    assert set(theirs) == set(ours) - lost
    for key, (words, numbers) in theirs.items():
        assert words == ours[key][0]
        np.testing.assert_allclose(numbers, ours[key][1], rtol=1e-6 if words[0] == "height field" else 1e-9, atol=1e-9)
    assert {frozenset(pair) for pair in collision_pairs(back)} == {frozenset(pair) for pair in collision_pairs(model)}
    np.testing.assert_allclose(back.gravity, [1, 2, 3])


def test_height_fields_keep_their_heights(tmp_path):
    model = shaped(tmp_path)
    back = quiet(jdyn.load, written(model, tmp_path))
    (ours,), (theirs,) = model.shapes.heights, back.shapes.heights
    # MuJoCo keeps them in single precision.
    np.testing.assert_allclose(theirs - np.min(theirs), ours - np.min(ours), atol=1e-8)


# Systems.

SCENE = """<mujoco model="scene">
  <compiler angle="radian"/>
  <option gravity="0.5 -1 -9" magnetic="0.1 0.2 0.3" density="1.2" viscosity="0.05" wind="1 0.5 -0.2"/>
  <worldbody>
    <site name="anchor" pos="0.5 0 2"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.2" range="-2 2"/>
      <inertial pos="0 0 -0.4" mass="1.5" diaginertia="0.1 0.12 0.05"/>
      <site name="imu" pos="0.1 0 -0.3" euler="0.1 0.2 0.3"/>
      <geom name="pulley" type="cylinder" size="0.1 0.2" pos="0 0 -0.8" euler="1.5707963267948966 0 0" contype="0"
        conaffinity="0" group="3"/>
      <geom name="ring" size="0.08" pos="0.05 0 -0.5" contype="0" conaffinity="0" group="3"/>
      <site name="beside" pos="0.3 0 -0.8"/><site name="within" pos="0.05 0 -0.5"/>
      <body name="fore" pos="0 0 -0.8">
        <joint name="elbow" axis="0 1 0" stiffness="3" springref="0.3"/>
        <joint name="twist" type="slide" axis="0 0 1" damping="0.1"/>
        <inertial pos="0 0 -0.3" mass="0.7" fullinertia="0.05 0.06 0.03 0.001 0.002 0.003"/>
        <site name="hand" pos="0 0 -0.6"/><geom name="tip" size="0.05" pos="0 0 -0.6" conaffinity="0"/>
      </body>
    </body>
    <body name="ball" pos="2 0 0.5" gravcomp="0.4">
      <freejoint name="free"/>
      <inertial pos="0 0 0" mass="0.4" diaginertia="0.01 0.02 0.015"/>
      <site name="thruster"/><geom name="skin" size="0.1" conaffinity="0"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum"><joint joint="shoulder" coef="0.5"/><joint joint="elbow" coef="-0.3"/></fixed>
    <spatial name="rope" stiffness="20" springlength="0.1 0.5" damping="0.4">
      <site site="anchor"/><site site="imu"/><pulley divisor="2"/><site site="imu"/><site site="hand"/>
    </spatial>
    <spatial name="cord" stiffness="5" damping="0.1">
      <site site="anchor"/><geom geom="ring" sidesite="within"/><site site="imu"/>
      <geom geom="pulley" sidesite="beside"/><site site="hand"/>
    </spatial>
  </tendon>
  <actuator>
    <motor name="motor" joint="shoulder" gear="3" ctrlrange="-2 2"/>
    <position name="servo" joint="elbow" kp="20" kv="2" forcerange="-15 15"/>
    <velocity name="speed" joint="twist" kv="4"/>
    <damper name="brake" joint="twist" kv="2" ctrlrange="0 3"/>
    <general name="affine" tendon="sum" gear="2" gainprm="3 1 0.5" gaintype="affine" biastype="affine"
      biasprm="0.1 -2 -0.3"/>
    <general name="slow" joint="shoulder" dyntype="filter" dynprm="0.2" gainprm="5" actrange="-1 1" actlimited="true"/>
    <intvelocity name="growing" joint="elbow" kp="6" actrange="-1 1"/>
    <muscle name="muscle" tendon="rope" force="30" lengthrange="0.5 3"/>
    <general name="thrust" site="thruster" gear="1 2 3 0.1 0.2 0.3" gainprm="0.5"/>
  </actuator>
  <equality>
    <connect name="hook" site1="hand" site2="thruster"/>
    <joint joint1="twist" joint2="elbow" polycoef="0.1 0.2 0.3 0 0"/>
  </equality>
  <sensor>
    <jointpos name="s1" joint="elbow"/><jointvel name="s2" joint="twist" cutoff="0.5"/>
    <gyro name="s3" site="imu"/><accelerometer name="s4" site="imu"/><velocimeter name="s5" site="hand"/>
    <magnetometer name="s6" site="imu"/><force name="s7" site="imu"/><torque name="s8" site="imu"/>
    <framepos name="s9" objtype="site" objname="hand" reftype="site" refname="imu"/>
    <framequat name="s10" objtype="body" objname="fore"/><framezaxis name="s11" objtype="site" objname="hand"/>
    <framelinvel name="s12" objtype="site" objname="hand"/><frameangacc name="s13" objtype="site" objname="hand"/>
    <framelinacc name="s14" objtype="site" objname="hand"/><subtreecom name="s15" body="upper"/>
    <actuatorfrc name="s16" actuator="servo"/><tendonpos name="s17" tendon="rope"/><clock name="s18"/>
    <e_kinetic name="s19"/><tendonvel name="s20" tendon="sum"/><jointactuatorfrc name="s21" joint="shoulder"/>
    <distance name="s22" geom1="tip" geom2="skin" cutoff="5"/><fromto name="s23" geom1="tip" geom2="skin" cutoff="5"/>
  </sensor>
  <keyframe><key name="bent" qpos="0.1 0.2 0.3 1 2 3 0 1 0 0"/></keyframe>
</mujoco>"""


def states_of_mujoco(m, seed, start):
    data, rng = mujoco.MjData(m), np.random.default_rng(seed)
    data.qpos = start + 0.1 * rng.normal(size=m.nq)
    mujoco.mj_normalizeQuat(m, data.qpos)
    data.qvel, data.ctrl, data.act = rng.normal(size=m.nv), rng.normal(size=m.nu), 0.3 * rng.normal(size=m.na)
    mujoco.mj_forward(m, data)
    return data


def test_a_system_acts_in_mujoco_as_its_file_did(tmp_path):
    """The same accelerations, rates of activations and sensors, for states and controls that saturate."""
    system, file = quiet(jdyn.load_system, SCENE), tmp_path / "robot.xml"
    with warnings.catch_warnings():
        # All of it can be written.
        warnings.simplefilter("error")
        jdyn.save_mjcf(system, file)
    first, second = mujoco.MjModel.from_xml_string(SCENE), mujoco.MjModel.from_xml_path(str(file))
    assert (second.nu, second.na, second.nsensor, second.neq) == (first.nu, first.na, first.nsensor, first.neq)
    for m in (first, second):
        m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    for seed in range(5):
        one, other = (states_of_mujoco(m, seed, first.qpos0) for m in (first, second))
        np.testing.assert_allclose(other.qacc, one.qacc, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(other.act_dot, one.act_dot, rtol=1e-10, atol=1e-10)
        # Force sensors feel the tendon's pull here, and are the same in both files.
        np.testing.assert_allclose(other.sensordata, one.sensordata, rtol=1e-10, atol=1e-10)


class Accelerations(jdyn.sensors.Sensor):
    """All accelerations of a system."""

    def value(self, reading):
        return reading.a


@pytest.mark.slow
def test_a_system_accelerates_as_in_mujoco(tmp_path):
    system = quiet(jdyn.load_system, SCENE)
    system = dataclasses.replace(system, constraints=(), sensors=(), joint_limits=None)
    m = mujoco.MjModel.from_xml_path(str(written(system, tmp_path)))
    system = dataclasses.replace(system, sensors=(Accelerations("a"),))
    between, data = jdyn.interop.MujocoMap(system.model, m), mujoco.MjData(m)
    rng = np.random.default_rng(3)
    q = np.asarray(system.configurations["qpos0"]) + np.pad(0.2 * rng.normal(size=6), (0, 4))
    v, commands = rng.normal(size=system.model.nv), rng.normal(size=9)
    data.qpos, data.qvel, data.ctrl = between.q_to_peer(q), between.v_to_peer(q, v), commands
    mujoco.mj_forward(m, data)
    state = system.state(jnp.asarray(q), jnp.asarray(v))
    expected = between.a_from_peer(q, v, data.qacc)
    np.testing.assert_allclose(system.sense(state, jnp.asarray(commands))["a"], expected, rtol=1e-10, atol=1e-10)


def test_a_system_reads_back(tmp_path):
    system = quiet(jdyn.load_system, SCENE)
    back = quiet(jdyn.load_system, written(system, tmp_path))
    assert [type(x) for x in back.actuators] == [type(x) for x in system.actuators]
    assert [(type(x), x.name) for x in back.sensors] == [(type(x), x.name) for x in system.sensors]
    assert [type(x) for x in back.constraints] == [type(x) for x in system.constraints]
    assert [type(x) for x in back.elements] == [type(x) for x in system.elements]
    np.testing.assert_allclose(back.constraints[1].coefficients, system.constraints[1].coefficients, atol=1e-14)
    assert set(back.configurations) == {"qpos0", "bent"}
    for name, q in system.configurations.items():
        np.testing.assert_allclose(back.configurations[name], q, atol=1e-14)
    for one, other in zip(system.actuators, back.actuators, strict=True):
        np.testing.assert_allclose(*(np.concatenate([*map(np.ravel, jax.tree.leaves(x))]) for x in (one, other)))
    assert (back.contact is None, back.joint_limits is None) == (system.contact is None, False)
    assert_same(system.model, back.model)


def test_what_else_acts_is_written(tmp_path):
    """Powers of tendons' springs, gears that a site bears, priorities, and friction of pairs."""
    text = SCENE.replace('stiffness="5" damping="0.1"', 'stiffness="5 2 1.5" damping="0.1 0.2 0.05"')
    text = text.replace('<geom name="tip"', '<geom name="tip" priority="2"')
    text = text.replace(
        "<actuator>", '<actuator><general name="pull" site="hand" refsite="anchor" gear="1 2 3 .1 .2 .3" gainprm="2"/>'
    ).replace(
        "<tendon>",
        '<contact><pair geom1="tip" geom2="skin" condim="6" friction=".7 .7 .02 .003 .003"/></contact><tendon>',
        1,
    )
    system = quiet(jdyn.load_system, text)
    file = written(system, tmp_path)
    first, second = mujoco.MjModel.from_xml_string(text), mujoco.MjModel.from_xml_path(str(file))
    for m in (first, second):
        m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    for seed in range(3):
        one, other = (states_of_mujoco(m, seed, first.qpos0) for m in (first, second))
        np.testing.assert_allclose(other.qacc, one.qacc, rtol=1e-10, atol=1e-10)
    assert second.geom("tip").priority[0] == 2
    np.testing.assert_allclose(second.pair_friction, first.pair_friction)
    back = quiet(jdyn.load_system, file).model.shapes
    np.testing.assert_allclose(back.stated_friction, system.model.shapes.stated_friction)


# What MJCF cannot say.


def one_link(joint, **properties):
    builder = Builder("arm")
    builder.add_link("a", joint, mass=1.0, inertia=0.1, **properties)
    return builder


def test_what_mjcf_has_not_is_refused(tmp_path):
    file = tmp_path / "robot.xml"
    with pytest.raises(ValueError, match=r"MJCF has no joint type for 'a' \(Helical\)"):
        jdyn.save_mjcf(one_link(jdyn.Helical((0, 0, 1), 0.1)).build(), file)
    builder = one_link(jdyn.Revolute((0, 0, 1)))
    builder.add_link("b", jdyn.Free(), parent="a", mass=1.0, inertia=0.1)
    with pytest.raises(ValueError, match="free joints of MJCF are on the world, not on other bodies as 'b'"):
        jdyn.save_mjcf(builder.build(), file)
    builder = Builder("arm")
    builder.add_link("a", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=(1, 1, 3))
    with pytest.raises(ValueError, match="MuJoCo refuses body 'a', whose moments"):
        jdyn.save_mjcf(quiet(builder.build), file)
    builder = Builder("arm")
    builder.add_link("\x01", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1.0)
    with pytest.raises(ValueError, match="cannot represent the names"):
        jdyn.save_mjcf(builder.build(), file)
    builder = one_link(jdyn.Revolute((0, 0, 1)))
    builder.add_frame("world", "a")
    with pytest.raises(ValueError, match="'world' is the fixed world"):
        jdyn.save_mjcf(builder.build(), file)
    deep = jdyn.ROBOTS["chain"](500)
    with pytest.raises(ValueError, match="bodies one on another, got 500"):
        jdyn.save_mjcf(deep, file)
    assert not file.exists()


def test_what_mjcf_has_not_is_named_in_one_warning(tmp_path):
    builder = one_link(jdyn.Revolute((0, 0, 1)), velocity=1.0, friction=0.1, friction_speed=0.5, lower=1.0, upper=1.0)
    builder.add_link("b", jdyn.Ball(), parent="a", mass=1.0, inertia=0.1, damping=(1, 2, 3), upper=1.0, effort=2.0)
    builder.add_link("c", jdyn.Free(), placement=(0, 0, 1), mass=1.0, inertia=0.1)
    model = builder.build()
    servo = jdyn.actuators.PIDServo("a", kp=1.0, ki=1.0, name="servo")
    turning = jdyn.actuators.PositionServo("a", kp=1.0, period=2 * np.pi, name="turning")
    shifted = jdyn.transmissions.FixedTendon(["a"], [1.0], offset=0.3)
    drifting = jdyn.sensors.Imperfect(
        jdyn.sensors.JointPosition("angle", "a"), drift=0.1, cutoff=1.0, key=jax.random.key(0)
    )
    system = jdyn.System(
        model,
        controller=jdyn.control.Constant(jnp.ones(2)),
        actuators=[servo, turning],
        elements=[
            jdyn.elements.PointSpring("a", "world", 1.0, 1.0),
            jdyn.elements.TendonSpring(shifted, stiffness=2.0),
        ],
        constraints=[jdyn.constraints.Distance("a", "c", length=1.0)],
        sensors=[jdyn.sensors.ActuatorForce("of servo", "servo"), drifting],
    )
    with pytest.warns(ModelWarning) as caught:
        jdyn.save_mjcf(system, tmp_path / "robot.xml")
    (warning,) = caught
    for phrase in (
        "the controller",
        "limits of velocity of 'a'",
        "friction_speed of 'a'",
        "limits with both ends at one place of 'a'",
        "damping that differs between coordinates of 'b'",
        "limits of 'b'",
        "coordinates that are not the pose in the world of 'c'",
        "actuators of 'servo' (PIDServo)",
        "'turning' (PositionServo)",
        "constraints of Distance of 'a' and 'c'",
        "force elements of PointSpring",
        "PointSpring, TendonSpring",
        "drift of sensor 'angle'",
        "sensors of 'of servo' (ActuatorForce)",
    ):
        assert phrase in str(warning.message)
    mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))


def test_a_system_without_contact_and_limits_says_so(tmp_path):
    model = jdyn.load("quadruped")
    m = mujoco.MjModel.from_xml_path(str(written(jdyn.System(model), tmp_path)))
    assert m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    assert m.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    both = jdyn.System(model, contact=jdyn.CompliantContact(), joint_limits=jdyn.CompliantLimits())
    assert mujoco.MjModel.from_xml_path(str(written(both, tmp_path))).opt.disableflags == 0


def residual(model, constraint, q):
    frames = tuple(
        jdyn.Transform.identity() if name == "world" else jdyn.frame_pose(model, q, name) for name in constraint.frames
    )
    joints = tuple(q[model.topology.q_slice(model.topology.joint(name))][0] for name in constraint.joints)
    return constraint.residual(Placed(jnp.zeros(()), frames, joints))


def test_constraints_hold_points_and_frames_together(tmp_path):
    """A hinge holds two points of its axis together, others are what they were."""
    model = jdyn.load("double_pendulum")
    axis, other, at = (0.0, 1.0, 0.0), (0.6, 0.8, 0.0), jdyn.pose((0.1, 0.2, 0.3), (0.1, 0.2, 0.3))
    at = jdyn.Transform(jnp.asarray(at.rotation), jnp.asarray(at.translation))
    hinge = jdyn.constraints.Hinge("tip", "world", axis_a=axis, axis_b=other, point_a=(0.1, 0, 0), point_b=(0.5, 0, -1))
    others = [
        jdyn.constraints.Connect("link1", "tip", point_a=(0.3, 0.2, 0.1), point_b=(0.1, 0.0, 0.5)),
        jdyn.constraints.Weld("link1", "world", pose=at),
        jdyn.constraints.JointSum(("joint1", "joint2"), (1.0, 2.0), 0.5),
        jdyn.constraints.Gear("joint1", "joint2", (0.1, 0.0, 2.0)),
    ]
    system = jdyn.System(model, constraints=[hinge, *others])
    back, q = quiet(jdyn.load_system, written(system, tmp_path)), jnp.array([0.3, 0.7])
    first, second, *same = back.constraints
    X = jdyn.frame_pose(model, q, "tip")
    for connect, along in ((first, 0.0), (second, 1.0)):
        apart = np.array([0.5, 0, -1]) + along * np.array(other) - np.asarray(X.translation)
        expected = np.asarray(X.rotation).T @ apart - np.array([0.1, 0, 0]) - along * np.array(axis)
        np.testing.assert_allclose(residual(back.model, connect, q), expected, atol=1e-14)
    for ours, theirs in zip(others, same, strict=True):
        assert type(ours) is type(theirs)
        np.testing.assert_allclose(residual(back.model, theirs, q), residual(model, ours, q), atol=1e-14)


@pytest.mark.parametrize("name", ["ant", "humanoid", "hopper", "reacher", "swimmer", "pusher"])
def test_robots_of_mujoco_move_as_their_files_say(name, tmp_path):
    """All of a file is read and written; where its coordinates start is a keyframe, if that is not zero."""
    source = ASSETS / f"{name}.xml"
    file = written(quiet(jdyn.load_system, source), tmp_path)
    first, second = mujoco.MjModel.from_xml_path(str(source)), mujoco.MjModel.from_xml_path(str(file))
    assert (second.nq, second.nu, second.nsensor) == (first.nq, first.nu, first.nsensor)
    start = second.key_qpos[0] if second.nkey else second.qpos0
    np.testing.assert_allclose(start, first.qpos0, atol=1e-14)
    for m in (first, second):
        m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    for seed in range(3):
        one, other = (states_of_mujoco(m, seed, first.qpos0) for m in (first, second))
        np.testing.assert_allclose(other.qacc, one.qacc, atol=1e-10 * np.max(np.abs(one.qacc)))
