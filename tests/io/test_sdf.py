"""What SDF means: against the same robots as URDF and MJCF in Pinocchio and MuJoCo, against poses found by hand, and
what is refused or named."""

import pathlib
import time
import warnings
from xml.etree import ElementTree

import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.constraints import constraint_distance
from jdyn.model import Ball, Continuous, Free, Helical, ModelError, ModelWarning, Prismatic, Revolute, Universal

pytestmark = pytest.mark.fast_compile

ATOL = 1e-12


def inertial(mass=1.0, pose="", moments=(0.1, 0.2, 0.25)):
    entries = "".join(f"<i{k}{k}>{m}</i{k}{k}>" for k, m in zip("xyz", moments, strict=True))
    return f"<inertial>{pose and f'<pose>{pose}</pose>'}<mass>{mass}</mass><inertia>{entries}</inertia></inertial>"


def link(name, body="", pose="", relative_to=""):
    of = f' relative_to="{relative_to}"' if relative_to else ""
    return f'<link name="{name}"><pose{of}>{pose}</pose>{inertial() if "<inertial" not in body else ""}{body}</link>\n'


def joint(name, parent, child, body="", kind="revolute", axis="0 0 1"):
    axes = f"<axis><xyz>{axis}</xyz></axis>" if axis else ""
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{body}{axes}</joint>\n'


def sdf(body, version="1.9"):
    return f'<?xml version="1.0"?>\n<sdf version="{version}">\n{body}</sdf>'


def model(body, attributes='name="m"', version="1.9"):
    return sdf(f"<model {attributes}>\n{body}</model>\n", version)


def quiet(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return function(*args, **kwargs)


def rotation(roll, pitch, yaw):
    return pin.rpy.rpyToMatrix(float(roll), float(pitch), float(yaw))


def pose_of(robot, name, q=None):
    X = jdyn.frame_pose(robot, robot.neutral() if q is None else jnp.asarray(q), name)
    return np.asarray(X.rotation), np.asarray(X.translation)


def accelerations_of_mujoco(text, q, v):
    m = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(m)
    data.qpos, data.qvel = q, v
    mujoco.mj_forward(m, data)
    return data.qacc


# The same robot as URDF.

URDF = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.1 0.02 -0.3" rpy="0.3 -0.2 0.5"/><mass value="2"/>
  <inertia ixx="0.1" ixy="0.01" ixz="-0.02" iyy="0.2" iyz="0.03" izz="0.25"/></inertial></link>
<link name="slider"><inertial><origin xyz="0 0.1 0"/><mass value="1.5"/>
  <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.25"/></inertial></link>
<link name="wrist"><inertial><mass value="0.7"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial></link>
<link name="tool"><inertial><origin xyz="0 0 0.2"/><mass value="0.3"/>
  <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.015"/></inertial></link>
<joint name="shoulder" type="revolute"><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><parent link="base"/>
  <child link="upper"/><axis xyz="0 0.6 0.8"/><limit lower="-1" upper="2" effort="30" velocity="4"/>
  <dynamics damping="0.4" friction="0"/></joint>
<joint name="slide" type="prismatic"><origin xyz="0 0 -0.5" rpy="-0.7 0.4 0"/><parent link="upper"/>
  <child link="slider"/><axis xyz="1 0 0"/><limit lower="-0.1" upper="0.2" effort="5" velocity="1"/></joint>
<joint name="roll" type="continuous"><origin xyz="0.2 0 0" rpy="0 1.2 0"/><parent link="slider"/>
  <child link="wrist"/><axis xyz="1 2 -2"/><limit effort="7" velocity="9"/></joint>
<joint name="bolt" type="fixed"><origin xyz="0 0 0.1" rpy="0 0 1"/><parent link="wrist"/><child link="tool"/></joint>
</robot>"""

# Every joint is placed in its parent, every link in its joint, as URDF does.
LIKE_URDF = model(
    """<joint name="root" type="fixed"><parent>world</parent><child>base</child></joint><link name="base"/>
<link name="upper"><pose relative_to="shoulder"/><inertial><pose>0.1 0.02 -0.3 0.3 -0.2 0.5</pose><mass>2</mass>
  <inertia><ixx>0.1</ixx><ixy>0.01</ixy><ixz>-0.02</ixz><iyy>0.2</iyy><iyz>0.03</iyz><izz>0.25</izz></inertia>
  </inertial></link>
<link name="slider"><pose relative_to="slide"/><inertial><pose>0 0.1 0 0 0 0</pose><mass>1.5</mass>
  <inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz></inertia></inertial></link>
<link name="wrist"><pose relative_to="roll"/><inertial><mass>0.7</mass>
  <inertia><ixx>0.02</ixx><iyy>0.03</iyy><izz>0.04</izz></inertia></inertial></link>
<link name="tool"><pose relative_to="bolt"/><inertial><pose>0 0 0.2 0 0 0</pose><mass>0.3</mass>
  <inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.015</izz></inertia></inertial></link>
<joint name="shoulder" type="revolute"><pose relative_to="base">0.1 0.2 0.3 0.1 0.2 0.3</pose>
  <parent>base</parent><child>upper</child><axis><xyz>0 0.6 0.8</xyz>
  <limit><lower>-1</lower><upper>2</upper><effort>30</effort><velocity>4</velocity></limit>
  <dynamics><damping>0.4</damping></dynamics></axis></joint>
<joint name="slide" type="prismatic"><pose relative_to="upper">0 0 -0.5 -0.7 0.4 0</pose>
  <parent>upper</parent><child>slider</child><axis><xyz>1 0 0</xyz>
  <limit><lower>-0.1</lower><upper>0.2</upper><effort>5</effort><velocity>1</velocity></limit></axis></joint>
<joint name="roll" type="continuous"><pose relative_to="slider">0.2 0 0 0 1.2 0</pose>
  <parent>slider</parent><child>wrist</child><axis><xyz>1 2 -2</xyz>
  <limit><effort>7</effort><velocity>9</velocity></limit></axis></joint>
<joint name="bolt" type="fixed"><pose relative_to="wrist">0 0 0.1 0 0 1</pose>
  <parent>wrist</parent><child>tool</child></joint>""",
    'name="arm"',
)


def test_a_robot_is_that_of_its_urdf_in_pinocchio():
    robot = quiet(jdyn.load, LIKE_URDF)
    theirs = pin.buildModelFromXML(URDF)
    between, data = jdyn.interop.PinocchioMap(robot, theirs), theirs.createData()
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 3))
    at = between.q_to_peer(q)
    np.testing.assert_allclose(jdyn.mass_matrix(robot, q), pin.crba(theirs, data, at), atol=ATOL)
    # Pinocchio's algorithm leaves out dampers.
    expected = pin.aba(theirs, data, at, v, tau - [0.4 * v[0], 0, 0])
    np.testing.assert_allclose(jdyn.forward_dynamics(robot, q, v, tau), expected, atol=1e-10)
    pin.framesForwardKinematics(theirs, data, at)
    R, p = pose_of(robot, "tool", q)
    placed = data.oMf[theirs.getFrameId("tool")]
    np.testing.assert_allclose((*R.ravel(), *p), (*placed.rotation.ravel(), *placed.translation), atol=ATOL)


def test_limits_dampers_and_kinds_are_those_of_its_urdf():
    robot, same = quiet(jdyn.load, LIKE_URDF), quiet(jdyn.load, URDF)
    assert robot.topology.kinds == (Revolute, Prismatic, Continuous)
    assert (robot.joint_names, robot.body_names) == (same.joint_names, same.body_names)
    np.testing.assert_array_equal(robot.limits.lower, same.limits.lower)
    np.testing.assert_array_equal(robot.limits.upper, same.limits.upper)
    np.testing.assert_array_equal(robot.limits.velocity, same.limits.velocity)
    np.testing.assert_array_equal(robot.limits.effort, same.limits.effort)
    np.testing.assert_array_equal(robot.damping, same.damping)


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["pinocchio", "mujoco"])
def test_files_are_verified(peer):
    assert quiet(jdyn.verify, LIKE_URDF, against=peer, samples=1).passed


# What poses and names mean.


def placed(*poses):
    """Rotation and position of chained poses of six numbers."""
    R, p = np.eye(3), np.zeros(3)
    for numbers in poses:
        p, R = p + R @ np.array(numbers[:3]), R @ rotation(*numbers[3:])
    return R, p


A, B, C = (0.1, -0.2, 0.3, 0.4, 0.5, -0.6), (1, 2, 3, -0.3, 0.2, 0.9), (0.5, 0, -0.7, 0, -0.8, 0.1)


def words(numbers):
    return " ".join(map(repr, numbers))


FRAMES = {
    # A model with a link `a` at A, and what adds a frame `x` to it; where that is in the world.
    "relative to the model": (f'<frame name="x"><pose>{words(B)}</pose></frame>', (B,)),
    "attached to a link": (f'<frame name="x" attached_to="a"><pose>{words(B)}</pose></frame>', (A, B)),
    "attached to one frame, relative to another": (
        f'<frame name="y"><pose>{words(C)}</pose></frame>'
        f'<frame name="x" attached_to="a"><pose relative_to="y">{words(B)}</pose></frame>',
        (C, B),
    ),
    "declared later": (
        f'<frame name="x" attached_to="y"><pose>{words(B)}</pose></frame>'
        f'<frame name="y" attached_to="a"><pose>{words(C)}</pose></frame>',
        (A, C, B),
    ),
    "relative to the model by name": (
        f'<frame name="x" attached_to="a"><pose relative_to="__model__">{words(B)}</pose></frame>',
        (B,),
    ),
    "relative to a joint": (
        joint("j", "world", "a", f"<pose>{words(C)}</pose>", "fixed")
        + f'<frame name="x"><pose relative_to="j">{words(B)}</pose></frame>',
        (A, C, B),
    ),
    "of a link in a model": (
        f'<model name="n"><pose>{words(B)}</pose>{link("x", "", words(C))}</model><frame name="x" attached_to="n::x"/>',
        (B, C),
    ),
    "of a model relative to a link": (
        f'<model name="n"><pose relative_to="a">{words(B)}</pose>{link("b")}</model><frame name="x" attached_to="n"/>',
        (A, B),
    ),
    "of a model's frame by its name": (
        f'<model name="n"><pose>{words(B)}</pose>{link("b")}</model>'
        f'<frame name="x"><pose relative_to="n::__model__">{words(C)}</pose></frame>',
        (B, C),
    ),
    "of a model that is placed by a frame": (
        f'<model name="n" placement_frame="b"><pose>{words(B)}</pose>{link("b", "", words(C))}</model>'
        '<frame name="x" attached_to="n::b"/>',
        (B,),
    ),
    "of models in models": (
        f'<model name="n"><pose>{words(B)}</pose><model name="o"><pose>{words(C)}</pose>{link("b", "", words(A))}'
        '</model></model><frame name="x" attached_to="n::o::b"/>',
        (B, C, A),
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_poses_are_relative_to_frames(name):
    body, expected = FRAMES[name]
    robot = quiet(jdyn.load, model(link("a", "", words(A)) + body), floating_base=False)
    R, p = pose_of(robot, "x")
    np.testing.assert_allclose((*R.ravel(), *p), np.concatenate([placed(*expected)[0].ravel(), placed(*expected)[1]]))


def test_a_model_may_be_placed_by_one_of_its_frames():
    """The model's frame is where its frame `b` is at the given pose."""
    text = model(
        f"<pose>{words(A)}</pose>{link('b', '', words(B))}{link('c', '', words(C))}",
        'name="m" placement_frame="b"',
    )
    robot = quiet(jdyn.load, text, floating_base=False)
    (Rb, pb), (Rc, pc) = placed(B), placed(C)
    R, p = pose_of(robot, "c")
    at_b = placed(A)
    np.testing.assert_allclose(R, at_b[0] @ Rb.T @ Rc, atol=ATOL)
    np.testing.assert_allclose(p, at_b[1] + at_b[0] @ Rb.T @ (pc - pb), atol=ATOL)


@pytest.mark.parametrize(
    ("attributes", "numbers"),
    [
        ('degrees="true"', words([1, 2, 3, *np.rad2deg(B[3:]).tolist()])),
        (
            'rotation_format="quat_xyzw"',
            words([1, 2, 3, *(2 * pin.Quaternion(rotation(*B[3:])).coeffs()).tolist()]),
        ),
        ('rotation_format="euler_rpy" degrees="0"', words(B)),
    ],
)
def test_rotations_have_several_forms(attributes, numbers):
    text = model(f'<link name="a"><pose {attributes}>{numbers}</pose>{inertial()}</link>')
    R, p = pose_of(jdyn.load(text, floating_base=False), "a")
    np.testing.assert_allclose(R, rotation(*B[3:]), atol=ATOL)
    np.testing.assert_allclose(p, B[:3], atol=ATOL)


AXES = {
    "in the joint's frame": ("1.9", "<xyz>0 0.6 0.8</xyz>", (A, C)),
    "in the model's frame": ("1.9", '<xyz expressed_in="__model__">0 0.6 0.8</xyz>', ()),
    "in a link's frame": ("1.9", '<xyz expressed_in="a">0 0.6 0.8</xyz>', (A,)),
    "in a frame's": ("1.9", '<xyz expressed_in="y">0 0.6 0.8</xyz>', (B,)),
    "before 1.5": ("1.4", "<xyz>0 0.6 0.8</xyz>", ()),
    "in 1.6": ("1.6", "<xyz>0 0.6 0.8</xyz>", (A, C)),
    "in 1.6, of the model": ("1.6", "<xyz>0 0.6 0.8</xyz><use_parent_model_frame>1</use_parent_model_frame>", ()),
}


@pytest.mark.parametrize("name", AXES)
def test_axes_are_expressed_in_frames(name):
    """The point at the joint's origin stays, and others turn about it."""
    version, axis, frame = AXES[name]
    text = model(
        link("a", "", words(A)) + f'<frame name="y"><pose>{words(B)}</pose></frame>'
        f'<joint name="j" type="revolute"><parent>world</parent><child>a</child><pose>{words(C)}</pose>'
        f"<axis>{axis}</axis></joint>",
        version=version,
    )
    robot = jdyn.load(text)
    R, p = pose_of(robot, "a", [0.7])
    turn = pin.exp3(0.7 * (placed(*frame)[0] @ [0, 0.6, 0.8]))
    (Ra, pa), center = placed(A), placed(A, C)[1]
    np.testing.assert_allclose(R, turn @ Ra, atol=ATOL)
    np.testing.assert_allclose(p, center + turn @ (pa - center), atol=ATOL)


# Joints, against MuJoCo.

BODY = '<inertial pos="0.1 0.2 -0.3" mass="1.0" diaginertia="0.1 0.2 0.25"/>'
SDF_BODY = inertial(1.0, "0.1 0.2 -0.3 0 0 0")


@pytest.mark.parametrize("kind", ["universal", "revolute2"])
def test_joints_with_two_axes_are_two_hinges_of_mujoco(kind):
    axes = "<axis><xyz>0 1 0</xyz><dynamics><damping>0.3</damping><spring_stiffness>2</spring_stiffness>"
    axes += "<spring_reference>0.4</spring_reference></dynamics><limit><lower>-1</lower><upper>1</upper></limit></axis>"
    text = model(
        link("a", SDF_BODY, "0 0 1 0 0 0")
        + joint(
            "j", "world", "a", f"<pose>0 0 0.5 0 0 0</pose>{axes}<axis2><xyz>0.6 0 0.8</xyz></axis2>", kind, axis=""
        )
    )
    robot = jdyn.load(text)
    assert robot.topology.kinds == (Universal,)
    assert robot.limits.lower.tolist() == [-1, -np.inf]
    q, v = np.array([0.4, -0.9]), np.array([1.0, -2.0])
    mjcf = f"""<mujoco><option><flag constraint="disable"/></option><worldbody><body pos="0 0 1">
    <joint axis="0 1 0" pos="0 0 0.5" damping="0.3" stiffness="2" springref="22.918311805232928"/>
    <joint axis="0.6 0 0.8" pos="0 0 0.5"/>{BODY}</body></worldbody></mujoco>"""
    expected = accelerations_of_mujoco(mjcf, q, v)
    np.testing.assert_allclose(jdyn.forward_dynamics(robot, q, v, jnp.zeros(2)), expected, atol=1e-10)


def test_ball_joints_are_those_of_mujoco():
    robot = jdyn.load(model(link("a", SDF_BODY) + joint("j", "world", "a", "", "ball", axis="")))
    assert robot.topology.kinds == (Ball,)
    q, v = np.array([0.5, 0.5, -0.1, 0.7]), np.array([1.0, -2.0, 0.5])
    mjcf = f"<mujoco><worldbody><body><joint type='ball'/>{BODY}</body></worldbody></mujoco>"
    expected = accelerations_of_mujoco(mjcf, q / np.linalg.norm(q), v)
    found = jdyn.forward_dynamics(robot, q / np.linalg.norm(q), v, jnp.zeros(3))
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize(
    "pitch",
    ["<screw_thread_pitch>0.5</screw_thread_pitch>", f"<thread_pitch>{-4 * np.pi!r}</thread_pitch>"],
)
def test_screws_advance_by_their_pitch(pitch):
    """Half a metre a turn, along the axis of a right-handed thread."""
    robot = jdyn.load(model(link("a") + joint("j", "world", "a", pitch, "screw")))
    assert robot.topology.kinds == (Helical,)
    R, p = pose_of(robot, "a", [np.pi / 2])
    np.testing.assert_allclose(p, [0, 0, 0.125], atol=ATOL)
    np.testing.assert_allclose(R, rotation(0, 0, np.pi / 2), atol=ATOL)


def test_one_joint_mimics_another():
    follows = '<axis><xyz>0 0 1</xyz><mimic joint="j"><multiplier>2</multiplier><offset>0.3</offset>'
    follows += "<reference>0.1</reference></mimic></axis>"
    robot = jdyn.load(
        model(link("a") + link("b") + joint("j", "world", "a") + joint("k", "a", "b", follows, "revolute", axis=""))
    )
    np.testing.assert_allclose(robot.expand(jnp.array([0.5])), [0.5, 2 * (0.5 - 0.1) + 0.3])


def test_limits_have_several_words_for_none():
    none = "<limit><lower>-1e16</lower><upper>inf</upper><effort>-1</effort><velocity>-1</velocity></limit>"
    axis = f"<axis><xyz>0 0 1</xyz>{none}</axis>"
    robot = jdyn.load(model(link("a") + joint("j", "world", "a", axis, axis="")))
    limits = robot.limits
    assert [limits.lower[0], limits.upper[0]] == [-np.inf, np.inf]
    assert [limits.effort[0], limits.velocity[0]] == [np.inf, np.inf]


def test_joints_may_hold_frames():
    """The joint's pose is relative to the frame that is its child."""
    text = model(
        link("base") + link("a", "", words(A)) + f'<frame name="f" attached_to="a"><pose>{words(B)}</pose></frame>'
        + joint("j", "world", "base", "", "fixed", axis="") + joint("k", "base", "f", f"<pose>{words(C)}</pose>")
    )  # fmt: skip
    robot = jdyn.load(text)
    R, p = pose_of(robot, "a/k", [0.0])
    np.testing.assert_allclose(R, placed(A)[0], atol=ATOL)
    np.testing.assert_allclose(p, placed(A, B, C)[1], atol=ATOL)


# Bases and worlds.


def test_links_that_no_joint_holds_are_free():
    text = model(link("a", SDF_BODY, words(B)))
    robot = jdyn.load(text)
    assert robot.topology.kinds == (Free,)
    q = jdyn.load_configurations(robot, text)["qpos0"]
    R, p = pose_of(robot, "a", q)
    np.testing.assert_allclose(R, rotation(*B[3:]), atol=ATOL)
    np.testing.assert_allclose(p, B[:3], atol=ATOL)
    v = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    mjcf = f"<mujoco><worldbody><body name='a'><freejoint name='a'/>{BODY}</body></worldbody></mujoco>"
    between = jdyn.interop.MujocoMap(robot, mujoco.MjModel.from_xml_string(mjcf))
    theirs = accelerations_of_mujoco(mjcf, between.q_to_peer(q), between.v_to_peer(q, v))
    ours = jdyn.forward_dynamics(robot, q, v, jnp.zeros(6))
    np.testing.assert_allclose(between.a_to_peer(q, v, np.asarray(ours)), theirs, atol=1e-10)
    assert jdyn.load(text, floating_base=False).nv == 0
    np.testing.assert_allclose(jdyn.load_system(text).state().q, q, atol=ATOL)


def test_a_base_that_is_fixed_to_the_world_may_be_freed():
    text = model(link("a") + link("b") + joint("r", "world", "a", "", "fixed", axis="") + joint("j", "a", "b"))
    assert jdyn.load(text).nv == 1
    assert jdyn.load(text, floating_base=True).topology.kinds == (Free, Revolute)
    with pytest.raises(ModelError, match="floating_base=True needs one link that is fixed to the world; got none"):
        jdyn.load(model(link("a") + joint("j", "world", "a")), floating_base=True)


BALL = '<collision name="c"><geometry><sphere><radius>0.1</radius></sphere></geometry></collision>'
FLOOR = '<collision name="c"><geometry><plane><normal>0 0 1</normal><size>1 1</size></plane></geometry></collision>'
WORLD = sdf(
    '<world name="room"><gravity>0 0 -5</gravity><physics type="ode"/>'
    f'<model name="floor"><static>true</static><link name="plane">{FLOOR}</link></model>'
    f'<model name="ball"><pose>3 0 0.1 0 0 0</pose>{link("body", BALL)}</model>'
    f'<model name="pair"><pose>0 0 1 0 0 0</pose>{link("a", BALL)}{link("b", BALL)}</model></world>'
)


def test_a_world_has_models_that_touch():
    system = quiet(jdyn.load_system, WORLD)
    assert system.model.body_names == ("ball::body", "pair::a", "pair::b")
    assert system.model.name == "room"
    np.testing.assert_allclose(system.model.gravity, [0, 0, -5])
    pairs = {frozenset(pair) for pair in jdyn.contact.collision_pairs(system.model)}
    # Links of one model do not touch each other, and the floor is the world's.
    assert len(pairs) == 5
    again = quiet(jdyn.load_system, WORLD.replace('"pair">', '"pair"><self_collide>true</self_collide>'))
    assert len(jdyn.contact.collision_pairs(again.model)) == 6


def test_gravity_acts_on_links_unless_the_file_says_otherwise():
    text = model(link("a", SDF_BODY + "<gravity>false</gravity>"))
    with pytest.warns(ModelWarning, match="weight that <gravity> takes from links"):
        robot = jdyn.load(text)
    system = jdyn.load_system(text)
    (carried,) = system.elements
    weight = jdyn.gravity_forces(robot, robot.neutral())
    found = carried.generalized(robot, 0.0, robot.neutral(), jnp.zeros(6))
    np.testing.assert_allclose(found, weight, atol=ATOL)
    assert np.linalg.norm(weight) > 9


SOLIDS = {
    "<box><size>0.2 0.3 0.4</size></box>": ("box", "0.1 0.15 0.2"),
    "<sphere><radius>0.2</radius></sphere>": ("sphere", "0.2"),
    "<cylinder><radius>0.2</radius><length>0.5</length></cylinder>": ("cylinder", "0.2 0.25"),
    "<capsule><radius>0.2</radius><length>0.5</length></capsule>": ("capsule", "0.2 0.25"),
    "<ellipsoid><radii>0.1 0.2 0.3</radii></ellipsoid>": ("ellipsoid", "0.1 0.2 0.3"),
}


def test_automatic_inertia_is_that_of_solid_shapes_in_mujoco():
    """All shapes on one link; one has a density of its own, and then the link a mass."""
    collisions, geoms = "", ""
    for number, (solid, (kind, size)) in enumerate(SOLIDS.items()):
        at, density = f"{0.1 * number} 0.2 {-0.3 * number}", 2000 if number == 1 else 500
        collisions += f'<collision name="c{number}"><pose degrees="true">{at} {10 * number} 20 0</pose>'
        collisions += "<density>2000</density>" if number == 1 else ""
        collisions += f"<geometry>{solid}</geometry></collision>"
        # Turned about x and then y of the world.
        x, y = np.deg2rad([10.0 * number, 20.0])
        w, i, j, k = np.roll(pin.Quaternion(rotation(x, y, 0)).coeffs(), 1)
        geoms += f'<geom type="{kind}" size="{size}" pos="{at}" quat="{w} {i} {j} {k}" density="{density}"/>'
    m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body><freejoint/>{geoms}</body></worldbody></mujoco>")
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, m.body_iquat[1])
    moments = axes.reshape(3, 3) * m.body_inertia[1] @ axes.reshape(3, 3).T
    com = m.body_ipos[1]
    for mass in ("", "<mass>3</mass>"):
        inertia = f'<inertial auto="true"><density>500</density>{mass}</inertial>'
        robot = quiet(jdyn.load, model(link("a", inertia + collisions)))
        factor = 3 / m.body_mass[1] if mass else 1.0
        expected = jdyn.SpatialInertia.from_com(
            jnp.asarray(factor * m.body_mass[1]), jnp.asarray(com), jnp.asarray(factor * moments)
        )
        for found, other in zip(
            (robot.inertias.mass, robot.inertias.first_moment, robot.inertias.rotational),
            (expected.mass, expected.first_moment, expected.rotational),
            strict=True,
        ):
            np.testing.assert_allclose(found[0], other, rtol=1e-9, atol=1e-9)


def test_friction_bits_and_colours_of_shapes():
    surface = "<surface><friction><ode><mu>0.3</mu><mu2>0.3</mu2></ode></friction>"
    surface += "<contact><collide_bitmask>6</collide_bitmask></contact></surface>"
    painted = "<material><diffuse>0.1 0.2 0.3 0.5</diffuse></material>"
    body = (
        f'<collision name="c"><pose>0 0 1 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry>{surface}'
        "</collision>"
        f'<visual name="v"><geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry>{painted}</visual>'
        '<visual name="w"><geometry><capsule><radius>1</radius><length>2</length></capsule></geometry></visual>'
        '<collision name="d"><geometry><plane><normal>1 0 0</normal></plane></geometry></collision>'
    )
    robot = jdyn.load(model(link("a", body)))
    box, ellipsoid, capsule, plane = robot.shapes.entries
    assert (box.kind, box.role, box.contype, box.conaffinity, box.name) == ("box", "collision", 6, 6, "c")
    assert ellipsoid.color == (0.1, 0.2, 0.3, 0.5)
    assert (ellipsoid.kind, capsule.kind, plane.kind) == ("ellipsoid", "capsule", "plane")
    np.testing.assert_allclose(robot.shapes.friction[0], [0.3, 0, 0])
    np.testing.assert_allclose(robot.shapes.sizes, [[1, 2, 3], [1, 2, 3], [1, 2, 0], [0, 0, 0]])
    np.testing.assert_allclose(robot.shapes.placements.translation[0], [0, 0, 1])
    np.testing.assert_allclose(robot.shapes.placements.rotation[3] @ np.array([0.0, 0, 1]), [1, 0, 0], atol=ATOL)


# Closed loops.


def four_bar(kind="revolute", axis="0 1 0"):
    """A coupler that hangs on two equal cranks of length 1, whose angles are equal."""
    crank = inertial(2.0, "0 0 -0.5 0 0 0", (0.3, 0.3, 0.1))
    return model(
        link("left", crank) + link("right", crank, "2 0 0 0 0 0")
        + link("coupler", inertial(3.0, "1 0 0 0 0 0"), "0 0 -1 0 0 0")
        + joint("a", "world", "left", axis="0 1 0") + joint("b", "world", "right", axis="0 1 0")
        + joint("c", "left", "coupler", axis="0 1 0")
        + joint("d", "right", "coupler", "<pose>2 0 0 0 0 0</pose>", kind, axis=axis)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "axis", "constraint"),
    [("revolute", "0 1 0", jdyn.constraints.Hinge), ("ball", "", jdyn.constraints.Connect)],
)
def test_loops_are_closed_by_constraints(kind, axis, constraint):
    """Both cranks turn as one pendulum: (2 I + m L²) a = -(2 m_c L / 2 + m L) g sin(angle)."""
    text = four_bar(kind, axis=axis)
    with pytest.warns(ModelWarning, match="closed loops, which jdyn.load_constraints reads: 'd'"):
        robot = jdyn.load(text)
    assert robot.joint_names == ("a", "b", "c")
    (loop,) = jdyn.load_constraints(text)
    assert isinstance(loop, constraint)
    angle = 0.6
    q, zero = jnp.array([angle, angle, -angle]), jnp.zeros(3)
    assert max(constraint_distance(robot, [loop], q, zero)) < 1e-12
    found = jdyn.constrained_dynamics(robot, [loop], q, zero, zero).a
    inertia = 2 * (0.3 + 2 * 0.25) + 3
    expected = -(2 * 2 * 0.5 + 3) * 9.81 * np.sin(angle) / inertia
    np.testing.assert_allclose(found, [expected, expected, -expected], atol=1e-9)
    assert jdyn.load_system(text).constraints[0].frames == ("right", "coupler")


def test_a_walking_robot():
    """Cassie hangs on four rods, two of which end in ball joints at its feet."""
    folder = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
    file = folder / "cassie_description/robots/cassie_v2.sdf"
    system = quiet(jdyn.load_system, file, package_dirs=[folder])
    assert system.model.nb == 23
    assert [type(constraint).__name__ for constraint in system.constraints] == ["Connect"] * 4
    written = [float(element.text) for element in ElementTree.parse(file).iter("mass")]
    np.testing.assert_allclose(jnp.sum(system.model.inertias.mass), sum(written), rtol=1e-12)


def test_what_cannot_close_a_loop_is_in_the_tree():
    """The slide comes second, and yet it carries the link: the hinge closes the loop."""
    text = four_bar("prismatic")
    assert quiet(jdyn.load, text).joint_names == ("a", "b", "d")
    assert isinstance(quiet(jdyn.load_constraints, text)[0], jdyn.constraints.Hinge)
    with pytest.raises(ModelError, match=r"'d' .* closes a loop with joint 'c'"):
        jdyn.load(text.replace('"c" type="revolute"', '"c" type="universal"'))


def test_a_ring_without_a_base_is_free():
    ring = "".join(link(name) for name in "abc") + joint("i", "a", "b") + joint("j", "b", "c") + joint("k", "c", "a")
    robot = quiet(jdyn.load, model(ring))
    assert robot.topology.kinds == (Free, Revolute, Revolute)
    (closing,) = quiet(jdyn.load_constraints, model(ring))
    assert closing.frames == ("c", "a")
    welded = ring + joint("w", "b", "a", "", "fixed", axis="")
    assert [type(c).__name__ for c in quiet(jdyn.load_constraints, model(welded))] == ["Hinge", "Weld"]


# Included models.


def folders(tmp_path):
    """A folder of models: an arm by `model.config`, and one that includes it."""
    arm = tmp_path / "models" / "arm"
    arm.mkdir(parents=True)
    (arm / "model.config").write_text('<model><sdf version="1.5">old.sdf</sdf><sdf version="1.9">arm.sdf</sdf></model>')
    (arm / "hand.stl").touch()
    mesh = "<visual name='v'><geometry><mesh><uri>model://arm/hand.stl</uri></mesh></geometry></visual>"
    mesh += "<visual name='w'><geometry><mesh><uri>hand.stl</uri><scale>2 2 2</scale></mesh></geometry></visual>"
    (arm / "arm.sdf").write_text(
        model(f"<pose>{words(C)}</pose>" + link("a", "", words(A)) + link("b", mesh, words(B)) + joint("j", "a", "b"))
    )
    return tmp_path / "models"


def including(more="", attributes="", around=""):
    return model(f"<include{attributes}><uri>model://arm</uri>{more}</include>{around}", 'name="robot"')


def test_models_are_included_from_named_folders(tmp_path):
    models = folders(tmp_path)
    robot = jdyn.load(including(), package_dirs=[models])
    assert robot.body_names == ("m::a", "m::b")
    assert robot.joint_names == ("m::a", "m::j")
    text = including(f"<pose>{words(B)}</pose><name>left</name>")
    q = jdyn.load_configurations(jdyn.load(text, package_dirs=[models]), text, package_dirs=[models])["qpos0"]
    placed_arm = jdyn.load(text, package_dirs=[models])
    np.testing.assert_allclose(pose_of(placed_arm, "left::a", q)[0], placed(B, A)[0], atol=ATOL)
    assert [shape.path for shape in robot.shapes.entries] == [str(models / "arm" / "hand.stl")] * 2
    file = tmp_path / "robot.sdf"
    file.write_text(including().replace("model://arm", "models/arm"))
    assert jdyn.load(file).body_names == ("m::a", "m::b")
    file.write_text(including().replace("model://arm", "models/arm/arm.sdf"))
    assert jdyn.load(file).body_names == ("m::a", "m::b")


def test_worlds_include_models_and_join_them(tmp_path):
    text = sdf(
        f'<world name="room"><frame name="shelf"><pose>{words(A)}</pose></frame>'
        f'<include><uri>model://arm</uri><name>left</name><pose relative_to="shelf">{words(B)}</pose></include>'
        '<include><uri>model://arm</uri><name>right</name></include>'
        + joint("bolt", "shelf", "left::a", "", "fixed", axis="") + joint("bridge", "left::b", "right::a")
        + "</world>"
    )  # fmt: skip
    robot = jdyn.load(text, package_dirs=[folders(tmp_path)])
    assert robot.joint_names == ("left::j", "bridge", "right::j")
    assert robot.topology.kinds == (Revolute,) * 3
    R, p = pose_of(robot, "left::a", jnp.zeros(3))
    np.testing.assert_allclose((*R.ravel(), *p), (*placed(A, B, A)[0].ravel(), *placed(A, B, A)[1]), atol=ATOL)


def test_what_an_include_says_counts(tmp_path):
    models = [folders(tmp_path)]
    assert quiet(jdyn.load, including("<static>true</static>"), package_dirs=models, floating_base=False).nv == 0
    text = including(f"<pose>{words(B)}</pose><placement_frame>b</placement_frame>")
    fixed = jdyn.load(text, package_dirs=models, floating_base=False)
    R, p = pose_of(fixed, "m::b", jnp.zeros(1))
    np.testing.assert_allclose((*R.ravel(), *p), (*placed(B)[0].ravel(), *placed(B)[1]), atol=ATOL)
    # What the model itself says, where the include says nothing.
    R, p = pose_of(jdyn.load(including(), package_dirs=models, floating_base=False), "m::a", jnp.zeros(1))
    np.testing.assert_allclose(p, placed(C, A)[1], atol=ATOL)


def test_lights_are_no_models(tmp_path):
    """Worlds of Gazebo begin with its sun, which is no part of them."""
    models = folders(tmp_path)
    sun = "<include><uri>model://sun</uri></include>"
    world = sdf(f'<world name="w">{sun}<include><uri>model://arm</uri></include></world>')
    assert jdyn.load(world, package_dirs=[models]).body_names == ("m::a", "m::b")
    (models / "lamp").mkdir()
    (models / "lamp" / "model.sdf").write_text(sdf('<light name="lamp" type="point"/>'))
    assert jdyn.load(world.replace("//sun", "//lamp"), package_dirs=[models]).body_names == ("m::a", "m::b")


def test_merged_models_have_no_names_of_their_own(tmp_path):
    models = [folders(tmp_path)]
    around = link("c") + joint("k", "a", "c")
    robot = jdyn.load(including(attributes=' merge="true"', around=around), package_dirs=models, floating_base=False)
    assert robot.joint_names == ("j", "k")
    np.testing.assert_allclose(pose_of(robot, "a", jnp.zeros(2))[1], placed(C, A)[1], atol=ATOL)
    np.testing.assert_allclose(pose_of(robot, "c", jnp.zeros(2))[1], np.zeros(3), atol=ATOL)


def test_includes_stay_in_the_named_folders(tmp_path):
    models = folders(tmp_path)
    (tmp_path / "secret.sdf").write_text(model(link("a")))
    (models / "arm" / "leak.sdf").symlink_to(tmp_path / "secret.sdf")
    inside = tmp_path / "inside"
    inside.mkdir()
    file = inside / "robot.sdf"

    def refused(uri, message, **options):
        file.write_text(including().replace("model://arm", uri))
        with pytest.raises(ModelError, match=message):
            jdyn.load(file, **options)

    refused("../secret.sdf", "is in no folder")
    refused("/etc/passwd", "is in no folder")
    refused(f"file://{tmp_path}/secret.sdf", "is in no folder")
    refused("model://../secret.sdf", "is in no folder", package_dirs=[models])
    refused("model://arm/leak.sdf", "leads out of the folders", package_dirs=[models])
    refused("model://nowhere", "'model://nowhere' is in no folder", package_dirs=[models])
    refused("https://fuel.gazebosim.org/1.0/x/models/y", "is not a file; download", package_dirs=[models])
    refused("robot.sdf", "includes itself")
    (models / "arm" / "model.config").write_text('<model><sdf version="1.9">../../secret.sdf</sdf></model>')
    refused("model://arm", "which is not in this folder", package_dirs=[models])
    (models / "arm" / "model.config").unlink()
    refused("model://arm", "has no file 'model.sdf'", package_dirs=[models])


def test_models_that_include_many_models_are_refused(tmp_path):
    """Each of ten files includes the next one ten times."""
    for number in range(10):
        each = "".join(f"<include><uri>{number + 1}.sdf</uri><name>n{i}</name></include>" for i in range(10))
        (tmp_path / f"{number}.sdf").write_text(model(each))
    (tmp_path / "10.sdf").write_text(model(link("a")))
    start = time.process_time()
    with pytest.raises(ModelError, match="1000 included models"):
        jdyn.load(tmp_path / "0.sdf")
    assert time.process_time() - start < 20


def test_models_of_many_links_that_do_not_touch_are_refused():
    links = "".join(link(f"l{number}", BALL) for number in range(1001))
    with pytest.raises(ModelError, match="1001 links that do not touch each other, expected at most 1000"):
        jdyn.load(model(links))


# What is refused: the document and phrases that the message must have.

HINGE = joint("j", "world", "a")
LAUGHS = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(12))
REFUSED = {
    "entities": (f"<!DOCTYPE sdf [{LAUGHS}]><sdf version='1.9'>&a12;</sdf>", ["document type"]),
    "external entity": ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><sdf>&b;</sdf>', ["document type"]),
    "truncated": ("<sdf version='1.9'><model name='m'>", ["ends before the root element"]),
    "deep models": (
        sdf("".join(f'<model name="m{i}">' for i in range(200)) + "</model>" * 200),
        ["nested more than 50 deep"],
    ),
    "nothing": (sdf(""), ["0 <world> and 0 <model>"]),
    "two worlds": (sdf('<world name="a"/><world name="b"/>'), ["2 <world>"]),
    "no version": (model(link("a")).replace('<sdf version="1.9">', "<sdf>"), ["version is missing"]),
    "old version": (model(link("a"), version="1.2"), ["version is '1.2', expected 1.4 to 1.12"]),
    "version in words": (model(link("a"), version="new"), ["version is 'new'"]),
    "no links": (model(""), ["there is no link"]),
    "no name": (model(link("")), ["<link> (line 4) has no name"]),
    "model without name": (model(link("a"), ""), ["<model> (line 3) has no name"]),
    "a reserved name": (model(link("world")), ["'world' has a meaning of its own"]),
    "a name twice": (model(link("a") + link("a")), ["link 'a' (line 5)", "taken by link 'a' (line 4)"]),
    "a joint with a link's name": (model(link("a") + joint("a", "world", "a")), ["taken by link 'a'"]),
    "no parent": (
        model(link("a") + HINGE.replace("<parent>world</parent>", "")),
        ["joint 'j' (line 5)", "no <parent>"],
    ),
    "unknown parent": (model(link("a") + joint("j", "b", "a")), ["joint 'j'", "parent 'b' does not exist"]),
    "unknown child": (model(link("a") + joint("j", "a", "b")), ["joint 'j'", "child 'b' does not exist"]),
    "the world as child": (model(link("a") + joint("j", "a", "world")), ["its child is the world"]),
    "both ends the same": (model(link("a") + joint("j", "a", "a")), ["both link 'a'"]),
    "no type": (model(link("a") + HINGE.replace(' type="revolute"', "")), ["joint 'j'", "type is missing"]),
    "unknown type": (model(link("a") + joint("j", "world", "a", kind="floating")), ["type is 'floating'"]),
    "unknown frame of a pose": (model(link("a", "", "", "nowhere")), ["link 'a'", "'nowhere'", "does not exist"]),
    "unknown carrier": (model(link("a") + '<frame name="f" attached_to="b"/>'), ["frame 'f'", "'b'"]),
    "unknown frame of an axis": (
        model(link("a") + HINGE.replace("<xyz>", '<xyz expressed_in="b">')),
        ["joint 'j'", "expressed_in is 'b'"],
    ),
    "unknown frame of a placement": (model(link("a"), 'name="m" placement_frame="b"'), ["placement_frame is 'b'"]),
    "unknown canonical link": (
        model(link("a") + '<frame name="f"/>', 'name="m" canonical_link="b"'),
        ["canonical_link is 'b'"],
    ),
    "poses in a circle": (
        model(link("a", "", "", "b") + link("b", "", "", "a")),
        ["link 'a'", "relative to itself"],
    ),
    "carriers in a circle": (
        model(link("a") + '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'),
        ["frame 'f'", "attached to itself"],
    ),
    "short pose": (model(link("a", "", "1 2 3")), ["link 'a'", "<pose> is '1 2 3', expected 6 numbers"]),
    "infinite pose": (model(link("a", "", "inf 0 0 0 0 0")), ["expected 6 numbers"]),
    "unknown rotation": (
        model(link("a", "", "0 0 0 0 0 0").replace("<pose", '<pose rotation_format="axis"')),
        ["rotation_format is 'axis'"],
    ),
    "zero quaternion": (
        model(link("a", "", "0 0 0 0 0 0 0").replace("<pose", '<pose rotation_format="quat_xyzw"')),
        ["quaternion of <pose> is zero"],
    ),
    "degrees of a sort": (
        model(link("a", "", "0 0 0 0 0 0").replace("<pose", '<pose degrees="maybe"')),
        ["degrees is 'maybe'"],
    ),
    "mass in words": (model(link("a", inertial("heavy"))), ["link 'a'", "<mass> is 'heavy', expected a number"]),
    "negative mass": (model(link("a", inertial(-1))), ["link 'a'", "mass is -1"]),
    "automatic inertia of nothing": (
        model(link("a", '<inertial auto="true"/>')),
        ["link 'a'", "<inertial auto> needs collisions"],
    ),
    "automatic inertia of a plane": (
        model(link("a", '<inertial auto="true"/>' + FLOOR)),
        ["collision 'c'", "<inertial auto> needs a box, sphere"],
    ),
    "no axis": (model(link("a") + joint("j", "world", "a", axis="")), ["joint 'j'", "a revolute joint needs an axis"]),
    "one axis of two": (
        model(link("a") + joint("j", "world", "a", kind="universal")),
        ["joint 'j'", "a universal joint needs two axes"],
    ),
    "a flag of a sort": (model("<static>perhaps</static>" + link("a")), ["<static> is 'perhaps'", "true or false"]),
    "zero axis": (model(link("a") + joint("j", "world", "a", axis="0 0 0")), ["joint 'j'", "axis is zero"]),
    "crossed limits": (
        model(
            link("a")
            + joint("j", "world", "a").replace("</xyz>", "</xyz><limit><lower>2</lower><upper>1</upper></limit>")
        ),
        ["joint 'j'", "above the upper limit"],
    ),
    "parallel axes": (
        model(link("a") + joint("j", "world", "a", "<axis2><xyz>0 0 2</xyz></axis2>", "universal")),
        ["axis and axis2 are parallel"],
    ),
    "no thread": (
        model(link("a") + joint("j", "world", "a", "<thread_pitch>0</thread_pitch>", "screw")),
        ["<thread_pitch> is 0"],
    ),
    "two masses": (model(link("a", inertial().replace("<mass>", "<mass>1</mass><mass>"))), ["2 <mass>"]),
    "mimic of nobody": (
        model(link("a") + HINGE.replace("</xyz>", '</xyz><mimic joint="k"/>')),
        ["mimics joint 'k', which does not exist"],
    ),
    "two shapes": (
        model(link("a", BALL.replace("</geometry>", "<box><size>1 1 1</size></box></geometry>"))),
        ["collision 'c'", "2 shapes"],
    ),
    "negative radius": (model(link("a", BALL.replace("0.1", "-0.1"))), ["collision 'c'", "negative size"]),
    "mesh without file": (
        model(link("a", '<visual name="v"><geometry><mesh/></geometry></visual>')),
        ["visual 'v'", "<mesh> has no <uri>"],
    ),
    "frame of a shape": (
        model(link("a", BALL.replace("<geometry>", '<pose relative_to="b"/><geometry>', 1))),
        ["collision 'c'", "'b', which does not exist"],
    ),
    "bits that are none": (
        model(
            link(
                "a",
                BALL.replace(
                    "</collision>",
                    "<surface><contact><collide_bitmask>-1</collide_bitmask></contact></surface></collision>",
                ),
            )
        ),
        ["collision 'c'", "<collide_bitmask> is -1"],
    ),
    "include without address": (model(link("a") + "<include/>"), ["<include> (line 5) has no <uri>"]),
}

# What loads with one warning: the document and phrases that the warning must have.
WARNED = {
    "no inertial": (model('<link name="a"/>'), ["no <inertial>, which means 1 kg", "'a'"]),
    "version from the future": (model(link("a"), version="2.0"), ["read as 1.12, unknown SDF version: '2.0'"]),
    "gearbox": (
        model(link("a") + link("b") + joint("j", "a", "b") + joint("g", "a", "b", kind="gearbox")),
        ["no such joint in jdyn: gearbox 'g'"],
    ),
    "old frame of an axis": (
        model(link("a") + HINGE.replace("</xyz>", "</xyz><use_parent_model_frame>1</use_parent_model_frame>")),
        ["of versions before 1.7: <use_parent_model_frame> of 'j'"],
    ),
    "axis of a ball": (model(link("a") + joint("j", "world", "a", kind="ball")), ["ball joint: axes of 'j'"]),
    "limits of a continuous joint": (
        model(
            link("a")
            + joint("j", "world", "a", kind="continuous").replace("</xyz>", "</xyz><limit><lower>0</lower></limit>")
        ),
        ["continuous joint: <lower> and <upper> of 'j'"],
    ),
    "joint of a static model": (
        model("<static>1</static>" + link("a") + link("b") + joint("j", "a", "b")),
        ["joints of static models: 'j'"],
    ),
    "unknown element": (model(link("a", "<colour/>")), ["unknown to jdyn: <colour> in <link>"]),
    "unknown attribute": (model(link("a") + HINGE.replace("<xyz>", '<xyz of="b">')), ["attribute of of <xyz>"]),
    "foreign namespace": (model(link("a") + "<drake:bushing/>"), ["unknown to jdyn: <bushing> in <model>"]),
    "sensor": (model(link("a", '<sensor name="s" type="imu"/>')), ["ignored: <sensor> of link 'a' (line 4)"]),
    "state of a world": (
        sdf(f'<world name="w"><model name="m">{link("a")}</model><state world_name="w"/></world>'),
        ["ignored: <state> of world 'w'"],
    ),
    "plugin": (model(link("a") + '<plugin name="p" filename="p.so"/>'), ["ignored: <plugin> of model 'm'"]),
    "height map": (
        model(link("a", '<visual name="v"><geometry><heightmap/></geometry></visual>')),
        ["<heightmap>", "without a shape: <visual> of link 'a'"],
    ),
    "old frame of a pose": (
        model(link("a", "", "0 0 0 0 0 0").replace("<pose", '<pose frame="b"'), version="1.6"),
        ["attribute frame of <pose>"],
    ),
    "second friction": (
        model(
            link(
                "a",
                BALL.replace(
                    "</collision>",
                    "<surface><friction><ode><mu>1</mu><mu2>2</mu2></ode></friction></surface></collision>",
                ),
            )
        ),
        ["a second coefficient of friction"],
    ),
    "colour of a sort": (
        model(
            link("a", BALL.replace("collision", "visual").replace("</visual>", "<material><diffuse>red</diffuse>"
            "</material></visual>"))
        ),
        ["colours that are not four numbers from 0 to 1: of link 'a'"],
    ),
    "mesh elsewhere": (
        model(link("a", '<visual name="v"><geometry><mesh><uri>/etc/passwd</uri></mesh></geometry></visual>')),
        ["outside the folder", "/etc/passwd"],
    ),
    "mesh from the network": (
        model(link("a", '<visual name="v"><geometry><mesh><uri>http://a/b.stl</uri></mesh></geometry></visual>')),
        ["outside the folder", "http://a/b.stl"],
    ),
    "mesh of an unknown model": (
        model(link("a", '<visual name="v"><geometry><mesh><uri>model://x/b.stl</uri></mesh></geometry></visual>')),
        ["in no folder of package_dirs: 'model://x/b.stl'"],
    ),
    "limits of a loop": (
        four_bar().replace("</axis></joint>\n</model>", "<limit><lower>0</lower></limit></axis></joint>\n</model>"),
        ["of joints that close loops: <limit> and <dynamics> of 'd'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name):
    document, phrases = REFUSED[name]
    with pytest.raises(ModelError) as caught:
        quiet(jdyn.load, document)
    message = str(caught.value)
    assert message.startswith("SDF text") or message.startswith("URDF, SDF or MuJoCo text")
    assert [phrase for phrase in phrases if phrase not in message] == [], message
    assert len(message) < 2000


@pytest.mark.parametrize("name", WARNED)
def test_is_named_in_one_warning(name, tmp_path):
    document, phrases = WARNED[name]
    file = pathlib.Path(tmp_path, "robot.sdf")
    file.write_text(document)
    with pytest.warns(ModelWarning) as caught:
        jdyn.load(file)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(str(file))
    assert [phrase for phrase in phrases if phrase not in message] == [], message
