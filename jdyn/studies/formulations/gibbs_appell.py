"""Forward dynamics from the acceleration energy."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import CHOLESKY
from jdyn.dynamics.building_blocks import (
    Method,
    accumulate_motion,
    joint_kinematics,
    joint_motion,
    passive_forces,
    velocity_terms,
    world_acceleration,
)
from jdyn.model import Model
from jdyn.spatial import SpatialInertia


class GibbsAppell(Method):
    """Identify the equations of motion α a + β = Q from values of the acceleration energy G alone: O(n³).

    G = ½ aᵀα a + βᵀa + γ. Values at rest without gravity, for unit accelerations and pairs of them, give α; values at
    the actual state, without accelerations and for unit accelerations, give β: 1 + n + n (n + 1) / 2 evaluations. It
    is for few degrees of freedom and takes almost no code, but differences of energies cost digits.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.GibbsAppell()).round(2))
    [-6.05  8.06]

    Source: Vereshchagin 1974, section 2.
    """

    def factor(self, model, q):
        i, j = np.triu_indices(model.nv, 1)
        unit, rest = jnp.eye(model.nv, dtype=q.dtype), jnp.zeros(model.nv, q.dtype)
        model = model.with_gravity(jnp.zeros(3, q.dtype))

        def energies(a):
            return jax.vmap(lambda a: _acceleration_energy(model, q, rest, a, None))(a)

        single = energies(unit)
        pairs = energies(unit[i] + unit[j]) - single[i] - single[j]
        alpha = jnp.diag(2 * single).at[i, j].set(pairs).at[j, i].set(pairs)
        return CHOLESKY.factor(alpha), single

    def solve(self, model, factors, tau):
        return CHOLESKY.solve(factors[0], tau)

    def accelerations(self, model, factors, q, v, tau, f_ext):
        _, single = factors

        def energy(a):
            return _acceleration_energy(model, q, v, a, f_ext)

        unit = jnp.eye(model.nv, dtype=q.dtype)
        beta = jax.vmap(energy)(unit) - energy(jnp.zeros(model.nv, q.dtype)) - single
        passive = passive_forces(model, model.expand(q), model.expand_velocity(v))
        return self.solve(model, factors, tau + model.reduce_force(passive) - beta)


def _acceleration_energy(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    f_ext: Float[Array, "nb 6"] | None,
) -> Float[Array, ""]:
    """Σ ½ aᵦᵀ I aᵦ + aᵦᵀ p of all bodies and ½ R a² of all rotors; gravity accelerates the world."""
    q, v, a = model.expand(q), model.expand_velocity(v), model.expand_velocity(a)
    joints = joint_kinematics(model, q)
    _, c, p = velocity_terms(model, joints, q, v, f_ext)
    bodies = accumulate_motion(model, joints.X, joint_motion(model, joints, a) + c, world_acceleration(model, p.dtype))
    forces = 0.5 * jax.vmap(SpatialInertia.momentum)(model.inertias, bodies) + p
    return jnp.sum(bodies * forces) + 0.5 * jnp.sum(model.armature * a**2)
