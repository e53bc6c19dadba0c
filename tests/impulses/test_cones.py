"""Rigid contact by complementarity: conditions checked by arithmetic of this file, SciPy, a pivoting method, and closed
forms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from jax.test_util import check_grads

from jdyn.impulses import ADMM, ConeProblem, ContactMode, GaussSeidel

SOLVERS = {"ADMM": ADMM(), "Gauss-Seidel": GaussSeidel()}
G_EARTH = 9.81


@functools.cache
def solve(name):
    """Solutions of a batch of problems G, b, μ."""
    return jax.jit(jax.vmap(lambda *problem: SOLVERS[name].solve(ConeProblem(*problem))))


def random_problems(points, count, kind, frictionless=False):
    """G, b and μ of mechanisms with random Jacobians, and their M^(-1/2) Jᵀ. Often points outnumber coordinates."""
    rng = np.random.default_rng([points, len(kind)])
    roots, bs, frictions = [], [], []
    for _ in range(count):
        nv = rng.integers(1, 3 * points + 2)
        J = rng.normal(size=(3 * points, nv))
        if kind == "twice":
            J[3 * (points // 2) :] = J[: 3 * (points - points // 2)]
        root = J / np.sqrt(10.0 ** rng.uniform(-2, 2, nv) if kind == "masses" else np.ones(nv))
        roots.append(root.T)
        bs.append(J @ rng.normal(size=nv))
        frictions.append(rng.uniform(0, 1.5, points) * (rng.random(points) > 0.2) * (not frictionless))
    G = np.stack([root.T @ root for root in roots]).reshape(count, points, 3, points, 3)
    return (G, np.stack(bs).reshape(count, points, 3), np.stack(frictions)), roots


def worst_condition(G, b, friction, gamma):
    """The largest of what Signorini's and Coulomb's conditions leave, as speeds, relative to those of the problem."""
    w = np.einsum("iajb,jb->ia", G, gamma) + b
    mobility = np.einsum("iaia->i", G)
    size = np.abs(b).max() + np.einsum("iajb,jb->ia", np.abs(G), np.abs(gamma)).max()
    rubbing, slip = (np.linalg.norm(x[:, :2], axis=1) for x in (gamma, w))
    unmet = [
        -w[:, 2],
        -mobility * gamma[:, 2],
        np.minimum(mobility * gamma[:, 2], w[:, 2]),
        mobility * (rubbing - friction * gamma[:, 2]),
        # Friction takes as much power as it can from what slides.
        np.minimum(slip, mobility * np.abs(friction * gamma[:, 2] * slip + np.sum((gamma * w)[:, :2], 1)) /
                   np.where(slip > 0, slip, 1)),
    ]  # fmt: skip
    return np.max(unmet) / size


@pytest.mark.parametrize("kind", ["plain", "twice", "masses"])
@pytest.mark.parametrize("points", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_conditions_hold(points, kind):
    problems, _ = random_problems(points, 100, kind)
    found = solve("ADMM")(*problems)
    assert np.all(found.converged)
    assert max(map(worst_condition, *problems, np.array(found.gamma))) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ADMM", pytest.param("Gauss-Seidel", marks=pytest.mark.exhaustive)])
def test_ten_thousand_problems_are_solved_or_known_not_to_be(name):
    unsolved = 0
    for points, count in {1: 1000, 2: 1000, 4: 1000, 8: 333}.items():
        for kind in ("plain", "twice", "masses"):
            problems, _ = random_problems(points, count, kind)
            found = solve(name)(*problems)
            worst = np.array(list(map(worst_condition, *problems, np.array(found.gamma))))
            assert np.all(worst[np.array(found.converged)] < 1e-10)
            unsolved += np.sum(~found.converged)
    # Gauss-Seidel hardly comes nearer with mass ratios of 10⁴.
    assert unsolved <= {"ADMM": 2, "Gauss-Seidel": 50}[name]


@pytest.mark.parametrize("name", ["ADMM", pytest.param("Gauss-Seidel", marks=pytest.mark.slow)])
def test_without_friction_it_is_scipys_least_squares(name):
    """½ |M^(-1/2) Jᵀ γ + M^(1/2) v|² is smallest with γ ≥ 0, by the active sets of Lawson and Hanson."""
    problems, roots = random_problems(4, 60, "plain", frictionless=True)
    found = solve(name)(*problems)
    assert np.all(found.converged)
    for root, b, w in zip(roots, problems[1], np.array(found.velocity), strict=True):
        v = np.linalg.lstsq(root.T, b.ravel(), rcond=None)[0]
        pushes, _ = scipy.optimize.nnls(root[:, 2::3], -v)
        np.testing.assert_allclose(w, (root.T @ (v + root[:, 2::3] @ pushes)).reshape(-1, 3), rtol=0, atol=1e-9)


def lemke(M, q):
    """z ≥ 0 with M z + q ≥ 0 and z · (M z + q) = 0, by Lemke's pivots; None at a ray."""
    n = len(q)
    if np.all(q >= 0):
        return np.zeros(n)
    table = np.hstack([np.eye(n), -M, -np.ones((n, 1)), q[:, None]])
    basis = np.arange(n)
    row, entering = int(np.argmin(q)), 2 * n
    for _ in range(200):
        table[row] /= table[row, entering]
        others = np.arange(n) != row
        table[others] -= np.outer(table[others, entering], table[row])
        leaving, basis[row] = basis[row], entering
        if leaving == 2 * n:
            z = np.zeros(2 * n + 1)
            z[basis] = table[:, -1]
            return z[n : 2 * n]
        entering = (leaving + n) % (2 * n)
        column = table[:, entering]
        if not np.any(column > 1e-11):
            return None
        ratios = np.where(column > 1e-11, table[:, -1] / np.where(column > 1e-11, column, 1), np.inf)
        ties = np.flatnonzero(ratios <= ratios.min() + 1e-12)
        row = next((i for i in ties if basis[i] == 2 * n), int(ties[0]))
    return None


def test_in_a_plane_it_is_lemkes_method():
    """Friction in a plane is linear complementarity: unknowns are γₙ, γ₊, γ₋ and the speed of sliding of each point."""
    rng, compared = np.random.default_rng(5), 0
    for points in (1, 3):
        J = np.zeros((40, points, 3, 6))
        J[:, :, ::2] = rng.normal(size=(40, points, 2, 6))
        # One mobility across the plane, where nothing moves.
        G = np.einsum("sian,sjbn->siajb", J, J) + np.einsum("ij,ab->iajb", np.eye(points), np.diag([0.0, 1.0, 0.0]))
        b, friction = np.einsum("sian,sn->sia", J, rng.normal(size=(40, 6))), rng.uniform(0, 0.4, (40, points))
        found = solve("ADMM")(G, b, friction)
        assert np.all(found.converged)
        for each in range(40):
            T, N = (np.eye(3 * points)[i::3] for i in (0, 2))
            g, mu, one = G[each].reshape(3 * points, -1), np.diag(friction[each]), np.eye(points)
            rows, none = np.vstack([N, T, -T]), np.zeros((points, points))
            M = np.block([[rows @ g @ rows.T, np.vstack([none, one, one])], [mu, -one, -one, none]])
            z = lemke(M, np.append(rows @ b[each].ravel(), np.zeros(points)))
            if z is not None:
                compared += 1
                w = g @ (rows.T @ z[: 3 * points]) + b[each].ravel()
                np.testing.assert_allclose(found.velocity[each].ravel(), w, rtol=0, atol=1e-9)
    assert compared > 70


def table(legs, mass=3.0):
    """G and b of a step of 1 s of a table with legs at places in the plane, under its weight."""
    inertia = np.diag([0.2, 0.3, 0.4])
    J = np.stack([np.hstack([-_cross(np.append(leg, -0.5)), np.eye(3)]) for leg in legs])
    minv = np.linalg.inv(np.block([[inertia, np.zeros((3, 3))], [np.zeros((3, 3)), mass * np.eye(3)]]))
    G = np.einsum("ian,nm,jbm->iajb", J, minv, J)
    return G, np.tile([0.0, 0.0, -G_EARTH], (len(legs), 1)), mass * G_EARTH


def _cross(x):
    return np.cross(np.eye(3), x).T * -1.0


@pytest.mark.parametrize("friction", [0.0, 0.7])
def test_four_legs_share_a_load_least(friction):
    """λ = Aᵀ (A Aᵀ)⁻¹ (weight, moments): least-norm, where three legs alone would do."""
    legs = np.array([[0.4, 0.3], [-0.5, 0.3], [-0.4, -0.3], [0.4, -0.2]])
    G, b, weight = table(legs)
    found = solve("ADMM")(G[None], b[None], np.full((1, 4), friction))
    assert np.all(found.converged)
    A = np.vstack([np.ones(4), legs.T])
    expected = A.T @ np.linalg.solve(A @ A.T, [weight, 0, 0])
    np.testing.assert_allclose(found.gamma[0, :, 2], expected, rtol=1e-9)
    np.testing.assert_allclose(np.sum(found.gamma[0], axis=0), [0, 0, weight], rtol=1e-11, atol=1e-9)
    assert np.all(found.mode == (ContactMode.STICKS if friction else ContactMode.SLIDES))


@pytest.mark.parametrize("heavy_on_top", [False, True])
def test_a_column_bears_all_above_it(heavy_on_top):
    """Ten blocks of masses from 10⁻⁴ to 10⁴ kg, one on the other, to the condition of the matrix."""
    masses = 10.0 ** np.linspace(-4, 4, 10)[:: 1 if heavy_on_top else -1]
    J = np.eye(10) - np.eye(10, k=-1)
    G = np.einsum("in,jn,ab->iajb", J / masses, J, np.eye(3))
    b = np.einsum("in,n,a->ia", J, np.full(10, -G_EARTH), [0, 0, 1])
    found = solve("ADMM")(G[None], b[None], np.full((1, 10), 0.5))
    assert np.all(found.converged)
    rounding = np.finfo(float).eps * np.linalg.cond(G.reshape(30, 30))
    np.testing.assert_allclose(found.gamma[0, :, 2], G_EARTH * np.cumsum(masses[::-1])[::-1], rtol=rounding)


def test_what_cannot_be_is_told():
    """A point that no impulse moves, and that goes into the other."""
    found = solve("ADMM")(np.zeros((1, 1, 3, 1, 3)), np.array([[[0.0, 0.0, -1.0]]]), np.array([[0.5]]))
    assert not np.any(found.converged)


def test_single_precision():
    problems, _ = random_problems(3, 100, "plain")
    found = solve("ADMM")(*(x.astype(np.float32) for x in problems))
    assert np.all(found.converged)
    assert found.gamma.dtype == np.float32
    # √ of the tolerance where impulses hold a slow slip.
    assert max(map(worst_condition, *problems, np.array(found.gamma, float))) < 1e-3


def slid(speed, slope, friction):
    """Velocity of a block of two points, one behind the other, after 1 s on a slope."""
    free = jnp.stack([speed + G_EARTH * jnp.sin(slope), jnp.zeros(()), -G_EARTH * jnp.cos(slope)])
    G = jnp.einsum("ij,ab->iajb", jnp.ones((2, 2)), jnp.eye(3))
    found = ADMM().solve(ConeProblem(G, jnp.tile(free, (2, 1)), jnp.stack([friction, friction])))
    return found.velocity[0]


@pytest.mark.slow
def test_a_sliding_block_does_not_rise_and_has_exact_derivatives():
    """It is slowed by μ g cos, however the points share its weight: v = v₀ + g sin − μ g cos, of any order."""
    values = jnp.array(12.0), jnp.array(0.3), jnp.array(0.2)
    speed, slope, mu = map(float, values)
    down, across = G_EARTH * np.sin(slope), G_EARTH * np.cos(slope)
    v = jax.jit(slid)(*values)
    np.testing.assert_allclose(v, [speed + down - mu * across, 0, 0], rtol=1e-12, atol=1e-11)
    first = jax.jit(jax.jacrev(slid, (0, 1, 2)))(*values)
    np.testing.assert_allclose([x[0] for x in first], [1, across + mu * down, -across], rtol=1e-9)
    second = jax.jit(jax.jacfwd(jax.jacfwd(slid, 1), (1, 2)))(*values)
    np.testing.assert_allclose([x[0] for x in second], [-down + mu * across, down], rtol=1e-8)
    check_grads(slid, values, order=1, modes=["fwd", "rev"], rtol=1e-6)


def test_a_held_block_has_no_derivative_and_no_nan():
    """Friction that holds takes what comes; so it does at rest, without any load."""
    held = jax.jit(jax.jacrev(slid, (0, 1, 2)))(jnp.array(0.0), jnp.array(0.1), jnp.array(0.5))
    np.testing.assert_allclose(np.stack(held), 0, atol=1e-10)

    def idle(scale):
        problem = ConeProblem(jnp.eye(3)[None, :, None], scale * jnp.array([[0.0, 0.0, 1.0]]), jnp.array([0.5]))
        return jnp.sum(ADMM().solve(problem).gamma)

    assert jax.grad(idle)(1.0) == 0 == idle(0.0)


def test_margins_tell_how_near_another_mode_is():
    """One point held by friction: it slips when what rubs on it exceeds μ times what presses."""

    def solution(rubbing):
        problem = ConeProblem(jnp.eye(3)[None, :, None], jnp.array([[rubbing, 0.0, -1.0]]), jnp.array([0.5]))
        return ADMM().solve(problem)

    found = jax.jit(jax.vmap(solution))(jnp.array([0.3, 0.499, 0.5, 0.501, 0.9]))
    np.testing.assert_array_equal(found.mode[:, 0] == ContactMode.SLIDES, [False, False, False, True, True])
    assert found.margin[2, 0] < 1e-15
    assert found.margin[1, 0] < 1e-3 < found.margin[0, 0]
    assert found.margin[3, 0] < 1e-3 < found.margin[4, 0]
