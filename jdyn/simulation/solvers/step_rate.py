"""The rate of change over a step, of states as vectors."""

from typing import Any

import diffrax
import equinox as eqx
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree, Scalar


class StepRate(eqx.Module):
    """h f(t₀ + θ h, x): the change over a whole step h at constant rate, from a share θ of it and the state.

    Attributes:
        terms: The equations of motion.
        t0, t1: Start and end of the step [s].
        y0: State at the start.
        args: For the terms.
    """

    terms: diffrax.AbstractTerm
    t0: Any
    t1: Any
    y0: PyTree[Array]
    args: Any = None

    @property
    def start(self) -> Float[Array, " n"]:
        """x at the start."""
        return ravel_pytree(self.y0)[0]

    def state(self, x: Float[Array, " n"]) -> PyTree[Array]:
        return ravel_pytree(self.y0)[1](x)

    def at(self, after: Scalar, x: Float[Array, " n"]) -> Any:
        """f itself, as a tree."""
        return self.terms.vf(self.t0 + after * (self.t1 - self.t0), self.state(x), self.args)

    def over_step(self, f: PyTree[Array]) -> Float[Array, " n"]:
        """h f."""
        return ravel_pytree(self.terms.prod(f, self.terms.contr(self.t0, self.t1)))[0]

    def __call__(self, after: Scalar, x: Float[Array, " n"]) -> Float[Array, " n"]:
        return self.over_step(self.at(after, x))
