"""Effects of an impact, and the protocol of laws of impact."""

import abc
import enum
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Scalar

from jdyn.array import shaped


class ImpactMode(enum.IntEnum):
    """Cases of slip during an impact: the five of Wang and Mason, and two more.

    >>> jdyn.impacts.ImpactMode(2).name
    'STICKS_IN_COMPRESSION'

    Source: Wang, Mason, Two-dimensional rigid-body collisions with friction, Journal of Applied Mechanics 59, 1992.
    """

    APART = 0
    """The bodies do not approach, and nothing happens."""
    SLIDES = 1
    """The point slides from the first instant to the last."""
    STICKS_IN_COMPRESSION = 2
    """Sliding stops while the bodies still approach, and friction holds the point."""
    REVERSES_IN_COMPRESSION = 3
    """Sliding stops while the bodies still approach, and the point slides on in another direction."""
    STICKS_IN_RESTITUTION = 4
    """Sliding stops while the bodies part, and friction holds the point."""
    REVERSES_IN_RESTITUTION = 5
    """Sliding stops while the bodies part, and the point slides on in another direction."""
    IMPOSSIBLE = 6
    """The law has no answer: its numbers are NaN."""


class Impact(NamedTuple):
    """Effects of an impact at one point.

    >>> hit = jdyn.impacts.Frictionless()(jnp.eye(3), jnp.array([0.0, 0.0, -2.0]), restitution=0.5)
    >>> print(hit.impulse, hit.velocity, hit.work)
    [0. 0. 3.] [0. 0. 1.] -1.5

    Attributes:
        impulse: p, along two tangents and the normal [N s].
        velocity: v⁺ = v⁻ + W p, of the bodies relative to each other after it [m/s].
        work: Change of the kinetic energy, ½ p · (v⁺ + v⁻) [J].
        mode: An `ImpactMode`.
        margin: How far the impact is from one of another mode, whose derivatives differ: a share of the impulse, or of
            the coefficient of friction; infinity where no mode is near.
    """

    impulse: Float[Array, "3"]
    velocity: Float[Array, "3"]
    work: Scalar
    mode: Int[Array, ""]
    margin: Scalar


class ImpactLaw(eqx.Module):
    """Law by which two bodies that touch at one point leave each other.

    The velocities v of the points that touch, relative to each other, change by W p with the impulse p. Both have
    components along two tangents and along the normal, in this order; bodies approach where v_n < 0.

    >>> class Perfect(jdyn.impacts.ImpactLaw):  # no friction, and no loss
    ...     def impulse(self, W, v, restitution, friction, static):
    ...         impulse = jnp.array([0.0, 0.0, -2 * v[2] / W[2, 2]])
    ...         return impulse, jdyn.impacts.ImpactMode.SLIDES, jnp.inf
    >>> print(Perfect()(jnp.eye(3), jnp.array([1.0, 0.0, -2.0])).velocity)
    [1. 0. 2.]

    Attributes:
        together: Whether it is a law of many points at once: no.
    """

    together: ClassVar[bool] = False

    @abc.abstractmethod
    def impulse(
        self,
        W: Float[Array, "3 3"],
        v: Float[Array, "3"],
        restitution: Scalar,
        friction: Scalar,
        static: Scalar,
    ) -> tuple[Float[Array, "3"], Int[ArrayLike, ""], Float[ArrayLike, ""]]:
        """Impulse of bodies that approach, the mode and its margin, see `Impact`."""

    def __call__(
        self,
        W: Float[ArrayLike, "3 3"],
        v: Float[ArrayLike, "3"],
        restitution: ArrayLike = 0.0,
        friction: ArrayLike = 0.0,
        *,
        static: ArrayLike | None = None,
    ) -> Impact:
        """The impact of bodies with a velocity.

        Args:
            W: Delassus matrix J M⁻¹ Jᵀ of the point, symmetric and positive semidefinite, with W_nn > 0 [1/kg].
            v: Velocity before [m/s].
            restitution: e, from 0 to 1.
            friction: Coefficient μ of sliding friction, not negative.
            static: Coefficient of friction that holds what does not slide, not less than `friction`; the same if left
                out.

        Raises:
            ValueError: if a shape is another.
        """
        # Whole numbers become floating-point ones.
        dtype = jnp.result_type(jnp.asarray(W), jnp.asarray(v), 0.0)
        W, v = (shaped(name, jnp.asarray(x), dtype, shape) for name, x, shape in (("W", W, (3, 3)), ("v", v, (3,))))
        numbers = restitution, friction, friction if static is None else static
        e, mu, held = (jnp.asarray(x, dtype) for x in numbers)
        approach = v[2] < 0
        # A velocity that could be one of an impact keeps derivatives of the other branch finite.
        p, mode, margin = self.impulse(W, jnp.where(approach, v, jnp.array([0.0, 0.0, -1.0], W.dtype)), e, mu, held)
        p = jnp.where(approach, p, 0)
        after = v + W @ p
        found = jnp.where(approach, mode, ImpactMode.APART)
        return Impact(p, after, p @ (v + after) / 2, found, jnp.where(approach, margin, jnp.inf).astype(W.dtype))
