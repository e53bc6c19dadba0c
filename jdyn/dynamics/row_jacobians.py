"""Jacobians of rows: velocities at points, in joints and of constraints, by the velocity of a model."""

import abc
import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Float, Int

from jdyn.array import Structure

Vector = Float[Array, " nv"]
Numbers = Float[Array, "points k"]
Matrix = Float[Array, "nv nv"]


class RowJacobian(Structure):
    """From the velocity of a model to the velocities of rows."""

    @abc.abstractmethod
    def velocities(self, v: Vector) -> Array:
        """J v."""

    @abc.abstractmethod
    def generalized(self, forces: Array) -> Vector:
        """Jᵀ f."""

    @abc.abstractmethod
    def weighed(self, G: Array) -> Matrix:
        """Jᵀ G J with the symmetric slopes G of a law: a number a row, or a matrix a point."""


class UnitJacobian(RowJacobian):
    """Velocities of the model themselves."""

    def velocities(self, v: Vector) -> Vector:
        return v

    def generalized(self, forces: Vector) -> Vector:
        return forces

    def weighed(self, G: Vector) -> Matrix:
        return jnp.diag(G)


class MatrixJacobian(RowJacobian):
    """A number each row.

    Attributes:
        J: The matrix.
    """

    J: Float[Array, "rows nv"]

    def velocities(self, v: Vector) -> Float[Array, " rows"]:
        return self.J @ v

    def generalized(self, forces: Float[Array, " rows"]) -> Vector:
        return self.J.T @ forces

    def weighed(self, G: Float[Array, " rows"]) -> Matrix:
        return self.J.T @ (G[:, None] * self.J)


class PointJacobian(RowJacobian):
    """From the velocity of a model to k numbers at each point.

    Attributes:
        J: A matrix for each point.
    """

    J: Float[Array, "points k columns"]
    # Points whose part of JᵀGJ is left out together where G is zero for all of them.
    block: ClassVar[int]

    @property
    @abc.abstractmethod
    def nv(self) -> int:
        """Number of the model's velocities."""

    @property
    def points(self) -> int:
        """Number of points."""
        return self.J.shape[0]

    @abc.abstractmethod
    def squares(self, weights: Vector) -> Float[Array, " points"]:
        """The sum of all J² of a point, each times the weight of its coordinate."""

    @abc.abstractmethod
    def _added(self, H: Matrix, G: Float[Array, "points k k"]) -> Matrix:
        """H + Jᵀ G J."""

    def above(self, other: "PointJacobian") -> "PointJacobian":
        """Both numbers at the same points, those of another one after these."""
        return dataclasses.replace(self, J=jnp.concatenate([self.J, other.J], axis=1))

    def weighed(self, G: Float[Array, "points k k"]) -> Matrix:
        """Jᵀ G J, in the time of those points alone at which G is not zero."""
        none = jnp.zeros((self.nv, self.nv), G.dtype)
        if self.points == 0:
            return none
        return jax.lax.cond(unvmap_any(G != 0), lambda: self._sum_of_blocks(G, none), lambda: none)

    def _sum_of_blocks(self, G: Float[Array, "points k k"], none: Matrix) -> Matrix:
        size = min(self.block, self.points)

        def add(H, first):
            # The last block begins earlier, where points do not fill it; what others have is not counted again.
            start = jnp.minimum(first, self.points - size)
            new = start + jnp.arange(size) >= first
            block = jnp.where(new[:, None, None], jax.lax.dynamic_slice_in_dim(G, start, size), 0)

            def added():
                part = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, start, size), self)
                return part._added(H, block)

            return jax.lax.cond(unvmap_any(block != 0), added, lambda: H), None

        return jax.lax.scan(add, none, jnp.arange(0, self.points, size))[0]


class DenseJacobian(PointJacobian):
    """With a column for each coordinate of the model."""

    J: Float[Array, "points k nv"]
    # With 16 a humanoid's step, with two hundred points, took two thirds of the time; with four a quadruped's landing
    # takes an eighth less.
    block: ClassVar[int] = 4

    @property
    def nv(self) -> int:
        return self.J.shape[2]

    def velocities(self, v: Vector) -> Numbers:
        return self.J @ v

    def generalized(self, forces: Numbers) -> Vector:
        return jnp.tensordot(forces, self.J, 2)

    def squares(self, weights: Vector) -> Float[Array, " points"]:
        return jnp.sum(self.J**2 * weights[None, None], axis=(1, 2))

    def _added(self, H: Matrix, G: Float[Array, "points k k"]) -> Matrix:
        return H + self.J.reshape(-1, self.nv).T @ (G @ self.J).reshape(-1, self.nv)


class SparseJacobian(PointJacobian):
    """Jacobian of a model with many more coordinates than any point depends on, such as bodies that lie in a heap.

    Attributes:
        J: By the coordinates on which a point may depend. What fills its row up is zero.
        coordinates: Their numbers; one may occur several times, and counts so.
        count: Of coordinates of the model.
        distinct: Whether it is known that none occurs several times at a point.
    """

    J: Float[Array, "points k few"]
    coordinates: Int[Array, "points few"]
    count: int = eqx.field(static=True)
    distinct: bool = eqx.field(static=True, default=False)
    block: ClassVar[int] = 1

    @property
    def nv(self) -> int:
        return self.count

    def velocities(self, v: Vector) -> Numbers:
        return jnp.sum(self.J * v[self.coordinates][:, None], axis=2)

    def generalized(self, forces: Numbers) -> Vector:
        by_point = jnp.sum(self.J * forces[:, :, None], axis=1)
        return jnp.zeros(self.count, by_point.dtype).at[self.coordinates].add(by_point)

    def squares(self, weights: Vector) -> Float[Array, " points"]:
        if self.distinct:
            return jnp.sum(self.J**2 * weights[self.coordinates][:, None], axis=(1, 2))
        # Parts of the same coordinate are one number.
        same = self.coordinates[:, :, None] == self.coordinates[:, None]
        whole = jnp.sum(jnp.where(same[:, None], self.J[:, :, None], 0), axis=3)
        return jnp.sum(self.J * whole * weights[self.coordinates][:, None], axis=(1, 2))

    def _added(self, H: Matrix, G: Float[Array, "points k k"]) -> Matrix:
        places = self.count * self.coordinates[:, :, None] + self.coordinates[:, None]
        parts = jnp.swapaxes(self.J, 1, 2) @ (G @ self.J)

        def on_cpu(H):
            # One number after the other, since kernels of several operations hold no scatter. Nothing differentiates
            # this: reverse mode would take a hundred times as long as with one.
            def add(i, H):
                there = places.ravel()[i][None]
                return jax.lax.dynamic_update_slice(H, jax.lax.dynamic_slice(H, there, (1,)) + parts.ravel()[i], there)

            return jax.lax.fori_loop(0, places.size, add, H)

        def elsewhere(H):
            return H.at[places.ravel()].add(parts.ravel())

        return jax.lax.platform_dependent(H.ravel(), cpu=on_cpu, default=elsewhere).reshape(H.shape)
