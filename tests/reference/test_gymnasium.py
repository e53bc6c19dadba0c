"""Gymnasium's MuJoCo robots in the air: their motions against MuJoCo's own, step by step."""

import pathlib
import warnings

import diffrax
import gymnasium
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.interop.mujoco import MujocoMap

pytestmark = pytest.mark.fast_compile

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
END = 0.2
# Each halving of the step divides the error of MuJoCo's RK4 by sixteen; that of velocities is below 3e-11 here.
STEP = 2e-4
TOLERANCE = 1e-10
TIGHT = diffrax.PIDController(rtol=1e-11, atol=1e-11)


def load(file):
    """A robot with its shapes, in both programs, and without joint limits."""
    path = str(ASSETS / f"{file}.xml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        model = jdyn.load(path)
    m = mujoco.MjModel.from_xml_path(path)
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    m.opt.integrator, m.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, STEP
    return model, m


def thrown(m):
    """A start some metres above the ground, turning, with joints in the middle of their ranges."""
    qpos, rng = m.qpos0.copy(), np.random.default_rng(0)
    limited = m.jnt_limited.astype(bool)
    qpos[m.jnt_qposadr[limited]] = m.jnt_range[limited].mean(axis=1)
    free = m.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    qpos[2 if free else 1] += 3
    return qpos, 0.5 * rng.normal(size=m.nv)


@pytest.mark.parametrize(
    "file",
    [
        "hopper",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("ant", "half_cheetah", "humanoid", "walker2d_v5")),
    ],
)
def test_flight_before_contact_is_mujocos(file):
    model, m = load(file)
    assert any(entry.kind == "plane" for entry in model.shapes.entries)
    data, peer = mujoco.MjData(m), MujocoMap(model, m)
    data.qpos[:], data.qvel[:] = thrown(m)
    q0 = peer.q_from_peer(data.qpos)
    v0 = peer.v_from_peer(q0, data.qvel)
    for _ in range(round(END / STEP)):
        mujoco.mj_step(m, data)
        assert data.ncon == 0
    motion = jdyn.simulate(
        model, jnp.asarray(q0), jnp.asarray(v0), END, solver=diffrax.Dopri8(), stepsize_controller=TIGHT
    )
    q = peer.q_from_peer(data.qpos)
    assert np.abs(model.difference(q0, q)).max() > 0.1
    np.testing.assert_allclose(model.difference(motion.q[-1], q), 0, atol=TOLERANCE)
    np.testing.assert_allclose(motion.v[-1], peer.v_from_peer(q, data.qvel), atol=TOLERANCE)
