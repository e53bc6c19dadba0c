"""Four parts of what a user may ask of an object: dynamic, kinematic, geometric and graphical.

Source: Ruspini, Lee and Khatib, section 4.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.contact import Distances, colliders, distances, pairs_if_any
from jdyn.dynamics import (
    bias_forces,
    forward_kinematics,
    frame_pose,
    frame_velocity,
    impulse_response,
    jacobian,
    kinetic_energy,
    mass_matrix,
    potential_energy,
)
from jdyn.geometry.bounds import Bounds
from jdyn.model import Model
from jdyn.spatial import Transform
from jdyn.view.look import Look
from jdyn.view.scene import Part, parts
from jdyn.world.boxes import boxes_of


class _InState(eqx.Module):
    """View of an object in a state.

    Attributes:
        name: Name of the object.
        model: Its model, placed in the world, in which names begin with that of the object.
        q, v: The state.
    """

    name: str = eqx.field(static=True)
    model: Model
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]

    def _of(self, link: str) -> str:
        return f"{self.name}/{link}"


class DynamicPart(_InState):
    """Dynamic part of an object: its inertia, and its response to impulses.

    >>> arm = jdyn.World().with_object("arm", jdyn.load("pendulum"))["arm"]
    >>> print(arm.dynamic.response("tip", jnp.array([1.0, 0.0, 0.0])).round(3))
    [3.]
    """

    @property
    def mass_matrix(self) -> Float[Array, "nv nv"]:
        """M, see `jdyn.mass_matrix`."""
        return mass_matrix(self.model, self.q)

    @property
    def bias_forces(self) -> Float[Array, " nv"]:
        """Coriolis, centrifugal and gravity forces [N m or N], see `jdyn.bias_forces`."""
        return bias_forces(self.model, self.q, self.v)

    @property
    def kinetic_energy(self) -> Float[Array, ""]:
        """See `jdyn.kinetic_energy` [J]."""
        return kinetic_energy(self.model, self.q, self.v)

    @property
    def potential_energy(self) -> Float[Array, ""]:
        """See `jdyn.potential_energy` [J]."""
        return potential_energy(self.model, self.q)

    def response(
        self, link: str, impulse: Float[Array, "3"], point: Float[Array, "3"] | None = None
    ) -> Float[Array, " nv"]:
        """Change of the velocity by an impulse at a point, without that of constraints, see `jdyn.impulse_response`.

        Args:
            link: A body or a frame of the object.
            impulse: In axes of the world [N s].
            point: Where it acts, in the frame of the link [m]; at its origin if left out.
        """
        wrench = jnp.concatenate([jnp.zeros(3, self.q.dtype), jnp.asarray(impulse, self.q.dtype)])
        return impulse_response(self.model, self.q, self._of(link), wrench, point=point, frame="aligned")


class KinematicPart(_InState):
    """Kinematic part of an object: poses and velocities of its links and their points.

    >>> arm = jdyn.World().with_object("arm", jdyn.load("pendulum"), v=[2.0], placement=(0.0, 1.0, 0.0))["arm"]
    >>> print(arm.kinematic.pose("tip").translation, arm.kinematic.velocity("tip")[3:].round(3) + 0.0)
    [ 0.  1. -1.] [2. 0. 0.]
    """

    @property
    def poses(self) -> Transform:
        """Poses of all bodies in the world."""
        return forward_kinematics(self.model, self.q)

    def pose(self, link: str) -> Transform:
        """Pose of a body or a frame in the world."""
        return frame_pose(self.model, self.q, self._of(link))

    def velocity(self, link: str, point: Float[Array, "3"] | None = None) -> Float[Array, "6"]:
        """Velocity [ω; v] of a point of a link, in axes of the world [rad/s, m/s]; of its origin if left out."""
        return frame_velocity(self.model, self.q, self.v, self._of(link), point=point, frame="aligned")

    def jacobian(self, link: str, point: Float[Array, "3"] | None = None) -> Float[Array, "6 nv"]:
        """Jacobian of `velocity`."""
        return jacobian(self.model, self.q, self._of(link), point=point, frame="aligned")


class GeometricPart(_InState):
    """Geometric part of an object: its collision shapes.

    >>> ball = jdyn.World().with_object("ball", jdyn.load("ball"), placement=(2.0, 0.0, 0.0))["ball"]
    >>> print(ball.geometric.shapes, ball.geometric.box.lower)
    ('ball/ball',) [ 1.9 -0.1 -0.1]
    """

    @property
    def shapes(self) -> tuple[str, ...]:
        """Names of its collision shapes, as those of contacts are."""
        shapes = self.model.shapes
        return () if shapes is None else tuple(shapes.entries[row].name for row in shapes.rows("collision"))

    @property
    def box(self) -> Bounds:
        """Box about all its collision shapes, along the axes of the world [m]; ground has no ends.

        Raises:
            ValueError: if it has no collision shapes.
        """
        boxes = boxes_of(colliders(self.model), forward_kinematics(self.model, self.q))
        return Bounds(jnp.min(boxes.lower, axis=0), jnp.max(boxes.upper, axis=0))

    def distances(self, pairs: Sequence[tuple[str, str]] | None = None) -> Distances:
        """Distances between its own shapes, see `jdyn.contact.distances`; of all pairs that may touch if left out."""
        names = pairs_if_any(self.model) if pairs is None else [(self._of(a), self._of(b)) for a, b in pairs]
        return distances(self.model, self.q, names)


class GraphicalPart(_InState):
    """Graphical part of an object: coloured triangles, for pictures of your own.

    >>> ball = jdyn.World().with_object("ball", jdyn.load("ball"))["ball"]
    >>> (surface,) = ball.graphical.surfaces()
    >>> print(surface.name, surface.faces.shape[1], surface.color.shape)
    ball/ball 3 (3,)
    """

    def surfaces(self, look: Look = "visual") -> list[Part]:
        """Surfaces fixed to bodies, which `KinematicPart.poses` places in the world.

        Args:
            look: As for `jdyn.animate`.
        """
        return parts(self.model, look)
