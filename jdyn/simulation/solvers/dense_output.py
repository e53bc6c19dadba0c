"""Motion within a step."""

import abc
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.contact import PointForces

# What solvers call contact forces among the data of dense output.
FORCES = "contact_forces"


class DenseOutput(diffrax.AbstractLocalInterpolation):
    """Motion within a step, between its ends; subclasses say where it is at a share of the step."""

    t0: Float[Array, ""]
    t1: Float[Array, ""]

    @abc.abstractmethod
    def at(self, share: Scalar) -> Any:
        """The state; the step begins at 0 and ends at 1."""

    def forces(self, t: Scalar) -> PointForces | None:
        """Contact forces at a time within the step; None of a solver that does not say."""
        return None

    def evaluate(self, t0, t1=None, left=True):
        start = self.at(jnp.asarray(t0 - self.t0) / (self.t1 - self.t0))
        return start if t1 is None else jax.tree.map(jnp.subtract, self.evaluate(t1), start)
