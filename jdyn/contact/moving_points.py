"""Points where shapes may touch, and how they move."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.contact.colliders import Colliders
from jdyn.contact.points import PointPairs, contact_points, of_bodies
from jdyn.dynamics.relative_motion import RelativeMotion
from jdyn.dynamics.row_jacobians import PointJacobian
from jdyn.geometry import Separation
from jdyn.geometry.directions import perpendicular
from jdyn.model import Model
from jdyn.spatial import Transform


class MovingPoints(NamedTuple):
    """The points of a model's pairs of shapes in one configuration, a fixed number for each pair that is looked at.

    Attributes:
        motion: Of these pairs.
        found: The points.
        pairs: Those that they belong to.
        position: Where they act, in the middle between the two surfaces [m]; rows without a point get some place.
    """

    motion: RelativeMotion
    found: Separation
    pairs: PointPairs
    position: Float[Array, "points 3"]

    @classmethod
    def at(cls, model: Model, colliders: Colliders, q: Float[Array, " nq"]) -> "MovingPoints":
        motion = RelativeMotion.at(model, colliders.paths(model), q)
        found, pairs = contact_points(colliders, motion.poses)
        position = jnp.where(found.exists[:, None], (found.a + found.b) / 2, motion.origin[None])
        return cls(motion.of(pairs.numbers), found, pairs, position)

    @property
    def exist(self) -> Bool[Array, " points"]:
        """Which rows have a point."""
        return self.found.exists

    @property
    def normal(self) -> Float[Array, "points 3"]:
        """From first shapes to second ones."""
        return self.found.normal

    @property
    def distance(self) -> Float[Array, " points"]:
        """[m]; zero in rows without a point."""
        return jnp.where(self.exist, self.found.distance, 0)

    @property
    def apart(self) -> Bool[Array, " points"]:
        """Which rows have a point, between surfaces that do not touch."""
        return (self.found.distance > 0) & self.exist

    def twists(self, v: Float[Array, " nv"]) -> Float[Array, "points 6"]:
        """[ω; v] of second bodies relative to first ones."""
        return self.motion.twists_at(self.position, self.pairs.places, v)

    def jacobians(self) -> tuple[PointJacobian, PointJacobian]:
        """Jacobians of both parts of twists."""
        return self.motion.jacobians(self.position, self.pairs.places)

    @property
    def axes(self) -> Float[Array, "points 3 3"]:
        """Two tangents and the normal of each point."""
        tangent = jax.vmap(perpendicular)(self.normal)
        return jnp.stack([tangent, jnp.cross(self.normal, tangent), self.normal], axis=1)

    def rows(self, v: Float[Array, " nv"]) -> Float[Array, "points 3 nv"]:
        """Jacobian of the velocities of second bodies relative to first ones, along `axes`."""
        J = jax.jacfwd(lambda v: self.twists(v)[:, 3:])(v)
        return jnp.einsum("pij,pjn->pin", self.axes, J)

    def generalized(self, torque: Float[Array, "points 3"], force: Float[Array, "points 3"]) -> Float[Array, " nv"]:
        """Generalized forces of those on second bodies; the first ones bear the opposite."""
        arms = self.position - self.motion.origin[None]
        wrenches = jnp.concatenate([torque + jnp.cross(arms, force), force], axis=1)
        return self.motion.generalized(self.pairs.sums(wrenches))

    def carried(self, colliders: Colliders, poses: Transform) -> Float[Array, " points"]:
        """Distances of the points along their normals where bodies have come to these poses and carried the points, not
        the normals: what spins beside something does not touch it."""
        moves = jax.vmap(lambda now, before: now @ before.inverse())(poses, self.motion.poses)
        bodies = [jnp.asarray(colliders.bodies(side), jnp.int32)[self.pairs.of_points] for side in (0, 1)]
        a, b = (
            jax.vmap(Transform.point_to_parent)(of_bodies(moves, each), x)
            for each, x in zip(bodies, (self.found.a, self.found.b), strict=True)
        )
        return jnp.sum(self.normal * (b - a), axis=1)
