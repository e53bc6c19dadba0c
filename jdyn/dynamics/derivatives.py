"""Full derivatives of inverse dynamics, in closed form.

Each tree is in one frame: the world's, or that of its free base. Composite quantities are sums over subtrees there, and
an entry of a derivative is a product of quantities of two degrees of freedom.

Source: Singh, Russell, Wensing, Efficient Analytical Derivatives of Rigid-Body Dynamics using Spatial Vector Algebra,
IEEE RA-L 7 (2022); B of its equation (11) acts on the angular part of a motion alone, by [A; -2 l×], with l the linear
momentum and A w = ω × J w - J (ω × w) + w × J ω - 2 h × (u × w).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import inverse_dynamics
from jdyn.dynamics.mass_matrix import reduced
from jdyn.dynamics.newton_euler import MovingTree, moving_tree
from jdyn.dynamics.passive import passive_forces_derivatives
from jdyn.dynamics.recursion.batching import by_lanes
from jdyn.dynamics.recursion.dof_pairs import matrices_of_pairs
from jdyn.dynamics.recursion.floating_base import MovingBase, of_bases, on_roots, unit_motions, with_bases
from jdyn.dynamics.recursion.joint_frames import across, less
from jdyn.dynamics.recursion.order import Order, zeros
from jdyn.execution.at_once import at_once
from jdyn.execution.compiled import precise
from jdyn.model import Free, Model, checked
from jdyn.model.model import compiled
from jdyn.model.topology import DofTree
from jdyn.spatial.components import (
    Inertia,
    Pose,
    Vector,
    add,
    cross,
    cross_columns,
    cross_force,
    cross_matrix,
    cross_motion,
    dot,
    full,
    rotate,
    rotate_back,
    scale,
    subtract,
    symmetric_product,
    transposed,
)


class _Composite(NamedTuple):
    """Sums over the bodies that a degree of freedom moves.

    Attributes:
        inertia: I.
        A: Of 2 B.
        l: Of 2 B.
        f: Force that their motion takes.
    """

    inertia: Inertia
    A: Vector
    l: Vector
    f: Vector

    def twice_B(self, m: Vector) -> Vector:
        """2 B m."""
        w = m[:3]
        return *rotate(self.A, w), *scale(-2, cross(self.l, w))

    def twice_B_transposed(self, m: Vector) -> Vector:
        """The angular part of 2 Bᵀ m; the other one is zero."""
        return add(rotate_back(self.A, m[:3]), scale(2, cross(self.l, m[3:])))


@compiled
def inverse_dynamics_derivatives(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    *,
    f_ext: Float[Array, "nb 6"] | None = None,
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """∂τ/∂q, ∂τ/∂v and ∂τ/∂a = M of inverse dynamics; arguments are those of `inverse_dynamics`.

    In closed form where joints have one degree of freedom each, but for free bases; by forward differentiation
    otherwise.

    >>> model, q, v = jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1)
    >>> by_q, by_v, by_a = jdyn.inverse_dynamics_derivatives(model, q, v, jnp.zeros(1))
    >>> print(by_q.round(3), by_a.round(3))
    [[4.905]] [[0.333]]

    Returns:
        The derivatives; those with respect to q along the tangent space, as `model.integrate` walks it.
    """
    q, v, a, f_ext = checked(model, q=q, v=v, a=a, f_ext=f_ext)
    return (_closed_form if model.topology.single_dof_joints else _differentiated)(model, q, v, a, f_ext)


def _differentiated(model, q, v, a, f_ext):
    def forces(e, v, a):
        return inverse_dynamics(model, model.integrate(q, e), v, a, f_ext=f_ext)

    return jax.jacfwd(forces, (0, 1, 2))(jnp.zeros_like(v), v, a)


@eqx.filter_custom_jvp
def _closed_form(model, q, v, a, f_ext):
    q_full, v_full, a_full = model.expand(q), model.expand_velocity(v), model.expand_velocity(a)
    like = (jax.ShapeDtypeStruct((*v_full.shape, *v_full.shape), v.dtype),) * 3
    arguments = q_full, v_full, a_full, f_ext
    by_q, by_v, M = by_lanes(None, moving_tree, rigid_body_derivatives, model, *arguments, like=like)
    passive_by_e, passive_by_v = passive_forces_derivatives(model, q_full, v_full)
    full = by_q - passive_by_e, by_v - passive_by_v, M + jnp.diag(model.armature)
    return tuple(reduced(model, x) for x in full)


@_closed_form.def_jvp
@precise
def _closed_form_jvp(primals, tangents):
    # Second derivatives differentiate the same function by JAX.
    return _closed_form(*primals), eqx.filter_jvp(_differentiated, primals, tangents)[1]


def rigid_body_derivatives(order: Order, tree: DofTree, x: MovingTree) -> tuple[Float[Array, "n n *lanes"], ...]:
    """Derivatives of the forces of all degrees of freedom by coordinates, velocities and accelerations, without rotors
    and passive forces, elementwise in lanes."""
    bodies, base = tuple(body.displaced() for body in x.bodies), x.base
    still = zeros((bodies, base), 6)
    start = _Placed(on_roots(tree, Pose.identity(still[0])), *base.motion(tree, still))
    placed, S = zip(*order.outward(tree, _move, start, bodies), strict=True)
    rows = zip(bodies, placed, strict=True)
    own = tuple(at_once(here.composite(moving.place.inertia, moving.f)) for moving, here in rows)
    total, sums = order.subtree_sums(tree, own)
    degrees = order.unpack(tree, tuple(map(_Degree.of_joint, S, placed, sums)))
    if isinstance(base, MovingBase):
        up, start, total = of_bases(tree, (add(tuple(base.upward), on_roots(tree, still)), start, total))
        total = jax.tree.map(jnp.add, total, start.composite(base.body.inertia, base.external))
        degrees = with_bases(tree, _Degree.of_base(up, start.v, total), degrees)
    return _products(order, tree, degrees)


class _Placed(NamedTuple):
    """A body in the common frame.

    Attributes:
        pose: Of its own frame.
        v: Velocity.
        a: Acceleration; the one that stands for gravity is part of it.
    """

    pose: Pose
    v: Vector
    a: Vector

    def composite(self, inertia: Inertia, f: Vector | None) -> _Composite:
        """Composite of the body alone; its inertia and the external force on it are in its own frame."""
        I, v = inertia.to_parent(self.pose), self.v
        momentum, (u, h) = I.momentum(v), (v[3:], I.first_moment)
        force = less(I.force(v, self.a), f and self.pose.force_to_parent(f))
        turned = cross_columns(v[:3], full(I.rotational))
        A = subtract(add(turned, transposed(turned)), cross_matrix(symmetric_product(I.rotational, v[:3])))
        A = subtract(A, scale(2, tuple(u[i] * h[j] - (dot(h, u) if i == j else 0) for i in range(3) for j in range(3))))
        return _Composite(I, A, momentum[3:], force)


def _move(parent: _Placed, moving):
    pose = parent.pose @ moving.place.pose
    S = moving.place.S.seen_from(pose)
    here = _Placed(pose, *across(S, moving.rate, moving.given, parent.v, parent.a))
    return here, (here, S)


class _Degree(NamedTuple):
    """A degree of freedom, in the common frame.

    Attributes:
        S: Motion subspace.
        psi: Rate of S by the parent's velocity: ψ̇ of the source.
        psi_rate: Rate of that by the parent's velocity and acceleration: ψ̈ of the source.
        turning: ψ̇ + Ṡ of the source.
        sums: Over the bodies that it moves.
    """

    S: Vector
    psi: Vector
    psi_rate: Vector
    turning: Vector
    sums: _Composite

    @staticmethod
    def of_joint(S: Vector, body: _Placed, sums: _Composite) -> "_Degree":
        """Parts of the body's velocity and acceleration along S itself drop out."""
        _, v, a = body
        psi = cross_motion(v, S)
        rates = psi, add(cross_motion(a, S), cross_motion(v, psi)), scale(2, psi)
        psi, psi_rate, turning = at_once(rates)
        return _Degree(S, psi, psi_rate, turning, sums)

    @staticmethod
    def of_base(up: Vector, v: Vector, sums: _Composite) -> "_Degree":
        """All six of a free base, a row each; the world does not turn, but accelerates upward."""
        up, v, sums = jax.tree.map(lambda x: jnp.broadcast_to(x, (Free.nv, *x.shape)), (up, v, sums))
        S = unit_motions(up[0])
        still = tuple(jnp.zeros_like(x) for x in S)
        return _Degree(S, still, cross_motion(up, S), cross_motion(v, S), sums)


def _products(order: Order, tree: DofTree, degrees):
    """∂τ_i/∂q_j, ∂τ_i/∂v_j and M_ij, lanes last."""
    S, psi, psi_rate, turning, sums = degrees
    # Vectors fixed in body i move with it: if j precedes i, only the change of its parents' motion counts.
    above = S, psi[:3], psi_rate, turning
    forces = sums.twice_B_transposed(S), sums.inertia.momentum(S)
    by_own_q = add(add(sums.twice_B(psi), sums.inertia.momentum(psi_rate)), cross_force(S, sums.f))
    by_own_v = add(sums.twice_B(S), sums.inertia.momentum(turning))
    forces, by_own_q, by_own_v = at_once((forces, by_own_q, by_own_v))

    def pair(below, above):
        (BS, IS), by_own_q, by_own_v = below
        S, psi, psi_rate, turning = above
        after = dot(BS, psi) + dot(IS, psi_rate), dot(BS, S[:3]) + dot(IS, turning), dot(IS, S)
        return after, (dot(S, by_own_q), dot(S, by_own_v), after[2])

    return matrices_of_pairs(order, tree, pair, (forces, by_own_q, by_own_v), above)
