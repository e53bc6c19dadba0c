"""Contact of rigid shapes: forces that let nothing overlap, with dry friction, and impacts at instants."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import with_fields
from jdyn.contact.colliders import Colliders
from jdyn.contact.contact import Contact, ContactForces, GradientPolicy, PointForces, StepPolicy, TouchingPoints
from jdyn.contact.laws import parting
from jdyn.contact.materials import check_nearest, check_numbers
from jdyn.contact.moving_points import MovingPoints
from jdyn.contact.points import warn_of_many_pairs
from jdyn.contact.rigid_materials import RigidMaterial, RigidPairs, check_rigid_materials
from jdyn.geometry.directions import length_and_unit
from jdyn.impacts import PoissonTogether, TogetherLaw
from jdyn.impulses import ConeProblem, ConeSolver, ContactMode, GaussSeidel
from jdyn.model import Model, Name, Units

# Points slide within a step that are so many rest speeds fast. What is held where the step begins is so up to the root
# of the rest speed in m/s: errors of stages are of order 2, and half of all digits has to do for them.
SLIDING = 2.0
# Points touch whose distance is less than this share of the size of their shapes.
TOUCHING = 1e-4
# A rest speed that is not stated is so many times what tolerances allow at 1 m/s; none is smaller than this power of
# rounding [m/s]. The tolerances by default are those of `jdyn.simulate`.
RESTING, ROUNDING, BY_DEFAULT = 30.0, 0.6, 1e-6
# Errors of steps let touching shapes drift apart or into each other. Forces bring them back at this rate [1/s].
RETURN = 20.0

Vector = Float[Array, " nv"]
PerPoint = Float[Array, " points"]
Vectors = Float[Array, "points 3"]


class RigidContact(Contact):
    """Rigid shapes with dry friction: no overlap, no stiffness, impacts at instants.

    Where shapes touch, forces keep accelerations from letting them overlap, and friction holds what sticks and opposes
    what slides by Coulomb's law; they are found as complementarity on cones, through all joints and constraints, in
    every stage of any solver. Between impacts no force is stiff. Shapes that meet collide at the instant, all points at
    once, by a law of impact. Points that approach more slowly than the rest speed do not bounce: so ends a series of
    ever smaller bounces.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> builder.add_shape("world", "plane", (0, 0), role="collision")
    >>> model = builder.build()
    >>> start = model.neutral().at[2].set(0.3)
    >>> contact = jdyn.RigidContact(restitution=0.5, friction=0.3)
    >>> motion = jdyn.simulate(model, start, jnp.zeros(6), 2.0, contact=contact)
    >>> print(f"{motion.q[-1, 2]:.4f}")
    0.1000

    Where a velocity makes friction so large that no acceleration is possible (Painlevé), and where an impact has no
    answer, numbers are not finite and the simulation ends with a code; with `jdyn.Result.overlap` where shapes overlap
    at the start. Motions go forwards in time alone. Derivatives are exact: impacts, and instants at which points stop
    to slide, are events. Where static friction gives way is none, of which differentiated simulations warn.

    Source: Stewart, Trinkle, An implicit time-stepping scheme for rigid body dynamics with inelastic collisions and
    Coulomb friction, 1996, and thesis 6.5, for complementarity of forces and accelerations; Mirtich, Canny,
    Impulse-based simulation of rigid bodies, 1995, for impacts of articulated bodies.

    Attributes:
        restitution: e, from 0 to 1, of shapes that `materials` does not name.
        friction: Coefficient of friction μ of these; those of the shapes, as files have them, if None.
        static_friction: That up to which friction holds what sticks, where it is more than that of what slides; None
            where it is the same.
        materials: By name of shape or, for all shapes of a link, of link.
        law: Law of impact.
        rest_speed: Up to which points do not bounce, and do not slide where friction can hold them [m/s]. Errors of
            steps have to be less; if left out, `jdyn.simulate` takes 30 times what its tolerances allow at 1 m/s.
        nearest: As `jdyn.CompliantContact` has it.
        solver: Of complementarity of forces and accelerations.

    Raises:
        ValueError: if a number is out of its range.

    Warns:
        ContactWarning: as `jdyn.CompliantContact` does, and where a simulation with static friction is differentiated.
    """

    reacts: ClassVar[bool] = True
    backwards: ClassVar[bool] = False
    units: ClassVar[Units] = {"restitution": "", "friction": "", "static_friction": "", "rest_speed": "m/s"}

    restitution: Scalar | float = 0.0
    friction: Scalar | float | None = None
    static_friction: Scalar | float | None = None
    materials: Mapping[Name, RigidMaterial] = eqx.field(default_factory=dict)
    law: TogetherLaw = PoissonTogether()
    rest_speed: Scalar | float | None = None
    nearest: int | None = eqx.field(static=True, default=None)
    solver: ConeSolver = GaussSeidel(rounds=100, sweeps=5)

    def __check_init__(self):
        check_rigid_materials(self.materials)
        RigidMaterial(self.restitution, self.friction, self.static_friction)
        if self.rest_speed is not None:
            check_numbers("rest_speed", self.rest_speed, lambda x: x > 0, "a positive number")
        check_nearest(self.nearest)

    def within(self, rtol: Any, atol: Any) -> "RigidContact":
        return self if self.rest_speed is not None else with_fields(self, rest_speed=RESTING * (rtol + atol))

    def check(self, colliders: Colliders):
        warn_of_many_pairs(colliders, self.nearest)

    def between(self, colliders: Colliders) -> "RigidForces":
        default = RigidMaterial(self.restitution, self.friction, self.static_friction)
        pairs = RigidPairs.of(colliders, default, self.materials)
        rest = RESTING * BY_DEFAULT if self.rest_speed is None else self.rest_speed
        rest = jnp.asarray(rest, colliders.sizes.dtype)
        rest = jnp.maximum(rest, float(jnp.finfo(rest.dtype).eps) ** ROUNDING)
        shapes = dataclasses.replace(colliders, nearest=self.nearest)
        return RigidForces(shapes, pairs, self.law, rest, self.solver)


class Reaction(NamedTuple):
    """Forces of rigid contact at a state.

    Attributes:
        a: By which they change accelerations [rad/s² or m/s²].
        tau: Generalized forces [N m or N].
        points: At all points.
    """

    a: Vector
    tau: Vector
    points: PointForces


class RigidPoints(NamedTuple):
    """Points where rigid shapes may touch, in one state.

    Attributes:
        points: In world axes.
        axes: Two tangents and the normal of each.
        speeds: Of second bodies relative to first ones along these axes [m/s].
        J: Jacobian of the speeds.
        gained: How fast the speeds change if no velocity does [m/s²].
        touch: Which points have a distance that counts as none.
        numbers: Restitution and friction.
    """

    points: MovingPoints
    axes: Float[Array, "points 3 3"]
    speeds: Vectors
    J: Float[Array, "points 3 nv"]
    gained: Vectors
    touch: Bool[Array, " points"]
    numbers: RigidPairs


class RigidForces(ContactForces):
    """`RigidContact` between the shapes of a model.

    Attributes:
        colliders: The shapes.
        pairs: Restitution and friction of pairs.
        law: Law of impact.
        rest_speed: Up to which points do not bounce [m/s].
        solver: Of forces.
        begins: Points where the step begins; None outside of steps, and where rows are those of the nearest pairs.
    """

    reacts: ClassVar[bool] = True

    colliders: Colliders
    pairs: RigidPairs
    law: TogetherLaw
    rest_speed: Scalar
    solver: ConeSolver
    begins: "RigidStep | None" = None

    def force(self, model: Model, q: Float[Array, " nq"], v: Vector) -> Vector:
        """Zero: forces follow from those of all others, see `reaction`."""
        return jnp.zeros_like(v)

    def points(
        self, model: Model, q: Float[Array, " nq"], v: Vector
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        points = MovingPoints.at(model, self.colliders, q)
        none = jnp.zeros_like(points.normal)
        depth = jnp.maximum(-points.distance, 0)
        return TouchingPoints(points.position, points.normal, depth, none, none), points.pairs.of_points

    @property
    def gradient_policy(self) -> GradientPolicy:
        return RigidGradients(self.pairs.static_friction is not None)

    def begun(self, model: Model, q: Float[Array, " nq"], v: Vector) -> "RigidForces":
        """Forces of a step: what slides where it begins does so until an event, since friction jumps where it stops;
        what is held there is held in all stages, whose states have larger errors than the end of the step."""
        if self.colliders.nearest is not None:
            # Rows are those of other pairs in other stages.
            return self
        points = MovingPoints.at(model, self.colliders, q)
        speed, slip = jnp.abs(parting(points.twists(v), points.normal)), slips(points, v)
        held = self.touch(points) & (speed <= self.rest_speed)
        slide = jax.vmap(length_and_unit)(slip)[0] > self.rest_speed
        return dataclasses.replace(self, begins=RigidStep(self.colliders, slip, slide, held))

    def step_policy(self, model: Model, q: Float[Array, " nq"]) -> StepPolicy:
        return StepPolicy() if self.begins is None else self.begins

    def at(self, model: Model, q: Float[Array, " nq"], v: Vector) -> RigidPoints:
        """Points in a state."""

        def moving(q):
            points = MovingPoints.at(model, self.colliders, q)
            return (points.twists(v)[:, 3:], points.normal), points

        (u, _), (du, turning), points = jax.jvp(moving, (q,), (model.rate(q, v),), has_aux=True)
        axes = points.axes
        # Where normals turn, so do the rates of distances.
        gained = jnp.einsum("pij,pj->pi", axes, du).at[:, 2].add(parting(u, turning))
        touch = self.touch(points)
        speeds = jnp.einsum("pij,pj->pi", axes, u)
        numbers = self.pairs.at(points.pairs.of_points)
        return RigidPoints(points, axes, speeds, points.rows(v), gained, touch, numbers)

    def changing(self, model: Model, q: Float[Array, " nq"], v: Vector) -> tuple[PerPoint, PerPoint]:
        """Numbers that fall through zero where points collide, and where they stop to slide.

        The first are distances; those of points that touch and do not approach are more by what counts as touching, so
        that drift is no collision. The others are speeds of such points less the rest speed, and NaN for points that do
        not touch, since what begins to touch does not stop to slide.
        """
        points = MovingPoints.at(model, self.colliders, q)
        speed = parting(points.twists(v), points.normal)
        stays = self.touch(points) & (speed >= -self.rest_speed)
        distance = jnp.where(points.exist, points.distance + jnp.where(stays, self.near(points), 0), 1)
        speed, _ = jax.vmap(length_and_unit)(slips(points, v))
        return distance, jnp.where(stays, speed - self.rest_speed, jnp.nan)

    def time_to_stop(self, model: Model, q: Float[Array, " nq"], v: Vector, a: Vector) -> Scalar:
        """Time until a point that slides slows down to half of the rest speed, with accelerations a [s]: a step of this
        length ends where sliding has stopped, and has not turned."""

        def sliding(q, v):
            points = MovingPoints.at(model, self.colliders, q)
            return slips(points, v), points

        slip, rate, points = jax.jvp(sliding, (q, v), (model.rate(q, v), a), has_aux=True)
        speed, direction = jax.vmap(length_and_unit)(slip)
        slides = self.touch(points) & (speed > self.rest_speed)
        slower = jnp.where(slides, -parting(rate, direction), 0)
        times = (speed - self.rest_speed / 2) / jnp.where(slower > 0, slower, 1)
        return jnp.min(jnp.where(slower > 0, times, jnp.inf), initial=jnp.inf)

    def overlaps(self, model: Model, q: Float[Array, " nq"]) -> Bool[Array, ""]:
        """Tell whether shapes overlap by more than what counts as touching."""
        points = MovingPoints.at(model, self.colliders, q)
        return jnp.any(points.exist & (points.distance < -self.near(points)))

    def touch(self, points: MovingPoints) -> Bool[Array, " points"]:
        """Tell which points have a distance that counts as none."""
        return points.exist & (jax.lax.stop_gradient(points.distance) <= self.near(points))

    def near(self, points: MovingPoints) -> PerPoint:
        """Distances up to which points touch, with what they drift at the rest speed [m]."""
        size = self.colliders.least_sizes_of_pairs()[points.pairs.of_points]
        return TOUCHING * size + self.rest_speed / RETURN

    def reaction(
        self, model: Model, q: Float[Array, " nq"], v: Vector, a: Vector, respond: Callable[[Vector], Vector]
    ) -> Reaction:
        """Forces at a state.

        Args:
            model: The mechanism.
            q, v: The state.
            a: Accelerations without these forces.
            respond: From generalized forces to the accelerations that they add.
        """
        here, still = self.at(model, q, v), self.rest_speed
        speed, direction = jax.vmap(length_and_unit)(here.speeds[:, :2])
        slide, held = (speed > still, False) if self.begins is None else (self.begins.slide, self.begins.held)
        fastest = jnp.where(held, jnp.sqrt(still), still)
        holds = (here.touch | held) & (jnp.abs(here.speeds[:, 2]) <= fastest)
        J, moved, G = delassus(here.J, holds, respond)
        # Accelerations without forces, with what brings points back where they are off.
        distance = jnp.where(holds, here.points.distance, 0)
        b = (J @ a).reshape(here.speeds.shape) + here.gained + RETURN * here.speeds
        b = b.at[:, 2].add(RETURN * here.speeds[:, 2] + RETURN**2 * distance)
        b = jnp.where(holds[:, None], b, jnp.array([[0.0, 0.0, 1.0]], b.dtype))
        # Friction is known where points slide: one unknown is left there, along the edge of the cone.
        slides = holds & (slide | (speed > jnp.where(held, fastest, SLIDING * still)))
        alone = jnp.eye(3, dtype=b.dtype)[None]
        _, friction, static = here.numbers
        edge = jnp.concatenate([-friction[:, None] * direction, jnp.ones_like(speed)[:, None]], axis=1)
        P = jnp.where(slides[:, None, None], edge[:, :, None] * alone[:, 2:], alone)
        G = jnp.einsum("iajb,jbc->iajc", G, P)

        def solved(friction):
            return self.solver.solve(ConeProblem(G, b, jnp.where(slides, 0, friction), model.nv))

        found = solved(friction if static is None else static)
        if static is not None:
            gives = slides | (found.mode == ContactMode.SLIDES)
            found = solved(jnp.where(gives, friction, static))
        gamma = jnp.einsum("iab,ib->ia", P, found.gamma)
        return self.as_reaction(here, jnp.where(found.usable, gamma, jnp.nan), moved, J)

    def as_reaction(
        self, here: "RigidPoints", gamma: Vectors, moved: Float[Array, "rows nv"], J: Float[Array, "rows nv"]
    ) -> Reaction:
        """Forces γ along the axes of points, by what each row of `delassus` does."""
        force = jnp.einsum("pij,pi->pj", here.axes, gamma)
        slots = here.points.pairs.slots(self.colliders)
        return Reaction(gamma.ravel() @ moved, gamma.ravel() @ J, PointForces(slots.spread(force), None))


class RigidGradients(GradientPolicy):
    """Gradient policy of `RigidContact`: derivatives know impacts and where sliding stops, which are events.

    Attributes:
        static: Whether static friction is more than that of what slides.
    """

    static: bool = eqx.field(static=True)

    @property
    def has_jumps(self) -> bool:
        return self.static

    @property
    def about_jumps(self) -> str:
        return (
            "static friction that gives way is a jump within a step, and derivatives leave out that the instant "
            "changes; they are right where what sticks goes on to"
        )


class RigidStep(StepPolicy):
    """Step policy of `RigidContact`, and points where a step begins: none goes beyond where points stop to slide.

    Attributes:
        colliders: The shapes.
        slip: Velocities at which second bodies slide along first ones [m/s].
        slide: Which points slide, and so do until the step ends.
        held: Which touch and do not part.
    """

    colliders: Colliders
    slip: Vectors
    slide: Bool[Array, " points"]
    held: Bool[Array, " points"]

    def overshot(self, model: Model, q: Float[Array, " nq"], v: Vector) -> Bool[Array, ""]:
        slip = slips(MovingPoints.at(model, self.colliders, q), v)
        return jnp.any(self.slide & self.held & (parting(slip, self.slip) < 0))


def slips(points: MovingPoints, v: Vector) -> Vectors:
    """Velocities at which second bodies slide along first ones [m/s]."""
    u = points.twists(v)[:, 3:]
    return u - parting(u, points.normal)[:, None] * points.normal


def delassus(
    J: Float[Array, "points 3 nv"], act: Bool[Array, " points"], respond: Callable[[Vector], Vector]
) -> tuple[Float[Array, "rows nv"], Float[Array, "rows nv"], Float[Array, "points 3 points 3"]]:
    """The rows of points that act, zero of others; M⁻¹ Jᵀ, transposed; and the Delassus matrix J M⁻¹ Jᵀ."""
    shape = J.shape[:2]
    J = jnp.where(act[:, None, None], J, 0).reshape(3 * len(J), -1)
    moved = jax.vmap(respond)(J)
    return J, moved, (J @ moved.T).reshape(2 * shape)
