"""Contact forces of implicit stages, where states do not say those of what rests since they are rounded."""

from typing import Any

import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool

from jdyn.contact import PointForces
from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.solvers.joint_implicit import equations_of_motion
from jdyn.simulation.state import State


def forces_of_rest_like(terms: Any, y: State) -> PointForces | None:
    """Shapes of what `forces_of_rest` finds, if it finds anything."""
    field = equations_of_motion(terms)
    contact = field.contact
    return None if contact is None else jax.eval_shape(contact.of_stage, field.model, y.q, y.v, y.v, y.v)


def forces_of_rest(terms: LocalTerm, y0: State, change: State, implicit: Bool[Array, ""]) -> PointForces | None:
    """Contact forces of an implicit stage of a step from `y0`, which moves by this `change` in its chart; NaN unless it
    is `implicit`. They are found if it is for any lane of a batch."""
    like, field = forces_of_rest_like(terms.term, y0), equations_of_motion(terms.term)
    if like is None:
        return None

    def found():
        contact: Any
        contact, model, y, moved = jax.lax.stop_gradient((field.contact, field.model, y0, change))
        return contact.of_stage(model, y.q, y.v, model.body_axes(y.q, moved.q), moved.v)

    nothing = jax.tree.map(lambda x: jnp.full(x.shape, jnp.nan, x.dtype), like)
    forces = jax.lax.cond(unvmap_any(implicit), found, lambda: nothing)
    return jax.tree.map(lambda x, nothing: jnp.where(implicit, x, nothing), forces, nothing)
