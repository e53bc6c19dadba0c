"""`load`: names, files and text, and what it says when it cannot."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.model import ModelError
from jdyn.robots import load

URDF = """<?xml version="1.0"?>
<!-- a comment, with a <mujoco> in it -->
<robot name="arm">
  <link name="base"/>
  <link name="rod">
    <inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
</robot>
"""
MJCF = """
<mujoco model="arm">
  <worldbody>
    <body name="rod"><joint name="hinge" axis="0 1 0"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize(("text", "suffix"), [(URDF, ".urdf"), (MJCF, ".xml")], ids=["URDF", "MJCF"])
def test_text_and_files_of_both_formats(text, suffix, tmp_path):
    path = tmp_path / f"arm{suffix}"
    path.write_text(text)
    for source in (text, str(path), path):
        model = load(source, dtype=jnp.float32)
        assert (model.name, model.joint_names, model.nv, model.dtype) == ("arm", ("hinge",), 1, jnp.float32)


def test_floating_base_reaches_the_reader():
    assert load(URDF, floating_base=True).nv == 7
    assert load(MJCF.replace('<joint name="hinge" axis="0 1 0"/>', ""), floating_base=True).nv == 6


def test_bundled_names():
    assert load("panda").nv == 7
    assert load("panda", floating_base=True).nv == 13
    assert load("quadruped").nv == 18
    assert load("quadruped", floating_base=False).nv == 12
    assert load("crane", floating_base=False, dtype=jnp.float32).dtype == jnp.float32


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no bundled robot is called 'puma561'; did you mean 'puma560'\?") as caught:
        load("puma561")
    assert "quadruped" in str(caught.value) and ".urdf" in str(caught.value) and ".xml" in str(caught.value)


def test_bolted_robots_do_not_float():
    with pytest.raises(ValueError, match=r"'puma560' is bolted to the world.*use one of chain, panda, quadruped"):
        load("puma560", floating_base=True)


def test_bundled_name_goes_before_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("panda").write_text(URDF)
    pathlib.Path("arm").write_text(URDF)
    assert load("panda").nv == 7
    assert load("./panda").nv == 1
    assert load("arm").nv == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing/arm.urdf", "there is no such file"),
        ("arm.xml", "there is no such file"),
        (pathlib.Path("arm"), "there is no such file"),
        ("<svg version='1.1'/>", "the root element is <svg>, expected <robot>"),
        ("<robot name='arm'>", "not well-formed XML"),
        ("<!DOCTYPE robot [<!ENTITY a 'b'>]><robot name='arm'/>", "document type declaration"),
        ("", "it is empty"),
    ],
)
def test_what_is_no_robot_is_refused(source, message):
    with pytest.raises(ModelError, match=message):
        load(source)


def test_a_type_that_jax_is_not_set_to_have_is_refused():
    with jax.enable_x64(False):
        for make in (
            lambda: load("pendulum", dtype=jnp.float64),
            lambda: load("pendulum").astype(np.float64),
        ):
            with pytest.raises(
                ValueError, match="dtype: JAX has no float64 here and would give float32; switch it on by"
            ):
                make()
    with pytest.raises(ValueError, match=r"dtype: expected a floating type such as jnp\.float32, got int32"):
        load("pendulum", dtype=jnp.int32)
