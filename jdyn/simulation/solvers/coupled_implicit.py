"""Rates of change that are implicit in forces that couple joints."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Float, Scalar

from jdyn.array import solution
from jdyn.contact import SmoothForces
from jdyn.dynamics import mass_matrix
from jdyn.dynamics.mass_matrix import reduced
from jdyn.model.compiled import precise
from jdyn.simulation.solvers.joint_implicit import equations_of_motion, joint_slopes
from jdyn.simulation.vector_field import State, VectorField


class CoupledImplicit(NamedTuple):
    """Rates as those of `JointImplicit`, where W also knows contact: K and D are matrices, and all of W is that at the
    start of the step. With f_v the accelerations in f,

        a = f_v − (M + c D + c² K)⁻¹ ((c D + c² K) f_v + D s_v + K (s_q + c (r + s_v))),

    so that one matrix serves all stages, which are forward dynamics as it is. W has no derivatives, since neither the
    order nor the limit depends on it.

    Attributes:
        field: The equations of motion.
        direction: 1, or -1 where time runs backwards.
        K, D: How forces fall with configuration and velocity [N m/rad, ...].
        inverse: (M + c D + c² K)⁻¹.
        inertia: The diagonal of M.
    """

    field: VectorField
    direction: Scalar | int
    K: Float[Array, "nv nv"]
    D: Float[Array, "nv nv"]
    inverse: Float[Array, "nv nv"]
    inertia: Float[Array, " nv"]

    @classmethod
    def of(cls, terms: Any, contact: SmoothForces, t: Any, y: State, c: Scalar) -> "CoupledImplicit":
        """That of a step that begins at `t` in `y`, on the configuration manifold, and has rates with `c`; matrices are
        found if this is not zero for all lanes of a batch. `contact` is that of the equations."""
        field, direction = equations_of_motion(terms), getattr(terms, "direction", 1)
        given = field, contact, direction * t, y, c
        given = jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, given)
        none = jnp.zeros((field.model.nv,) * 2, y.v.dtype)
        needed = unvmap_any(c != 0)
        matrices = jax.lax.cond(needed, lambda: _matrices(*given), lambda: (none, none, none, jnp.ones_like(y.v)))
        return cls(field, direction, *matrices)

    def rate(self, t: Scalar, y: State, r: Float[Array, " nv"], s: State, c: Scalar) -> State:
        """As that of `JointImplicit`."""
        t, moved = self.direction * t, r + s.v
        rate = self.field(t, y)
        B = c * (self.D + c * self.K)
        a = rate.v - self.inverse @ (B @ rate.v + self.D @ s.v + self.K @ (s.q + c * moved))
        return State(moved + c * a, a, rate.memory, rate.energy)

    @property
    def slopes(self) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """Of each coordinate, over its inertia [1/s², 1/s]."""
        return jnp.diag(self.K) / self.inertia, jnp.diag(self.D) / self.inertia


@precise
def _matrices(
    field: VectorField, contact: SmoothForces, t: Scalar, y: State, c: Scalar
) -> tuple[Array, Array, Array, Array]:
    model = field.model
    K, D = contact.slopes(model, y.q, y.v)
    in_joints = (reduced(model, jnp.diag(slope)) for slope in joint_slopes(field, t, y))
    K, D = (contact + joints for contact, joints in zip((K, D), in_joints, strict=True))
    # Backwards in time dampers push. What W leaves out costs stability, and no order.
    K, D = jnp.where(c != 0, K, 0), jnp.where(c > 0, D, 0)
    M = mass_matrix(model, y.q)
    return K, D, solution(M + c * (D + c * K), jnp.eye(len(M), dtype=M.dtype)), jnp.diag(M)
