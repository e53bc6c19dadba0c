"""Forward dynamics by the modified articulated-body method of Ascher, Pai and Cloutier."""

import jax.numpy as jnp

from jdyn.array import definite_inverse
from jdyn.dynamics.building_blocks import ArticulatedBody, ArticulatedRecursion


class ModifiedABA(ArticulatedRecursion):
    """The textbook articulated-body recursion with the pivot in two parts, D = Hᵀ M H + Hᵀ M̃ H: O(n).

    M is the body's own inertia, M̃ the sum of what its children pass on. M̃ is singular and can be so large that adding M
    to it would round away M's part along the joint. The pivot in two parts keeps it, and so does U = M H + M̃ H. The
    rounding errors of M̃ along the children's axes are not corrected; so `ABA` is better on chains of many joints.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.ModifiedABA()).round(3))
    [-6.047  8.063]

    Source: Pai, Ascher, Kry 2000, section 7; Ascher, Pai, Cloutier 1997.
    """

    def eliminate(self, model, joints):
        return self.articulated(model, joints, _modified, jnp.zeros((6, 6), joints.X.translation.dtype))


def _modified(below, link):
    X, H = link.X, link.S
    own, passed_on = link.I @ H, below @ H
    D = H.T @ own + H.T @ passed_on + jnp.diag(link.R)
    U, D_inverse = own + passed_on, definite_inverse(D)
    K = D_inverse @ U.T
    Ma = (link.I + below) - U @ K
    return X.T @ Ma @ X, ArticulatedBody(X, H, K, D_inverse, Ma)
