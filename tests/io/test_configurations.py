"""Configurations that files name, against MuJoCo's and Pinocchio's."""

import pathlib

import gymnasium
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.interop import MujocoMap, PinocchioMap
from jdyn.model import ModelError, ModelWarning
from tests.reference.example_robots import FOLDER

pytestmark = [pytest.mark.fast_compile, pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")]

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"

INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>'
KEYFRAMES = """<keyframe>
    <key name="bent" qpos="1 2 3 0 0 2 0 .6 -.2 0 3 0 4"/>
    <key time="1"/>
    <key qpos="1 2 3 1 0 0 0 .5 0 1 0 0 0"/>
  </keyframe>"""
WALKER = f"""
<mujoco model="walker">
  <compiler angle="radian"/>
  <worldbody>
    <body name="torso" pos=".1 .2 .3" euler=".1 .2 .3">
      <joint name="root" type="free"/>{INERTIAL}
      <body name="leg" pos="0 .1 -.2" quat="1 .5 0 0">
        <joint name="hip" axis="0 1 .2" pos="0 0 .1" ref=".3"/>
        <joint name="slider" type="slide" axis="1 0 0" ref="-.1"/>{INERTIAL}
        <body name="foot" pos="0 0 -.3">
          <joint name="ankle" type="ball"/>{INERTIAL}
        </body>
      </body>
    </body>
  </worldbody>
  {KEYFRAMES}
</mujoco>
"""


def test_keyframes_and_the_pose_of_the_file_are_mujocos():
    model, m = jdyn.load(WALKER), mujoco.MjModel.from_xml_string(WALKER)
    found, peer = jdyn.load_configurations(model, WALKER), MujocoMap(model, m)
    assert [*found] == ["qpos0", "bent", "key1", "key2"]
    theirs = [m.qpos0, *(m.key_qpos[k] for k in range(3))]
    for q, expected in zip(found.values(), theirs, strict=True):
        assert q.dtype == model.dtype
        np.testing.assert_allclose(peer.q_to_peer(q), expected, atol=1e-15)


def test_other_bases_leave_joints_where_they_are():
    free, fixed = jdyn.load(WALKER), jdyn.load(WALKER, floating_base=False, dtype=jnp.float32)
    whole = jdyn.load_configurations(free, WALKER)
    for name, q in jdyn.load_configurations(fixed, WALKER).items():
        assert q.dtype == jnp.float32
        np.testing.assert_allclose(q, whole[name][7:], rtol=1e-7)


def test_a_base_that_is_freed_starts_where_the_file_bolts_it():
    bolted = WALKER.replace('<joint name="root" type="free"/>', "").replace(KEYFRAMES, "")
    model, m = jdyn.load(bolted, floating_base=True), mujoco.MjModel.from_xml_string(bolted)
    q, data = jdyn.load_configurations(model, bolted)["qpos0"], mujoco.MjData(m)
    mujoco.mj_kinematics(m, data)
    poses = jdyn.forward_kinematics(model, q)
    for name in ("torso", "foot"):
        body = model.body_names.index(name)
        np.testing.assert_allclose(poses.translation[body], data.body(name).xpos, atol=1e-15)
        np.testing.assert_allclose(poses.rotation[body].ravel(), data.body(name).xmat, atol=1e-15)


@pytest.mark.parametrize("file", ["hopper", "ant"])
def test_gymnasiums_robots_start_above_the_floor_in_which_neutral_ones_lie(file):
    model = jdyn.load(ASSETS / f"{file}.xml")
    ground = [pair for pair in jdyn.contact.collision_pairs(model) if "floor" in pair]
    m = mujoco.MjModel.from_xml_path(str(ASSETS / f"{file}.xml"))
    assert jdyn.contact.distances(model, model.neutral(), ground).distance.min() < -0.05
    start = jdyn.load_configurations(model, ASSETS / f"{file}.xml")["qpos0"]
    data, floor = mujoco.MjData(m), m.geom("floor").id
    mujoco.mj_kinematics(m, data)
    heights = [mujoco.mj_geomDistance(m, data, floor, geom, 10.0, None) for geom in range(m.ngeom) if geom != floor]
    np.testing.assert_allclose(jdyn.contact.distances(model, start, ground).distance.min(), min(heights), atol=1e-12)


@pytest.mark.parametrize(
    ("keyframe", "message"),
    [
        ('<key name="short" qpos="1 2"/>', r"line 15: .*'short' is '1 2', expected 13 finite numbers"),
        ('<key qpos="1 2 3 1 0 0 0 .5 0 1 0 0 nan"/>', r"'key0' is .*, expected 13 finite numbers"),
        ('<key qpos="1 2 3 1 0 0 0 .5 0 1 0 0 high"/>', r"'key0' is .*, expected 13 finite numbers"),
    ],
)
def test_keyframes_that_are_none_are_named(keyframe, message):
    text = WALKER.replace(KEYFRAMES, f"<keyframe>{keyframe}</keyframe>")
    model = jdyn.load(text)
    with pytest.raises(ModelError, match=message):
        jdyn.load_configurations(model, text)


def test_files_of_another_robot_are_refused():
    model = jdyn.load("double_pendulum")
    with pytest.raises(ValueError, match="'double_pendulum' has a joint 'joint1', which the file lacks"):
        jdyn.load_configurations(model, WALKER)
    assert jdyn.load_configurations(model, "double_pendulum") == {}


@pytest.mark.parametrize(
    ("urdf", "srdf", "floats"),
    [
        ("hyq_description/robots/hyq_no_sensors.urdf", "hyq_description/srdf/hyq.srdf", True),
        ("a1_description/urdf/a1.urdf", "a1_description/srdf/a1.srdf", True),
        ("talos_data/robots/talos_full_v2.urdf", "talos_data/srdf/talos.srdf", True),
        ("talos_data/robots/talos_full_v2.urdf", "talos_data/srdf/talos.srdf", False),
        ("kinova_description/robots/kinova.urdf", "kinova_description/srdf/kinova.srdf", False),
        ("xarm_description/urdf/xarm7.urdf", "xarm_description/srdf/xarm7.srdf", False),
    ],
)
def test_states_are_pinocchios_reference_configurations(urdf, srdf, floats):
    model = jdyn.load(FOLDER / urdf, floating_base=floats)
    root = [pin.JointModelFreeFlyer()] * floats
    peer = pin.buildModelFromUrdf(str(FOLDER / urdf), *root)
    pin.loadReferenceConfigurations(peer, str(FOLDER / srdf), False)
    theirs = {pair.key(): pair.data() for pair in peer.referenceConfigurations}
    found, to_peer = jdyn.load_configurations(model, FOLDER / srdf), PinocchioMap(model, peer).q_to_peer
    assert found and set(found) == set(theirs)
    for name, q in found.items():
        # Text of an angle has few digits, and so have quaternions of which Pinocchio does not make units.
        np.testing.assert_allclose(to_peer(q), theirs[name], atol=1e-6)
    assert any(np.abs(model.difference(model.neutral(), q)).max() > 0.1 for q in found.values())


STATES = """<robot name="r"><virtual_joint name="world_joint" type="floating" parent_frame="odom" child_link="base"/>
  <group_state name="up" group="left"><joint name="turn" value="1"/></group_state>
  <group_state name="up" group="right"><joint name="turn" value="2"/><joint name="gone" value="1"/></group_state>
  <group_state name="low"><joint name="world_joint" value="1 2 3 0 0 2 0"/><joint name="ball" value="0 0 1"/>
  </group_state></robot>"""


def on_a_base():
    builder = jdyn.Builder("r")
    builder.add_link("base", jdyn.Free(), joint_name="floating", mass=1.0, inertia=1.0)
    builder.add_link("arm", jdyn.Revolute((0, 0, 1)), joint_name="turn", parent="base", mass=1.0, inertia=1.0)
    builder.add_link("hand", jdyn.Ball(), joint_name="ball", parent="arm", mass=1.0, inertia=1.0)
    return builder.build()


def test_states_of_several_groups_and_virtual_joints_are_told_apart_and_what_is_ignored_is_named():
    with pytest.warns(ModelWarning, match=r"robot lacks: gone\n.*kind: ball \(3 for 4\)"):
        found = jdyn.load_configurations(on_a_base(), STATES)
    assert [*found] == ["left/up", "right/up", "low"]
    assert found["left/up"][7] == 1 and found["right/up"][7] == 2
    np.testing.assert_array_equal(found["low"], [1, 2, 3, 0, 0, 0, 1, 0, 1, 0, 0, 0])


def test_values_that_are_no_numbers_are_named():
    with pytest.raises(ModelError, match=r"\(line 2\): the value of 'turn' is 'half', expected numbers"):
        jdyn.load_configurations(on_a_base(), STATES.replace('value="1"', 'value="half"', 1))


def test_the_model_comes_first():
    with pytest.raises(ValueError, match=r"model: expected a jdyn\.Model"):
        jdyn.load_configurations(STATES, on_a_base())  # pyright: ignore[reportArgumentType]


def test_a_file_in_which_nothing_moves_is_a_system():
    system = jdyn.load_system('<mujoco><worldbody><geom type="plane" size="1 1 1"/></worldbody></mujoco>')
    assert system.model.nb == 0 and system.configurations["qpos0"].shape == (0,)
