"""Forward dynamics by the articulated-body algorithm."""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jdyn.array import cholesky, triangular_inverse
from jdyn.dynamics.methods.matrix_aba import ProjectedABA
from jdyn.dynamics.methods.method import Factors, Recursion, in_step, on_leaders
from jdyn.dynamics.passive import passive_forces
from jdyn.dynamics.recursion.batching import by_lanes
from jdyn.dynamics.recursion.floating_base import Base, FreeBase, free_base, moving_base, of_bases, of_roots, with_bases
from jdyn.dynamics.recursion.joint_frames import (
    AxialSubspace,
    DegreeOfFreedom,
    MovingBody,
    axes,
    degrees_of_freedom,
    drifts,
    less,
    moving_bodies,
    packed_entries,
)
from jdyn.dynamics.recursion.levels import LEVELS
from jdyn.dynamics.recursion.order import Order, Packed, zeros
from jdyn.execution.at_once import at_once
from jdyn.model import Free, take_rows
from jdyn.model.topology import DofTree, dof_tree
from jdyn.spatial.components import (
    Number,
    Vector,
    add,
    cross_force,
    cross_motion,
    dot,
    downdated,
    lower,
    minus,
    plus,
    scale,
    subtract,
    symmetric_product,
    times,
)

# The lower triangle of what eliminates a free base, by rows.
_TRIANGLE = np.tril_indices(Free.nv)


class Eliminated(eqx.Module):
    """An eliminated degree of freedom.

    Attributes:
        K: U / D, with U = I S and D = Sᵀ U + R: acceleration per unit acceleration of the handle, negated.
        D: Pivot.
    """

    K: Vector
    D: Number

    def pass_on(self, S: AxialSubspace, tau: Number, p: Vector) -> tuple[Vector, Number]:
        """The bias force p after the joint has taken its part, and u / D."""
        u = tau - dot(S.vector, p)
        return add(p, scale(u, self.K)), u / self.D

    def accelerate(self, S: AxialSubspace, driven: Number, handle: Vector) -> tuple[Vector, Number]:
        """The body's acceleration and the joint's, from the acceleration of the joint's handle."""
        a = driven - dot(self.K, handle)
        return add(handle, scale(a, S.vector)), a


class ABA(Recursion):
    """Eliminate joints from the leaves inward: O(n), and the method to trust in float32.

    What a joint passes on, I^a = I^A − U D⁻¹ Uᵀ, must be symmetric and must leave nothing along the joint's own axis.
    Rounding spoils both by ε |I^A|, and would be carried to the root, where it has grown by orders of magnitude after
    a hundred joints; here both properties are restored at each joint (`jdyn.studies.MatrixABA` has the textbook's
    form).

    In batches it computes on single numbers with lanes last, in frames whose z axes are those of the joints: a lane
    then costs a CPU a fifth to a tenth of what matrices cost. A single configuration takes matrices. `Model.executor`
    overrides that choice.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.ABA()).round(3))
    [-6.047  8.063]

    Attributes:
        bias: `"within"`: velocities, gravity and external forces enter the recursion; `"separate"`: as forces of
            the joints, from inverse dynamics first.

    Raises:
        ValueError: if `bias` is none of these.

    Source: Featherstone 2008, section 7.3; Bierman 1977 for the stabilised update of a projected inertia;
    Cloutier 1995, section 3.3.1 for the separate bias.
    """

    def kinematics(self, model, q):
        # Each recursion places bodies in its own way.
        return q

    def eliminate(self, model, joints):
        like = _eliminated_like(model, joints)
        return by_lanes(_matrix_elimination, _still, _elimination, model, joints, like=like)

    def response(self, model, factors, tau):
        arguments = factors.q, factors.tree, tau
        return by_lanes(None, _pushed, _response, model, *arguments, like=tau)

    def moving(self, model, factors, v, tau, f_ext):
        return self._moving(model, factors.q, v, tau, f_ext)[0]

    def accelerations_and_factors(self, model, q, v, tau, f_ext):
        if self.bias == "separate":
            return super().accelerations_and_factors(model, q, v, tau, f_ext)
        q, v = model.expand(q), model.expand_velocity(v)
        a, tree = self._moving(model, q, v, on_leaders(model, tau) + passive_forces(model, q, v), f_ext)
        factors = self.coupled(model, Factors(q, q, tree, None))
        return in_step(model, factors, a), factors

    def _moving(self, model, q, v, tau, f_ext):
        """Accelerations without couplings, and the joints that the same loop eliminates."""
        like, arguments = (v, _eliminated_like(model, q)), (q, v, tau, f_ext)
        return by_lanes(_matrix_motion, _driven, _motion, model, *arguments, like=like)


def _eliminated_like(model, q):
    """Shapes of what elimination leaves: of the degrees of freedom of the tree, and of free bases."""
    tree = dof_tree(model.topology)
    number = jax.ShapeDtypeStruct((tree.nb,), q.dtype)
    root = jax.ShapeDtypeStruct((len(_TRIANGLE[0]), *tree.of_bases.shape[1:]), q.dtype) if tree.bases else None
    return Eliminated((number,) * 6, number), root


# By matrices.


def _matrix_elimination(model, q):
    method = ProjectedABA()
    return _by_degrees(model, q, method.eliminate(model, method.kinematics(model, q)))


def _matrix_motion(model, q, v, tau, f_ext):
    method = ProjectedABA()
    joints = method.kinematics(model, q)
    tree = method.eliminate(model, joints)
    return method.moving(model, Factors(q, joints, tree, None), v, tau, f_ext), _by_degrees(model, q, tree)


def _by_degrees(model, q, bodies):
    """Eliminated degrees of freedom, one by one, from joints that were eliminated as a whole."""
    K, D = zip(*(_one_after_another(body.K, body.D_inverse) for body in bodies), strict=True)
    K, D = (LEVELS.unpack_coordinates(model.topology, x) for x in (K, D))
    K = jnp.einsum("nji,nkj->nki", axes(model, q), K.reshape(-1, 2, 3)).reshape(-1, 6)
    tree, root = dof_tree(model.topology), None
    if tree.bases:
        first = list(LEVELS.schedule(model.topology)[0].bodies[0])
        at = [first.index(base) for base in model.topology.bases]
        root = bodies[0].D_inverse[0, at[0] if tree.roots == 1 else np.array(at)][..., *_TRIANGLE].T
    return Eliminated(tuple(take_rows(K, tree.degrees).T), take_rows(D, tree.degrees)), root


@functools.partial(jnp.vectorize, signature="(k,m),(k,k)->(k,m),(k)")
def _one_after_another(K, D_inverse):
    """K and D of each degree of freedom, the last one eliminated first: with D = W d Wᵀ, where W is unit upper
    triangular, they are Wᵀ K and d."""
    if len(D_inverse) == 1:
        return K, 1 / D_inverse[0]
    C = cholesky(D_inverse, semidefinite=True)
    return jnp.diag(C)[:, None] * (triangular_inverse(C) @ K), jnp.diag(C) ** -2


# Inputs of the recursions on single numbers.


class _Pushed(NamedTuple):
    """A body whose degree of freedom is eliminated, and the force along that."""

    place: DegreeOfFreedom
    joint: Eliminated
    tau: Number


class _PushedBase(NamedTuple):
    """A free base under a force: (I^A + R)⁻¹ and τ."""

    inverse: Array
    tau: Array


def _still(order: Order, model, q) -> tuple[Packed, FreeBase | None]:
    return degrees_of_freedom(model, order.schedule(dof_tree(model.topology)), q), free_base(model)


def _pushed(order: Order, model, q, eliminated, tau) -> tuple[Packed, _PushedBase | None]:
    tree, (degrees, base) = dof_tree(model.topology), _still(order, model, q)
    joints, root = eliminated
    bodies = map(_Pushed, degrees, order.pack(tree, joints), packed_entries(order, model, tau))
    return tuple(bodies), base and _PushedBase(root, take_rows(tau, tree.of_bases))


class _Driven(NamedTuple):
    """A tree on which all forces are given, packed for traversal.

    Attributes:
        bodies: A `MovingBody` of each degree of freedom.
        drifts: What other degrees of freedom of the joint add to c; None run by run if there are none.
        base: What the tree stands on.
    """

    bodies: Packed
    drifts: list[Vector | None]
    base: Base


def _driven(order: Order, model, q, v, tau, f_ext) -> _Driven:
    drift = drifts(model, order.schedule(dof_tree(model.topology)), q, v)
    return _Driven(moving_bodies(order, model, q, v, tau, f_ext), drift, moving_base(model, q, v, tau, f_ext))


# The recursions on single numbers.


def _elimination(order: Order, tree: DofTree, x):
    """Inward: articulated-body inertias, and the joints that they eliminate."""
    degrees, base = x
    places = tuple(degree.displaced() for degree in degrees)
    I, joints = order.gathered(tree, _inertia, zeros(places, 21), places)
    return order.unpack(tree, joints), base and jnp.stack(base.eliminated(base.inertia.added_to(of_bases(tree, I))))


def _response(order: Order, tree: DofTree, x):
    """Forces inward, accelerations outward, from rest and without gravity."""

    def force(below, pushed: _Pushed):
        p, driven = pushed.joint.pass_on(pushed.place.S, pushed.tau, below)
        return pushed.place.pose.force_to_parent(p), driven

    def acceleration(parent, x):
        pushed, driven = x
        handle = pushed.place.pose.motion_to_child(parent)
        return pushed.joint.accelerate(pushed.place.S, driven, handle)

    bodies, base = x
    bodies = tuple(body._replace(place=body.place.displaced()) for body in bodies)
    still = zeros((bodies, base), 6)
    p, driven = order.gathered(tree, force, still, bodies)
    own = base and at_once(symmetric_product(tuple(base.inverse), subtract(tuple(base.tau), of_bases(tree, p))))
    a = order.outward(tree, acceleration, of_roots(tree, own) if own else still, _joined(bodies, driven))
    return _with_base(tree, own, order.unpack(tree, a))


def _motion(order: Order, tree: DofTree, x: _Driven):
    """Velocities outward, articulated-body inertias and bias forces inward, accelerations outward.

    Source: Featherstone 2008, table 7.1.
    """
    base, bodies = x.base, tuple(body.displaced() for body in x.bodies)
    still = zeros((bodies, base), 6)
    velocities = order.outward(tree, _velocity, base.velocity(tree, still), bodies)
    bodies = tuple(map(_Body, bodies, x.drifts, velocities))
    (I, p), passed = order.gathered(tree, _inertia_and_force, (zeros((bodies, base), 21), still), bodies)
    root, own, start = base.accelerated(tree, I, p)
    a = order.outward(tree, _acceleration, start, _joined(bodies, passed))
    a, joints = order.unpack(tree, tuple((a, joint) for a, (joint, _) in zip(a, passed, strict=True)))
    return _with_base(tree, own, a), (joints, root and jnp.stack(root))


def _with_base(tree: DofTree, own, a):
    """All accelerations, from those of free bases and those of the tree."""
    return a if own is None else with_bases(tree, jnp.stack(own), a)


class _Body(NamedTuple):
    """A body under way, in its own frame.

    Attributes:
        moving: The body with its degree of freedom, and the force along that.
        drift: As in `_Driven`.
        v: Spatial velocity [rad/s, m/s].
    """

    moving: MovingBody
    drift: Vector | None
    v: Vector

    @property
    def c(self) -> Vector:
        """Bias acceleration of the joint."""
        c = cross_motion(self.v, scale(self.moving.rate, self.moving.place.S.vector))
        return c if self.drift is None else add(c, self.drift)

    @property
    def p(self) -> Vector:
        """Bias force of the body."""
        return less(cross_force(self.v, self.moving.place.inertia.momentum(self.v)), self.moving.f)


def _inertia(below, place: DegreeOfFreedom):
    joint, Ia = _eliminated(place, place.inertia.added_to(below))
    return place.pose.inertia_to_parent(Ia), joint


def _inertia_and_force(below, x: _Body):
    """Inertia and force that the body passes on to its parent, and its joint, eliminated and driven."""
    place, (I, p) = x.moving.place, below
    pose = place.pose
    joint, Ia = _eliminated(place, place.inertia.added_to(I))
    p, driven = joint.pass_on(place.S, x.moving.given, add(x.p, p))
    p = add(p, symmetric_product(Ia, x.c))
    return (pose.inertia_to_parent(Ia), pose.force_to_parent(p)), (joint, driven)


def _eliminated(place: DegreeOfFreedom, I):
    """The degree of freedom eliminated, and what is left of the articulated inertia I."""
    S = place.S.vector
    U = symmetric_product(I, S)
    D = dot(S, U) + place.R
    # Division makes K S = 1 exact where S is a coordinate axis and there is no rotor.
    K = tuple(x / D for x in U)
    return Eliminated(K, D), _with_product(downdated(I, U, K), place.S, scale(place.R, K))


def _with_product(Ia, subspace, SIa):
    """The symmetric `Ia`, corrected for rounding so that Sᵀ Ia = R K, which is zero without rotors."""
    if len(subspace.rows) == 1:
        (row,), (length,) = subspace.rows, subspace.values
        must = scale(1 / length, SIa)
        return tuple(must[j + i - row] if row in (i, j) else Ia[lower(i, j)] for i in range(6) for j in range(i + 1))
    S = subspace.vector
    N = scale(1 / dot(S, S), S)
    r = subtract(symmetric_product(Ia, S), SIa)
    Nr = scale(dot(r, S), N)
    corrections = (
        minus(plus(times(N[i], r[j]), times(r[i], N[j])), times(N[i], Nr[j])) for i in range(6) for j in range(i + 1)
    )
    return subtract(Ia, tuple(corrections))


def _velocity(parent, moving: MovingBody):
    v = moving.velocity(parent)
    return v, v


def _acceleration(parent, x):
    here, (joint, driven) = x
    place = here.moving.place
    handle = add(place.pose.motion_to_child(parent), here.c)
    return joint.accelerate(place.S, driven, handle)


def _joined(*packed):
    """Packed values side by side."""
    return tuple(zip(*packed, strict=True))
