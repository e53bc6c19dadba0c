"""A rigid law of contact in one file, and a solver of it: Signorini's and Coulomb's conditions, without any stiffness.

The law relates impulses and velocities at the end of a step by complementarity, which no convex function does. It is
here to show what a law and a solver have to say, and what they need not: Jacobians, inertia and derivatives are those
of all rows.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from jaxtyping import Array, Float

from jdyn.impulses import DenseJacobian, ImpulseProblem, ImpulseSolver, Law, Rows

pytestmark = pytest.mark.fast_compile


class Rigid(Law):
    """0 ≤ γₙ ⟂ gap / h + wₙ ≥ 0, and |γₜ| ≤ μ γₙ against wₜ, where w = start + u are velocities at the end of a step.

    Source: Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988; Alart, Curnier, A mixed
    formulation for frictional contact problems prone to Newton like solution methods, 1991, for the projection.
    """

    start: Float[Array, "points 3"]
    normal: Float[Array, "points 3"]
    gap: Float[Array, " points"]
    friction: Float[Array, " points"]
    h: Float[Array, ""]

    def projected(self, gamma, u, rate):
        """γ, if it is a solution; otherwise nearer to one: γ − rate (w + gap / h) in the cone of friction."""
        trial = gamma - rate * (self.start + u + (self.gap / self.h)[:, None] * self.normal)
        pressing = jnp.maximum(jnp.sum(trial * self.normal, axis=1), 0)
        rubbing = trial - jnp.sum(trial * self.normal, axis=1)[:, None] * self.normal
        square, bound = jnp.sum(rubbing**2, axis=1), self.friction * pressing
        slides = square > bound**2
        share = jnp.where(slides, bound / jnp.sqrt(jnp.where(slides, square, 1)), 1)
        return pressing[:, None] * self.normal + share[:, None] * rubbing


class Projections(ImpulseSolver):
    """Projected steps in the impulses γ of one set of `Rigid` rows until they tell what slides, then Newton's."""

    most: int = 20000

    def iterate(self, problem, guess):
        def left(gamma):
            return jnp.max(jnp.abs(self.residual(problem, gamma)))

        def unfinished(state):
            return (left(state[0]) > 1e-8) & (state[1] < self.most)

        def nearer(state):
            return state[0] - self.residual(problem, state[0]), state[1] + 1

        gamma, steps = jax.lax.while_loop(unfinished, nearer, (jnp.zeros_like(problem.rows[0].law.start), 0))
        for _ in range(2):
            gamma = gamma - self.correction(problem, gamma, self.residual(problem, gamma))
        return gamma, left(gamma) < 1e-14, jnp.asarray(steps)

    def residual(self, problem, unknowns):
        (rows,), (dv, _) = problem.rows, self.result(problem, unknowns)
        # Shorter than what J A⁻¹ Jᵀ, of which this is the trace or more, may lengthen.
        rate = 1 / jnp.sum(rows.J.squares(jnp.ones_like(dv) / jnp.linalg.eigvalsh(problem.A)[0]))
        return unknowns - rows.law.projected(unknowns, rows.changes(dv), rate)

    def correction(self, problem, unknowns, residual):
        slopes = jax.jacfwd(lambda gamma: self.residual(problem, gamma))(unknowns)
        # Where several points bear one body, only the sum of their impulses is known: the smallest change.
        return (jnp.linalg.pinv(slopes.reshape(2 * (residual.size,))) @ residual.ravel()).reshape(residual.shape)

    def result(self, problem, unknowns):
        (rows,) = problem.rows
        return jnp.linalg.solve(problem.A, problem.p + rows.generalized(unknowns)), (unknowns,)


H, G = 0.01, 9.81


def box(speed, slope=0.0, friction=0.5, gap=0.0, mass=2.0):
    """A step of a box in a plane, of side 0.2 m, on two corners: velocity (x, z, turn about y), on a slope."""
    corners, inertia = np.array([[-0.1, -0.1], [0.1, -0.1]]), mass * 0.2**2 / 6
    J = np.array([[[1.0, 0, z], [0, 0, 0], [0, 1.0, -x]] for x, z in corners])
    A, weight = jnp.diag(jnp.array([mass, mass, inertia])), mass * G * jnp.array([jnp.sin(slope), -jnp.cos(slope), 0])
    v = jnp.stack([jnp.asarray(speed), jnp.zeros(()), jnp.zeros(())])
    up = jnp.tile(jnp.array([0.0, 0.0, 1.0]), (2, 1))
    J = DenseJacobian(jnp.asarray(J))
    law = Rigid(J.velocities(v), up, jnp.full(2, gap), jnp.broadcast_to(jnp.asarray(friction), (2,)), jnp.asarray(H))
    return v, ImpulseProblem(A, H * weight, (Rows(law, J),))


@jax.jit
def after(speed, slope, friction, gap):
    """Velocity at the end of the step, impulses, and whether they were found."""
    v, problem = box(speed, slope, friction, gap)
    found = Projections().solve(problem, jnp.zeros(3))
    return v + found.dv, found.gammas[0], found.converged


@pytest.mark.parametrize(
    ("speed", "slope", "friction", "gap", "expected"),
    [
        (0.0, 0.0, 0.5, 0.0, (0.0, 0.0)),  # rests
        (0.0, 0.3, 0.5, 0.0, (0.0, 0.0)),  # tan 0.3 < 0.5: sticks
        (0.0, 0.3, 0.2, 0.0, (H * G * (np.sin(0.3) - 0.2 * np.cos(0.3)), 0.0)),  # slides down
        (1.0, 0.0, 0.5, 0.0, (1 - 0.5 * H * G, 0.0)),  # slides, and is slowed
        (0.02, 0.0, 0.5, 0.0, (0.0, 0.0)),  # slides, and comes to rest within the step
        (0.3, 0.0, 0.5, 1.0, (0.3, -H * G)),  # far above: falls
        (0.3, 0.0, 0.0, 5e-4, (0.3, -5e-4 / H)),  # touches at the end of the step
    ],
)
def test_a_box_does_as_in_closed_form(speed, slope, friction, gap, expected):
    v, gamma, converged = after(speed, slope, friction, gap)
    assert converged
    np.testing.assert_allclose(v, [*expected, 0.0], rtol=0, atol=1e-12)
    # What holds both corners is what the box loses: momentum is kept.
    _, problem = box(speed, slope, friction, gap)
    np.testing.assert_allclose(problem.balance(v - jnp.array([speed, 0, 0]), (gamma,)), 0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "friction"), [(0.3, 0.5), (0.3, 0.2)])
def test_derivatives_are_those_of_the_equations(slope, friction):
    """Of a box that sticks and of one that slides, in both modes: by its speed, the slope and friction."""

    def v(speed, slope, friction):
        return after(speed, slope, friction, 0.0)[0]

    check_grads(v, (0.001, slope, friction), order=1, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)
    slid = jax.jacfwd(v, 2)(0.001, slope, friction)
    expected = [-H * G * np.cos(slope), 0, 0] if friction < np.tan(slope) else [0, 0, 0]
    np.testing.assert_allclose(slid, expected, atol=1e-9)


def test_lanes_are_solved_apart():
    speeds, slopes = jnp.array([0.0, 1.0, 0.02]), jnp.array([0.3, 0.0, 0.1])
    batch = jax.vmap(after, (0, 0, None, None))(speeds, slopes, 0.5, 0.0)[0]
    for lane in range(3):
        np.testing.assert_allclose(batch[lane], after(speeds[lane], slopes[lane], 0.5, 0.0)[0], atol=1e-13)
