"""The standard parameters: every number of a model in which inverse dynamics is linear, by name."""

import dataclasses
from collections.abc import Sequence
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics import passive_forces, regressor
from jdyn.model import Model, checked
from jdyn.model.model import compiled

# Of a body, in the order of the fields of its inertia.
OF_BODY = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
OF_JOINT = ("damping", "friction", "armature")

# Parts of a model, in the order of the standard parameters.
Part = Literal["inertias", "damping", "friction", "armature"]
PARTS: tuple[Part, ...] = get_args(Part)


def standard_names(model: Model) -> tuple[str, ...]:
    """Names of the standard parameters, 10 nb + 3 nv_full of them, in the order of `standard_values`.

    `body:NAME.mass` [kg]; `mx`, `my`, `mz`, the first moments, mass times centre of mass [kg m]; `Ixx`, `Ixy`, `Iyy`,
    `Ixz`, `Iyz`, `Izz`, about the origin of the body's frame [kg m²]. Then `joint:NAME.damping` [N m s/rad or N s/m] of
    all joints, `friction` [N m or N], `armature` [kg m² or kg]; joints of several coordinates have an index,
    `joint:NAME.damping[1]`.

    >>> print(jdyn.identification.standard_names(jdyn.load("pendulum"))[:2])
    ('body:link1.mass', 'body:link1.mx')
    """
    checked(model)
    bodies = [f"body:{body}.{what}" for body in model.body_names for what in OF_BODY]
    return (*bodies, *(f"joint:{joint}.{what}{index}" for what in OF_JOINT for joint, index in _coordinates(model)))


def _coordinates(model):
    """Joint and index of each full velocity coordinate."""
    topology = model.topology
    for joint, kind in zip(topology.joint_names, topology.kinds, strict=True):
        yield from ((joint, f"[{i}]" if kind.nv > 1 else "") for i in range(kind.nv))


def standard_values(model: Model) -> Float[Array, " parameters"]:
    """Values of the standard parameters π, as `standard_names` names them.

    >>> print(jdyn.identification.standard_values(jdyn.load("pendulum"))[:4].round(3) + 0.0)
    [ 1.   0.   0.  -0.5]
    """
    checked(model)
    I = model.inertias
    bodies = jnp.concatenate([I.mass[:, None], I.first_moment, I.rotational], axis=1).ravel()
    return jnp.concatenate([bodies, *(getattr(model, what) for what in OF_JOINT)])


def indices_of(model: Model, parts: Sequence[Part]) -> np.ndarray:
    """Which standard parameters belong to some parts of a model.

    Raises:
        ValueError: if there is no such part, or none is given.
    """
    if isinstance(parts, str) or not parts or not set(parts) <= set(PARTS):
        raise ValueError(f"parts: expected some of {', '.join(PARTS)}, got {parts!r}")
    part_of_each = np.repeat(PARTS, [10 * model.nb, *[len(model.damping)] * len(OF_JOINT)])
    return np.flatnonzero(np.isin(part_of_each, list(parts)))


@compiled
def standard_regressor(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "nv parameters"]:
    """Y in τ = Y π − s: inverse dynamics as a linear map of the standard parameters π, with the forces s of springs.

    Friction is smoothed, and linear in its coefficient at the model's `friction_speed`.

    >>> model, x = jdyn.load("pendulum"), jnp.array([0.3])
    >>> Y = jdyn.identification.standard_regressor(model, x, x, x)
    >>> tau = Y @ jdyn.identification.standard_values(model)
    >>> print(jnp.allclose(tau, jdyn.inverse_dynamics(model, x, x, x), atol=1e-5))
    True

    Args:
        model: The mechanism; the values of its standard parameters do not matter.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        a: Acceleration [rad/s² or m/s²].

    Returns:
        Y, with a column for each of `standard_names(model)`.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Atkeson, An, Hollerbach, Estimation of inertial parameters, IJRR 1986; Gautier, Khalil, Identification of
    the minimum inertial parameters of robots, ICRA 1989.
    """
    q, v, a = checked(model, q=q, v=v, a=a)
    forces = -_passive_slope(model, q, v, "damping"), -_passive_slope(model, q, v, "friction"), model.expand_velocity(a)
    columns = [jax.vmap(model.reduce_force, 1, 1)(jnp.diag(force)) for force in forces]
    return jnp.concatenate([regressor(model, q, v, a), *columns], axis=1)


def _passive_slope(model, q, v, what):
    """Derivative of each passive force by its own coefficient."""
    q, v = model.expand(q), model.expand_velocity(v)
    none = jnp.zeros_like(v)

    def forces(coefficients):
        return passive_forces(dataclasses.replace(model, **{what: coefficients}), q, v)

    return jax.jvp(forces, (none,), (none + 1,))[1]
