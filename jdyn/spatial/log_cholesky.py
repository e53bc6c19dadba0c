"""Inertias of bodies that can exist, as ten numbers without limits."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array.small_matrices import cholesky
from jdyn.spatial.inertia import SpatialInertia, symmetric


def from_log_cholesky(theta: Float[Array, "10"]) -> SpatialInertia:
    """The inertia whose pseudo-inertia is J = [[Σ, h], [hᵀ, m]] = U Uᵀ, with Σ = ∫ x xᵀ dm about the frame's origin and

        U = e^α [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]].

    J is positive definite for any numbers, so that the mass is positive and the principal moments satisfy the triangle
    inequality; and every such inertia is reached once. Moments are sums of squares, so rounding leaves them so.

    Args:
        theta: `[α, d1, d2, d3, s12, s23, s13, t1, t2, t3]`: e^2α is the mass [kg], t the centre of mass [m], and e^d
            and s are lengths [m].

    Source: Rucker and Wensing 2022, Smooth parameterization of rigid-body inertia, RA-L, section III.
    """
    alpha, d1, d2, d3, s12, s23, s13 = theta[:7]
    zero = jnp.zeros_like(alpha)
    root = jnp.stack([
        jnp.stack([jnp.exp(d1), s12, s13]),
        jnp.stack([zero, jnp.exp(d2), s23]),
        jnp.stack([zero, zero, jnp.exp(d3)]),
    ])  # fmt: skip
    mass, com = jnp.exp(2 * alpha), theta[7:]
    second = mass * (root @ root.T + jnp.outer(com, com))
    rotational = jnp.stack([
        second[1, 1] + second[2, 2], -second[0, 1], second[0, 0] + second[2, 2],
        -second[0, 2], -second[1, 2], second[0, 0] + second[1, 1],
    ])  # fmt: skip
    return SpatialInertia(mass, mass * com, rotational)


def log_cholesky(inertia: SpatialInertia) -> Float[Array, "10"]:
    """The ten numbers of `from_log_cholesky`; some are not finite if the pseudo-inertia is not positive definite, as
    that of a point mass or of a thin rod.

    Rounding costs as many digits as the squared distance of the centre of mass from the origin is larger than the
    squared radius of gyration.
    """
    com = inertia.first_moment / inertia.mass
    # The central second moment of a unit mass is V Vᵀ, where V is upper triangular: the factor from the last row on.
    C = _second_moment(inertia) / inertia.mass - jnp.outer(com, com)
    V = cholesky(C[::-1, ::-1])[::-1, ::-1]
    logarithms = jnp.log(jnp.concatenate([jnp.sqrt(inertia.mass)[None], jnp.diagonal(V)]))
    return jnp.concatenate([logarithms, jnp.stack([V[0, 1], V[1, 2], V[0, 2]]), com])


def pseudo_inertia(inertia: SpatialInertia) -> Float[Array, "4 4"]:
    """J = ∫ [x; 1] [x; 1]ᵀ dm about the frame's origin: positive definite for every body that fills a volume.

    Source: Wensing, Kim, Slotine 2018, Linear matrix inequalities for physically consistent inertial parameter
    identification, RA-L.
    """
    h = inertia.first_moment[:, None]
    return jnp.block([[_second_moment(inertia), h], [h.T, inertia.mass[None, None]]])


def _second_moment(inertia):
    """∫ x xᵀ dm."""
    I = symmetric(inertia.rotational)
    return jnp.trace(I) / 2 * jnp.eye(3, dtype=I.dtype) - I
