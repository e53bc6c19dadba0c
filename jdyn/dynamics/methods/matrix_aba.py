"""Forward dynamics by the articulated-body algorithm, on matrices of whole bodies."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp

from jdyn.dynamics.methods.articulated import ArticulatedBody, articulate, sweep
from jdyn.dynamics.methods.method import one_of
from jdyn.dynamics.methods.tree_method import TreeMethod
from jdyn.spatial import definite_inverse


class MatrixABA(TreeMethod):
    """Eliminate joints from the leaves inward, in several forms, for those who study how each rounds.

    I^a = I^A − U D⁻¹ Uᵀ must be symmetric and must leave nothing along the joint's own axis. Rounding spoils both by
    ε |I^A|, and the textbook form carries that to the root, where it has grown by orders of magnitude after a
    hundred joints; in the projected form both properties are restored at each joint.

    Attributes:
        form: `"projected"`: the default, as above, which is what `ABA` does; `"textbook"`: as books have it;
            `"cancelling"`: what a joint takes away is subtracted only after all inertias are added. That form is as
            sensitive to the condition number of the mass matrix as factoring that matrix is.
        bias: `"within"` or `"separate"`, as in `Recursion`.

    Source: Featherstone 2008, section 7.3; Bierman 1977 for the stabilised update of a projected inertia;
    Cloutier 1995, sections 3.3.1, 4.3 and 5.3.1 for the separate bias and the cancelling form.
    """

    form: Literal["projected", "textbook", "cancelling"] = eqx.field(static=True, default="projected")

    def __check_init__(self):
        one_of("form", self.form, tuple(_FORMS))

    def eliminate(self, model, joints):
        zero = jnp.zeros((6, 6), joints.X.translation.dtype)
        if self.form == "cancelling":
            return articulate(model, joints, _cancelling, (zero, zero))
        return articulate(model, joints, _FORMS[self.form], zero)

    def sweep(self, model, tree, tau, c, p, world):
        return sweep(model, tree, tau, c, p, world)


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
    """The symmetric `Ia` with Sᵀ Ia as it must be, R K, which is zero without rotors, and not as rounding left it."""
    S, N = link.S, link.N
    r = S.T @ Ia - SIa
    return Ia - N.T @ r - r.T @ N + N.T @ (r @ S) @ N


def _textbook(below, link):
    X, S = link.X, link.S
    IA = link.I + below
    U = IA @ S
    D_inverse = definite_inverse(S.T @ U + jnp.diag(link.R))
    K = D_inverse @ U.T
    Ia = IA - U @ K
    return X.T @ Ia @ X, ArticulatedBody(X, S, K, D_inverse, Ia)


def _cancelling(below, link):
    X, S = link.X, link.S
    kept, taken = below
    IA = (link.I + kept) - taken
    U = IA @ S
    D_inverse = definite_inverse(S.T @ U + jnp.diag(link.R))
    K = D_inverse @ U.T
    message = X.T @ IA @ X, X.T @ (U @ K) @ X
    return message, ArticulatedBody(X, S, K, D_inverse, IA - U @ K)


_FORMS = {"projected": projected, "textbook": _textbook, "cancelling": _cancelling}
