"""Rigid contact over a step: impulses by which velocities at its end meet the conditions of contact."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.contact.rigid import RETURN, Reaction, RigidForces, Vector, delassus
from jdyn.geometry.directions import length_and_unit
from jdyn.impulses import ConeProblem, ConeSolver
from jdyn.model import Model


class RigidSteps(RigidForces):
    """`RigidContact` between the shapes of a model, over a step.

    Source: Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988.

    Attributes:
        h: Length of the step [s].
        turned: Surplus of accelerations in axes that do not turn over `a` [rad/s² or m/s²].
    """

    h: Scalar | float = 0.0
    turned: Vector | float = 0.0

    @classmethod
    def of(cls, forces: RigidForces, h: Scalar, turned: Vector, solver: ConeSolver) -> "RigidSteps":
        """Forces over a step of a length h [s], by a solver of impulses."""
        same: dict[str, Any] = {field.name: getattr(forces, field.name) for field in dataclasses.fields(forces)}
        same["solver"] = solver
        return cls(**same, h=h, turned=turned)

    def reaction(
        self, model: Model, q: Float[Array, " nq"], v: Vector, a: Vector, respond: Callable[[Vector], Vector]
    ) -> Reaction:
        """Mean forces in the step, and by how much they change the mean acceleration `a`."""
        here, h = self.at(model, q, v), self.h
        e, friction, static = here.numbers
        free = jnp.einsum("pij,j->pi", here.J, v + h * (a + self.turned))
        apart, falls = here.points.distance, free[:, 2]
        # What is farther than twice its way does not press in this step.
        near = here.points.exist & (apart <= self.near(here.points) + 2 * h * jnp.abs(falls))
        J, moved, G = delassus(here.J, near, respond)
        bounces = (here.speeds[:, 2] < -self.rest_speed) & (apart + h * falls <= 0)
        # Overlap that steps leave goes away slowly, without a bounce.
        closes = jnp.where(apart > 0, apart / h, jnp.minimum(RETURN, 1 / h) * apart)
        b = free.at[:, 2].add(jnp.where(bounces, e * here.speeds[:, 2], closes))
        b = jnp.where(near[:, None], b, jnp.array([[0.0, 0.0, 1.0]], b.dtype))
        if static is not None:
            speed, _ = jax.vmap(length_and_unit)(here.speeds[:, :2])
            friction = jnp.where(speed > self.rest_speed, friction, static)
        found = self.solver.solve(ConeProblem(G, b, friction, model.nv))
        force = jnp.where(found.usable, found.gamma, jnp.nan) / h
        return self.as_reaction(here, force, moved, J)
