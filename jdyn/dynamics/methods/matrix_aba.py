"""The articulated-body recursion on matrices of whole bodies; each method eliminates a joint by its own `step`.

Joints are padded to the widest one of their run: additional columns of S are zero and have a rotor inertia of one, so
that they never move and D stays invertible.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array import definite_inverse
from jdyn.dynamics.kinematics import JointKinematics, padded
from jdyn.dynamics.methods.method import TreeMethod
from jdyn.dynamics.recursion.levels import LEVELS
from jdyn.dynamics.recursion.order import Packed
from jdyn.model import Model
from jdyn.spatial import SpatialInertia


class Link(eqx.Module):
    """A body and its joint, of width k, at one configuration.

    Attributes:
        X: Motion transform from the parent, a 6×6 matrix.
        S: Motion subspace.
        N: With N S = 1, but for padding, where it is zero.
        I: Inertia of the body alone.
        R: Rotor inertias of the joint.
    """

    X: Float[Array, "6 6"]
    S: Float[Array, "6 k"]
    N: Float[Array, "k 6"]
    I: Float[Array, "6 6"]
    R: Float[Array, " k"]


class WideLink(eqx.Module):
    """A `Link` as wide as the widest joint."""

    X: Float[Array, "6 6"]
    S: Float[Array, "6 width"]
    I: Float[Array, "6 6"]
    R: Float[Array, " width"]

    def narrowed(self, k: int) -> Link:
        """Without the padding that makes the joint wider than `k`."""
        S = self.S[..., :k]
        return Link(self.X, S, _left_inverse(S), self.I, self.R[..., :k])


class ArticulatedBody(eqx.Module):
    """A body with a joint of width k after the inertia recursion.

    Attributes:
        X: Motion transform from the parent, a 6×6 matrix.
        S: Motion subspace.
        K: D⁻¹ Uᵀ with U = I^A S, D = Sᵀ U + R: joint acceleration per unit acceleration of the handle.
        D_inverse: D⁻¹.
        Ia: I^a = I^A − U D⁻¹ Uᵀ, the part of the articulated-body inertia that the joint passes on, in body axes.
    """

    X: Float[Array, "6 6"]
    S: Float[Array, "6 k"]
    K: Float[Array, "k 6"]
    D_inverse: Float[Array, "k k"]
    Ia: Float[Array, "6 6"]

    def passed_on(self, a: Float[Array, "6"]) -> Float[Array, "6"]:
        """I^a a."""
        return self.Ia @ a


class ArticulatedRecursion(TreeMethod):
    """A tree method whose elimination leaves bodies like `ArticulatedBody`; subclasses eliminate joints."""

    def articulated(self, model: Model, joints: JointKinematics, step: Callable, zero: Any) -> Packed:
        """The inertia recursion, inward: `step(sum of the children's messages, Link) -> (message, body)`."""
        return LEVELS.inward(model.topology, step, zero, links(model, joints))

    def sweep(self, model, tree, tau, c, p, world):
        topology = model.topology
        tau, c, p = LEVELS.pack_coordinates(topology, tau), *(LEVELS.pack(topology, x) for x in (c, p))
        loads = tuple(zip(tree, tau, c, p, strict=True))
        u = LEVELS.inward(topology, bias_force, jnp.zeros_like(world), loads)
        motions = tuple((body, u, c) for u, (body, _, c, _) in zip(u, loads, strict=True))
        return LEVELS.unpack_coordinates(topology, LEVELS.outward(topology, acceleration, world, motions))


class ProjectedABA(ArticulatedRecursion):
    """Method of `ABA` for a single configuration.

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


def links(model: Model, joints: JointKinematics) -> Packed:
    """A `Link` of every body, packed for traversal."""
    packed = LEVELS.pack(model.topology, wide_links(model, joints))
    return tuple(link.narrowed(run.nv) for run, link in zip(LEVELS.schedule(model.topology), packed, strict=True))


def wide_links(model: Model, joints: JointKinematics) -> WideLink:
    """A `WideLink` of every body, with leading axis `nb`."""
    X = jax.vmap(lambda X: X.motion_matrix())(joints.X)
    I = jax.vmap(SpatialInertia.matrix)(model.inertias)
    R = padded(model, model.by_group("v", model.armature), fill=1)
    S = padded(model, [jnp.swapaxes(S, 1, 2) for S in joints.S])
    return WideLink(X, jnp.swapaxes(S, 1, 2), I, R)


def bias_force(below, x):
    body, tau, c, p = x
    pA = p + below
    u = tau - body.S.T @ pA
    pa = pA + body.passed_on(c) + body.K.T @ u
    return body.X.T @ pa, u


def acceleration(parent, x):
    body, u, c = x
    handle = body.X @ parent + c
    a = body.D_inverse @ u - body.K @ handle
    return handle + body.S @ a, a


@functools.partial(jnp.vectorize, signature="(m,k)->(k,m)")
def _left_inverse(S: Float[Array, "6 k"]) -> Float[Array, "k 6"]:
    squared = S.T @ S
    padding = jnp.where(jnp.diag(squared) == 0, 1, 0).astype(S.dtype)
    return definite_inverse(squared + jnp.diag(padding)) @ S.T


def narrowed(model: Model, rows: Float[Array, "nb width"]) -> Float[Array, " nv_full"]:
    """Inverse of `padded` for joint coordinates."""
    groups = zip(model.by_group("bodies", rows), model.topology.groups, strict=True)
    return model.merge_groups("v", [row[:, : group.kind.nv] for row, group in groups])
