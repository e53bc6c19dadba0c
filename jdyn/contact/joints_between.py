"""Which joints lie between the two bodies of each pair of shapes: they move the one relative to the other.

Joints that carry both bodies do not enter, whatever they do: nothing cancels by rounding.
"""

import abc

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jdyn.array import Structure
from jdyn.contact.colliders import Colliders
from jdyn.dynamics.kinematics import moved_by
from jdyn.execution.at_once import at_once
from jdyn.impulses.jacobians import DenseJacobian, PointJacobian, SparseJacobian
from jdyn.model import WORLD, Model
from jdyn.spatial.components import cross

# Coordinates of a model for each one between the two bodies of a pair, from which on the others are left out.
FEW = 4

Columns = Float[Array, "nv_full 6"]
Twists = Float[Array, "pairs 6"]


def signs_between(model: Model, colliders: Colliders) -> Int[np.ndarray, "pairs nv_full"]:
    """1 where a coordinate of all joints moves the second body of a pair alone, −1 where it moves the first alone."""
    # Nothing moves the world, which comes last.
    table = np.pad(moved_by(model).astype(int), [(0, -WORLD), (0, 0)])
    first, second = (table[np.array(colliders.bodies(side), int)] for side in (0, 1))
    return second - first


class JointsBetween(Structure):
    """Joints between the bodies of all pairs. Columns are the twists of the coordinates of all joints at one place, in
    world axes."""

    @abc.abstractmethod
    def of(self, numbers: Int[Array, " some"]) -> "JointsBetween":
        """Joints between the bodies of some pairs."""

    @abc.abstractmethod
    def twists(self, columns: Columns, v: Float[Array, " nv_full"]) -> Twists:
        """[ω; v] of second bodies relative to first ones, by the velocities of all joints."""

    @abc.abstractmethod
    def forces(self, columns: Columns, wrenches: Twists) -> Float[Array, " nv_full"]:
        """On all joints, by wrenches [n; f] on second bodies; the first ones bear the opposite."""

    @abc.abstractmethod
    def jacobians(
        self, model: Model, columns: Columns, arms: Float[Array, "rows 3"], pair: Int[np.ndarray, " rows"]
    ) -> tuple[PointJacobian, PointJacobian]:
        """Jacobians of angular velocities of second bodies relative to first ones, and of the velocities of their
        points at the ends of arms; each row belongs to the pair in that place."""


def joints_between(model: Model, colliders: Colliders) -> JointsBetween:
    """Joints between the bodies of pairs of colliders."""
    signs = signs_between(model, colliders)
    most = int(np.max(np.count_nonzero(signs, axis=1), initial=0))
    if FEW * most > signs.shape[1]:
        return AllCoordinates(jnp.asarray(signs, model.dtype))
    # Those between come first, in their order; others, whose sign is zero, fill rows up.
    coordinates = np.argsort(signs == 0, axis=1, kind="stable")[:, :most]
    signs = np.take_along_axis(signs, coordinates, axis=1)
    return FewCoordinates(coordinates.astype(np.int32), jnp.asarray(signs, model.dtype))


class AllCoordinates(JointsBetween):
    """Columns of all coordinates, for models of whose joints many are between the bodies of a pair, such as a robot.

    Attributes:
        signs: As `signs_between` has them.
    """

    signs: Float[Array, "pairs nv_full"]

    def of(self, numbers):
        return AllCoordinates(self.signs[numbers])

    def twists(self, columns, v):
        return self.signs @ (v[:, None] * columns)

    def forces(self, columns, wrenches):
        return jnp.sum((self.signs.T @ wrenches) * columns, axis=1)

    def jacobians(self, model, columns, arms, pair):
        turning, moving = columns[:, :3].T, columns[:, 3:].T
        across = cross(tuple(turning[:, None]), tuple(arms.T[:, :, None]))
        signs = self.signs[pair]
        by_axis = at_once([signs * (v[None] + u) for v, u in zip(moving, across, strict=True)])
        rows = signs[:, None] * turning[None], jnp.stack(by_axis, axis=1)
        reduced = jax.vmap(jax.vmap(model.reduce_force))
        return DenseJacobian(reduced(rows[0])), DenseJacobian(reduced(rows[1]))


class FewCoordinates(JointsBetween):
    """Columns of few coordinates, for models of whose joints few are between the bodies of any pair, such as a heap of
    bodies.

    Attributes:
        coordinates: Of all joints; those between the bodies of a pair are among them.
        signs: As `signs_between` has them.
    """

    coordinates: Int[np.ndarray | Array, "pairs few"]
    signs: Float[Array, "pairs few"]

    def of(self, numbers):
        return FewCoordinates(jnp.asarray(self.coordinates)[numbers], self.signs[numbers])

    def twists(self, columns, v):
        # Else XLA computes columns again for each pair that takes them.
        by_axis = at_once(list(v[None] * columns.T))
        return jnp.stack([jnp.sum(self.signs * x[self.coordinates], axis=1) for x in by_axis], axis=1)

    def forces(self, columns, wrenches):
        by_pair = self.signs * jnp.sum(columns[self.coordinates] * wrenches[:, None], axis=2)
        return jnp.zeros(len(columns), by_pair.dtype).at[self.coordinates].add(by_pair)

    def jacobians(self, model, columns, arms, pair):
        coordinates, signs = self.coordinates[pair], self.signs[pair]
        moved = (signs * model.expand_velocity(jnp.ones(model.nv, columns.dtype))[coordinates])[:, None]
        turning, moving = jnp.moveaxis(columns[coordinates], 2, 0).reshape(2, 3, *coordinates.shape)
        across = cross(tuple(turning), tuple(arms.T[:, :, None]))
        leaders = jnp.asarray(model.leading_coordinates)[coordinates]
        rows = turning, jnp.stack([v + u for v, u in zip(moving, across, strict=True)])
        turning, moving = (moved * jnp.moveaxis(x, 0, 1) for x in rows)
        # Coordinates occur twice where joints follow others.
        known = model.nv, model.nv == len(columns)
        return SparseJacobian(turning, leaders, *known), SparseJacobian(moving, leaders, *known)
