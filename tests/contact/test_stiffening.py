"""Derivatives where friction begins to hold within a step."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.contact.stiffening import GAINED, Stiffening

pytestmark = pytest.mark.fast_compile

INERTIA, SPEED = 3.0, 1e-3


def friction(c, slip):
    """F = c v / √(v² + s²) in the plane: its direction, how it falls across that, and its slope, in closed form."""
    root = np.sqrt(slip @ slip + SPEED**2)
    slope = c * (np.eye(2) / root - np.outer(slip, slip) / root**3)
    return np.append(slip / root, 0), c / root, np.pad(slope, (0, 1))


@pytest.mark.parametrize("inertia", [INERTIA, np.inf])
@pytest.mark.parametrize("most", [(0.0, 1.0), (1.0, 1.0), (0.02, 1.0), (1e-3, 0.7), (1.0, 0.0)])
def test_derivatives_feel_as_much_of_a_slope_as_a_step_stands(most, inertia):
    """Of a stage that nearly holds, in a step that begins with a slip, for what friction is at most at both."""
    rng = np.random.default_rng(0)
    slips = np.array([0.1, 0.06]), np.array([1e-4, 2e-4])
    (*_, D0), (b, across, D) = (friction(c, slip) for c, slip in zip(most, slips, strict=True))
    slopes = rng.normal(size=(6, 6))
    # Along the normal there are dampers.
    slopes[3:, 3:] = -D0 - np.diag([0, 0, 7.0])
    start = Stiffening(jnp.array(slopes), jnp.array(inertia), jnp.array(3)).of(jnp.array(3))
    normal = jnp.array([0.0, 0, 1])
    own, twist, change = rng.normal(size=(6, 6)), jnp.array(rng.normal(size=6)), rng.normal(size=6)

    def wrench(twist):
        felt, others = start.felt(twist, normal, jnp.array(b), jnp.array(across))
        return own @ felt + others

    value, derivative = jax.jvp(wrench, (twist,), (jnp.array(change),))
    np.testing.assert_array_equal(value, jnp.asarray(own) @ twist)
    u = b / np.linalg.norm(b)
    v = np.cross([0, 0, 1], u)
    gained = [(x @ (D - D0) @ x) / (inertia + x @ D0 @ x) for x in (u, v)]
    along, across = (1 / max(1, x) for x in np.array(gained) / GAINED)
    # What gains little has its own slope: so has all where a step has no length.
    assert np.isfinite(inertia) or along == across == 1
    # Only slip has other slopes: dampers along the normal do their own.
    others = (1 - along) * (u @ change[3:]) * u + (1 - across) * (v @ change[3:]) * v
    others = np.append(np.zeros(3), others)
    np.testing.assert_allclose(derivative, own @ (change - others) + slopes @ others, rtol=1e-12, atol=1e-12)


def test_a_point_of_another_pair_has_its_own_slopes():
    start = Stiffening(jnp.ones((6, 6)), jnp.array(INERTIA), jnp.array(3)).of(jnp.array(4))
    up, b = jnp.array([0.0, 0, 1]), jnp.array([0.5, 0, 0])
    change = jnp.arange(6.0)
    (_, other), (moved, others) = jax.jvp(
        lambda twist: start.felt(twist, up, b, jnp.array(1e6)), (jnp.zeros(6),), (change,)
    )
    np.testing.assert_array_equal(moved, change)
    assert not other.any() and not others.any()


def leg():
    """A body that moves along two rails, on a leg with a knee and a round foot."""
    builder = jdyn.Builder("leg")
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=1.0)
    builder.add_link("body", jdyn.Prismatic((0, 0, 1)), parent="cart", mass=2.0)
    down, across = (0, 0, -0.1), (0, 1, 0)
    builder.add_link("thigh", jdyn.Revolute(across), parent="body", mass=0.5, com=down, inertia=5e-3 * np.ones(3))
    builder.add_link(
        "shin", jdyn.Revolute(across), parent="thigh", placement=(0, 0, -0.2), mass=0.1, com=down,
        inertia=1e-3 * np.ones(3),
    )  # fmt: skip
    builder.add_shape("shin", "sphere", 0.02, placement=(0, 0, -0.2), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return builder.build()


# The foot slips a hundred times the slip speed, and holds after 1 ms, within steps of 0.1 ms.
LANES, T1, BENT, HEIGHT = 8, 0.12, np.array([0.4, -0.8]), 0.4


@pytest.fixture(scope="module")
def landing():
    """Where a leg is after it has landed with some velocity, as one number, by a change of its height."""
    model = leg()
    gains = np.array([0, 0, 1.0, 1.0])
    hold = jdyn.PD(model, jnp.array([0, 0, *BENT]), kp=jnp.array(100 * gains), kd=jnp.array(2 * gains))
    velocities = np.random.default_rng(0).normal(size=(LANES, 4)) * np.array([0.5, 0.3, 1, 1])

    def end(change, velocity, tolerance, adjoint=None):
        steps = diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance)
        q0 = jnp.array([0, HEIGHT, *BENT]).at[1].add(change)
        motion = jdyn.simulate(
            model, q0, velocity, T1, controller=hold, contact=jdyn.CompliantContact(), stepsize_controller=steps,
            saveat=diffrax.SaveAt(t1=True), max_steps=20_000, adjoint=adjoint,
        )  # fmt: skip
        return motion.q[-1] @ jnp.array([1.0, 0.7, 0.3, -0.4])

    return end, jnp.array(velocities)


@pytest.fixture(scope="module")
def differences(landing):
    """Of the fourth order, at a tolerance of 1e-9: at the step of 3e-5 m both errors are below 1e-3."""
    end, velocities = landing
    ends, step = jax.jit(jax.vmap(end, (None, 0, None))), 3e-5
    plus, minus, plus2, minus2 = (ends(k * step, velocities, 1e-9) for k in (1, -1, 2, -2))
    return (8 * (plus - minus) - (plus2 - minus2)) / (12 * step)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", [(jax.grad, None), (jax.jacfwd, diffrax.ForwardMode())], ids=["reverse", "forward"])
def test_derivatives_of_a_landing_are_about_right_at_loose_tolerances(landing, differences, mode):
    """Without what they are told of friction they are wrong by 5e13, 33, 3.5 and 2e-3."""
    differentiate, adjoint = mode
    end, velocities = landing
    derivatives = jax.jit(jax.vmap(differentiate(lambda *x: end(*x, adjoint)), (None, 0, None)))
    for tolerance, allowed in ((1e-2, 3), (1e-3, 0.2), (1e-4, 0.1), (1e-6, 3e-3)):
        wrong = np.abs(derivatives(0.0, velocities, tolerance) / differences - 1)
        assert np.max(wrong) <= allowed, tolerance
        assert np.median(wrong) <= allowed / 5, tolerance
