"""Runge-Kutta methods that may be implicit in the forces of joints, as tables of weights."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree, Scalar

from jdyn.contact import PointForces
from jdyn.dynamics.forward import keep_solutions
from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.solver import DenseOutput
from jdyn.simulation.solvers.implicit_rates import ImplicitRates
from jdyn.simulation.state import State


def triangle(rows: Sequence[Sequence[float] | np.ndarray]) -> np.ndarray:
    """A strictly lower triangular matrix, from its rows from the second on."""
    return np.array([np.pad(row, (0, len(rows) + 1 - len(row))) for row in ([], *rows)])


class Tableau(NamedTuple):
    """A method of s stages k_i = f(u_i) + h W(u_i) Σ_j≤i γ_ij k_j at u_i = u₀ + h Σ_j<i α_ij k_j.

    Attributes:
        alpha: α.
        below: γ below its diagonal; zero for an explicit method.
        diagonal: Of γ: one number for all stages that are implicit.
        b: Of the end of the step.
        error: Of the estimated error.
        dense: Of the powers of the share of the step from the first on, for dense output.
    """

    alpha: Float[np.ndarray, "s s"]
    below: Float[np.ndarray, "s s"]
    diagonal: Float[np.ndarray, " s"]
    b: Float[np.ndarray, " s"]
    error: Float[np.ndarray, " s"]
    dense: Float[np.ndarray, "n s"]


class Either(NamedTuple):
    """One of two tables of the same shape; each lane of a batch chooses for itself.

    Attributes:
        condition: Whether it is the first.
        tables: The two; weights may be traced.
    """

    condition: Bool[Array, ""]
    tables: tuple[Any, Any]

    def chosen(self, both: Array) -> Array:
        """One half of an array that has an axis for the two tables in front."""
        return jnp.where(self.condition, *both)


def stages(
    tableau: Tableau | Either,
    terms: LocalTerm,
    system: ImplicitRates,
    t0: Any,
    t1: Any,
    u0: State,
    known: State,
    first: Any,
) -> tuple[State, State]:
    """h k_i of all stages, and the last k_i. Before stage `first` the rate is the one that is `known`. Weights may be
    traced."""
    control = terms.contr(t0, t1)
    tables, chosen = _tables_of(tableau)

    def rate_at(t, u, s, c):
        """k, with what joints and contact know along the axes of velocities."""
        y, model, centre = terms.from_chart(u), terms.model, terms.centre
        r = model.chart_rate(y.q, u.q, y.v)
        k = system.rate(t, y, model.body_axes(centre, s.q + c * r), s.v, c)
        return eqx.tree_at(lambda k: k.q, k, r + model.chart_axes(centre, k.q))

    # Inside a loop, nothing needs protection from common-subexpression elimination.
    rate_at = jax.checkpoint(rate_at, prevent_cse=False, policy=keep_solutions)

    def stage(carry, row):
        k, last = carry
        i, weights, numbers = row
        after, diagonal = chosen(numbers)

        def own():
            moved, s = _apart(_sums(chosen(weights), k))
            return rate_at(t0 + after * (t1 - t0), jax.tree.map(jnp.add, u0, moved), s, diagonal * control)

        rate = jax.lax.cond(i >= first, own, lambda: last)
        k = jax.tree.map(lambda k, new: k.at[i].set(new), k, terms.prod(rate, control))
        return (k, rate), None

    weights = jnp.stack([jnp.stack([table.alpha, table.below], 1) for table in tables], 1)
    rows = jnp.arange(len(weights)), *(jnp.asarray(x, u0.v.dtype) for x in (weights, _numbers(tables)))
    return jax.lax.scan(stage, (_no_rates(tables, u0), known), rows)[0]


def ended(tableau: Tableau | Either, u0: State, k: State) -> tuple[State, State, dict[str, State]]:
    """The end of the step with these h k_i, its estimated error, and the data of dense output."""
    tables, chosen = _tables_of(tableau)
    weights = jnp.stack([jnp.concatenate([jnp.stack([x.b, x.error]), jnp.asarray(x.dense)]) for x in tables])
    change, error, *_ = _apart(sums := _sums(chosen(weights), k))
    bends = jax.tree.map(lambda x: x[2:], sums)
    return jax.tree.map(jnp.add, u0, change), error, {"y0": u0, "bends": bends}


def _tables_of(tableau: Tableau | Either) -> tuple[tuple[Any, ...], Callable[[Array], Array]]:
    """The tables, and what chooses in an array that has an axis for them in front."""
    if isinstance(tableau, Either):
        return tableau.tables, tableau.chosen
    return (tableau,), lambda alone: alone[0]


def _numbers(tables: tuple[Any, ...]) -> Array:
    """When stages are, as shares of the step, and γ on its diagonal: by stage, table and kind."""
    return jnp.stack([jnp.stack([table.alpha.sum(1), table.diagonal], 1) for table in tables], 1)


def _no_rates(tables: tuple[Any, ...], u0: State) -> State:
    """h k_i before the first stage."""
    return jax.tree.map(lambda u: jnp.zeros((len(tables[0].b), *u.shape), u.dtype), u0)


def _sums(weights: Array, k: State) -> State:
    """Σ_i weights_i k_i, a sum for each row of the weights. Summed up term by term, since XLA merges that with what
    comes before and after: on a CPU, products of matrices this small take longer, above all if each lane of a batch has
    its own."""

    def of(k: Array) -> Array:
        scaled = jnp.asarray(weights, k.dtype).reshape(*weights.shape, *[1] * (k.ndim - 1))
        return functools.reduce(jnp.add, [scaled[:, i] * k[i : i + 1] for i in range(len(k))])

    return jax.tree.map(of, k)


def _apart(sums: State) -> list[State]:
    """The trees of which all leaves are stacked."""
    leaves, tree = jax.tree.flatten(sums)
    return [tree.unflatten(each) for each in zip(*leaves, strict=True)]


class Interpolation(DenseOutput):
    """u₀ + Σ_m bends_m θ^m at a share θ of the step; contact forces are those of its first implicit stage."""

    y0: PyTree
    bends: PyTree
    contact_forces: PointForces | None = None

    def forces(self, t):
        return self.contact_forces

    def at(self, share: Scalar):
        def polynomial(y0: Array, bends: Array) -> Array:
            total = jnp.zeros_like(y0)
            for bend in bends[::-1]:
                total = share * (bend + total)
            return y0 + total

        return jax.tree.map(polynomial, self.y0, self.bends)
