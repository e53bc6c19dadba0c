"""Work of solvers."""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Int, PyTree

from jdyn.contact import Overlap


class Work(eqx.Module):
    """Number of times that a solver evaluated the equations of motion.

    A Jacobian is a closed-form derivative at one state, with all its columns and the acceleration that it is taken at.
    It counts apart, and is no evaluation of forward dynamics.

    Attributes:
        evaluations: Of forward dynamics.
        jacobians: Of its derivatives by the state.
        implicit: Steps of a method that chooses, in which it was implicit in the forces of joints.
    """

    evaluations: Int[Array, ""]
    jacobians: Int[Array, ""]
    implicit: Int[Array, ""]

    @classmethod
    def of(cls, evaluations: ArrayLike = 0, jacobians: ArrayLike = 0, implicit: ArrayLike = 0) -> Self:
        return cls(*(jnp.asarray(count, jnp.int32) for count in (evaluations, jacobians, implicit)))

    def __add__(self, other: "Work") -> "Work":
        return jax.tree.map(jnp.add, self, other)

    def where(self, condition) -> "Work":
        """This work if a condition holds, else none."""
        return jax.tree.map(lambda count: jnp.where(condition, count, 0), self)


class Counted(eqx.Module):
    """The state of a solver that says what it does. Wrappers hand it on as it is.

    A lane of a batch counts what it would evaluate alone.

    Attributes:
        memory: What the next step needs.
        work: Of the last step; None for a solver that does not say.
        order: Of the last step's estimate of its error; None for a solver whose order does not change.
        overlap: Of shapes at the start of the last step; None for a solver that does not say.
    """

    memory: PyTree[Any] = None
    work: Work | None = None
    order: Int[Array, ""] | None = None
    overlap: Overlap | None = None


def work_of(solver_state) -> Work | None:
    """Work of the last step of any solver; None for one that does not say."""
    return solver_state.work if isinstance(solver_state, Counted) else None


def order_of(solver_state) -> Int[Array, ""] | None:
    """The order of the error that the last step of a solver estimated, if it changes from step to step."""
    return solver_state.order if isinstance(solver_state, Counted) else None


def overlap_of(solver_state) -> Overlap | None:
    """Overlap of shapes at the start of the last step; None for a solver that does not say."""
    return solver_state.overlap if isinstance(solver_state, Counted) else None
