"""The base class of controllers."""

import abc
from typing import Self

import equinox as eqx
import jax
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics.force_slopes import differentiated_jacobians, differentiated_slopes, summed
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.model import Model


class Controller(eqx.Module):
    """Generalized forces as a function of time and state; `a + b` applies both.

    `simulate` takes any callable of this signature. A controller that needs the mechanism has it as a field, and it may
    differ from the simulated one. Gains and targets are leaves, so that they can be swept and differentiated.

    >>> class Spring(jdyn.Controller):
    ...     stiffness: float
    ...
    ...     def __call__(self, t, q, v):
    ...         return -self.stiffness * q
    >>> print((Spring(2.0) + jdyn.control.Constant(jnp.ones(1)))(0.0, jnp.ones(1), jnp.zeros(1)))
    [-1.]
    """

    @abc.abstractmethod
    def __call__(self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized forces [N m or N] at time `t` [s] and state `(q, v)`."""

    def slopes(
        self, model: Model, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """Slopes by which the force in each joint falls with its own coordinate and velocity [N m/rad or N/m, N m s/rad
        or N s/m].

        Solvers ask for it that are implicit in the forces of joints. What it leaves out is taken as it is in explicit
        methods, and costs no accuracy. By differentiation, unless a controller knows it.
        """
        return differentiated_slopes(lambda q, v: self(t, q, v), model, q, v)

    def with_links(self) -> Self:
        """The same for a loop in which it does not change: models of jdyn's own controllers, also of those that this
        one holds, know what their recursions would compute anew in every call."""

        def held(x):
            return isinstance(x, Controller) and x is not self

        return jax.tree.map(lambda x: x.with_links() if held(x) else x, self, is_leaf=held)

    def jacobians(
        self, model: Model, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
        """∂τ/∂t, ∂τ/∂q along the tangent space, as `model.integrate` walks it, and ∂τ/∂v.

        Solvers ask for them that are implicit in the whole motion, and take them to be exact: what they leave out costs
        accuracy. By differentiation, unless a controller knows them.
        """
        return differentiated_jacobians(self, model, t, q, v)

    def __add__(self, other: "Controller") -> "Controller":
        # A controller with a memory adds itself in its own way.
        return NotImplemented if hasattr(other, "start") else Sum((self, other))


class ModelBased(Controller):
    """A controller that evaluates the dynamics of its model, as it is."""

    model: eqx.AbstractVar[Model]

    def with_links(self):
        return eqx.tree_at(lambda controller: controller.model, self, with_links(self.model))


class Sum(Controller):
    """The sum of the commands of its terms."""

    terms: tuple[Controller, ...]

    def __call__(self, t, q, v):
        first, *others = (term(t, q, v) for term in self.terms)
        return sum(others, start=first)

    def slopes(self, model, t, q, v):
        K, D = (sum(each) for each in zip(*(term.slopes(model, t, q, v) for term in self.terms), strict=True))
        return K, D

    def jacobians(self, model, t, q, v):
        return summed(term.jacobians(model, t, q, v) for term in self.terms)
