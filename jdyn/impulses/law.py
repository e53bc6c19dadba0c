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

    Friction has a kink or nearly so. Beside u, iterations know the share of the bound of friction, and linear laws
    relate both (see `Friction`). The active set `sticking` is what iterations take to stick: what does stick, and what
    may next, which at first is what friction can stop, and later what reversed its slip. Arrays of shares and of
    `sticking` have the shapes that suit the law."""

    @abc.abstractmethod
    def sticks(self, u: Array) -> Bool[Array, "..."]:
        """Tell what sticks after the changes u."""

    @abc.abstractmethod
    def may_stick(self, u: Array) -> Bool[Array, "..."]:
        """Tell what may stick at the end of the step, as a first guess of the active set."""

    @abc.abstractmethod
    def reverses(self, u: Array, du: Array, sticking: Bool[Array, "..."]) -> Bool[Array, "..."]:
        """Tell what is not taken to stick, and reverses its slip when u changes by du: friction may stop it."""

    @abc.abstractmethod
    def shares(self, u: Array) -> Float[Array, "..."]:
        """Friction as shares of its bounds, after the changes u."""

    @abc.abstractmethod
    def predicted_shares(
        self, u: Array, du: Array, sticking: Bool[Array, "..."], shares: Float[Array, "..."]
    ) -> Float[Array, "..."]:
        """Shares by the linear law, when u changes by du."""

    @abc.abstractmethod
    def share_errors(self, u: Array, shares: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """Errors of shares after the changes u, and about the changes of the model's velocity that they make, in the
        norm of its inertia."""

    @abc.abstractmethod
    def impulse(self, u: Array, sticking: Bool[Array, "..."]) -> Array:
        """γ, if `sticking` says what sticks, at any speed."""

    def gamma(self, u: Array) -> Array:
        """γ(u)."""
        return self.impulse(u, self.sticks(u))

    @abc.abstractmethod
    def slope(self, u: Array, sticking: Bool[Array, "..."], shares: Float[Array, "..."]) -> Array:
        """−∂γ/∂u by the linear law, symmetric and not negative: the slope of γ if shares are those after u."""

    @abc.abstractmethod
    def line_derivatives(self, u: Array, w: Array) -> Line:
        """Derivatives of the potential at u, in the direction w."""

    def on_one_side(self, u: Array, before: Array) -> Bool[Array, ""]:
        """Tell whether the law has no kink between the two, beside those of friction."""
        return jnp.array(True)


class LawByRow(ConvexLaw):
    """A law of rows that do not act on each other: γ and −∂γ/∂u are numbers of each row."""

    def line_derivatives(self, u: Array, w: Array) -> Line:
        sticking = self.sticks(u)
        gamma, slope = self.impulse(u, sticking), self.slope(u, sticking, self.shares(u))
        return Line(-jnp.sum(gamma * w), jnp.sum(slope * w**2))


class Springs(LawByRow):
    """A law of rows without friction."""

    @abc.abstractmethod
    def impulse_and_slope(self, u: Array) -> tuple[Array, Array]:
        """γ and −∂γ/∂u."""

    def sticks(self, u: Array) -> Bool[Array, "0"]:
        return jnp.zeros(0, bool)

    def may_stick(self, u: Array) -> Bool[Array, "0"]:
        return self.sticks(u)

    def reverses(self, u: Array, du: Array, sticking: Bool[Array, "0"]) -> Bool[Array, "0"]:
        return sticking

    def shares(self, u: Array) -> Float[Array, "0"]:
        return jnp.zeros(0, u.dtype)

    def predicted_shares(
        self, u: Array, du: Array, sticking: Bool[Array, "0"], shares: Float[Array, "0"]
    ) -> Float[Array, "0"]:
        return shares

    def share_errors(self, u: Array, shares: Float[Array, "0"]) -> tuple[Float[Array, "0"], Float[Array, "0"]]:
        return shares, shares

    def impulse(self, u: Array, sticking: Bool[Array, "0"]) -> Array:
        return self.impulse_and_slope(u)[0]

    def slope(self, u: Array, sticking: Bool[Array, "0"], shares: Float[Array, "0"]) -> Array:
        return self.impulse_and_slope(u)[1]
