"""Forward dynamics by Gauss' principle and dynamic programming."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.methods.articulated import inverse, links, pack_joints, unpack_joints
from jdyn.dynamics.methods.tree_method import TreeMethod
from jdyn.dynamics.traverse import inward, outward, pack
from jdyn.model import WORLD
from jdyn.spatial import skew


class Stage(eqx.Module):
    """One stage of the program, a body and its joint; motions are those of the centre of mass, in body axes.

    Attributes:
        A, B: ẍ_i = A ẍ_{i-1} + B q̈_i + f_i.
        P: Curvature of the least constraint of this body and all that it carries, as a function of ẍ_i.
        D_inverse: (Bᵀ P B + R)⁻¹ with rotor inertias R.
        to_center: Motion from the body's origin to its centre of mass.
    """

    A: Float[Array, "6 6"]
    B: Float[Array, "6 k"]
    P: Float[Array, "6 6"]
    D_inverse: Float[Array, "k k"]
    to_center: Float[Array, "6 6"]


class GaussDP(TreeMethod):
    """Minimise the constraint of Gauss' principle over one joint after another, from the leaves inward: O(n).

    The least constraint of what a body carries is a quadratic function of the body's acceleration, ½ ẍᵀP ẍ + Rᵀẍ + S:
    P is the articulated-body inertia, found by another road and twenty years before the name, and in the coordinates
    of the source, centres of mass. Rounding grows as in `ABA(form="textbook")`. A free base needs no rule of its own:
    its B is square, and the joint's equation becomes ẍ₀ = −P₀⁻¹ R₀.

    Source: Vereshchagin 1974, section 3, equations (3.1) to (3.5b).
    """

    def eliminate(self, model, joints):
        I = model.inertias
        massive = I.mass > 0
        center = I.first_moment / jnp.where(massive, I.mass, 1)[:, None]
        to_center = jax.vmap(_shift)(center)
        parents = np.array(model.topology.parents)
        carrier = jnp.where((parents == WORLD)[:, None], 0, center[parents])
        packed = zip(links(model, joints), pack(model.topology, (to_center, jax.vmap(_shift)(-carrier))), strict=True)
        zero = jnp.zeros((6, 6), center.dtype)
        return inward(model.topology, _minimise, zero, tuple((link, *shifts) for link, shifts in packed))

    def sweep(self, model, tree, tau, c, p, world):
        Q = pack_joints(model, tau)
        loads = tuple(zip(tree, Q, pack(model.topology, c), pack(model.topology, p), strict=True))
        R = inward(model.topology, _linear_term, jnp.zeros_like(world), loads)
        motions = tuple((stage, Q, c, R) for (stage, Q, c, _), R in zip(loads, R, strict=True))
        return unpack_joints(model, outward(model.topology, _accelerate, world, motions))


def _shift(center: Float[Array, "3"]) -> Float[Array, "6 6"]:
    """The motion matrix that takes spatial motions to a point `center` away, axes unchanged."""
    one, zero = jnp.eye(3, dtype=center.dtype), jnp.zeros((3, 3), center.dtype)
    return jnp.block([[one, zero], [-skew(center), one]])


def _minimise(below, x):
    """(3.5a): what the body passes on of P, and its stage."""
    link, to_center, from_carrier = x
    from_center = 2 * jnp.eye(6, dtype=to_center.dtype) - to_center
    W = from_center.T @ link.I @ from_center
    A, B, P = to_center @ link.X @ from_carrier, to_center @ link.S, W + below
    D_inverse = inverse(B.T @ P @ B + jnp.diag(link.R))
    PB = P @ B
    return A.T @ (P - PB @ D_inverse @ PB.T) @ A, Stage(A, B, P, D_inverse, to_center)


def _linear_term(below, x):
    """(3.5b): what the body passes on of R, and its own; −W z̈ is the force p about the centre of mass."""
    stage, Q, c, p = x
    from_center = 2 * jnp.eye(6, dtype=p.dtype) - stage.to_center
    R, f = from_center.T @ p + below, stage.to_center @ c
    linear = R + stage.P @ f
    u = Q - stage.B.T @ linear
    return stage.A.T @ (linear + stage.P @ (stage.B @ (stage.D_inverse @ u))), R


def _accelerate(carrier, x):
    """(3.5) and (3.1)."""
    stage, Q, c, R = x
    reached = stage.A @ carrier + stage.to_center @ c
    a = stage.D_inverse @ (Q - stage.B.T @ (stage.P @ reached + R))
    return reached + stage.B @ a, a
