"""Costs of a motion, and their quadratic expansions."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar


class Cost(eqx.Module):
    """A scalar function of a place on a motion that knows its quadratic expansion.

    `ilqr` takes any function; one that is a `Cost` may give its expansion in closed form, or another one than the
    second derivatives, by overriding `expansion`.

    >>> class Torque(jdyn.planning.Cost):
    ...     def __call__(self, t, q, v, u):
    ...         return 0.5 * jnp.sum(u**2)
    >>> print(Torque()(0.0, jnp.zeros(1), jnp.zeros(1), jnp.array([3.0])))
    4.5
    """

    @abc.abstractmethod
    def __call__(self, *where: Array) -> Scalar:
        """The cost at `(t, q, v, u)`, or at the end at `(q, v)`."""

    def expansion(
        self, place: Callable[[Float[Array, " z"]], tuple[Array, ...]], z: Float[Array, " z"]
    ) -> tuple[Float[Array, " z"], Float[Array, "z z"]]:
        """Gradient and Hessian of `self(*place(z))`; z stacks what leads away from the place in question, the tangent
        vector of the configuration, of the velocity and of the actuators' forces. By differentiation."""

        def gradient(z):
            slope = jax.grad(lambda z: self(*place(z)))(z)
            return slope, slope

        hessian, slope = jax.jacfwd(gradient, has_aux=True)(z)
        return slope, hessian


class SquaredResiduals(Cost):
    """Half the sum of squares of a vector. Its Hessian leaves out how the residual bends: no second derivatives are
    computed, and it is never indefinite.

    >>> cost = jdyn.planning.SquaredResiduals(lambda t, q, v, u: jnp.concatenate([q, 0.1 * u]))
    >>> print(cost(0.0, jnp.array([2.0]), jnp.zeros(1), jnp.array([10.0])))
    2.5

    Attributes:
        residual: Function of `(t, q, v, u)`, or at the end of `(q, v)`.

    Source: Nocedal and Wright, Numerical Optimization (2006), section 10.3, the Gauss-Newton method.
    """

    residual: Callable[..., Float[Array, " rows"]]

    def __call__(self, *where):
        return 0.5 * jnp.sum(self.residual(*where) ** 2)

    def expansion(self, place, z):
        def residual(z):
            value = self.residual(*place(z))
            return value, value

        J, value = jax.jacfwd(residual, has_aux=True)(z)
        return J.T @ value, J.T @ J


class AnyCost(Cost):
    """A function of which nothing else is known."""

    function: Callable[..., Scalar]

    def __call__(self, *where):
        return self.function(*where)
