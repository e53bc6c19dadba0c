"""Full derivatives of forward dynamics."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jdyn.array.blocks import on_blocks
from jdyn.dynamics.derivatives import inverse_dynamics_derivatives
from jdyn.dynamics.forward import accelerations, resolved
from jdyn.dynamics.methods import Method
from jdyn.dynamics.recursion.batching import in_chunks
from jdyn.execution.compiled import precise
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.model.topology import coordinate_blocks

# The matrices of so many lanes fit a processor's cache.
_CHUNK = 128


@compiled
def forward_dynamics_derivatives(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
    method: Method | None = None,
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """∂a/∂q, ∂a/∂v and ∂a/∂τ of forward dynamics.

    >>> model, q, v = jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1)
    >>> by_q, by_v, by_tau = jdyn.forward_dynamics_derivatives(model, q, v, jnp.zeros(1))
    >>> print(by_q.round(3), by_tau.round(3))
    [[-14.715]] [[3.]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m]; quaternions wxyz.
        v: Velocity [rad/s or m/s].
        tau: Generalized forces of the actuators [N m or N].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].
        method: Forward-dynamics method; `jdyn.ABA()` if left out.

    Returns:
        The derivatives; those with respect to q along the tangent space, as `model.integrate` walks it. The last is
        M⁻¹.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    q, v, tau, f_ext = checked(model, q=q, v=v, tau=tau, f_ext=f_ext)
    return _by_chunks(resolved(method, model), model, q, v, tau, f_ext)


def _of_forward_dynamics(method, model, q, v, tau, f_ext):
    a = accelerations(method, model, q, v, tau, f_ext)
    by_q, by_v, M = inverse_dynamics_derivatives(model, q, v, a, f_ext=f_ext)
    return on_blocks(_solved, coordinate_blocks(model.topology), M, by_q, by_v)


def _solved(M, by_q, by_v):
    # The inverse is a result anyway, and products are cheaper than solves.
    inverse = cho_solve(cho_factor(M, lower=True), jnp.eye(len(M), dtype=M.dtype))
    return -inverse @ by_q, -inverse @ by_v, inverse


@eqx.filter_custom_jvp
def _by_chunks(method, model, q, v, tau, f_ext):
    like = (jax.ShapeDtypeStruct((model.nv, model.nv), v.dtype),) * 3
    return in_chunks(functools.partial(_of_forward_dynamics, method), _CHUNK, like)(model, q, v, tau, f_ext)


@_by_chunks.def_jvp
@precise
def _by_chunks_jvp(primals, tangents):
    return _by_chunks(*primals), eqx.filter_jvp(_of_forward_dynamics, primals, tangents)[1]
