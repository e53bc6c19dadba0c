"""Instants at which shapes in rigid contact collide or stop to slide, and impacts of all points that touch at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import with_fields
from jdyn.contact import RigidForces, delassus
from jdyn.contact.time_of_contact import time_to_pass_colliders
from jdyn.geometry.directions import length_and_unit
from jdyn.impacts import ImpactsTogether, TogetherLaw
from jdyn.model import Model
from jdyn.simulation.events import SAMPLES_PER_STEP, Event, StepLimitingCondition
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField

# Points that stop to slide are slowed down by this power of rounding, as a share of the rest speed.
SLOWER = 0.35


class Change(eqx.Module):
    """Reset where shapes in rigid contact collide or stop to slide. What stops is made a little slower, by more than
    rounding, so that it does not stop again.

    Attributes:
        field: How the mechanism responds to impulses.
        contact: Of its shapes.
    """

    field: VectorField
    contact: RigidForces

    def __call__(self, t: Scalar, y: State, entry: Int[Array, ""]) -> State:
        here, law = self.contact.at(self.field.model, y.q, y.v), self.contact.law
        hit = here.touch & (entry < len(here.touch))
        e, friction, _ = here.numbers
        stops = jnp.arange(len(hit), dtype=entry.dtype) == entry - len(hit)
        _, along = jax.vmap(length_and_unit)(here.speeds[:, :2])
        row = jnp.einsum("p,pa,paj->j", stops.astype(along.dtype), along, here.J[:, :2])
        slower = self.field.response(t, y, row)
        by, speed = row @ slower, float(jnp.finfo(along.dtype).eps) ** SLOWER * self.contact.rest_speed
        v = y.v - speed / jnp.where(by > 0, by, 1) * slower
        return with_fields(y, v=v + at_once(self.field, t, y, here.J, hit, law, e, friction))


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


def at_once(
    field: VectorField,
    t: Scalar,
    y: State,
    J: Float[Array, "points 3 nv"],
    touch: Bool[Array, " points"],
    law: TogetherLaw,
    restitution: Float[Array, " points"],
    friction: Float[Array, " points"],
) -> Float[Array, " nv"]:
    """Change of the velocity by impacts of all points that touch; NaN where the law has no answer."""
    _, hit, moved = hits(field, t, y, J, touch, law, restitution, friction)
    return jnp.where(hit.usable, hit.impulse.ravel() @ moved, jnp.nan)


def hits(
    field: VectorField,
    t: Scalar,
    y: State,
    J: Float[Array, "points 3 nv"],
    touch: Bool[Array, " points"],
    law: TogetherLaw,
    restitution: Float[Array, " points"],
    friction: Float[Array, " points"],
) -> tuple[Float[Array, "points 3"], ImpactsTogether, Float[Array, "rows nv"]]:
    """Speeds before impacts of all points that touch, the impacts, and the velocities that unit impulses make."""
    J, moved, G = delassus(J, touch, lambda force: field.response(t, y, force))
    # Points that are apart leave each other.
    v = jnp.where(touch[:, None], (J @ y.v).reshape(-1, 3), jnp.array([[0.0, 0.0, 1.0]], y.v.dtype))
    return v, law(G, v, restitution, friction), moved
