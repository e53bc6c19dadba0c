"""The articulated-body recursion, but for how a joint is eliminated: that is a method's own `step`.

Joints are padded to the widest one of their run: columns of S beyond a joint's own are zero, and their rotor inertia
is one, so that they never move and D stays invertible.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from jdyn.dynamics.kinematics import JointKinematics
from jdyn.dynamics.traverse import Packed, inward, outward, pack, schedule, unpack
from jdyn.model import Model
from jdyn.spatial import SpatialInertia


class Link(eqx.Module):
    """A body and its joint, of width k, at one configuration.

    Attributes:
        X: Motion transform from the parent, a 6×6 matrix.
        S: Motion subspace.
        I: Inertia of the body alone.
        R: Rotor inertias of the joint.
    """

    X: Float[Array, "6 6"]
    S: Float[Array, "6 k"]
    I: Float[Array, "6 6"]
    R: Float[Array, " k"]


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


def articulate(model: Model, joints: JointKinematics, step: Callable, zero: Any) -> Packed:
    """The inertia recursion, inward: `step(sum of the children's messages, Link) -> (message, body)`."""
    return inward(model.topology, step, zero, links(model, joints))


def links(model: Model, joints: JointKinematics) -> Packed:
    """A `Link` of every body, packed for traversal."""
    X = jax.vmap(lambda X: X.motion_matrix())(joints.X)
    I = jax.vmap(SpatialInertia.matrix)(model.inertias)
    R = _padded(model, model.by_group("v", model.armature), fill=1)
    S = _padded(model, [jnp.swapaxes(S, 1, 2) for S in joints.S])
    return tuple(
        Link(X, jnp.swapaxes(S[..., : run.nv, :], -1, -2), I, R[..., : run.nv])
        for run, (X, S, I, R) in zip(schedule(model.topology), pack(model.topology, (X, S, I, R)), strict=True)
    )


def sweep(
    model: Model,
    bodies: Packed,
    tau: Float[Array, " nv_full"],
    c: Float[Array, "nb 6"],
    p: Float[Array, "nb 6"],
    world: Float[Array, "6"],
) -> Float[Array, " nv_full"]:
    """Accelerations of all joints: bias forces inward, accelerations outward."""
    tau = _padded(model, model.by_group("v", tau))
    loads = tuple(
        (body, tau[..., : run.nv], c, p)
        for run, body, (tau, c, p) in zip(
            schedule(model.topology), bodies, pack(model.topology, (tau, c, p)), strict=True
        )
    )
    u = inward(model.topology, _bias_force, jnp.zeros_like(world), loads)
    motions = tuple((body, u, c) for u, (body, _, c, _) in zip(u, loads, strict=True))
    return _unpack_joints(model, outward(model.topology, _acceleration, world, motions))


def _bias_force(below, x):
    body, tau, c, p = x
    pA = p + below
    u = tau - body.S.T @ pA
    pa = pA + body.Ia @ c + body.K.T @ u
    return body.X.T @ pa, u


def _acceleration(parent, x):
    body, u, c = x
    handle = body.X @ parent + c
    a = body.D_inverse @ u - body.K @ handle
    return handle + body.S @ a, a


def inverse(D: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """Inverse of a small positive definite matrix."""
    if D.shape == (1, 1):
        return 1 / D
    return cho_solve((jnp.linalg.cholesky(D), True), jnp.eye(len(D), dtype=D.dtype))


def _padded(model: Model, by_group: list, fill: float = 0) -> Array:
    """Rows of all joints in one array, as wide as the widest joint."""
    width = max(kind.nv for kind in model.topology.kinds)

    def pad(x):
        return jnp.pad(x, [(0, 0), (0, width - x.shape[1])] + [(0, 0)] * (x.ndim - 2), constant_values=fill)

    return model.merge_groups("bodies", [pad(x) for x in by_group])


def _unpack_joints(model: Model, packed: Packed) -> Float[Array, " nv_full"]:
    """Full coordinates from packed joint coordinates."""
    width = max(kind.nv for kind in model.topology.kinds)

    def pad(x):
        return jnp.pad(x, [(0, 0), (0, 0), (0, width - x.shape[-1])])

    rows = model.by_group("bodies", unpack(model.topology, tuple(pad(x) for x in packed)))
    groups = zip(rows, model.topology.groups, strict=True)
    return model.merge_groups("v", [row[:, : group.kind.nv] for row, group in groups])
