"""Instants at which shapes in rigid contact collide or stop to slide, and impacts of all points that touch at once."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import LeastNorm, with_fields
from jdyn.contact import RigidForces, delassus
from jdyn.contact.time_of_contact import time_to_pass_colliders
from jdyn.geometry.directions import length_and_unit
from jdyn.impacts import ImpactsTogether, TogetherLaw
from jdyn.model import Model
from jdyn.simulation.events import SAMPLES_PER_STEP, Event, StepLimitingCondition
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField

# Points that are slower than so many rest speeds stop together with one that does.
TOGETHER = 2.0


class Change(eqx.Module):
    """Reset where shapes in rigid contact collide or stop to slide.

    What stops has the rest speed. An impulse takes it away, of all points at once that touch and are as slow, so that
    nothing creeps on.

    Attributes:
        field: How the mechanism responds to impulses.
        contact: Of its shapes.
    """

    field: VectorField
    contact: RigidForces

    def __call__(self, t: Scalar, y: State, entry: Int[Array, ""]) -> State:
        here, law = self.contact.at(self.field.model, y.q, y.v), self.contact.law
        e, friction, _ = here.numbers
        hit = hits(self.field, t, y, here.J, here.touch, law, e, friction)
        slip, _ = jax.vmap(length_and_unit)(here.speeds[:, :2])
        stays = here.touch & (jnp.abs(here.speeds[:, 2]) <= self.contact.rest_speed)
        # Of what slides on, the normals alone.
        held = stays[:, None] & (jnp.stack([slip, slip, 0 * slip], axis=1) <= TOGETHER * self.contact.rest_speed)
        # The smallest change of velocity with which these rows are zero.
        both = here.J.reshape(hit.moved.shape), hit.moved
        J, moved = (jnp.where(held.reshape(-1, 1), rows, 0) for rows in both)
        stops = LeastNorm.of(J @ moved.T, len(y.v)).solve(J @ y.v) @ moved
        return with_fields(y, v=y.v + jnp.where(entry < len(here.touch), hit.change, -stops))


class Changing(StepLimitingCondition):
    """The condition of events where shapes in rigid contact collide, and then of those where they stop to slide, see
    `RigidForces.changing`.

    Attributes:
        model: The mechanism.
        contact: Of its shapes.
    """

    model: Model
    contact: RigidForces

    def __call__(self, t: Scalar, y: State) -> Float[Array, " entries"]:
        return jnp.concatenate(self.contact.changing(self.model, y.q, y.v))

    def longest_step(self, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]) -> Scalar:
        passes = time_to_pass_colliders(self.model, self.contact.colliders, q, v, a, SAMPLES_PER_STEP)
        return jnp.minimum(passes, self.contact.time_to_stop(self.model, q, v, a))


def rigid_events(field: VectorField, contact: RigidForces) -> Event:
    """The event at the instants at which shapes in rigid contact collide or stop to slide."""
    return Event(Changing(field.model, contact), Change(field, contact))


class Hits(NamedTuple):
    """Impacts of all points that touch, at one instant.

    Attributes:
        speeds: Of the points before [m/s].
        impacts: By a law.
        moved: Velocities that unit impulses make.
    """

    speeds: Float[Array, "points 3"]
    impacts: ImpactsTogether
    moved: Float[Array, "rows nv"]

    @property
    def change(self) -> Float[Array, " nv"]:
        """Change of the velocity; NaN where the law has no answer."""
        return jnp.where(self.impacts.usable, self.impacts.impulse.ravel() @ self.moved, jnp.nan)


def hits(
    field: VectorField,
    t: Scalar,
    y: State,
    J: Float[Array, "points 3 nv"],
    touch: Bool[Array, " points"],
    law: TogetherLaw,
    restitution: Float[Array, " points"],
    friction: Float[Array, " points"],
) -> Hits:
    """Impacts of all points that touch."""
    J, moved, G = delassus(J, touch, lambda force: field.response(t, y, force))
    # Points that are apart leave each other.
    v = jnp.where(touch[:, None], (J @ y.v).reshape(-1, 3), jnp.array([[0.0, 0.0, 1.0]], y.v.dtype))
    return Hits(v, law(G, v, restitution, friction), moved)
