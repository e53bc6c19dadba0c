"""Forward dynamics: the front door to all methods."""

from typing import Literal

from jaxtyping import Array, Float

from jdyn.dynamics.diagnosis import resolved
from jdyn.dynamics.implicit_rule import accelerations
from jdyn.dynamics.methods import Method
from jdyn.model import Model


def forward_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
    method: Method | Literal["auto"] | None = None,
) -> Float[Array, " nv"]:
    """Accelerations that generalized forces `tau` produce at `(q, v)`.

    Forward and reverse derivatives of any order, with respect to every argument and every leaf of the model, come
    from the equation itself, M da = dτ − d(inverse dynamics) at constant a, with the factors of M reused; the
    recursions of the method are never differentiated.

    >>> model = jdyn.load("pendulum")
    >>> print(jdyn.forward_dynamics(model, jnp.array([jnp.pi / 2]), jnp.zeros(1), jnp.zeros(1)).round(3))
    [-14.715]

    Args:
        model: The mechanism.
        q: Configuration [rad or m]; quaternions wxyz.
        v: Velocity [rad/s or m/s].
        tau: Generalized forces of the actuators [N m or N].
        f_ext: Force on each body at its frame's origin, in the body frame [N m, N].
        method: How to solve; `jdyn.ABA()` if left out, and with `"auto"` what `jdyn.diagnose(model).method` is, found
            once for each model that is given. A model that is traced has no numbers to look at: diagnose it outside.

    Returns:
        Accelerations [rad/s² or m/s²]; not finite where the mass matrix is singular.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`, `method` is something else, or `"auto"` is to
            choose for a traced model.

    Source: Featherstone 2008, chapters 6 and 7; the derivative is the implicit function theorem.
    """
    return accelerations(resolved(method, model), model, q, v, tau, f_ext)
