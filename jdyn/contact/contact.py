"""Interface between a simulation and a contact model."""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import Structure
from jdyn.contact.colliders import Colliders
from jdyn.contact.points import Overlap, contact_points
from jdyn.dynamics.kinematics import forward_kinematics
from jdyn.impulses import Rows
from jdyn.model import Model


class TouchingPoints(Structure):
    """Forces at the points where shapes may touch, in world axes; zero where they are apart.

    >>> up, none = jnp.array([[0.0, 0.0, 1.0]]), jnp.zeros((1, 3))
    >>> points = jdyn.contact.TouchingPoints(none, up, jnp.array([1e-3]), 9.81 * up, none)
    >>> print(points.force)
    [[0.   0.   9.81]]

    Attributes:
        position: Where they act [m].
        normal: From the first shape of the pair to the second.
        depth: By which the shapes overlap [m]; zero where they are apart.
        force: On the second shape [N]; the first one bears the opposite.
        torque: Against turning and rolling, on the second shape [N m].
    """

    position: Float[Array, "*points 3"]
    normal: Float[Array, "*points 3"]
    depth: Float[Array, "*points"]
    force: Float[Array, "*points 3"]
    torque: Float[Array, "*points 3"]


class PointForces(Structure):
    """Forces at all points of all pairs, in the order of `TouchingPoints`.

    >>> print(jdyn.contact.PointForces(jnp.zeros((4, 3)), None).force.shape)
    (4, 3)

    Attributes:
        force: On the second shape [N].
        torque: Against turning and rolling, on the second shape [N m]; None where nothing resists turning.
    """

    force: Float[Array, "*points 3"]
    torque: Float[Array, "*points 3"] | None

    def at(self, points: TouchingPoints) -> TouchingPoints:
        """Points with these forces; NaN stands for those that they have."""
        force = jnp.where(jnp.isnan(self.force), points.force, self.force)
        torque = points.torque
        if self.torque is not None:
            torque = jnp.where(jnp.isnan(self.torque), torque, self.torque)
        return dataclasses.replace(points, force=force, torque=torque)


class ContactForces(eqx.Module):
    """Forces between the shapes of a mechanism as functions of the state.

    >>> class Nothing(jdyn.contact.ContactForces):
    ...     colliders: object
    ...     def force(self, model, q, v):
    ...         return jnp.zeros_like(v)
    ...     def points(self, model, q, v):
    ...         none = jnp.zeros((0, 3))
    ...         return jdyn.contact.TouchingPoints(none, none, jnp.zeros(0), none, none), np.zeros(0, int)
    >>> print(Nothing(None).force(None, jnp.zeros(2), jnp.ones(2)))
    [0. 0.]

    A model of contact defines `force` and `points`. All else has defaults, those of a model that has nothing of the
    kind: slopes for implicit solvers, forces that a step recorded, a `StepPolicy`, a `GradientPolicy`.

    Attributes:
        colliders: The shapes.
        by_rows: Whether they are `StepwiseForces`.
        reacts: Whether they follow from all other forces, as `RigidForces.reaction` has them.
    """

    by_rows: ClassVar[bool] = False
    reacts: ClassVar[bool] = False

    colliders: eqx.AbstractVar[Colliders]

    @abc.abstractmethod
    def force(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized forces [N m or N]. Called once in each stage of a solver."""

    @abc.abstractmethod
    def points(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        """The forces at all points, and the number of each point's pair. Called by trajectories, not by solvers."""

    def recorded(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], known: PointForces
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        """Points like `points`, with the forces that a solver recorded in the step in which the state lies; NaN stands
        for those of the state."""
        points, numbers = self.points(model, q, v)
        return known.at(points), numbers

    def begun(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Self:
        """Forces of a step that begins in a state, with what is detected there. Called once a step, before all else."""
        return self

    def at_time(self, t: Any) -> Self:
        """Forces of a stage at a time of the step, as solvers count it [s]. Called before each stage; of use for what a
        `GradientPolicy` has repaired."""
        return self

    def slopes(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"]] | None:
        """Slopes by which `force` falls with configuration and velocity, or nearly so: what is left out costs an
        implicit solver steps, and no order. Called once a step; None where solvers are to be explicit in `force`."""
        return None

    def of_stage(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        moved: Float[Array, " nv"],
        gained: Float[Array, " nv"],
    ) -> PointForces | None:
        """Forces that an implicit stage of a step from a state has, which solvers record once a step. Rounding of the
        configurations to which it leads is not in them, of which forces of stiff ground may consist where something
        rests. NaN at points that are not looked at; None where states say them well enough.

        Args:
            model: The mechanism.
            q, v: The state.
            moved, gained: How far the stage moves, along the axes of velocities, and what its velocity gains.
        """
        return None

    def step_policy(self, model: Model, q: Float[Array, " nq"]) -> "StepPolicy":
        """Limits on the step that begins in `q`."""
        return StepPolicy()

    @property
    def gradient_policy(self) -> "GradientPolicy":
        """Repair of derivatives."""
        return GradientPolicy()

    def distances(self, model: Model, q: Float[Array, " nq"]) -> Float[Array, " points"]:
        """Distances of all points [m]; 1 in rows without a point."""
        found, _ = contact_points(self.colliders, forward_kinematics(model, q))
        return jnp.where(found.exists, found.distance, 1)

    def overlap(self, model: Model, q: Float[Array, " nq"]) -> Overlap:
        """Overlap of shapes."""
        found, pairs = contact_points(self.colliders, forward_kinematics(model, q))
        return Overlap.of(found.distance, self.colliders.least_sizes_of_pairs()[pairs.of_points])


class StartOfSteps(Structure):
    """Contact where steps begin, as rows of the impulse problem of each step."""

    @property
    @abc.abstractmethod
    def overlap(self) -> Overlap:
        """Overlap of shapes."""

    @abc.abstractmethod
    def rows(self, h: Scalar, A: Float[Array, "nv nv"]) -> list[Rows]:
        """Rows of a step of a length h [s], where A is the inertia, with what joints' springs and dampers add to it."""

    @abc.abstractmethod
    def forces(self, h: Scalar, gammas: Sequence[Array]) -> PointForces:
        """Forces at all points by the impulses of these rows."""


class StepwiseForces(ContactForces):
    """Contact forces that are also rows of an impulse problem, for `jdyn.solvers.ConvexEuler`.

    Its `ImpulseSolver` has to know the laws of these rows and those of joints.
    """

    by_rows: ClassVar[bool] = True

    @abc.abstractmethod
    def at_start(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], v_rate: Float[Array, " nv"]
    ) -> StartOfSteps:
        """Find what steps of any length from a state have in common.

        Args:
            model: The mechanism.
            q, v: State.
            v_rate: How the numbers of v change if nothing accelerates, in axes that turn [rad/s² or m/s²].
        """

    @abc.abstractmethod
    def forces_like(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> PointForces:
        """Shapes of what `StartOfSteps.forces` returns."""


class StepPolicy(eqx.Module):
    """Limits on a step, by what is known where it begins. By default there are none.

    >>> print(jdyn.contact.StepPolicy().longest(None, jnp.zeros(2), jnp.zeros(2)))
    inf

    The loop of a simulation asks for the `longest` step before it tries one, and whether it has `overshot` before it
    judges the error of a step that it has tried. Solvers do not ask.
    """

    def longest(self, model: Model, v: Float[Array, " nv"], a: Float[Array, " nv"]) -> Scalar:
        """Longest step that shapes allow which will touch soon or have just begun to [s].

        Args:
            model: The mechanism.
            v: Velocity where the step begins, in the time of solvers.
            a: About how v changes there.
        """
        return jnp.full((), jnp.inf, v.dtype)

    def overshot(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Bool[Array, ""]:
        """Tell whether a step has gone too deep into shapes to be kept, whatever its error seems to be, by the state
        where it ends."""
        return jnp.array(False)


class GradientPolicy(eqx.Module):
    """Repair of the derivatives of steps; motions do not feel it. By default there is none.

    >>> print(jdyn.contact.GradientPolicy().has_jumps)
    False

    A simulation that is differentiated asks it: once whether to warn of `has_jumps`, and for `repaired` forces in each
    step that it differentiates, when the end of the step is known. Steps of constant length are differentiated as they
    are, without it.
    """

    @property
    def repairs(self) -> bool:
        """Tell whether there is anything to repair."""
        return type(self).repaired is not GradientPolicy.repaired

    @property
    def has_jumps(self) -> bool:
        """Tell whether forces jump within steps, of which derivatives know nothing."""
        return False

    @property
    def about_jumps(self) -> str:
        """Place of the jumps and advice, for a warning."""
        return (
            "the force of this law begins with a jump when shapes touch, and derivatives leave out that the instant "
            "changes; take CompliantContact(located=True), with which steps end there, or jdyn.contact.HuntCrossley()"
        )

    def repaired(
        self,
        forces: ContactForces,
        model: Model,
        t: tuple[Scalar, Scalar],
        h: Scalar,
        start: tuple[Array, Array],
        end: tuple[Array, Array],
    ) -> ContactForces:
        """The same forces, with the derivatives that a step has where they begin, end or become stiff within it.

        Args:
            forces: Those of the step.
            model: The mechanism.
            t: When the step begins and ends, as solvers count the time [s].
            h: How long it is, less than zero where time runs backwards [s].
            start, end: Configuration and velocity there.
        """
        return forces


class Contact(eqx.Module):
    """Law by which shapes of a model act on each other where they touch, as `jdyn.simulate` takes it.

    Numbers are leaves, so that they can be swept and differentiated.

    >>> isinstance(jdyn.CompliantContact(), jdyn.contact.Contact)
    True

    Attributes:
        stepwise: Whether its forces are stiff for any solver but `jdyn.solvers.ConvexEuler`, which `jdyn.simulate` then
            takes by itself.
        reacts: Whether its forces follow from all others, as those of constraints do.
        directional: Whether it has friction of pairs that depends on the direction.
        backwards: Whether motions may go backwards in time.
    """

    stepwise: ClassVar[bool] = False
    reacts: ClassVar[bool] = False
    directional: ClassVar[bool] = False
    backwards: ClassVar[bool] = True

    @property
    def ends_steps(self) -> bool:
        """Tell whether steps end where points begin and cease to touch."""
        return False

    @property
    def softens_derivatives(self) -> bool:
        """Tell whether derivatives feel contact before shapes touch."""
        return False

    def within(self, rtol: Any, atol: Any) -> Self:
        """The same where errors of steps are within tolerances."""
        return self

    def check(self, colliders: Colliders):
        """Raise a ValueError about numbers that given shapes cannot have, and warn of what is slow with them. Traced
        numbers are not known."""

    @abc.abstractmethod
    def between(self, colliders: Colliders) -> ContactForces:
        """The same for given shapes."""
