"""Laws of impulses by the velocities at which they act."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.array import Structure


class Line(Structure):
    """First and second derivative of the sum of all potentials along a line."""

    slope: Scalar
    curvature: Scalar

    def __add__(self, other: "Line") -> "Line":
        return Line(self.slope + other.slope, self.curvature + other.curvature)


class Law(Structure):
    """Relation of impulses γ to how the velocities u of rows change in a step. Solvers say which laws they know."""


class ConvexLaw(Law):
    """γ(u), where u is how the velocities of rows change in a step, and −γ the gradient of a convex function.

    Changes, not velocities: in single precision the slip of what sticks is smaller than rounding of the speeds that
    make it.

    Friction has a kink or nearly so. Iterations know its share of the bound beside u, and linear laws relate both (see
    `Friction`). They take for sticking, `held`, what does so, and what may next: at first what friction can stop, later
    what turned back. Each law shapes shares and `held` as it likes.
    """

    @abc.abstractmethod
    def holds(self, u: Array) -> Bool[Array, "..."]:
        """Tell what sticks after these changes."""

    @abc.abstractmethod
    def may_hold(self, u: Array) -> Bool[Array, "..."]:
        """Tell what may stick at the end of the step, as the first guess."""

    @abc.abstractmethod
    def turns(self, u: Array, du: Array, held: Bool[Array, "..."]) -> Bool[Array, "..."]:
        """Tell what is taken to slide, and turns back when u changes by du: friction may hold it."""

    @abc.abstractmethod
    def shares(self, u: Array) -> Float[Array, "..."]:
        """Shares that friction gives of its bounds after these changes."""

    @abc.abstractmethod
    def tends(self, u: Array, du: Array, held: Bool[Array, "..."], shares: Float[Array, "..."]) -> Float[Array, "..."]:
        """Shares that the linear law gives when u changes by du."""

    @abc.abstractmethod
    def missed(self, u: Array, shares: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """Error of shares after the changes u, and what this amounts to as a change of the model's velocity, about, in
        the norm of its inertia."""

    @abc.abstractmethod
    def impulse(self, u: Array, held: Bool[Array, "..."]) -> Array:
        """γ, where `held` says what sticks, at any speed."""

    def gamma(self, u: Array) -> Array:
        """γ(u)."""
        return self.impulse(u, self.holds(u))

    @abc.abstractmethod
    def slope(self, u: Array, held: Bool[Array, "..."], shares: Float[Array, "..."]) -> Array:
        """−∂γ/∂u of the linear law, symmetric and not negative: that of γ where shares are those after u."""

    @abc.abstractmethod
    def along(self, u: Array, w: Array) -> Line:
        """At u, in the direction w."""

    def on_one_side(self, u: Array, before: Array) -> Bool[Array, ""]:
        """Tell whether the law has no kink between the two, beside those of friction."""
        return jnp.array(True)


class LawByRow(ConvexLaw):
    """A law of rows that do not act on each other: γ and −∂γ/∂u are numbers of each row."""

    def along(self, u: Array, w: Array) -> Line:
        held = self.holds(u)
        gamma, slope = self.impulse(u, held), self.slope(u, held, self.shares(u))
        return Line(-jnp.sum(gamma * w), jnp.sum(slope * w**2))


class Springs(LawByRow):
    """One of rows without friction."""

    @abc.abstractmethod
    def at(self, u: Array) -> tuple[Array, Array]:
        """γ and −∂γ/∂u."""

    def holds(self, u: Array) -> Bool[Array, "0"]:
        return jnp.zeros(0, bool)

    def may_hold(self, u: Array) -> Bool[Array, "0"]:
        return self.holds(u)

    def turns(self, u: Array, du: Array, held: Bool[Array, "0"]) -> Bool[Array, "0"]:
        return held

    def shares(self, u: Array) -> Float[Array, "0"]:
        return jnp.zeros(0, u.dtype)

    def tends(self, u: Array, du: Array, held: Bool[Array, "0"], shares: Float[Array, "0"]) -> Float[Array, "0"]:
        return shares

    def missed(self, u: Array, shares: Float[Array, "0"]) -> tuple[Float[Array, "0"], Float[Array, "0"]]:
        return shares, shares

    def impulse(self, u: Array, held: Bool[Array, "0"]) -> Array:
        return self.at(u)[0]

    def slope(self, u: Array, held: Bool[Array, "0"], shares: Float[Array, "0"]) -> Array:
        return self.at(u)[1]
