"""Contact forces of implicit stages, where states do not say those of what rests since they are rounded."""

from typing import Any

import jax

from jdyn.contact import PointForces, SmoothForces
from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.solvers.joint_implicit import equations_of_motion
from jdyn.simulation.vector_field import State


def forces_of_rest_like(terms: Any, y: State) -> PointForces | None:
    """Shapes of what `forces_of_rest` finds, if it finds anything."""
    field = equations_of_motion(terms)
    contact = field.contact
    return contact.resting_like(field.model, y.q, y.v) if isinstance(contact, SmoothForces) else None


def forces_of_rest(terms: LocalTerm, y0: State, change: State) -> PointForces | None:
    """Contact forces of an implicit stage of a step from `y0`, which moves by this `change` in its chart."""
    contact, model = (getattr(equations_of_motion(terms.term), name) for name in ("contact", "model"))
    if forces_of_rest_like(terms.term, y0) is None:
        return None
    contact, model, y0, change = jax.lax.stop_gradient((contact, model, y0, change))
    return contact.resting(model, y0.q, y0.v, model.body_axes(y0.q, change.q), change.v)
