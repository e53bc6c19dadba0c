"""Limits that contact sets on the length of steps."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.model import Model


class StepPolicy(eqx.Module):
    """Limits on a step, by what is known where it begins. By default there are none.

    >>> print(jdyn.contact.StepPolicy().longest(None, jnp.zeros(2), jnp.zeros(2)))
    inf

    The loop of a simulation asks for the `longest` step before it tries one, and whether it has `overshot` before it
    judges the error of a step that it has tried. Solvers do not ask.
    """

    def longest(self, model: Model, v: Float[Array, " nv"], a: Float[Array, " nv"]) -> Scalar:
        """Longest step that shapes allow which will touch soon or have just begun to [s].

        Args:
            model: The mechanism.
            v: Velocity where the step begins, in the time of solvers.
            a: About how v changes there.
        """
        return jnp.full((), jnp.inf, v.dtype)

    def overshot(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Bool[Array, ""]:
        """Tell whether a step has gone too deep into shapes to be kept, whatever its error seems to be, by the state
        where it ends."""
        return jnp.array(False)
