"""Contact as the minimum of a convex function of the velocity, step by step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.contact.colliders import Colliders
from jdyn.contact.convex.impulses import Impulses
from jdyn.contact.convex.minimum import Found, Motion, minimum
from jdyn.contact.convex.rows import point_rows
from jdyn.contact.points import contact_points
from jdyn.dynamics.kinematics import joint_kinematics, poses
from jdyn.geometry import Separation
from jdyn.model import Model

Vector = Float[Array, " nv"]


class ConvexContact(eqx.Module):
    """Shapes press and rub by the law of `Impulses`, in steps that are stable for any stiffness and slip speed.

    Attributes:
        stiffness: Force by depth at each point [N/m].
        dissipation: c of f = stiffness depth (1 − c u_n) [s/m]; a ball that arrives with u, c u ≪ 1, leaves with about
            (1 − ⅔ c u) u.
        friction: Coefficient of Coulomb's friction.
        slip_speed: Points that stick creep by less than this [m/s].
    """

    stiffness: Scalar | float = 1e5
    dissipation: Scalar | float = 1.0
    friction: Scalar | float = 0.5
    slip_speed: Scalar | float = 1e-6

    def velocity(
        self,
        model: Model,
        colliders: Colliders,
        q: Float[Array, " nq"],
        v: Vector,
        h: Scalar,
        A: Float[Array, "nv nv"],
        free: Vector,
        guess: Vector,
    ) -> Found:
        """The velocity at the end of a step.

        Args:
            model: The mechanism.
            colliders: Its shapes.
            q, v: State at the start.
            h: Length of the step [s].
            A: Inertia, with what joints' springs and dampers add to it within the step.
            free: Velocity at the end without contact.
            guess: Of the velocity.
        """
        joints = joint_kinematics(model, model.expand(q))
        X = poses(model, joints.X)
        rows, pairs = contact_points(colliders, X)
        points, exists = _present(rows)
        a, b = (np.array(colliders.bodies(side), int)[pairs] for side in (0, 1))
        J = point_rows(model, joints, X, (points.a + points.b) / 2, a, b)
        return minimum(Motion(A, free, J, self._impulses(points, exists, J, v, h, A)), guess)

    def _impulses(self, points: Separation, exists, J, v: Vector, h: Scalar, A) -> Impulses:
        stiffness, dissipation, friction, slip = (
            jnp.where(exists, jnp.asarray(x, h.dtype), 0)
            for x in (self.stiffness, self.dissipation, self.friction, self.slip_speed)
        )
        force = -stiffness * points.distance
        speed = jnp.sum((J @ v) * points.normal, axis=1)
        bound = friction * h * jnp.maximum(force, 0) * jnp.maximum(1 - dissipation * speed, 0)
        # Friction that rises more steeply would leave nothing of A in a sum of both.
        yielding = jnp.sum(J**2 / jnp.diag(A)[None, None], axis=(1, 2)) / 3
        smallest = jnp.sqrt(jnp.finfo(h.dtype).eps) * yielding * bound
        # What does not exist has no friction, but needs a speed to divide by.
        slip = jnp.maximum(jnp.where(exists, slip, 1), smallest)
        return Impulses(h, points.normal, force, stiffness, dissipation, bound, slip)


def _present(rows: Separation):
    """Points that exist, others at the origin, and which do."""
    exists = jnp.isfinite(rows.distance)

    def kept(x):
        return jnp.where(exists.reshape(-1, *[1] * (x.ndim - 1)), x, 0)

    return jax.tree.map(kept, rows), exists
