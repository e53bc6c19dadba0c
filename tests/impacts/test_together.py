"""Impacts at many points at once: energy and momentum, beside laws of one point and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.impacts import Frictionless, NewtonTogether, PoissonTogether

LAWS = {"Newton": NewtonTogether(), "Poisson": PoissonTogether()}
BATCHED = {name: jax.jit(jax.vmap(law)) for name, law in LAWS.items()}


def random_impacts(points, count, seed):
    """G and velocities of mechanisms with random Jacobians of as many coordinates as rows."""
    J = np.random.default_rng(seed).normal(size=(count, points, 3, 3 * points))
    v = np.random.default_rng(seed + 1).normal(size=(count, points, 3))
    return np.einsum("sian,sjbn->siajb", J, J), v


def work(G, v, p):
    """Change of ½ |v|² by M⁻¹ Jᵀ p."""
    return np.einsum("sia,sia->s", p, v) + np.einsum("sia,siajb,sjb->s", p, G, p) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_one_point_without_friction_is_as_by_all_laws(name):
    G, v = random_impacts(1, 50, 1)
    e = np.random.default_rng(3).uniform(size=(50, 1))
    found = BATCHED[name](G, v, e, np.zeros((50, 1)))
    alone = jax.vmap(Frictionless())(jnp.asarray(G[:, 0, :, 0]), jnp.asarray(v[:, 0]), jnp.asarray(e[:, 0]))
    np.testing.assert_allclose(found.velocity[:, 0], alone.velocity, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.work, alone.work, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_nothing_approaches_and_work_is_that_of_the_impulses(name):
    G, v = random_impacts(3, 200, 5)
    rng = np.random.default_rng(7)
    found = BATCHED[name](G, v, rng.uniform(size=(200, 3)), rng.uniform(size=(200, 3)))
    assert np.all(found.converged)
    p, after = (np.asarray(x) for x in (found.impulse, found.velocity))
    size = np.abs(p).max() * np.abs(G).max()
    np.testing.assert_allclose(after, v + np.einsum("siajb,sjb->sia", G, p), atol=1e-14 * size)
    np.testing.assert_allclose(found.work, work(G, v, p), atol=1e-14 * size * np.abs(p).max())
    assert after[..., 2].min() > -1e-9
    assert p[..., 2].min() >= 0


def test_poissons_makes_no_energy_without_friction_where_newtons_does():
    """Coefficients differ from point to point."""
    G, v = random_impacts(3, 500, 9)
    e, none = np.random.default_rng(11).uniform(size=(500, 3)), np.zeros((500, 3))
    gains = {name: BATCHED[name](G, v, e, none) for name in LAWS}
    size = {name: np.sum(np.abs(np.asarray(found.impulse) * v), (1, 2)) + 1e-30 for name, found in gains.items()}
    most = {name: np.max(np.asarray(found.work) / size[name]) for name, found in gains.items()}
    assert most["Poisson"] < 1e-10
    assert most["Newton"] > 1e-3


def test_a_ball_that_fills_a_gap_stays_by_poissons_law_and_has_no_answer_by_newtons():
    """It leaves one wall for the other, which it touches: it cannot leave that one with any speed."""
    n = np.array([1.0, -1.0])
    G = np.einsum("i,j,ab->iajb", n, n, np.diag([0.0, 0.0, 1.0]))
    v = np.zeros((1, 2, 3))
    v[0, :, 2] = -n
    blocked, stays = (BATCHED[name](G[None], v, np.full((1, 2), 0.5), np.zeros((1, 2))) for name in LAWS)
    assert not blocked.converged[0]
    assert stays.converged[0]
    np.testing.assert_allclose(stays.velocity, 0, atol=1e-12)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="G"):
        NewtonTogether()(np.eye(3), np.zeros((1, 3)))
