"""Contact by springs, dampers and friction that are functions of the state."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import is_single
from jdyn.contact.colliders import Colliders
from jdyn.contact.compliant_gradients import CompliantGradients, StepRepair
from jdyn.contact.compliant_steps import CompliantSteps
from jdyn.contact.contact import Contact, ContactForces, PointForces, TouchingPoints
from jdyn.contact.directional import Weights
from jdyn.contact.laws import ContactLaw, HuntCrossley, PointLaw, parting
from jdyn.contact.materials import (
    Material,
    PairMaterials,
    check_materials,
    check_nearest,
    check_numbers,
    pair_materials,
    refuse_rigid_pairs,
    resist_turning,
    scaled_materials,
)
from jdyn.contact.moving_points import MovingPoints
from jdyn.contact.points import Overlap, of_bodies, warn_of_many_pairs
from jdyn.geometry import Separation
from jdyn.model import WORLD, Model, Name, Scaling, Units

# Where steps are located, what touches may pull so far beyond the end of contact [m]: ends of steps miss it by less.
BEYOND = 1e-4
# Forces of steps stand for those of states which they differ from by no more than so many roundings of positions, of
# each joint: at rest mostly by one or two, in a few rows of ten minutes by ten.
ROUNDINGS = 12


class CompliantContact(Contact):
    """Shapes press into each other, and push back: forces are functions of the state, which any solver integrates.

    Along the normal a law gives the force f by depth and its rate. Friction is μ f v / √(v² + v_s²) against the slip v:
    what sticks creeps, at a speed of v_s tan α / √(μ² − tan² α) on a slope of the angle α. Torques against turning
    about the normal and against rolling obey the same with lengths in the place of μ. Of pairs that have two
    coefficients along two tangents (`jdyn.Builder.include`), friction is on the ellipse of both. Forces act in the
    middle between the two surfaces. A step is as long as its errors allow, and ends where the velocity at its start and
    the last acceleration foretell a touch, with `diffrax.PIDController`, the default. What they do not foretell, since
    its way turns, is not passed: no step is longer than it takes to reach a shape and half of the way through, at the
    speed of the step's start. What grazes an edge may lie within a step unseen.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> builder.add_shape("world", "plane", (0, 0), role="collision")
    >>> model = builder.build()
    >>> start = model.neutral().at[2].set(0.3)
    >>> motion = jdyn.simulate(model, start, jnp.zeros(6), 2.0, contact=jdyn.CompliantContact())
    >>> print(motion.q[-1, 2].round(3))
    0.1

    Attributes:
        law: `jdyn.contact.HuntCrossley()`, `jdyn.contact.SpringDamper()` or `jdyn.contact.TwoStiffnesses()`.
        material: Of shapes that `materials` does not name.
        materials: By name of shape or, for all shapes of a link, of link.
        slip_speed: v_s [m/s]. Small ones are stiff.
        spin_speed: The same for turning and rolling [rad/s].
        gradient_reach: None for derivatives as they are: those of what does not touch are zero. A distance [m] for
            those of forces that begin softly, about so far before shapes touch, so that a gradient tells how to reach
            something. Motions do not change. These derivatives are wrong on purpose, also where shapes touch: take the
            true ones once there is contact. They are those of springs that steps do not know of, and grow without
            bound where steps are long for these: give the step controller a `dtmax` of about √(m / 2k) [s], with the
            stiffness k [N/m] and the lighter mass m [kg]. Friction is felt by what touches alone.
        located: Whether steps end where points begin and cease to touch, which are then `Trajectory.events` behind
            all others: first all that begin, then all that cease. With it alone, laws that begin with a jump, such as
            `jdyn.contact.SpringDamper`, have right derivatives. Each contact takes two events of `max_events`.
        nearest: Of how many pairs of each two kinds of shapes points are looked for: those that are nearest by their
            boxes along the axes of the world. Worth it from some fifteen shapes that may touch each other: with eight
            pairs, a humanoid that has 126 takes half of the time. A motion in which boxes of more pairs overlap
            fails. None for all.

    Source: Hunt, Crossley 1975; Castro et al., A transition-aware method for the simulation of compliant contact with
    regularized friction, IEEE RA-L 2020, for friction; Paulus et al., Hard contacts with soft gradients, arXiv
    2506.14186, 2025, for the reach.

    Raises:
        ValueError: if a number is out of its range, a material belongs to nothing, or shapes that may
            touch are both rigid.

    Warns:
        ContactWarning: in `simulate`, if shapes overlap at the start by more than a tenth of the least size of one of
            them: springs will throw them apart; and if they do so later by more than half: they may pass through each
            other. Under `jax.jit` and `jax.vmap` nobody can be warned; `stats["start_depth_by_size"]` and
            `stats["greatest_depth_by_size"]` are these shares. Also if a law that begins with a jump is differentiated,
            unless steps are `located`, and if more than 100 pairs of meshes may touch, unless `nearest` is given.
    """

    stepwise: ClassVar[bool] = False
    directional: ClassVar[bool] = True
    units: ClassVar[Units] = {"slip_speed": "m/s", "spin_speed": "1/s", "gradient_reach": "m"}

    law: ContactLaw = HuntCrossley()
    material: Material = Material()
    materials: Mapping[Name, Material] = eqx.field(default_factory=dict)
    slip_speed: Scalar | float = 1e-3
    spin_speed: Scalar | float = 1e-2
    gradient_reach: Scalar | float | None = None
    located: bool = eqx.field(static=True, default=False)
    nearest: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        for name in ("slip_speed", "spin_speed", "gradient_reach"):
            if (value := getattr(self, name)) is not None:
                check_numbers(name, value, lambda x: x > 0, "a positive number")
        check_nearest(self.nearest)
        check_materials(self.material, self.materials, self.law)
        if self.located and self.nearest is not None:
            raise ValueError("located: the points of nearest pairs are others in every step; leave out one of the two")

    @property
    def ends_steps(self) -> bool:
        return self.located

    @property
    def softens_derivatives(self) -> bool:
        return self.gradient_reach is not None

    def check(self, colliders: Colliders):
        refuse_rigid_pairs(colliders, self.material, self.materials)
        warn_of_many_pairs(colliders, self.nearest)

    def scaled(self, scaling: Scaling) -> Self:
        """The same between scaled shapes."""
        return scaling.numbers(self, **scaled_materials(self, self.law, scaling))

    def between(self, colliders: Colliders) -> "CompliantForces":
        pairs = pair_materials(colliders, self.material, self.materials, self.law)
        dtype = colliders.sizes.dtype
        slip, spin = (jnp.asarray(x, dtype) for x in (self.slip_speed, self.spin_speed))
        colliders = dataclasses.replace(colliders, nearest=self.nearest)
        reach = None if self.gradient_reach is None else jnp.asarray(self.gradient_reach, dtype)
        turning = resist_turning(colliders, self.material, self.materials)
        return CompliantForces(colliders, self.law, pairs, slip, spin, turning, reach, self.located)


class CompliantForces(ContactForces):
    """`CompliantContact` between the shapes of a model.

    Attributes:
        colliders: The shapes.
        law: Along the normal.
        materials: Of pairs.
        slip_speed, spin_speed: Below which friction falls [m/s, rad/s].
        turning: Whether friction against turning or rolling may be other than zero. If not, twists [ω; v] and wrenches
            [n; f] are only v and f.
        gradient_reach: From where derivatives feel contact [m]; None for those that are true.
        located: Whether steps end where points begin and cease to touch.
        start: Points where a step begins; None for forces of no step.
        repair: Of derivatives of a step; None for forces of no step that is differentiated.
    """

    colliders: Colliders
    law: ContactLaw
    materials: PairMaterials
    slip_speed: Scalar
    spin_speed: Scalar
    turning: bool = eqx.field(static=True)
    gradient_reach: Scalar | None
    located: bool = eqx.field(static=True, default=False)
    start: MovingPoints | None = None
    repair: StepRepair | None = None

    @property
    def point_law(self) -> PointLaw:
        """The law at a point."""
        return PointLaw(self.law, self.slip_speed, self.spin_speed, self.turning)

    def begun(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Self:
        """With what is detected where a step begins, for all that asks about that. What needs it without derivatives
        takes them away.

        Where steps are located, points touch throughout a step or not at all. Then forces have no kink within it,
        though its end is beyond the kink by its error: else derivatives would be those of the wrong side.
        """
        return dataclasses.replace(self, start=MovingPoints.at(model, self.colliders, q))

    def at_time(self, t: Any) -> Self:
        return self if self.repair is None else dataclasses.replace(self, repair=self.repair.at_time(t))

    def step_policy(self, model: Model, q: Float[Array, " nq"]) -> CompliantSteps:
        return CompliantSteps(q, self.detected(model, q), self.colliders, self.law, self.materials)

    @property
    def gradient_policy(self) -> CompliantGradients:
        return CompliantGradients(not self.located and self.gradient_reach is None, self.law.jumps)

    def force(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized forces [N m or N]."""
        here = MovingPoints.at(model, self.colliders, q)
        touching = self._touching(here, v)
        return here.generalized(touching.torque, touching.force)

    def of_stage(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], moved: Array, gained: Array
    ) -> PointForces | None:
        if not is_single(q.dtype):
            return None
        start = self.detected(model, q)
        # What repairs derivatives would change the slopes, which are those of an implicit stage: so these forces are
        # those that have changed its velocity.
        plain = dataclasses.replace(self, gradient_reach=None, repair=None)

        def pushing(distance, v):
            changed = start._replace(found=dataclasses.replace(start.found, distance=distance))
            touching = plain._touching(changed, v)
            return PointForces(touching.force, touching.torque if self.turning else None)

        apart = parting(start.twists(moved), start.normal)
        forces, more = jax.jvp(pushing, (start.distance, v), (apart, gained))
        slots = start.pairs.slots(self.colliders)
        return jax.tree.map(lambda force, more: slots.spread(force + more, jnp.nan), forces, more)

    def recorded(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], known: PointForces
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        here = MovingPoints.at(model, self.colliders, q)
        points, (stiffness, dissipation, *_) = self._touching(here, v), self.materials.at(here)
        numbers = here.pairs.of_points
        bodies = [jnp.asarray(self.colliders.bodies(side), jnp.int32)[numbers] for side in (0, 1)]
        places = [of_bodies(here.motion.poses, each).translation for each in bodies]
        far = jnp.max(jnp.abs(jnp.stack([here.position, *places])), axis=(0, 2))
        # Joint by joint, places are rounded anew; the world comes first, which none bears.
        joints = jnp.array([0, *map(len, model.topology.supports)], far.dtype)
        joints = jnp.max(joints[jnp.stack(bodies) - WORLD], axis=0)
        rounding = ROUNDINGS * jnp.finfo(q.dtype).eps * joints * far
        deeper, higher = (jnp.maximum(-here.distance + change, 0) for change in (rounding, -rounding))
        still = jnp.zeros_like(rounding)
        most, least = (self.law.force(depth, still, stiffness, dissipation) for depth in (deeper, higher))
        rests = jnp.all(jnp.abs(known.force - points.force) <= (most - least)[:, None] / 2, axis=1) & here.exist
        kept = jax.tree.map(lambda x: jnp.where(rests[:, None], x, jnp.nan), known).at(points)
        # With the derivatives of forces of states, which rounding leaves as they are.
        return jax.tree.map(lambda x, kept: x + jax.lax.stop_gradient(kept - x), points, kept), numbers

    def slopes(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"]]:
        """Slopes by which `force` falls with configuration and velocity as long as points and normals stay where they
        are."""
        start = self.detected(model, q)
        places, numbers = self._places(start.found), self.materials.at(start)
        turning, moving = start.jacobians()
        J = turning.above(moving) if self.turning else moving
        by_depth, by_twist = jax.vmap(jax.jacfwd(self.point_law.wrench, (1, 2)))(
            start.normal, places.depth, J.velocities(v), *numbers
        )
        by_depth = jnp.where(places.touch[:, None], by_depth, 0)
        # Moving along the normal takes depth away.
        along = jnp.pad(start.normal, [(0, 0), (3 if self.turning else 0, 0)])
        return J.weighed(by_depth[:, :, None] * along[:, None]), J.weighed(-by_twist)

    def overlap(self, model: Model, q: Float[Array, " nq"]) -> Overlap:
        start = self.detected(model, q)
        return Overlap.of(start.found.distance, self.colliders.least_sizes_of_pairs()[start.pairs.of_points])

    def detected(self, model: Model, q: Array) -> MovingPoints:
        """Points where the step begins, or at `q` for forces of no step."""
        return self.start or MovingPoints.at(model, self.colliders, q)

    def points(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        """The forces at all points, and the number of each point's pair."""
        here = MovingPoints.at(model, self.colliders, q)
        return self._touching(here, v), here.pairs.of_points

    def _touching(self, here: MovingPoints, v: Array) -> TouchingPoints:
        places, numbers = self._places(here.found), self.materials.at(here)
        twists, zeros = self.point_law.twists(here, v), []
        if self.repair is not None:
            others = places.touch, places.depth, twists, numbers
            twists, zeros = self.repair.twists_and_wrenches(self.point_law, here, *others)
        wrench = jax.vmap(self._straight_through)(places.felt, here.normal, places.depth, twists, *numbers)
        wrench = sum(zeros, start=wrench)
        force = wrench[:, -3:]
        torque = wrench[:, :3] if self.turning else jnp.zeros_like(force)
        return TouchingPoints(here.position, here.normal, places.depth, force, torque)

    def depths(self, points: MovingPoints) -> Float[Array, " points"]:
        """Depths [m]; zero where shapes are apart."""
        return self._places(points.found).depth

    def _places(self, found: Separation) -> "_Places":
        exist, reach = found.exists, self.gradient_reach
        distance = jnp.where(exist, found.distance, 1)
        # NaN touches, so that it spreads to forces.
        touch = ~(distance >= 0)
        if self.located and self.start is not None:
            touch = (self.start.found.distance < 0) & (distance < BEYOND)
            # Laws are zero at a depth of exactly zero. Here contact still lasts, so that it is moved off zero.
            distance = distance + jnp.where(distance == 0, jnp.finfo(distance.dtype).tiny, 0)
        depth = jnp.where(touch, -distance, 0)
        felt = depth if reach is None else reach * jax.nn.softplus(-distance / reach)
        if self.repair is not None:
            felt = self.repair.depth(distance, felt)
        return _Places(touch, depth, jnp.where(exist, felt, 0))

    def _straight_through(
        self, felt: Scalar, normal: Array, depth: Scalar, twist: Array, stiffness: Scalar, dissipation: Scalar,
        friction: Array, weights: Weights | None,
    ) -> Float[Array, " k"]:  # fmt: skip
        """The wrench of the depth, with the derivatives of that of the depth that is felt. From a distance they leave
        friction out: steps are not chosen for its slopes, and derivatives would grow without bound."""
        others = twist, stiffness, dissipation
        wrench = self.point_law.wrench(normal, depth, *others, friction, weights)
        if self.gradient_reach is not None:
            near, far = (
                self.point_law.wrench(normal, x, *others, jnp.zeros_like(friction), None) for x in (depth, felt)
            )
            soft = wrench + (far - near)
        elif self.repair is not None and self.repair.kink_slopes is not None:
            soft = self.point_law.wrench(normal, felt, *others, friction, weights)
        else:
            return wrench
        # The difference is zero, exactly.
        return jax.lax.stop_gradient(wrench) + (soft - jax.lax.stop_gradient(soft))


class _Places(NamedTuple):
    """Which points touch, how deep, and the depth that derivatives feel."""

    touch: Bool[Array, " points"]
    depth: Float[Array, " points"]
    felt: Float[Array, " points"]
