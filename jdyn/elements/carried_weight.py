"""Weight of bodies that is carried by something outside."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers, with_fields
from jdyn.dynamics import Kinematics
from jdyn.elements.element import ForceElement
from jdyn.model import Locked, Name, OtherRoot, Units
from jdyn.spatial import Transform


class CarriedWeight(ForceElement):
    """A share of the weight of bodies is carried: by a counterweight, a balloon, the water that they swim in.

    >>> model = jdyn.load("pendulum")
    >>> balloon = jdyn.elements.CarriedWeight(("link1",), masses=[0.5], points=[[0.0, 0.0, -0.5]])
    >>> print(balloon.generalized(model, 0.0, jnp.array([jnp.pi / 2]), jnp.zeros(1)).round(3))
    [2.452]

    Attributes:
        bodies: Names of bodies.
        masses: Mass of each whose weight is carried [kg].
        points: Points of these bodies where it is carried, in their frames [m].
    """

    units: ClassVar[Units] = {"masses": "kg", "points": "m"}

    bodies: tuple[Name, ...] = eqx.field(static=True)
    masses: Float[Array, " n"] = eqx.field(converter=as_numbers)
    points: Float[Array, "n 3"] = eqx.field(converter=as_numbers)

    def force(self, t: Scalar, kinematics: Kinematics, memory: Any) -> Float[Array, "nb 6"]:
        numbers = np.array([kinematics.model.topology.body(name) for name in self.bodies])
        up = -jnp.asarray(kinematics.model.gravity, kinematics.q.dtype)
        forces = jax.vmap(lambda R, mass: mass * (R.T @ up))(kinematics.poses.rotation[numbers], self.masses)
        wrenches = jnp.concatenate([jnp.cross(self.points, forces), forces], axis=1)
        return jnp.zeros_like(kinematics.velocities).at[numbers].add(wrenches)

    def without_locked(self, locked: Locked) -> "CarriedWeight | None":
        """The same on the bodies that move."""
        rows, names, poses = locked.in_motion(self.bodies)
        if not rows:
            return None
        points = [X.point_to_parent(self.points[row]) for X, row in zip(poses, rows, strict=True)]
        return with_fields(self, bodies=names, masses=self.masses[np.array(rows)], points=jnp.stack(points))

    def with_other_root(self, change: OtherRoot) -> "CarriedWeight":
        """The same on the same bodies."""
        names, poses = change.places(self.bodies)
        return with_fields(self, bodies=names, points=jax.vmap(Transform.point_to_parent)(poses, self.points))
