"""Joints' friction and stops, as rows of the impulse problem of a step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.elements import Stops, approach, turns
from jdyn.impulses import JointFriction, MatrixJacobian, Rows, Springs, UnitJacobian
from jdyn.model import Model
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField

Numbers = Float[Array, " nv_full"]


class Ends(Springs):
    """Impulses h n(v) of the springs at the ends of ranges, with their depth at the end of the step: both the spring
    and what dissipation makes of it grow with the speed v = start + u towards the end.

    Attributes:
        h: Length of the step [s].
        start: Speeds at the start of the step [rad/s or m/s].
        stops: The springs.
        beyond: How far joints are beyond the beginning of upper and lower springs at the start of the step [rad or m].
        places: Which rows have ends.
    """

    h: Scalar
    start: Numbers
    stops: Stops
    beyond: Float[Array, "2 ends"]
    places: tuple[int, ...] = eqx.field(static=True)

    def impulse_and_slope(self, u: Numbers) -> tuple[Numbers, Numbers]:
        speeds = (self.start + u)[np.array(self.places, int)]
        speeds = jnp.stack([speeds, -speeds])

        def impulses(speeds):
            return self.h * self.stops.push(self.beyond + self.h * speeds, speeds)

        (upper, lower), rises = jax.jvp(impulses, (speeds,), (jnp.ones_like(speeds),))
        full = jnp.zeros((2, *u.shape), u.dtype)
        return tuple(full.at[:, np.array(self.places, int)].set(jnp.stack([lower - upper, jnp.sum(rises, axis=0)])))


def joint_rows(field: VectorField, y: State, h: Scalar, A: Float[Array, "nv nv"]) -> list[Rows]:
    """Rows of a step from a state: of dry friction, and of the ends of ranges if they hold joints.

    Args:
        field: The equations of motion.
        y: State at the start.
        h: Length of the step [s].
        A: Inertia.
    """
    model = field.model
    if model.topology.mimics:
        J = MatrixJacobian(jax.vmap(model.expand_velocity)(jnp.eye(model.nv, dtype=A.dtype)).T)
    else:
        J = UnitJacobian()
    bound = h * model.friction
    stopped = bound * jnp.abs(model.expand_velocity(1 / jnp.diag(A)))
    # Rounding of larger speeds must not hide what friction does within its own.
    speed = jnp.maximum(model.friction_speed, jnp.sqrt(jnp.finfo(A.dtype).eps) * stopped)
    start = model.expand_velocity(y.v)
    rows = [Rows(JointFriction(start, bound, speed, stopped), J)]
    if field.stops is not None:
        gaps, _ = approach(model, y.q, y.v)
        beyond, places = field.stops.beyond(gaps), tuple(map(int, model.topology.ranged[1]))
        flat, turning = (_of_some(field.stops, part) for part in (slice(len(places)), slice(len(places), None)))
        rows.append(Rows(Ends(h, start, flat, beyond[:, : len(places)], places), J))
        if len(model.topology.balls[0]):
            J = _of_balls(model, y.q)
            all_of_them = tuple(range(len(J.J)))
            rows.append(Rows(Ends(h, J.velocities(y.v), turning, beyond[:, len(places) :], all_of_them), J))
    return rows


def _of_some(stops: Stops, which: slice) -> Stops:
    """Springs of some of the ends."""
    return jax.tree.map(lambda x: x[which] if x.ndim else x, stops)


def _of_balls(model: Model, q: Float[Array, " nq"]) -> MatrixJacobian:
    """Jacobian of the angles of ball joints."""
    (_, axes), (_, places) = turns(model, q), model.topology.balls
    rows = np.arange(len(places))[:, None]
    full = jnp.zeros((len(places), model.topology.v_offsets[-1]), axes.dtype).at[rows, places].set(axes)
    return MatrixJacobian(jax.vmap(model.reduce_force)(full))


def without_joint_rows(field: VectorField) -> VectorField:
    """The equations of motion without what `joint_rows` has."""
    model = eqx.tree_at(lambda model: model.friction, field.model, jnp.zeros_like(field.model.friction))
    return eqx.tree_at(lambda field: (field.model, field.stops), field, (model, None), is_leaf=lambda x: x is None)
