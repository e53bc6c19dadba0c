"""What a forward-dynamics method must provide."""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import bias_forces
from jdyn.model import Model


class Method(eqx.Module):
    """A way to solve M a = τ − h for the acceleration a.

    A method separates what depends on the configuration alone (`factor`) from what is done for each right-hand
    side, so that derivatives of forward dynamics reuse the factors of the value.
    """

    @abc.abstractmethod
    def factor(self, model: Model, q: Float[Array, " nq"]) -> Any:
        """What `solve` and `accelerations` need to know of M at `q`: any PyTree."""

    @abc.abstractmethod
    def solve(self, model: Model, factors: Any, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """M⁻¹ τ."""

    @abc.abstractmethod
    def accelerations(
        self,
        model: Model,
        factors: Any,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        tau: Float[Array, " nv"],
        f_ext: Float[Array, "nb 6"] | None,
    ) -> Float[Array, " nv"]:
        """M⁻¹ (τ − h(q, v, f_ext))."""

    def accelerations_and_factors(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        tau: Float[Array, " nv"],
        f_ext: Float[Array, "nb 6"] | None,
    ) -> tuple[Float[Array, " nv"], Any]:
        """`accelerations` and their factors."""
        factors = self.factor(model, q)
        return self.accelerations(model, factors, q, v, tau, f_ext), factors


class BiasFirst(Method):
    """A method that solves with M alone; inverse dynamics computes the bias forces h."""

    def accelerations(self, model, factors, q, v, tau, f_ext):
        return self.solve(model, factors, tau - bias_forces(model, q, v, f_ext=f_ext))
