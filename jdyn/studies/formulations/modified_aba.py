"""Forward dynamics by the modified articulated-body method of Ascher, Pai and Cloutier."""

import jax.numpy as jnp

from jdyn.array import definite_inverse
from jdyn.dynamics.building_blocks import ArticulatedBody, ArticulatedRecursion


class ModifiedABA(ArticulatedRecursion):
    """The textbook articulated-body recursion with the pivot in two parts, D = Hᵀ M H + Hᵀ M̃ H: O(n).

    M is the body's own inertia, M̃ what its children pass on: singular, and possibly so large that adding M to it
    would round away what M contributes along the joint. The pivot keeps that; U = M H + M̃ H does as well. What
    rounding leaves of M̃ along the children's axes is not mended, which is why `ABA` is the better choice on chains
    of many joints.

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
