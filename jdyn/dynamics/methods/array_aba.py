"""Forward dynamics by the articulated-body algorithm in square-root form."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array import triangle, triangular_inverse
from jdyn.dynamics.at_rest import mass_product
from jdyn.dynamics.inverse import inverse_dynamics
from jdyn.dynamics.methods.matrix_aba import ArticulatedRecursion, links
from jdyn.dynamics.methods.method import Method
from jdyn.dynamics.recursion.levels import LEVELS
from jdyn.model.topology import sibling_places
from jdyn.spatial import SpatialInertia


class ArrayBody(eqx.Module):
    """Remainder at a body after the elimination of its joint; see `ArticulatedBody`.

    Attributes:
        Ba: Bᵃ with Bᵃᵀ Bᵃ = Iᵃ.
    """

    X: Float[Array, "6 6"]
    S: Float[Array, "6 k"]
    K: Float[Array, "k 6"]
    D_inverse: Float[Array, "k k"]
    Ba: Float[Array, "6 6"]

    def passed_on(self, a: Float[Array, "6"]) -> Float[Array, "6"]:
        """I^a a."""
        return self.Ba.T @ (self.Ba @ a)


class ArrayABA(Method):
    """Eliminate joints from the leaves inward, on square roots B of inertias I = BᵀB: O(n), three times as long as
    `ABA`, and the method that survives large mass ratios in float32.

    Inertias are never added: the rows of their roots are stacked and brought to triangular form by reflections, which
    halves the digits that a light body loses beside a heavy one. The joint's own columns, stacked in front, leave

        [ √R   0 ]                [ T  G  ]
        [ B S  B ]   reflected    [ 0  Bᵃ ]      D = TᵀT,  K = T⁻¹ G,  Iᵃ = Bᵃᵀ Bᵃ.

    What is left along the joint's axis is set to what it must be, as in `ABA`. Residuals of inverse dynamics refine
    the answer; a step is taken only if it makes the next one smaller.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.ArrayABA()).round(3))
    [-6.047  8.063]

    Attributes:
        refine: Steps of refinement at most; each costs an inverse dynamics and a sweep without new factors.
        bias: `"within"`: velocities, gravity and external forces enter the recursion; `"separate"`: as forces of
            the joints, from inverse dynamics first.

    Source: the recursion is that of the square-root information filter, Bierman 1977, chapter V, on the analogy of
    Rodriguez 1987; Higham 2002, chapter 12 for the refinement.
    """

    refine: int = eqx.field(static=True, default=1)
    bias: Literal["within", "separate"] = eqx.field(static=True, default="within", kw_only=True)

    def __check_init__(self):
        if self.refine < 0:
            raise ValueError(f"refine: expected a number of steps, got {self.refine}")

    @property
    def _recursion(self):
        return _ArrayRecursion(bias=self.bias)

    def factor(self, model, q):
        return q, self._recursion.factor(model, q)

    def solve(self, model, factors, tau):
        q, factors = factors
        a = self._recursion.solve(model, factors, tau)
        return self._refined(model, factors, a, lambda a: tau - mass_product(model, q, a))

    def accelerations(self, model, factors, q, v, tau, f_ext):
        _, factors = factors
        a = self._recursion.accelerations(model, factors, q, v, tau, f_ext)
        return self._refined(model, factors, a, lambda a: tau - inverse_dynamics(model, q, v, a, f_ext=f_ext))

    def _refined(self, model, factors, a, residual):
        def correction(a):
            return self._recursion.solve(model, factors, residual(a))

        da = correction(a) if self.refine else a
        for _ in range(self.refine):
            following = correction(a + da)
            smaller = jnp.linalg.norm(following) < jnp.linalg.norm(da)
            a, da = jnp.where(smaller, a + da, a), jnp.where(smaller, following, da)
        return a


class _ArrayRecursion(ArticulatedRecursion):
    def eliminate(self, model, joints):
        B = jax.vmap(SpatialInertia.square_root)(model.inertias)
        places = jnp.asarray(sibling_places(model.topology), B.dtype)
        packed = zip(links(model, joints), LEVELS.pack(model.topology, (B, places)), strict=True)
        zero = jnp.zeros((places.shape[1], 6, 6), B.dtype)
        return LEVELS.inward(model.topology, _array_step, zero, tuple((link, *rows) for link, rows in packed))


def _array_step(below, x):
    link, B, place = x
    X, S, root_R = link.X, link.S, jnp.diag(jnp.sqrt(link.R))
    k = len(root_R)
    rows = jnp.concatenate([*below, B])
    pre_array = jnp.concatenate(
        [
            jnp.concatenate([rows @ S, rows, jnp.zeros((len(rows), k), B.dtype)], axis=1),
            jnp.concatenate([root_R, jnp.zeros((k, 6), B.dtype), root_R], axis=1),
        ]
    )
    array = triangle(pre_array, columns=k + 6)
    T, G, Ba, BaS = array[:k, :k], array[:k, k : k + 6], array[k : k + 6, k : k + 6], -array[k : k + 6, k + 6 :]
    T_inverse = triangular_inverse(T.T).T
    D_inverse = T_inverse @ T_inverse.T
    K = T_inverse @ G
    K = K + (jnp.eye(k, dtype=T.dtype) - D_inverse * link.R[None] - K @ S) @ link.N
    Ba = Ba + (BaS - Ba @ S) @ link.N
    return place[:, None, None] * (Ba @ X)[None], ArrayBody(X, S, K, D_inverse, Ba)
