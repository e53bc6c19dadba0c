"""Contact by springs, dampers and friction that are functions of the state."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import is_single
from jdyn.array.dot import dot
from jdyn.contact.colliders import Colliders
from jdyn.contact.contact import Contact, PointForces, SmoothForces, TouchingPoints
from jdyn.contact.kinks import Kinks, KinkSlopes, parting
from jdyn.contact.laws import ContactLaw, HuntCrossley
from jdyn.contact.many_pairs import warn_of_many_pairs
from jdyn.contact.materials import (
    Material,
    PairMaterials,
    check_materials,
    check_nearest,
    check_numbers,
    pair_materials,
    refuse_rigid_pairs,
    resist_turning,
)
from jdyn.contact.moving_points import MovingPoints
from jdyn.contact.nearing import time_to_pass
from jdyn.contact.placed_pairs import of_bodies
from jdyn.contact.points import Overlap
from jdyn.contact.stiffening import Stiffening
from jdyn.dynamics.energy import energy_of_motion
from jdyn.dynamics.kinematics import joint_kinematics, poses_and_velocities
from jdyn.geometry import Separation
from jdyn.model import WORLD, Model, take_rows

# Of the way to a touch, what a step goes that leads there: its stages are not exact, and what they find beyond it would
# spoil the step.
BEFORE = 0.95
# Of a momentum, what springs may give in the first step after a touch. A step that begins so shortly before a touch
# ends at it, but for those that begin within the last tenth of this time.
GIVEN, NEAR = 1e-2, 0.1
# Bodies count with this share of the mass of all at least.
LIGHT = 1e-4
# Derivatives know of kinks within steps whose square is at most so many times mass over stiffness. What the start of a
# longer one says of distances within it is worth nothing.
SOFT = 3.0
# Where steps are located, what touches may pull so far beyond the end of contact [m]: ends of steps miss it by less.
BEYOND = 1e-4
# The longest step where shapes touch, by √(m / k) over the root of rounding; none in double precision, with which it
# would take hours.
LONG = 0.1
# Forces of steps stand for those of states which they differ from by no more than so many roundings of positions, of
# each joint: at rest mostly by one or two, in a few rows of ten minutes by ten.
ROUNDINGS = 12
# Steps may overshoot at such speeds [m/s]: at rest, rounding decides what touches.
SLOW = 1e-3


class CompliantContact(Contact):
    """Shapes press into each other, and push back: forces are functions of the state, which any solver integrates.

    Along the normal a law gives the force f by depth and its rate. Friction is μ f v / √(v² + v_s²) against the slip v:
    what sticks creeps, at a speed of v_s tan α / √(μ² − tan² α) on a slope of the angle α. Torques against turning
    about the normal and against rolling obey the same with lengths in the place of μ. Forces act in the middle between
    the two surfaces. A step is as long as its errors allow, and ends where the velocity at its start and the last
    acceleration foretell a touch, with `diffrax.PIDController`, the default. What they do not foretell, since its way
    turns, is not passed: no step is longer than it takes to reach a shape and half of the way through, at the speed of
    the step's start. What grazes an edge may lie within a step unseen.

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
        law: `jdyn.HuntCrossley()`, `jdyn.SpringDamper()` or `jdyn.TwoStiffnesses()`.
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
            `jdyn.SpringDamper`, have right derivatives. Each contact takes two events of `max_events`.
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

    law: ContactLaw = HuntCrossley()
    material: Material = Material()
    materials: Mapping[str, Material] = eqx.field(default_factory=dict)
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

    def between(self, colliders: Colliders) -> "CompliantForces":
        pairs = pair_materials(colliders, self.material, self.materials, self.law)
        dtype = colliders.sizes.dtype
        slip, spin = (jnp.asarray(x, dtype) for x in (self.slip_speed, self.spin_speed))
        colliders = dataclasses.replace(colliders, nearest=self.nearest)
        reach = None if self.gradient_reach is None else jnp.asarray(self.gradient_reach, dtype)
        turning = resist_turning(colliders, self.material, self.materials)
        return CompliantForces(colliders, self.law, pairs, slip, spin, turning, reach, self.located)


class CompliantForces(SmoothForces):
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
        start: What is known where a step begins; None for forces of no step.
        here: What is known where a force is asked for; None where that is to be found.
        kink_slopes: What derivatives of a step need across its kinks; None for forces of none.
        stiffening: What they need where friction becomes stiff; None for forces of none.
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
    here: MovingPoints | None = None
    kink_slopes: KinkSlopes | None = None
    stiffening: Stiffening | None = None

    def near(self, model: Model, q: Float[Array, " nq"], seen: MovingPoints | None = None) -> "CompliantForces":
        """With what is known there, which is found once for all that asks about the start of a step. What needs it
        without derivatives takes them away.

        Where steps are located, points touch throughout a step or not at all. Then forces have no kink within it,
        though its end is beyond the kink by its error: else derivatives would be those of the wrong side.
        """
        start = MovingPoints.at(model, self.colliders, q) if seen is None else seen.clad(model, self.colliders)
        return dataclasses.replace(self, start=start)

    def seen(self, model: Model, q: Float[Array, " nq"]) -> MovingPoints:
        return MovingPoints.at(model, self.colliders, q).bare()

    def there(self, model: Model, seen: MovingPoints) -> "CompliantForces":
        return dataclasses.replace(self, here=seen.clad(model, self.colliders))

    def force(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized forces [N m or N]."""
        here = MovingPoints.at(model, self.colliders, q) if self.here is None else self.here
        touching = self._touching(here, v)
        return here.generalized(touching.torque, touching.force)

    def overshot(
        self, model: Model, q0: Float[Array, " nq"], q1: Float[Array, " nq"], v1: Float[Array, " nv"]
    ) -> Bool[Array, ""]:
        """Tell whether a step has gone too deep into points that it began apart from: their springs hold more energy
        than the mechanism's motion at its end. Points move with their bodies, since looking for others takes long to
        compile.

        Then the step is longer than these springs take to stop what arrives. Error estimates may miss that: stages
        without weight in them throw the following stages out of the contact again.
        """
        v1 = model.expand_velocity(v1)
        poses, moved = poses_and_velocities(model, joint_kinematics(model, model.expand(q1)), v1)
        start = self._at_start(model, q0)
        depth = -jnp.where(start.apart, jnp.minimum(start.carried(self.colliders, poses), 0), 0)
        stiffness, dissipation, _ = self.materials.at(start.found, start.pairs)
        springs = jnp.sum(self.law.force(depth, jnp.zeros_like(depth), stiffness, dissipation) * depth) / 2
        return springs > energy_of_motion(model, moved, v1) + SLOW**2 / 2 * jnp.sum(model.inertias.mass)

    def longest_step(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
    ) -> Scalar:
        """Until shortly before the first touch, by gaps d that close with d = u t + g t² / 2, or the time after a touch
        in which springs give a share of a momentum. How points move on bodies is left out of g. Where shapes touch, in
        single precision, as long as rounding of forces cannot part them within the step, some hundred times √(m / k).
        Nor is any shape passed whose way turns."""
        start = self._at_start(model, q)
        gap, exists = start.distance, start.exist
        speed, growth = -parting(jax.vmap(start.twists)(jnp.stack([v, a])), start.normal[None])
        square = speed**2 + 2 * growth * gap
        hits = (gap > 0) & (square > SLOW**2) & ((speed > 0) | (growth > 0))
        began = exists & (gap <= 0) & (speed > SLOW)
        arriving = jnp.sqrt(jnp.where(hits, square, 1))
        until = _first_root(gap, speed, growth, arriving, hits)
        fast = jnp.where(began, speed, arriving)
        stiffness, *_ = self.materials.at(start.found, start.pairs)
        mass = self._lighter(model)[start.pairs.of_points]
        through = _through(fast, mass, stiffness, self.law.exponent)
        resolved = self._resolved(gap, exists, mass, stiffness)
        shortly = (until > NEAR * through) & (until <= through)
        length = jnp.where(shortly, until, jnp.maximum(BEFORE * until, through))
        length = jnp.where(began & (-gap < speed * through), through, jnp.where(hits, length, resolved))
        # No configuration tells shorter steps from none.
        least = jnp.finfo(q.dtype).eps * jnp.max(jnp.abs(q), initial=0)
        until_touch = jnp.min(jnp.where(length * fast > least, length, jnp.inf), initial=jnp.inf)
        numbers = None if isinstance(start.pairs.numbers, np.ndarray) else start.pairs.numbers
        passing = time_to_pass(start.motion, self.colliders, v, a, start.found, start.pairs.places, numbers)
        return jnp.minimum(until_touch, passing)

    def _resolved(self, gap: Array, exists: Array, mass: Array, stiffness: Array) -> Float[Array, " points"]:
        """Longest step where shapes touch, as far as single precision resolves their forces."""
        eps = jnp.finfo(gap.dtype).eps
        if not is_single(gap.dtype):
            return jnp.full_like(gap, jnp.inf)
        touch = exists & (gap < 0) & (stiffness > 0)
        slope = jnp.where(touch, stiffness * jnp.where(touch, -gap, 1) ** (self.law.exponent - 1), 1)
        return jnp.where(touch, LONG * jnp.sqrt(mass / (eps * slope)), jnp.inf)

    def _lighter(self, model: Model) -> Float[Array, " pairs"]:
        """Mass of the lighter body of each pair [kg]."""
        mass = model.inertias.mass
        # The world does not move.
        masses = jnp.concatenate([jnp.full(1, jnp.inf, mass.dtype), jnp.maximum(mass, LIGHT * jnp.sum(mass))])
        bodies = np.array([self.colliders.bodies(side) for side in (0, 1)], int)
        return jnp.min(take_rows(masses, bodies - WORLD), axis=0)

    def resting(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], moved: Array, gained: Array
    ) -> PointForces:
        start = self._at_start(model, q)
        # What repairs derivatives would change the slopes, which are those of an implicit stage: so these forces are
        # those that have changed its velocity.
        plain = dataclasses.replace(self, gradient_reach=None, kink_slopes=None, stiffening=None)

        def pushing(distance, v):
            there = start._replace(found=dataclasses.replace(start.found, distance=distance))
            touching = plain._touching(there, v)
            return PointForces(touching.force, touching.torque if self.turning else None)

        apart = parting(start.twists(moved), start.normal)
        forces, more = jax.jvp(pushing, (start.distance, v), (apart, gained))
        slots = start.pairs.slots(self.colliders)
        return jax.tree.map(lambda force, more: slots.spread(force + more, jnp.nan), forces, more)

    def resting_like(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> PointForces | None:
        return jax.eval_shape(self.resting, model, q, v, v, v) if is_single(q.dtype) else None

    def kept(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], known: PointForces
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        here = MovingPoints.at(model, self.colliders, q)
        points, (stiffness, dissipation, _) = self._touching(here, v), self.materials.at(here.found, here.pairs)
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
        start = self._at_start(model, q)
        places, numbers = self._places(start.found), self.materials.at(start.found, start.pairs)
        turning, moving = start.jacobians()
        J = turning.above(moving) if self.turning else moving
        by_depth, by_twist = jax.vmap(jax.jacfwd(self._wrench, (1, 2)))(
            start.normal, places.depth, J.velocities(v), *numbers
        )
        by_depth = jnp.where(places.touch[:, None], by_depth, 0)
        # Moving along the normal takes depth away.
        along = jnp.pad(start.normal, [(0, 0), (3 if self.turning else 0, 0)])
        return J.weighed(by_depth[:, :, None] * along[:, None]), J.weighed(-by_twist)

    def overlap(self, model: Model, q: Float[Array, " nq"]) -> Overlap:
        start = self._at_start(model, q)
        return Overlap.of(start.found.distance, self.colliders.least_sizes_of_pairs()[start.pairs.of_points])

    def _at_start(self, model: Model, q: Array) -> MovingPoints:
        return self.start or MovingPoints.at(model, self.colliders, q)

    @property
    def has_jumps(self) -> bool:
        return self.law.jumps and self._touch_within_steps

    @property
    def _touch_within_steps(self) -> bool:
        """Tell whether derivatives must know that points begin and cease to touch within a step."""
        return not self.located and self.gradient_reach is None

    def across(
        self, model: Model, t: tuple[Scalar, Scalar], h: Scalar, start: tuple[Array, Array], end: tuple[Array, Array]
    ) -> "CompliantForces":
        t, h = jax.lax.stop_gradient((t, h))
        stiffening = jax.lax.stop_gradient(self)._stiffening(*jax.lax.stop_gradient((model, start, h)))
        # The slope of a jump is not known.
        known = self._touch_within_steps and not self.law.jumps
        slopes = self._kink_slopes(model, t, h, start, end) if known else None
        return dataclasses.replace(self, kink_slopes=slopes, stiffening=stiffening)

    def within(self, t: Any) -> "CompliantForces":
        return self if self.kink_slopes is None else dataclasses.replace(self, kink_slopes=self.kink_slopes.within(t))

    def _kink_slopes(
        self, model: Model, t: tuple[Scalar, Scalar], h: Scalar, start: tuple[Array, Array], end: tuple[Array, Array]
    ) -> KinkSlopes:
        q, v = start
        kinks = jax.lax.stop_gradient(self)._kinks(*jax.lax.stop_gradient((model, h, start, end)))
        distances = self._at_start(model, q).found.distance
        near = jax.lax.stop_gradient(self._at_start(model, q))
        numbers = self.materials.at(near.found, near.pairs)

        def pressed(depth):
            return jax.vmap(self._wrench)(near.normal, depth, kinks.twists, *numbers)

        _, stiffness = jax.jvp(pressed, (jnp.zeros_like(distances),), (jnp.ones_like(distances),))
        return KinkSlopes.of(kinks, t, distances, h * parting(self._twists(near, v), near.normal), stiffness)

    def _kinks(self, model: Model, h: Scalar, start: tuple[Array, Array], end: tuple[Array, Array]) -> Kinks:
        here, there = self._at_start(model, start[0]), MovingPoints.at(model, self.colliders, end[0])
        gaps, normals = (here.distance, there.distance), (here.normal, there.normal)
        twists, pair = (self._twists(here, start[1]), self._twists(there, end[1])), here.pairs.of_points
        stiffness, *_ = self.materials.at(here.found, here.pairs)
        soft = stiffness * h**2 <= SOFT * self._lighter(model)[pair]
        known = soft & here.exist & there.exist & jnp.asarray(pair == there.pairs.of_points)
        return Kinks.between(gaps, normals, twists, h, known)

    def _stiffening(self, model: Model, start: tuple[Array, Array], h: Scalar) -> Stiffening:
        near = self._at_start(model, start[0])
        depth, numbers = self._places(near.found).depth, self.materials.at(near.found, near.pairs)
        slopes = jax.vmap(jax.jacfwd(self._wrench, 2))(near.normal, depth, self._twists(near, start[1]), *numbers)
        pair = near.pairs.of_points
        return Stiffening(slopes, self._lighter(model)[pair] / jnp.abs(h), jnp.asarray(pair))

    def points(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        """The forces at all points, and the number of each point's pair."""
        here = MovingPoints.at(model, self.colliders, q)
        return self._touching(here, v), here.pairs.of_points

    def _touching(self, here: MovingPoints, v: Array) -> TouchingPoints:
        places, numbers = self._places(here.found), self.materials.at(here.found, here.pairs)
        twists, others = self._twists(here, v), []
        if self.stiffening is not None:
            start = jax.vmap(Stiffening.of)(self.stiffening, jnp.asarray(here.pairs.of_points))
            twists, held = jax.vmap(self._felt)(start, here.normal, places.depth, twists, *numbers)
            others.append(held)
        if self.kink_slopes is not None:
            others.append(self.kink_slopes.force(places.touch))
        wrench = jax.vmap(self._straight_through)(places.felt, here.normal, places.depth, twists, *numbers)
        wrench = sum(others, start=wrench)
        force = wrench[:, -3:]
        torque = wrench[:, :3] if self.turning else jnp.zeros_like(force)
        return TouchingPoints(here.position, here.normal, places.depth, force, torque)

    def _twists(self, points: MovingPoints, v: Array) -> Float[Array, "points k"]:
        """Twists of second bodies relative to first ones, as far as `turning` says."""
        twists = points.twists(v)
        return twists if self.turning else twists[:, 3:]

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
        if self.kink_slopes is not None:
            felt = self.kink_slopes.felt(distance, depth)
        return _Places(touch, depth, jnp.where(exist, felt, 0))

    def _straight_through(
        self, felt: Scalar, normal: Array, depth: Scalar, twist: Array, stiffness: Scalar, dissipation: Scalar,
        friction: Array,
    ) -> Float[Array, " k"]:  # fmt: skip
        """The wrench of the depth, with the derivatives of that of the depth that is felt. From a distance they leave
        friction out: steps are not chosen for its slopes, and derivatives would grow without bound."""
        rest = twist, stiffness, dissipation
        wrench = self._wrench(normal, depth, *rest, friction)
        if self.gradient_reach is not None:
            near, far = (self._wrench(normal, x, *rest, jnp.zeros_like(friction)) for x in (depth, felt))
            soft = wrench + (far - near)
        elif self.kink_slopes is not None:
            soft = self._wrench(normal, felt, *rest, friction)
        else:
            return wrench
        # The difference is zero, exactly.
        return jax.lax.stop_gradient(wrench) + (soft - jax.lax.stop_gradient(soft))

    def _wrench(
        self, normal: Array, depth: Scalar, twist: Array, stiffness: Scalar, dissipation: Scalar, friction: Array
    ) -> Float[Array, " k"]:
        """Torque and force on the second shape at one point, by its twist relative to the first one there."""
        parting, slip = _parting_and_slip(normal, twist)
        pressing = self.law.force(depth, -parting, stiffness, dissipation)
        sliding, spinning, rolling = friction * pressing
        force = pressing * normal - sliding * _bounded(slip, self.slip_speed)
        if not self.turning:
            return force
        turning = twist[:3]
        spin = dot(turning, normal) * normal
        torque = -spinning * _bounded(spin, self.spin_speed) - rolling * _bounded(turning - spin, self.spin_speed)
        return jnp.concatenate([torque, force])

    def _felt(
        self, start: Stiffening, normal: Array, depth: Scalar, twist: Array, stiffness: Scalar, dissipation: Scalar,
        friction: Array,
    ) -> tuple[Float[Array, " k"], Float[Array, " k"]]:  # fmt: skip
        """The twist and a wrench with the derivatives that a step stands at one point."""
        parting, slip = _parting_and_slip(normal, twist)
        sliding = friction[0] * self.law.force(depth, -parting, stiffness, dissipation)
        across = sliding / jnp.sqrt(dot(slip, slip) + self.slip_speed**2)
        return start.felt(twist, *jax.lax.stop_gradient((normal, _bounded(slip, self.slip_speed), across)))


class _Places(NamedTuple):
    """Which points touch, how deep, and the depth that derivatives feel."""

    touch: Bool[Array, " points"]
    depth: Float[Array, " points"]
    felt: Float[Array, " points"]


def _first_root(gap: Array, speed: Array, growth: Array, arriving: Array, wanted: Array) -> Array:
    """When d − u t − g t² / 2 = 0 for the first time, by the speed then; in the form in which nothing cancels."""
    closing = speed > 0
    above, below = jnp.where(closing, 2 * gap, arriving - speed), jnp.where(closing, speed + arriving, growth)
    return above / jnp.where(wanted, below, 1)


def _through(speed: Array, mass: Array, stiffness: Array, exponent: float) -> Array:
    """The time after a touch in which the spring k dᵉ takes `GIVEN` of the momentum of a mass [s]."""
    power = exponent + 1
    return (power * GIVEN * mass * speed ** (1 - exponent) / stiffness) ** (1 / power)


def _parting_and_slip(normal: Array, twist: Array) -> tuple[Scalar, Float[Array, "3"]]:
    """Speed at which surfaces part at a point, and the velocity at which they move past each other."""
    moving = twist[-3:]
    parting = dot(moving, normal)
    return parting, moving - parting * normal


def _bounded(x: Array, speed: Scalar) -> Array:
    """x / √(x² + s²): nearly a unit vector where x is large against s."""
    return x / jnp.sqrt(dot(x, x) + speed**2)
