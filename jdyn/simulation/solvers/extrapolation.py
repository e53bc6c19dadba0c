"""Extrapolation of the midpoint rule with control of order and step."""

import abc
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_any
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.dynamics.forward import keep_solutions
from jdyn.simulation.solver import Counted, DenseOutput, Work
from jdyn.simulation.solvers.step_rate import StepRate

Vector = Float[Array, " n"]

# Target column of the first step; Hairer, Nørsett, Wanner start near it for tolerances of 1e-6.
FIRST_COLUMN = 4

# Smaller estimates, as a fraction of the tolerance, show rounding more than the order.
SMALLEST_ERROR = 1e-10

# Steps whose column may change end before dense output would enlarge rounding to this share of a change.
NOISE = 2e-3


class Tables(NamedTuple):
    """Numbers of a sequence of substeps n₁ < n₂ < ...; rows and columns are counted from 0.

    One list holds all substeps of all rows, since a loop of variable length has no derivative in reverse mode. The
    first entry is the evaluation at the start, which all rows share.

    Attributes:
        row, number: Of each substep, its row, and its number in there.
        share: Fraction of the step before each substep.
        last: Whether a substep is the last one of its row.
        differences: Of each substep's state, in the differences about the middle of a step that its row has.
        solution, coarse: Of the rows' results, in each column's extrapolated value and in the one beside it.
        dense: Of the rows' differences, by order, in each column's derivatives in the middle.
        noise: By how much dense output enlarges rounding of states, in each column.
        evaluations: Up to each row.
    """

    row: np.ndarray
    number: np.ndarray
    share: np.ndarray
    last: np.ndarray
    differences: np.ndarray
    solution: np.ndarray
    coarse: np.ndarray
    dense: np.ndarray
    noise: np.ndarray
    evaluations: np.ndarray

    def last_column(self, dtype: Any) -> int:
        """The last one in which dense output of a type is not rounding."""
        # In half precision all are.
        return max(2, int(np.sum(self.noise * float(jnp.finfo(dtype).eps) < NOISE)) - 1)

    @classmethod
    def of(cls, sequence: tuple[int, ...]) -> "Tables":
        count = len(sequence)
        places = [(0, 0), *((j, m) for j, n in enumerate(sequence) for m in range(1, n + 1))]
        orders = 2 * count - 1
        solution, coarse = np.zeros((count, count)), np.zeros((count, count))
        dense = np.zeros((count, orders, count))
        for column in range(count):
            solution[column, : column + 1] = _at_zero(sequence[: column + 1])
            coarse[column, 1 : column + 1] = _at_zero(sequence[1 : column + 1])
            for order in range(2 * column + 1):
                # Rows whose substeps reach as far from the middle as the difference does.
                first = next(j for j, n in enumerate(sequence) if n // 2 >= order)
                dense[column, order, first : column + 1] = _at_zero(sequence[first : column + 1])
        rows, numbers = (np.array(x, np.int32) for x in zip(*places, strict=True))
        lengths = np.array(sequence)[rows]
        differences = [[_difference(n, m, k) for k in range(orders)] for n, m in zip(lengths, numbers, strict=True)]
        per_row = np.array([np.square(np.array(differences)[rows == j]).sum(0) for j in range(count)])
        scales = np.array([0.5**k / math.factorial(k) for k in range(orders)])
        noise = np.sqrt(np.einsum("ckr,rk->ck", dense**2, per_row)) * scales
        return cls(
            row=rows,
            number=numbers,
            share=numbers / lengths,
            last=numbers == lengths,
            differences=np.array(differences),
            solution=solution,
            coarse=coarse,
            dense=dense,
            noise=noise.max(1),
            evaluations=1 + np.cumsum(sequence, dtype=np.int32),
        )


def _at_zero(sequence) -> np.ndarray:
    """Weights of values at h = 1/n in the polynomial in h² through them, at h = 0."""
    squares = np.array(sequence, float) ** 2
    return np.array([np.prod([s / (s - other) for other in squares if other != s]) for s in squares])


def _difference(n: int, m: int, order: int) -> float:
    """Weight of state m of n in the central difference of an order about the middle, times n/2 to that power. States
    an even number apart take part, which have an expansion in h² together."""
    away = m - n // 2 + order
    if order > n // 2 or away % 2 or not 0 <= away <= 2 * order:
        return 0.0
    return (n / 2) ** order * (-1) ** (order - away // 2) * math.comb(order, away // 2)


class System(NamedTuple):
    """The linear part of a midpoint rule.

    Attributes:
        solve: From a row, a share of the step over which the rate changes with time, and a vector, the solution of the
            row's system.
        work: Evaluations and Jacobians that it took.
    """

    solve: Callable[[Array, Scalar, Vector], Vector]
    work: Work


class Extrapolation(diffrax.AbstractAdaptiveSolver):
    """A midpoint rule, extrapolated in h² to h = 0: row by row, with one more column each.

    Each step aims at the column that took the least work for its length in the step before, and may end one column
    earlier or later, depending on the error. Step controllers see an error of order 1: the step's length over that of
    the longest step that would meet the tolerance. So `diffrax.PIDController` finds the right length for every column.

    Dense output has the order of the column: a polynomial through both ends, with derivatives of the motion in the
    middle, which are extrapolated in the same way. It is smooth except where steps meet. Its error between the ends is
    the larger one where steps are long, and counts as theirs does.

    Attributes:
        columns: Number of columns of every step, at least 2; chosen step by step if None.
        rtol, atol, norm: Tolerances for choosing the order; `simulate` takes them from the step controller.
    """

    columns: eqx.AbstractVar[int | None]
    rtol: eqx.AbstractVar[Any]
    atol: eqx.AbstractVar[Any]
    norm: eqx.AbstractVar[Callable[[PyTree], Scalar]]

    # Substeps of the rows, each n/2 an odd number; how much of the last one's correction smooths its end; and by how
    # much the order of column k is less than 2k.
    tables: eqx.AbstractClassVar[Tables]
    smoothing: eqx.AbstractClassVar[float]
    loss: eqx.AbstractClassVar[int]

    term_structure: ClassVar = diffrax.AbstractTerm

    @property
    def interpolation_cls(self):
        return _Interpolation

    @abc.abstractmethod
    def system(self, rate: StepRate) -> System:
        """The linear part of a step."""

    @abc.abstractmethod
    def overhead(self, size: int) -> float:
        """Cost of a step beside evaluations, in evaluations, with so many numbers in a state."""

    def __check_init__(self):
        most = len(self.tables.evaluations)
        if self.columns is not None and not 2 <= self.columns <= most:
            raise ValueError(f"columns: expected 2 to {most}, or None, got {self.columns}")

    def with_tolerances(self, rtol, atol, norm) -> Self:
        """This solver with tolerances of a step controller where it has none."""
        if self.rtol is not None:
            return self
        return eqx.tree_at(
            lambda s: (s.rtol, s.atol, s.norm), self, (rtol, atol, norm), is_leaf=lambda leaf: leaf is None
        )

    def order(self, terms):
        return 2 * (self.columns or FIRST_COLUMN) - self.loss

    def error_order(self, terms):
        return 1

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)

    def init(self, terms, t0, t1, y0, args):
        if self.rtol is None or self.atol is None:
            name = type(self).__name__
            raise ValueError(f"{name}: expected tolerances; outside of jdyn.simulate make it with {name}(rtol=, atol=)")
        return Counted(jnp.array((self.columns or FIRST_COLUMN) - 1, jnp.int32), Work.of())

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        rate = StepRate(terms, t0, t1, y0, args)
        x0, unravel = rate.start, rate.state

        def size(error: Vector, change: Vector) -> Scalar:
            scale = self.atol + self.rtol * jnp.maximum(jnp.abs(x0), jnp.abs(x0 + change))
            return jnp.asarray(self.norm(unravel(error / scale)), x0.dtype)

        system = self.system(rate)
        found = self._rows(rate, system, x0, solver_state.memory, size)
        weights = jnp.asarray(self.tables.solution, x0.dtype)[found.column]
        change = _weighted(weights, found.ends)
        error = _weighted(weights - jnp.asarray(self.tables.coarse, x0.dtype)[found.column], found.ends)
        powers = _powers(self.tables, found, change)
        last, before = (size(*jax.lax.stop_gradient((term, change))) for term in _last_terms(powers, found.column))
        ratio, following = self._judged(found, len(x0), _between(last, before, found.column))
        error = error * jax.lax.stop_gradient(ratio / found.sizes[found.column])
        y1 = unravel(x0 + change)
        dense = {"y0": y0, "y1": y1, "powers": jax.vmap(unravel)(powers)}
        work = system.work + Work.of(jnp.asarray(self.tables.evaluations)[found.column])
        return y1, unravel(error), dense, Counted(following, work), diffrax.RESULTS.successful

    def _rows(self, rate, system: System, x0: Vector, target, size) -> "_Rows":
        """Rows of the scheme until the error is small enough, or cannot become so."""
        tables, count = self.tables, len(self.tables.evaluations)
        lengths = jnp.asarray(np.diff(tables.evaluations, prepend=1), x0.dtype)
        # Inside a loop, nothing needs protection from common-subexpression elimination.
        rate_at = jax.checkpoint(lambda after, x: rate(after, x), prevent_cse=False, policy=keep_solutions)

        def evaluated(found: _Rows, place) -> _Rows:
            row, number, share, last, weights = place
            n = lengths[row]
            change, step = found.change, found.step
            first = system.solve(row, 1 / n, found.start / n)
            change, step = (jnp.where(number == 1, first, old) for old in (change, step))
            here = rate_at(share, x0 + jnp.where(number == 0, 0, change))
            bend = jnp.where(number == 0, 0, system.solve(row, jnp.zeros_like(n), here / n - step))
            end = change + self.smoothing * bend
            ends = found.ends.at[row].set(jnp.where(last, end, found.ends[row]))
            differences = found.differences.at[row].add(jnp.outer(weights, change))
            column = jnp.where(last, row, found.column)
            error = size(*jax.lax.stop_gradient(self._column(ends, row)))
            error = jnp.where(row == 0, jnp.inf, jnp.maximum(error, SMALLEST_ERROR))
            sizes = found.sizes.at[row].set(jnp.where(last, error, found.sizes[row]))
            return _Rows(
                start=jnp.where(number == 0, here, found.start),
                change=jnp.where(number == 0, 0, change + step + 2 * bend),
                step=jnp.where(number == 0, 0, step + 2 * bend),
                ends=ends,
                differences=differences,
                sizes=sizes,
                column=column,
                done=last & self._ends(target, row, error),
            )

        def substep(found: _Rows, place):
            # With one condition for each lane, a batch would evaluate all substeps and select afterwards.
            after = jax.lax.cond(unvmap_any(~found.done), evaluated, lambda found, place: found, found, place)
            return jax.tree.map(lambda new, old: jnp.where(found.done, old, new), after, found), None

        none, rows = jnp.zeros_like(x0), jnp.zeros((count, len(x0)), x0.dtype)
        differences = jnp.zeros((count, 2 * count - 1, len(x0)), x0.dtype)
        sizes = jnp.full(count, jnp.inf, x0.dtype)
        start = _Rows(none, none, none, rows, differences, sizes, jnp.zeros((), jnp.int32), jnp.array(False))
        places = (
            *(jnp.asarray(x) for x in (tables.row, tables.number)),
            jnp.asarray(tables.share, x0.dtype),
            jnp.asarray(tables.last),
            jnp.asarray(tables.differences, x0.dtype),
        )
        return jax.lax.scan(substep, start, places)[0]

    def _column(self, ends, row):
        """The error estimate of the last column of a row, and its value."""
        weights = jnp.asarray(self.tables.solution, ends.dtype)[row]
        coarse = jnp.asarray(self.tables.coarse, ends.dtype)[row]
        return _weighted(weights - coarse, ends), _weighted(weights, ends)

    def _ends(self, target, row, error):
        """Tell whether a row is the last: its error meets the tolerance, or cannot be expected to within the window of
        columns from the one before the target to the one behind it."""
        if self.columns is not None:
            return row == target
        n = np.diff(self.tables.evaluations, prepend=1)
        # Row j divides the error by (n_j / n_1)².
        gain = jnp.asarray(np.append(n[1:], n[-1]) ** 2 / n[0] ** 2, error.dtype)
        left = jnp.where(row < target, gain[row] * gain[jnp.minimum(row + 1, len(n) - 1)], gain[row])
        hopeless = ~(error <= left) & (row > 0)
        return (row >= target - 1) & ((error <= 1) | hopeless | (row > target))

    def _judged(self, found: "_Rows", size: int, between: Scalar):
        """The step's length over that of the next one, which is at most 1 for a step that meets the tolerance; and the
        column that the next one aims at.

        Source: Hairer, Nørsett, Wanner 1993, section II.9, equations (9.26) to (9.29).
        """
        column, dtype = found.column, found.sizes.dtype
        rows = np.arange(len(found.sizes))
        # The estimate is that of the column before. The first has none.
        shares = found.sizes ** jnp.asarray(1 / np.maximum(2 * rows + 1 - self.loss, 1), dtype)
        works = jnp.asarray(self.tables.evaluations + self.overhead(size), dtype)
        # Dense output between the ends has one order more than the highest of its powers.
        between = between ** (1 / jnp.asarray(2 * column + 3, dtype))
        ratio = jnp.maximum(shares[column], between)
        if self.columns is not None:
            return ratio, jnp.array(self.columns - 1, jnp.int32)
        accepted = ratio <= 1
        costs = works * shares
        before = jnp.maximum(column - 1, 1)
        lower = (column > 1) & (costs[before] < 0.8 * costs[column])
        higher = ~lower & ((column == 1) | (costs[column] < 0.9 * costs[before]))
        following = jnp.where(lower, before, jnp.where(higher, column + 1, column))
        following = jnp.clip(following, 1, self.tables.last_column(dtype) - 1)
        longer = jnp.where(
            following > column, ratio * works[column] / works[jnp.minimum(column + 1, len(rows) - 1)], shares[following]
        )
        return jnp.where(accepted, jnp.clip(longer, between, 1), ratio), following.astype(jnp.int32)


class _Rows(NamedTuple):
    """The rows of a step so far, as changes from its start.

    Attributes:
        start: Rate at the start, over the whole step.
        change, step: Of the current row, the state at the next substep, and how it came there.
        ends: Results.
        differences: About the middle, by order.
        sizes: Of errors, as shares of the tolerance.
        column: Last row.
        done: Whether there are no more.
    """

    start: Vector
    change: Vector
    step: Vector
    ends: Float[Array, "rows n"]
    differences: Float[Array, "rows orders n"]
    sizes: Float[Array, " rows"]
    column: Array
    done: Array


def _powers(tables: Tables, found: _Rows, change: Vector) -> Float[Array, "powers n"]:
    """Coefficients of the dense output, by powers of the time from the middle, -1/2 to 1/2."""
    orders = found.differences.shape[1]
    dtype = change.dtype
    weights = jnp.asarray(tables.dense, dtype)[found.column]
    factorials = jnp.asarray([math.factorial(k) for k in range(orders)], dtype)
    inner = jnp.einsum("kr,rkn->kn", weights, found.differences, precision="highest") / factorials[:, None]
    halves = jnp.asarray(0.5 ** np.arange(orders), dtype)
    even, odd = (_weighted(halves[part::2], inner[part::2]) for part in (0, 1))
    # What both ends ask for beyond: one odd power and one even.
    top = 2 * found.column + 1
    half = jnp.asarray(0.5 ** np.arange(orders + 1), dtype)[top]
    powers = jnp.concatenate([inner, jnp.zeros((2, change.shape[0]), dtype)])
    return powers.at[top].set((change / 2 - odd) / half).at[top + 1].set((change / 2 - even) / (half / 2))


def _last_terms(powers: Float[Array, "powers n"], column: Array) -> list[Vector]:
    """Sizes at the ends of the last odd and even term of dense output, together, and of those before."""
    halves = jnp.asarray(0.5 ** np.arange(len(powers)), powers.dtype)
    terms = jnp.abs(powers) * halves[:, None]
    return [terms[k] + terms[k + 1] for k in (2 * column + 1, 2 * column - 1)]


def _between(last: Scalar, before: Scalar, column: Array) -> Scalar:
    """Error of dense output between the ends, by the sizes of its last terms: that of terms which follow if they are as
    much smaller again, in the form xᵏ⁺² − xᵏ/4 that is zero at both ends, with the last even power k."""
    k = (2 * column + 2).astype(last.dtype)
    most = (k / (k + 2)) ** (k / 2) * 2 / (k + 2)
    return most * last * jnp.minimum(last / jnp.where(before > 0, before, 1), 1)


def _weighted(weights, rows: Float[Array, "rows n"]) -> Vector:
    return jnp.tensordot(weights, rows, 1, precision="highest")


class _Interpolation(DenseOutput):
    y0: PyTree
    y1: PyTree
    powers: PyTree

    def at(self, share):
        away = share - 0.5
        count = len(jax.tree.leaves(self.powers)[0])
        weights = away ** jnp.arange(count, dtype=away.dtype)
        return jax.tree.map(lambda y0, powers: y0 + jnp.tensordot(weights, powers, 1), self.y0, self.powers)
