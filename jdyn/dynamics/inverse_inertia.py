"""The inverse of the mass matrix, and what it makes of forces and impulses on frames.

The articulated-body recursion eliminates all joints once, and answers each force in O(n). Derivatives of any order come
from the equation M x = f.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from jdyn.array import cholesky, moving_and_fixed, shaped, triangular_inverse
from jdyn.dynamics.at_rest import mass_product
from jdyn.dynamics.frame_motion import Axes, check_axes, jacobian_of_carrier
from jdyn.dynamics.kinematics import carrier, traced
from jdyn.dynamics.methods import ABA
from jdyn.execution.compiled import precise
from jdyn.model import Model, checked
from jdyn.model.model import compiled


@compiled
def mass_matrix_inverse(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """M⁻¹, symmetric, in O(n²) without the mass matrix M, and as accurate in float32 as `jdyn.ABA`.

    To solve for a few forces, `jdyn.forward_dynamics` is cheaper.

    >>> print(jdyn.mass_matrix_inverse(jdyn.load("double_pendulum"), jnp.zeros(2)).round(3))
    [[ 1.714 -4.286]
     [-4.286 13.714]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].

    Returns:
        M⁻¹ [1/(kg m²), 1/(kg m) or 1/kg]; not finite where M is singular.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: columns by Featherstone 2008, section 7.3; compare Carpentier, Analytical inverse of the joint space inertia
    matrix, HAL 01790934 (2018).
    """
    (q,) = checked(model, q=q)
    inverse = _responses(model, q, jnp.eye(model.nv, dtype=q.dtype))
    return 0.5 * (inverse + inverse.T)


def operational_space_inertia(
    model: Model,
    q: Float[Array, " nq"],
    body_or_frame: str | int | Integer[Array, ""],
    *,
    point: Float[Array, "3"] | None = None,
    frame: Axes = "body",
) -> Float[Array, "6 6"]:
    """Inertia Λ = (J M⁻¹ Jᵀ)⁻¹ that a body or a named frame shows to a force [n; f] on it, with J of `jacobian`.

    Where the frame cannot move in all six directions there is none: the result is NaN, or large by rounding. For some
    directions alone, such as the linear ones, invert these rows and columns of `delassus_matrix`.

    >>> box = jdyn.ROBOTS["chain"](1, floating_base=True)  # one body that is free to move
    >>> print(jdyn.operational_space_inertia(box, box.neutral(), 0)[3:, 3:].round(3) + 0.0)
    [[1. 0. 0.]
     [0. 1. 0.]
     [0. 0. 1.]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        body_or_frame: Body index, which may be traced, body name or frame name. One program serves all of them.
        point: Where the force acts, in the frame's coordinates [m]; its origin if left out.
        frame: In which axes, as for `jacobian`.

    Returns:
        Λ [kg m², kg m or kg], symmetric.

    Raises:
        ValueError: at trace time, as `jacobian`. A traced index of no body gives NaN.

    Source: Khatib, A unified approach for motion and force control of robot manipulators, IEEE Journal of Robotics and
    Automation 1987.
    """
    check_axes(point, frame)
    checked(model)
    return _operational_space_inertia(model, q, *traced(*carrier(model, body_or_frame)), point, frame)


def delassus_matrix(
    model: Model, q: Float[Array, " nq"], bodies_or_frames: Sequence[str | int], *, frame: Axes = "body"
) -> Float[Array, "rows rows"]:
    """J M⁻¹ Jᵀ of several bodies or named frames, whose Jacobians stand above each other in J.

    It is what impulses on the frames do to their velocities, positive semidefinite, and singular where the frames
    depend on each other or cannot move.

    >>> model, q = jdyn.load("quadruped"), jdyn.load("quadruped").neutral()
    >>> A = jdyn.delassus_matrix(model, q, model.body_names[-2:], frame="aligned")
    >>> print(A.shape, bool(jnp.allclose(A, A.T)))
    (12, 12) True

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        bodies_or_frames: Body indices, body names or frame names. One program serves all that are as many.
        frame: In which axes, as for `jacobian`.

    Returns:
        Six rows and columns a frame, angular ones first [1/(kg m²), 1/(kg m) or 1/kg], symmetric.

    Raises:
        ValueError: at trace time, if there is no such body or frame, or a size disagrees with `model`.

    Source: Featherstone 2008, section 8.3.
    """
    check_axes(None, frame)
    checked(model)
    carriers = np.array([carrier(model, each) for each in bodies_or_frames], int).reshape(-1, 2)
    return _delassus_matrix(model, q, carriers[:, 0], carriers[:, 1], frame)


def impulse_response(
    model: Model,
    q: Float[Array, " nq"],
    body_or_frame: str | int | Integer[Array, ""],
    impulse: Float[Array, "6"],
    *,
    point: Float[Array, "3"] | None = None,
    frame: Axes = "body",
) -> Float[Array, " nv"]:
    """Change M⁻¹ Jᵀ λ of the velocity by an impulse λ on a body or a named frame, in O(n).

    >>> model, blow = jdyn.load("pendulum"), jnp.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    >>> print(jdyn.impulse_response(model, jnp.zeros(1), "tip", blow, frame="aligned").round(3))
    [3.]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        body_or_frame: Body index, which may be traced, body name or frame name. One program serves all of them.
        impulse: [angular; linear] [N m s, N s].
        point: Where it acts, in the frame's coordinates [m]; its origin if left out.
        frame: In which axes it is given, as for `jacobian`.

    Returns:
        Change of `v` [rad/s or m/s].

    Raises:
        ValueError: at trace time, as `jacobian`, and if `impulse` has not six entries. A traced index of no body gives
            NaN.

    Source: Featherstone 2008, section 11.7.
    """
    check_axes(point, frame)
    checked(model)
    return _impulse_response(model, q, *traced(*carrier(model, body_or_frame)), impulse, point, frame)


@compiled
def _operational_space_inertia(model, q, body, number, point, frame):
    J = jacobian_of_carrier(model, q, body, number, point, frame)
    root = triangular_inverse(cholesky(_delassus(model, q, J)))
    return root.T @ root


@compiled
def _delassus_matrix(model, q, bodies, numbers, frame):
    J = jax.vmap(lambda body, number: jacobian_of_carrier(model, q, body, number, None, frame))(bodies, numbers)
    return _delassus(model, q, J.reshape(6 * len(bodies), model.nv))


@compiled
def _impulse_response(model, q, body, number, impulse, point, frame):
    impulse = shaped("impulse", impulse, model.dtype, (6,))
    J = jacobian_of_carrier(model, q, body, number, point, frame)
    return _responses(model, q, (impulse @ J)[None])[0]


def _delassus(model: Model, q: Array, J: Float[Array, "rows nv"]) -> Float[Array, "rows rows"]:
    A = J @ _responses(model, q, J).T
    return 0.5 * (A + A.T)


def _responses(model: Model, q: Float[Array, " nq"], forces: Float[Array, "rows nv"]) -> Float[Array, "rows nv"]:
    """M⁻¹ f of each row f."""
    return _solved(model, q, forces)[0] if forces.size else forces


@eqx.filter_custom_jvp
def _solved(model: Model, q: Array, forces: Array) -> tuple[Array, Any]:
    """`_responses`, and factors, of which no derivative may be taken."""
    factors = ABA().factor(model, q)
    return _by_factors(model, factors, forces), factors


@_solved.def_jvp
@precise
def _solved_jvp(primals, tangents):
    x, factors = _solved(*primals)
    moving, fixed = moving_and_fixed(primals, tangents)

    def residual(moving):
        model, q, forces = eqx.combine(moving, fixed)
        return forces - _products(model, q, x)

    change = jax.jvp(residual, (moving,), (tangents,))[1]
    model, q, _ = primals
    dx = jax.lax.custom_linear_solve(
        lambda x: _products(model, q, x), change, lambda _, f: _by_factors(model, factors, f), symmetric=True
    )
    return (x, factors), (dx, jax.tree.map(lambda _: None, factors))


def _products(model, q, x):
    """M x of each row x."""
    return jax.vmap(lambda x: mass_product(model, q, x))(x)


def _by_factors(model, factors, forces):
    return jax.vmap(lambda force: ABA().solve(model, factors, force))(forces)
