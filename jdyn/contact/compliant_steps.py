"""Limits that compliant contact sets on the length of steps."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.array import is_single
from jdyn.contact.colliders import Colliders
from jdyn.contact.contact import StepPolicy
from jdyn.contact.laws import ContactLaw, parting
from jdyn.contact.materials import PairMaterials
from jdyn.contact.moving_points import MovingPoints
from jdyn.contact.nearing import time_to_pass
from jdyn.dynamics.energy import energy_of_motion
from jdyn.dynamics.kinematics import joint_kinematics, poses_and_velocities
from jdyn.model import WORLD, Model, take_rows

# Of the way to a touch, what a step goes that leads there: its stages are not exact, and what they find beyond it would
# spoil the step.
BEFORE = 0.95
# Of a momentum, what springs may give in the first step after a touch. A step that begins so shortly before a touch
# ends at it, but for those that begin within the last tenth of this time.
GIVEN, NEAR = 1e-2, 0.1
# Bodies count with this share of the mass of all at least.
LIGHT = 1e-4
# The longest step where shapes touch, by √(m / k) over the root of rounding; none in double precision, with which it
# would take hours.
LONG = 0.1
# Steps may overshoot at such speeds [m/s]: at rest, rounding decides what touches.
SLOW = 1e-3


class CompliantSteps(StepPolicy):
    """Step policy of `CompliantContact`.

    Attributes:
        q: Configuration where the step begins.
        start: Points there.
        colliders: The shapes.
        law: Along the normal.
        materials: Of pairs.
    """

    q: Float[Array, " nq"]
    start: MovingPoints
    colliders: Colliders
    law: ContactLaw
    materials: PairMaterials

    def overshot(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Bool[Array, ""]:
        """Tell whether a step has gone too deep into points that it began apart from: their springs hold more energy
        than the mechanism's motion at its end. Points move with their bodies, since looking for others takes long to
        compile.

        Then the step is longer than these springs take to stop what arrives. Error estimates may miss that: stages
        without weight in them throw the following stages out of the contact again.
        """
        v = model.expand_velocity(v)
        poses, moved = poses_and_velocities(model, joint_kinematics(model, model.expand(q)), v)
        start = self.start
        depth = -jnp.where(start.apart, jnp.minimum(start.carried(self.colliders, poses), 0), 0)
        stiffness, dissipation, *_ = self.materials.at(start)
        springs = jnp.sum(self.law.force(depth, jnp.zeros_like(depth), stiffness, dissipation) * depth) / 2
        return springs > energy_of_motion(model, moved, v) + SLOW**2 / 2 * jnp.sum(model.inertias.mass)

    def longest(self, model: Model, v: Float[Array, " nv"], a: Float[Array, " nv"]) -> Scalar:
        """Until shortly before the first touch, by gaps d that close with d = u t + g t² / 2, or the time after a touch
        in which springs give a share of a momentum. How points move on bodies is left out of g. Where shapes touch, in
        single precision, as long as rounding of forces cannot part them within the step, some hundred times √(m / k).
        Nor is any shape passed whose way turns."""
        start = self.start
        gap, exists = start.distance, start.exist
        speed, growth = -parting(jax.vmap(start.twists)(jnp.stack([v, a])), start.normal[None])
        square = speed**2 + 2 * growth * gap
        hits = (gap > 0) & (square > SLOW**2) & ((speed > 0) | (growth > 0))
        began = exists & (gap <= 0) & (speed > SLOW)
        arriving = jnp.sqrt(jnp.where(hits, square, 1))
        until = _first_root(gap, speed, growth, arriving, hits)
        fast = jnp.where(began, speed, arriving)
        stiffness, *_ = self.materials.at(start)
        mass = lighter_masses(model, self.colliders)[start.pairs.of_points]
        through = _through(fast, mass, stiffness, self.law.exponent)
        resolved = self._resolved(gap, exists, mass, stiffness)
        shortly = (until > NEAR * through) & (until <= through)
        length = jnp.where(shortly, until, jnp.maximum(BEFORE * until, through))
        length = jnp.where(began & (-gap < speed * through), through, jnp.where(hits, length, resolved))
        # No configuration tells shorter steps from none.
        least = jnp.finfo(self.q.dtype).eps * jnp.max(jnp.abs(self.q), initial=0)
        until_touch = jnp.min(jnp.where(length * fast > least, length, jnp.inf), initial=jnp.inf)
        numbers = None if isinstance(start.pairs.numbers, np.ndarray) else start.pairs.numbers
        passing = time_to_pass(start.motion, self.colliders, v, a, start.found, start.pairs.places, numbers)
        return jnp.minimum(until_touch, passing)

    def _resolved(self, gap: Array, exists: Array, mass: Array, stiffness: Array) -> Float[Array, " points"]:
        """Longest step where shapes touch, as far as single precision resolves their forces."""
        eps = jnp.finfo(gap.dtype).eps
        if not is_single(gap.dtype):
            return jnp.full_like(gap, jnp.inf)
        touch = exists & (gap < 0) & (stiffness > 0)
        slope = jnp.where(touch, stiffness * jnp.where(touch, -gap, 1) ** (self.law.exponent - 1), 1)
        return jnp.where(touch, LONG * jnp.sqrt(mass / (eps * slope)), jnp.inf)


def lighter_masses(model: Model, colliders: Colliders) -> Float[Array, " pairs"]:
    """Mass of the lighter body of each pair [kg]."""
    mass = model.inertias.mass
    # The world does not move.
    masses = jnp.concatenate([jnp.full(1, jnp.inf, mass.dtype), jnp.maximum(mass, LIGHT * jnp.sum(mass))])
    bodies = np.array([colliders.bodies(side) for side in (0, 1)], int)
    return jnp.min(take_rows(masses, bodies - WORLD), axis=0)


def _first_root(gap: Array, speed: Array, growth: Array, arriving: Array, wanted: Array) -> Array:
    """When d − u t − g t² / 2 = 0 for the first time, by the speed then; in the form in which nothing cancels."""
    closing = speed > 0
    above, below = jnp.where(closing, 2 * gap, arriving - speed), jnp.where(closing, speed + arriving, growth)
    return above / jnp.where(wanted, below, 1)


def _through(speed: Array, mass: Array, stiffness: Array, exponent: float) -> Array:
    """The time after a touch in which the spring k dᵉ takes `GIVEN` of the momentum of a mass [s]."""
    power = exponent + 1
    return (power * GIVEN * mass * speed ** (1 - exponent) / stiffness) ** (1 / power)
