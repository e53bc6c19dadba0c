"""Forward dynamics by the articulated-body algorithm, on matrices of whole bodies."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp

from jdyn.array import definite_inverse
from jdyn.dynamics.building_blocks import ArticulatedBody, ArticulatedRecursion, one_of, projected


class MatrixABA(ArticulatedRecursion):
    """Eliminate joints from the leaves inward, in several forms whose rounding differs.

    I^a = I^A − U D⁻¹ Uᵀ must be symmetric and must leave nothing along the joint's own axis. Rounding spoils both by
    ε |I^A|. The textbook form carries these errors to the root, and they grow by orders of magnitude over a hundred
    joints; the projected form restores both properties at each joint.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.MatrixABA("textbook")).round(3))
    [-6.047  8.063]

    Attributes:
        form: `"projected"`, the default: as above, and as in `ABA`; `"textbook"`: without corrections;
            `"cancelling"`: the joint's part is subtracted only after all inertias are added. This form is as sensitive
            to the condition number of the mass matrix as factoring that matrix.
        bias: `"within"`: velocities, gravity and external forces enter the recursion; `"separate"`: as forces of
            the joints, from inverse dynamics first.

    Source: Featherstone 2008, section 7.3; Bierman 1977 for the stabilised update of a projected inertia;
    Cloutier 1995, sections 3.3.1, 4.3 and 5.3.1 for the separate bias and the cancelling form.
    """

    form: Literal["projected", "textbook", "cancelling"] = eqx.field(static=True, default="projected")

    def __check_init__(self):
        one_of("form", self.form, tuple(_FORMS))

    def eliminate(self, model, joints):
        zero = jnp.zeros((6, 6), joints.X.translation.dtype)
        if self.form == "cancelling":
            return self.articulated(model, joints, _cancelling, (zero, zero))
        return self.articulated(model, joints, _FORMS[self.form], zero)


def _textbook(below, link):
    X, IA = link.X, link.I + below
    along, K, D_inverse = _along(link, IA)
    Ia = IA - along
    return X.T @ Ia @ X, ArticulatedBody(X, link.S, K, D_inverse, Ia)


def _cancelling(below, link):
    kept, taken = below
    X, IA = link.X, (link.I + kept) - taken
    along, K, D_inverse = _along(link, IA)
    return (X.T @ IA @ X, X.T @ along @ X), ArticulatedBody(X, link.S, K, D_inverse, IA - along)


def _along(link, IA):
    """The part of an inertia along the joint, U D⁻¹ Uᵀ, with D⁻¹ Uᵀ and D⁻¹."""
    U = IA @ link.S
    D_inverse = definite_inverse(link.S.T @ U + jnp.diag(link.R))
    K = D_inverse @ U.T
    return U @ K, K, D_inverse


_FORMS = {"projected": projected, "textbook": _textbook, "cancelling": _cancelling}
