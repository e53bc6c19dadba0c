"""`verify`: what it reports, what it refuses, and that it can find a difference."""

import sys

import jax
import jax.numpy as jnp
import pinocchio as pin
import pytest

import jdyn
from jdyn.interop import verify
from jdyn.interop.pinocchio_values import PinocchioValues
from jdyn.interop.values import DERIVATIVES, FUNCTIONS
from jdyn.interop.verification import compare

pytestmark = pytest.mark.fast_compile

URDF = """
<robot name="crooked">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz=".1 0 -.2" rpy=".1 .2 .3"/><mass value="2"/>
    <inertia ixx=".1" iyy=".2" izz=".15" ixy=".01" ixz="0" iyz=".02"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 .1 -.3"/><mass value="1"/>
    <inertia ixx=".05" iyy=".04" izz=".06" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 1" rpy="0 .4 0"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0 .1 -.4" rpy=".3 0 .2"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/>
    <dynamics damping=".7" friction=".1"/></joint>
</robot>
"""


@pytest.mark.slow
def test_is_a_table_of_every_function_which_is_printed_once(capsys):
    result = verify(URDF, samples=3)
    assert not capsys.readouterr().out and repr(result) == str(result)
    table = str(result).splitlines()
    assert table[0] == f"crooked against Pinocchio {pin.__version__}: 3 random states, float64"
    assert [line.split("  ")[0] for line in table[2:]] == [*FUNCTIONS, *DERIVATIVES]
    assert all(line.endswith("  ok") for line in table[2:])
    assert result.passed and set(result.errors) == {*FUNCTIONS, *DERIVATIVES}


@pytest.mark.slow
def test_a_single_joint_is_compared():
    """Pinocchio returns vectors in the place of matrices with one row or column."""
    assert verify("pendulum", samples=2).passed


@pytest.mark.slow
def test_says_what_is_not_compared():
    result = verify(URDF, "mujoco", samples=3)
    assert result.passed
    left_out = {"coriolis_matrix", "regressor", *DERIVATIVES}
    assert {x.function for x in result.comparisons} - set(result.errors) == left_out
    assert sum(line.endswith("not compared") for line in str(result).splitlines()) == len(left_out)


@pytest.mark.slow
def test_runs_in_float64_whatever_is_set():
    with jax.enable_x64(False):
        assert verify(URDF, samples=3).passed
        assert jnp.zeros(()).dtype == jnp.float32


@pytest.mark.slow
def test_models_are_compared_with_their_own_gravity_and_rotors():
    model = jdyn.load(URDF).with_gravity((1.0, 2, 3)).with_joint("elbow", armature=0.4)
    for peer in ("pinocchio", "mujoco"):
        result = verify(model, peer, samples=3)
        assert result.passed, str(result)


def test_several_joints_on_one_mujoco_body(tmp_path):
    """And springs, dampers, rotors, an offset angle, and a body that never moves."""
    path = tmp_path / "shoulder.xml"
    path.write_text(
        """<mujoco model="shoulder"><compiler angle="radian"/><worldbody>
        <body name="stand" pos="0 0 1"><inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/>
          <body name="arm" pos=".1 0 .2" quat="1 .3 0 .2">
            <joint name="yaw" axis="0 0 1" pos="0 .1 0" damping=".3" armature=".02"/>
            <joint name="pitch" axis="0 1 .1" pos=".1 0 0" ref=".4" stiffness="2" springref=".1"/>
            <inertial pos=".2 0 .1" mass="2" fullinertia=".1 .12 .15 .01 .02 0"/>
        </body></body></worldbody></mujoco>"""
    )
    result = verify(path, "mujoco", samples=3)
    assert result.passed, str(result)
    assert result.robot == "shoulder"


@pytest.mark.parametrize(
    "changes, unaffected",
    [
        ({"mass": 1.0 + 1e-6}, "forward_kinematics"),
        ({"com": (0.0, 0.1, -0.3 + 1e-6)}, "body_velocities"),
    ],
)
def test_a_changed_body_is_found(changes, unaffected):
    model = jdyn.load(URDF).with_body("lower", **changes)
    result = compare(PinocchioValues(pin, model, pin.buildModelFromXML(URDF)), "Pinocchio", samples=3)
    assert not result.passed
    assert {"inverse_dynamics", "mass_matrix", "forward_dynamics, ABA", DERIVATIVES[0]} <= {
        x.function for x in result.comparisons if not x.passed
    }
    assert result.errors[unaffected] < 1e-14
    assert "DIFFERS" in str(result)


def test_a_changed_placement_is_found():
    model = jdyn.load(URDF)
    placement = jdyn.pose((0, 0.1, -0.4 - 1e-6), (0.3, 0, 0.2))
    model = model.with_joint("elbow", placement=placement)
    result = compare(PinocchioValues(pin, model, pin.buildModelFromXML(URDF)), "Pinocchio", samples=3)
    assert not result.passed and result.errors["forward_kinematics"] > 1e-8


def test_unknown_peers_are_refused():
    with pytest.raises(ValueError, match="against: expected 'pinocchio' or 'mujoco', got 'drake'"):
        verify(URDF, "drake")  # type: ignore[arg-type]


def test_no_states_are_refused():
    with pytest.raises(ValueError, match="samples: expected at least 1, got 0"):
        verify(URDF, samples=0)


@pytest.mark.parametrize("module, package", [("pinocchio", "pin"), ("mujoco", "mujoco")])
def test_a_missing_peer_is_named(module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"pip install {package}$"):
        verify(URDF, module)


def test_descriptions_that_the_peer_cannot_read_are_named():
    with pytest.raises(ValueError, match="for a MuJoCo file use against='mujoco'"):
        verify("<mujoco><worldbody><body name='a'><joint/><geom size='1'/></body></worldbody></mujoco>")
    with pytest.raises(ValueError, match=r"cannot compare 'puma560' with MuJoCo: .*mass(.|\n)*link1"):
        verify("puma560", "mujoco")
