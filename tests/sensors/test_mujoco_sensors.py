"""Sensors of MuJoCo files against MuJoCo's `sensordata`."""

import functools
import warnings

import jax
import mujoco
import numpy as np
import pytest

import jdyn
from tests.io.test_mjcf import EVERYTHING, to_mujoco

pytestmark = pytest.mark.fast_compile

# Frames of all kinds of objects: lumped bodies, inertial frames, hinges off the origin, the world.
OBJECTS = {
    "imu": 'objtype="site" objname="imu"',
    "plate": 'objtype="xbody" objname="plate"',
    "wrist": 'objtype="body" objname="wrist"',
    "geom": 'objtype="geom" objname="g"',
    "camera": 'objtype="camera" objname="c"',
    "post": 'objtype="site" objname="post"',
}
REFERENCES = {
    "": "",
    " to wrist": 'reftype="xbody" refname="wrist"',
    " to inertia": 'reftype="body" refname="arm"',
    " to camera": 'reftype="camera" refname="c"',
}
RELATIVE = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
BODIES = ("world", "base", "arm", "plate", "wrist", "pivot")


def _sensors():
    for kind in RELATIVE:
        for name, seen in OBJECTS.items():
            for reference, about in REFERENCES.items():
                yield f'<{kind} name="{kind} {name}{reference}" {seen} {about}/>'
    for kind in ("framelinacc", "frameangacc"):
        for name, seen in OBJECTS.items():
            yield f'<{kind} name="{kind} {name}" {seen}/>'
    for kind in ("gyro", "accelerometer", "velocimeter", "magnetometer", "force", "torque"):
        for site in ("imu", "s", "at wrist", "at arm", "low"):
            yield f'<{kind} name="{kind} {site}" site="{site}"/>'
    for kind in ("subtreecom", "subtreelinvel", "subtreeangmom"):
        for body in BODIES:
            yield f'<{kind} name="{kind} {body}" body="{body}"/>'
    for joint in ("s", "h1", "h2", "turn", "rail"):
        yield f'<jointpos name="q {joint}" joint="{joint}"/><jointvel name="v {joint}" joint="{joint}"/>'
    yield '<ballquat name="ballquat" joint="wrist"/><ballangvel name="ballangvel" joint="wrist"/>'
    yield '<clock name="clock"/><e_potential name="e_potential"/><e_kinetic name="e_kinetic"/>'
    yield '<gyro name="cut off" site="imu" cutoff=".4"/>'


PARTS = {
    '<site name="s"/>': """
      <site name="s"/>
      <geom name="g" type="box" size=".1 .2 .3" pos=".1 .2 .1" euler=".3 .2 .1" contype="0" conaffinity="0"/>
      <camera name="c" pos=".1 .3 .2" euler=".4 .5 .6"/>
      <body name="tool" pos=".1 .1 .2" euler=".1 .4 .3">
        <inertial pos=".1 0 .05" mass=".2" diaginertia=".01 .02 .015"/>
        <site name="low" pos=".1 .2 0" euler=".4 .2 .1"/>
      </body>""",
    '<joint name="turn"': '<site name="at wrist" pos=".1 .1 .1" euler=".3 .1 .2"/><joint name="turn"',
    '<joint name="s" type="slide"': '<site name="at arm" pos=".2 .1 .1"/><joint name="s" type="slide"',
    '<body name="base"': '<site name="post" pos=".4 .5 .6" euler=".1 .2 .3"/><body name="base"',
    "</mujoco>": f"<sensor>{''.join(_sensors())}</sensor></mujoco>",
}
SENSORS = functools.reduce(lambda text, part: text.replace(part, PARTS[part]), PARTS, EVERYTHING)


@pytest.fixture(scope="module")
def loaded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        return jdyn.load_system(SENSORS)


@pytest.mark.slow
def test_values_are_those_of_mujoco(loaded):
    m = mujoco.MjModel.from_xml_string(SENSORS)
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    rng, qs, vs, taus, expected = np.random.default_rng(7), [], [], [], []
    for _ in range(4):
        d = mujoco.MjData(m)
        mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv), 1.0)
        T, _ = to_mujoco(m, d.qpos)
        v, tau = rng.normal(size=(2, m.nv))
        d.qvel, d.qfrc_applied, d.time = T @ v, np.linalg.solve(T.T, tau), 0.25
        mujoco.mj_forward(m, d)
        qs.append(d.qpos.copy()), vs.append(v), taus.append(tau), expected.append(d.sensordata.copy())
    # Forces act on coordinates, and not through the two motors of the file.
    pushed = loaded.but(actuators=())
    sense = jax.vmap(lambda q, v, tau: pushed.sense(pushed.state(q, v), tau, t=0.25))
    found = sense(*map(np.array, (qs, vs, taus)))
    assert {m.sensor(i).name for i in range(m.nsensor)} == set(found)
    errors = {}
    for i in range(m.nsensor):
        name, start = m.sensor(i).name, m.sensor_adr[i]
        want = np.array(expected)[:, start : start + m.sensor_dim[i]]
        got = np.reshape(found[name], want.shape)
        if "quat" in name:
            want = want * np.sign(np.sum(want * got, axis=1, keepdims=True))
        errors[name] = np.max(np.abs(got - want)) / max(1, np.max(np.abs(want)))
    worst = max(errors, key=lambda name: errors[name])
    assert errors[worst] < 1e-9, {name: x for name, x in errors.items() if x > 1e-9}
    assert np.max(np.abs(found["cut off"])) == 0.4


def test_what_is_left_out_is_named():
    text = EVERYTHING.replace(
        "</mujoco>",
        """<worldbody><camera name="turning" mode="targetbody" target="arm"/></worldbody><sensor>
      <actuatorpos actuator="a"/><user name="own" dim="2000000000"/><jointlimitfrc joint="h1"/>
      <gyro site="s" interval="0.1"/>
      <framepos objtype="camera" objname="turning"/><gyro site="imu" noise="0.1"/></sensor></mujoco>""",
    ).replace('<motor joint="h1"', '<motor name="a" joint="h1"')
    with pytest.warns(jdyn.ModelWarning, match="not simulated: sensors framepos, own, jointlimitfrc$"):
        system = jdyn.load_system(text)
    assert [sensor.name for sensor in system.sensors] == ["actuatorpos", "gyro", "gyro_2"]
    with pytest.warns(jdyn.ModelWarning, match="sensors actuatorpos, gyro, gyro_2; jdyn.load_system reads them"):
        jdyn.load(text)


# A box with its centre of mass to the left: three quarters of its weight are on the left edge.
RESTING = """<mujoco><option timestep="0.001"/>
<worldbody><geom name="ground" type="plane" size="1 1 1"/>
  <site name="under the right" type="box" size=".15 .3 .05" pos=".2 0 .05"/>
  <body name="box" pos="0 0 .1"><freejoint/><inertial pos="-.1 0 0" mass="2" diaginertia=".02 .03 .02"/>
    <geom type="box" size=".2 .2 .1"/>
    <site name="left" type="box" size=".15 .25 .05" pos="-.1 0 -.1"/>
    <site name="corner" type="sphere" size=".05" pos="-.2 -.2 -.1"/>
    <site name="below" type="ellipsoid" size=".3 .3 .01" pos="0 0 -.2"/>
    <site name="above" type="cylinder" size=".5 .02" pos="0 0 0"/>
    <site name="beside" type="capsule" size=".1 .1" pos=".6 0 0"/>
  </body>
</worldbody>
<sensor><touch name="right" site="under the right"/><touch name="left" site="left"/><touch name="corner" site="corner"/>
  <touch name="below" site="below"/><touch name="above" site="above"/><touch name="beside" site="beside"/></sensor>
</mujoco>"""


@pytest.mark.slow
def test_touch_counts_what_presses_on_the_zone_of_a_site():
    m = mujoco.MjModel.from_xml_string(RESTING)
    d = mujoco.MjData(m)
    mujoco.mj_step(m, d, nstep=1000)
    system = jdyn.load_system(RESTING)
    motion = jdyn.simulate(system, system.state(), 1.0, saveat=np.array([1.0]))
    shares = {"right": 0.25, "left": 0.75, "corner": 0.375, "below": 1.0, "above": 0.0, "beside": 0.0}
    weight = 2 * 9.81
    for i, (name, share) in enumerate(shares.items()):
        np.testing.assert_allclose(d.sensordata[i], share * weight, atol=0.02, err_msg=name)
        np.testing.assert_allclose(motion.sensors[name][-1], share * weight, atol=0.02, err_msg=name)


STAND = """<mujoco><option gravity="1 2 -9"/>
<worldbody>
  <body name="stand" pos="-1 .2 .1" euler="20 10 40"><inertial pos=".1 .2 .1" mass=".7" diaginertia=".01 .02 .02"/>
    <body name="plate" pos=".1 0 .3" euler="50 20 30">
      <inertial pos="0 .1 .1" mass=".3" diaginertia=".01 .01 .01"/><site name="cell" pos=".1 .1 0" euler="30 0 10"/>
      <body name="flap" pos=".1 .2 .3" euler="20 50 10"><joint axis="1 0 1"/>
        <inertial pos=".1 0 .2" mass=".6" diaginertia=".02 .01 .02"/></body>
    </body>
  </body>
</worldbody>
<sensor>
  <force name="force" site="cell"/><torque name="torque" site="cell"/><accelerometer name="a" site="cell"/>
</sensor>
</mujoco>"""


def test_load_cells_measure_what_stands_still():
    m, system = mujoco.MjModel.from_xml_string(STAND), jdyn.load_system(STAND)
    d = mujoco.MjData(m)
    d.qpos, d.qvel = 0.4, 2.0
    mujoco.mj_forward(m, d)
    found = system.sense(system.state(d.qpos, d.qvel))
    for name, x in found.items():
        np.testing.assert_allclose(x, d.sensor(name).data, rtol=0, atol=1e-12, err_msg=name)
