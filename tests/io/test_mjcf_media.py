"""Media of MuJoCo files: forces on boxes and ellipsoids are MuJoCo's."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.elements import Elements
from tests.io.test_mjcf import to_mujoco

pytestmark = pytest.mark.fast_compile

SWIMMER = """<mujoco><option density="130" viscosity="0.7" wind="1 -2 0.5"/>
<asset><mesh name="tetrahedron" file="tetrahedron.obj"/></asset>
<default><geom contype="0" conaffinity="0" fluidshape="ellipsoid"/></default>
<worldbody>
  <body name="fixed"><geom size="0.1"/></body>
  <body name="trunk" pos="0 0 1"><freejoint/>
    <geom type="ellipsoid" size="0.3 0.2 0.1" fluidcoef="0.4 0.3 1.2 0.9 1.1" pos="0.1 0 0.2" euler="20 30 40"/>
    <geom type="box" size="0.1 0.2 0.05" pos="0 0.3 0" fluidshape="none"/>
    <geom type="box" size="0.1 0.02 0.15" pos="0 -0.3 0" fluidcoef="0 0.3 0 0.9 0"/>
    <body name="arm" pos="0.3 0 0"><joint name="arm" axis="0 1 0" pos="0.1 0 0"/>
      <geom type="capsule" size="0.05 0.2" euler="60 0 0"/>
      <body name="hand" pos="0 0.3 0"><geom type="cylinder" size="0.1 0.05"/>
        <body name="boxed" pos="0 0.3 0"><joint name="slide" type="slide" axis="0 1 1"/>
          <geom size="0.1 0.2 0.3" type="box" fluidshape="none"/>
          <body name="fin" pos="0 0.3 0"><joint name="fin" type="ball"/>
            <geom type="mesh" mesh="tetrahedron"/><geom size="0.1" pos="0 0 0.1"/>
  </body></body></body></body></body></worldbody></mujoco>"""
TETRAHEDRON = "v 0 0 0\nv 0.3 0 0\nv 0 0.2 0\nv 0 0 0.4\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@jax.jit
def ours(system, q, v):
    """Forces of the medium, and accelerations."""
    force = Elements(system.elements).force(system.model, jnp.zeros(()), q, v)
    return force, jdyn.forward_dynamics(system.model, q, v, force)


@pytest.fixture
def swimmer(tmp_path):
    (tmp_path / "tetrahedron.obj").write_text(TETRAHEDRON)
    file = tmp_path / "swimmer.xml"
    file.write_text(SWIMMER)
    return jdyn.load_system(file), mujoco.MjModel.from_xml_path(str(file))


def test_forces_and_accelerations_are_those_of_mujoco(swimmer):
    """Accelerations too: added mass does not resist them in MuJoCo."""
    system, m = swimmer
    assert [type(element) for element in system.elements] == [jdyn.elements.Medium, jdyn.elements.EllipsoidMedium]
    assert system.elements[1].bodies.count("trunk") == 2
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    for _ in range(50):
        mujoco.mj_resetData(m, data)
        mujoco.mj_integratePos(m, data.qpos, rng.normal(size=m.nv), 1.0)
        data.qvel[:] = rng.normal(size=m.nv)
        mujoco.mj_forward(m, data)
        T, (free,) = to_mujoco(m, data.qpos)
        v, qacc = T.T @ data.qvel, data.qacc.copy()
        # MuJoCo's linear acceleration is that of a point in the world, that of jdyn the rate of v in the body's axes.
        qacc[free : free + 3] -= T[free : free + 3, free + 3 : free + 6] @ np.cross(
            v[free : free + 3], v[free + 3 : free + 6]
        )
        force, a = ours(system, jnp.asarray(data.qpos), jnp.asarray(v))
        for found, expected in ((force, data.qfrc_fluid), (a, qacc)):
            # Rounding of some tens of bodies.
            np.testing.assert_allclose(found, T.T @ expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


def test_a_file_without_passive_forces_has_no_medium():
    text = """<mujoco><option density="1"><flag spring="disable" damper="disable"/></option><worldbody>
      <body name="a" gravcomp="1"><freejoint/><geom size="1" fluidshape="ellipsoid" contype="0"/></body>
    </worldbody></mujoco>"""
    assert jdyn.load_system(text).elements == ()
    m = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(m)
    data.qvel[:] = 1
    mujoco.mj_forward(m, data)
    assert not np.any(data.qfrc_passive)
