"""How exact the methods are, against 60-digit arithmetic on the same rounded data.

The exact solution is of a formulation of its own: the mass matrix of a chain of revolute joints by composite bodies,
the bias forces by Newton and Euler, and Gaussian elimination, all in numbers of 60 digits.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import jdyn
from jdyn.robots import prrr
from tests.drawn import drawn_states

mpmath.mp.dps = 60
exactly = np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])
EPS = float(np.finfo(np.float64).eps)
POWERS = range(7)
TURNS = np.linspace(0, 2 * np.pi, 36, endpoint=False)


def _cross(a):
    x, y, z = a
    return np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]])


def _block(a, b, c, d):
    return np.concatenate([np.concatenate([a, b], axis=1), np.concatenate([c, d], axis=1)])


def exact_accelerations(model, q, v, tau):
    """Of a chain of revolute joints without rotors, dampers, friction or springs."""
    zero, one = exactly(np.zeros((3, 3))), exactly(np.eye(3))
    axes = exactly(np.concatenate([joints.axis for joints in model.joints]))
    gravity = np.concatenate([zero[0], -exactly(model.gravity)])
    V, A, bodies = exactly(np.zeros(6)), gravity, []
    for i in range(model.nb):
        K, s, c = _cross(axes[i]), mpmath.sin(float(q[i])), mpmath.cos(float(q[i]))
        R = exactly(model.placements.rotation[i]) @ (one + s * K + (1 - c) * K @ K)
        X = _block(R.T, zero, -R.T @ _cross(exactly(model.placements.translation[i])), R.T)
        S = np.concatenate([axes[i], zero[0]])
        a, b, d, e, f, g = exactly(model.inertias.rotational[i])
        H = _cross(exactly(model.inertias.first_moment[i]))
        m = exactly(model.inertias.mass[i])
        I = _block(np.array([[a, b, e], [b, d, f], [e, f, g]]), H, H.T, m * one)
        V = X @ V + S * mpmath.mpf(float(v[i]))
        motion = _block(_cross(V[:3]), zero, _cross(V[3:]), _cross(V[:3]))
        A = X @ A + motion @ S * mpmath.mpf(float(v[i]))
        bodies.append((X, S, I, I @ A - motion.T @ I @ V))
    n = model.nb
    M, h = mpmath.matrix(n), mpmath.matrix(n, 1)
    composite, force = exactly(np.zeros((6, 6))), exactly(np.zeros(6))
    for i in reversed(range(n)):
        X, S, I, p = bodies[i]
        composite, force = composite + I, force + p
        h[i] = mpmath.mpf(float(tau[i])) - S @ force
        carried = composite @ S
        for j in reversed(range(i + 1)):
            M[i, j] = M[j, i] = bodies[j][1] @ carried
            carried = bodies[j][0].T @ carried
        composite, force = X.T @ composite @ X, X.T @ force
    return np.array(mpmath.lu_solve(M, h).tolist())[:, 0]


def error(a, exact):
    difference = exactly(a) - exact
    return float(mpmath.norm(difference) / mpmath.norm(exact))


@functools.cache
def two_links(power, dtype, moving):
    """The thesis' second case (section 5.2.1) and its exact accelerations over all angles of the second joint."""
    ratio = 10.0**power
    model = prrr(2, lengths=(1, ratio), masses=(1, ratio), dtype=dtype).with_gravity((0, 0, -9.8))
    q = jnp.asarray(np.stack([np.zeros(36), TURNS], axis=1), dtype)
    v, tau = (jnp.full((36, 2), x, dtype) for x in ((0.8, 0.3) if moving else (0.0, 0.0)))
    return model, q, v, tau, [exact_accelerations(model, *x) for x in zip(q, v, tau, strict=True)]


@functools.partial(jax.jit, static_argnames="method")
def _accelerations(method, model, q, v, tau):
    return jax.vmap(lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau, method=method))(q, v, tau)


def worst_error(method, power, dtype, moving=False):
    model, q, v, tau, exact = two_links(power, dtype, moving)
    a = _accelerations(method, model, q, v, tau)
    return max(error(*pair) for pair in zip(np.asarray(a), exact, strict=True))


def condition_number(power):
    model, q, *_ = two_links(power, jnp.float64, False)
    return max(np.linalg.cond(np.asarray(jax.vmap(lambda q: jdyn.mass_matrix(model, q))(q))))


# What the condition number κ of the mass matrix, 3e1 to 5e12 here, does to a method's error. The pivots of the first
# group are found without cancellation. In the second, what rounding leaves of a heavy body along its own joint is
# carried inward: a share ε of an inertia that is √κ times too large by its lever; iterations on M and reflections of
# its square root come out alike. In the third, M or something that holds as much is formed: equation (4.4) of the
# thesis. Centres of mass put GaussDP there: no axis of a heavy body is a coordinate axis of its inertia.
UNAFFECTED = [jdyn.ABA(), jdyn.ArrayABA()]
ROOT = [
    jdyn.studies.MatrixABA("textbook"),
    jdyn.ABA(bias="separate"),
    jdyn.studies.ModifiedABA(),
    jdyn.studies.ConjugateGradient(),
    jdyn.studies.ConjugateGradient(preconditioner="diagonal"),
    jdyn.studies.OrthogonalComplement("factored"),
]
PROPORTIONAL = [
    *(jdyn.CRBA(solver) for solver in ("cholesky", "lu", "gauss-jordan", "svd", "ltl")),
    jdyn.studies.MatrixABA("cancelling"),
    jdyn.studies.WalkerOrin(1),
    jdyn.studies.WalkerOrin(2),
    jdyn.studies.OrthogonalComplement("normal"),
    jdyn.studies.GibbsAppell(),
    jdyn.studies.GaussDP(),
]


@pytest.mark.slow
@pytest.mark.parametrize("moving", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("method", UNAFFECTED, ids=str)
def test_mass_ratios_leave_the_robust_methods_unaffected(method, moving):
    assert max(worst_error(method, power, jnp.float64, moving) for power in POWERS) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("moving", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_mass_ratios_leave_the_default_unaffected_in_single_precision(moving):
    assert max(worst_error(jdyn.ABA(), power, jnp.float32, moving) for power in POWERS) < 5e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", ROOT, ids=str)
def test_errors_that_grow_with_the_root_of_the_condition_number(method):
    for power in POWERS:
        assert worst_error(method, power, jnp.float64) < 8 * EPS * np.sqrt(condition_number(power))


@pytest.mark.slow
@pytest.mark.parametrize("method", PROPORTIONAL, ids=str)
def test_errors_that_grow_with_the_condition_number(method):
    """At most four times ε κ, and from a mass ratio of 100 on more than a hundredth of it, but for one lucky rounding;
    below, other roundings show as well."""
    shares = [worst_error(method, power, jnp.float64) / (EPS * condition_number(power)) for power in POWERS]
    assert max(shares) < 4
    assert sorted(shares[2:])[1] > 0.01


SCALES = {
    "random": np.ones,
    "alternating": lambda n: np.where(np.arange(n) % 2, 1e-4, 1.0),
    "heavy tip": lambda n: np.where(np.arange(n) == n - 1, 1e3, 1e-3),
}


def long_chain(n, seed, scales):
    """A random chain of revolute joints whose inertias are scaled, and a state of it, in single precision."""
    model = jdyn.random_tree(seed, n, kinds=(jdyn.Revolute,), reach=1, dtype=jnp.float32)
    s = jnp.asarray(SCALES[scales](n), jnp.float32)
    inertias = jax.tree.map(lambda x: x * s.reshape(-1, *[1] * (x.ndim - 1)), model.inertias)
    keys = jax.random.split(jax.random.key(seed), 3)
    state = model.random(keys[0]), *(jax.random.normal(key, (n,), jnp.float32) for key in keys[1:])
    return dataclasses.replace(model, inertias=inertias), state


def uniform_chain(n):
    """Equal links in a plane, bent."""
    keys = jax.random.split(jax.random.key(0), 3)
    q, v, tau = (jax.random.normal(key, (n,), jnp.float32) for key in keys)
    return prrr(n, widths=0.1, dtype=jnp.float32), (q, v, tau)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "seeds"), [(7, range(5)), pytest.param(100, range(2), marks=pytest.mark.exhaustive)])
def test_a_heavy_tip_in_single_precision(n, seeds):
    """Links of a gram carry a tonne: a mass ratio of 1e6."""
    for seed in seeds:
        model, state = long_chain(n, seed, "heavy tip")
        a = jdyn.forward_dynamics(model, *state, method=jdyn.ArrayABA())
        assert error(np.asarray(a), exact_accelerations(model, *state)) < 1e-4


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("chain", ["random", "alternating", "uniform"])
def test_hundred_links_in_single_precision(chain):
    for seed in range(2):
        model, state = uniform_chain(100) if chain == "uniform" else long_chain(100, seed, chain)
        assert error(np.asarray(jdyn.forward_dynamics(model, *state)), exact_accelerations(model, *state)) < 1e-5


@pytest.mark.slow
@pytest.mark.exhaustive
def test_random_states_of_a_hundred_links_in_single_precision():
    """Against float64 on the same rounded data. The textbook recursion is near 1e-4 here; with square roots of the
    inertias, too, the worst of some hundreds of states comes to 2e-5."""
    model = jdyn.random_tree(0, 100, kinds=(jdyn.Revolute,), reach=1, dtype=jnp.float32)
    double = model.astype(jnp.float64)

    def errors(states):
        state = drawn_states(double, states, dtype=jnp.float32)[:3]
        exact = _accelerations(jdyn.ABA(), double, *(x.astype(jnp.float64) for x in state))
        found = np.asarray(_accelerations(jdyn.ABA(), model, *state), float)
        return np.max(np.abs(found - exact), axis=1) / np.max(np.abs(exact), axis=1)

    assert np.max(errors(4)) < 1e-5
    many = errors(100)
    assert np.quantile(many, 0.9) < 1e-5 and np.max(many) < 5e-5


@pytest.mark.slow
@pytest.mark.parametrize("chain", ["random", "alternating", "uniform"])
def test_thousand_links_in_single_precision(chain):
    """Against double precision, whose two most exact methods agree."""
    model, state = uniform_chain(1000) if chain == "uniform" else long_chain(1000, 0, chain)
    double = (model.astype(jnp.float64), *(x.astype(jnp.float64) for x in state))
    exact, other = (np.asarray(jdyn.forward_dynamics(*double, method=method)) for method in UNAFFECTED)
    assert np.linalg.norm(other - exact) < 1e-9 * np.linalg.norm(exact)
    a = np.asarray(jdyn.forward_dynamics(model, *state), float)
    assert np.linalg.norm(a - exact) < 1e-4 * np.linalg.norm(exact)
