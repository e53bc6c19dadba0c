"""Configurations where constraints allow more velocities than motions."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.array import LeastNorm
from jdyn.constraints.rows import constraint_rows, largest
from jdyn.model import Model
from jdyn.model.constraints import Constraint

# Accelerations are consistent if they miss the rows by no more than this power of rounding, as a share of the terms.
CONSISTENT = 0.25


def blocked(
    model: Model,
    constraints: Sequence[Constraint],
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    along: Bool[Array, ""] | bool = False,
) -> Bool[Array, ""]:
    """Tell whether no motion goes on from a state that meets constraints: `along` its velocity, or else with nearly any
    velocity that they allow there. It is so where a linkage is stretched.

    Rows that depend on each other everywhere demand consistent accelerations. Rows that depend on each other in this
    configuration alone demand consistent ones for few velocities, if any: those of the motions through it. To second
    order, and without derivatives.
    """
    model, constraints, t, q, v = jax.tree.map(
        lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, (model, tuple(constraints), t, q, v)
    )
    # A generic velocity.
    generic = v + (1 + largest(v)) * jnp.cos(jnp.arange(1, model.nv + 1, dtype=v.dtype))
    _, _, J, b, _ = constraint_rows(model, constraints, t, q, generic)
    factors = LeastNorm.of(J @ J.T)

    def least(g):
        """The smallest x with J x = g, or nearly so."""
        # Twice, since rounding of the matrix leaves rows unmet.
        return jax.lax.fori_loop(0, 2, lambda _, x: x + factors.solve(g - J @ x) @ J, jnp.zeros_like(v))

    velocity = jnp.where(along, v, generic + least(b - J @ generic))
    gamma = constraint_rows(model, constraints, t, q, velocity).gamma
    x = least(gamma)
    missing, asked = jnp.abs(gamma - J @ x), jnp.abs(gamma) + jnp.abs(J) @ jnp.abs(x)
    eps = jnp.finfo(v.dtype).eps
    # Some rows, such as those across the plane of a mechanism, are nothing but rounding.
    return ~jnp.all(missing <= jnp.maximum(eps**CONSISTENT * asked, eps**0.5 * largest(asked)))
