"""Fixed steps, implicit in the forces of joints: MuJoCo's, and those that no spring makes too long."""

import diffrax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

ARM = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.01" integrator="implicitfast"/>
  <worldbody>
    <body>
      <joint name="shoulder" type="hinge" axis="0 1 0" damping="3"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" contype="0" conaffinity="0"/>
      <body pos="0 0 -0.4">
        <joint name="wrist" type="hinge" axis="1 0 0" damping="2" armature="1e-4"/>
        <geom type="capsule" fromto="0 0 0 0.05 0 -0.1" size="0.01" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def stepped(model, q0, v0, steps, dt):
    return jdyn.simulate(
        model, jnp.asarray(q0), jnp.asarray(v0), steps * dt, solver=jdyn.solvers.LinearlyImplicitEuler(), dt0=dt,
        stepsize_controller=diffrax.ConstantStepSize(), saveat=diffrax.SaveAt(t1=True),
    )  # fmt: skip


def test_steps_are_those_of_mujoco():
    """A damper of 2 N m s on a link of 1e-4 kg m², whose rate times the step is 200."""
    peer = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(peer)
    data.qpos, data.qvel = [1.0, 0.4], [0.5, -2.0]
    found = stepped(jdyn.load(ARM), data.qpos.copy(), data.qvel.copy(), 50, peer.opt.timestep)
    for _ in range(50):
        mujoco.mj_step(peer, data)
    np.testing.assert_allclose(found.q[0], data.qpos, rtol=1e-11)
    np.testing.assert_allclose(found.v[0], data.qvel, rtol=1e-10)


def test_springs_do_not_limit_the_step():
    """h ω = 10⁶ in one step, of a spring alone: what is left is a share of 1 / (h ω)."""
    builder = jdyn.Builder("cart", gravity=(0, 0, 0))
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=1.0, stiffness=1e12)
    found = stepped(builder.build(), [0.3], [0.5], 1, 1.0)
    assert np.hypot(1e6 * found.q[0, 0], found.v[0, 0]) < 1e-5 * np.hypot(1e6 * 0.3, 0.5)
