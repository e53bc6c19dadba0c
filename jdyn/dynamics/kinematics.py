"""Positions and velocities of bodies."""

import functools
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Integer

from jdyn.dynamics.recursion.levels import LEVELS
from jdyn.execution.compiled import precise
from jdyn.model import WORLD, Model, checked, motion_bias, take_rows
from jdyn.model.model import compiled
from jdyn.model.topology import doubling_ancestors
from jdyn.spatial import Transform, cross_motion
from jdyn.terminal.messages import unknown


class JointKinematics(eqx.Module):
    """Joint transforms and motion subspaces at one configuration.

    Attributes:
        X: Pose of each body in its parent.
        S: Motion subspaces, one stacked (joints, 6, nv of the kind) array a joint kind.
    """

    X: Transform
    S: list[Float[Array, "joints 6 width"]]


def joint_kinematics(model: Model, q: Float[Array, " nq_full"]) -> JointKinematics:
    """Joint poses and subspaces at the full configuration `q`."""
    by_group = model.by_group("q", q)
    poses = model.map_joints(lambda joint, q: joint.transform(q), by_group)
    X = jax.vmap(Transform.__matmul__)(model.placements, model.merge_groups("bodies", poses))
    return JointKinematics(X, model.map_joints(lambda joint, q: joint.subspace(q), by_group))


def world_acceleration(model: Model, dtype) -> Float[Array, "6"]:
    """Gravity as an upward acceleration of the world."""
    return jnp.concatenate([jnp.zeros(3, dtype), -jnp.asarray(model.gravity, dtype)])


def joint_motion(model: Model, joints: JointKinematics, v: Float[Array, " nv_full"]) -> Float[Array, "nb 6"]:
    """S v of every joint."""
    parts = [jax.vmap(jnp.matmul)(S, v) for S, v in zip(joints.S, model.by_group("v", v), strict=True)]
    return model.merge_groups("bodies", parts)


def joint_force(model: Model, joints: JointKinematics, f: Float[Array, "nb 6"]) -> Float[Array, " nv_full"]:
    """Sᵀ f of every joint."""
    parts = [jax.vmap(lambda S, f: S.T @ f)(S, f) for S, f in zip(joints.S, model.by_group("bodies", f), strict=True)]
    return model.merge_groups("v", parts)


def joint_bias(
    model: Model, q: Float[Array, " nq_full"], v: Float[Array, " nv_full"], velocities: Float[Array, "nb 6"]
) -> Float[Array, "nb 6"]:
    """c of every joint: the body's acceleration that neither its parent's nor S v̇ accounts for."""
    return model.merge_groups(
        "bodies",
        model.map_joints(
            motion_bias, model.by_group("q", q), model.by_group("v", v), model.by_group("bodies", velocities)
        ),
    )


def velocities(model: Model, joints: JointKinematics, v: Float[Array, " nv_full"]) -> Float[Array, "nb 6"]:
    """Velocities of all bodies, each in its own frame."""
    motion = joint_motion(model, joints, v)
    return accumulate_motion(model, joints.X, motion, jnp.zeros(6, motion.dtype))


def accumulate_motion(
    model: Model, X: Transform, motion: Float[Array, "nb 6"], world: Float[Array, "6"]
) -> Float[Array, "nb 6"]:
    """m_b = X m_parent + motion_b outward from `world`: velocities or accelerations of all bodies."""
    return _accumulated(model.topology, X, motion, world)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _accumulated(topology, X, motion, world):
    """Motions of all bodies. The derivative is the same recursion from another source,
    dm_b = X dm_parent + (dX m_parent + dmotion_b)."""

    def step(parent, x):
        X, motion = x
        m = X.motion_to_child(parent) + motion
        return m, m

    return LEVELS.unpack(topology, LEVELS.outward(topology, step, world, LEVELS.pack(topology, (X, motion))))


@_accumulated.defjvp
@precise
def _accumulated_jvp(topology, primals, tangents):
    (X, _, world), (dX, dmotion, dworld) = primals, tangents
    m = _accumulated(topology, *primals)
    parents = take_rows(jnp.concatenate([world[None], m]), np.array(topology.parents) - WORLD)
    _, moved = jax.jvp(lambda X: jax.vmap(Transform.motion_to_child)(X, parents), (X,), (dX,))
    return m, _accumulated(topology, X, dmotion + moved, dworld)


def poses(model: Model, X: Transform) -> Transform:
    """World poses of all bodies from their poses in their parents."""

    def step(parent, X):
        pose = parent @ X
        return pose, pose

    topology, world = model.topology, Transform.identity(X.translation.dtype)
    return LEVELS.unpack(topology, LEVELS.outward(topology, step, world, LEVELS.pack(topology, X)))


def poses_and_velocities(
    model: Model, joints: JointKinematics, v: Float[Array, " nv_full"]
) -> tuple[Transform, Float[Array, "nb 6"]]:
    """`poses` and `velocities` in one pass outward."""

    def step(parent, x):
        (pose, m), (X, motion) = parent, x
        here = pose @ X, X.motion_to_child(m) + motion
        return here, here

    motion = joint_motion(model, joints, v)
    topology, world = model.topology, (Transform.identity(motion.dtype), jnp.zeros(6, motion.dtype))
    return LEVELS.unpack(topology, LEVELS.outward(topology, step, world, LEVELS.pack(topology, (joints.X, motion))))


def poses_by_leaps(model: Model, X: Transform) -> Transform:
    """Poses like `poses`, in log₂(depth) steps: for a single configuration. Each step composes the pose of every body
    in some ancestor with that ancestor's pose in an ancestor as far away again."""
    world = Transform.identity(X.translation.dtype)
    known = jax.tree.map(lambda x, one: jnp.concatenate([x, one[None]]), X, world)

    def leap(known, ancestors):
        of_ancestors = jax.tree.map(lambda x: x.at[ancestors].get(mode="promise_in_bounds"), known)
        return jax.vmap(Transform.__matmul__)(of_ancestors, known), None

    known, _ = jax.lax.scan(leap, known, doubling_ancestors(model.topology))
    return jax.tree.map(lambda x: x[:-1], known)


@compiled
def forward_kinematics(model: Model, q: Float[Array, " nq"]) -> Transform:
    """World pose of every body.

    >>> poses = jdyn.forward_kinematics(jdyn.load("double_pendulum"), jnp.array([jnp.pi / 2, 0.0]))
    >>> print(poses.translation.round(3) + 0.0)
    [[0. 0. 0.]
     [1. 0. 0.]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m]; quaternions wxyz.

    Returns:
        `Transform` with leading axis `nb`: `X_wb`, translations in [m].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Featherstone 2008, section 4.1.
    """
    (q,) = checked(model, q=q)
    return poses(model, joint_kinematics(model, model.expand(q)).X)


@compiled
def body_velocities(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "nb 6"]:
    """Spatial velocity [ω; v] of every body, in the body's own frame and at its origin.

    >>> print(jdyn.body_velocities(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]))[0] + 0.0)
    [ 0. -2.  0.  0.  0.  0.]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].

    Returns:
        Velocities [rad/s, m/s].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Featherstone 2008, eq. 3.33.
    """
    q, v = checked(model, q=q, v=v)
    return velocities(model, joint_kinematics(model, model.expand(q)), model.expand_velocity(v))


def carrier(model: Model, body_or_frame: str | int | Integer[Array, ""]) -> tuple[Any, int]:
    """The body that carries a body frame or a named frame, and the frame's number, which is -1 for the body's own.

    Raises:
        ValueError: if there is no such body or frame. A traced number is not checked.
    """
    topology = model.topology
    if isinstance(body_or_frame, Tracer):
        return body_or_frame, -1
    if not isinstance(body_or_frame, str):
        body = operator.index(body_or_frame)
        if not 0 <= body < model.nb:
            raise ValueError(f"body {body} does not exist; {model.name!r} has {model.nb} bodies")
        return body, -1
    if body_or_frame in topology.body_names:
        return topology.body(body_or_frame), -1
    if body_or_frame in topology.frame_names:
        frame = topology.frame_names.index(body_or_frame)
        return topology.frame_bodies[frame], frame
    names = (*topology.body_names, *topology.frame_names)
    raise ValueError(unknown("body or frame", body_or_frame, names))


def common_carrier(model: Model, first: str, second: str) -> str:
    """Name of the last body that carries both frames, or is the body of one of them; `"world"` if there is none.

    Raises:
        ValueError: if there is no such frame.
    """
    bodies = (-1 if frame == "world" else carrier(model, frame)[0] for frame in (first, second))
    one, other = (() if body < 0 else model.topology.supports[body] for body in bodies)
    shared = next((body for body in one if body in other), None)
    return "world" if shared is None else model.body_names[shared]


def frame_pose(model: Model, q: Float[Array, " nq"], body_or_frame: str | int | Integer[Array, ""]) -> Transform:
    """World pose of one body or named frame.

    >>> tip = jdyn.frame_pose(jdyn.load("double_pendulum"), jnp.array([jnp.pi / 2, 0.0]), "tip")
    >>> print(tip.translation.round(3) + 0.0)
    [2. 0. 0.]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        body_or_frame: Body index, which may be traced, body name or frame name. One program serves all of them.

    Raises:
        ValueError: at trace time, if there is no such body or frame, or a size disagrees with `model`. A traced index
            of no body gives NaN.
    """
    checked(model)
    return _frame_pose(model, q, *traced(*carrier(model, body_or_frame)))


def traced(body: Any, frame: int) -> tuple[Any, Any]:
    """Numbers as arrays, which compiled functions trace."""
    return body if isinstance(body, Tracer) else np.asarray(body), np.asarray(frame)


@compiled
def _frame_pose(model, q, body, frame):
    (q,) = checked(model, q=q)
    X_w = poses(model, joint_kinematics(model, model.expand(q)).X)
    return one_pose(X_w, body) @ one_pose(model.frames, frame)


def one_pose(poses: Transform, number) -> Transform:
    """One of `poses`; the identity at -1, for the world or a body's own frame; NaN where there is none."""
    one = Transform.identity(poses.translation.dtype)
    return jax.tree.map(lambda x, one: row_of(jnp.concatenate([one[None], x]), number), poses, one)


def row_of(table, number):
    """The row of a table whose first row belongs to -1; NaN where there is none."""
    return table.at[number + 1].get(mode="fill", wrap_negative_indices=False)


def dof_motions(model: Model, joints: JointKinematics, X: Transform) -> Float[Array, "nv_full 6"]:
    """Columns of S of every joint, carried by each body's transform `X` to its parent frame."""
    carry = jax.vmap(lambda X, S: jax.vmap(X.motion_to_parent)(S.T))
    parts = [carry(X, S) for X, S in zip(model.by_group("bodies", X), joints.S, strict=True)]
    return model.merge_groups("v", parts)


def dof_motion_rates(
    model: Model, q: Float[Array, " nq_full"], v: Float[Array, " nv_full"], X: Transform, moved: Float[Array, "nb 6"]
) -> Float[Array, "nv_full 6"]:
    """Rates of `dof_motions`, in the frame in which X are the poses of bodies; `moved` are their velocities there, in
    its axes and at its origin."""

    def rate(joint, q, v, X, moved):
        S, S_apparent = jax.jvp(joint.subspace, (q,), (joint.rate(q, v),))
        in_body = jax.vmap(lambda s: cross_motion(moved, s))
        return in_body(jax.vmap(X.motion_to_parent)(S.T)) + jax.vmap(X.motion_to_parent)(S_apparent.T)

    by_group = model.by_group("q", q), model.by_group("v", v), *(model.by_group("bodies", x) for x in (X, moved))
    return model.merge_groups("v", model.map_joints(rate, *by_group))


def per_dof(model: Model, per_body: np.ndarray) -> np.ndarray:
    """Repeat the entries of a per-body table for every degree of freedom of the body's joint."""
    return np.repeat(per_body, [kind.nv for kind in model.topology.kinds], axis=0)


def padded(model: Model, by_group: list, fill: float = 0) -> Float[Array, "nb width *columns"]:
    """Rows of all joints in one array, as wide as the widest joint."""
    width = max(kind.nv for kind in model.topology.kinds)

    def pad(x):
        return jnp.pad(x, [(0, 0), (0, width - x.shape[1])] + [(0, 0)] * (x.ndim - 2), constant_values=fill)

    return model.merge_groups("bodies", [pad(x) for x in by_group])
