"""Friction that depends on the direction: two coefficients along two tangents of each point of contact.

Tangents are those of MuJoCo's contact frames, which it draws from the normal alone: the first is the axis y of the
world, or z where the normal is within 60° of y, made perpendicular to the normal; the second is at right angles to
both. So they do not turn with bodies, and jump where a normal turns through that angle. On a horizontal plane the first
coefficient acts along y and the second along x. Only a capsule on a plane has a first tangent of its own, along its
axis.

Source: MuJoCo's `mju_makeFrame` and its collider of planes and capsules.
"""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.contact.colliders import Colliders
from jdyn.contact.moving_points import MovingPoints
from jdyn.contact.points import ContactWarning, of_bodies
from jdyn.geometry.directions import unit
from jdyn.terminal.messages import enumerated

# Cosine of the angle from the axis y of the world up to which normals have a tangent by z.
NEAR_Y = 0.5
# Square of the length of an axis beside the normal, below which it has no direction there.
ALONG_NORMAL = 1e-12

Matrix = Float[Array, "3 3"]


class Weights(NamedTuple):
    """Weights of motion beside the normal by its direction, a symmetric matrix W of each point.

    By the slip s, friction is −μ f W w / |w| with w = W s, where μ is the larger one of the two coefficients and f the
    normal force: its components are on the ellipse whose half axes are μ₁ f and μ₂ f, and it takes the most power.

    Attributes:
        sliding: Of the slip.
        rolling: Of angular velocities beside the normal.
    """

    sliding: Float[Array, "*points 3 3"]
    rolling: Float[Array, "*points 3 3"]


class Directions(Structure):
    """Ratios of friction of pairs of shapes, and what their tangents follow.

    Attributes:
        ratios: Coefficients along both tangents over the larger one of the two, of sliding and of rolling friction.
        axes: In each pair, the axis that the first tangent is along, in the body that carries it; zero where none is.
        bodies: These bodies.
    """

    ratios: Float[Array, "pairs 2 2"]
    axes: Float[Array, "pairs 3"]
    bodies: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, colliders: Colliders) -> "Directions | None":
        """Directions of the pairs of shapes; None where no friction depends on them."""
        both = colliders.pair_directions()
        if both is None:
            return None
        larger = jnp.max(both, axis=2, keepdims=True)
        ratios = jnp.where(larger > 0, both / jnp.where(larger > 0, larger, 1), 1)
        kinds = [tuple(colliders.entries[row].kind for row in pair) for pair in colliders.pairs]
        lying = np.array([kind == ("plane", "capsule") for kind in kinds])
        second = np.array(colliders.pairs, int)[:, 1]
        axes = jnp.where(lying[:, None], colliders.placements.rotation[second, :, 2], 0)
        return cls(ratios, axes, tuple(colliders.bodies(1)))

    def weights(self, points: MovingPoints) -> Weights:
        """Weights of points."""
        numbers = points.pairs.of_points
        bodies = jnp.asarray(self.bodies, jnp.int32)[numbers]
        of_shapes = jax.vmap(jnp.matmul)(of_bodies(points.motion.poses, bodies).rotation, self.axes[numbers])
        first = jax.vmap(first_tangent)(points.normal, of_shapes)
        tangents = jnp.stack([first, jnp.cross(points.normal, first)], axis=1)
        less = self.ratios[numbers] - 1
        each = (jnp.einsum("pa,pai,paj->pij", less[:, kind], tangents, tangents) for kind in (0, 1))
        return Weights(*(jnp.eye(3, dtype=less.dtype)[None] + x for x in each))


def first_tangent(normal: Float[Array, "3"], axis: Float[Array, "3"]) -> Float[Array, "3"]:
    """First tangent of a surface, along an axis; along one of the world if that is zero or along the normal."""
    by_world = jnp.where(_near_y(normal), jnp.eye(3, dtype=normal.dtype)[2], jnp.eye(3, dtype=normal.dtype)[1])
    beside, by_world = (x - dot(x, normal) * normal for x in (axis, by_world))
    return unit(jnp.where(dot(beside, beside) > ALONG_NORMAL, beside, by_world))


def weighed(W: Matrix | None, x: Float[Array, "3"]) -> Float[Array, "3"]:
    """W x; x itself where friction is the same in all directions."""
    return x if W is None else W @ x


def weighed_rows(W: Float[Array, "points 3 3"] | None, x: Float[Array, "points 3"]) -> Float[Array, "points 3"]:
    """The same of each row."""
    return x if W is None else jnp.einsum("pij,pj->pi", W, x)


def warn_of_directions(contact: Any, colliders: Colliders):
    """Warn of pairs whose friction depends on the direction, under contact that knows no directions."""
    both = None if contact.directional else colliders.pair_directions()
    if both is None:
        return
    known = not isinstance(both, Tracer)
    rows = np.flatnonzero(np.any(both[..., 0] != both[..., 1], axis=1)) if known else range(len(both))
    names = [" and ".join(map(repr, colliders.names[row])) for row in rows]
    if names:
        warnings.warn(
            f"friction of {enumerated(names)} depends on the direction; {type(contact).__name__} has the larger "
            "coefficient in all of them, jdyn.CompliantContact and jdyn.ConvexContact have both",
            ContactWarning,
            stacklevel=4,
        )


def _near_y(normal: Float[Array, "3"]) -> Bool[Array, ""]:
    return jnp.abs(normal[1]) >= NEAR_Y
