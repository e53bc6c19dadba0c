"""Centre of mass and momentum of all bodies, their Jacobians and rates.

Momenta are about the centre of mass, in world axes, which the axes of matrices move with but do not turn. Rotors,
`model.armature`, have none.

Source: Orin, Goswami, Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 2013; Wensing and Orin, Improved
computation of the humanoid centroidal dynamics and application for whole-body control, Int. J. Humanoid Robotics 2016.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.common_frame import subtree_sum
from jdyn.dynamics.inverse import velocity_products
from jdyn.dynamics.kinematics import (
    accumulate_motion,
    dof_motion_rates,
    dof_motions,
    joint_kinematics,
    joint_motion,
    per_dof,
    poses,
    poses_and_velocities,
)
from jdyn.dynamics.mass_matrix import dof_forces
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.spatial import SpatialInertia, Transform


@compiled
def center_of_mass(model: Model, q: Float[Array, " nq"]) -> Float[Array, "3"]:
    """Centre of mass of all bodies in the world frame [m]; NaN where none has mass.

    >>> print(jdyn.center_of_mass(jdyn.load("pendulum"), jnp.array([jnp.pi / 2])).round(3) + 0.0)
    [0.5 0.  0. ]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    (q,) = checked(model, q=q)
    return _center(model, poses(model, joint_kinematics(model, model.expand(q)).X))


@compiled
def com_velocity(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "3"]:
    """Velocity of the centre of mass in world axes [m/s], in O(n); NaN where no body has mass.

    >>> print(jdyn.centroidal.com_velocity(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0])).round(3) + 0.0)
    [1. 0. 0.]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    q, v = checked(model, q=q, v=v)
    X, velocities = poses_and_velocities(model, joint_kinematics(model, model.expand(q)), model.expand_velocity(v))
    return _linear(X, jax.vmap(SpatialInertia.momentum)(model.inertias, velocities)) / _mass(model)


@compiled
def com_acceleration(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "3"]:
    """Acceleration of the centre of mass in world axes [m/s²], without gravity, in O(n); NaN where no body has mass.

    >>> model, q, v = jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0])
    >>> print(jdyn.centroidal.com_acceleration(model, q, v, jnp.zeros(1)).round(3) + 0.0)  # towards the pivot
    [0. 0. 2.]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        a: Acceleration [rad/s² or m/s²].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    q, v, a = checked(model, q=q, v=v, a=a)
    return _linear(*_forces(model, q, v, a)) / _mass(model)


@compiled
def com_jacobian(model: Model, q: Float[Array, " nq"]) -> Float[Array, "3 nv"]:
    """Jacobian of the centre of mass: its velocity in world axes is the Jacobian times `v`; NaN where no body has mass.

    >>> print(jdyn.centroidal.com_jacobian(jdyn.load("double_pendulum"), jnp.zeros(2)).round(3) + 0.0)
    [[1.   0.25]
     [0.   0.  ]
     [0.   0.  ]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].

    Returns:
        The Jacobian, columns in the order of `v`.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    (q,) = checked(model, q=q)
    joints = joint_kinematics(model, model.expand(q))
    X = poses(model, joints.X)
    X = _about(X, _center(model, X))
    carried = subtree_sum(model, jnp.concatenate([model.inertias.mass[:, None], _moments(model, X)], axis=1))
    carried = carried[per_dof(model, np.arange(model.nb))]
    mass, moment = carried[:, :1], carried[:, 1:]
    turning, moving = jnp.split(dof_motions(model, joints, X), 2, axis=1)
    return jax.vmap(model.reduce_force)((mass * moving + jnp.cross(turning, moment)).T / _mass(model))


@compiled
def momentum(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "6"]:
    """Spatial momentum [angular; linear] of all bodies about their centre of mass, in world axes [N m s, N s].

    >>> print(jdyn.momentum(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0])).round(3) + 0.0)
    [ 0.    -0.167  0.     1.     0.     0.   ]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Orin, Goswami, Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 2013.
    """
    q, v = checked(model, q=q, v=v)
    X, velocities = poses_and_velocities(model, joint_kinematics(model, model.expand(q)), model.expand_velocity(v))
    return _total(model, X, jax.vmap(SpatialInertia.momentum)(model.inertias, velocities))


@compiled
def momentum_rate(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "6"]:
    """Rate of `momentum` while the mechanism accelerates by `a`, in O(n): the sum of outer forces, gravity included.

    It is A a + dA/dt v, with the momentum matrix A; with `a` zero it is the second part alone.

    >>> model, q, v = jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0])
    >>> print(jdyn.centroidal.momentum_rate(model, q, v, jnp.ones(1)).round(3) + 0.0)
    [ 0.    -0.083  0.     0.5    0.     2.   ]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        a: Acceleration [rad/s² or m/s²].

    Returns:
        [angular; linear] about the centre of mass, in world axes [N m, N].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Orin, Goswami, Lee 2013, section 4.
    """
    q, v, a = checked(model, q=q, v=v, a=a)
    return _total(model, *_forces(model, q, v, a))


@compiled
def momentum_matrix(model: Model, q: Float[Array, " nq"]) -> Float[Array, "6 nv"]:
    """Centroidal momentum matrix A: `momentum` is A v.

    >>> A = jdyn.centroidal.momentum_matrix(jdyn.load("double_pendulum"), jnp.zeros(2))
    >>> print(A.round(3) + 0.0)
    [[ 0.     0.   ]
     [-0.667 -0.333]
     [ 0.     0.   ]
     [ 2.     0.5  ]
     [ 0.     0.   ]
     [ 0.     0.   ]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].

    Returns:
        A [N m s, N s per unit velocity], angular rows first, columns in the order of `v`.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Orin, Goswami, Lee 2013; by composite inertias, Wensing and Orin 2016.
    """
    (q,) = checked(model, q=q)
    joints = joint_kinematics(model, model.expand(q))
    X = poses(model, joints.X)
    X = _about(X, _center(model, X))
    composite = _composites(model, jax.vmap(SpatialInertia.to_parent)(model.inertias, X))
    return _reduced_columns(model, dof_forces(model, composite, dof_motions(model, joints, X)))


@compiled
def momentum_matrix_rate(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "6 nv"]:
    """Rate dA/dt of `momentum_matrix` while the mechanism moves with `v`.

    The lower rows, divided by the mass of all bodies, are the rate of `com_jacobian`. `momentum_rate` has dA/dt v alone
    in O(n).

    >>> model, q, v = jdyn.load("double_pendulum"), jnp.zeros(2), jnp.array([1.0, 0.5])
    >>> print(jdyn.centroidal.momentum_matrix_rate(model, q, v)[3:].round(3) + 0.0)
    [[0.   0.  ]
     [0.   0.  ]
     [2.25 0.75]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].

    Returns:
        dA/dt [N m, N per unit velocity], angular rows first, columns in the order of `v`.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Wensing and Orin 2016.
    """
    q, v = checked(model, q=q, v=v)
    q, v = model.expand(q), model.expand_velocity(v)
    joints = joint_kinematics(model, q)
    X, velocities = poses_and_velocities(model, joints, v)
    center_moves = _linear(X, jax.vmap(SpatialInertia.momentum)(model.inertias, velocities)) / _mass(model)
    X = _about(X, _center(model, X))
    # Seen by an observer who moves with the centre of mass and does not turn.
    moved = jax.vmap(Transform.motion_to_parent)(X, velocities).at[:, 3:].add(-center_moves[None])
    inertias = jax.vmap(SpatialInertia.to_parent)(model.inertias, X)
    composite = _composites(model, inertias)
    composite_rates = _composites(model, jax.vmap(SpatialInertia.rate)(inertias, moved))
    S, S_rates = dof_motions(model, joints, X), dof_motion_rates(model, q, v, X, moved)
    return _reduced_columns(model, dof_forces(model, composite, S_rates) + dof_forces(model, composite_rates, S))


def first_moment(model: Model, X: Transform) -> Float[Array, "3"]:
    """Σ m c in the axes in which X are the poses of bodies, about the origin there."""
    return jnp.sum(_moments(model, X), axis=0)


def _moments(model: Model, X: Transform) -> Float[Array, "nb 3"]:
    I = model.inertias
    return jax.vmap(lambda X, h, m: X.rotation @ h + m * X.translation)(X, I.first_moment, I.mass)


def _mass(model: Model) -> Float[Array, ""]:
    return jnp.sum(model.inertias.mass)


def _center(model: Model, X: Transform) -> Float[Array, "3"]:
    return first_moment(model, X) / _mass(model)


def _about(X: Transform, center: Float[Array, "3"]) -> Transform:
    return Transform(X.rotation, X.translation - center[None])


def _linear(X: Transform, forces: Float[Array, "nb 6"]) -> Float[Array, "3"]:
    """Linear part of the sum of forces or momenta of bodies, each in its own frame."""
    return jnp.einsum("bij,bj->i", X.rotation, forces[:, 3:])


def _total(model: Model, X: Transform, forces: Float[Array, "nb 6"]) -> Float[Array, "6"]:
    """Sum of forces or momenta of bodies, each in its own frame, about the centre of mass."""
    return jnp.sum(jax.vmap(Transform.force_to_parent)(_about(X, _center(model, X)), forces), axis=0)


def _forces(model, q, v, a):
    """Poses of all bodies, and the rates of their momenta, each in its own frame."""
    q, v, a = model.expand(q), model.expand_velocity(v), model.expand_velocity(a)
    joints = joint_kinematics(model, q)
    X, velocities = poses_and_velocities(model, joints, v)
    bias, forces = velocity_products(model, q, v, velocities, None)
    motion = joint_motion(model, joints, a) + bias
    accelerations = accumulate_motion(model, joints.X, motion, jnp.zeros(6, motion.dtype))
    return X, forces + jax.vmap(SpatialInertia.momentum)(model.inertias, accelerations)


def _composites(model: Model, inertias: SpatialInertia) -> SpatialInertia:
    """Sums of inertias, or of their rates, over all that each body carries."""
    return jax.tree.map(lambda x: subtree_sum(model, x), inertias)


def _reduced_columns(model: Model, rows: Float[Array, "nv_full 6"]) -> Float[Array, "6 nv"]:
    return jax.vmap(model.reduce_force)(rows.T)
