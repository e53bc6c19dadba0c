"""The velocity that convex contact finds in one step, alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jdyn.contact.convex import AtPoints, Friction, Impulses, InJoints, JointFriction, Motion, Turning, minimum

pytestmark = pytest.mark.fast_compile

COUNT, NV = 3, 6


def _motion(seed=0, slip=1e-3, stiffness=2e4):
    """Three points on six coordinates: of one the spring pushes, one is apart, one slides. Points and joints resist
    turning."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(COUNT, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    root = rng.normal(size=(NV, NV))
    gained = jnp.array(0.3 * np.random.default_rng(seed + 1000).normal(size=(2, COUNT, 3)))

    def friction(*bounds):
        bound = jnp.array(bounds)
        return Friction(bound, jnp.full(COUNT, slip), 4 * bound)

    pressing = Impulses(
        h=jnp.array(0.01),
        normal=jnp.array(normal),
        force=jnp.array([8.0, -5.0, 20.0]),
        stiffness=jnp.full(COUNT, stiffness),
        dissipation=jnp.array([0.5, 0.0, 2.0]),
        sliding=friction(0.02, 0.0, 0.3),
        gained=gained[0],
    )
    J, J_turning = jnp.array(rng.normal(size=(2, COUNT, 3, NV)))
    turning = Turning(jnp.array(normal), friction(0.03, 0.0, 0.2), friction(0.05, 0.0, 0.1), gained[1])
    bound = jnp.array([0.0, 0.1, 0.0, 2.0, 0.3, 0.02])
    joints = InJoints(JointFriction(bound, jnp.full(NV, slip), bound), None)
    terms = (AtPoints(pressing, J), AtPoints(turning, J_turning), joints)
    return Motion(jnp.array(root @ root.T + np.eye(NV)), jnp.array(5 * rng.normal(size=NV)), terms)


def _cost(motion, v):
    """ℓ(v) in NumPy, by antiderivatives of all laws."""
    A, momentum = motion.A, motion.momentum
    points, turning, joints = motion.terms
    total = v @ A @ v / 2 - momentum @ v
    law = points.law
    h = float(law.h)

    def rubbed(friction, i, slide):
        slip = float(friction.slip[i])
        return float(friction.bound[i]) * (slide - slip / 2 if slide > slip else slide**2 / (2 * slip))

    for i in range(COUNT):
        u = np.asarray(points.J[i]) @ v
        slip = u + np.asarray(law.gained[i])
        n, f, k, c = (np.asarray(x[i]) for x in (law.normal, law.force, law.stiffness, law.dissipation))
        f, damping = f - h * k * (law.gained[i] @ n) / 2, 1 - c * (law.gained[i] @ n)
        # Where n is zero from, and stays so.
        end = min(f / (h * k), damping / c if c > 0 else np.inf)
        speed = min(u @ n, end)
        total -= h * (damping * f * speed - (damping * h * k + c * f) * speed**2 / 2 + c * h * k * speed**3 / 3)
        total += rubbed(law.sliding, i, np.linalg.norm(slip - (slip @ n) * n))
        w = np.asarray(turning.J[i]) @ v + np.asarray(turning.law.gained[i])
        total += rubbed(turning.law.spinning, i, abs(w @ n))
        total += rubbed(turning.law.rolling, i, np.linalg.norm(w - (w @ n) * n))
    # log(cosh x), which overflows as it stands.
    x = v / np.asarray(joints.law.speed)
    return total + np.sum(joints.law.bound * joints.law.speed * (np.logaddexp(x, -x) - np.log(2)))


@pytest.fixture(scope="module")
def found():
    return jax.jit(minimum)


@pytest.mark.parametrize("seed", range(3))
def test_the_minimum_is_that_of_scipy(found, seed):
    motion = _motion(seed, slip=0.05)
    result = found(motion, jnp.zeros(NV))
    assert result.converged
    reference = scipy.optimize.minimize(lambda v: _cost(motion, v), np.zeros(NV), method="BFGS", tol=1e-9)
    # Rounding of a cost, of about 10, hides a distance of about √ε to its minimum.
    np.testing.assert_allclose(result.v, reference.x, atol=1e-6)
    assert _cost(motion, np.asarray(result.v)) <= reference.fun + 1e-13 * abs(reference.fun)


def test_gradients_and_hessians_are_derivatives_of_the_cost():
    motion = _motion(slip=0.05)
    v = jnp.linspace(-0.5, 1.0, NV)
    gradient, H, slopes = jax.jit(
        lambda motion, held: (*motion.derivatives(v, held), jax.jacfwd(lambda v: motion.gradient(v, held))(v))
    )(motion, motion.holds(v))
    steps = 1e-6 * np.eye(NV)
    difference = [(_cost(motion, v + e) - _cost(motion, v - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(gradient, difference, atol=1e-7)
    np.testing.assert_allclose(H, slopes, atol=1e-12)
    w = jnp.arange(1.0, NV + 1)
    line = motion.along(motion.velocities(v), motion.velocities(w))
    np.testing.assert_allclose(line.slope, gradient @ w - (motion.A @ v - motion.momentum) @ w, rtol=1e-12)
    np.testing.assert_allclose(line.curvature, w @ H @ w - w @ motion.A @ w, rtol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 9])
def test_hessians_are_those_of_points_that_do_not_fill_blocks(count):
    """Alone, and in lanes of which others have other points without part."""
    rng = np.random.default_rng(count)
    J, G = rng.normal(size=(3, count, 3, NV)), rng.normal(size=(3, count, 3, 3))
    G[rng.uniform(size=(3, count)) < 0.5] = 0
    G[0] = 0

    def hessian(J, G):
        return AtPoints(None, J).hessian(G)

    expected = np.einsum("lpin,lpij,lpjm->lnm", J, G, J)
    np.testing.assert_allclose(jax.jit(jax.vmap(hessian))(J, G), expected, atol=1e-13)
    for lane in range(3):
        np.testing.assert_allclose(jax.jit(hessian)(J[lane], G[lane]), expected[lane], atol=1e-13)


def test_a_block_on_the_ground_ends_as_in_closed_form(found):
    """A mass of 2 kg that falls by h g on a spring, and slides or sticks."""
    h, m, g, k, mu = 0.01, 2.0, 9.81, 1e6, 0.5
    bound = mu * m * g * h
    numbers = (jnp.array(x) for x in (h, [[0.0, 0.0, 1.0]], [m * g], [k], [0.0]))
    law = Impulses(*numbers, Friction(*(jnp.array([x]) for x in (bound, 1e-6, 0.1))), jnp.zeros((1, 3)))
    for push, expected in ((2.0, 2.0 - bound / m), (0.03, 0.03 * m / (m + bound / 1e-6))):
        motion = Motion(m * jnp.eye(3), m * jnp.array([push, 0.0, -h * g]), (AtPoints(law, jnp.eye(3)[None]),))
        v = found(motion, jnp.zeros(3)).v
        # The spring bears the weight from the start: nothing moves along the normal.
        np.testing.assert_allclose(v, [expected, 0, 0], atol=1e-12)


def test_derivatives_are_those_of_the_minimum_in_both_modes(found):
    motion = _motion()
    leaves, tree = jax.tree.flatten(motion)

    def v_of(x):
        """By a factor of every array."""
        return found(tree.unflatten([leaf * factor for leaf, factor in zip(leaves, x, strict=True)]), jnp.zeros(NV)).v

    x = jnp.ones(len(leaves))
    forwards, backwards = jax.jit(jax.jacfwd(v_of))(x), jax.jit(jax.jacrev(v_of))(x)
    steps = 1e-6 * jnp.eye(len(x))
    differences = jnp.stack([(v_of(x + e) - v_of(x - e)) / 2e-6 for e in steps], axis=1)
    # Iterations leave 10⁻¹¹ of a velocity, and differences amplify that by 10⁶.
    np.testing.assert_allclose(forwards, differences, atol=2e-5)
    np.testing.assert_allclose(backwards, forwards, atol=1e-12)


def test_the_guess_does_not_matter(found):
    motion = _motion(slip=1e-6, stiffness=1e8)
    results = [found(motion, guess) for guess in (jnp.zeros(NV), motion.momentum, 100 * jnp.ones(NV))]
    assert all(result.converged for result in results)
    for result in results[1:]:
        np.testing.assert_allclose(result.v, results[0].v, atol=1e-9)


def test_slow_slip_does_not_make_hessians_indefinite_in_single_precision():
    """Of a velocity along the normal, rounding leaves as much beside it as the slip."""
    law = _motion(slip=1e-7).terms[0].law
    u = 0.1 * law.normal + 1e-6 * jnp.roll(law.normal, 1, axis=1)
    law, u = jax.tree.map(lambda x: x.astype(jnp.float32), (law, u))
    _, G = law.at(u, law.holds(u))
    assert not jnp.any(law.holds(u))
    least = np.linalg.eigvalsh(np.asarray(G, float))[:, 0]
    steepest = np.asarray(jnp.trace(G, axis1=1, axis2=2))
    assert np.all(least >= -4 * jnp.finfo(jnp.float32).eps * steepest)


def test_single_precision_converges(found):
    motion = jax.tree.map(lambda x: x.astype(jnp.float32), _motion(slip=1e-5, stiffness=1e7))
    result = found(motion, jnp.zeros(NV, jnp.float32))
    assert result.converged
    assert result.v.dtype == jnp.float32
    exact = found(_motion(slip=1e-5, stiffness=1e7), jnp.zeros(NV))
    np.testing.assert_allclose(result.v, exact.v, atol=1e-4)
