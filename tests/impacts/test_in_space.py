"""Impacts in space: the path of the impulse with fifty digits, energy, and derivatives."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import jdyn
from jdyn.impacts import ImpactMode

pytestmark = pytest.mark.fast_compile

LAWS = {"newton": jdyn.impacts.Newton(), "poisson": jdyn.impacts.Poisson(), "stronge": jdyn.impacts.Stronge()}


def drawn(count, seed, spread=0.3):
    """Delassus matrices, velocities, restitutions and coefficients of friction."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(count, 3, 3))
    W = A @ A.transpose(0, 2, 1) + spread * np.eye(3)
    v = rng.normal(size=(count, 3))
    v[:, 2] = -np.abs(v[:, 2])
    return tuple(map(jnp.asarray, (W, v, rng.uniform(size=count), rng.uniform(0, 1.5, size=count))))


def exact(W, v, e, mu, law):
    """Impulse, of a path whose equations by p_n are integrated by Taylor series of 50 digits, as far as it slides."""
    with mpmath.workdps(50):
        W, v = mpmath.matrix(W.tolist()), [mpmath.mpf(float(x)) for x in v]
        e, mu = mpmath.mpf(float(e)), mpmath.mpf(float(mu))

        def velocity(s, p_x, p_y):
            return [v[i] + W[i, 0] * p_x + W[i, 1] * p_y + W[i, 2] * s for i in range(3)]

        def rate(s, y):
            v_x, v_y, v_n = velocity(s, y[0], y[1])
            speed = mpmath.sqrt(v_x**2 + v_y**2)
            return [-mu * v_x / speed, -mu * v_y / speed, v_n]

        path = mpmath.odefun(rate, 0, [0, 0, 0], tol=mpmath.mpf(10) ** -40)

        def normal(s):
            return velocity(s, *path(s)[:2])[2]

        guess = -v[2] / W[2, 2]
        middle = mpmath.findroot(normal, (guess, guess * mpmath.mpf("1.01")), tol=1e-60)
        work = path(middle)[2]
        ends = {
            "newton": lambda s: normal(s) + e * v[2],
            "poisson": lambda s: s - (1 + e) * middle,
            "stronge": lambda s: path(s)[2] - (1 - e**2) * work,
        }
        end = mpmath.findroot(ends[law], (middle * (1 + e), middle * (1 + e) * mpmath.mpf("1.01")), tol=1e-60)
        p_x, p_y, _ = path(end)
        return np.array([float(p_x), float(p_y), float(end)])


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_paths_that_turn_are_those_of_fifty_digits(law):
    W, v, e, mu = drawn(400, 0)
    mu = 0.3 * mu
    found = jax.jit(jax.vmap(LAWS[law]))(W, v, e, mu)
    turning = [i for i in range(400) if found.mode[i] == ImpactMode.SLIDES and found.margin[i] > 0.05][:2]
    for i in turning:
        expected = exact(W[i], v[i], e[i], mu[i], law)
        np.testing.assert_allclose(found.impulse[i], expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))


def stuck(W, v, e, mu, law):
    """Impulse of an impact that sticks in compression, by 50 digits of its sliding part in τ with dp_n = |v_t| dτ."""
    with mpmath.workdps(30):
        W = mpmath.matrix(W.tolist())
        v = [mpmath.mpf(float(x)) for x in v]
        e, mu = mpmath.mpf(float(e)), mpmath.mpf(float(mu))

        def rate(tau, y):
            p_x, p_y, s, _ = y
            now = [v[i] + W[i, 0] * p_x + W[i, 1] * p_y + W[i, 2] * s for i in range(3)]
            speed = mpmath.sqrt(now[0] ** 2 + now[1] ** 2)
            return [-mu * now[0], -mu * now[1], speed, now[2] * speed]

        path = mpmath.odefun(rate, 0, [0, 0, 0, 0], tol=mpmath.mpf(10) ** -20)
        tau = mpmath.mpf(0)
        while True:
            tau += 1
            p_x, p_y, s, work = path(tau)
            slip = [v[i] + W[i, 0] * p_x + W[i, 1] * p_y + W[i, 2] * s for i in range(2)]
            if mpmath.sqrt(slip[0] ** 2 + slip[1] ** 2) < mpmath.mpf(10) ** -13:
                break
        v_n = v[2] + W[2, 0] * p_x + W[2, 1] * p_y + W[2, 2] * s
        held = mpmath.lu_solve(W[:2, :2], -mpmath.matrix([W[0, 2], W[1, 2]]))
        slope = W[2, 0] * held[0] + W[2, 1] * held[1] + W[2, 2]
        to_middle = -v_n / slope
        middle, least = s + to_middle, work + v_n * to_middle / 2
        more = {
            "newton": -e * v[2] / slope,
            "poisson": e * middle,
            "stronge": e * mpmath.sqrt(-2 * least / slope),
        }[law]
        length = to_middle + more
        return np.array([float(x) for x in (p_x + held[0] * length, p_y + held[1] * length, s + length)])


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_paths_that_stick_are_those_of_many_digits(law):
    W, v, e, mu = drawn(200, 1)
    found = jax.jit(jax.vmap(LAWS[law]))(W, v, e, mu)
    chosen = [i for i in range(200) if found.mode[i] == ImpactMode.STICKS_IN_COMPRESSION and found.margin[i] > 0.05]
    assert len(chosen) > 10
    for i in chosen[:2]:
        expected = stuck(W[i], v[i], e[i], mu[i], law)
        np.testing.assert_allclose(found.impulse[i], expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))
        np.testing.assert_allclose(found.velocity[i, :2], 0, atol=1e-12)


@pytest.mark.parametrize("law", ["poisson", "stronge", "brach"])
def test_no_energy_is_made(law):
    W, v, e, mu = drawn(300, 2, spread=0.02)
    kept = LAWS.get(law, jdyn.impacts.Brach())
    found = jax.jit(jax.vmap(kept))(W, v, e, mu)
    energy = jax.vmap(lambda W, v: v @ jnp.linalg.solve(W, v) / 2)
    before, after = energy(W, v), energy(W, found.velocity)
    assert jnp.all(jnp.isfinite(found.impulse))
    assert jnp.all(found.work <= 1e-12 * before)
    np.testing.assert_allclose(after - before, found.work, rtol=1e-7, atol=1e-9 * jnp.max(before))


def test_what_turns_about_the_normal_turns_the_impulse():
    """Tangents are anybody's choice."""
    W, v, e, mu = (x[0] for x in drawn(1, 3))
    c, s = np.cos(0.7), np.sin(0.7)
    R = jnp.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
    law = jax.jit(LAWS["stronge"])
    one, other = law(W, v, e, mu), law(R @ W @ R.T, R @ v, e, mu)
    np.testing.assert_allclose(R @ one.impulse, other.impulse, rtol=1e-10, atol=1e-11)


def test_friction_that_holds_may_be_more_than_that_of_sliding():
    W = jnp.array([[2.0, 0.0, 0.8], [0.0, 1.5, 0.0], [0.8, 0.0, 1.0]])
    law = jax.jit(lambda v, mu, held: LAWS["poisson"](W, v, 0.5, mu, static=held))
    v = jnp.array([-0.01, 0.0, -1.0])
    # |W_tt⁻¹ W_tn| = 0.4.
    assert law(v, 0.3, 0.3).mode == ImpactMode.REVERSES_IN_COMPRESSION
    assert law(v, 0.3, 0.6).mode == ImpactMode.STICKS_IN_COMPRESSION
    assert law(v, 0.6, 0.6).mode == ImpactMode.STICKS_IN_COMPRESSION


def cases():
    """One impact of each mode, away from the others."""
    W, v, e, mu = drawn(4000, 4, spread=0.1)
    found = jax.jit(jax.vmap(jdyn.impacts.Poisson()))(W, v, e, mu)
    for mode in list(ImpactMode)[1:6]:
        i = max((i for i in range(len(e)) if found.mode[i] == mode), key=lambda i: min(float(found.margin[i]), 1.0))
        yield mode, (W[i], v[i], e[i], mu[i])


@pytest.mark.slow
def test_derivatives_are_those_of_differences_in_every_mode():
    def impulse(x):
        return jdyn.impacts.Poisson()(x[:9].reshape(3, 3), x[9:12], x[12], x[13]).impulse

    forwards, backwards = jax.jit(jax.jacfwd(impulse)), jax.jit(jax.jacrev(impulse))
    batch = jax.jit(jax.vmap(impulse))
    for mode, (W, v, e, mu) in cases():
        x = jnp.concatenate([W.ravel(), v, jnp.stack([e, mu])])
        steps = 1e-5 * jnp.eye(len(x))
        differences = ((batch(x[None] + steps) - batch(x[None] - steps)) / 2e-5).T
        size = float(jnp.max(jnp.abs(differences)))
        # Differences err by the square of their step, and by 1e-12 over it.
        np.testing.assert_allclose(forwards(x), differences, atol=1e-6 * size, err_msg=mode.name)
        np.testing.assert_allclose(backwards(x), forwards(x), atol=1e-12 * size)


@pytest.mark.slow
def test_derivatives_at_borders_are_finite():
    """Sliding that does not turn, none at all, no restitution, no friction: numbers, and no NaN."""
    W = jnp.array([[2.0, 0.0, 0.3], [0.0, 1.5, 0.0], [0.3, 0.0, 1.0]])
    for law in LAWS.values():
        by_all = jax.jit(jax.jacrev(lambda W, v, e, mu, law=law: law(W, v, e, mu).impulse, (0, 1, 2, 3)))
        for v, e, mu in (
            ([1.0, 0, -1], 0.5, 0.2),
            ([0.0, 0, -1], 0.5, 0.2),
            ([1.0, 0, -1], 0.0, 0.2),
            ([1, 1, -1], 0.5, 0),
        ):
            slopes = by_all(W, jnp.array(v, float), e, float(mu))
            assert all(bool(jnp.all(jnp.isfinite(x))) for x in slopes), (law, v, e, mu)
        # The speed that is left grows by that of the approach, also where it begins with nothing.
        by_e = by_all(jnp.eye(3), jnp.array([0.0, 0.0, -1.0]), 0.0, 0.2)[2]
        np.testing.assert_allclose(by_e, [0, 0, 1], atol=1e-12)
