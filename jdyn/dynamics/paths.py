"""Paths through the tree from bodies to others: the joints on them move the one body relative to the other.

Joints that carry both bodies do not enter, whatever they do: nothing cancels by rounding.
"""

import abc
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jdyn.array import Structure
from jdyn.dynamics.kinematics import per_dof
from jdyn.dynamics.row_jacobians import DenseJacobian, PointJacobian, SparseJacobian
from jdyn.execution.at_once import at_once
from jdyn.model import WORLD, Model
from jdyn.spatial.components import cross

# Coordinates of a model for each one on a path, from which on the others are left out.
FEW = 4

Bodies = Int[np.ndarray, " paths"] | Sequence[int]
Columns = Float[Array, "nv_full 6"]
Twists = Float[Array, "paths 6"]


def bodies_before(model: Model) -> np.ndarray:
    """Tell whether the body of the column is on the way from the world to that of the row, or is it; the world comes
    last."""
    topology = model.topology
    table = np.zeros((topology.nb - WORLD, topology.nb), bool)
    for body, path in enumerate(topology.supports):
        table[body, list(path)] = True
    return table


def signs_on_paths(model: Model, first: Bodies, second: Bodies) -> Int[np.ndarray, "paths nv_full"]:
    """1 where a coordinate of all joints moves the second body of a path alone, −1 where it moves the first alone."""
    moved = per_dof(model, bodies_before(model).T).T.astype(int)
    return moved[np.asarray(second, int)] - moved[np.asarray(first, int)]


class Paths(Structure):
    """Paths between two bodies each. Columns are the twists of the coordinates of all joints at one place, in world
    axes."""

    @abc.abstractmethod
    def of(self, numbers: Int[Array, " some"]) -> "Paths":
        """Some of the paths."""

    @abc.abstractmethod
    def twists(self, columns: Columns, v: Float[Array, " nv_full"]) -> Twists:
        """[ω; v] of second bodies relative to first ones, by the velocities of all joints."""

    @abc.abstractmethod
    def forces(self, columns: Columns, wrenches: Twists) -> Float[Array, " nv_full"]:
        """Forces on all joints, by wrenches [n; f] on second bodies; the first ones bear the opposite."""

    @abc.abstractmethod
    def jacobian(self, columns: Columns, A: Float[Array, "paths rows 6"]) -> Float[Array, "paths rows nv_full"]:
        """Jacobian of rows that are A times the twist of a path."""

    @abc.abstractmethod
    def point_jacobians(
        self, model: Model, columns: Columns, arms: Float[Array, "rows 3"], paths: Int[np.ndarray, " rows"]
    ) -> tuple[PointJacobian, PointJacobian]:
        """Jacobians of angular velocities of second bodies relative to first ones, and of the velocities of their
        points at the ends of arms; each row belongs to the path in that place."""


def paths_between(model: Model, first: Bodies, second: Bodies) -> Paths:
    """Paths from first bodies to second ones, by their numbers; −1 is the world."""
    signs = signs_on_paths(model, first, second)
    most = int(np.max(np.count_nonzero(signs, axis=1), initial=0))
    if FEW * most > signs.shape[1]:
        return AllCoordinates(jnp.asarray(signs, model.dtype))
    # Those on the path come first, in their order; others, whose sign is zero, fill rows up.
    coordinates = np.argsort(signs == 0, axis=1, kind="stable")[:, :most]
    signs = np.take_along_axis(signs, coordinates, axis=1)
    return FewCoordinates(coordinates.astype(np.int32), jnp.asarray(signs, model.dtype))


class AllCoordinates(Paths):
    """Columns of all coordinates, for models of whose joints many are on a path, such as a robot.

    Attributes:
        signs: As `signs_on_paths` has them.
    """

    signs: Float[Array, "paths nv_full"]

    def of(self, numbers):
        return AllCoordinates(self.signs[numbers])

    def twists(self, columns, v):
        return self.signs @ (v[:, None] * columns)

    def forces(self, columns, wrenches):
        return jnp.sum((self.signs.T @ wrenches) * columns, axis=1)

    def jacobian(self, columns, A):
        return self.signs[:, None] * (A @ columns.T)

    def point_jacobians(self, model, columns, arms, paths):
        turning, moving = columns[:, :3].T, columns[:, 3:].T
        across = cross(tuple(turning[:, None]), tuple(arms.T[:, :, None]))
        signs = self.signs[paths]
        by_axis = at_once([signs * (v[None] + u) for v, u in zip(moving, across, strict=True)])
        rows = signs[:, None] * turning[None], jnp.stack(by_axis, axis=1)
        reduced = jax.vmap(jax.vmap(model.reduce_force))
        return DenseJacobian(reduced(rows[0])), DenseJacobian(reduced(rows[1]))


class FewCoordinates(Paths):
    """Columns of few coordinates, for models of whose joints few are on any path, such as a heap of bodies.

    Attributes:
        coordinates: Numbers among those of all joints; those on a path are among them.
        signs: As `signs_on_paths` has them.
    """

    coordinates: Int[np.ndarray | Array, "paths few"]
    signs: Float[Array, "paths few"]

    def of(self, numbers):
        return FewCoordinates(jnp.asarray(self.coordinates)[numbers], self.signs[numbers])

    def twists(self, columns, v):
        # Else XLA computes columns again for each path that takes them.
        by_axis = at_once(list(v[None] * columns.T))
        return jnp.stack([jnp.sum(self.signs * x[self.coordinates], axis=1) for x in by_axis], axis=1)

    def forces(self, columns, wrenches):
        by_path = self.signs * jnp.sum(columns[self.coordinates] * wrenches[:, None], axis=2)
        return jnp.zeros(len(columns), by_path.dtype).at[self.coordinates].add(by_path)

    def jacobian(self, columns, A):
        few = self.signs[:, None] * (A @ jnp.swapaxes(columns[self.coordinates], 1, 2))
        everywhere = jnp.zeros((*A.shape[:2], len(columns)), few.dtype)
        return jax.vmap(lambda J, at, few: J.at[:, at].add(few))(everywhere, self.coordinates, few)

    def point_jacobians(self, model, columns, arms, paths):
        coordinates, signs = self.coordinates[paths], self.signs[paths]
        moved = (signs * model.expand_velocity(jnp.ones(model.nv, columns.dtype))[coordinates])[:, None]
        turning, moving = jnp.moveaxis(columns[coordinates], 2, 0).reshape(2, 3, *coordinates.shape)
        across = cross(tuple(turning), tuple(arms.T[:, :, None]))
        leaders = jnp.asarray(model.leading_coordinates)[coordinates]
        rows = turning, jnp.stack([v + u for v, u in zip(moving, across, strict=True)])
        turning, moving = (moved * jnp.moveaxis(x, 0, 1) for x in rows)
        # Coordinates occur twice where joints follow others.
        known = model.nv, model.nv == len(columns)
        return SparseJacobian(turning, leaders, *known), SparseJacobian(moving, leaders, *known)
