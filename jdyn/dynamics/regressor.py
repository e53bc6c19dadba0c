"""Inverse dynamics as a linear map of the inertial parameters."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.common_frame import common_frame
from jdyn.dynamics.inverse import velocity_terms
from jdyn.dynamics.kinematics import accumulate_motion, joint_motion, per_dof, world_acceleration
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.model.topology import support_mask
from jdyn.spatial import SpatialInertia


@compiled
def regressor(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "nv 10*nb"]:
    """Y in τ = Y π, with ten inertial parameters π a body.

    The parameters of a body are `[m, h (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz]` in its own frame, about its origin: the
    fields of `model.inertias` in order. Rotor inertia and passive joint forces are not among them: τ is the part
    of `inverse_dynamics` that bodies and gravity account for.

    >>> model, q, v, a = jdyn.load("pendulum"), jnp.ones(1), jnp.ones(1), jnp.ones(1)
    >>> I = model.inertias
    >>> pi = jnp.concatenate([I.mass[:, None], I.first_moment, I.rotational], axis=1).ravel()
    >>> print(jnp.allclose(jdyn.regressor(model, q, v, a) @ pi, jdyn.inverse_dynamics(model, q, v, a)))
    True

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        a: Acceleration [rad/s² or m/s²].

    Returns:
        Y, columns body by body.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Atkeson, An, Hollerbach, Estimation of inertial parameters, IJRR 1986.
    """
    q, v, a = checked(model, q=q, v=v, a=a)
    q, v, a = model.expand(q), model.expand_velocity(v), model.expand_velocity(a)
    frame = common_frame(model, q)
    velocities, bias, _ = velocity_terms(model, frame.joints, q, v, None)
    motion = joint_motion(model, frame.joints, a) + bias
    accelerations = accumulate_motion(model, frame.joints.X, motion, world_acceleration(model, motion.dtype))
    forces = jax.vmap(_body_regressor)(velocities, accelerations)
    forces = jax.vmap(lambda X, A: jax.vmap(X.force_to_parent, in_axes=1, out_axes=1)(A))(frame.X, forces)
    carries = per_dof(model, support_mask(model.topology))
    Y = jnp.einsum("dk,bkp->dbp", frame.S, forces) * jnp.asarray(carries, q.dtype)[:, :, None]
    return jax.vmap(model.reduce_force, in_axes=1, out_axes=1)(Y.reshape(len(carries), 10 * model.nb))


def _body_regressor(v: Float[Array, "6"], a: Float[Array, "6"]) -> Float[Array, "6 10"]:
    """The force on a body, I a + v ×* I v, as a linear map of its ten parameters."""

    def force(parameters):
        return SpatialInertia(parameters[0], parameters[1:4], parameters[4:]).force(v, a)

    return jax.vmap(force, out_axes=1)(jnp.eye(10, dtype=v.dtype))
