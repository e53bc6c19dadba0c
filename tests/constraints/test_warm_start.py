"""Multipliers by conjugate gradients, from what is known of a state nearby."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.constraints import acceleration
from jdyn.impulses import WarmStart
from tests.errors import relative_error, tol
from tests.reference import mechanisms

pytestmark = pytest.mark.fast_compile

# 18 rows, of which a third says nothing, as the joints keep everything in the plane.
BARS, LOOPS, SIGNS = mechanisms.four_bars(6)
Q, V = jnp.asarray(SIGNS * 1.2), jnp.asarray(-SIGNS)
TREE = jdyn.random_tree(3, 7, kinds=(jdyn.Ball, jdyn.Revolute, jdyn.Prismatic, jdyn.Universal, jdyn.Free))
B = TREE.body_names
# 9 rows, none of which follows from others.
TIES = [
    jdyn.constraints.Connect(B[-1], B[2], point_a=(0.1, 0.2, 0.3)),
    jdyn.constraints.Hinge(B[-2], "world", axis_a=(1, 2, 3), axis_b=(0, 1, 2)),
    jdyn.constraints.Distance(B[1], B[5], length=1.3),
]


def states(model):
    """One, and one nearby, with forces."""
    keys = jax.random.split(jax.random.key(0), 3)
    q, v, tau = model.random(keys[0]), *jax.random.normal(keys[1], (2, model.nv))
    return q, model.integrate(q, 0.01 * v), v, tau


@pytest.mark.slow
@pytest.mark.exhaustive
def test_equals_elimination():
    q, near, v, tau = states(TREE)
    expected = jdyn.constrained_dynamics(TREE, TIES, near, v, tau)
    found = jdyn.constrained_dynamics(TREE, TIES, near, v, tau, warm_start=jdyn.constraints.warm_start(TREE, TIES, q))
    # Conditions of the mass and the Delassus matrix, times rounding.
    assert relative_error(found.a, expected.a) < 1e-10
    assert relative_error(found.multipliers, expected.multipliers) < 1e-10
    assert 0 < found.iterations < 18 and expected.iterations == 0


@pytest.mark.slow
def test_the_factors_of_a_state_nearby_save_iterations_and_its_forces_hardly_any():
    """The start that Vereshchagin 1974 proposes, and one with the matrix of the step before."""
    before = jdyn.constrained_dynamics(BARS, LOOPS, Q - 1e-2 * V, V, 0 * V)
    expected = jdyn.constrained_dynamics(BARS, LOOPS, Q, V, 0 * V)
    factors = jdyn.constraints.warm_start(BARS, LOOPS, Q - 1e-2 * V).inverse
    alone = jnp.eye(len(factors))

    def iterations(inverse, multipliers):
        start = WarmStart(inverse, jnp.ones(()), multipliers)
        found = jdyn.constrained_dynamics(BARS, LOOPS, Q, V, 0 * V, warm_start=start)
        assert relative_error(found.a, expected.a) < 1e-12
        return int(found.iterations)

    cold, guess = iterations(alone, None), iterations(alone, before.multipliers)
    known, both = iterations(factors, None), iterations(factors, before.multipliers)
    # Of 12 independent rows, each of which takes one in exact arithmetic, or none by symmetry.
    assert 10 <= guess <= cold <= 12
    assert both <= known <= 8
    assert iterations(factors, expected.multipliers) == 0


def test_a_start_that_says_nothing_gives_nan():
    start = WarmStart(jnp.zeros((18, 18)), jnp.ones(()))
    found = jdyn.constrained_dynamics(BARS, LOOPS, Q, V, 0 * V, warm_start=start)
    assert np.all(np.isnan(found.a)) and np.all(np.isnan(found.multipliers))


@pytest.mark.exhaustive
def test_derivatives_are_those_of_elimination():
    tree = jdyn.random_tree(1, 3, kinds=(jdyn.Ball, jdyn.Revolute))
    first, _, last = tree.body_names
    ties = [
        jdyn.constraints.Distance(first, "world", 1.3, point_a=(1, 0, 0)),
        jdyn.constraints.Distance(last, "world", 0.8, point_a=(0, 2, 3)),
    ]
    q, near, v, tau = states(tree)
    start = jdyn.constraints.warm_start(tree, ties, q)

    def value(warm_start, mass, dq, v):
        model = tree.with_body(last, mass=mass)
        found = jdyn.constrained_dynamics(model, ties, model.integrate(near, dq), v, tau, warm_start=warm_start)
        return jnp.sum(jnp.sin(found.a)) + jnp.sum(found.multipliers**2)

    point = jnp.asarray(1.3), jnp.zeros(tree.nv), v
    ways = []
    for known in (start, None):
        gradient = jax.grad(functools.partial(value, known), (0, 1, 2))
        ways.append(jax.jit(lambda *p, gradient=gradient: jax.jvp(gradient, p, jax.tree.map(jnp.ones_like, p)))(*point))
    for found, expected in zip(*map(jax.tree.leaves, ways), strict=True):
        assert relative_error(found, expected) < 1e-9


@pytest.mark.slow
@pytest.mark.exhaustive
def test_lanes_and_single_precision():
    bars, loops = jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, (BARS, LOOPS))
    angles = jnp.linspace(0.4, 1.5, 5)
    q, v = jnp.outer(angles, SIGNS), jnp.broadcast_to(V, (5, len(V)))
    expected = jax.vmap(lambda q, v: jdyn.constrained_dynamics(BARS, LOOPS, q, v, 0 * v).a)(q, v)

    def warm(q, v):
        start = jdyn.constraints.warm_start(bars, loops, q - 1e-2 * v)
        return jdyn.constrained_dynamics(bars, loops, q, v, 0 * v, warm_start=start)

    found = jax.jit(jax.vmap(warm))(q.astype(jnp.float32), v.astype(jnp.float32))
    assert found.a.dtype == jnp.float32
    # Rows are met to 8 roundings, which the condition of the Delassus matrix, about 10, and states' rounding magnify.
    assert relative_error(found.a, expected) < tol(jnp.float32, condition=10)
    assert np.all(found.iterations <= 6)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_simulations_with_many_rows(monkeypatch):
    """They iterate from the start of each step; motion and gradients are those of elimination."""

    def end(speed):
        motion = jdyn.simulate(BARS, Q, speed * V, 0.3, constraints=LOOPS, saveat=[0.3])
        return motion.q[-1, 0] + jnp.sum(motion.v[-1]), motion.stats["accepted_steps"]

    both = []
    for many in (1, 1000):
        monkeypatch.setattr(acceleration, "MANY_ROWS", many)
        # Compiled anew.
        both.append(jax.value_and_grad(lambda speed: end(speed), has_aux=True)(1.0))
    ((found, steps), slope), ((expected, _), expected_slope) = both
    assert steps > 3
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-8)
