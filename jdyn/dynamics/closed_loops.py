"""Forward dynamics of mechanisms that are more than a tree: closed loops and other couplings, motors with rotors."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.dynamics.kinematics import body_velocities, joint_kinematics
from jdyn.dynamics.methods.least_constraint import (
    Constraint,
    body_forces,
    least_constraint,
    tree_constraint,
)
from jdyn.dynamics.methods.method import on_leaders
from jdyn.dynamics.passive import passive_forces
from jdyn.model import Model, checked
from jdyn.model.compiled import compiled


class Couplings(eqx.Module):
    """Couplings A ẍ + B q̈ = D of accelerations, besides those that joints impose.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> couplings = jdyn.Couplings(None, jnp.array([[1.0, 1.0]]), jnp.zeros(1))  # accelerations that add up to zero
    >>> print(jdyn.constrained_accelerations(model, q, zero, zero, couplings=couplings).a.round(3))
    [-5.291  5.291]

    Attributes:
        A: Of the bodies' true spatial accelerations ẍ [rad/s², m/s²], each in the body's frame at its origin: the
            rates of what `body_velocities` returns. None if bodies have no part in it.
        B: Of the accelerations of the model's coordinates; None if they have no part in it.
        D: What the couplings demand.
    """

    A: Float[Array, "rows nb 6"] | None
    B: Float[Array, "rows nv"] | None
    D: Float[Array, " rows"]


class Motor(eqx.Module):
    """A rotor that a body carries and a joint turns through a gear.

    The body's own inertia includes the rotor as if it were locked; the rotor is symmetric about its axis. Like
    `armature` of the size ratio² × inertia it adds to what the joint has to move; unlike armature, it also reacts on
    the body that carries it, when its speed changes and, as a gyroscope, when the body turns across the axis.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> motor = jdyn.Motor("link1", "joint2", jnp.array([0.0, 1.0, 0.0]), jnp.array(1e-4), jnp.array(100.0))
    >>> print(jdyn.constrained_accelerations(model, q, zero, jnp.array([0.0, 1.0]), motors=[motor]).a.round(3))
    [-3.972  1.439]

    Attributes:
        body: Name or index of the body that carries it.
        joint: Name or index of the joint, which has one degree of freedom.
        axis: Direction of the shaft in the body's frame; scaled to unit length.
        inertia: Moment of inertia about the shaft [kg m²].
        ratio: Speed of the rotor relative to the body that carries it [rad/s], over that of the joint.

    Source: Vereshchagin 1974, section 1.
    """

    body: str | int = eqx.field(static=True)
    joint: str | int = eqx.field(static=True)
    axis: Float[Array, "3"]
    inertia: Float[Array, ""]
    ratio: Float[Array, ""]


class ConstrainedAccelerations(NamedTuple):
    """Result of `constrained_accelerations`.

    Attributes:
        a: Accelerations of the model's coordinates [rad/s² or m/s²].
        bodies: True spatial acceleration of each body in its own frame [rad/s², m/s²].
        forces: λ of each of the `Couplings`: Aᵀλ acts on the bodies, Bᵀλ on the coordinates.
    """

    a: Float[Array, " nv"]
    bodies: Float[Array, "nb 6"]
    forces: Float[Array, " rows"]


def acceleration_couplings(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    velocity_couplings: Callable[[Scalar, Float[Array, " nq"]], tuple[Array, Array, Array]],
    t: ArrayLike = 0.0,
) -> Couplings:
    """The rate of couplings of velocities A ẋ + B v = C: the same A and B, and D = Ċ − Ȧ ẋ − Ḃ v.

    >>> def together(t, q):  # the second link keeps its direction: the rates of both angles add up to zero
    ...     return jnp.zeros((1, 2, 6)), jnp.array([[1.0, 1.0]]), jnp.zeros(1)
    >>> model = jdyn.load("double_pendulum")
    >>> couplings = jdyn.acceleration_couplings(model, jnp.zeros(2), jnp.array([1.0, -1.0]), together)
    >>> print(couplings.B, couplings.D)
    [[1. 1.]] [0.]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        velocity_couplings: `(t, q) -> (A, B, C)` of shapes (rows, nb, 6), (rows, nv) and (rows,); ẋ are the spatial
            velocities that `body_velocities` returns.
        t: Time [s].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Vereshchagin 1974, equations (1.1) and (1.3).
    """
    q, v = checked(model, q=q, v=v)
    now = jnp.asarray(t, q.dtype), q
    (A, B, _), (dA, dB, dC) = jax.jvp(velocity_couplings, now, (jnp.ones_like(now[0]), model.rate(q, v)))
    return Couplings(A, B, dC - jnp.tensordot(dA, body_velocities(model, q, v), 2) - dB @ v)


def constrained_accelerations(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    couplings: Couplings | None = None,
    motors: Sequence[Motor] = (),
    f_ext: Float[Array, "nb 6"] | None = None,
) -> ConstrainedAccelerations:
    """Accelerations of a mechanism with couplings beyond its tree of joints, and with motors whose rotors count.

    Couplings hold for the accelerations alone: start an integration from a state that satisfies them, and expect drift
    by its errors. Derivatives of any order come from the equations of the minimum.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> couplings = jdyn.Couplings(None, jnp.array([[1.0, 1.0]]), jnp.zeros(1))
    >>> found = jdyn.constrained_accelerations(model, q, zero, zero, couplings=couplings)
    >>> print(jnp.abs(found.a.sum()) < 1e-5)
    True

    Args:
        model: The mechanism.
        q: Configuration [rad or m]; quaternions wxyz.
        v: Velocity [rad/s or m/s].
        tau: Generalized forces of the actuators [N m or N].
        couplings: See `Couplings`; `acceleration_couplings` makes them. They must not depend on each other or on the
            joints: two of them close a planar loop, not six.
        motors: Rotors.
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].

    Returns:
        Accelerations of coordinates and bodies, and the couplings' forces; NaN where the couplings contradict each
        other, and possibly where one follows from others.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`, there is no such body or joint, or a motor's joint
            does not have one degree of freedom.

    Source: Vereshchagin 1974, section 1.
    """
    q, v, tau, f_ext = checked(model, q=q, v=v, tau=tau, f_ext=f_ext)
    couplings = Couplings(None, None, jnp.zeros(0, model.dtype)) if couplings is None else couplings
    return _accelerations(model, q, v, tau, f_ext, _shaped(model, couplings), _rotors(model, motors))


class _Rotors(eqx.Module):
    """All motors: bodies and joints by index, one row a motor."""

    bodies: tuple[int, ...] = eqx.field(static=True)
    joints: tuple[int, ...] = eqx.field(static=True)
    axes: Float[Array, "motors 3"]
    inertias: Float[Array, " motors"]
    ratios: Float[Array, " motors"]


def _rotors(model: Model, motors: Sequence[Motor]) -> _Rotors:
    topology = model.topology
    bodies = tuple(_index(motor.body, topology.body, model, "body") for motor in motors)
    joints = tuple(_index(motor.joint, topology.joint, model, "joint") for motor in motors)
    for joint in joints:
        if topology.kinds[joint].nv != 1:
            raise ValueError(
                f"motors: joint {topology.joint_names[joint]!r} is {topology.kinds[joint].__name__}, with "
                f"{topology.kinds[joint].nv} degrees of freedom; a motor turns a joint that has one"
            )

    def rows(values, shape):
        values = [jnp.asarray(value, model.dtype) for value in values]
        if any(value.shape != shape for value in values):
            raise ValueError(f"motors: expected axes of shape (3,), scalar inertias and ratios, got {values}")
        return jnp.reshape(jnp.asarray(values, model.dtype), (len(motors), *shape))

    axes = rows([motor.axis for motor in motors], (3,))
    unit = axes / jnp.linalg.norm(axes, axis=1, keepdims=True)
    inertias, ratios = rows([motor.inertia for motor in motors], ()), rows([motor.ratio for motor in motors], ())
    return _Rotors(bodies, joints, unit, inertias, ratios)


def _index(where: str | int, find: Callable[[str], int], model: Model, what: str) -> int:
    if isinstance(where, str):
        return find(where)
    if not 0 <= where < model.nb:
        raise ValueError(f"motors: {what} {where} does not exist; {model.name!r} has {model.nb} bodies")
    return where


def _shaped(model: Model, couplings: Couplings) -> Couplings:
    """Couplings of bodies and coordinates, as arrays."""

    def array(x, shape) -> Array:
        if x is None:
            return jnp.zeros(shape, model.dtype)
        return x if isinstance(x, jax.Array) else jnp.asarray(x, model.dtype)

    D = array(couplings.D, ())
    shapes = {"A": (*D.shape, model.nb, 6), "B": (*D.shape, model.nv)}
    A, B = (array(getattr(couplings, name), shape) for name, shape in shapes.items())
    if D.ndim != 1 or A.shape != shapes["A"] or B.shape != shapes["B"]:
        raise ValueError(
            f"couplings: expected A of shape (rows, {model.nb}, 6), B of shape (rows, {model.nv}) and D of shape "
            f"(rows,) for {model.name!r}, got {A.shape}, {B.shape} and {D.shape}"
        )
    return Couplings(A, B, D)


@compiled
def _accelerations(model, q, v, tau, f_ext, couplings: Couplings, rotors: _Rotors):
    q, v = model.expand(q), model.expand_velocity(v)
    joints = joint_kinematics(model, q)
    velocities, force, c = body_forces(model, joints, q, v, f_ext)
    force = force + _gyroscopic_forces(model, rotors, v, velocities)
    tree = tree_constraint(model, joints)
    carried, turned = _shafts(model, rotors)
    # Neither a force on a rotor nor a demand on it or on a joint that follows another one.
    none, in_step = jnp.zeros(len(rotors.bodies), c.dtype), jnp.zeros(len(model.topology.mimics), c.dtype)
    bodies, a, forces = least_constraint(
        _with_couplings(model, _with_rotors(tree, carried, turned, rotors.inertias), couplings),
        jnp.concatenate([force.ravel(), none]),
        on_leaders(model, tau) + passive_forces(model, q, v),
        jnp.concatenate([c.ravel(), in_step, none, couplings.D]),
    )
    size = 6 * model.nb
    return ConstrainedAccelerations(
        a[np.array(model.topology.independent_v)], bodies[:size].reshape(-1, 6), forces[len(tree.A) + len(none) :]
    )


def _shafts(model: Model, rotors: _Rotors) -> tuple[Float[Array, "motors 6*nb"], Float[Array, "motors nv_full"]]:
    """Speeds of rotors about their shafts, those of the bodies included, per motion of bodies and of joints."""
    rows, bodies = np.arange(len(rotors.bodies)), np.array(rotors.bodies, int)
    carried = jnp.zeros((len(rows), model.nb, 6), model.dtype).at[rows, bodies, :3].set(rotors.axes)
    offsets = np.array(model.topology.v_offsets)
    turned = jnp.zeros((len(rows), offsets[-1]), model.dtype)
    turned = turned.at[rows, offsets[np.array(rotors.joints, int)]].set(rotors.ratios)
    return carried.reshape(len(rows), 6 * model.nb), turned


def _gyroscopic_forces(
    model: Model, rotors: _Rotors, v: Float[Array, " nv_full"], velocities: Float[Array, "nb 6"]
) -> Float[Array, "nb 6"]:
    """−θ̇ d (ω × ε) on the body of each rotor that spins at θ̇: it turns the angular momentum with the body."""
    bodies, joints = np.array(rotors.bodies, int), np.array(rotors.joints, int)
    spin = rotors.inertias * rotors.ratios * v[np.array(model.topology.v_offsets)[joints]]
    moments = -spin[:, None] * jnp.cross(velocities[bodies, :3], rotors.axes)
    return jnp.zeros_like(velocities).at[bodies, :3].add(moments)


def _with_rotors(tree: Constraint, carried: Array, turned: Array, inertias: Array) -> Constraint:
    """The speed of each rotor about its shaft as an additional coordinate of the bodies.

    The rotor adds ½ d (ε·ω̇ + θ̈)²; the body's inertia already contains ½ d (ε·ω̇)² of the locked rotor.
    """
    W = tree.W - carried.T @ (inertias[:, None] * carried)
    beside = jnp.zeros((len(tree.A), len(inertias)), W.dtype)
    A = jnp.block([[tree.A, beside], [carried, -jnp.eye(len(inertias), dtype=W.dtype)]])
    return Constraint(block_diag(W, jnp.diag(inertias)), tree.R, A, jnp.concatenate([tree.B, turned]))


def _with_couplings(model: Model, constraint: Constraint, couplings: Couplings) -> Constraint:
    # `_shaped` has replaced what may be left out by arrays.
    A = couplings.A.reshape(len(couplings.D), 6 * model.nb)  # type: ignore[union-attr, arg-type]
    A = jnp.pad(A, ((0, 0), (0, constraint.A.shape[1] - A.shape[1])))
    B = jnp.zeros((len(A), constraint.B.shape[1]), A.dtype)
    B = B.at[:, np.array(model.topology.independent_v)].set(couplings.B)
    return Constraint(
        constraint.W, constraint.R, jnp.concatenate([constraint.A, A]), jnp.concatenate([constraint.B, B])
    )
