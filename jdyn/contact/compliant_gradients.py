"""Derivatives of steps with compliant contact, across its kinks and where its friction becomes stiff."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.array import Structure
from jdyn.contact.compliant_steps import lighter_masses
from jdyn.contact.contact import GradientPolicy
from jdyn.contact.kinks import Kinks, KinkSlopes
from jdyn.contact.laws import PointLaw, Rows, parting
from jdyn.contact.moving_points import MovingPoints
from jdyn.contact.stiffening import Stiffening
from jdyn.model import Model

# Derivatives know of kinks within steps whose square is at most so many times mass over stiffness. What the start of a
# longer one says of distances within it is worth nothing.
SOFT = 3.0


class StepRepair(Structure):
    """Corrections that are zero, and give the stages of a step the derivatives of the step.

    Attributes:
        kink_slopes: Across kinks; None where derivatives are to know of none.
        stiffening: Where friction becomes stiff.
    """

    kink_slopes: KinkSlopes | None
    stiffening: Stiffening

    def at_time(self, t: Any) -> "StepRepair":
        """Corrections at a time of the step, as solvers count it [s]."""
        if self.kink_slopes is None:
            return self
        return dataclasses.replace(self, kink_slopes=self.kink_slopes.at_time(t))

    def depth(self, distance: Float[Array, " points"], depth: Float[Array, " points"]) -> Float[Array, " points"]:
        """Depths with the derivatives of those that the step has."""
        return depth if self.kink_slopes is None else self.kink_slopes.felt(distance, depth)

    def twists_and_wrenches(
        self, law: PointLaw, here: MovingPoints, touch: Bool[Array, " points"], depth: Array, twists: Rows, numbers: Any
    ) -> tuple[Rows, list[Rows]]:
        """Twists with other derivatives, and wrenches that are zero."""
        start = jax.vmap(Stiffening.of)(self.stiffening, jnp.asarray(here.pairs.of_points))

        def felt(start, normal, depth, twist, *numbers):
            b, across = law.friction(normal, depth, twist, *numbers)
            return start.felt(twist, *jax.lax.stop_gradient((normal, b, across)))

        twists, held = jax.vmap(felt)(start, here.normal, depth, twists, *numbers)
        return twists, [held] if self.kink_slopes is None else [held, self.kink_slopes.force(touch)]


class CompliantGradients(GradientPolicy):
    """Gradient policy of `CompliantContact`.

    Attributes:
        kinks: Whether derivatives must know that points begin and cease to touch within a step.
        jumps: Whether forces begin with jumps, whose slopes nobody knows.
    """

    kinks: bool = eqx.field(static=True)
    jumps: bool = eqx.field(static=True)

    @property
    def has_jumps(self) -> bool:
        return self.kinks and self.jumps

    def repaired(
        self,
        forces: Any,
        model: Model,
        t: tuple[Scalar, Scalar],
        h: Scalar,
        start: tuple[Array, Array],
        end: tuple[Array, Array],
    ) -> Any:
        """The same forces, `CompliantForces`, with their `StepRepair`."""
        t, h = jax.lax.stop_gradient((t, h))
        fixed = jax.lax.stop_gradient(forces)
        stiffening = _stiffening(fixed, *jax.lax.stop_gradient((model, start, h)))
        known = self.kinks and not self.jumps
        slopes = _kink_slopes(forces, model, t, h, start, end) if known else None
        return dataclasses.replace(forces, repair=StepRepair(slopes, stiffening))


def _stiffening(forces: Any, model: Model, start: tuple[Array, Array], h: Scalar) -> Stiffening:
    q, v = start
    here, law = forces.detected(model, q), forces.point_law
    depth, numbers = forces.depths(here), forces.materials.at(here)
    slopes = jax.vmap(jax.jacfwd(law.wrench, 2))(here.normal, depth, law.twists(here, v), *numbers)
    pair = here.pairs.of_points
    return Stiffening(slopes, lighter_masses(model, forces.colliders)[pair] / jnp.abs(h), jnp.asarray(pair))


def _kink_slopes(
    forces: Any, model: Model, t: tuple[Scalar, Scalar], h: Scalar, start: tuple[Array, Array], end: tuple[Array, Array]
) -> KinkSlopes:
    q, v = start
    fixed, law = jax.lax.stop_gradient(forces), forces.point_law
    kinks = _kinks(fixed, *jax.lax.stop_gradient((model, h, start, end)))
    begin = forces.detected(model, q)
    distances, here = begin.found.distance, jax.lax.stop_gradient(begin)
    numbers = forces.materials.at(here)

    def pressed(depth):
        return jax.vmap(law.wrench)(here.normal, depth, kinks.twists, *numbers)

    _, stiffness = jax.jvp(pressed, (jnp.zeros_like(distances),), (jnp.ones_like(distances),))
    return KinkSlopes.of(kinks, t, distances, h * parting(law.twists(here, v), here.normal), stiffness)


def _kinks(forces: Any, model: Model, h: Scalar, start: tuple[Array, Array], end: tuple[Array, Array]) -> Kinks:
    law = forces.point_law
    before, after = forces.detected(model, start[0]), MovingPoints.at(model, forces.colliders, end[0])
    gaps, normals = (before.distance, after.distance), (before.normal, after.normal)
    twists, pair = (law.twists(before, start[1]), law.twists(after, end[1])), before.pairs.of_points
    stiffness, *_ = forces.materials.at(before)
    soft = stiffness * h**2 <= SOFT * lighter_masses(model, forces.colliders)[pair]
    known = soft & before.exist & after.exist & jnp.asarray(pair == after.pairs.of_points)
    return Kinks.between(gaps, normals, twists, h, known)
