"""Interface between a simulation and a contact model."""

import abc
import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, Scalar

from jdyn.array import Structure
from jdyn.contact.colliders import Colliders
from jdyn.contact.points import Overlap, contact_points
from jdyn.dynamics.kinematics import forward_kinematics
from jdyn.model import Model


class ContactWarning(UserWarning):
    """Shapes overlap at the start so far that they will be thrown apart, or later so far that they may pass through
    each other; so many may touch that motions take minutes; or derivatives are wrong since a force begins with a jump.

    >>> import warnings
    >>> with warnings.catch_warnings(action="error", category=jdyn.ContactWarning):
    ...     pass  # here a deep start is an error
    """


class TouchingPoints(Structure):
    """Forces at the points where shapes may touch, in world axes; zero where they are apart.

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
    """A contact model between the shapes of a mechanism, which `VectorField.contact` holds.

    Attributes:
        colliders: The shapes.
    """

    colliders: eqx.AbstractVar[Colliders]

    @abc.abstractmethod
    def force(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized forces [N m or N]."""

    @abc.abstractmethod
    def points(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        """The forces at all points, and the number of each point's pair."""

    @abc.abstractmethod
    def kept(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], known: PointForces
    ) -> tuple[TouchingPoints, Int[np.ndarray, " points"]]:
        """Points like `points`, with the forces that the step has kept in which the state lies, where these say more;
        NaN stands for those of the state."""

    @abc.abstractmethod
    def overshot(
        self, model: Model, q0: Float[Array, " nq"], q1: Float[Array, " nq"], v1: Float[Array, " nv"]
    ) -> Bool[Array, ""]:
        """Tell whether a step between two states has gone too deep into shapes to be kept, whatever its error seems to
        be."""

    @abc.abstractmethod
    def longest_step(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
    ) -> Scalar:
        """Longest step that shapes allow which will touch soon or have just begun to [s].

        Args:
            model: The mechanism.
            q, v: State where the step begins, and how it moves in the time of solvers.
            a: About how v changes there.
        """

    @abc.abstractmethod
    def near(self, model: Model, q: Float[Array, " nq"], seen: PyTree[Array] = None) -> "ContactForces":
        """The same for configurations near this one, such as those of a step that begins there. Unless it is None, this
        is what can be `seen` there."""

    @property
    def has_jumps(self) -> bool:
        """Tell whether forces begin with jumps within steps, of which derivatives know nothing."""
        return False

    @abc.abstractmethod
    def across(
        self, model: Model, t: tuple[Scalar, Scalar], h: Scalar, start: tuple[Array, Array], end: tuple[Array, Array]
    ) -> "ContactForces":
        """The same forces, with the derivatives that a step has where they begin, end or become stiff within it.

        Args:
            model: The mechanism.
            t: When the step begins and ends, as solvers count the time [s].
            h: How long it is, less than zero where time runs backwards [s].
            start, end: Configuration and velocity there.
        """

    @abc.abstractmethod
    def within(self, t: Any) -> "ContactForces":
        """The same at a time within the step that they are `across`, as solvers count it [s]."""

    def distances(self, model: Model, q: Float[Array, " nq"]) -> Float[Array, " points"]:
        """Distances of all points [m]; 1 in rows without a point."""
        found, _ = contact_points(self.colliders, forward_kinematics(model, q))
        return jnp.where(found.exists, found.distance, 1)

    def overlap(self, model: Model, q: Float[Array, " nq"]) -> Overlap:
        """Overlap of shapes."""
        found, pairs = contact_points(self.colliders, forward_kinematics(model, q))
        return Overlap.of(found.distance, self.colliders.least_sizes_of_pairs()[pairs.of_points])


class SmoothForces(ContactForces):
    """Contact forces in which solvers may be implicit."""

    @abc.abstractmethod
    def slopes(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"]]:
        """Slopes by which `force` falls with configuration and velocity, or nearly so: what is left out costs an
        implicit solver steps, and no order."""

    @abc.abstractmethod
    def seen(self, model: Model, q: Float[Array, " nq"]) -> PyTree[Array]:
        """Whatever takes long to find there, and is needed for forces: arrays that depend on the configuration."""

    @abc.abstractmethod
    def there(self, model: Model, seen: PyTree[Array]) -> "SmoothForces":
        """The same with a `force` for the configuration in which that was seen."""

    @abc.abstractmethod
    def resting(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        moved: Float[Array, " nv"],
        gained: Float[Array, " nv"],
    ) -> PointForces:
        """Forces as an implicit stage of a step from a state has them. Rounding of the configurations to which it leads
        is not in them, of which forces of stiff ground may consist where something rests. NaN at points that are not
        looked at.

        Args:
            model: The mechanism.
            q, v: The state.
            moved, gained: How far the stage moves, along the axes of velocities, and what its velocity gains.
        """

    @abc.abstractmethod
    def resting_like(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> PointForces | None:
        """Shapes of these forces; None where rounding is so small that states say them."""


class Contact(eqx.Module):
    """Law by which shapes of a model act on each other where they touch, as `jdyn.simulate` takes it.

    Numbers are leaves, so that they can be swept and differentiated.

    >>> isinstance(jdyn.CompliantContact(), jdyn.Contact)
    True

    Attributes:
        stepwise: Whether its forces are stiff for any solver but `jdyn.ConvexEuler`, which `jdyn.simulate` then takes
            by itself.
    """

    stepwise: eqx.AbstractClassVar[bool]

    @property
    def ends_steps(self) -> bool:
        """Tell whether steps end where points begin and cease to touch."""
        return False

    @property
    def softens_derivatives(self) -> bool:
        """Tell whether derivatives feel contact before shapes touch."""
        return False

    @abc.abstractmethod
    def check(self, colliders: Colliders):
        """Raise a ValueError about numbers that given shapes cannot have, and warn of what is slow with them. Traced
        numbers are not known."""

    @abc.abstractmethod
    def between(self, colliders: Colliders) -> ContactForces:
        """The same for given shapes."""
