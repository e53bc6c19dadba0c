"""Instants at which shapes in rigid contact collide, and impacts of all points that touch at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import with_fields
from jdyn.contact import RigidForces
from jdyn.impacts import TogetherLaw
from jdyn.simulation.events import Event
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField


class RigidCollision(eqx.Module):
    """Reset where shapes in rigid contact collide.

    Attributes:
        field: How the mechanism responds to impulses.
        contact: Of its shapes.
    """

    field: VectorField
    contact: RigidForces

    def __call__(self, t: Scalar, y: State, entry: Int[Array, ""]) -> State:
        here, law = self.contact.at(self.field.model, y.q, y.v), self.contact.law
        e = jnp.broadcast_to(self.contact.restitution, here.friction.shape)
        return with_fields(y, v=y.v + at_once(self.field, t, y, here.J, here.touch, law, e, here.friction))


def rigid_collisions(field: VectorField, contact: RigidForces) -> Event:
    """The event at the instants at which shapes in rigid contact collide."""

    def approaching(t, y):
        return contact.approaching(field.model, y.q, y.v)

    return Event(approaching, RigidCollision(field, contact))


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
    shape = J.shape[:2]
    J = jnp.where(touch[:, None, None], J, 0).reshape(3 * len(J), -1)
    moved = jax.vmap(lambda j: field.response(t, y, j))(J)
    # Points that are apart leave each other.
    v = jnp.where(touch[:, None], (J @ y.v).reshape(shape), jnp.array([[0.0, 0.0, 1.0]], y.v.dtype))
    hit = law((J @ moved.T).reshape(2 * shape), v, restitution, friction)
    return jnp.where(hit.converged, hit.impulse.ravel() @ moved, jnp.nan)
