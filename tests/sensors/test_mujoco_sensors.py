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
      <actuatorpos actuator="a"/><user name="own" dim="2000000000"/><touch site="s"/><gyro site="s" interval="0.1"/>
      <framepos objtype="camera" objname="turning"/><gyro site="imu" noise="0.1"/></sensor></mujoco>""",
    ).replace('<motor joint="h1"', '<motor name="a" joint="h1"')
    with pytest.warns(jdyn.ModelWarning, match="not simulated: sensors framepos, own, touch$"):
        system = jdyn.load_system(text)
    assert [sensor.name for sensor in system.sensors] == ["actuatorpos", "gyro", "gyro_2"]
    with pytest.warns(jdyn.ModelWarning, match="sensors actuatorpos, gyro, gyro_2; jdyn.load_system reads them"):
        jdyn.load(text)
