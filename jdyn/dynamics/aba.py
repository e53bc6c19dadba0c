"""Forward dynamics by the articulated-body algorithm with exact projection."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import passive_forces, velocity_terms, world_acceleration
from jdyn.dynamics.kinematics import JointKinematics, joint_kinematics
from jdyn.dynamics.method import Method
from jdyn.dynamics.traverse import Packed, inward, outward, pack, schedule, unpack
from jdyn.model import Model
from jdyn.spatial import SpatialInertia


class ArticulatedBody(eqx.Module):
    """What the inertia recursion leaves at a body; k is the width of its joint, zero columns beyond that.

    Attributes:
        X: Motion transform from the parent, a 6×6 matrix.
        S: Motion subspace.
        K: D⁻¹ Uᵀ with U = I^A S, D = Sᵀ U + R: joint acceleration per unit acceleration of the handle.
        D_inverse: D⁻¹.
        Ia: I^a, the articulated inertia that the joint passes on to the parent, in the body's frame.
    """

    X: Float[Array, "6 6"]
    S: Float[Array, "6 k"]
    K: Float[Array, "k 6"]
    D_inverse: Float[Array, "k k"]
    Ia: Float[Array, "6 6"]


class Factors(eqx.Module):
    """Factors of the mass matrix, and what keeps following joints in step with their leaders.

    Attributes:
        q: Full configuration.
        joints: Joint poses and subspaces.
        bodies: `ArticulatedBody`, packed for traversal.
        response: Full accelerations per unit force along each coupling (couplings, nv_full); None without any.
        coupling: Cholesky factor of the couplings' inverse inertia.
    """

    q: Float[Array, " nq_full"]
    joints: JointKinematics
    bodies: Packed
    response: Float[Array, "nm nv_full"] | None
    coupling: tuple | None


class ABA(Method):
    """Eliminate joints from the leaves inward: O(n), and the method to trust in float32.

    I^a = I^A − U D⁻¹ Uᵀ must be symmetric and must leave nothing along the joint's own axis. Rounding spoils both by
    ε |I^A|, and the textbook form carries that to the root, where it has grown by orders of magnitude after a
    hundred joints; here both properties are restored at each joint.

    Joints that follow others are handled exactly: the tree is solved without the couplings, then the coupling
    forces from a system of their number.

    Source: Featherstone 2008, section 7.3; Bierman 1977 for the stabilised update of a projected inertia.
    """

    def factor(self, model: Model, q: Float[Array, " nq"]) -> Factors:
        q = model.expand(q)
        joints = joint_kinematics(model, q)
        factors = Factors(q, joints, _articulate(model, joints), None, None)
        if not model.topology.mimics:
            return factors
        N = _couplings(model)
        response = jax.vmap(lambda n: _solve_tree(model, factors, n))(N)
        return Factors(q, joints, factors.bodies, response, cho_factor(N @ response.T, lower=True)[:1])

    def solve(self, model: Model, factors: Factors, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return _coupled(model, factors, _solve_tree(model, factors, _on_leaders(model, tau)))

    def accelerations(self, model, factors, q, v, tau, f_ext):
        v = model.expand_velocity(v)
        _, c, p = velocity_terms(model, factors.joints, factors.q, v, f_ext)
        tau = _on_leaders(model, tau) + passive_forces(model, factors.q, v)
        world = world_acceleration(model, p.dtype)
        return _coupled(model, factors, _sweep(model, factors, tau, c, p, world))


def _articulate(model: Model, joints: JointKinematics) -> Packed:
    """The inertia recursion, inward."""
    X = jax.vmap(lambda X: X.motion_matrix())(joints.X)
    I = jax.vmap(SpatialInertia.matrix)(model.inertias)
    R = _padded(model, model.by_group("v", model.armature), fill=1)
    S = _padded(model, [jnp.swapaxes(S, 1, 2) for S in joints.S])
    packed = [
        (X, jnp.swapaxes(S[..., : run.nv, :], -1, -2), I, R[..., : run.nv])
        for run, (X, S, I, R) in zip(schedule(model.topology), pack(model.topology, (X, S, I, R)), strict=True)
    ]
    return inward(model.topology, _articulate_body, jnp.zeros_like(I[0]), tuple(packed))


def _articulate_body(below, x):
    X, S, I, R = x
    IA = I + below
    U = IA @ S
    D = S.T @ U + jnp.diag(R)
    D_inverse = _inverse(D)
    K = D_inverse @ U.T
    Ia = _with_product(IA - U @ K, S, R[:, None] * K)
    passed_on = X.T @ Ia @ X
    return 0.5 * (passed_on + passed_on.T), ArticulatedBody(X, S, K, D_inverse, Ia)


def _with_product(Ia, S, SIa):
    """`Ia` with Sᵀ Ia as it must be, R K, which is zero without rotors, and not as rounding left it."""
    squared = S.T @ S
    padding = jnp.where(jnp.diag(squared) == 0, 1, 0).astype(S.dtype)
    N = _inverse(squared + jnp.diag(padding)) @ S.T
    r = S.T @ Ia - SIa
    return Ia - N.T @ r - r.T @ N + N.T @ (r @ S) @ N


def _inverse(D):
    """Inverse of a small positive definite matrix."""
    if D.shape == (1, 1):
        return 1 / D
    return cho_solve((jnp.linalg.cholesky(D), True), jnp.eye(len(D), dtype=D.dtype))


def _sweep(model, factors, tau, c, p, world):
    """Full accelerations from joint forces `tau`, bias accelerations `c` and bias forces `p` of the bodies."""
    tau = _padded(model, model.by_group("v", tau))
    packed = tuple(
        (body, tau[..., : run.nv], c, p)
        for run, body, (tau, c, p) in zip(
            schedule(model.topology), factors.bodies, pack(model.topology, (tau, c, p)), strict=True
        )
    )
    u = inward(model.topology, _bias_force, jnp.zeros_like(world), packed)
    packed = tuple((body, u, c) for u, (body, _, c, _) in zip(u, packed, strict=True))
    return _unpack_joints(model, outward(model.topology, _acceleration, world, packed))


def _bias_force(below, x):
    body, tau, c, p = x
    pA = p + below
    u = tau - body.S.T @ pA
    pa = pA + body.Ia @ c + body.K.T @ u
    return body.X.T @ pa, u


def _acceleration(parent, x):
    body, u, c = x
    handle = body.X @ parent + c
    a = body.D_inverse @ u - body.K @ handle
    return handle + body.S @ a, a


def _solve_tree(model, factors, tau):
    """M⁻¹ τ in full coordinates, couplings ignored."""
    zero = jnp.zeros((model.nb, 6), tau.dtype)
    return _sweep(model, factors, tau, zero, zero, zero[0])


def _padded(model: Model, by_group: list, fill: float = 0) -> Array:
    """Rows of all joints in one array, as wide as the widest joint."""
    width = max(kind.nv for kind in model.topology.kinds)

    def pad(x):
        return jnp.pad(x, [(0, 0), (0, width - x.shape[1])] + [(0, 0)] * (x.ndim - 2), constant_values=fill)

    return model.merge_groups("bodies", [pad(x) for x in by_group])


def _unpack_joints(model: Model, packed: Packed) -> Float[Array, " nv_full"]:
    """Full coordinates from packed joint coordinates."""
    width = max(kind.nv for kind in model.topology.kinds)

    def pad(x):
        return jnp.pad(x, [(0, 0), (0, 0), (0, width - x.shape[-1])])

    rows = model.by_group("bodies", unpack(model.topology, tuple(pad(x) for x in packed)))
    groups = zip(rows, model.topology.groups, strict=True)
    return model.merge_groups("v", [row[:, : group.kind.nv] for row, group in groups])


# Couplings: v_follower = ratio v_leader, written Nᵀ v_full = 0.


def _couplings(model: Model) -> Float[Array, "nm nv_full"]:
    """Nᵀ."""
    offsets = model.topology.v_offsets
    rows = np.arange(len(model.topology.mimics))
    follower, leader = (np.array([offsets[pair[i]] for pair in model.topology.mimics]) for i in (0, 1))
    N = jnp.zeros((len(rows), offsets[-1]), model.dtype)
    return N.at[rows, follower].set(1).at[rows, leader].add(-model.mimic_ratio)


def _coupled(model: Model, factors: Factors, a: Float[Array, " nv_full"]) -> Float[Array, " nv"]:
    """Accelerations of the model's coordinates once coupling forces act."""
    if factors.coupling is None or factors.response is None:
        return a
    force = cho_solve((factors.coupling[0], True), _couplings(model) @ a)
    return (a - factors.response.T @ force)[np.array(model.topology.independent_v)]


def _on_leaders(model: Model, tau: Float[Array, " nv"]) -> Float[Array, " nv_full"]:
    """Full generalized forces that act on the model's coordinates as `tau` does."""
    if not model.topology.mimics:
        return tau
    return jnp.zeros(model.topology.v_offsets[-1], tau.dtype).at[np.array(model.topology.independent_v)].set(tau)
