"""Inverse dynamics by the recursive Newton-Euler algorithm, and the forces it is made of."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.kinematics import (
    JointKinematics,
    accumulate_motion,
    joint_bias,
    joint_force,
    joint_kinematics,
    joint_motion,
    velocities,
    world_acceleration,
)
from jdyn.dynamics.newton_euler import moving_tree, newton_euler
from jdyn.dynamics.passive import passive_forces
from jdyn.dynamics.recursion.batching import by_lanes
from jdyn.dynamics.recursion.levels import LEVELS
from jdyn.execution.compiled import precise
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.spatial import SpatialInertia, Transform, cross_force


def accumulate_force(model: Model, X: Transform, force: Float[Array, "nb 6"]) -> Float[Array, "nb 6"]:
    """f_b = force_b + Σ_children X f_child inward: the force that each joint transmits to its body."""
    return _accumulated(model.topology, X, force, jnp.zeros_like(force))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _accumulated(topology, X, force, extra):
    """f_b = force_b + Σ_children (X f_child + extra_child). The derivative is the same recursion with other sources,
    df_b = dforce_b + Σ_children (X df_child + (dX f_child + dextra_child))."""

    def step(below, x):
        X, force, extra = x
        f = force + below
        return X.force_to_parent(f) + extra, f

    zero = jnp.zeros(6, force.dtype)
    return LEVELS.unpack(topology, LEVELS.inward(topology, step, zero, LEVELS.pack(topology, (X, force, extra))))


@_accumulated.defjvp
@precise
def _accumulated_jvp(topology, primals, tangents):
    (X, _, _), (dX, dforce, dextra) = primals, tangents
    f = _accumulated(topology, *primals)
    _, moved = jax.jvp(lambda X: jax.vmap(Transform.force_to_parent)(X, f), (X,), (dX,))
    return f, _accumulated(topology, X, dforce, dextra + moved)


def rigid_body_forces(
    model: Model, joints: JointKinematics, motion: Float[Array, "nb 6"], world: Float[Array, "6"]
) -> Float[Array, " nv_full"]:
    """Generalized forces for accelerations built from `motion` (S a + c of every joint), at zero velocity."""
    accelerations = accumulate_motion(model, joints.X, motion, world)
    force = jax.vmap(SpatialInertia.momentum)(model.inertias, accelerations)
    return joint_force(model, joints, accumulate_force(model, joints.X, force))


@compiled
def inverse_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
) -> Float[Array, " nv"]:
    """Generalized forces that produce `a` at `(q, v)`.

    Gravity, rotor inertia, joint damping, friction and springs are all accounted for: the result is what the
    actuators must supply.

    >>> model = jdyn.load("pendulum")
    >>> print(jdyn.inverse_dynamics(model, jnp.array([jnp.pi / 2]), jnp.zeros(1), jnp.ones(1)).round(3))
    [5.238]

    Args:
        model: The mechanism.
        q: Configuration [rad or m]; quaternions wxyz.
        v: Velocity [rad/s or m/s].
        a: Acceleration [rad/s² or m/s²].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].

    Returns:
        Generalized forces [N m or N].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Featherstone 2008, table 5.1.
    """
    q, v, a, f_ext = checked(model, q=q, v=v, a=a, f_ext=f_ext)
    q_full, v_full, a_full = model.expand(q), model.expand_velocity(v), model.expand_velocity(a)
    # The scalar path splits joints of several degrees of freedom into chains, which is slower here.
    forces = _by_numbers if model.topology.single_dof_joints else _by_matrices
    tau = forces(model, q_full, v_full, a_full, f_ext)
    return model.reduce_force(tau + model.armature * a_full - passive_forces(model, q_full, v_full))


@eqx.filter_custom_jvp
def _by_numbers(model, q, v, a, f_ext):
    """Forces in full coordinates, without rotors."""
    return by_lanes(_by_matrices, moving_tree, newton_euler, model, q, v, a, f_ext, like=v)


@_by_numbers.def_jvp
@precise
def _by_numbers_jvp(primals, tangents):
    return _by_numbers(*primals), eqx.filter_jvp(_by_matrices, primals, tangents)[1]


def _by_matrices(model, q, v, a, f_ext):
    return joint_force(model, *_joint_forces(model, q, v, a, f_ext))


@compiled
def joint_forces(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
) -> Float[Array, "nb 6"]:
    """Force [n; f] that each joint transmits to its body while the mechanism accelerates by `a` at `(q, v)`.

    It contains driving and constraint forces, as a sensor in the joint would measure them, but not the inertia of
    rotors. With `a` from forward dynamics, Sᵀ f is the generalized force on the joint less R a, where passive forces
    and couplings of following joints are included.

    >>> model, q, zero = jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1)
    >>> print(jdyn.joint_forces(model, q, zero, zero)[0].round(2) + 0.0)  # the pivot carries 1 kg
    [0.   0.   0.   0.   0.   9.81]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        a: Acceleration [rad/s² or m/s²].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].

    Returns:
        Forces [N m, N], about each body's origin and in its frame.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Featherstone 2008, equation 5.20; f_k in equation (2) of Pai, Ascher, Kry 2000.
    """
    q, v, a, f_ext = checked(model, q=q, v=v, a=a, f_ext=f_ext)
    return _joint_forces(model, model.expand(q), model.expand_velocity(v), model.expand_velocity(a), f_ext)[1]


def _joint_forces(model, q, v, a, f_ext):
    """In full coordinates: joint poses and subspaces, and the force that each joint transmits."""
    joints = joint_kinematics(model, q)
    _, bias, force = velocity_terms(model, joints, q, v, f_ext)
    motion = joint_motion(model, joints, a) + bias
    accelerations = accumulate_motion(model, joints.X, motion, world_acceleration(model, motion.dtype))
    force = force + jax.vmap(SpatialInertia.momentum)(model.inertias, accelerations)
    return joints, accumulate_force(model, joints.X, force)


def velocity_terms(
    model: Model,
    joints: JointKinematics,
    q: Float[Array, " nq_full"],
    v: Float[Array, " nv_full"],
    f_ext: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, "nb 6"], Float[Array, "nb 6"], Float[Array, "nb 6"]]:
    """Velocities of all bodies, and their `velocity_products`."""
    moved = velocities(model, joints, v)
    return moved, *velocity_products(model, q, v, moved, f_ext)


def velocity_products(
    model: Model,
    q: Float[Array, " nq_full"],
    v: Float[Array, " nv_full"],
    moved: Float[Array, "nb 6"],
    f_ext: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, "nb 6"], Float[Array, "nb 6"]]:
    """Bias accelerations c of the joints, and p = v ×* I v − f_ext of the bodies."""
    momenta = jax.vmap(SpatialInertia.momentum)(model.inertias, moved)
    p = jax.vmap(cross_force)(moved, momenta)
    return joint_bias(model, q, v, moved), p if f_ext is None else p - f_ext


@compiled
def bias_forces(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], *, f_ext: Float[Array, "nb 6"] | None = None
) -> Float[Array, " nv"]:
    """h in M a + h = τ: Coriolis, centrifugal and gravity forces less passive joint forces and `f_ext`.

    Arguments, units and errors are those of `inverse_dynamics` with `a = 0`.

    >>> print(jdyn.bias_forces(jdyn.load("double_pendulum"), jnp.zeros(2), jnp.array([1.0, 0.0])).round(3) + 0.0)
    [0. 0.]
    """
    return inverse_dynamics(model, q, v, jnp.zeros_like(checked(model, v=v)[0]), f_ext=f_ext)
