"""Contact as the minimum of a convex function of the velocity, step by step."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Scalar

from jdyn.contact.colliders import Colliders
from jdyn.contact.contact import (
    Contact,
    GradientPolicy,
    PointForces,
    StartOfSteps,
    StepPolicy,
    StepwiseForces,
    TouchingPoints,
)
from jdyn.contact.convex.in_planes import split
from jdyn.contact.convex.lagged import LaggedContact
from jdyn.contact.convex.turning import Turning
from jdyn.contact.directional import Weights, weighed_rows
from jdyn.contact.kinks import Kinks, KinkSlopes
from jdyn.contact.laws import HuntCrossley, parting
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
from jdyn.contact.points import Overlap, Slots, warn_of_many_pairs
from jdyn.impulses import ConvexLaw, Friction, PointJacobian, Rows
from jdyn.impulses.friction import row_dot
from jdyn.model import Model, Name, Scaling, Units

# The law that `LaggedContact` and `_Near` implement.
LAW = HuntCrossley()

# By how much rounding of a velocity may move something within a step [m].
ROUNDED = 1e-6

Vector = Float[Array, " nv"]
Numbers = Float[Array, " points"]


class ConvexContact(Contact):
    """Stiff shapes with dry friction, in steps as long as the motion between impacts allows.

    The law is f = k depth (1 − c u)₊ along the normal, where u is the speed apart, and friction up to μ f beside it,
    which holds what sticks: it creeps by less than `slip_speed`, and what slides bears the whole of μ f. Torques
    against turning about the normal and against rolling obey the same with lengths in the place of μ.
    Of pairs that have two coefficients along two tangents (`jdyn.Builder.include`), friction lies on the ellipse of
    both.

    Each step of `jdyn.solvers.ConvexEuler`, which `jdyn.simulate` takes by itself, finds the velocity at its end as the
    minimum of a strictly convex function. So it is found from any start. Constraints, ends of joints' ranges and dry
    friction in joints are terms of the same function. At rest and in steady motion neither stiffness nor the slip
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
        material: Of shapes that `materials` does not name.
        materials: By name of shape or, for all shapes of a link, of link.
        slip_speed: [m/s]. In single precision long steps take a larger one, as far as rounding asks for it.
        spin_speed: The same for turning and rolling [rad/s].
        nearest: As `jdyn.CompliantContact` has it.

    Raises:
        ValueError: if a speed is not positive, a material belongs to nothing, or shapes that may touch are both rigid.

    Warns:
        ContactWarning: as `jdyn.CompliantContact` does.
    """

    stepwise: ClassVar[bool] = True
    directional: ClassVar[bool] = True
    units: ClassVar[Units] = {"slip_speed": "m/s", "spin_speed": "1/s"}

    material: Material = Material()
    materials: Mapping[Name, Material] = eqx.field(default_factory=dict)
    slip_speed: Scalar | float = 1e-6
    spin_speed: Scalar | float = 1e-5
    nearest: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_numbers("slip_speed", self.slip_speed, lambda x: x > 0, "a positive number")
        check_numbers("spin_speed", self.spin_speed, lambda x: x > 0, "a positive number")
        check_nearest(self.nearest)
        check_materials(self.material, self.materials, LAW)

    def check(self, colliders: Colliders):
        refuse_rigid_pairs(colliders, self.material, self.materials)
        warn_of_many_pairs(colliders, self.nearest)

    def scaled(self, scaling: Scaling) -> Self:
        """The same between scaled shapes."""
        return scaling.numbers(self, **scaled_materials(self, LAW, scaling))

    def between(self, colliders: Colliders) -> "ConvexForces":
        materials = pair_materials(colliders, self.material, self.materials, LAW)
        slip, spin = (jnp.asarray(x, colliders.sizes.dtype) for x in (self.slip_speed, self.spin_speed))
        turning = resist_turning(colliders, self.material, self.materials)
        return ConvexForces(dataclasses.replace(colliders, nearest=self.nearest), materials, slip, spin, turning)


class ConvexForces(StepwiseForces):
    """`ConvexContact` between the shapes of a model.

    Attributes:
        colliders: The shapes.
        materials: Of pairs.
        slip_speed, spin_speed: Up to which friction holds [m/s, rad/s].
        turning: Whether friction against turning or rolling may be other than zero.
        kink_slopes: What derivatives of a step of `jdyn.solvers.ConvexEuler` need across its kinks, but for friction
            against turning and rolling; None where there is none.
    """

    colliders: Colliders
    materials: PairMaterials
    slip_speed: Scalar
    spin_speed: Scalar
    turning: bool = eqx.field(static=True)
    kink_slopes: KinkSlopes | None = None

    def at_time(self, t: Any) -> Self:
        return self if self.kink_slopes is None else dataclasses.replace(self, kink_slopes=self.kink_slopes.at_time(t))

    def force(self, model: Model, q: Float[Array, " nq"], v: Vector) -> Vector:
        """Generalized forces at a state [N m or N]."""
        near = self.at_points(MovingPoints.at(model, self.colliders, q))
        return sum((J.generalized(force) for J, force in near.forces(v)), start=jnp.zeros_like(v))

    def points(
        self, model: Model, q: Float[Array, " nq"], v: Vector
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        """The forces at all points, and the number of each point's pair."""
        points = MovingPoints.at(model, self.colliders, q)
        (_, force), *turning = self.at_points(points).forces(v)
        torque = turning[0][1] if turning else jnp.zeros_like(force)
        depth = jnp.maximum(-points.distance, 0)
        return TouchingPoints(points.position, points.normal, depth, force, torque), points.pairs.of_points

    def step_policy(self, model: Model, q: Float[Array, " nq"]) -> StepPolicy:
        return ConvexSteps()

    @property
    def gradient_policy(self) -> GradientPolicy:
        return ConvexGradients()

    def at_start(self, model: Model, q: Float[Array, " nq"], v: Vector, v_rate: Vector) -> "ConvexStart":
        def moving(q, v):
            points = MovingPoints.at(model, self.colliders, q)
            return (points.twists(v), points.normal), self.at_points(points)

        (twists, _), (rates, turning), near = jax.jvp(moving, (q, v), (model.rate(q, v), v_rate), has_aux=True)
        # Where normals turn, so do distances' rates.
        faster = parting(twists, turning)
        rates = jnp.concatenate([rates[:, :3], rates[:, 3:] + faster[:, None] * near.normal], axis=1)
        return ConvexStart(near, v, rates, self.kink_slopes)

    def recorded(
        self, model: Model, q: Float[Array, " nq"], v: Vector, known: PointForces
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        points, numbers = self.points(model, q, v)
        # They are polynomials through those of substeps, and may pull where contact begins within a step.
        pressing = row_dot(known.force, points.normal)[..., None]
        pushing = dataclasses.replace(known, force=known.force - jnp.minimum(pressing, 0) * points.normal)
        return pushing.at(points), numbers

    def forces_like(self, model: Model, q: Float[Array, " nq"], v: Vector) -> PointForces:

        def forces():
            near = self.at_points(MovingPoints.at(model, self.colliders, q))
            force, *turning = (near.slots.spread(force) for _, force in near.forces(v))
            return PointForces(force, turning[0] if turning else None)

        return jax.eval_shape(forces)

    def at_points(self, points: MovingPoints) -> "_Near":
        """Numbers of the law at points."""
        stiffness, dissipation, friction, weights = self.materials.at(points)
        J_turning, J = points.jacobians()
        return _Near(
            normal=points.normal,
            distance=points.distance,
            stiffness=jnp.where(points.exist, stiffness, 0),
            dissipation=dissipation,
            friction=friction,
            weights=weights,
            size=self.colliders.least_sizes_of_pairs()[points.pairs.of_points],
            slots=points.pairs.slots(self.colliders),
            slip_speed=self.slip_speed,
            spin_speed=self.spin_speed,
            J=J,
            J_turning=J_turning if self.turning else None,
        )


class ConvexSteps(StepPolicy):
    """Step policy of `ConvexContact`: ends of steps are within reach of the springs, and steps find out there what
    touches."""

    def longest(self, model: Model, v: Vector, a: Vector) -> Scalar:
        """Time for which rounding of what weight gives in a step does not move what rests: a second in single
        precision."""
        square = jnp.finfo(v.dtype).eps * jnp.sqrt(jnp.sum(model.gravity**2))
        return jnp.sqrt(ROUNDED / jnp.where(square > 0, square, 1)) + jnp.where(square > 0, 0, jnp.inf)


class ConvexGradients(GradientPolicy):
    """Gradient policy of `ConvexContact`: derivatives of steps of `jdyn.solvers.ConvexEuler` know of kinks within
    them."""

    def repaired(
        self,
        forces: Any,
        model: Model,
        t: tuple[Scalar, Scalar],
        h: Scalar,
        start: tuple[Array, Array],
        end: tuple[Array, Array],
    ) -> Any:
        (t, h), begin = jax.lax.stop_gradient((t, h)), MovingPoints.at(model, forces.colliders, start[0])
        near, here = forces.at_points(begin), jax.lax.stop_gradient(begin)
        after = MovingPoints.at(*jax.lax.stop_gradient((model, forces.colliders, end[0])))
        gaps, normals = (here.distance, after.distance), (here.normal, after.normal)
        twists = here.twists(start[1]), after.twists(end[1])
        known = here.exist & after.exist & jnp.asarray(here.pairs.of_points == after.pairs.of_points)
        kinks = jax.lax.stop_gradient(Kinks.between(gaps, normals, twists, h, known))
        stiffness = near.pressing(normals[0], kinks.twists)
        slopes = KinkSlopes.of(kinks, t, near.distance, h * parting(twists[0], normals[0]), stiffness)
        return dataclasses.replace(forces, kink_slopes=slopes)


class ConvexStart(StartOfSteps):
    """Start of steps of `ConvexContact`.

    Attributes:
        near: Points.
        v: Velocity of the model.
        rates: Of twists at points, if nothing accelerates.
        kink_slopes: As `ConvexForces` has them.
    """

    near: "_Near"
    v: Vector
    rates: Float[Array, "points 6"]
    kink_slopes: KinkSlopes | None

    @property
    def overlap(self) -> Overlap:
        return Overlap.of(self.near.distance, self.near.size)

    def rows(self, h: Scalar, A: Float[Array, "nv nv"]) -> list[Rows]:
        rows = self.near.impulses(self.v, h, A, h * self.rates)
        return rows if self.kink_slopes is None else self.near.with_kinks(rows, *self.kink_slopes.impulses(h))

    def forces(self, h: Scalar, gammas: Sequence[Array]) -> PointForces:
        force, *turning = (self.near.slots.spread(gamma / h) for gamma in gammas)
        return PointForces(force, turning[0] if turning else None)


class _Near(NamedTuple):
    """Points at which shapes may touch in one configuration; those that do not exist have no stiffness.

    Attributes:
        friction: For sliding [1], turning and rolling [m]; the larger ones where they depend on the direction.
        weights: How friction depends on the direction; None where it does not.
        size: The least one of the two shapes [m].
        slots: Places among the points of all pairs.
        slip_speed, spin_speed: Up to which friction holds [m/s, rad/s].
        J: Of the velocities of the points of second bodies relative to the first.
        J_turning: Of their angular velocities; None where nothing resists turning.
    """

    normal: Float[Array, "points 3"]
    distance: Numbers
    stiffness: Numbers
    dissipation: Numbers
    friction: Float[Array, "points 3"]
    weights: Weights | None
    size: Numbers
    slots: Slots
    slip_speed: Scalar
    spin_speed: Scalar
    J: PointJacobian
    J_turning: PointJacobian | None

    def pressing(self, normal: Float[Array, "points 3"], twists: Float[Array, "points 6"]) -> Float[Array, "points 3"]:
        """Force on the second body for each depth where contact begins, with friction [N/m]."""
        apart, slip = split(twists[:, 3:], normal)
        W = None if self.weights is None else self.weights.sliding
        slip = weighed_rows(W, slip)
        speed = jnp.maximum(jnp.sqrt(row_dot(slip, slip)), self.slip_speed)
        sliding = self.friction[:, 0] / speed
        pressing = self.stiffness * jnp.maximum(1 - self.dissipation * apart, 0)
        return pressing[:, None] * (normal - sliding[:, None] * weighed_rows(W, slip))

    def with_kinks(self, rows: list[Rows], due: Float[Array, "points 3"], met: Float[Array, "points 3"]) -> list[Rows]:
        """Rows with what all points get and those lose that touch: along the normal by the end of the step, beside it,
        for friction, by its start."""
        first, *others = rows
        along, beside = split(met, self.normal)
        due = due - jnp.where((self.distance < 0)[:, None], beside, 0)
        law = dataclasses.replace(first.law, kink=(due, along[:, None] * self.normal))
        return [dataclasses.replace(first, law=law), *others]

    def forces(self, v: Vector) -> list[tuple[PointJacobian, Float[Array, "points 3"]]]:
        """On the second bodies at a state, as a step without length has them, and torques where something resists
        turning."""

        def friction(J, bound, speed):
            speed = jnp.broadcast_to(speed, bound.shape)
            return Friction(bound, speed, speed)

        none = jnp.zeros((len(self.stiffness), 6), v.dtype)
        laws = self._laws(v, jnp.ones_like(self.slip_speed), jnp.zeros_like(self.stiffness), friction, none)
        return [(J, law.gamma(J.velocities(jnp.zeros_like(v)))) for law, J in laws]

    def impulses(self, v: Vector, h: Scalar, A: Float[Array, "nv nv"], gained: Float[Array, "points 6"]) -> list[Rows]:
        """Impulses of a step from a state, by the velocity at its end and by what twists gain without acceleration."""

        def friction(J, bound, speed):
            # Friction that rises more steeply with the slip would leave too few digits of A in the sum of both.
            stopped = bound * J.squares(1 / jnp.diag(A)) / 3
            return Friction(bound, jnp.maximum(speed, jnp.sqrt(jnp.finfo(bound.dtype).eps) * stopped), stopped)

        return [Rows(law, J) for law, J in self._laws(v, h, self.stiffness, friction, gained)]

    def _laws(
        self,
        v: Vector,
        h: Scalar,
        stiffness: Numbers,
        friction: Callable[..., Friction],
        gained: Float[Array, "points 6"],
    ) -> list[tuple[ConvexLaw, PointJacobian]]:
        """With the friction that a function makes of Jacobians, bounds and speeds up to which it holds."""
        # Of depth alone; negative where shapes are apart.
        springs = -self.stiffness * self.distance
        start = self.J.velocities(v)
        damping = 1 - self.dissipation * row_dot(start, self.normal)
        pressed = jnp.maximum(springs, 0) * jnp.maximum(damping, 0)
        sliding, spinning, rolling = (h * self.friction * pressed[:, None]).T
        against_sliding = friction(self.J, sliding, self.slip_speed)
        known = (h, self.normal, springs, stiffness, self.dissipation, against_sliding)
        of_slip, of_roll = (None, None) if self.weights is None else self.weights
        law = LaggedContact.from_start(*known, start, gained[:, 3:], of_slip)
        laws: list[tuple[ConvexLaw, PointJacobian]] = [(law, self.J)]
        if self.J_turning is not None:
            spin, roll = (friction(self.J_turning, bound, self.spin_speed) for bound in (spinning, rolling))
            turning = Turning.from_start(self.normal, spin, roll, self.J_turning.velocities(v), gained[:, :3], of_roll)
            laws.append((turning, self.J_turning))
        return laws
