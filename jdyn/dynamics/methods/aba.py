"""Forward dynamics by the articulated-body algorithm."""

import functools
from typing import NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics.aligned import AxialSubspace, Displaced, axes, degrees_of_freedom, drifts, packed_bodies
from jdyn.dynamics.at_once import at_once
from jdyn.dynamics.base import free_base, moving_base
from jdyn.dynamics.lanes import Executor, by_lanes, zeros
from jdyn.dynamics.methods.matrix_aba import MatrixABA
from jdyn.dynamics.methods.method import one_of
from jdyn.dynamics.methods.tree_method import Factors, Recursion, in_step, on_leaders
from jdyn.dynamics.passive import passive_forces
from jdyn.dynamics.traverse import unpack_coordinates
from jdyn.model import Free
from jdyn.spatial import semidefinite_cholesky, triangular_inverse
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
    """A degree of freedom that is eliminated.

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
    a hundred joints; here both properties are restored at each joint (`MatrixABA` has the textbook's form).

    Under `jax.vmap` it goes number by number, on frames whose z axes are those of the joints, along the lanes: a
    lane then costs a CPU a fifth to a tenth of what matrices cost. A single configuration takes matrices.

    Attributes:
        bias: `"within"` or `"separate"`, as in `Recursion`.
        executor: What runs the recursions, on every device. `"auto"`: as above, by what was measured on processors;
            `"levels"`: all bodies of a level at once, in batches, too; `"lanes"`: number by number, one body after
            another, for a single configuration, too; `"kernel"`: the same with one kernel for each loop over bodies,
            in Pallas' interpreter where there is no CUDA device. Kernels have not been measured on a CUDA device:
            `"auto"` does not take them.

    Raises:
        ValueError: if `bias` or `executor` is none of these.

    Source: Featherstone 2008, section 7.3; Bierman 1977 for the stabilised update of a projected inertia;
    Cloutier 1995, section 3.3.1 for the separate bias.
    """

    executor: Executor = eqx.field(static=True, default="auto", kw_only=True)

    def __check_init__(self):
        one_of("executor", self.executor, get_args(Executor))

    def kinematics(self, model, q):
        # Bodies are placed within the recursions, each of which does it in its own way.
        return q

    def eliminate(self, model, joints):
        like = _eliminated_like(model, joints)
        return by_lanes(_matrix_elimination, _still, _elimination, model, joints, like=like, executor=self.executor)

    def response(self, model, factors, tau):
        arguments = factors.q, factors.tree, tau
        return by_lanes(None, _pushed, _response, model, *arguments, like=tau, executor=self.executor)

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
        """Accelerations without couplings, and the joints eliminated on the way, in the same loop."""
        like, arguments = (v, _eliminated_like(model, q)), (q, v, tau, f_ext)
        return by_lanes(_matrix_motion, _moved, _motion, model, *arguments, like=like, executor=self.executor)


def _eliminated_like(model, q):
    """Shapes of all that is eliminated: the degrees of freedom of the tree, and a free base."""
    number = jax.ShapeDtypeStruct((model.topology.serial.nb,), q.dtype)
    root = jax.ShapeDtypeStruct((Free.nv * (Free.nv + 1) // 2,), q.dtype) if model.topology.free_base else None
    return Eliminated((number,) * 6, number), root


# By matrices.


def _matrix_elimination(model, q):
    method = MatrixABA()
    return _by_degrees(model, q, method.eliminate(model, method.kinematics(model, q)))


def _matrix_motion(model, q, v, tau, f_ext):
    method = MatrixABA()
    joints = method.kinematics(model, q)
    tree = method.eliminate(model, joints)
    return method.moving(model, Factors(q, joints, tree, None), v, tau, f_ext), _by_degrees(model, q, tree)


def _by_degrees(model, q, bodies):
    """What eliminating each degree of freedom by itself would have left, from elimination by joints."""
    K, D = zip(*(_one_after_another(body.K, body.D_inverse) for body in bodies), strict=True)
    K, D = (unpack_coordinates(model.topology, x) for x in (K, D))
    K = jnp.einsum("nji,nkj->nki", axes(model, q), K.reshape(-1, 2, 3)).reshape(-1, 6)
    count = model.topology.serial.nb
    root = None
    if model.topology.free_base:
        root = bodies[0].D_inverse[0, 0][_TRIANGLE]
    return Eliminated(tuple(K[-count:].T), D[-count:]), root


@functools.partial(jnp.vectorize, signature="(k,m),(k,k)->(k,m),(k)")
def _one_after_another(K, D_inverse):
    """K and D of each degree of freedom, the last eliminated first: with D = W d Wᵀ and W upper triangular, its ones on
    the diagonal, they are Wᵀ K and d."""
    if len(D_inverse) == 1:
        return K, 1 / D_inverse[0]
    C = semidefinite_cholesky(D_inverse)
    return jnp.diag(C)[:, None] * (triangular_inverse(C) @ K), jnp.diag(C) ** -2


# What the recursions by numbers work on.


def _still(order, model, q):
    return degrees_of_freedom(model, order.schedule(model.topology.serial), q), free_base(model)


def _pushed(order, model, q, eliminated, tau):
    tree, (degrees, base) = model.topology.serial, _still(order, model, q)
    joints, root = eliminated
    own, tau = tau[: -tree.nb], tau[-tree.nb :]
    return _joined(degrees, order.pack(tree, joints), order.pack(tree, tau)), base and (root, own)


def _moved(order, model, q, v, tau, f_ext):
    bodies = packed_bodies(order, model, q, f_ext, v, tau)
    drift = drifts(model, order.schedule(model.topology.serial), q, v)
    moved = tuple((*rest, drift, f) for (*rest, f), drift in zip(bodies, drift, strict=True))
    return moved, moving_base(model, q, v, tau, f_ext)


# The recursions by numbers.


def _elimination(order, tree, x):
    degrees, base = x
    places = tuple(degree.displaced() for degree in degrees)
    I, joints = order.gathered(tree, _inertia, zeros(places, 21), places)
    return order.unpack(tree, joints), base and jnp.stack(base.eliminated(base.inertia.added_to(I)))


def _response(order, tree, x):
    def force(below, x):
        place, joint, tau = x
        body = place.body
        p, driven = joint.pass_on(body.S, tau, below)
        return body.pose.force_to_parent(p), driven

    def acceleration(parent, x):
        (place, joint, _), driven = x
        body = place.body
        return joint.accelerate(body.S, driven, body.pose.motion_to_child(parent))

    pushed, base = x
    pushed = tuple((degree.displaced(), *rest) for degree, *rest in pushed)
    still = zeros(pushed, 6)
    p, driven = order.gathered(tree, force, still, pushed)
    own = base and at_once(symmetric_product(tuple(base[0]), subtract(tuple(base[1]), p)))
    a = order.outward(tree, acceleration, own or still, _joined(pushed, driven))
    return _with_base(own, order.unpack(tree, a))


def _motion(order, tree, x):
    moved, base = x
    moved = tuple((degree.displaced(), *rest) for degree, *rest in moved)
    still = zeros(moved, 6)
    velocities = order.outward(tree, _velocity, base.velocity(still), moved)
    bodies = tuple(_MovingBody._make((*given, v)) for given, v in zip(moved, velocities, strict=True))
    (I, p), passed = order.gathered(tree, _inertia_and_force, (zeros(moved, 21), still), bodies)
    root, own, start = base.accelerated(I, p)
    a = order.outward(tree, _acceleration, start, _joined(bodies, passed))
    a, joints = order.unpack(tree, tuple((a, joint) for a, (joint, _) in zip(a, passed, strict=True)))
    return _with_base(own, a), (joints, root and jnp.stack(root))


def _with_base(own, a):
    """All accelerations, from those of a free base and those of the tree."""
    return a if own is None else jnp.concatenate([jnp.stack(own), a])


class _MovingBody(NamedTuple):
    """Attributes:
    place: The body, where its joint has brought it.
    rate: Of its degree of freedom.
    tau: Force along it.
    drift: What other degrees of freedom of the joint add to c; None if there are none.
    f: External force; None if there is none.
    v: Velocity of the body.
    """

    place: Displaced
    rate: Number
    tau: Number
    drift: Vector | None
    f: Vector | None
    v: Vector

    @property
    def body(self):
        return self.place.body

    @property
    def c(self) -> Vector:
        """Bias acceleration of the joint."""
        c = cross_motion(self.v, scale(self.rate, self.body.S.vector))
        return c if self.drift is None else add(c, self.drift)

    @property
    def p(self) -> Vector:
        """Bias force of the body."""
        p = cross_force(self.v, self.body.inertia.momentum(self.v))
        return p if self.f is None else subtract(p, self.f)


def _inertia(below, place):
    body = place.body
    joint, Ia = _eliminated(body, body.inertia.added_to(below))
    return body.pose.inertia_to_parent(Ia), joint


def _inertia_and_force(below, moving):
    body, (I, p) = moving.body, below
    joint, Ia = _eliminated(body, body.inertia.added_to(I))
    p, driven = joint.pass_on(body.S, moving.tau, add(moving.p, p))
    p = add(p, symmetric_product(Ia, moving.c))
    return (body.pose.inertia_to_parent(Ia), body.pose.force_to_parent(p)), (joint, driven)


def _eliminated(body, I):
    """The body's degree of freedom eliminated, and what is left of the articulated inertia I."""
    S = body.S.vector
    U = symmetric_product(I, S)
    D = dot(S, U) + body.R
    # Division makes K S = 1 exact where S is a coordinate axis and there is no rotor.
    K = tuple(x / D for x in U)
    return Eliminated(K, D), _with_product(downdated(I, U, K), body.S, scale(body.R, K))


def _with_product(Ia, subspace, SIa):
    """The symmetric `Ia` with Sᵀ Ia as it must be, R K, which is zero without rotors, and not as rounding left it."""
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


def _velocity(parent, x):
    place, rate, *_ = x
    body = place.body
    v = add(body.pose.motion_to_child(parent), scale(rate, body.S.vector))
    return v, v


def _acceleration(parent, x):
    moving, (joint, driven) = x
    handle = add(moving.body.pose.motion_to_child(parent), moving.c)
    return joint.accelerate(moving.body.S, driven, handle)


def _joined(*packed):
    """Packed values side by side."""
    return tuple(zip(*packed, strict=True))
