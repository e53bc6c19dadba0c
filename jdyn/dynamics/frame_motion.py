"""Velocities and accelerations of bodies and named frames, their Jacobians and rates of these.

The functions share two arguments. `point` is where the linear part is taken, in the frame's coordinates. `frame` says
in which axes, as `jacobian` explains.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from jdyn.array import shaped
from jdyn.dynamics.kinematics import (
    accumulate_motion,
    carrier,
    dof_motion_rates,
    dof_motions,
    joint_bias,
    joint_kinematics,
    joint_motion,
    one_pose,
    poses,
    poses_and_velocities,
    row_of,
    traced,
)
from jdyn.dynamics.paths import AllCoordinates, signs_on_paths
from jdyn.model import WORLD, Model, checked
from jdyn.model.model import compiled
from jdyn.spatial import Transform
from jdyn.terminal.messages import one_of

Axes = Literal["body", "world", "aligned"]
AXES = ("body", "world", "aligned")


def frame_velocity(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    body_or_frame: str | int | Integer[Array, ""],
    *,
    point: Float[Array, "3"] | None = None,
    frame: Axes = "body",
) -> Float[Array, "6"]:
    """Spatial velocity [ω; v] of a body or a named frame: `jacobian` times `v`, in O(n).

    >>> model, q, v = jdyn.load("double_pendulum"), jnp.zeros(2), jnp.array([1.0, 0.5])
    >>> print(jdyn.frame_velocity(model, q, v, "tip", frame="aligned").round(3) + 0.0)
    [ 0.  -1.5  0.   2.5  0.   0. ]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        body_or_frame: Body index, which may be traced, body name or frame name. One program serves all of them.
        point: Where the linear velocity is taken, in the frame's coordinates [m]; its origin if left out.
        frame: `"body"`: in the frame's own axes; `"aligned"`: in world axes, at the same point; `"world"`: in
            the world frame, the linear part that of the point passing the world's origin.

    Returns:
        Velocity [rad/s, m/s].

    Raises:
        ValueError: at trace time, as `jacobian`. A traced index of no body gives NaN.

    Source: Featherstone 2008, eq. 3.33.
    """
    return _called(_velocity, model, (q, v), body_or_frame, point, frame)


def frame_acceleration(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    body_or_frame: str | int | Integer[Array, ""],
    *,
    point: Float[Array, "3"] | None = None,
    frame: Axes = "body",
    classical: bool = False,
) -> Float[Array, "6"]:
    """Acceleration of a body or a named frame, without gravity, in O(n).

    The spatial acceleration is the rate of the spatial velocity in a frame that does not move. The classical one has
    the acceleration p̈ of the point in place of its linear part, which is larger by ω × v: an accelerometer there shows
    p̈ less gravity. With J and dJ/dt of `jacobian` and `jacobian_rate`, J a + dJ/dt v is the spatial acceleration in
    `"body"` and `"world"`, and the classical one in `"aligned"`.

    >>> model, q, v, a = jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]), jnp.zeros(1)
    >>> of_tip = jdyn.frame_acceleration(model, q, v, a, "tip", frame="aligned", classical=True)
    >>> print(of_tip.round(3) + 0.0)  # 4 m/s² towards the pivot
    [0. 0. 0. 0. 0. 4.]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        a: Acceleration [rad/s² or m/s²].
        body_or_frame: Body index, which may be traced, body name or frame name. One program serves all of them.
        point: Where the linear part is taken, in the frame's coordinates [m]; its origin if left out.
        frame: As for `frame_velocity`.
        classical: Whether the linear part is the acceleration of the point.

    Returns:
        Acceleration [rad/s², m/s²].

    Raises:
        ValueError: at trace time, as `jacobian`. A traced index of no body gives NaN.

    Source: Featherstone 2008, section 2.11 and eq. 5.8.
    """
    return _called(_acceleration, model, (q, v, a), body_or_frame, point, frame, bool(classical))


def jacobian(
    model: Model,
    q: Float[Array, " nq"],
    body_or_frame: str | int | Integer[Array, ""],
    *,
    point: Float[Array, "3"] | None = None,
    frame: Axes = "body",
) -> Float[Array, "6 nv"]:
    """Jacobian J of a body or a named frame: its spatial velocity [ω; v] is J v.

    >>> J = jdyn.jacobian(jdyn.load("double_pendulum"), jnp.zeros(2), "tip", frame="aligned")
    >>> print(J[3:].round(3) + 0.0)  # of the tip's linear velocity
    [[2. 1.]
     [0. 0.]
     [0. 0.]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        body_or_frame: Body index, which may be traced, body name or frame name. One program serves all of them.
        point: Where the linear velocity is taken, in the frame's coordinates [m]; its origin if left out.
        frame: `"body"`: in the frame's own axes; `"aligned"`: in world axes, at the same point; `"world"`: in
            the world frame, the linear part that of the point passing the world's origin.

    Returns:
        The Jacobian, columns in the order of `v`.

    Raises:
        ValueError: at trace time, if there is no such body or frame, a size disagrees with `model`, or `point` is
            given with `frame="world"`, which has no use for it. A traced index of no body gives NaN.

    Source: Featherstone 2008, section 4.2; Lynch and Park, Modern Robotics (2017), section 5.1.
    """
    return _called(jacobian_of_carrier, model, (q,), body_or_frame, point, frame)


def jacobian_rate(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    body_or_frame: str | int | Integer[Array, ""],
    *,
    point: Float[Array, "3"] | None = None,
    frame: Axes = "body",
) -> Float[Array, "6 nv"]:
    """Rate dJ/dt of `jacobian` with the same arguments, while the mechanism moves with `v`.

    Each column is the rate of a joint's twist, seen by an observer who moves as the axes of `frame` do.

    >>> model, q, v = jdyn.load("double_pendulum"), jnp.zeros(2), jnp.array([1.0, 0.5])
    >>> print(jdyn.jacobian_rate(model, q, v, "tip", frame="aligned")[3:].round(3) + 0.0)
    [[0.  0. ]
     [0.  0. ]
     [2.5 1.5]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        body_or_frame: Body index, which may be traced, body name or frame name. One program serves all of them.
        point: Where the linear velocity is taken, in the frame's coordinates [m]; its origin if left out.
        frame: As for `jacobian`.

    Returns:
        The rate, columns in the order of `v`.

    Raises:
        ValueError: at trace time, as `jacobian`. A traced index of no body gives NaN.

    Source: Featherstone 2008, sections 2.10 and 3.5.
    """
    return _called(_jacobian_rate, model, (q, v), body_or_frame, point, frame)


def _called(function: Callable, model: Model, state: tuple, body_or_frame: Any, point: Any, frame: str, *more: Any):
    """The compiled function of the body that carries a frame."""
    check_axes(point, frame)
    checked(model)
    return function(model, *state, *traced(*carrier(model, body_or_frame)), point, frame, *more)


def check_axes(point: Any, frame: str):
    """Check what says where and in which axes motions are given.

    Raises:
        ValueError: if `frame` is no name of axes, or is the world and has no use for `point`.
    """
    one_of("frame", frame, AXES)
    if frame == "world" and point is not None:
        raise ValueError("point: motions in the world frame do not depend on it; leave it out, or use frame='aligned'")


@compiled
def _velocity(model, q, v, body, number, point, frame):
    q, v = checked(model, q=q, v=v)
    joints = joint_kinematics(model, model.expand(q))
    X_w, velocities = poses_and_velocities(model, joints, model.expand_velocity(v))
    seen = _seen(one_pose(X_w, body), _placement(model, number, point), frame)
    return seen.motion_to_parent(_one_motion(velocities, body))


@compiled
def _acceleration(model, q, v, a, body, number, point, frame, classical):
    q, v, a = checked(model, q=q, v=v, a=a)
    q, v, a = model.expand(q), model.expand_velocity(v), model.expand_velocity(a)
    joints = joint_kinematics(model, q)
    X_w, velocities = poses_and_velocities(model, joints, v)
    motion = joint_motion(model, joints, a) + joint_bias(model, q, v, velocities)
    accelerations = accumulate_motion(model, joints.X, motion, jnp.zeros(6, motion.dtype))
    seen = _seen(one_pose(X_w, body), _placement(model, number, point), frame)
    spatial = seen.motion_to_parent(_one_motion(accelerations, body))
    if not classical:
        return spatial
    velocity = seen.motion_to_parent(_one_motion(velocities, body))
    return spatial.at[3:].add(jnp.cross(velocity[:3], velocity[3:]))


@compiled
def jacobian_of_carrier(model, q, body, number, point, frame) -> Float[Array, "6 nv"]:
    """`jacobian` of a frame by the number of the body that carries it and its own."""
    (q,) = checked(model, q=q)
    joints = joint_kinematics(model, model.expand(q))
    X_w = poses(model, joints.X)
    X_wf = one_pose(X_w, body) @ _placement(model, number, point)
    columns = dof_motions(model, joints, _about(X_w, X_wf, frame))
    return _on_path(model, body, _turn(X_wf, frame), columns)


@compiled
def _jacobian_rate(model, q, v, body, number, point, frame):
    q, v = checked(model, q=q, v=v)
    q, v = model.expand(q), model.expand_velocity(v)
    joints = joint_kinematics(model, q)
    X_w, velocities = poses_and_velocities(model, joints, v)
    X_wf = one_pose(X_w, body) @ _placement(model, number, point)
    X = _about(X_w, X_wf, frame)
    moved = jax.vmap(Transform.motion_to_parent)(X, velocities)
    observer = jnp.zeros(6, v.dtype)
    if frame != "world":
        observer = _one_motion(moved, body)
    if frame == "aligned":
        # World axes do not turn.
        observer = observer.at[:3].set(0)
    relative = moved - observer[None]
    return _on_path(model, body, _turn(X_wf, frame), dof_motion_rates(model, q, v, X, relative))


def _placement(model: Model, number: Any, point: Any) -> Transform:
    """Pose of a frame in the body that carries it, with the origin at a point of the frame."""
    placement = one_pose(model.frames, number)
    if point is None:
        return placement
    return placement @ Transform(jnp.eye(3, dtype=model.dtype), shaped("point", point, model.dtype, (3,)))


def _seen(X_wb: Transform, placement: Transform, frame: str) -> Transform:
    """Pose of the body that carries a frame, in the axes in which motions are given."""
    if frame == "body":
        return placement.inverse()
    if frame == "world":
        return X_wb
    return Transform(X_wb.rotation, -X_wb.rotation @ placement.translation)


def _about(X_w: Transform, X_wf: Transform, frame: str) -> Transform:
    """Poses of all bodies in world axes about the place where linear parts are taken."""
    if frame == "world":
        return X_w
    return Transform(X_w.rotation, X_w.translation - X_wf.translation[None])


def _turn(X_wf: Transform, frame: str) -> Float[Array, "3 3"]:
    """Rotation from world axes to those in which motions are given."""
    return X_wf.rotation.T if frame == "body" else jnp.eye(3, dtype=X_wf.rotation.dtype)


def _one_motion(motions: Float[Array, "nb 6"], body: Any) -> Float[Array, "6"]:
    """Motion of one body; none of the world, and NaN where there is no body."""
    return row_of(jnp.concatenate([jnp.zeros_like(motions, shape=(1, 6)), motions]), body)


def _on_path(
    model: Model, body: Any, turn: Float[Array, "3 3"], columns: Float[Array, "nv_full 6"]
) -> Float[Array, "6 nv"]:
    """Columns, turned, of the joints that move a body; those of others are zero."""
    # Nothing moves the world, which comes first.
    every = np.arange(WORLD, model.nb)
    on_path = row_of(jnp.asarray(signs_on_paths(model, np.full_like(every, WORLD), every), columns.dtype), body)
    path, A = AllCoordinates(on_path[None]), jax.scipy.linalg.block_diag(turn, turn)
    return jax.vmap(model.reduce_force)(path.jacobian(columns, A[None])[0])
