"""Products of matrices are in full precision on every device: as the programs say, since processors know no other."""

import re

import jax
import jax.numpy as jnp
import pytest

import jdyn
from jdyn.execution import lane_refill

FUNCTIONS = {
    "forward dynamics": jdyn.forward_dynamics,
    "forward dynamics by CRBA": lambda *x: jdyn.forward_dynamics(*x, method=jdyn.CRBA()),
    "inverse dynamics": jdyn.inverse_dynamics,
    "mass matrix": lambda model, q, v, tau: jdyn.mass_matrix(model, q),
    "derivatives": jdyn.forward_dynamics_derivatives,
    "bodies": lambda model, q, v, tau: (jdyn.forward_kinematics(model, q), jdyn.body_velocities(model, q, v)),
}


def _tangents(function):
    return lambda *x: jax.jvp(function, x, jax.tree.map(jnp.ones_like, x))


def _gradient(function):
    return jax.grad(lambda *x: sum(jnp.sum(y) for y in jax.tree.leaves(function(*x))), argnums=(0, 1, 2))


@pytest.mark.parametrize(
    "of",
    [
        lambda f: f,
        pytest.param(_tangents, marks=pytest.mark.exhaustive),
        pytest.param(_gradient, marks=pytest.mark.slow),
    ],
    ids=["value", "tangents", "gradient"],
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_product_is_left_to_the_device(name, of):
    model = jdyn.random_tree(4, 3, kinds=(jdyn.Free, jdyn.Revolute, jdyn.Revolute), dtype=jnp.float32)
    single = of(lambda *state: FUNCTIONS[name](model, *state))
    for function, shape in ((single, ()), (jax.vmap(single), (3,))):
        state = [jax.ShapeDtypeStruct((*shape, size), jnp.float32) for size in (model.nq, model.nv, model.nv)]
        assert_precise(function, *state)


def assert_precise(function, *operands):
    lowered = jax.jit(function).lower(*operands).as_text()
    products = re.findall(r"stablehlo\.dot_general.*", lowered)
    # Kernels of a GPU are in C++, whose products are precise.
    assert products or "gpu.ptx" in lowered
    assert not [x for x in products if "precision = [HIGHEST, HIGHEST]" not in x]


CONTACTS = {"free": None, "compliant": jdyn.CompliantContact(), "convex": jdyn.ConvexContact()}


def simulation(contact):
    """A simulation by its start, and what has the shapes of batches of starts."""
    model = jdyn.with_ground(jdyn.load("box", dtype=jnp.float32))

    def motion(q, v, t1):
        return jdyn.simulate(model, q, v, t1, contact=CONTACTS[contact], max_steps=64).q

    def starts(*lanes):
        return [jax.ShapeDtypeStruct((*lanes, *size), jnp.float32) for size in ((model.nq,), (model.nv,), ())]

    return motion, starts


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a batch runs slower")
@pytest.mark.parametrize(
    ("contact", "of"),
    [
        ("free", lambda f: f),
        ("convex", lambda f: f),
        ("compliant", lambda f: f),
        pytest.param("convex", _gradient, marks=pytest.mark.exhaustive),
        pytest.param("compliant", _gradient, marks=pytest.mark.exhaustive),
        pytest.param("free", _gradient, marks=pytest.mark.exhaustive),
    ],
)
def test_no_product_of_a_simulation_is_left_to_the_device(contact, of):
    """JAX traces batches of simulations after the functions around them have ended."""
    motion, starts = simulation(contact)
    single = of(motion)
    assert_precise(single, *starts())
    assert_precise(jax.vmap(single), *starts(3))
    assert_precise(jax.vmap(jax.vmap(single)), *starts(2, 3))


@pytest.mark.parametrize(
    "contact", ["free", *(pytest.param(contact, marks=pytest.mark.slow) for contact in ("compliant", "convex"))]
)
def test_no_product_is_left_to_the_device_where_a_kernel_would_be_too_long(contact, monkeypatch):
    """What runs instead is traced when it is lowered: on a processor as on a GPU that has no kernel."""
    monkeypatch.setattr(lane_refill, "threaded", lambda: True)
    motion, starts = simulation(contact)
    assert_precise(jax.vmap(motion), *starts(3))
    jax.clear_caches()


def test_no_product_of_distances_is_left_to_the_device():
    model = jdyn.load("gripper", dtype=jnp.float32)
    for function, shape in ((jdyn.contact.distances, ()), (jax.vmap(jdyn.contact.distances, (None, 0)), (3,))):
        assert_precise(function, model, jax.ShapeDtypeStruct((*shape, model.nq), jnp.float32))
