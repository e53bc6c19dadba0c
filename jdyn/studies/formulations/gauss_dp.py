"""Forward dynamics by Gauss' principle and dynamic programming."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import definite_inverse
from jdyn.dynamics.building_blocks import LEVELS, TreeMethod, links, passive_forces, velocity_terms, world_acceleration
from jdyn.model import WORLD, Free, Model, checked
from jdyn.spatial import skew


class Stage(eqx.Module):
    """One stage of the program, a body and its joint; motions are those of the centre of mass, in body axes.

    Attributes:
        A, B: ẍ_i = A ẍ_{i-1} + B q̈_i + f_i.
        P: Curvature of the least constraint of this body and all that it carries, as a function of ẍ_i.
        D_inverse: (Bᵀ P B + R)⁻¹ with rotor inertias R.
        to_center: Motion from the body's origin to its centre of mass.
    """

    A: Float[Array, "6 6"]
    B: Float[Array, "6 k"]
    P: Float[Array, "6 6"]
    D_inverse: Float[Array, "k k"]
    to_center: Float[Array, "6 6"]


class GaussDP(TreeMethod):
    """Minimise the constraint of Gauss' principle over one joint after another, from the leaves inward: O(n).

    The least constraint of a body and all that it carries is a quadratic function of the body's acceleration,
    ½ ẍᵀP ẍ + Rᵀẍ + S. P is the articulated-body inertia, found in another way nine years before it had that name. As
    in the source, motions are those of centres of mass. No joint axis is then a coordinate axis, so errors grow with
    the condition number of the mass matrix, as in methods that factor it. A free base needs no rule of its own: its B
    is square, and the joint's equation becomes ẍ₀ = −P₀⁻¹ R₀. A base with a prescribed motion needs no equation at
    all: `on_moving_base`.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.GaussDP()).round(3))
    [-6.047  8.063]

    Source: Vereshchagin 1974, section 3, equations (3.1) to (3.5b).
    """

    def eliminate(self, model, joints):
        I = model.inertias
        massive = I.mass > 0
        center = I.first_moment / jnp.where(massive, I.mass, 1)[:, None]
        to_center = jax.vmap(_shift)(center)
        parents = np.array(model.topology.parents)
        carrier = jnp.where((parents == WORLD)[:, None], 0, center[parents])
        shifts = LEVELS.pack(model.topology, (to_center, jax.vmap(_shift)(-carrier)))
        packed = zip(links(model, joints), shifts, strict=True)
        zero = jnp.zeros((6, 6), center.dtype)
        return LEVELS.inward(model.topology, _minimise, zero, tuple((link, *shifts) for link, shifts in packed))

    def sweep(self, model, tree, tau, c, p, world):
        return self._outward(model, self._inward(model, tree, tau, c, p), world, _accelerate)

    def on_moving_base(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        tau: Float[Array, " nv"],
        acceleration: Float[Array, "6"],
        *,
        f_ext: Float[Array, "nb 6"] | None = None,
    ) -> Float[Array, " nv"]:
        """Accelerations while the free base moves as prescribed, whatever force that takes.

        `inverse_dynamics` of the result gives that force; on all other joints it gives `tau`.

        Args:
            model: A mechanism whose first body has a free joint and carries all others.
            q: Configuration [rad or m].
            v: Velocity [rad/s or m/s], the base's included.
            tau: Generalized forces of the actuators [N m or N]; those of the base are ignored.
            acceleration: Of the base, the first six entries of a [rad/s², m/s²].
            f_ext: Force on each body at its frame's origin, in the body frame [N m, N].

        Raises:
            ValueError: at trace time, if a size is wrong, the base is not free, or joints follow others.

        Source: Vereshchagin 1974, section 3, the case of a given ẍ₀.
        """
        topology = model.topology
        if topology.kinds[0] is not Free or topology.parents.count(WORLD) > 1 or topology.mimics:
            raise ValueError(
                f"{model.name!r}: expected a free base that carries all other bodies, and no joint that follows another"
            )
        q, v, tau = checked(model, q=q, v=v, tau=tau)
        if acceleration.shape != (6,):
            raise ValueError(f"acceleration: expected shape (6,), got {acceleration.shape}")
        factors = self.factor(model, q)
        _, c, p = velocity_terms(model, factors.joints, q, v, f_ext)
        motions = self._inward(model, factors.tree, tau + passive_forces(model, q, v), c, p)
        given = LEVELS.pack_coordinates(model.topology, jnp.zeros_like(v).at[:6].set(acceleration))
        on_base = LEVELS.pack(topology, jnp.arange(model.nb) == 0)
        motions = tuple(zip(motions, given, on_base, strict=True))
        return self._outward(model, motions, world_acceleration(model, p.dtype), _accelerate_or_follow)

    def _inward(self, model, tree, Q, c, p):
        topology = model.topology
        Q, c, p = LEVELS.pack_coordinates(topology, Q), *(LEVELS.pack(topology, x) for x in (c, p))
        loads = tuple(zip(tree, Q, c, p, strict=True))
        R = LEVELS.inward(topology, _linear_term, jnp.zeros_like(p[0][0, 0]), loads)
        return tuple(zip(tree, Q, c, R, strict=True))

    def _outward(self, model, motions, world, step):
        return LEVELS.unpack_coordinates(model.topology, LEVELS.outward(model.topology, step, world, motions))


def _shift(center: Float[Array, "3"]) -> Float[Array, "6 6"]:
    """The motion matrix that takes spatial motions to a point `center` away, axes unchanged."""
    one, zero = jnp.eye(3, dtype=center.dtype), jnp.zeros((3, 3), center.dtype)
    return jnp.block([[one, zero], [-skew(center), one]])


def _minimise(below, x):
    """(3.5a): what the body passes on of P, and its stage."""
    link, to_center, from_carrier = x
    from_center = 2 * jnp.eye(6, dtype=to_center.dtype) - to_center
    W = from_center.T @ link.I @ from_center
    A, B, P = to_center @ link.X @ from_carrier, to_center @ link.S, W + below
    D_inverse = definite_inverse(B.T @ P @ B + jnp.diag(link.R))
    PB = P @ B
    return A.T @ (P - PB @ D_inverse @ PB.T) @ A, Stage(A, B, P, D_inverse, to_center)


def _linear_term(below, x):
    """(3.5b): what the body passes on of R, and its own; −W z̈ is the force p about the centre of mass."""
    stage, Q, c, p = x
    from_center = 2 * jnp.eye(6, dtype=p.dtype) - stage.to_center
    R, f = from_center.T @ p + below, stage.to_center @ c
    linear = R + stage.P @ f
    u = Q - stage.B.T @ linear
    return stage.A.T @ (linear + stage.P @ (stage.B @ (stage.D_inverse @ u))), R


def _accelerate(carrier, x):
    """(3.5) and (3.1)."""
    stage, Q, c, R = x
    reached = stage.A @ carrier + stage.to_center @ c
    a = _joint_acceleration(stage, Q, R, reached)
    return reached + stage.B @ a, a


def _accelerate_or_follow(carrier, x):
    """The same, except for the base, whose acceleration is given."""
    (stage, Q, c, R), given, on_base = x
    reached = stage.A @ carrier + stage.to_center @ c
    a = jnp.where(on_base, given, _joint_acceleration(stage, Q, R, reached))
    return reached + stage.B @ a, a


def _joint_acceleration(stage, Q, R, reached):
    return stage.D_inverse @ (Q - stage.B.T @ (stage.P @ reached + R))
