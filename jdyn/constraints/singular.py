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

# Of accelerations that go together no more is missing than this power of rounding, as a share of what rows ask for.
TOGETHER = 0.25


def blocked(
    model: Model,
    constraints: Sequence[Constraint],
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    along: Bool[Array, ""] | bool = False,
) -> Bool[Array, ""]:
    """Tell whether no motion goes on from a state that meets constraints, `along` its velocity, or with nearly any that
    they allow there, such as where a linkage is stretched.

    Rows that depend on each other everywhere ask for accelerations that go together. Where rows depend on each other
    that do not nearby, they go together for few velocities, if any: those of the motions through that configuration.
    To second order, and without derivatives.
    """
    model, constraints, t, q, v = jax.tree.map(
        lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, (model, tuple(constraints), t, q, v)
    )
    # One that nothing sets apart from others.
    some = v + (1 + largest(v)) * jnp.cos(jnp.arange(1, model.nv + 1, dtype=v.dtype))
    _, _, J, b, _ = constraint_rows(model, constraints, t, q, some)
    factors = LeastNorm.of(J @ J.T)

    def least(g):
        """The smallest x with J x = g, or nearly so."""
        # Twice, since rounding of the matrix leaves rows unmet.
        return jax.lax.fori_loop(0, 2, lambda _, x: x + factors.solve(g - J @ x) @ J, jnp.zeros_like(v))

    way = jnp.where(along, v, some + least(b - J @ some))
    gamma = constraint_rows(model, constraints, t, q, way).gamma
    x = least(gamma)
    missing, asked = jnp.abs(gamma - J @ x), jnp.abs(gamma) + jnp.abs(J) @ jnp.abs(x)
    eps = jnp.finfo(v.dtype).eps
    # Of some rows, such as those across the plane of a mechanism, rounding is all there is.
    return ~jnp.all(missing <= jnp.maximum(eps**TOGETHER * asked, eps**0.5 * largest(asked)))
