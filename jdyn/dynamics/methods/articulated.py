"""The articulated-body recursion, but for how a joint is eliminated: that is a method's own `step`.

Joints are padded to the widest one of their run: columns of S beyond a joint's own are zero, and their rotor inertia
is one, so that they never move and D stays invertible.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.kinematics import JointKinematics, padded
from jdyn.dynamics.traverse import Packed, inward, outward, pack, pack_coordinates, schedule, unpack_coordinates
from jdyn.model import Model
from jdyn.spatial import SpatialInertia, definite_inverse


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
    """What the inertia recursion leaves at a body with a joint of width k.

    Attributes:
        X: Motion transform from the parent, a 6×6 matrix.
        S: Motion subspace.
        K: D⁻¹ Uᵀ with U = I^A S, D = Sᵀ U + R: joint acceleration per unit acceleration of the handle.
        D_inverse: D⁻¹.
        Ia: I^a = I^A − U D⁻¹ Uᵀ, what the joint passes on of the articulated inertia, in the body's frame.
    """

    X: Float[Array, "6 6"]
    S: Float[Array, "6 k"]
    K: Float[Array, "k 6"]
    D_inverse: Float[Array, "k k"]
    Ia: Float[Array, "6 6"]

    def passed_on(self, a: Float[Array, "6"]) -> Float[Array, "6"]:
        """I^a a."""
        return self.Ia @ a


def articulate(model: Model, joints: JointKinematics, step: Callable, zero: Any) -> Packed:
    """The inertia recursion, inward: `step(sum of the children's messages, Link) -> (message, body)`."""
    return inward(model.topology, step, zero, links(model, joints))


def links(model: Model, joints: JointKinematics) -> Packed:
    """A `Link` of every body, packed for traversal."""
    packed = pack(model.topology, wide_links(model, joints))
    return tuple(link.narrowed(run.nv) for run, link in zip(schedule(model.topology), packed, strict=True))


def wide_links(model: Model, joints: JointKinematics) -> WideLink:
    """A `WideLink` of every body, with leading axis `nb`."""
    X = jax.vmap(lambda X: X.motion_matrix())(joints.X)
    I = jax.vmap(SpatialInertia.matrix)(model.inertias)
    R = padded(model, model.by_group("v", model.armature), fill=1)
    S = padded(model, [jnp.swapaxes(S, 1, 2) for S in joints.S])
    return WideLink(X, jnp.swapaxes(S, 1, 2), I, R)


def sweep(
    model: Model,
    bodies: Packed,
    tau: Float[Array, " nv_full"],
    c: Float[Array, "nb 6"],
    p: Float[Array, "nb 6"],
    world: Float[Array, "6"],
) -> Float[Array, " nv_full"]:
    """Accelerations of all joints: bias forces inward, accelerations outward."""
    topology = model.topology
    loads = tuple(zip(bodies, pack_coordinates(topology, tau), pack(topology, c), pack(topology, p), strict=True))
    u = inward(topology, bias_force, jnp.zeros_like(world), loads)
    motions = tuple((body, u, c) for u, (body, _, c, _) in zip(u, loads, strict=True))
    return unpack_coordinates(topology, outward(topology, acceleration, world, motions))


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
