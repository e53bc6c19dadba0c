"""Actuators that adhere: their forces are MuJoCo's, and they hold what they can bear."""

import functools
import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from tests.io.test_mjcf import to_mujoco

pytestmark = pytest.mark.fast_compile

# Where a capsule lies on a box, the two have other points.
SCENE = """<mujoco><contact><exclude body1="arm" body2="b"/></contact>
<worldbody><geom name="floor" type="plane" size="1 1 .1"/>
<body name="a" pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1"/><geom name="toe" size="0.05" pos="0.1 0 -0.05"/>
  <body name="arm" pos="0 0 0.1"><joint name="swing" axis="1 0 0"/>
    <geom name="arm" type="capsule" fromto="0 0 -0.1 0 -0.3 -0.15" size="0.04" margin="0.01"/></body></body>
<body name="b" pos="0.05 0.18 0.2"><freejoint/><geom name="block" type="box" size="0.1 0.1 0.2"/></body>
</worldbody>
<actuator><adhesion name="glue" body="a" ctrlrange="0 1" gain="3"/>
  <general name="gecko" body="arm" gear="5" gainprm="2" biastype="affine" biasprm="1 2 3" forcerange="-2 4"/></actuator>
<sensor><actuatorfrc name="pull" actuator="glue"/><actuatorvel name="nearing" actuator="gecko"/></sensor></mujoco>"""

CONTACTS = [jdyn.CompliantContact(), jdyn.ConvexContact()]


def loaded(text, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", jdyn.ModelWarning)
        return jdyn.load_system(text, **options)


@jax.jit
def ours(system, q, v, commands):
    driver, state = system.but(controller=jdyn.control.Constant(commands)).driver(), system.state(q, v)
    travels, forces = driver.outputs(0.0, q, v, None)
    return travels.moments, forces, driver.force(0.0, q, v, None), system.sense(state, commands)


def test_forces_are_those_of_mujoco():
    system, compiled = loaded(SCENE), mujoco.MjModel.from_xml_string(SCENE)
    data, rng, counts = mujoco.MjData(compiled), np.random.default_rng(0), set()
    for _ in range(40):
        mujoco.mj_resetData(compiled, data)
        mujoco.mj_integratePos(compiled, data.qpos, 0.15 * rng.normal(size=compiled.nv), 1.0)
        data.qvel[:], data.ctrl[:] = rng.normal(size=compiled.nv), rng.normal(size=compiled.nu)
        mujoco.mj_forward(compiled, data)
        T, _ = to_mujoco(compiled, data.qpos)
        moments = np.zeros((compiled.nu, compiled.nv))
        rows = data.moment_rownnz, data.moment_rowadr, data.moment_colind
        mujoco.mju_sparse2dense(moments, data.actuator_moment, *rows)
        counts.add(data.ncon)
        found = ours(system, jnp.asarray(data.qpos), jnp.asarray(T.T @ data.qvel), jnp.asarray(data.ctrl))
        got_moments, forces, tau, seen = found
        np.testing.assert_allclose(got_moments, moments @ T, atol=1e-12)
        np.testing.assert_allclose(forces, data.actuator_force, atol=1e-12)
        np.testing.assert_allclose(tau, T.T @ data.qfrc_actuator, atol=1e-12)
        np.testing.assert_allclose([seen["pull"], seen["nearing"]], data.sensordata, atol=1e-12)
    assert {0, 1, 2, 3} <= counts


@functools.cache
def ball_under_ceiling():
    builder = jdyn.Builder("cup")
    builder.add_link("cup", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    builder.add_shape("cup", "sphere", 0.1, role="collision")
    upside_down = jdyn.pose(rpy=(jnp.pi, 0, 0))
    builder.add_shape("world", "plane", (0, 0), role="collision", placement=upside_down)
    return builder.build()


def under_ceiling(contact, strength):
    suction = jdyn.actuators.Motor(jdyn.transmissions.Adhesion("cup"), strength)
    on = jdyn.control.Constant(jnp.ones(1))
    return jdyn.System(ball_under_ceiling(), actuators=[suction], controller=on, contact=contact)


@pytest.mark.parametrize("contact", CONTACTS, ids=lambda each: type(each).__name__)
def test_a_cup_holds_what_it_can_bear(contact):
    system = under_ceiling(contact, 0.0)
    # It barely touches.
    start = system.model.neutral().at[2].set(-0.1 + 1e-6)

    @jax.jit
    @jax.vmap
    def height(strength):
        one = under_ceiling(contact, strength)
        return jdyn.simulate(one, one.state(start), 0.5).q[-1, 2]

    strengths = 9.81 * jnp.array([0.0, 0.9, 1.5, 3.0])
    free, weak, *held = height(strengths)
    # Both fall as soon as they part, the first one by a depth that it can hardly be thrown back by.
    assert free == pytest.approx(-0.1 - 9.81 / 8, abs=2e-3)
    assert weak < -0.11
    # Two springs in series, each of 2e5 N/m; errors of steps keep a vibration of ten tolerances alive.
    np.testing.assert_allclose(held, -0.1 + (strengths[2:] - 9.81) / 1e5, atol=1e-7)


@pytest.mark.slow
def test_derivatives_of_what_holds():
    def height(strength):
        system = under_ceiling(CONTACTS[0], strength)
        start = system.model.neutral().at[2].set(-0.1 + 9.81 / 1e5)
        return jdyn.simulate(system, system.state(start), 0.6).q[-1, 2]

    assert jax.grad(height)(2 * 9.81) == pytest.approx(1 / 1e5, rel=1e-4)


def test_what_touches_nothing_feels_nothing():
    """Derivatives are finite there, too, and there is no force in a system without contact."""
    system = under_ceiling(CONTACTS[0], 50.0)
    far, touching = (system.model.neutral().at[2].set(z) for z in (-0.2, -0.0999))

    def tau(strength, q, contact):
        one = under_ceiling(contact, strength)
        return one.driver().force(0.0, q, jnp.zeros(6), None)

    for q, contact in ((far, CONTACTS[0]), (touching, None)):
        force, slope = jax.jvp(lambda s, q, contact=contact: tau(s, q, contact), (50.0, q), (1.0, jnp.ones(7)))
        np.testing.assert_array_equal(force, 0)
        np.testing.assert_array_equal(slope, 0)
    np.testing.assert_allclose(tau(50.0, touching, CONTACTS[0]), [0, 0, 0, 0, 0, 50], atol=1e-12)


def test_a_load_cell_feels_it():
    builder = jdyn.Builder("rail")
    inertia = 4e-3 * jnp.ones(3)
    builder.add_link("cup", jdyn.Prismatic((1, 0, 0)), placement=jdyn.pose((0, 0, -0.0999)), mass=1.0, inertia=inertia)
    builder.add_shape("cup", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", placement=jdyn.pose(rpy=(jnp.pi, 0, 0)))
    suction = jdyn.actuators.Motor(jdyn.transmissions.Adhesion("cup"))
    cell = jdyn.sensors.Force("cell", "cup")
    system = jdyn.System(builder.build(), actuators=[suction], contact=CONTACTS[0], sensors=[cell])
    # The ceiling pushes by 10 N, a depth of 0.1 mm times 1e5 N/m.
    forces = [system.sense(system.state(), jnp.array([pull]))["cell"] for pull in (0.0, 20.0)]
    np.testing.assert_allclose(np.abs(forces), [[0, 0, 19.81], [0, 0, 0.19]], atol=1e-9)


def test_names_and_edits():
    system = under_ceiling(CONTACTS[0], 50.0)
    both = jdyn.merge({"left": system, "right": system}, placements={"right": (1.0, 0.0, 0.0)})
    assert [each.transmission.link for each in both.actuators] == ["left/cup", "right/cup"]
    assert [each.transmission.label for each in system.actuators] == ["cup"]
    geared = jdyn.transmissions.Geared(system.actuators[0].transmission, 2.0)
    twice = system.but(actuators=(jdyn.actuators.Motor(geared, 25.0),))
    q = system.model.neutral().at[2].set(-0.0999)
    np.testing.assert_allclose(*(each.driver().force(0.0, q, jnp.zeros(6), None) for each in (system, twice)))


def test_refusals():
    system = under_ceiling(CONTACTS[0], 50.0)
    state = system.state()
    with pytest.raises(ValueError, match="'cup' acts where shapes overlap, which rigid ones do not"):
        jdyn.simulate(system.but(contact=jdyn.RigidContact()), state, 0.1)
    nobody = jdyn.actuators.Motor(jdyn.transmissions.Adhesion("cap"))
    with pytest.raises(ValueError, match=r"'cap'.*cup"):
        jdyn.simulate(system.but(actuators=(nobody,)), state, 0.1)
    spring = jdyn.elements.TendonSpring(jdyn.transmissions.Adhesion("cup"), damping=1.0)
    with pytest.raises(ValueError, match=r"'cup' can be that of an actuator of a jdyn\.System alone"):
        jdyn.simulate(system.but(elements=(spring,)), state, 0.1)


def test_written_and_read_again(tmp_path):
    text = SCENE.replace('margin="0.01"', "")
    jdyn.save_mjcf(loaded(text), tmp_path / "scene.xml")
    first, second = loaded(text), loaded(tmp_path / "scene.xml")
    assert [each.transmission.link for each in second.actuators] == ["a", "arm"]
    for got, expected in zip(jax.tree.leaves(second.actuators), jax.tree.leaves(first.actuators), strict=True):
        np.testing.assert_allclose(got, expected)
