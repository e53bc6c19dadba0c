"""Sensors of distances: along rays, and between shapes."""

import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
import jdyn.sensors as s

pytestmark = pytest.mark.fast_compile

DOWN = jnp.array([0.0, 0.0, -1.0])


def cart():
    """A box that slides along x over ground, before a wall."""
    builder = jdyn.Builder("cart")
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), placement=(0, 0, 1), mass=1.0, inertia=0.1)
    builder.add_shape("cart", "box", (0.4, 0.4, 0.4), role="collision")
    builder.add_frame("eye", "cart", (0.1, 0, 0))
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    builder.add_shape("world", "sphere", 0.5, placement=(3, 0, 1), role="collision", name="wall")
    return builder.build()


MODEL = cart()
SEEN = s.Rangefinder("seen", "eye", directions=[[1.0, 0, 0], [0, 0, -2], [-1, 0, 0]])
CLEAR = s.Distance("clear", ["wall", "ground"], "cart")
AIMED = s.DistanceNormal("aimed", "cart", "wall")


@pytest.mark.slow
def test_ranges_are_known_in_rows_steps_and_states():
    sensors = [SEEN, CLEAR, AIMED, s.DistancePoints("points", "cart", "wall", 1.995)]
    system = jdyn.System(MODEL, sensors=sensors)
    motion = jdyn.simulate(system, system.state(jnp.zeros(1), jnp.ones(1)), 1.0)
    x = motion.q[:, 0]
    found = motion.sensors
    np.testing.assert_allclose(found["seen"][:, 0], 2.4 - x, atol=1e-12)
    np.testing.assert_allclose(found["seen"][:, 1], 1.0, atol=1e-12)
    assert np.all(np.isinf(found["seen"][:, 2]))
    np.testing.assert_allclose(found["clear"], np.minimum(0.8, 2.3 - x), atol=1e-12)
    np.testing.assert_allclose(found["aimed"], np.tile([1.0, 0, 0], (len(x), 1)), atol=1e-12)
    near = 2.3 - x < 1.995
    np.testing.assert_allclose(found["points"][:, 1, 0], np.where(near, 2.5, 0), atol=1e-12)
    _, info = system.step(system.state(jnp.zeros(1), jnp.ones(1)), dt=0.1)
    np.testing.assert_allclose(info.sensors["seen"][0], 2.3, atol=1e-12)
    np.testing.assert_allclose(system.sense(system.state(jnp.ones(1)))["clear"], 0.8, atol=1e-12)


@pytest.mark.slow
def test_a_rangefinder_sees_what_it_is_told_to_and_has_derivatives():
    model = MODEL
    at = {"frame": "eye", "directions": (1.0, 0.0, 0.0)}
    all_of = [
        s.Rangefinder("own", **at, shapes=["cart", "wall"]), s.Rangefinder("past", **at, shapes="ground", missed=-1.0),
        s.Rangefinder("up", "world", jdyn.pose((0.0, 0.0, 0.2)), directions=DOWN),
        s.Imperfect(s.Rangefinder("short", **at), cutoff=1.5),
    ]  # fmt: skip
    system = jdyn.System(model, sensors=all_of)

    def sensed(q):
        return system.sense(system.state(q))

    values = sensed(jnp.zeros(1))
    # From within its own box it sees the wall of that.
    assert {name: round(float(x), 6) for name, x in values.items()} == {
        "own": 0.1, "past": -1.0, "up": 0.2, "short": 1.5,
    }  # fmt: skip
    slopes = jax.jacrev(sensed)(jnp.array([1.2]))
    assert {name: float(x[0]) for name, x in slopes.items()} == {"own": 0.0, "past": 0.0, "up": 0.0, "short": -1.0}
    turned = jax.vmap(lambda way: jdyn.vary(system, {"sensors.2.directions": way}).sense(system.state())["up"])
    np.testing.assert_allclose(turned(jnp.array([[0.0, 0, -1], [0, 1, -1]])), [0.2, 0.2 * 2**0.5], atol=1e-12)


@pytest.mark.slow
def test_lanes_of_a_batch_keep_what_sensors_look_at():
    system = jdyn.System(MODEL, sensors=[SEEN])
    starts = jax.vmap(system.state)(jnp.array([[0.0], [0.5]]), jnp.ones((2, 1)))
    motions = jdyn.simulate_batch(system, starts, 0.5)
    np.testing.assert_allclose(motions.sensors["seen"][:, -1, 0], [1.9, 1.4], atol=1e-9)


@pytest.mark.slow
def test_plans_step_systems_that_see_shapes():
    system = jdyn.System(MODEL, sensors=[SEEN])
    effort = jdyn.planning.SquaredResiduals(lambda t, q, v, u: 0.1 * u)
    goal = jdyn.planning.SquaredResiduals(lambda q, v: 10 * jnp.concatenate([q - 1.0, v]))
    plan = jdyn.ilqr(system, effort, goal, system.state(jnp.zeros(1)), jnp.zeros((5, 1)), 0.1)
    assert abs(plan.q[-1, 0] - 1) < 0.05


def test_what_is_not_there_is_named():
    for sensor, message in (
        (s.Rangefinder("x", "eye", shapes="wal"), "no collision shape is called 'wal'"),
        (s.Distance("x", "wall", "carts"), "no collision shape is called 'carts'"),
        (s.Rangefinder("x", "ey"), "no body or frame is called 'ey'"),
    ):
        system = jdyn.System(MODEL, sensors=[sensor])
        with pytest.raises(ValueError, match=message):
            system.sense(system.state())
    bare = jdyn.System(jdyn.load("pendulum"), sensors=[s.Rangefinder("x", "tip")])
    with pytest.raises(ValueError, match="has no collision shapes"):
        bare.sense(bare.state())

    class Hidden(s.Sensor):
        uses_forces = False

        def value(self, reading):
            return reading.around.numbers(["wall"])

    system = jdyn.System(MODEL, sensors=[Hidden("x")])
    with pytest.raises(ValueError, match="says so by `uses_shapes`"):
        system.sense(system.state())


MUJOCO = """<mujoco><asset><material name="glass" rgba="1 1 1 0"/></asset><worldbody>
  <geom name="floor" type="plane" size="0 0 1" euler="2 3 0"/>
  <geom name="screen" type="plane" size=".5 .3 1" pos="0 -1.5 1.1" euler="-90 0 0"/>
  <geom name="window" type="box" size=".5 .01 .5" pos="0 -1 1" material="glass"/>
  <geom type="box" size=".3 .3 .1" pos=".8 .3 .1" euler="0 0 20"/>
  <body name="arm" pos="0 0 1"><joint axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 .5 0 0" size=".05" mass="1"/>
    <site name="eye" pos=".3 0 0" euler="160 20 0"/>
    <body name="hand" pos=".5 0 0"><joint axis="0 0 1"/>
      <geom name="palm" type="ellipsoid" size=".1 .15 .08" mass="1"/><site name="look" pos=".1 0 0" euler="90 0 0"/>
      <site name="back" pos=".08 .03 0" euler="0 -90 0"/>
      <geom name="thumb" type="sphere" size=".05" pos=".1 .2 0" mass=".1"/>
    </body>
  </body>
  <body name="ball" pos=".7 .5 .9"><freejoint/><geom name="ball" size=".1" mass="1"/></body></worldbody>
  <sensor>
    <rangefinder name="eye" site="eye"/><rangefinder name="look" site="look"/><rangefinder name="back" site="back"/>
    <rangefinder name="short" site="look" cutoff=".4"/>
    <distance name="apart" geom1="palm" geom2="ball" cutoff="2"/><distance name="bodies" body1="hand" body2="ball"/>
    <distance name="near" body1="hand" body2="ball" cutoff=".1"/>
    <normal name="normal" body1="hand" body2="ball" cutoff="2"/>
    <fromto name="points" geom1="ball" body2="hand" cutoff="2"/>
    <fromto name="none" geom1="ball" body2="hand" cutoff=".01"/>
    <distance name="ground" geom1="floor" body2="ball" cutoff="5"/>
  </sensor></mujoco>"""


def _loaded(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        return jdyn.load_system(text)


@pytest.mark.slow
def test_values_are_those_of_mujoco():
    m, system = mujoco.MjModel.from_xml_string(MUJOCO), _loaded(MUJOCO)
    rng, qs, expected = np.random.default_rng(3), [], []
    for _ in range(12):
        d = mujoco.MjData(m)
        mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv) * 0.3, 1.0)
        mujoco.mj_forward(m, d)
        qs.append(d.qpos.copy()), expected.append(d.sensordata.copy())
    found = jax.vmap(lambda q: system.sense(system.state(q)))(np.array(qs))
    assert {m.sensor(i).name for i in range(m.nsensor)} == set(found)
    for i in range(m.nsensor):
        name, start = m.sensor(i).name, m.sensor_adr[i]
        want = np.array(expected)[:, start : start + m.sensor_dim[i]]
        # MuJoCo finds the points of ellipsoids by iteration.
        bound = 1e-6 if name in ("normal", "points") else 1e-9
        np.testing.assert_allclose(np.reshape(found[name], want.shape), want, atol=bound, err_msg=name)
    assert 0 < np.sum(found["look"] == -1) < 12


def test_what_sees_more_than_collision_shapes_is_named():
    text = MUJOCO.replace('name="window"', 'name="window" contype="0" conaffinity="0"').replace(
        "</sensor>",
        """<rangefinder name="picture" camera="c"/><rangefinder name="more" site="eye" data="dist normal"/>
        <distance name="drawn" geom1="ball" geom2="window"/></sensor><worldbody><camera name="c"/></worldbody>""",
    )
    with pytest.warns(jdyn.ModelWarning, match="not simulated: sensors more, drawn, picture$"):
        seen = jdyn.load_system(text)
    assert [sensor.name for sensor in seen.sensors][:4] == ["eye", "look", "back", "short"]
    drawn = text.replace('material="glass"', "")
    with pytest.warns(jdyn.ModelWarning, match="not simulated: sensors eye, look, back, short, more, and 2 more"):
        jdyn.load_system(drawn)
    blind = """<mujoco><worldbody><body name="b"><joint/><geom size=".1"/><site name="s"/></body></worldbody>
      <sensor><rangefinder site="s"/></sensor></mujoco>"""
    alone = _loaded(blind)
    assert alone.sense(alone.state())["rangefinder"] == -1
