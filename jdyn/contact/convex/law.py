"""What a term of the convex function is: impulses that fall along the velocities at which they act."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Bool, Scalar

from jdyn.array import Structure


class Line(Structure):
    """First and second derivative of the sum of all potentials along a line."""

    slope: Scalar
    curvature: Scalar

    def __add__(self, other: "Line") -> "Line":
        return Line(self.slope + other.slope, self.curvature + other.curvature)


class Law(Structure):
    """γ(u), where u is how the velocities of a term change in a step, and −γ the gradient of a convex function.

    Changes, not velocities: in single precision the slip of what sticks is smaller than rounding of the speeds that
    make it.

    Friction has a kink or nearly so, which iterations meet by a guess of what sticks, `held`: an array of booleans that
    each law shapes as it likes.
    """

    @abc.abstractmethod
    def holds(self, u: Array) -> Bool[Array, "..."]:
        """What sticks after these changes."""

    @abc.abstractmethod
    def may_hold(self, u: Array) -> Bool[Array, "..."]:
        """What may stick at the end of the step, as the first guess."""

    @abc.abstractmethod
    def still_holds(self, u: Array, before: Array, held: Bool[Array, "..."]) -> Bool[Array, "..."]:
        """What to take for sticking after an iteration from `before` to `u` that took `held` for it."""

    def followed(self, u: Array, before: Array, held: Bool[Array, "..."]) -> Bool[Array, ""]:
        """Whether the law went on from `before` to `u` nearly as its derivative there said. Where small iterations may
        be far from the minimum, laws have to tell."""
        return jnp.array(True)

    def on_one_side(self, u: Array, before: Array) -> Bool[Array, ""]:
        """Whether the law has no kink between the two, beside those of what sticks."""
        return jnp.array(True)

    @abc.abstractmethod
    def at(self, u: Array, held: Bool[Array, "..."]) -> tuple[Array, Array]:
        """γ and −∂γ/∂u, symmetric and not negative, where `held` says what sticks, at any speed."""

    @abc.abstractmethod
    def along(self, u: Array, w: Array) -> Line:
        """At u, in the direction w."""


class LawByRow(Law):
    """A law of rows that do not act on each other: γ and −∂γ/∂u are numbers of each row."""

    def along(self, u: Array, w: Array) -> Line:
        gamma, rise = self.at(u, self.holds(u))
        return Line(-jnp.sum(gamma * w), jnp.sum(rise * w**2))


class Springs(LawByRow):
    """One of rows that do not stick."""

    def holds(self, u: Array) -> Bool[Array, "0"]:
        return jnp.zeros(0, bool)

    def may_hold(self, u: Array) -> Bool[Array, "0"]:
        return self.holds(u)

    def still_holds(self, u: Array, before: Array, held: Bool[Array, "0"]) -> Bool[Array, "0"]:
        return held
