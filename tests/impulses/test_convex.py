"""The change of velocity that convex contact finds in one step, alone."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jdyn.contact.convex import LaggedContact, Turning
from jdyn.impulses import Convex, DenseJacobian, Friction, ImpulseProblem, JointFriction, Rows, UnitJacobian
from jdyn.impulses.convex import ConvexFunction

pytestmark = pytest.mark.fast_compile

COUNT, NV = 3, 6


class _Start(NamedTuple):
    """What laws are made of: velocities at points and in joints where the step begins, what points gain, and forces."""

    points: np.ndarray
    turning: np.ndarray
    joints: np.ndarray
    gained: np.ndarray
    force: np.ndarray
    dissipation: np.ndarray


def _start(seed):
    rng = np.random.default_rng(seed + 1000)
    gained = 0.3 * rng.normal(size=(2, COUNT, 3))
    points, turning = 0.2 * rng.normal(size=(2, COUNT, 3))
    force, dissipation = np.array([8.0, -5.0, 20.0]), np.array([0.5, 0.0, 2.0])
    return _Start(points, turning, 0.1 * rng.normal(size=NV), gained, force, dissipation)


def _motion(seed=0, slip=1e-3, stiffness=2e4):
    """Three points on six coordinates: of one the spring pushes, one is apart, one slides. Points and joints resist
    turning."""
    start = _start(seed)
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(COUNT, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    root = rng.normal(size=(NV, NV))

    def friction(*bounds):
        bound = jnp.array(bounds)
        return Friction(bound, jnp.full(COUNT, slip), 4 * bound)

    pressing = LaggedContact.from_start(
        h=jnp.array(0.01),
        normal=jnp.array(normal),
        force=jnp.array(start.force),
        stiffness=jnp.full(COUNT, stiffness),
        dissipation=jnp.array(start.dissipation),
        sliding=friction(0.02, 0.0, 0.3),
        start=jnp.array(start.points),
        gained=jnp.array(start.gained[0]),
    )
    J, J_turning = jnp.array(rng.normal(size=(2, COUNT, 3, NV)))
    known = (friction(0.03, 0.0, 0.2), friction(0.05, 0.0, 0.1), jnp.array(start.turning), jnp.array(start.gained[1]))
    turning = Turning.from_start(jnp.array(normal), *known)
    bound = jnp.array([0.0, 0.1, 0.0, 2.0, 0.3, 0.02])
    joints = Rows(JointFriction(jnp.array(start.joints), bound, jnp.full(NV, slip), bound), UnitJacobian())
    terms = (Rows(pressing, DenseJacobian(J)), Rows(turning, DenseJacobian(J_turning)), joints)
    return ImpulseProblem(jnp.array(root @ root.T + np.eye(NV)), jnp.array(5 * rng.normal(size=NV)), terms)


def _cost(motion, dv, seed=0):
    """ℓ(dv) in NumPy, by antiderivatives of all laws at the velocities themselves."""
    A, impulse, start = motion.A, motion.p, _start(seed)
    points, turning, joints = motion.rows
    total = dv @ A @ dv / 2 - impulse @ dv
    law = points.law
    h = float(law.h)

    def rubbed(friction, i, slide):
        slip = float(friction.slip[i])
        return float(friction.bound[i]) * (slide - slip / 2 if slide > slip else slide**2 / (2 * slip))

    for i in range(COUNT):
        u = start.points[i] + np.asarray(points.J.J[i]) @ dv
        gained = start.gained[0, i]
        slip = u + gained
        n, f, k, c = (np.asarray(x[i]) for x in (law.normal, start.force, law.stiffness, start.dissipation))
        f, damping = f - h * k * (gained @ n) / 2, 1 - c * (gained @ n)
        # Where n is zero from, and stays so.
        end = min(f / (h * k), damping / c if c > 0 else np.inf)
        speed = min(u @ n, end)
        total -= h * (damping * f * speed - (damping * h * k + c * f) * speed**2 / 2 + c * h * k * speed**3 / 3)
        total += rubbed(law.sliding, i, np.linalg.norm(slip - (slip @ n) * n))
        w = start.turning[i] + np.asarray(turning.J.J[i]) @ dv + start.gained[1, i]
        total += rubbed(turning.law.spinning, i, abs(w @ n))
        total += rubbed(turning.law.rolling, i, np.linalg.norm(w - (w @ n) * n))
    # log(cosh x), which overflows as it stands.
    x = (start.joints + dv) / np.asarray(joints.law.speed)
    return total + np.sum(joints.law.bound * joints.law.speed * (np.logaddexp(x, -x) - np.log(2)))


@pytest.fixture(scope="module")
def found():
    return jax.jit(Convex().solve)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_minimum_is_that_of_scipy(found, seed):
    motion = _motion(seed, slip=0.05)
    result = found(motion, jnp.zeros(NV))
    assert result.converged
    reference = scipy.optimize.minimize(lambda dv: _cost(motion, dv, seed), np.zeros(NV), method="BFGS", tol=1e-9)
    # Rounding of a cost, of about 10, hides a distance of about √ε to its minimum.
    np.testing.assert_allclose(result.dv, reference.x, atol=1e-6)
    assert _cost(motion, np.asarray(result.dv), seed) <= reference.fun + 1e-13 * abs(reference.fun)


def test_gradients_and_hessians_are_derivatives_of_the_cost():
    motion = _motion(slip=0.05)
    function, dv = ConvexFunction(motion), jnp.linspace(-0.5, 1.0, NV)
    at = function.change(dv)
    gradient, H, slopes = jax.jit(
        lambda function, sticking: (
            function.gradient(at, sticking),
            function.hessian(at, sticking, function.shares(at)),
            jax.jacfwd(lambda dv: function.gradient(function.change(dv), sticking))(dv),
        )
    )(function, function.sticks(at))
    steps = 1e-6 * np.eye(NV)
    difference = [(_cost(motion, dv + e) - _cost(motion, dv - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(gradient, difference, atol=1e-7)
    np.testing.assert_allclose(H, slopes, atol=1e-12)
    w = jnp.arange(1.0, NV + 1)
    line = function.line_derivatives(at, function.change(w))
    np.testing.assert_allclose(line.slope, gradient @ w - (motion.A @ dv - motion.p) @ w, rtol=1e-12)
    np.testing.assert_allclose(line.curvature, w @ H @ w - w @ motion.A @ w, rtol=1e-12)


def test_a_problem_without_rows_has_a_solution():
    A, p = jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, -2.0])
    found = Convex().solve(ImpulseProblem(A, p, ()), jnp.zeros(2))
    np.testing.assert_allclose(found.dv, np.linalg.solve(A, p), rtol=1e-14)
    slopes = jax.jacfwd(lambda p: Convex().solve(ImpulseProblem(A, p, ()), jnp.zeros(2)).dv)(p)
    np.testing.assert_allclose(slopes, np.linalg.inv(A), rtol=1e-14)
    assert found.converged and found.gammas == ()


def test_a_block_on_the_ground_ends_as_in_closed_form(found):
    """A mass of 2 kg that falls by h g on a spring, and slides or sticks."""
    h, m, g, k, mu = 0.01, 2.0, 9.81, 1e6, 0.5
    bound = mu * m * g * h
    numbers = [jnp.array(x) for x in (h, [[0.0, 0.0, 1.0]], [m * g], [k], [0.0])]
    friction = Friction(*(jnp.array([x]) for x in (bound, 1e-6, 0.1)))
    for speed, expected in ((2.0, 2.0 - bound / m), (0.03, 0.03 * m / (m + bound / 1e-6))):
        law = LaggedContact.from_start(*numbers, friction, jnp.array([[speed, 0.0, 0.0]]), jnp.zeros((1, 3)))
        motion = ImpulseProblem(
            m * jnp.eye(3), m * jnp.array([0.0, 0.0, -h * g]), (Rows(law, DenseJacobian(jnp.eye(3)[None])),)
        )
        dv = found(motion, jnp.zeros(3)).dv
        # The spring bears the weight from the start: nothing moves along the normal.
        np.testing.assert_allclose(dv, [expected - speed, 0, 0], atol=1e-12)


@pytest.mark.slow
def test_derivatives_are_those_of_the_minimum_in_both_modes(found):
    motion = _motion()
    leaves, tree = jax.tree.flatten(motion)

    def change(x):
        """By a factor of every array."""
        return found(tree.unflatten([leaf * factor for leaf, factor in zip(leaves, x, strict=True)]), jnp.zeros(NV)).dv

    x = jnp.ones(len(leaves))
    forwards, backwards = jax.jit(jax.jacfwd(change))(x), jax.jit(jax.jacrev(change))(x)
    steps = 1e-6 * jnp.eye(len(x))
    differences = jnp.stack([(change(x + e) - change(x - e)) / 2e-6 for e in steps], axis=1)
    # Iterations leave 10⁻¹¹ of a velocity, and differences amplify that by 10⁶.
    np.testing.assert_allclose(forwards, differences, atol=2e-5)
    np.testing.assert_allclose(backwards, forwards, atol=1e-12)


def test_the_guess_does_not_matter(found):
    motion = _motion(slip=1e-6, stiffness=1e8)
    results = [found(motion, guess) for guess in (jnp.zeros(NV), motion.p, 100 * jnp.ones(NV))]
    assert all(result.converged for result in results)
    for result in results[1:]:
        np.testing.assert_allclose(result.dv, results[0].dv, atol=1e-9)


def _pile(seed, bodies, points, h=2e-3, stiffness=1e5):
    """Bodies that begin centimetres within each other and the ground, at random speeds."""
    rng = np.random.default_rng(seed)
    J = np.zeros((points, 3, bodies, 6))
    for row in J:
        first, second = rng.integers(0, bodies, 2)
        for body, sign in {second: 1, first: -1}.items() if rng.uniform() < 0.7 else {second: 1}.items():
            row[:, body] = sign * np.concatenate([np.cross(np.eye(3), 0.1 * rng.normal(size=3)), np.eye(3)], axis=1)
    J = J.reshape(points, 3, -1)
    normal = rng.normal(size=(points, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    A = np.tile([4e-3] * 3 + [1.0] * 3, bodies)
    force = stiffness * rng.uniform(-0.02, 0.1, points)
    bound = 0.5 * h * np.maximum(force, 0)
    stopped = bound * np.sum(J**2 / A, axis=(1, 2)) / 3
    numbers = [jnp.array(x) for x in (h, normal, force, np.full(points, stiffness), np.ones(points))]
    friction = Friction(jnp.array(bound), jnp.full(points, 1e-6), jnp.array(stopped))
    law = LaggedContact.from_start(*numbers, friction, jnp.array(J @ rng.normal(size=len(A))), jnp.zeros((points, 3)))
    return ImpulseProblem(jnp.diag(jnp.array(A)), jnp.zeros(len(A)), (Rows(law, DenseJacobian(jnp.array(J))),))


@pytest.mark.parametrize(("bodies", "points"), [(1, 6), (3, 40)])
def test_bodies_within_each_other(found, bodies, points):
    """Newton's method for velocities alone takes up to 32 steps."""
    for seed in range(10):
        motion = _pile(seed, bodies, points)
        result = found(motion, jnp.zeros(6 * bodies))
        assert result.converged and result.steps <= 25
        # The function is as convex as kinetic energy at least: its minimum is no farther than this.
        function = ConvexFunction(motion)
        end = function.change(result.dv)
        gradient = function.gradient(end, function.sticks(end))
        distance = jnp.sqrt(gradient @ jnp.linalg.solve(motion.A, gradient))
        assert distance <= 1e-5 * jnp.sqrt(result.dv @ motion.A @ result.dv)


@pytest.mark.slow
def test_second_derivatives_of_what_rests_are_finite(found):
    """In all modes: nothing slips, where a norm has no derivative."""
    numbers = [jnp.array(x) for x in (0.01, [[0.0, 0.0, 1.0]], [20.0], [1e6], [0.5])]
    friction = Friction(*(jnp.array([x]) for x in (0.1, 1e-3, 0.1)))
    law = LaggedContact.from_start(*numbers, friction, jnp.zeros((1, 3)), jnp.zeros((1, 3)))
    terms = (Rows(law, DenseJacobian(jnp.eye(3)[None])),)

    def change(impulse):
        return found(ImpulseProblem(2 * jnp.eye(3), impulse, terms), jnp.zeros(3)).dv

    weight = jnp.array([0.0, 0.0, -0.2])
    second = [jax.jit(f(g(change)))(weight) for f in (jax.jacfwd, jax.jacrev) for g in (jax.jacfwd, jax.jacrev)]
    assert np.any(second[0])
    for other in second[1:]:
        np.testing.assert_allclose(other, second[0], atol=1e-12 * np.max(np.abs(second[0])))


def test_slopes_of_slow_joints_are_those_of_their_law():
    speeds = jnp.array([0.0, 1e-12, 1e-3, 0.0499, 0.0501, 1.0, 5.0])
    law = JointFriction(jnp.zeros(7), jnp.full(7, 0.3), jnp.ones(7), jnp.ones(7))
    slope = law.slope(speeds, law.sticks(speeds), law.shares(speeds))
    np.testing.assert_allclose(slope, 0.3 / np.cosh(speeds) ** 2, rtol=2e-13, atol=2e-16)


def test_numbers_that_overflow_do_not_converge(found):
    motion = _motion()
    for impulse in (jnp.inf, 1e200, jnp.nan):
        result = found(ImpulseProblem(motion.A, motion.p.at[0].set(impulse), motion.rows), jnp.zeros(NV))
        assert not result.converged


def test_slow_slip_does_not_make_hessians_indefinite_in_single_precision():
    """Of a velocity along the normal, rounding leaves as much beside it as the slip."""
    law = _motion(slip=1e-7).rows[0].law
    u = 0.1 * law.normal + 1e-6 * jnp.roll(law.normal, 1, axis=1)
    law, u = jax.tree.map(lambda x: x.astype(jnp.float32), (law, u))
    G = law.slope(u, law.sticks(u), law.shares(u))
    assert not jnp.any(law.sticks(u))
    least = np.linalg.eigvalsh(np.asarray(G, float))[:, 0]
    steepest = np.asarray(jnp.trace(G, axis1=1, axis2=2))
    assert np.all(least >= -4 * jnp.finfo(jnp.float32).eps * steepest)


def test_single_precision_converges(found):
    motion = jax.tree.map(lambda x: x.astype(jnp.float32), _motion(slip=1e-5, stiffness=1e7))
    result = found(motion, jnp.zeros(NV, jnp.float32))
    assert result.converged
    assert result.dv.dtype == jnp.float32
    exact = found(_motion(slip=1e-5, stiffness=1e7), jnp.zeros(NV))
    np.testing.assert_allclose(result.dv, exact.dv, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_single_precision_keeps_the_digits_of_a_small_change(found, seed):
    """A disc that rolls at 1.5 m/s under a moment and meets the ground, in a step of 10⁻⁶ s: its velocity changes by a
    few hundred times its rounding, and friction holds by as little."""
    h, radius, m, inertia, moment = 1e-6, 0.05, 1.0, 4e-3, 3.0
    normal, along = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 2)))[0].T

    def change(dtype):
        n, t = jnp.array(normal, dtype), jnp.array(along, dtype)
        J = jnp.stack([t, radius * t, n], axis=1)[None]
        numbers = (jnp.array(h, dtype), n[None], *(jnp.array([x], dtype) for x in (30.0, 1e5, 15.0)))
        friction = Friction(*(jnp.array([x], dtype) for x in (1e-3, 1e-6, 1e-3)))
        start = J @ jnp.array([1.5, -1.5 / radius, -1.1], dtype)
        law = LaggedContact.from_start(*numbers, friction, start, jnp.zeros((1, 3), dtype))
        impulse = jnp.array([0.0, h * moment, 0.0], dtype)
        motion = ImpulseProblem(jnp.diag(jnp.array([m, inertia, m], dtype)), impulse, (Rows(law, DenseJacobian(J)),))
        return found(motion, jnp.zeros(3, dtype)).dv

    exact, single = change(jnp.float64), change(jnp.float32)
    # Friction holds: inertia α = moment − m radius² α.
    np.testing.assert_allclose(exact[1], h * moment / (inertia + m * radius**2), rtol=1e-3)
    # Rounding of the speeds that make the slip, 1.5 m/s, moves the disc as far, once.
    np.testing.assert_allclose(single, exact, atol=1.5 * jnp.finfo(jnp.float32).eps / radius)
    # Nothing of it is along the normal, and iterations leave less than 10⁻⁴ of a change.
    np.testing.assert_allclose(single[2], exact[2], rtol=1e-4)
