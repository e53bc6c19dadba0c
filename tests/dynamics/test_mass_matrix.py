"""The mass matrix of batches, which goes number by number, against that of single configurations."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

EPS = float(np.finfo(np.float64).eps)
LANES = 3


def _fingers():
    """A chain with a joint that follows another."""
    builder = jdyn.Builder("fingers")
    body = {"mass": 1.3, "com": (0.1, -0.05, 0.2), "inertia": (0.05, 0.06, 0.07)}
    for i in range(4):
        mimic = jdyn.Mimic("b1", -0.7, 0.3) if i == 3 else None
        builder.add_link(f"b{i}", jdyn.Revolute((1, 0.1 * i, 0.5)), parent=f"b{i - 1}" if i else "world",
                         placement=(0.1, 0.2, 0.3), mimic=mimic, armature=0.1 * i, **body)  # fmt: skip
    return builder.build()


MODELS = {
    "slides": lambda: jdyn.random_tree(3, 3, kinds=(jdyn.Prismatic,)),
    "screws": lambda: jdyn.random_tree(3, 7, kinds=(jdyn.Revolute, jdyn.Prismatic, jdyn.Helical)),
    "free base": lambda: jdyn.random_tree(4, 7, kinds=(jdyn.Free, jdyn.Revolute, jdyn.Revolute)),
    "fingers": _fingers,
}


def _configurations(model):
    return jax.vmap(model.random)(jax.random.split(jax.random.key(0), LANES))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("slides", marks=pytest.mark.exhaustive),
        "screws",
        "free base",
        "fingers",
    ],
)
def test_batches_equal_single_configurations(name):
    """Of models that differ, with their derivatives; M comes out symmetric to the last bit."""
    model = MODELS[name]()
    q, e = _configurations(model), jax.random.normal(jax.random.key(1), (model.nv,))
    masses = jnp.linspace(0.5, 2.0, LANES)

    def with_tangent(mass, q):
        def near(mass, e):
            return jdyn.mass_matrix(
                model.with_body("b1" if name == "fingers" else "body1", mass=mass), model.integrate(q, e)
            )

        return jax.jvp(near, (mass, jnp.zeros_like(e)), (jnp.ones_like(mass), e))

    together = jax.jit(jax.vmap(with_tangent))(masses, q)
    single = jax.jit(with_tangent)
    np.testing.assert_array_equal(together[0], jnp.swapaxes(together[0], 1, 2))
    for lane in range(LANES):
        for found, exact in zip(together, single(masses[lane], q[lane]), strict=True):
            # Some dozen operations on the way from the first body to the last.
            assert np.max(np.abs(found[lane] - exact)) < 100 * EPS * np.max(np.abs(exact))


@pytest.mark.slow
def test_gradients_of_batches():
    model = MODELS["screws"]()
    q = _configurations(model)

    def loss(q):
        return jnp.sum(jnp.sin(jdyn.mass_matrix(model, q)))

    together = jax.jit(jax.vmap(jax.grad(loss)))(q)
    single = jax.jit(jax.grad(loss))
    for lane in range(LANES):
        np.testing.assert_allclose(together[lane], single(q[lane]), rtol=1e-11, atol=1e-12)


def test_float32_far_from_the_origin():
    """In a frame at the world's origin the moments of masses would leave nothing of their inertias."""
    model = jdyn.random_tree(3, 5, kinds=(jdyn.Revolute,), dtype=jnp.float32)
    place = model.placements.translation
    far = dataclasses.replace(model, placements=dataclasses.replace(model.placements, translation=place.at[0].add(1e4)))
    q = _configurations(model)
    mass_matrices = jax.jit(jax.vmap(jdyn.mass_matrix, (None, 0)))
    expected = mass_matrices(model, q)
    # A position of 1e4 is rounded by 1e-3, which bodies at hand's distance must not notice.
    np.testing.assert_allclose(mass_matrices(far, q), expected, atol=1e-2 * float(jnp.max(jnp.abs(expected))))
