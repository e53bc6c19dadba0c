"""Contacts of a motion, with names."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.contact.contact import ContactForces, PointForces, TouchingPoints
from jdyn.contact.moving_points import MovingPoints
from jdyn.model import Model
from jdyn.terminal.messages import unknown


class Contacts(Structure):
    """Points at which shapes may touch, a row each, and the forces there; those that are apart have none.

    Attributes:
        pairs: Names of the two shapes of each row.
        points: Where, how deep, and with what forces on the second shape, in world axes.
    """

    pairs: tuple[tuple[str, str], ...] = eqx.field(static=True)
    points: TouchingPoints

    def force(self, shape: str) -> Float[Array, "*rows 3"]:
        """The force of all others on a shape [N], in world axes.

        Raises:
            ValueError: if no pair has a shape of this name.
        """
        signs = np.array([(pair[1] == shape) - float(pair[0] == shape) for pair in self.pairs])
        if not signs.any():
            names = sorted({name for pair in self.pairs for name in pair})
            raise ValueError(unknown("shape that may touch", shape, names))
        return jnp.tensordot(self.points.force, jnp.asarray(signs, self.points.force.dtype), ((-2,), (0,)))


def named_contacts(
    forces: ContactForces, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], known: PointForces | None
) -> Contacts:
    """Contacts at one state, with the forces at points as far as they are known: NaN stands for those of the state."""
    points, numbers = forces.points(model, q, v) if known is None else forces.recorded(model, q, v, known)
    return Contacts(tuple(forces.colliders.names[number] for number in numbers), points)


def generalized_forces(
    forces: ContactForces, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], known: PointForces | None
) -> Float[Array, " nv"]:
    """Generalized contact forces at one state [N m or N], from the forces that `named_contacts` has at points."""
    if known is None:
        return forces.force(model, q, v)
    points, _ = forces.recorded(model, q, v, known)
    return MovingPoints.at(model, forces.colliders, q).generalized(points.torque, points.force)
