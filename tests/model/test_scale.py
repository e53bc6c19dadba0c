"""Scaled mechanisms move as the original ones do, larger and slower."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

LENGTH, MASS, TIME = 3.0, 5.0, 0.7


def mechanism():
    """Joints of all kinds with all that acts in them, and one that slides as another one turns."""
    builder, parent = jdyn.Builder("all"), "world"
    joints = {
        "free": jdyn.Free(), "turn": jdyn.Revolute((0, 1, 0)), "slide": jdyn.Prismatic((1, 0, 1)),
        "screw": jdyn.Helical((0, 0, 1), 0.1), "ball": jdyn.Ball(), "planar": jdyn.Planar((0, 0, 1), (1, 0, 0)),
        "universal": jdyn.Universal((1, 0, 0), (0, 1, 0)),
    }  # fmt: skip
    passive = {"damping": 0.3, "friction": 0.2, "friction_speed": 0.1, "stiffness": 2.0, "armature": 0.4}
    for i, (name, joint) in enumerate(joints.items()):
        rest = (
            {"rest": (0.1, 0.2, 0.3, 0.6, 0, 0.8, 0)}
            if name == "free"
            else {}
            if joint.nq != joint.nv
            else {"rest": 0.1 * i, "lower": -1.0, "upper": 1.5}
        )
        builder.add_link(name, joint, parent=parent, placement=jdyn.pose((0.1, 0.2 * i, 0.3), (0.1, i, 0.2)),
                         mass=1 + i, com=(0.1, 0, 0.2), inertia=(0.2, 0.3, 0.4), **passive, **rest)  # fmt: skip
        parent = name
    builder.add_link("rack", jdyn.Prismatic((0, 0, 1)), parent="turn", mimic=jdyn.Mimic("turn", 0.2, 0.1), mass=1.0)
    builder.add_frame("tip", parent, (0.1, 0.2, 0.3))
    builder.add_shape(parent, "box", (0.1, 0.2, 0.3), placement=(0.1, 0, 0))
    return builder.build()


def units(model):
    """Factors of q, v and generalized forces."""
    slides = np.array([motion == "slide" for kind in model.topology.kinds for motion in kind.motions])
    slides = slides[list(model.topology.independent_v)]
    flat = np.delete(np.array(slides), np.arange(6))
    names = model.topology.q_names
    q = np.array([name.startswith(("free[0", "free[1", "free[2", "slide", "planar[0", "planar[1")) for name in names])
    assert q[7:].sum() == flat.sum()
    unit = np.where(slides, LENGTH, 1.0)
    return np.where(q, LENGTH, 1.0), unit / TIME, MASS * (LENGTH / TIME) ** 2 / unit


@pytest.mark.slow
def test_every_number_changes_by_its_unit():
    model = mechanism()
    large = jdyn.scale(model, length=LENGTH, mass=MASS, time=TIME)
    of_q, of_v, of_tau = units(model)
    rng = np.random.default_rng(0)
    q, v, tau = model.random(jax.random.key(0)), *(jnp.asarray(rng.normal(size=model.nv)) for _ in range(2))
    state = q * of_q, v * of_v
    a = jdyn.forward_dynamics(large, *state, tau * of_tau)
    np.testing.assert_allclose(a, jdyn.forward_dynamics(model, q, v, tau) * of_v / TIME, rtol=1e-11)
    energy = MASS * (LENGTH / TIME) ** 2
    for function, arguments in ((jdyn.kinetic_energy, (q, v)), (jdyn.potential_energy, (q,))):
        scaled = function(large, *state[: len(arguments)])
        np.testing.assert_allclose(scaled, energy * function(model, *arguments), rtol=1e-12)
    where, there = (jdyn.frame_pose(m, x, "tip") for m, x in ((model, q), (large, state[0])))
    np.testing.assert_allclose(there.translation, LENGTH * where.translation, rtol=1e-12)
    np.testing.assert_allclose(large.limits.upper[:7], jnp.inf)
    for limit, factor in (("lower", of_q), ("upper", of_q), ("velocity", of_v), ("effort", of_tau)):
        own = {"lower": model.topology.independent_q, "upper": model.topology.independent_q}.get(
            limit, model.topology.independent_v
        )
        old, new = (getattr(m.limits, limit)[np.array(own)] for m in (model, large))
        np.testing.assert_allclose(new, old * factor, rtol=1e-12)
    np.testing.assert_allclose(large.shapes.sizes, LENGTH * model.shapes.sizes)
    np.testing.assert_allclose(large.gravity, model.gravity * LENGTH / TIME**2)


def test_the_period_of_a_pendulum_grows_with_the_root_of_its_length():
    rod, lengths = jdyn.load("pendulum"), jnp.array([1.0, 4.0, 9.0])

    @jax.vmap
    def frequency(length):
        large = jdyn.scale(rod, length=length, mass=length**3)
        M, K = jdyn.mass_matrix(large, jnp.zeros(1)), jax.jacfwd(jdyn.gravity_forces, 1)(large, jnp.zeros(1))
        return jnp.sqrt(K[0, 0] / M[0, 0])

    found = frequency(lengths)
    np.testing.assert_allclose(found * jnp.sqrt(lengths), found[0], rtol=1e-14)
    np.testing.assert_array_equal(jdyn.scale(rod, length=4.0).gravity, rod.gravity)


def test_scaling_back_gives_the_same_numbers():
    model = mechanism()
    back = jdyn.scale(
        jdyn.scale(model, length=LENGTH, mass=MASS, time=TIME), length=1 / LENGTH, mass=1 / MASS, time=1 / TIME
    )
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12), model, back)


def test_what_cannot_be_scaled_says_why():
    rod = jdyn.load("pendulum")
    for factors, words in (
        ({"length": 0.0}, "length is 0.0, expected a positive number"),
        ({"mass": -1.0}, "mass is"),
        ({"time": jnp.inf}, "time is"),
        ({"length": jnp.ones(2)}, "length: expected a scalar"),
    ):
        with pytest.raises(ValueError, match=words):
            jdyn.scale(rod, **factors)


def test_friction_of_pairs_has_lengths():
    """Torsional and rolling friction are lengths, also where a pair of shapes states them."""
    model = mechanism()
    friction = jnp.array([[0.5, 0.1, 0.2]])
    shapes = dataclasses.replace(model.shapes, stated=(("ball", "wall"),), stated_friction=friction)
    large = jdyn.scale(dataclasses.replace(model, shapes=shapes), length=LENGTH)
    np.testing.assert_allclose(large.shapes.stated_friction, [[0.5, 0.1 * LENGTH, 0.2 * LENGTH]], rtol=1e-15)
