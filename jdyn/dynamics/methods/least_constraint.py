"""Forward dynamics by Gauss' principle of least constraint, in the accelerations of bodies and joints at once."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import velocity_terms
from jdyn.dynamics.kinematics import (
    JointKinematics,
    accumulate_motion,
    joint_kinematics,
    per_dof,
    world_acceleration,
)
from jdyn.dynamics.kkt import ScaledInverse, system
from jdyn.dynamics.methods.method import Method, coupling_rows, on_leaders
from jdyn.dynamics.passive import passive_forces
from jdyn.model import WORLD, Model
from jdyn.model.compiled import compiled
from jdyn.spatial import SpatialInertia


class Constraint(eqx.Module):
    """The quadratic part of Gauss' principle: minimise ½ ẍᵀW ẍ + ½ q̈ᵀR q̈ subject to A ẍ + B q̈ = D.

    Attributes:
        W: Inertias of the bodies.
        R: Inertias of the joints themselves: rotors.
        A, B: Couplings.
    """

    W: Float[Array, "n n"]
    R: Float[Array, "m m"]
    A: Float[Array, "rows n"]
    B: Float[Array, "rows m"]

    @property
    def H(self) -> Float[Array, "n+m n+m"]:
        return block_diag(self.W, self.R)

    @property
    def C(self) -> Float[Array, "rows n+m"]:
        return jnp.concatenate([self.A, self.B], axis=1)


class Accelerations(NamedTuple):
    """Accelerations of least constraint.

    Attributes:
        bodies: ẍ.
        joints: q̈.
        forces: λ, the force of each coupling: Aᵀλ acts on the bodies and Bᵀλ on the joints.
    """

    bodies: Float[Array, " n"]
    joints: Float[Array, " m"]
    forces: Float[Array, " rows"]


class LeastConstraint(Method):
    """Minimise the constraint of all bodies at once, ½ (ẍ − z̈)ᵀW(ẍ − z̈) + ½ q̈ᵀR q̈ − Qᵀq̈, subject to the couplings
    A ẍ + B q̈ = D that joints impose: O(n³) on matrices twelve times as wide as the mechanism has bodies.

    For small mechanisms, and as a second opinion that does not use the tree. `constrained_accelerations` solves the
    same problem with other couplings, such as closed loops, and with motors whose shafts turn.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.LeastConstraint()).round(3))
    [-6.047  8.063]

    Source: Vereshchagin 1974, section 1, equations (1.1) to (1.3).
    """

    def factor(self, model, q):
        q = model.expand(q)
        joints = joint_kinematics(model, q)
        return q, joints, _inverse(tree_constraint(model, joints))

    def solve(self, model, factors, tau):
        *_, inverse = factors
        at_rest = jnp.zeros(6 * model.nb, tau.dtype)
        in_step = jnp.zeros(len(model.topology.mimics), tau.dtype)
        x = inverse.solve(jnp.concatenate([at_rest, on_leaders(model, tau), at_rest, in_step]))
        return x[_own_coordinates(model)]

    def accelerations(self, model, factors, q, v, tau, f_ext):
        q, joints, inverse = factors
        v = model.expand_velocity(v)
        _, force, c = body_forces(model, joints, q, v, f_ext)
        tau = on_leaders(model, tau) + passive_forces(model, q, v)
        in_step = jnp.zeros(len(model.topology.mimics), tau.dtype)
        x = inverse.solve(jnp.concatenate([force.ravel(), tau, c.ravel(), in_step]))
        return x[_own_coordinates(model)]


def tree_constraint(model: Model, joints: JointKinematics) -> Constraint:
    """The constraint of a model: ẍ are true spatial accelerations of its bodies, each in its own frame, q̈ those of all
    its joints. Couplings: ẍ_i − X ẍ_parent − S q̈_i = c_i of each body, then followers less their leaders.
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
    return Constraint(
        W.reshape(flat),
        jnp.diag(model.armature),
        jnp.concatenate([A.reshape(flat), jnp.zeros((len(N), 6 * nb), S.dtype)]),
        jnp.concatenate([B.reshape(6 * nb, len(S)), N]),
    )


def body_forces(
    model: Model,
    joints: JointKinematics,
    q: Float[Array, " nq_full"],
    v: Float[Array, " nv_full"],
    f_ext: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, "nb 6"], Float[Array, "nb 6"], Float[Array, "nb 6"]]:
    """Velocities of all bodies, W z̈ (gyroscopic force, gravity and `f_ext`), and bias accelerations c of the joints."""
    velocities, c, p = velocity_terms(model, joints, q, v, f_ext)
    up = accumulate_motion(model, joints.X, jnp.zeros_like(p), world_acceleration(model, p.dtype))
    return velocities, -p - jax.vmap(SpatialInertia.momentum)(model.inertias, up), c


def _own_coordinates(model: Model) -> np.ndarray:
    """Places of the model's own accelerations among those of bodies and joints."""
    return 6 * model.nb + np.array(model.topology.independent_v)


@compiled
def least_constraint(
    constraint: Constraint,
    force: Float[Array, " n"],
    Q: Float[Array, " m"],
    D: Float[Array, " rows"],
) -> Accelerations:
    """Minimise ½ ẍᵀW ẍ + ½ q̈ᵀR q̈ − forceᵀẍ − Qᵀq̈ among the accelerations with A ẍ + B q̈ = D.

    With force = W z̈ that is Gauss' constraint, ½ (ẍ − z̈)ᵀW(ẍ − z̈) − Qᵀq̈, but for a constant. Any coordinates and
    units will do, if W and R are inertias in them. Derivatives of any order come from the equations of the minimum.

    Args:
        constraint: W, R, A and B. Couplings must not depend on each other.
        force: Forces on the bodies, gyroscopic ones and gravity included.
        Q: Forces along the joints.
        D: What the couplings demand.

    Returns:
        The accelerations, and the forces of the couplings. Not finite if a motion that the couplings allow meets no
        inertia; NaN where the couplings contradict each other, and possibly where one follows from others.

    Raises:
        ValueError: at trace time, if sizes disagree.

    Source: Vereshchagin 1974, equations (1.2) and (1.3).
    """
    n, m = len(force), len(Q)
    expected = {"W": (n, n), "R": (m, m), "A": (len(D), n), "B": (len(D), m)}
    for name, shape in expected.items():
        if getattr(constraint, name).shape != shape:
            raise ValueError(
                f"{name}: expected shape {shape} for {n} body and {m} joint coordinates and {len(D)} couplings, "
                f"got {getattr(constraint, name).shape}"
            )
    x, _ = _least(constraint, jnp.concatenate([force, Q, D]))
    return Accelerations(x[:n], x[n : n + m], -x[n + m :])


def _inverse(constraint: Constraint) -> ScaledInverse:
    return ScaledInverse.of(constraint.H, constraint.C)


@eqx.filter_custom_jvp
def _least(constraint, rhs):
    """The minimum and the inverse that found it, which has no derivative."""
    inverse = _inverse(constraint)
    return inverse.solve(rhs), inverse


@_least.def_jvp
def _least_jvp(primals, tangents):
    constraint, rhs = primals
    x, inverse = _least(constraint, rhs)

    def matrix(constraint):
        return system(constraint.H, constraint.C)

    _, r = eqx.filter_jvp(lambda constraint, rhs: rhs - matrix(constraint) @ x, primals, tuple(tangents))
    dx = jax.lax.custom_linear_solve(lambda x: matrix(constraint) @ x, r, lambda _, b: inverse.solve(b), symmetric=True)
    return (x, inverse), (dx, jax.tree.map(lambda _: None, inverse))
