"""The transposed derivative of inverse dynamics, in closed form and O(n): for reverse mode.

Weights λ of the joint forces are a virtual velocity of the joints, and give every body one, μ: λᵀ τ = Σ μ_b · f_b, with
the force f_b = I a + v ×* I v that the body's motion needs. The derivative by a degree of freedom takes three sums over
the bodies that it carries: of f_b, of Π_b = I μ_b and of Φ_b = 2 Bᵀ μ_b.

Source: Singh, Russell, Wensing, Efficient Analytical Derivatives of Rigid-Body Dynamics using Spatial Vector Algebra,
IEEE RA-L 7 (2022): its equations for ∂τ/∂q and ∂τ/∂v, summed over rows with these weights.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.newton_euler import MovingTree, moving_tree
from jdyn.dynamics.passive import passive_forces_pullback
from jdyn.dynamics.recursion.batching import by_lanes
from jdyn.dynamics.recursion.floating_base import (
    MovingBase,
    base_acceleration,
    of_bases,
    of_roots,
    on_roots,
    with_bases,
)
from jdyn.dynamics.recursion.joint_frames import across, packed_entries, tree_coordinates
from jdyn.dynamics.recursion.order import Order, Packed, zeros
from jdyn.execution.at_once import at_once
from jdyn.model import Model, run_of, take_rows
from jdyn.model.topology import DofTree, dof_tree
from jdyn.spatial.components import (
    Inertia,
    Pose,
    Vector,
    add,
    cross,
    cross_force,
    cross_motion,
    dot,
    rotate,
    scale,
    subtract,
    symmetric_product,
)


def inverse_dynamics_pullback(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    weights: Float[Array, " nv"],
    f_ext: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """λᵀ ∂τ/∂q, along the coordinates as they are, and λᵀ ∂τ/∂v of `inverse_dynamics`, for weights λ.

    The topology must be `single_dof_joints`. Not differentiable.
    """
    q_full, expand = jax.vjp(model.expand, q)
    v_full, a_full, weights = (model.expand_velocity(x) for x in (v, a, weights))
    upwards, up = jax.vjp(lambda q: base_acceleration(model, q), q_full)
    own = tree_coordinates(model)
    like = upwards, take_rows(q_full, own), v_full
    arguments = q_full, v_full, a_full, weights, f_ext
    by_up, by_q, by_v = by_lanes(None, _prepared, _pullback, model, *arguments, like=like)
    # How a free base lies matters to gravity alone.
    by_q = up(by_up)[0].at[run_of(own)].add(by_q)
    passive_by_q, passive_by_v = passive_forces_pullback(model, q_full, v_full, weights)
    return expand(by_q - passive_by_q)[0], model.reduce_force(by_v - passive_by_v)


class _Weighted(NamedTuple):
    """A moving tree, with the weights of its degrees of freedom and of those of free bases."""

    tree: MovingTree
    weights: Packed
    base_weights: Float[Array, "6 *lanes"] | None


def _prepared(order: Order, model, q, v, a, weights, f_ext) -> _Weighted:
    tree = dof_tree(model.topology)
    own = take_rows(weights, tree.of_bases) if tree.bases else None
    return _Weighted(moving_tree(order, model, q, v, a, f_ext), packed_entries(order, model, weights), own)


def _pullback(order: Order, tree: DofTree, x: _Weighted):
    """λᵀ τ by the world's acceleration, by the coordinates of the tree, and by all velocities."""
    (bodies, base), weights, mu = x
    bodies = tuple(body.displaced() for body in bodies)
    still = zeros((bodies, weights, base), 6)
    weight = still if mu is None else at_once(add(of_roots(tree, tuple(mu)), on_roots(tree, still)))
    start = _Motion(*base.motion(tree, still), weight)
    motions = order.outward(tree, _move, start, tuple(zip(bodies, weights, strict=True)))
    nothing = _Sums(still, still, still[:3])
    total, slopes = order.gathered(tree, _collect, nothing, tuple(zip(bodies, motions, strict=True)))
    by_q, by_v = order.unpack(tree, slopes)
    if isinstance(base, MovingBase):
        start = of_bases(tree, start)
        own = _Sums.of_body(base.body.inertia, start, base.force(start.v, start.a))
        total = total.joined(of_roots(tree, own))
        own = of_bases(tree, total)
        # ψ̇ is zero of a base, since the world does not turn, and Ṡ is v × S.
        own = subtract((*own.Phi, 0, 0, 0), cross_force(start.v, own.Pi))
        by_v = with_bases(tree, jnp.stack(own), by_v)
    return jnp.stack(total.Pi), by_q, by_v


class _Motion(NamedTuple):
    """Motion of a body, in its own frame: velocity, acceleration, and the velocity by the weights."""

    v: Vector
    a: Vector
    mu: Vector


class _Sums(NamedTuple):
    """Over the bodies that a degree of freedom moves: of f, I μ, and the angular part of 2 Bᵀ μ, which is all of it."""

    f: Vector
    Pi: Vector
    Phi: Vector

    @staticmethod
    def of_body(I: Inertia, motion: _Motion, f: Vector) -> "_Sums":
        v, _, mu = motion
        return _Sums(f, I.momentum(mu), _twice_B_transposed(I, v, I.momentum(v)[3:], mu))

    def joined(self, other: "_Sums") -> "_Sums":
        return jax.tree.map(jnp.add, self, other)

    def to_parent(self, pose: Pose) -> "_Sums":
        return _Sums(pose.force_to_parent(self.f), pose.force_to_parent(self.Pi), rotate(pose.R, self.Phi))


def _twice_B_transposed(I: Inertia, v: Vector, l: Vector, mu: Vector) -> Vector:
    """The angular part of 2 Bᵀ μ, as `jdyn.dynamics.derivatives` has B; l is the linear momentum I v."""
    J, h = I.rotational, I.first_moment
    (w, u), (x, y) = (v[:3], v[3:]), (mu[:3], mu[3:])
    turned = add(symmetric_product(J, cross(x, w)), cross(w, symmetric_product(J, x)))
    turned = add(turned, cross(symmetric_product(J, w), x))
    moved = subtract(scale(dot(h, u), x), scale(dot(u, x), h))
    return add(turned, scale(2, add(moved, cross(l, y))))


def _move(parent: _Motion, x):
    body, weight = x
    pose, S = body.place.pose, body.place.S.vector
    v, a, mu = map(pose.motion_to_child, parent)
    v, a = across(S, body.rate, body.given, v, a)
    motion = _Motion(v, a, add(mu, scale(weight, S)))
    return motion, motion


def _collect(below: _Sums, x):
    moving, motion = x
    body, (v, a, mu) = moving.place, motion
    sums = below.joined(_Sums.of_body(body.inertia, motion, moving.force(v, a)))
    # Parts of v, a and μ along S, which the parent's lack, drop out.
    S = body.S.vector
    psi = cross_motion(v, S)
    psi_rate = add(cross_motion(a, S), cross_motion(v, psi))
    by_q = dot(sums.Phi, psi[:3]) + dot(sums.Pi, psi_rate) + dot(sums.f, cross_motion(mu, S))
    by_v = dot(sums.Phi, S[:3]) + 2 * dot(sums.Pi, psi)
    return sums.to_parent(body.pose), (by_q, by_v)
