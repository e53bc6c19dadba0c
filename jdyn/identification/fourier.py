"""Periodic motions that are sums of sines."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.control import Reference


class FourierSeries(Reference):
    """q(t) = c + Σ_k a_k sin(k ω t) + b_k cos(k ω t) with ω = 2 π / period.

    >>> motion = jdyn.identification.FourierSeries(jnp.array(2.0), jnp.zeros(1), jnp.array([[0.5]]), jnp.zeros((1, 1)))
    >>> q, v, a = motion(0.5)
    >>> print(q.round(3))
    [0.5]

    Attributes:
        period: [s].
        centre: c [rad or m], shape (nq,).
        sines, cosines: a and b [rad or m], shape (nq, harmonics).

    Source: Swevers, Ganseman, Tükel, de Schutter, van Brussel, Optimal robot excitation and identification, IEEE
    Transactions on Robotics and Automation 1997.
    """

    period: Float[Array, ""]
    centre: Float[Array, " nq"]
    sines: Float[Array, "nq harmonics"]
    cosines: Float[Array, "nq harmonics"]

    def __call__(self, t):
        k = 2 * jnp.pi / self.period * harmonics_of(self.sines)
        s, c = jnp.sin(k * t), jnp.cos(k * t)
        q = self.centre + self.sines @ s + self.cosines @ c
        return q, self.sines @ (k * c) - self.cosines @ (k * s), -self.sines @ (k**2 * s) - self.cosines @ (k**2 * c)


def harmonics_of(coefficients: Float[Array, "... harmonics"]) -> Float[Array, " harmonics"]:
    """1, 2, ..., as many as there are coefficients."""
    return jnp.arange(1, coefficients.shape[-1] + 1, dtype=coefficients.dtype)
