"""Scenes in which nothing moves: everything that a robot has, they have with no coordinates."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.cli import main

pytestmark = pytest.mark.fast_compile

TABLE = """<robot name="scene"><link name="table"><inertial><mass value="3"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="cup"><visual><geometry><sphere radius="0.1"/></geometry></visual></link>
  <joint name="stands" type="fixed"><parent link="table"/><child link="cup"/><origin xyz="0.2 0 0.6"/></joint>
</robot>"""
FLOOR = """<mujoco><worldbody>
  <geom type="plane" size="1 1 1"/><body pos="0 0 1"><geom size=".1"/></body>
</worldbody></mujoco>"""
NONE = jnp.zeros(0)


@pytest.fixture(scope="module")
def scene():
    return jdyn.load(TABLE)


@pytest.mark.slow
@pytest.mark.parametrize("text", [TABLE, FLOOR, "<mujoco/>"])
def test_scenes_load_as_their_oracles_load_them(text):
    model = jdyn.load(text)
    peer = pin.buildModelFromXML(text) if text.startswith("<robot") else mujoco.MjModel.from_xml_string(text)
    assert (model.nq, model.nv) == (peer.nq, peer.nv) == (0, 0)
    assert model.nb == 0
    assert jdyn.Builder("nothing").build().nq == 0


@pytest.mark.parametrize("executor", ["auto", "levels", "lanes"])
def test_dynamics_have_no_rows(scene, executor):
    model = dataclasses.replace(scene, executor=executor)
    assert jdyn.mass_matrix(model, NONE).shape == jdyn.coriolis_matrix(model, NONE, NONE).shape == (0, 0)
    assert jdyn.forward_kinematics(model, NONE).translation.shape == (0, 3)
    for method in (None, "auto", jdyn.CRBA(), jdyn.ParallelABA(), jdyn.ArrayABA(), jdyn.studies.LeastConstraint()):
        assert jdyn.forward_dynamics(model, NONE, NONE, NONE, f_ext=jnp.zeros((0, 6)), method=method).shape == (0,)
    for function in (jdyn.bias_forces, jdyn.kinetic_energy, jdyn.momentum):
        assert not np.any(function(model, NONE, NONE))
    assert jdyn.regressor(model, NONE, NONE, NONE).shape == jdyn.mass_matrix_inverse(model, NONE).shape == (0, 0)
    assert jdyn.centroidal.momentum_matrix(model, NONE).shape == (6, 0)
    assert jdyn.centroidal.momentum_matrix_rate(model, NONE, NONE).shape == (6, 0)
    assert jdyn.centroidal.com_jacobian(model, NONE).shape == (3, 0)
    batch = jax.vmap(lambda q: jdyn.inverse_dynamics(model, q, q, q))(jnp.zeros((3, 0)))
    assert batch.shape == (3, 0)


def test_derivatives_are_empty(scene):
    for derivative in (jax.jacfwd, jax.jacrev):
        for function in (jdyn.forward_dynamics, jdyn.inverse_dynamics):
            assert derivative(lambda q, f=function: f(scene, q, NONE, NONE))(NONE).shape == (0, 0)
    assert all(x.shape == (0, 0) for x in jdyn.forward_dynamics_derivatives(scene, NONE, NONE, NONE))


def test_configurations_are_empty(scene):
    assert scene.neutral().shape == scene.random(jax.random.key(0)).shape == scene.integrate(NONE, NONE).shape == (0,)
    assert scene.difference(NONE, NONE).shape == scene.room(NONE)[0].shape == (0,)


def test_frames_and_shapes_are_where_they_are(scene):
    np.testing.assert_allclose(jdyn.frame_pose(scene, NONE, "cup").translation, (0.2, 0, 0.6), rtol=1e-6)
    assert jdyn.jacobian(scene, NONE, "cup").shape == jdyn.jacobian_rate(scene, NONE, NONE, "cup").shape == (6, 0)
    assert not np.any(jdyn.frame_velocity(scene, NONE, NONE, "cup", frame="aligned"))
    assert not np.any(jdyn.frame_acceleration(scene, NONE, NONE, NONE, "cup"))
    assert not np.any(jdyn.delassus_matrix(scene, NONE, ["cup"]))
    assert jdyn.impulse_response(scene, NONE, "cup", jnp.ones(6)).shape == (0,)
    assert jdyn.contact.collision_pairs(scene) == ()
    assert jdyn.contact.distances(scene, NONE).distance.shape == (0,)
    assert np.ptp(jdyn.snapshot(scene, NONE)) > 50


@pytest.mark.slow
def test_time_passes(scene, tmp_path):
    ts = jnp.linspace(0, 1, 11)
    motion = jdyn.simulate(scene, NONE, NONE, 1.0, saveat=ts)
    assert motion.result == jdyn.Result.success
    assert motion.q.shape == motion.v.shape == (11, 0)
    np.testing.assert_array_equal(motion.ts, ts)
    assert not np.any(motion.energy)
    assert jdyn.animate(motion).duration > 0
    with jdyn.view(motion, port=0):
        pass


def test_what_needs_a_moving_body_says_so(scene):
    with pytest.raises(ValueError, match="nothing of 'scene' moves"):
        jdyn.diagnose(scene)
    with pytest.raises(ValueError, match="nothing of 'scene' moves"):
        jdyn.verify(TABLE)
    with pytest.raises(ValueError, match="no two collision shapes"):
        jdyn.simulate(scene, NONE, NONE, 1.0, contact=jdyn.CompliantContact())


def test_the_command_line_shows_a_scene(tmp_path, capsys):
    path = tmp_path / "scene.urdf"
    path.write_text(TABLE)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "scene: 0 bodies" in out
    assert "frames: table, cup" in out
