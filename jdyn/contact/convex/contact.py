"""Contact as the minimum of a convex function of the velocity, step by step."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.contact.colliders import Colliders
from jdyn.contact.contact import Contact, ContactForces, TouchingPoints
from jdyn.contact.convex.impulses import Impulses
from jdyn.contact.convex.minimum import Found, Motion, minimum
from jdyn.contact.materials import (
    Material,
    PairMaterials,
    check_materials,
    check_nearest,
    check_numbers,
    pair_materials,
    refuse_rigid_pairs,
)
from jdyn.contact.points import contact_points, middles
from jdyn.contact.relative_motion import RelativeMotion
from jdyn.model import Model

Vector = Float[Array, " nv"]
Numbers = Float[Array, " points"]


class ConvexContact(Contact):
    """Stiff shapes with dry friction, in steps as long as the motion between impacts allows.

    The law is f = k depth (1 − c u)₊ along the normal, where u is the speed apart, and friction up to μ f beside it,
    which holds what sticks: it creeps by less than `slip_speed`, and what slides bears the whole of μ f. Each step of
    `jdyn.ConvexEuler`, which `jdyn.simulate` takes by itself, finds the velocity at its end as the minimum of a
    strictly convex function. So it is found from any start. At rest and in steady motion neither stiffness nor the slip
    speed limits the step; the vibrations of an impact are followed, as closely as the tolerance asks.

    Any other solver that `simulate` is given integrates the same law as a force of the state.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> builder.add_shape("world", "plane", (0, 0), role="collision")
    >>> model = builder.build()
    >>> start = model.neutral().at[2].set(0.3)
    >>> motion = jdyn.simulate(model, start, jnp.zeros(6), 2.0, contact=jdyn.ConvexContact())
    >>> print(motion.q[-1, 2].round(3))
    0.1

    Source: Castro, Permenter, Han, An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023;
    Castro, Han, Masterjohn, Irrotational contact fields, arXiv 2312.03908, 2023; Kurtz, Castro, CENIC, arXiv
    2511.08771, 2025.

    Attributes:
        material: Of shapes that `materials` does not name. Friction is that against sliding alone, also where shapes
            have more.
        materials: By name of shape or, for all shapes of a link, of link.
        slip_speed: [m/s]. In single precision long steps take a larger one, as far as rounding asks for it.
        nearest: As `jdyn.CompliantContact` has it.

    Raises:
        ValueError: if the slip speed is not positive, a material belongs to nothing or resists turning or rolling, or
            shapes that may touch are both rigid.

    Warns:
        ContactWarning: as `jdyn.CompliantContact` does.
    """

    stepwise: ClassVar[bool] = True

    material: Material = Material()
    materials: Mapping[str, Material] = eqx.field(default_factory=dict)
    slip_speed: Scalar | float = 1e-6
    nearest: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_numbers("slip_speed", self.slip_speed, lambda x: x > 0, "a positive number")
        check_nearest(self.nearest)
        check_materials(self.material, self.materials)
        for material in (self.material, *self.materials.values()):
            if _resists_turning(material.friction):
                raise ValueError(
                    f"friction: convex contact knows that against sliding alone, got {material.friction} for sliding, "
                    "turning and rolling; take jdyn.CompliantContact()"
                )

    @property
    def located(self) -> bool:
        """False: steps are longer than contacts begin."""
        return False

    @property
    def gradient_reach(self) -> None:
        """None: derivatives are true."""
        return None

    def check(self, colliders: Colliders):
        refuse_rigid_pairs(colliders, self.material, self.materials)

    def between(self, colliders: Colliders) -> "ConvexForces":
        materials = pair_materials(colliders, self.material, self.materials, exponent=1.0)
        colliders = dataclasses.replace(colliders, nearest=self.nearest)
        return ConvexForces(colliders, materials, jnp.asarray(self.slip_speed, colliders.sizes.dtype))


def _resists_turning(friction: Any) -> bool:
    """Whether it is known to."""
    known = isinstance(friction, tuple | list | np.ndarray | Array) and not isinstance(friction, Tracer)
    return known and np.shape(friction) == (3,) and bool(np.any(np.asarray(friction)[1:] != 0))


class ConvexForces(ContactForces):
    """`ConvexContact` between the shapes of a model.

    Attributes:
        colliders: The shapes.
        materials: Of pairs.
        slip_speed: Up to which friction holds [m/s].
    """

    colliders: Colliders
    materials: PairMaterials
    slip_speed: Scalar

    def force(self, model: Model, q: Float[Array, " nq"], v: Vector) -> Vector:
        """Generalized forces at a state [N m or N]."""
        near = self._near(model, q)
        return jnp.tensordot(near.forces(v), near.J, 2)

    def points(
        self, model: Model, q: Float[Array, " nq"], v: Vector
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        """The forces at all points, and the number of each point's pair."""
        near = self._near(model, q)
        force, depth = near.forces(v), jnp.maximum(-near.distance, 0)
        return TouchingPoints(near.position, near.normal, depth, force, jnp.zeros_like(force)), near.pair

    def overshot(self, model: Model, q0: Float[Array, " nq"], q1: Float[Array, " nq"], v1: Vector) -> Bool[Array, ""]:
        """Never: ends of steps are within reach of the springs."""
        return jnp.array(False)

    def near(self, model: Model, q: Float[Array, " nq"]) -> "ConvexForces":
        """These: they are the same everywhere."""
        return self

    def velocity(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Vector,
        h: Scalar,
        A: Float[Array, "nv nv"],
        momentum: Vector,
        guess: Vector,
    ) -> Found:
        """The velocity at the end of a step.

        Args:
            model: The mechanism.
            q, v: State at the start.
            h: Length of the step [s].
            A: Inertia, with what joints' springs and dampers add to it within the step.
            momentum: A times the velocity at the end without contact.
            guess: Of the velocity.
        """
        near = self._near(model, q)
        return minimum(Motion(A, momentum, near.J, near.impulses(v, h, A)), guess)

    def _near(self, model: Model, q: Float[Array, " nq"]) -> "_Near":
        motion = RelativeMotion.at(model, self.colliders, q)
        found, pair = contact_points(self.colliders, motion.poses)
        position, exists = middles(found, motion.origin)
        stiffness, dissipation, friction = self.materials.at(found, pair)
        return _Near(
            pair=pair,
            position=position,
            normal=found.normal,
            distance=jnp.where(exists, found.distance, 0),
            stiffness=jnp.where(exists, stiffness, 0),
            dissipation=dissipation,
            friction=friction[:, 0],
            slip_speed=self.slip_speed,
            J=motion.point_jacobian(position, pair),
        )


class _Near(NamedTuple):
    """Points at which shapes may touch in one configuration; those that do not exist have no stiffness.

    Attributes:
        pair: Number of each point's pair.
        J: Velocities of the points of second bodies relative to the first, by those of the joints.
    """

    pair: np.ndarray
    position: Float[Array, "points 3"]
    normal: Float[Array, "points 3"]
    distance: Numbers
    stiffness: Numbers
    dissipation: Numbers
    friction: Numbers
    slip_speed: Scalar
    J: Float[Array, "points 3 nv"]

    def forces(self, v: Vector) -> Float[Array, "points 3"]:
        """On the second bodies at a state, as a step without length has them."""
        none, slip = jnp.zeros_like(self.stiffness), jnp.broadcast_to(self.slip_speed, self.stiffness.shape)
        bound = self.friction * self._pressed(v)
        one = jnp.ones_like(self.slip_speed)
        law = Impulses(one, self.normal, self._springs, none, self.dissipation, bound, slip, slip)
        u = self.J @ v
        return law.at(u, law.holds(u))[0]

    def impulses(self, v: Vector, h: Scalar, A: Float[Array, "nv nv"]) -> Impulses:
        """Those of a step from a state, by the velocity at its end."""
        bound = h * self.friction * self._pressed(v)
        # Friction that rises more steeply with the slip would leave too few digits of A in the sum of both.
        yielding = jnp.sum(self.J**2 / jnp.diag(A)[None, None], axis=(1, 2)) / 3
        stopped = yielding * bound
        slip = jnp.maximum(self.slip_speed, jnp.sqrt(jnp.finfo(bound.dtype).eps) * stopped)
        return Impulses(h, self.normal, self._springs, self.stiffness, self.dissipation, bound, slip, stopped)

    @property
    def _springs(self) -> Numbers:
        """Forces of depth alone; negative where shapes are apart."""
        return -self.stiffness * self.distance

    def _pressed(self, v: Vector) -> Numbers:
        """Forces along the normals."""
        speed = jnp.sum((self.J @ v) * self.normal, axis=1)
        return jnp.maximum(self._springs, 0) * jnp.maximum(1 - self.dissipation * speed, 0)
