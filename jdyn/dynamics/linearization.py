"""Motion near a state, to first order."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.forward_derivatives import forward_dynamics_derivatives
from jdyn.dynamics.methods import Method
from jdyn.model import Model, checked
from jdyn.model.model import compiled


@compiled
def linearize(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
    method: Method | None = None,
) -> tuple[Float[Array, "2*nv 2*nv"], Float[Array, "2*nv nv"]]:
    """A and B in dx/dt = A x + B u: how small deviations x from a motion through `(q, v)` under `tau` evolve.

    x = [e; w] stacks the tangent vector e that leads from the motion's configuration to the deviating one,
    `model.difference`, and the deviation w of the velocity; u is that of the generalized forces. de/dt is w, and on
    ball and free joints that move w less the Lie bracket of v and e, since the frames of the two motions turn apart.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> A, B = jdyn.linearize(model, rest, rest, rest)
    >>> print(A.round(3) + 0.0)
    [[  0.      1.   ]
     [-14.715   0.   ]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m]; quaternions wxyz, unit.
        v: Velocity [rad/s or m/s].
        tau: Generalized forces of the actuators [N m or N].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].
        method: Forward-dynamics method; `jdyn.ABA()` if left out.

    Returns:
        A and B; the first nv rows of B are zero, the others M⁻¹.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Anderson, Moore, Optimal Control: Linear Quadratic Methods (1990), appendix F, on the tangent space.
    """
    q, v, tau = checked(model, q=q, v=v, tau=tau)

    def rate(e, w):
        q_near = model.integrate(q, e)
        _, de = jax.jvp(model.difference, (q, q_near), (model.rate(q, v), model.rate(q_near, v + w)))
        return de

    none = jnp.zeros_like(v)
    upper = jnp.concatenate(jax.jacfwd(rate, (0, 1))(none, none), axis=1)
    by_q, by_v, by_tau = forward_dynamics_derivatives(model, q, v, tau, f_ext=f_ext, method=method)
    A = jnp.concatenate([upper, jnp.concatenate([by_q, by_v], axis=1)])
    return A, jnp.concatenate([jnp.zeros_like(by_tau), by_tau])
