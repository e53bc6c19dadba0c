"""What legal URDF means, against Pinocchio on real robots, and the way back to a file."""

import dataclasses
import pathlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.io import load_urdf, save_urdf
from jdyn.io.urdf_writer import roll_pitch_yaw
from jdyn.model import (
    WORLD,
    Ball,
    Builder,
    Continuous,
    Free,
    Helical,
    Mimic,
    Model,
    ModelError,
    ModelWarning,
    Planar,
    Prismatic,
    Revolute,
    Shape,
    Universal,
    pose,
    random_tree,
)

pytestmark = pytest.mark.fast_compile

ROBOTS = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
INERTIAL = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'
ATOL = 1e-14


def arm(in_joint=LIMIT, in_link=INERTIAL, kind="revolute", root="base"):
    return f"""<robot name="r"><link name="{root}"/><link name="a">{in_link}</link>
    <joint name="j" type="{kind}"><parent link="{root}"/><child link="a"/>{in_joint}</joint></robot>"""


def quiet(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return function(*args, **kwargs)


def rotation(rpy):
    return pin.rpy.rpyToMatrix(*map(float, rpy))


# What the elements mean.


def test_defaults():
    model = load_urdf(arm())
    assert (model.name, model.nq, model.nv) == ("r", 1, 1)
    assert (model.body_names, model.joint_names, model.frame_names) == (("a",), ("j",), ("base",))
    assert model.topology.kinds == (Revolute,) and model.topology.frame_bodies == (WORLD,)
    np.testing.assert_array_equal(model.joints[0].axis, [[1, 0, 0]])
    np.testing.assert_array_equal(model.placements.rotation, np.eye(3)[None])
    np.testing.assert_array_equal(model.placements.translation, np.zeros((1, 3)))
    limits = model.limits
    np.testing.assert_array_equal([*limits.lower, *limits.upper, *limits.effort, *limits.velocity], [-1, 2, 3, 4])
    np.testing.assert_array_equal([model.damping, model.friction], np.zeros((2, 1)))


def test_origin_axis_and_dynamics():
    body = (
        '<origin xyz=" 1  -.5 2. " rpy="0.3 -0.4 +5e-1"/><axis xyz="0 3 -4"/><dynamics damping=".5" friction="1E-1"/>'
    )
    model = load_urdf(arm(LIMIT + body))
    np.testing.assert_allclose(model.placements.translation[0], [1, -0.5, 2])
    np.testing.assert_allclose(model.placements.rotation[0], rotation([0.3, -0.4, 0.5]), atol=ATOL)
    np.testing.assert_allclose(model.joints[0].axis[0], [0, 0.6, -0.8], atol=ATOL)
    assert (model.damping[0], model.friction[0]) == (0.5, 0.1)


def test_quaternion_origin():
    q = np.array([0.1, -0.2, 0.3, 0.9])
    model = load_urdf(arm(LIMIT + f'<origin quat_xyzw="{" ".join(map(str, q))}"/>'))
    expected = pin.Quaternion(q / np.linalg.norm(q)).matrix()
    np.testing.assert_allclose(model.placements.rotation[0], expected, atol=ATOL)


def test_inertia_is_turned_and_shifted():
    origin = '<origin xyz="0.1 0.2 -0.3" rpy="0.5 0.6 0.7"/>'
    inertia = '<inertia ixx="1" ixy="0.1" ixz="-0.2" iyy="1.2" iyz="0.05" izz="0.9"/>'
    model = load_urdf(arm(in_link=f'<inertial>{origin}<mass value="2"/>{inertia}</inertial>'))
    R, c = rotation([0.5, 0.6, 0.7]), np.array([0.1, 0.2, -0.3])
    about_com = R @ np.array([[1, 0.1, -0.2], [0.1, 1.2, 0.05], [-0.2, 0.05, 0.9]]) @ R.T
    expected = about_com + 2 * (c @ c * np.eye(3) - np.outer(c, c))
    np.testing.assert_allclose(model.inertias.first_moment[0], 2 * c, atol=ATOL)
    np.testing.assert_allclose(
        model.inertias.rotational[0], expected[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]], atol=ATOL
    )


@pytest.mark.parametrize(
    ("axis", "x"),
    [
        ("0 0 2", [1, 0, 0]),
        ("0 1 0", [1, 0, 0]),
        ("1 0 1", [0.5**0.5, 0, -(0.5**0.5)]),
        ("1 0 0", [0, 1, 0]),
        ("-1 0 0", [0, 1, 0]),
    ],
)
def test_planar(axis, x):
    model = load_urdf(arm(f'<axis xyz="{axis}"/>', kind="planar"))
    np.testing.assert_allclose(model.joints[0].x[0], x, atol=ATOL)
    np.testing.assert_allclose(np.linalg.norm(model.joints[0].normal[0]), 1, atol=ATOL)


def test_kinds():
    expected = {"continuous": Continuous, "prismatic": Prismatic, "floating": Free, "planar": Planar}
    for name, kind in expected.items():
        model = load_urdf(arm(LIMIT if name == "prismatic" else "", kind=name))
        assert model.topology.kinds == (kind,)
    assert load_urdf(arm("", kind="continuous")).limits.upper[0] == np.inf


def test_largest_double_is_no_limit():
    limit = '<limit lower="-1.7976931348623157e+308" upper="1e16" effort="1e308" velocity="1"/>'
    limits = load_urdf(arm(limit)).limits
    np.testing.assert_array_equal([*limits.lower, *limits.upper, *limits.effort], [-np.inf, 1e16, np.inf])


def test_what_belongs_to_other_programs_is_no_news():
    document = f"""<?xml version="1.0"?><!-- made by xacro ${{x}} -->
    <robot name="r" version="1.0" xmlns:xacro="http://www.ros.org/wiki/xacro">
      <material name=""/><material name=""/><gazebo reference="a"><material>${{x}}</material></gazebo>
      <transmission name="t"><joint name="j"/></transmission><ros2_control name="c"/><sensor name="s"/>
      <link name="base"><visual><geometry><box size="1 1 1"/></geometry><material name="m"/></visual></link>
      <link name="j">{INERTIAL}</link><link name="b"/>
      <joint name="j" type="revolute"><parent link="base"/><child link="j"/>{LIMIT}
        <calibration rising="0"/><safety_controller k_velocity="1"/></joint>
      <joint name="base" type="fixed"><parent link="j"/><child link="b"/><axis xyz="0 0 0"/>
        <limit effort="0" velocity="0"/><dynamics damping="1"/><mimic joint="nobody"/></joint>
    </robot>"""
    model = load_urdf(document)
    assert (model.body_names, model.frame_names) == (("j",), ("base", "b"))


def test_default_namespace():
    document = arm().replace("<robot", '<robot xmlns="http://www.ros.org"')
    assert load_urdf(document).topology == load_urdf(arm()).topology


def test_encodings(tmp_path):
    document = arm().replace('"a"', '"å"')
    expected = load_urdf(document)
    assert expected.body_names == ("å",)
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "iso-8859-1"):
        file = tmp_path / f"{encoding}.urdf"
        declared = f'<?xml version="1.0" encoding="{encoding}"?>\n' if encoding == "iso-8859-1" else ""
        file.write_bytes((declared + document).encode(encoding))
        assert load_urdf(file).topology == expected.topology
    assert load_urdf("\n  \ufeff" + document).topology == expected.topology


def test_world_root_is_the_world():
    fixed = f"""<link name="a">{INERTIAL}</link><joint name="w" type="fixed"><origin xyz="0 0 1"/>
    <parent link="world"/><child link="a"/></joint>"""
    turning = f"""<link name="b">{INERTIAL}</link><joint name="j" type="continuous">
    <parent link="a"/><child link="b"/></joint>"""
    document = f'<robot name="r"><link name="world"/>{fixed}{turning}</robot>'
    model = load_urdf(document)
    assert (model.body_names, model.frame_names) == (("b",), ("a",))
    np.testing.assert_array_equal(model.placements.translation, [[0, 0, 1]])
    free = load_urdf(document, floating_base=True)
    assert (free.body_names, free.joint_names, free.frame_names) == (("a", "b"), ("root_joint", "j"), ())
    np.testing.assert_array_equal(free.placements.translation, [[0, 0, 1], [0, 0, 0]])
    assert free.topology.kinds == (Free, Continuous)


def test_a_floating_root_is_bolted_down_on_demand():
    text = """<robot name="r"><link name="world"/><link name="body"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
      </link><joint name="base" type="floating"><parent link="world"/><child link="body"/></joint>
      <joint name="hinge" type="continuous"><parent link="body"/><child link="arm"/></joint></robot>"""
    assert load_urdf(text).topology.kinds == (Free, Continuous)
    assert load_urdf(text, floating_base=False).topology.kinds == (Continuous,)


def test_floating_base():
    document = arm().replace('<link name="base"/>', f'<link name="base">{INERTIAL}</link>')
    fixed, free = load_urdf(document), load_urdf(document, floating_base=True)
    np.testing.assert_array_equal(fixed.inertias.mass, [2])
    np.testing.assert_array_equal(free.inertias.mass, [2, 2])
    assert (free.nq, free.nv, free.joint_names) == (8, 7, ("root_joint", "j"))
    assert load_urdf(document.replace('"j"', '"root_joint"'), floating_base=True).joint_names[0] == "root_joint_"
    own = arm("", kind="floating", root="world")
    assert load_urdf(own, floating_base=True).topology == load_urdf(own).topology
    assert load_urdf(own).topology.kinds == (Free,)


def test_mimics_resolve_whatever_their_order():
    def link(name, leader, extra=""):
        mimic = f'<mimic joint="{leader}" {extra}/>' if leader else ""
        return f"""<link name="{name}">{INERTIAL}</link><joint name="j{name}" type="prismatic">
        <parent link="base"/><child link="{name}"/>{LIMIT}{mimic}</joint>"""

    links = link("a", "jb", 'multiplier="2" offset="0.1"') + link("b", "jc", 'multiplier="-3"') + link("c", None)
    model = load_urdf(f'<robot name="r"><link name="base"/>{links}</robot>')
    assert (model.nq, model.topology.mimics) == (1, ((0, 2), (1, 2)))
    np.testing.assert_allclose(model.expand(jnp.array([0.7])), [-6 * 0.7 + 0.1, -3 * 0.7, 0.7])


# Shapes.


def shapes(*filenames):
    visual = "".join(f'<visual><geometry><mesh filename="{name}"/></geometry></visual>' for name in filenames)
    return arm(in_link=INERTIAL + visual)


def test_shapes_are_kept():
    visual = """<visual><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><geometry><cylinder radius="1" length="2"/>
    </geometry></visual><collision><geometry><capsule radius="0.5" length="3"/></geometry></collision>"""
    found = load_urdf(arm(in_link=INERTIAL + visual)).shapes
    assert found.entries == (Shape("cylinder", "visual", 0, "a", "a"), Shape("capsule", "collision", 0, "a", "a"))
    np.testing.assert_array_equal(found.sizes, [[1, 2, 0], [0.5, 3, 0]])
    turned = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(found.placements.rotation, [turned, np.eye(3)], atol=ATOL)
    np.testing.assert_array_equal(found.placements.translation, [[1, 2, 3], [0, 0, 0]])


def test_mesh_paths(tmp_path):
    folder = tmp_path / "arm_description" / "urdf"
    folder.mkdir(parents=True)
    (tmp_path / "arm_description" / "package.xml").touch()
    elsewhere = tmp_path / "elsewhere" / "other_package"
    elsewhere.mkdir(parents=True)
    (elsewhere / "there.stl").touch()
    names = {
        "a.stl": folder / "a.stl",
        "../meshes/a.stl": folder.parent / "meshes/a.stl",
        "package://arm_description/meshes/a.stl": folder.parent / "meshes/a.stl",
        "package:///arm_description/urdf/../b.stl": folder.parent / "b.stl",
        "package://other_package/there.stl": elsewhere / "there.stl",
        "there.stl": folder / "there.stl",
        f"file://{folder}/c.stl": folder / "c.stl",
    }
    file = folder / "arm.urdf"
    file.write_text(shapes(*names))
    model = quiet(load_urdf, file, package_dirs=[elsewhere.parent])
    assert [shape.path for shape in model.shapes.entries] == [str(path) for path in names.values()]
    by_package = quiet(load_urdf, file, package_dirs=elsewhere)
    assert [shape.path for shape in by_package.shapes.entries[4:6]] == [str(elsewhere / "there.stl")] * 2
    unresolved = quiet(load_urdf, shapes("package://nowhere/a.stl")).shapes.entries[0]
    assert unresolved.path == "package://nowhere/a.stl"


def test_kept_names_of_meshes_are_written_back(tmp_path):
    model = quiet(load_urdf, shapes("package://nowhere/a.stl"))
    save_urdf(model, tmp_path / "r.urdf")
    assert quiet(load_urdf, tmp_path / "r.urdf").shapes.entries[0].path == "package://nowhere/a.stl"


# Real robots against Pinocchio.


def pin_inertia(inertia: pin.Inertia):
    """Mass, first moment and rotational inertia about the frame's origin in jdyn's order."""
    c = inertia.lever
    about_origin = inertia.inertia + inertia.mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.concatenate([[inertia.mass], inertia.mass * c, about_origin[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


def compare_with_pinocchio(model: Model, theirs: pin.Model):
    joints = {name: i for i, name in enumerate(theirs.names)}
    assert set(model.joint_names) == set(joints) - {"universe"}
    for body, name in enumerate(model.joint_names):
        i = joints[name]
        parent = model.topology.parents[body]
        assert theirs.names[theirs.parents[i]] == ("universe" if parent == WORLD else model.joint_names[parent])
        placement = theirs.jointPlacements[i]
        np.testing.assert_allclose(model.placements.rotation[body], placement.rotation, atol=1e-12)
        np.testing.assert_allclose(model.placements.translation[body], placement.translation, atol=1e-12)
        ours = np.concatenate([np.ravel(leaf[body]) for leaf in jax.tree.leaves(model.inertias)])
        np.testing.assert_allclose(ours, pin_inertia(theirs.inertias[i]), atol=1e-12 * max(1, ours[0]))
        compare_limits(model, body, theirs, i)
    for frame, name in enumerate(model.frame_names):
        found = theirs.frames[theirs.getFrameId(name, pin.FrameType.BODY)]
        np.testing.assert_allclose(model.frames.rotation[frame], found.placement.rotation, atol=1e-12)
        np.testing.assert_allclose(model.frames.translation[frame], found.placement.translation, atol=1e-12)


def compare_limits(model, body, theirs, i):
    kind, q, v = model.topology.kinds[body], model.topology.q_slice(body), model.topology.v_slice(body)
    if kind is Free:
        return
    at_v, at_q = theirs.idx_vs[i], theirs.idx_qs[i]
    assert model.damping[v][0] == theirs.damping[at_v]
    assert model.friction[v][0] == theirs.upperDryFrictionLimit[at_v]
    assert model.limits.velocity[v][0] == theirs.upperVelocityLimit[at_v]
    assert model.limits.effort[v][0] == theirs.upperEffortLimit[at_v]
    if kind is not Continuous:
        bounds = (model.limits.lower[q][0], model.limits.upper[q][0])
        assert bounds == (theirs.lowerPositionLimit[at_q], theirs.upperPositionLimit[at_q])


@pytest.mark.parametrize(
    ("file", "followers"),
    [
        ("panda_description/urdf/panda.urdf", 1),
        ("ur_description/urdf/ur5_robot.urdf", 0),
        ("talos_data/robots/talos_full_v2.urdf", 12),
        ("anymal_c_simple_description/urdf/anymal.urdf", 0),
        ("hyq_description/robots/hyq_no_sensors.urdf", 0),
        ("tiago_pro_description/robots/tiago_pro.urdf", 10),
        ("tiago_description/robots/tiago.urdf", 0),
        ("pr2_description/urdf/pr2.urdf", 10),
        ("icub_description/robots/icub.urdf", 0),
    ],
)
@pytest.mark.parametrize("floating", [False, True])
def test_real_robots(file, followers, floating):
    path = ROBOTS / file
    model = quiet(load_urdf, path, floating_base=floating)
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    compare_with_pinocchio(model, pin.buildModelFromUrdf(str(path), *root))
    assert len(model.topology.mimics) == followers


def test_every_robot_of_the_wheel_loads_or_is_refused_for_a_reason():
    reasons = {
        "alex_psyonic_hands": "does not exist",
        "romeo_laas_small": "none below zero",
        "ur3": "no link",
    }
    files = sorted(ROBOTS.glob("**/*.urdf"))
    assert len(files) >= 60
    for file in files:
        if file.stem in reasons:
            with pytest.raises(ModelError, match=reasons[file.stem]):
                quiet(load_urdf, file, floating_base=True)
        else:
            assert quiet(load_urdf, file, floating_base=True).nv >= 6


def test_planar_about_z_is_pinocchios():
    document = arm('<axis xyz="0 0 1"/><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>', kind="planar")
    theirs = pin.buildModelFromXML(document)
    data = theirs.createData()
    x, y, angle = 0.4, -0.7, 1.1
    pin.forwardKinematics(theirs, data, np.array([x, y, np.cos(angle), np.sin(angle)]))
    model = load_urdf(document)
    joint = jax.tree.map(lambda leaf: leaf[0], model.joints[0])
    ours = jax.tree.map(lambda leaf: leaf[0], model.placements) @ joint.transform(jnp.array([x, y, angle]))
    np.testing.assert_allclose(ours.rotation, data.oMi[1].rotation, atol=ATOL)
    np.testing.assert_allclose(ours.translation, data.oMi[1].translation, atol=ATOL)


def test_two_loads_share_one_trace():
    traces = []

    @jax.jit
    def total(model):
        traces.append(model)
        return model.inertias.mass.sum()

    path = ROBOTS / "panda_description/urdf/panda.urdf"
    first, second = (quiet(load_urdf, path) for _ in range(2))
    assert first.topology == second.topology and hash(first.topology) == hash(second.topology)
    assert total(first) == total(second)
    assert len(traces) == 1


# And back.


def assert_same(a: Model, b: Model, atol=1e-12):
    assert a.topology == b.topology
    assert (a.shapes and a.shapes.entries) == (b.shapes and b.shapes.entries)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=atol)


@pytest.mark.parametrize("seed", range(8))
def test_round_trip_of_random_trees(seed, tmp_path):
    kinds = (Revolute, Continuous, Prismatic, Free)
    model = random_tree(seed, 12, kinds=kinds, reach=None if seed % 2 else 1)
    save_urdf(model, tmp_path / "r.urdf")
    assert_same(model, load_urdf(tmp_path / "r.urdf"))


def test_pinocchio_reads_what_is_written(tmp_path):
    model = random_tree(1, 10, kinds=(Revolute, Prismatic))
    model = dataclasses.replace(
        model, limits=jax.tree.map(lambda x: jnp.nan_to_num(x, posinf=5.0, neginf=-5.0), model.limits)
    )
    save_urdf(model, tmp_path / "r.urdf")
    compare_with_pinocchio(model, pin.buildModelFromUrdf(str(tmp_path / "r.urdf")))


@pytest.mark.parametrize(
    "file",
    [
        "panda_description/urdf/panda.urdf",
        "talos_data/robots/talos_full_v2.urdf",
        "pr2_description/urdf/pr2.urdf",
        "human_description/robots/human.urdf",
        "iris_description/robots/iris.urdf",
    ],
)
def test_round_trip_of_real_robots(file, tmp_path):
    for floating in (False, True):
        model = quiet(load_urdf, ROBOTS / file, floating_base=floating)
        save_urdf(model, tmp_path / "r.urdf")
        assert_same(model, quiet(load_urdf, tmp_path / "r.urdf", package_dirs=[ROBOTS]))


def full_model(**changes):
    """Everything URDF can hold."""
    builder = Builder("all & <sundry>", gravity=changes.pop("gravity", (0, 0, -9.81)))
    builder.add_link(
        "one \"quoted\" 'name'",
        Revolute((1, 2, 3)),
        placement=pose((1, 2, 3), (0.1, np.pi / 2, -0.4)),
        mass=1.5,
        com=(0.1, -0.2, 0.3),
        inertia=(0.1, 0.2, 0.25),
        joint_name="tab\tnewline\n",
        damping=0.1,
        friction=0.2,
        lower=-1e-5,
        velocity=7,
        **changes,
    )
    builder.add_link(
        "two", Prismatic((0, 0, 1)), parent="one \"quoted\" 'name'", mass=1, mimic=Mimic("tab\tnewline\n", -2, 0.1)
    )
    builder.add_link("three", Planar((0, 1, 1), (1, 0, 0)), parent="two", mass=1, inertia=0.1)
    builder.add_frame("tool", "three", pose((0, 0, 1), (3, 2, 1)))
    builder.add_frame("corner", "world", (1, 1, 0))
    builder.add_shape("tool", "box", (1, 2, 3), placement=(0, 0, 0.1), role="visual", color=(0.1, 0.2, 0.3))
    builder.add_shape("tool", "sphere", 0.3, name="tip")
    builder.add_shape("world", "capsule", (0.1, 0.2), role="collision")
    return builder.build()


def test_round_trip_of_everything(tmp_path):
    model = full_model()
    save_urdf(model, tmp_path / "r.urdf")
    assert_same(model, load_urdf(tmp_path / "r.urdf"))


def test_round_trip_in_single_precision(tmp_path):
    model = random_tree(3, 6, kinds=(Revolute, Prismatic), dtype=jnp.float32)
    save_urdf(model, tmp_path / "r.urdf")
    again = load_urdf(tmp_path / "r.urdf", dtype=jnp.float32)
    for x, y in zip(jax.tree.leaves(model), jax.tree.leaves(again), strict=True):
        assert x.dtype == y.dtype == jnp.float32
        np.testing.assert_allclose(x, y, atol=1e-6)


def test_what_is_lost_is_named(tmp_path):
    model = full_model(gravity=(0, 0, -1.6), armature=0.1, stiffness=2, rest=0.3, friction_speed=0.5)
    model = model.with_joint("three", damping=1.0, x=jnp.array([0.6, 0.8 / 2**0.5, -0.8 / 2**0.5]))
    with pytest.warns(ModelWarning) as caught:
        save_urdf(model, tmp_path / "r.urdf")
    (warning,) = caught
    for phrase in ("gravity [0.0, 0.0, -1.6]", "armature of", "stiffness of", "the rest position of", "friction_speed",
                   "damping and friction of 'three'", "the direction of the first coordinate of 'three'"):  # fmt: skip
        assert phrase in str(warning.message)


def test_what_is_lost_of_contacts_is_named(tmp_path):
    builder = Builder("r")
    for name in "abcdef":
        builder.add_link(name, Revolute((0, 0, 1)), mass=1, inertia=1)
    builder.add_shape("a", "sphere", 0.1, role="collision", touching=jdyn.contact.Touching(friction=0.5))
    builder.add_shape("b", "sphere", 0.1, role="collision", touching=jdyn.contact.Touching((1, 0.1, 0.1), condim=3))
    builder.add_shape("c", "sphere", 0.1, role="collision", touching=jdyn.contact.Touching(contype=2))
    builder.add_shape("d", "sphere", 0.1, role="collision", touching=jdyn.contact.Touching(margin=0.01))
    for name in "ef":
        builder.add_shape(name, "sphere", 0.1, role="collision")
    builder.exclude("d", "e")
    builder.include("d", "f")
    with pytest.warns(ModelWarning) as caught:
        save_urdf(builder.build(), tmp_path / "r.urdf")
    (warning,) = caught
    for phrase in ("contact friction of 'a';", "contype and conaffinity of 'c';", "contact margin of 'd';",
                   "excluded pairs of 'd', 'e';", "included pairs of 'd', 'f'"):  # fmt: skip
        assert phrase in str(warning.message)


@pytest.mark.parametrize("joint", [Ball(), Helical((0, 0, 1), 0.1), Universal((1, 0, 0), (0, 1, 0))])
def test_kinds_urdf_cannot_hold(joint, tmp_path):
    builder = Builder("r")
    builder.add_link("a", joint, mass=1, inertia=1, joint_name="odd")
    with pytest.raises(ValueError, match=f"'odd' \\({type(joint).__name__}\\)"):
        save_urdf(builder.build(), tmp_path / "r.urdf")
    assert not (tmp_path / "r.urdf").exists()


@pytest.mark.parametrize("name", ["world", "bell\a"])
def test_names_urdf_cannot_hold(name, tmp_path):
    builder = Builder("r")
    builder.add_link("a", Revolute((0, 0, 1)), mass=1, inertia=1)
    builder.add_frame(name, "a")
    with pytest.raises(ValueError, match=r"another one|rename"):
        save_urdf(builder.build(), tmp_path / "r.urdf")


def test_roll_pitch_yaw_at_gimbal_lock():
    rng = np.random.default_rng(0)
    angles = [rng.uniform(-3, 3, 3) for _ in range(100)]
    near = [
        np.array([a, s * (np.pi / 2 + d), b]) for a, b, _ in angles for s in (-1, 1) for d in (0, 1e-9, -1e-6, 1e-3)
    ]
    for rpy in (*angles, *near):
        R = rotation(rpy)
        np.testing.assert_allclose(rotation(roll_pitch_yaw(R)), R, atol=1e-15 * 4)
