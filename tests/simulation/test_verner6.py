"""A pair of orders 6 and 5 with dense output: conditions of order, stability, and motion of a pendulum."""

import math
from collections import Counter

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.simulation.manifold import plus, weighted
from jdyn.simulation.solvers import verner6
from jdyn.simulation.solvers.tableau import Interpolation
from tests.simulation.rooted_trees import forests

pytestmark = pytest.mark.fast_compile

METHOD = verner6.TABLEAU
SHARES = np.linspace(0, 1, 101)


def trees(order):
    """Rooted trees with so many nodes; each is the tuple of its children."""
    return forests(order - 1, trees)


def nodes(tree):
    return 1 + sum(map(nodes, tree))


def density(tree):
    return nodes(tree) * math.prod(map(density, tree))


def symmetry(tree):
    return math.prod(symmetry(child) ** many * math.factorial(many) for child, many in Counter(tree).items())


def of_stages(tree, alpha):
    return math.prod((alpha @ of_stages(child, alpha) for child in tree), start=np.ones(len(alpha)))


def errors(tableau, weights, order, share=1.0):
    """Of elementary differentials, as they stand in the error of a step."""
    return np.array([
        (weights @ of_stages(tree, tableau.alpha) - share**order / density(tree)) / symmetry(tree)
        for tree in trees(order)
    ])  # fmt: skip


def along(tableau, order):
    """Norms of the errors of dense output along a step."""
    powers = SHARES[:, None] ** np.arange(1, len(tableau.dense) + 1)
    return [
        np.linalg.norm(errors(tableau, p @ tableau.dense, order, share))
        for p, share in zip(powers, SHARES, strict=True)
    ]


def test_conditions_of_order():
    assert [len(trees(order)) for order in range(1, 8)] == [1, 1, 2, 4, 9, 20, 48]
    embedded = METHOD.b - METHOD.error
    for order in range(1, 7):
        assert np.max(np.abs(errors(METHOD, METHOD.b, order))) < 1e-14, order
    for order in range(1, 6):
        assert np.max(np.abs(errors(METHOD, embedded, order))) < 1e-14, order
    # An error of order 6 that the estimate sees, and small ones of the method, beside 2.1e-3 and 2.9e-3 of Tsit5.
    assert 5e-4 < np.linalg.norm(errors(METHOD, embedded, 6)) < 6e-4
    assert np.linalg.norm(errors(METHOD, METHOD.b, 7)) < 2e-5
    assert np.linalg.norm(errors(METHOD, METHOD.b, 8)) < 1e-4


def test_the_last_two_stages_are_at_the_end_of_the_step():
    """The last one at the state of the end, so that it is the first of the next step."""
    np.testing.assert_allclose(METHOD.alpha[-2:].sum(1), 1, atol=1e-15)
    np.testing.assert_array_equal(METHOD.alpha[-1], METHOD.b)
    np.testing.assert_array_equal(np.triu(METHOD.alpha), 0)
    assert METHOD.b[-1] == 0


def test_dense_output():
    """Order 4 everywhere, nearly order 6, and smooth from step to step."""
    for order in range(1, 5):
        assert max(along(METHOD, order)) < 1e-13, order
    # Beside 7.8e-4 and 2.0e-3 of Tsit5.
    assert max(along(METHOD, 5)) < 1e-4
    assert max(along(METHOD, 6)) < 6e-5
    powers = np.arange(1, len(METHOD.dense) + 1)
    for weights, wanted in ((METHOD.dense.sum(0), METHOD.b), (METHOD.dense[0], np.eye(9)[0]),
                            (powers @ METHOD.dense, np.eye(9)[-1])):  # fmt: skip
        np.testing.assert_allclose(weights, wanted, atol=1e-12)


def test_stability():
    """|R| ≤ 1 for real h λ down to −4.4, and nearly so on the imaginary axis up to 3."""

    def growth(z):
        stages = np.linalg.solve(np.eye(9) - z * METHOD.alpha, np.ones(9))
        return abs(1 + z * METHOD.b @ stages)

    assert max(growth(-x) for x in np.linspace(0, 4.4, 441)) <= 1
    assert growth(-4.42) > 1
    assert max(growth(1j * y) for y in np.linspace(0, 1, 101)) < 1 + 1e-5


def swing(tableau, duration, count, dtype=jnp.float64):
    """A pendulum's state after so many steps, and the dense output of the last one."""
    y, h = jnp.array([1.0, 0.5], dtype), duration / count
    for _ in range(count):
        start, k = y, jnp.zeros((len(tableau.b), 2), dtype)
        for i, alpha in enumerate(tableau.alpha):
            u = plus(start, alpha, k)
            k = k.at[i].set(h * jnp.stack([u[1], -jnp.sin(u[0])]))
        y = plus(start, tableau.b, k)
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)
    return y, Interpolation(t0=zero, t1=one, y0=start, bends=weighted(tableau.dense, k))


def test_order():
    exact = swing(METHOD, 2.0, 64)[0]
    errors = [np.linalg.norm(swing(METHOD, 2.0, count)[0] - exact) for count in (6, 12, 24)]
    orders = -np.diff(np.log2(errors))
    assert np.all(np.abs(orders - 6) < 0.5), orders


def test_dense_output_between_the_ends():
    """A tenth of the error of Tsit5 in the same step."""
    h, shares = 0.6, jnp.array([0.2, 0.4, 0.6, 0.8])
    exact = jnp.stack([swing(METHOD, share * h, 8)[0] for share in shares])
    ours = jnp.stack([swing(METHOD, h, 1)[1].evaluate(share) for share in shares])
    theirs = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -jnp.sin(y[0])])), diffrax.Tsit5(), 0.0, h, h,
        jnp.array([1.0, 0.5]), saveat=diffrax.SaveAt(ts=shares * h), stepsize_controller=diffrax.ConstantStepSize(),
    ).ys  # fmt: skip
    assert theirs is not None
    errors = [np.max(np.linalg.norm(found - exact, axis=1)) for found in (ours, theirs)]
    assert errors[0] < errors[1] / 10, errors


def test_single_precision():
    exact = swing(METHOD, 2.0, 20)[0]
    found = swing(METHOD, 2.0, 20, jnp.float32)[0]
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, exact, atol=5e-7)
