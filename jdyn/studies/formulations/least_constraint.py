"""Forward dynamics by Gauss' principle, in the accelerations of bodies and joints at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from jdyn.dynamics.building_blocks import (
    JointKinematics,
    Method,
    accumulate_motion,
    coupling_rows,
    joint_kinematics,
    on_leaders,
    passive_forces,
    per_dof,
    velocity_terms,
    world_acceleration,
)
from jdyn.model import WORLD, Model
from jdyn.spatial import SpatialInertia

# Passes of scaling: each divides a row by the square root of its largest entry.
SCALINGS = 3


class LeastConstraint(Method):
    """Minimise ½ (ẍ − z̈)ᵀW(ẍ − z̈) + ½ q̈ᵀR q̈ − τᵀq̈ over the accelerations that joints allow, A ẍ + B q̈ = c.

    A linear system in the accelerations ẍ of all bodies, q̈ of all joints and one multiplier a coupling; z̈ are the
    accelerations of bodies without joints. It shares nothing with recursions over the tree, and costs O(n³): a result
    to compare others with.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.LeastConstraint()).round(3))
    [-6.047  8.063]

    Source: Vereshchagin 1974, section 1, equations (1.1) to (1.3).
    """

    def factor(self, model, q):
        q = model.expand(q)
        joints = joint_kinematics(model, q)
        return q, joints, ScaledInverse.of(_matrix(model, joints))

    def solve(self, model, factors, tau):
        *_, inverse = factors
        at_rest = jnp.zeros(6 * model.nb, tau.dtype)
        return _own(model, inverse.solve(_sides(model, at_rest, on_leaders(model, tau), at_rest)))

    def accelerations(self, model, factors, q, v, tau, f_ext):
        q, joints, inverse = factors
        v = model.expand_velocity(v)
        _, c, p = velocity_terms(model, joints, q, v, f_ext)
        up = accumulate_motion(model, joints.X, jnp.zeros_like(p), world_acceleration(model, p.dtype))
        driving = -p - jax.vmap(SpatialInertia.momentum)(model.inertias, up)  # W z̈
        tau = on_leaders(model, tau) + passive_forces(model, q, v)
        return _own(model, inverse.solve(_sides(model, driving.ravel(), tau, c.ravel())))


def _matrix(model: Model, joints: JointKinematics) -> Float[Array, "all all"]:
    """The equations of the minimum: H = diag(W, R) and C = [A B] in [[H, Cᵀ], [C, 0]].

    Couplings are ẍ_i − X ẍ_parent − S q̈_i = c_i of each body, then followers less their leaders.
    """
    nb, parents = model.nb, np.array(model.topology.parents)
    bodies, moving = np.arange(nb), np.flatnonzero(parents != WORLD)
    X = jax.vmap(lambda X: X.motion_matrix())(joints.X)
    S = model.merge_groups("v", [jnp.swapaxes(S, 1, 2) for S in joints.S])
    blocks = jnp.zeros((nb, 6, nb, 6), S.dtype)
    W = blocks.at[bodies, :, bodies].set(jax.vmap(SpatialInertia.matrix)(model.inertias))
    A = blocks.at[bodies, :, bodies].set(jnp.eye(6, dtype=S.dtype)[None])
    A = A.at[moving, :, parents[moving]].set(-X[moving])
    B = jnp.zeros((nb, 6, len(S)), S.dtype).at[per_dof(model, bodies), :, np.arange(len(S))].set(-S)
    N, flat = coupling_rows(model), (6 * nb, 6 * nb)
    H = block_diag(W.reshape(flat), jnp.diag(model.armature))
    of_joints = jnp.concatenate([jnp.zeros((len(N), 6 * nb), S.dtype), N], axis=1)
    C = jnp.concatenate([jnp.concatenate([A.reshape(flat), B.reshape(6 * nb, len(S))], axis=1), of_joints])
    return jnp.block([[H, C.T], [C, jnp.zeros((len(C), len(C)), H.dtype)]])


def _sides(model: Model, driving: Array, tau: Array, c: Array) -> Float[Array, " all"]:
    """Right-hand side: forces on bodies and joints, and what couplings demand; followers keep in step."""
    return jnp.concatenate([driving, tau, c, jnp.zeros(len(model.topology.mimics), tau.dtype)])


def _own(model: Model, x: Float[Array, " all"]) -> Float[Array, " nv"]:
    """Accelerations of the model's own coordinates, among those of bodies and joints."""
    return x[6 * model.nb + np.array(model.topology.independent_v)]


class ScaledInverse(eqx.Module):
    """The inverse by Gaussian elimination with partial pivoting, after rows and columns have been scaled alike.

    The matrix mixes accelerations and forces, lengths and angles: without scaling, units would choose its pivots. A
    product with the inverse, refined once, is as accurate as a solve with the factors. It needs no LAPACK, with which
    programs can stall that take derivatives in both modes (`jdyn.array.small_matrices`).

    Attributes:
        K: The scaled matrix.
        inverse: Its inverse.
        scale: Ratio of the unknowns to the scaled ones.

    Source: Ruiz 2001 for the scaling; Golub and Van Loan 2013, sections 3.4 and 3.5.3.
    """

    K: Float[Array, "all all"]
    inverse: Float[Array, "all all"]
    scale: Float[Array, " all"]

    @staticmethod
    def of(K: Float[Array, "all all"]) -> "ScaledInverse":
        scale = jnp.ones(len(K), K.dtype)
        for _ in range(SCALINGS):
            largest = jnp.max(jnp.abs(scale[:, None] * K * scale[None]), axis=1)
            scale = scale / jnp.sqrt(jnp.where(largest > 0, largest, 1))
        K = scale[:, None] * K * scale[None]
        return ScaledInverse(K, jnp.linalg.inv(K), scale)

    def solve(self, sides: Float[Array, " all"]) -> Float[Array, " all"]:
        """The unknowns."""
        sides = self.scale * sides
        x = self.inverse @ sides
        return self.scale * (x + self.inverse @ (sides - self.K @ x))
