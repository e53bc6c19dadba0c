"""Systems read from MJCF files, beside MuJoCo."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jdyn
from jdyn.interop import MujocoMap

# A servo with a lag, a motor on a tendon around a ball and through a site of the world, a spring tendon, a closed loop,
# and sensors that look at all of these.
ARM = """
<mujoco model="arm">
  <compiler angle="radian" eulerseq="zyx"/>
  <worldbody>
    <site name="anchor" pos=".3 .1 .2"/>
    <geom name="post" size=".05" pos=".1 .1 .1" contype="0" conaffinity="0"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping=".3"/><site name="root"/>
      <geom name="rod" type="capsule" size=".03" fromto="0 0 0 0 0 -.5" contype="0" conaffinity="0"/>
      <geom name="ball" size=".06" pos=".05 .02 -.3" contype="0" conaffinity="0" mass="0"/>
      <body name="lower" pos="0 0 -.5">
        <joint name="elbow" axis="0 .6 .8"/>
        <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.4" contype="0" conaffinity="0"/>
        <site name="hand" pos="0 0 -.4" euler=".1 .2 .3"/>
      </body>
    </body>
    <body name="strut" pos=".3 0 1">
      <joint name="hip" axis="0 1 0"/><joint name="slide" type="slide" axis="0 0 1"/>
      <geom type="box" size=".03 .04 .3" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="rope"><site site="anchor"/><geom geom="ball"/><site site="hand"/></spatial>
    <fixed name="sum" stiffness="5" springlength=".2" damping=".4">
      <joint joint="shoulder" coef=".5"/><joint joint="hip" coef="-1"/>
    </fixed>
  </tendon>
  <actuator>
    <position name="servo" joint="elbow" kp="20" kv="2" ctrlrange="-1 1"/>
    <general name="slow" joint="hip" dyntype="filter" dynprm=".1" gainprm="3"/>
    <motor tendon="rope" gear="-2"/>
  </actuator>
  <sensor>
    <accelerometer name="imu" site="hand"/><gyro name="gyro" site="hand"/>
    <framepos name="seen" objtype="site" objname="hand" reftype="site" refname="anchor"/>
    <tendonpos name="rope" tendon="rope"/><tendonvel name="rope speed" tendon="rope"/>
    <actuatorfrc name="effort" actuator="servo"/><jointpos name="angle" joint="elbow"/>
    <subtreecom name="center" body="upper"/><force name="load" site="hand"/><torque name="root" site="root"/>
  </sensor>
  <keyframe><key name="bent" qpos=".3 .5 .1 .05"/></keyframe>
</mujoco>
"""


def load(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        return jdyn.load_system(text)


def assert_mujoco_agrees(system, peer):
    """Accelerations and sensors at random states and commands, with actuators that have states."""
    both = MujocoMap(system.model, peer)
    sense = eqx.filter_jit(lambda state, action: system.sense(state, action))
    dynamics = eqx.filter_jit(lambda state, action: system.step(state, action, dt=1e-7)[1].accelerations)
    for seed in range(3):
        rng, data = np.random.default_rng(seed), mujoco.MjData(peer)
        q = system.model.random(jax.random.key(seed))
        v, action = (jnp.asarray(rng.normal(size=n)) for n in (system.model.nv, peer.nu))
        state = system.state(q, v)
        data.qpos[:], data.qvel[:], data.ctrl[:] = both.q_to_peer(q), both.v_to_peer(q, v), action
        mujoco.mj_forward(peer, data)
        values = sense(state, action)
        assert len(values) == peer.nsensor
        for i in range(peer.nsensor):
            name, at, size = peer.sensor(i).name, peer.sensor_adr[i], peer.sensor_dim[i]
            # Sizes of what is added up are up to some tens.
            np.testing.assert_allclose(np.ravel(values[name]), data.sensordata[at : at + size], atol=1e-9, err_msg=name)
        a = both.a_from_peer(q, v, data.qacc)
        # A step of 1e-7 s changes accelerations by some 1e-5.
        np.testing.assert_allclose(dynamics(state, action), a, atol=1e-4 * (1 + np.max(np.abs(a))))
