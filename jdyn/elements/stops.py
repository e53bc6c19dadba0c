"""Springs at the ends of the joints' ranges."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.dynamics import Coordinates
from jdyn.elements.element import ForceElement, Implicit
from jdyn.geometry.directions import length_and_unit
from jdyn.model import Model
from jdyn.spatial.rotation import quaternion_log


class Stops(ForceElement):
    """Springs at the ends of joints' ranges, also of joints that follow others.

    At the depth δ, f = k δ² / (δ + δ₀) (1 + c dδ/dt), and never a pull. The force begins without a kink, so that
    motions that just touch the spring and motions that just miss it have the same derivative. A joint that arrives with
    a speed u, c u ≪ 1, leaves with about (1 − ⅔ c u) u. A ball joint ends where the angle of its rotation does.

    Attributes:
        stiffness: k [N m/rad or N/m] of each coordinate that is a single number, then of each ball joint.
        dissipation: c [s/rad or s/m], one for all, or for each in the same order; so are the others.
        onset: δ₀ [rad or m].
        slack: How far beyond the end of the range they begin [rad or m].

    Source: Hunt, Crossley, Coefficient of restitution interpreted as damping in vibroimpact, Journal of Applied
    Mechanics 1975, with another spring; the speed that is left does not depend on it.
    """

    implicit: Implicit = eqx.field(static=True, default="joints", kw_only=True)
    uses_bodies: ClassVar[bool] = False

    stiffness: Float[Array, " ends"]
    dissipation: Float[Array, "*ends"]
    onset: Float[Array, "*ends"]
    slack: Float[Array, "*ends"]

    def force(self, t: Scalar, kinematics: Coordinates, memory: Any) -> Float[Array, " nv"]:
        model, q = kinematics.model, kinematics.q
        gaps, speeds = approach(model, q, kinematics.v)
        upper, lower = self.push(self.beyond(gaps), speeds)
        return along_ends(model, q, lower - upper)

    def push(self, beyond: Float[Array, "2 ends"], speeds: Float[Array, "2 ends"]) -> Float[Array, "2 ends"]:
        """The forces of the springs of upper and lower ends, by how far joints are beyond the beginning of each, and
        how fast that grows."""
        return stop_force(beyond, speeds, *map(_of_rows, (self.stiffness, self.dissipation, self.onset)))

    def beyond(self, gaps: Float[Array, "2 ends"]) -> Float[Array, "2 ends"]:
        """Distances of joints beyond the beginning of the springs, by those to the ends [rad or m]."""
        return -gaps - _of_rows(self.slack)


def _of_rows(x: Float[Array, "*ends"]) -> Array:
    """Numbers of ends, or one for all, in the rows of upper and lower ones."""
    return x[None] if x.ndim else x


def stop_force(beyond: Array, speed: Array, stiffness: Array, dissipation: Array, onset: Array) -> Array:
    """Force of springs at ends of ranges, which may be at infinity, by how far something is beyond the beginning of
    each, and how fast that grows [N m or N]."""
    depth = jnp.maximum(beyond, 0)
    return stiffness * depth**2 / (depth + onset) * jnp.maximum(1 + dissipation * speed, 0)


def approach(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, "2 ends"], Float[Array, "2 ends"]]:
    """Distance to the upper and the lower end of each coordinate that may have one, and of the angle of each ball joint
    to its largest one, and the speed towards it."""
    (in_q, in_v), (_, balls) = model.topology.ranged, model.topology.balls
    x, dx = model.expand(q)[in_q], model.expand_velocity(v)[in_v]
    upper, lower = model.limits.upper[in_q], model.limits.lower[in_q]
    if len(balls):
        angles, axes = turns(model, q)
        x, dx = jnp.append(x, angles), jnp.append(dx, jnp.sum(axes * model.expand_velocity(v)[balls], axis=1))
        upper = jnp.append(upper, largest_turns(model))
        lower = jnp.append(lower, jnp.full_like(angles, -jnp.inf))
    return jnp.stack([upper - x, x - lower]), jnp.stack([dx, -dx])


def along_ends(model: Model, q: Float[Array, " nq"], forces: Float[Array, " ends"]) -> Float[Array, " nv"]:
    """Generalized forces of forces along the coordinates that `approach` knows."""
    (_, places), (_, balls) = model.topology.ranged, model.topology.balls
    full = jnp.zeros(model.topology.v_offsets[-1], forces.dtype).at[places].set(forces[: len(places)])
    if len(balls):
        _, axes = turns(model, q)
        full = full.at[balls].set(forces[len(places) :, None] * axes)
    return model.reduce_force(full)


def turns(model: Model, q: Float[Array, " nq"]) -> tuple[Float[Array, " balls"], Float[Array, "balls 3"]]:
    """Angles by which ball joints are turned, at most π, and the axes; these are zero where nothing is turned."""
    in_q, _ = model.topology.balls
    return jax.vmap(lambda each: length_and_unit(quaternion_log(each)))(model.expand(q)[in_q])


def largest_turns(model: Model) -> Float[Array, " balls"]:
    """Largest angle of each ball joint."""
    in_q, _ = model.topology.balls
    return model.limits.upper[in_q[:, 0]]
