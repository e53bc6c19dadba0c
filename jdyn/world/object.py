"""Objects of a world."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
from jaxtyping import Array, Float

from jdyn.array import with_fields
from jdyn.model import merge
from jdyn.simulation import System
from jdyn.spatial import Transform
from jdyn.world.four_parts import DynamicPart, GeometricPart, GraphicalPart, KinematicPart


class WorldObject(eqx.Module):
    """Object of a world: a system, where it stands and how it starts. `jdyn.World` makes them.

    It answers for its state: `dynamic` for inertia and impulses, `kinematic` for poses and velocities, `geometric` for
    shapes and distances, `graphical` for what it looks like. `at` gives it another state, such as one of a motion.

    >>> world = jdyn.World().with_object("arm", jdyn.load("pendulum"), q=[0.5])
    >>> arm = world["arm"]
    >>> print(arm.q, arm.at(jnp.zeros(1)).kinematic.pose("tip").translation)
    [0.5] [ 0.  0. -1.]

    Attributes:
        name: Its name.
        system: The system, with the gravity of the world, and without what the world has once.
        placement: Pose of its world in the world.
        q, v: State at the start.
        solver: Of its motion while nothing touches it; None for the default.
    """

    name: str = eqx.field(static=True)
    system: System
    placement: Transform
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    solver: Any = None

    def at(self, q: Float[Array, " nq"], v: Float[Array, " nv"] | None = None) -> Self:
        """The same in another state; at rest if no velocity is given."""
        state = self.system.state(q, v)
        return with_fields(self, q=state.q, v=state.v)

    @property
    def dynamic(self) -> DynamicPart:
        return DynamicPart(*self._placed)

    @property
    def kinematic(self) -> KinematicPart:
        return KinematicPart(*self._placed)

    @property
    def geometric(self) -> GeometricPart:
        return GeometricPart(*self._placed)

    @property
    def graphical(self) -> GraphicalPart:
        return GraphicalPart(*self._placed)

    @property
    def _placed(self):
        model = self.system.model
        return self.name, merge({self.name: model}, {self.name: self.placement}, gravity=model.gravity), self.q, self.v
