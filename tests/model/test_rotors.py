"""Motors with rotors: Vereshchagin's (1.1) and (1.2) as bodies that follow joints."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

AXIAL, ACROSS = 0.02, 0.013
# Carrier, joint, axis, ratio: a motor that drives what its carrier carries, one that drives its own carrier, one that
# sits elsewhere.
ROTORS = [("base", "slide", (0, 1, 1), 60.0), ("arm", "arm", (1, 1, 0), -20.0), ("base", "tip", (1, 0, 0), 35.0)]
MOMENTS = np.array([[0.3, 0.02, 0.01], [0.02, 0.25, -0.03], [0.01, -0.03, 0.2]])


def geared(turning):
    """A free base, a slide and two hinges with three rotors that have mass: links of their own, or locked."""
    builder, parent = jdyn.Builder("geared"), "world"
    kinds = {"base": jdyn.Free(), "slide": jdyn.Prismatic((1, 2, 0)), "arm": jdyn.Revolute((0, 1, 1)),
             "tip": jdyn.Revolute((1, 0, 0))}  # fmt: skip
    for name, kind in kinds.items():
        builder.add_link(name, kind, parent=parent, placement=(0.1, 0.2, -0.3), armature=0.01, damping=0.1, mass=1.0,
                         com=(0.1, -0.05, 0.4), inertia=MOMENTS)  # fmt: skip
        parent = name
    for i, (carrier, joint, axis, ratio) in enumerate(ROTORS):
        u = np.array(axis) / np.linalg.norm(axis)
        inertia = AXIAL * np.outer(u, u) + ACROSS * (np.eye(3) - np.outer(u, u))
        rotor = jdyn.Continuous(axis) if turning else jdyn.Fixed()
        mimic = jdyn.Mimic(joint, ratio) if turning else None
        builder.add_link(f"rotor{i}", rotor, parent=carrier, placement=(0.1 * i, 0.2, 0.05), mass=0.5, inertia=inertia,
                         mimic=mimic)  # fmt: skip
    return builder.build()


def with_motors(model, inertia=AXIAL):
    motors = (jdyn.Rotor(carrier, joint, axis, inertia, ratio) for carrier, joint, axis, ratio in ROTORS)
    return jdyn.with_rotors(model, {f"motor{i}": motor for i, motor in enumerate(motors)})


def state(model, seed=0):
    keys = jax.random.split(jax.random.key(seed), 3)
    return model.random(keys[0]), *(jax.random.normal(key, (model.nv,)) for key in keys[1:])


@pytest.mark.slow
@pytest.mark.parametrize("method", [jdyn.ABA(), jdyn.CRBA()])
def test_rotors_are_links_that_follow(method):
    """Against links that they stand for: symmetric about the shaft, wherever they sit on the carrier."""
    locked, turning = geared(False), geared(True)
    x = state(locked)
    a = jax.jit(lambda model: jdyn.forward_dynamics(model, *x, method=method))
    found, exact, without = a(with_motors(locked)), a(turning), a(locked)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-11 * np.max(np.abs(exact)))
    assert np.max(np.abs(without - exact)) > 0.1 * np.max(np.abs(exact))


def test_the_kinetic_energy_is_that_of_the_paper():
    """½ d (ε·ω + ρ q̇)² in the place of ½ d (ε·ω)² for each rotor, with ω of the carrier: (1.2)."""
    locked = geared(False)
    q, v, _ = state(locked)
    twists = jdyn.body_velocities(locked, q, v)
    expected = jdyn.kinetic_energy(locked, q, v)
    for carrier, joint, axis, ratio in ROTORS:
        spin = np.array(axis) / np.linalg.norm(axis) @ twists[locked.topology.body(carrier), :3]
        rate = ratio * v[locked.topology.v_offsets[locked.topology.joint(joint)]]
        expected = expected + AXIAL / 2 * ((spin + rate) ** 2 - spin**2)
    np.testing.assert_allclose(jdyn.kinetic_energy(with_motors(locked), q, v), expected, rtol=1e-13)


@pytest.mark.slow
def test_a_motor_on_a_free_base_keeps_momentum():
    """A base in space that a motor's torque turns against its rotor and what that drives; speeds by closed form."""
    builder = jdyn.Builder("wheel", gravity=(0, 0, 0))
    builder.add_link("hull", jdyn.Planar((0, 0, 1), (1, 0, 0)), mass=2.0, inertia=0.3)
    builder.add_link("disk", jdyn.Revolute((0, 0, 1)), parent="hull", mass=1.0, inertia=0.05)
    d, ratio, torque, end = 1e-3, 20.0, 0.4, 1.5
    model = jdyn.with_rotors(builder.build(), {"motor": jdyn.Rotor("hull", "disk", (0, 0, 1), d, ratio)})
    pushed = jdyn.control.Constant(jnp.array([0.0, 0.0, 0.0, torque]))
    motion = jdyn.simulate(model, model.neutral(), jnp.zeros(4), end, controller=pushed)
    # d/dt of (0.3 + 0.05) w + 0.05 r + d ρ r is zero, of 0.05 (w + r) + d ρ (w + ρ r) the torque.
    M = np.array([[0.35, 0.05 + d * ratio], [0.05 + d * ratio, 0.05 + d * ratio**2]])
    w, r = np.linalg.solve(M, [0.0, torque * end])
    turn = np.flatnonzero(np.abs(motion.v[-1]) > 1e-6)
    np.testing.assert_allclose(motion.v[-1][turn], [w, r], rtol=1e-6)
    assert r > 0 > w


@pytest.mark.slow
def test_numbers_have_derivatives_and_lanes():
    locked = geared(False)
    x = state(locked)

    @jax.jit
    def a(inertia):
        return jdyn.forward_dynamics(with_motors(locked, inertia), *x)

    batch = jax.vmap(a)(jnp.array([1e-9, AXIAL]))
    np.testing.assert_allclose(batch[0], jdyn.forward_dynamics(locked, *x), rtol=1e-4)
    np.testing.assert_allclose(batch[1], a(jnp.array(AXIAL)), rtol=1e-11)
    slope, e = jax.jacfwd(a)(jnp.array(0.01)), 1e-6
    np.testing.assert_allclose(slope, (a(0.01 + e) - a(0.01 - e)) / (2 * e), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(jax.jacrev(a)(jnp.array(0.01)), slope, rtol=1e-9)
    single = with_motors(locked.astype(jnp.float32), jnp.float32(AXIAL))
    assert {leaf.dtype for leaf in jax.tree.leaves(eqx.filter(single, eqx.is_inexact_array))} == {jnp.dtype("float32")}


def test_what_follows_may_lead_a_rotor():
    """Of a finger that follows another one: the rotor follows the first."""
    builder = jdyn.Builder("hand")
    builder.add_link("left", jdyn.Prismatic((1, 0, 0)), mass=0.1, com=(0, 0, 0.1), inertia=1e-4)
    builder.add_link("right", jdyn.Prismatic((1, 0, 0)), mass=0.1, inertia=1e-4, mimic=jdyn.Mimic("left", -1.0, 0.2))
    model = builder.build()
    rotor = {"motor": jdyn.Rotor("left", "right", (0, 0, 1), 1e-5, 50.0)}
    found = jdyn.with_rotors(model, rotor)
    same = jdyn.with_rotors(model, {"motor": dataclasses.replace(rotor["motor"], joint="left", ratio=-50.0)})
    q = jnp.array([0.1])
    np.testing.assert_allclose(jdyn.mass_matrix(found, q), jdyn.mass_matrix(same, q), rtol=1e-14)
    np.testing.assert_allclose(found.expand(q)[-1], 50.0 * found.expand(q)[1], rtol=1e-14)


@pytest.mark.parametrize(
    ("rotor", "message"),
    [
        (("hull", "slide", (1, 0, 0), 0.1, 1.0), r"rotors: 'motor': .*hull"),
        (("base", "knee", (1, 0, 0), 0.1, 1.0), r"rotors: 'motor': .*knee"),
        (("base", "base", (1, 0, 0), 0.1, 1.0), r"joint 'base' is Free, with 6 degrees of freedom"),
        (("base", "slide", (1, 0), 0.1, 1.0), r"axis: expected shape \(3,\)"),
        (("base", "slide", (0, 0, 0), 0.1, 1.0), r"axis is zero"),
        (("base", "slide", (1, 0, 0), -0.1, 1.0), r"rotors: 'motor': .*inertia"),
        (("base", "slide", (1, 0, 0), 0.1, float("nan")), r"ratio"),
    ],
)
def test_what_cannot_be_is_refused(rotor, message):
    with pytest.raises(ValueError, match=message):
        jdyn.with_rotors(geared(False), {"motor": jdyn.Rotor(*rotor)})


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(ValueError, match=r"rotors: 'arm': 'geared' has a link, frame or joint of this name"):
        jdyn.with_rotors(geared(False), {"arm": jdyn.Rotor("base", "slide", (1, 0, 0), 0.1, 1.0)})
