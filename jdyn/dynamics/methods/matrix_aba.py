"""The articulated-body algorithm on matrices of whole bodies: what `ABA` does for a single configuration."""

import jax.numpy as jnp

from jdyn.array import definite_inverse
from jdyn.dynamics.methods.articulated import ArticulatedBody, ArticulatedRecursion


class ProjectedABA(ArticulatedRecursion):
    """`ABA` on matrices of whole bodies.

    Source: Featherstone 2008, section 7.3; Bierman 1977 for the stabilised update of a projected inertia.
    """

    def eliminate(self, model, joints):
        return self.articulated(model, joints, projected, jnp.zeros((6, 6), joints.X.translation.dtype))


def projected(below, link):
    X, S, R = link.X, link.S, link.R
    IA = link.I + below
    U = IA @ S
    D = S.T @ U + jnp.diag(R)
    D_inverse = definite_inverse(D)
    # Division makes K S = 1 exact where S is a coordinate axis and there is no rotor.
    K = U.T / D if len(D) == 1 else D_inverse @ U.T
    Ia = IA - U @ K
    Ia = _with_product(0.5 * (Ia + Ia.T), link, R[:, None] * K)
    passed_on = X.T @ Ia @ X
    return 0.5 * (passed_on + passed_on.T), ArticulatedBody(X, S, K, D_inverse, Ia)


def _with_product(Ia, link, SIa):
    """The symmetric `Ia`, corrected for rounding so that Sᵀ Ia = R K, which is zero without rotors."""
    S, N = link.S, link.N
    r = S.T @ Ia - SIa
    return Ia - N.T @ r - r.T @ N + N.T @ (r @ S) @ N
