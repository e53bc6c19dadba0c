"""The linear-quadratic regulator."""

import bisect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from jdyn.array import shaped
from jdyn.control.arguments import configuration, inputs
from jdyn.control.controller import Controller
from jdyn.control.riccati import riccati
from jdyn.dynamics import inverse_dynamics, linearize
from jdyn.model import Model, checked, dynamics_only
from jdyn.model.model import compiled

# Largest distance of a target from an equilibrium [rad or m]: targets are often rounded when they are written down.
_NEAR_EQUILIBRIUM = 1e-5


class LQR(Controller):
    """τ = τ* − B K x about an equilibrium; near it, K minimises the cost ∫ xᵀ Q x + uᵀ R u dt.

    The state x = [e; v] stacks the tangent vector e that leads from the target to q, and the velocity; u are the
    actuators' forces beyond those that hold the mechanism at the target.

    ```
    model = jdyn.load("acrobot")
    controller = jdyn.LQR(model, [jnp.pi, 0.0], Q=[10.0, 10.0, 1.0, 1.0], R=1.0, actuated=[1])
    ```

    Gain and feed-forward are differentiable functions of the model, the target and the costs, also in batches. Traced
    values cannot be checked: the gain is NaN where there is none. Use float64: in float32 the gain of the example keeps
    two digits.

    >>> model = jdyn.load("cartpole")
    >>> controller = jdyn.LQR(model, jnp.zeros(2), Q=1.0, R=0.1, actuated=[0])
    >>> print(controller.gain.round(1))
    [[ -3.2 -47.8  -5.8 -12.7]]

    Args:
        model: The mechanism as the controller knows it.
        target: Equilibrium to hold [rad or m], shape (nq,).
        Q: Cost of the state, positive semidefinite: a matrix of shape (2 nv, 2 nv), its diagonal, or a scalar.
        R: Cost of the actuators' forces, positive definite: a matrix of shape (nu, nu), its diagonal, or a scalar.
        actuated: The actuators: indices or a mask of velocity coordinates, or the matrix B of shape (nv, nu) from the
            actuators' forces to generalized forces; every coordinate if left out.

    Attributes:
        tau: τ*, forces of the actuators at the target [N m or N].
        inputs: B.
        gain: K, shape (nu, 2 nv).
        cost_to_go: S in the remaining cost xᵀ S x, shape (2 nv, 2 nv).

    Raises:
        ValueError: if a shape is wrong, a cost is not (semi)definite, the actuators cannot hold the target, or no
            feedback makes it asymptotically stable at a finite least cost.

    Source: Anderson, Moore, Optimal Control: Linear Quadratic Methods (1990), chapter 3.
    """

    model: Model = eqx.field(converter=dynamics_only)
    target: Float[Array, " nq"]
    tau: Float[Array, " nv"]
    inputs: Float[Array, "nv nu"]
    gain: Float[Array, "nu 2*nv"]
    cost_to_go: Float[Array, "2*nv 2*nv"]

    def __init__(
        self, model: Model, target: ArrayLike, *, Q: ArrayLike, R: ArrayLike, actuated: ArrayLike | None = None
    ):
        checked(model)
        self.model = model
        self.target = model.normalize(configuration(model, "target", target))
        self.inputs = inputs(model, actuated)
        costs = _cost(model, "Q", Q, 2 * model.nv), _cost(model, "R", R, self.inputs.shape[1])
        traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((model, self.target, self.inputs, costs)))
        if not traced:
            _check_costs(*costs)
        self.tau, unheld, acceleration, A, B = _dynamics(model, self.target, self.inputs)
        if not traced:
            _check_equilibrium(model, *map(np.asarray, (unheld, acceleration, A)))
            _check_stabilizable(model, *map(np.asarray, (A, B)))
        self.cost_to_go, self.gain = _optimal(A, B, *costs)
        if not traced:
            _check_stable(*map(np.asarray, (A, B, self.gain)))

    def __call__(self, t, q, v):
        return _forces(self, q, v)


@compiled
def _forces(controller, q, v):
    state = jnp.concatenate([controller.model.difference(controller.target, q), v])
    return controller.tau - controller.inputs @ (controller.gain @ state)


@compiled
def _dynamics(model, target, inputs):
    """τ*, the force that it cannot hold, the acceleration by that force, and A and B about the target."""
    rest = jnp.zeros(model.nv, model.dtype)
    needed = inverse_dynamics(model, target, rest, rest)
    tau = inputs @ (jnp.linalg.pinv(inputs) @ needed)
    A, B = linearize(model, target, rest, tau)
    return tau, tau - needed, B[model.nv :] @ (tau - needed), A, B @ inputs


@compiled
def _optimal(A, B, Q, R):
    S = riccati(A, B, Q, R)
    return S, jnp.linalg.solve(R, B.T @ S)


def _cost(model, name, value, size):
    """A matrix, from a matrix, a diagonal, or a number for all entries of the diagonal."""
    value = shaped(name, value, model.dtype, (), (size,), (size, size))
    return value if value.ndim == 2 else jnp.diag(jnp.broadcast_to(value, size))


def _check_costs(Q, R):
    rounding = 100 * np.finfo(Q.dtype).eps
    for name, cost in (("Q", np.asarray(Q)), ("R", np.asarray(R))):
        size = np.max(np.abs(cost))
        if not np.max(np.abs(cost - cost.T)) <= rounding * size:
            raise ValueError(f"{name}: expected a symmetric matrix of finite numbers, got {cost}")
        least = np.min(np.linalg.eigvalsh(cost))
        if least < -rounding * size or (name == "R" and least <= rounding * size):
            kind = "semidefinite" if name == "Q" else "definite"
            raise ValueError(f"{name}: expected a positive {kind} matrix, got one with the eigenvalue {least:.3g}")


def _check_equilibrium(model, unheld, acceleration, A):
    worst, nearness = np.argmax(np.abs(unheld)), max(_NEAR_EQUILIBRIUM, 1e3 * np.finfo(A.dtype).eps)
    steepest = np.max(np.abs(A[model.nv :, : model.nv])) + np.linalg.norm(model.gravity)
    if not np.max(np.abs(acceleration)) <= nearness * steepest:
        raise ValueError(
            f"target: no equilibrium of {model.name!r} under its actuators, which leave {unheld[worst]:.3g} N m or N "
            f"on joint {_joint(model, worst)!r}; choose a configuration in which the forces on undriven coordinates "
            "vanish, or name more coordinates in `actuated`"
        )


def _check_stabilizable(model, A, B):
    """Raise unless the pair is stabilizable, by the Popov-Belevitch-Hautus test."""
    both = np.concatenate([A, B], axis=1)
    rounding = 1e3 * np.finfo(A.dtype).eps * np.linalg.norm(both)
    for value in np.linalg.eigvals(A):
        value = value if value.imag else value.real
        reach = both - value * np.eye(*both.shape)
        if value.real > -rounding and np.min(np.linalg.svd(reach, compute_uv=False)) < rounding:
            raise ValueError(
                f"actuated: {model.name!r} cannot be stabilized at the target: no actuator influences the motion with "
                f"the eigenvalue {value:.3g} 1/s, which does not decay; name more coordinates in `actuated`"
            )


def _check_stable(A, B, gain):
    closed = A - B @ gain
    if np.all(np.isfinite(closed)) and np.all(np.linalg.eigvals(closed).real < 0):
        return
    raise ValueError(
        "Q: no gain of least cost makes the target stable: some motion that neither grows nor decays by itself costs "
        "nothing; give every such coordinate a cost"
    )


def _joint(model, coordinate):
    body = bisect.bisect_right(model.topology.v_offsets, model.topology.independent_v[coordinate]) - 1
    return model.joint_names[body]
