"""Complementarity of impulses and velocities at rigid points, with friction."""

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array import Structure
from jdyn.geometry.directions import length_and_unit

Points = Float[Array, " points"]
Vectors = Float[Array, "points 3"]
Blocks = Float[Array, "points 3 3"]

# An impulse, or a speed, counts as none below this power of rounding, as a share of what makes it.
NOTHING = 0.6


class ContactMode(enum.IntEnum):
    """Motion of a point at which rigid bodies touch.

    >>> jdyn.impulses.ContactMode(1).name
    'STICKS'
    """

    APART = 0
    """The bodies do not press on each other."""
    STICKS = 1
    """Friction holds the point."""
    SLIDES = 2
    """The point slides, and friction is all that the normal impulse allows."""


class ConeProblem(Structure):
    """Signorini's and Coulomb's conditions between impulses γ of points and velocities w = G γ + b.

    Both have components along two tangents and the normal of each point, in this order. Along the normal,
    0 ≤ γₙ ⟂ wₙ ≥ 0; beside it |γₜ| ≤ μ γₙ, with γₜ = −μ γₙ wₜ/|wₜ| where the point slides. Velocities may be those
    after an impact or at the end of a step; with accelerations for velocities, γ are forces.

    A point that is not there has no row and no column in G, and bₙ > 0.

    >>> resting = jdyn.impulses.ConeProblem(jnp.eye(3)[None, :, None], jnp.array([[0.2, 0.0, -1.0]]), jnp.array([0.5]))
    >>> print(resting.projected(jnp.array([[-0.9, 0.0, 1.0]])))
    [[-0.5  0.   1. ]]

    Source: Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988; Alart, Curnier, A mixed
    formulation for frictional contact problems prone to Newton like solution methods, 1991, for the projection.

    Attributes:
        G: Delassus matrix J M⁻¹ Jᵀ [1/kg].
        b: Velocities without impulses [m/s].
        friction: μ of each point.
        rank: What the rank of G is at most, such as the number of degrees of freedom; None where that is not known.
    """

    G: Float[Array, "points 3 points 3"]
    b: Vectors
    friction: Points
    rank: int | None = eqx.field(static=True, default=None)

    @property
    def blocks(self) -> Blocks:
        """G of each point alone."""
        points = jnp.arange(len(self.b))
        return self.G[points, :, points]

    @property
    def matrix(self) -> Float[Array, "rows rows"]:
        """G of all components in one row."""
        return self.G.reshape(2 * (self.b.size,))

    @property
    def rates(self) -> Points:
        """About the mass at each point, which makes impulses of velocities: no impulse along a tangent or the normal
        makes a larger speed than it has as a share of this [kg]."""
        mobility = jnp.trace(self.blocks, axis1=1, axis2=2)
        return 1 / jnp.where(mobility > 0, mobility, 1)

    def scaled(self, scale: Points) -> "ConeProblem":
        """The problem of impulses over a scale of each point."""
        G = scale[:, None, None, None] * self.G * scale[None, None, :, None]
        return ConeProblem(G, scale[:, None] * self.b, self.friction, self.rank)

    def velocities(self, gamma: Vectors) -> Vectors:
        """w = G γ + b."""
        return jnp.einsum("iajb,jb->ia", self.G, gamma) + self.b

    def projected(self, x: Vectors) -> Vectors:
        """The impulses next to x: pushing ones along the normal, of which friction is a share of μ at most."""
        return jax.vmap(_projected)(x, self.friction)

    def residual(self, gamma: Vectors) -> Vectors:
        """γ less the projection of γ − rate w: zero at a solution alone [N s]."""
        return gamma - self.projected(gamma - self.rates[:, None] * self.velocities(gamma))

    def rounding(self, gamma: Vectors) -> Points:
        """Sizes of the numbers of which residuals are differences [N s]."""
        size = jnp.abs(self.b) + jnp.einsum("iajb,jb->ia", jnp.abs(self.G), jnp.abs(gamma))
        return jnp.max(jnp.abs(gamma) + self.rates[:, None] * size, axis=1)

    def error(self, gamma: Vectors) -> Scalar:
        """The largest residual, as a share of the numbers of which it is the difference."""
        size = self.rounding(gamma)
        shares = jnp.max(jnp.abs(self.residual(gamma)), axis=1) / jnp.where(size > 0, size, 1)
        return jnp.max(shares, initial=0)

    def speed_error(self, gamma: Vectors) -> Scalar:
        """The largest residual as a speed, as a share of the speeds without impulses. Impulses that grow without end,
        where there is no solution, do not bring it down."""
        size = jnp.max(jnp.abs(self.b), initial=0)
        speeds = jnp.max(jnp.abs(self.residual(gamma)) / self.rates[:, None], initial=0)
        return speeds / jnp.where(size > 0, size, 1)

    def slopes(self, gamma: Vectors) -> Float[Array, "rows rows"]:
        """Derivative of the residual by γ, in the modes that points are in."""
        D = self._slopes_of_projection(gamma)
        moved = self.rates[:, None, None, None] * jnp.einsum("iac,icjb->iajb", D, self.G)
        return jnp.eye(self.b.size, dtype=D.dtype) - _diagonal(D) + moved.reshape(2 * (self.b.size,))

    def modes(self, gamma: Vectors) -> tuple[Int[Array, " points"], Points]:
        """`ContactMode` of each point, and how far it is from another mode, as a share of the numbers of the point."""
        size = self.rounding(gamma)
        x = (gamma - self.rates[:, None] * self.velocities(gamma)) / jnp.where(size > 0, size, 1)[:, None]
        pressing, bound = x[:, 2], self.friction * x[:, 2]
        rubbing, _ = jax.vmap(length_and_unit)(x[:, :2])
        nothing = float(jnp.finfo(x.dtype).eps) ** NOTHING
        holds = (bound > nothing) & (rubbing <= bound + nothing)
        pushing = jnp.where(holds, ContactMode.STICKS, ContactMode.SLIDES)
        to_slip = jnp.where((bound > 0) & (pressing > 0), jnp.abs(rubbing - bound), jnp.inf)
        return jnp.where(pressing > nothing, pushing, ContactMode.APART), jnp.minimum(jnp.abs(pressing), to_slip)

    def _slopes_of_projection(self, gamma: Vectors) -> Blocks:
        x = gamma - self.rates[:, None] * self.velocities(gamma)
        return jax.vmap(jax.jacfwd(_projected))(x, self.friction)


def _projected(x: Float[Array, "3"], mu: Scalar) -> Float[Array, "3"]:
    pressing = jnp.maximum(x[2], 0)
    rubbing, direction = length_and_unit(x[:2])
    # Also where nothing rubs, and friction has nothing to hold with.
    slides = rubbing >= mu * pressing
    return jnp.append(jnp.where(slides, mu * pressing * direction, x[:2]), pressing)


def _diagonal(blocks: Blocks) -> Float[Array, "rows rows"]:
    n = len(blocks)
    return (jnp.eye(n, dtype=blocks.dtype)[:, None, :, None] * blocks[:, :, None, :]).reshape(3 * n, 3 * n)
