"""The base class of controllers."""

import abc

import equinox as eqx
from jaxtyping import Array, Float, Scalar


class Controller(eqx.Module):
    """Generalized forces as a function of time and state; `a + b` applies both.

    `simulate` takes any callable of this signature. A controller that needs the mechanism has it as a field, and it may
    differ from the simulated one. Gains and targets are leaves, so that they can be swept and differentiated.
    """

    @abc.abstractmethod
    def __call__(self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized forces [N m or N] at time `t` [s] and state `(q, v)`."""

    def __add__(self, other: "Controller") -> "Controller":
        # A controller with a memory adds itself in its own way.
        return NotImplemented if hasattr(other, "start") else Sum((self, other))


class Sum(Controller):
    """The sum of the commands of its terms."""

    terms: tuple[Controller, ...]

    def __call__(self, t, q, v):
        first, *others = (term(t, q, v) for term in self.terms)
        return sum(others, start=first)
