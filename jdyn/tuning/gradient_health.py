"""Checks of a gradient before it is used."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jdyn.simulation import Trajectory
from jdyn.tuning.comparison import Derivative, compared, directions_in
from jdyn.tuning.first_nan import FirstNaN, Place, SystemOf, of_gradient, of_value
from jdyn.tuning.growth import Growth, fitted_growth
from jdyn.tuning.parameters import named_leaves, scalar, tunable

# Bisections of an interval of horizons whose end has a gradient that is not finite.
HALVINGS = 10


@dataclasses.dataclass(frozen=True)
class GradientHealth:
    """Result of `gradient_health`; `print` shows it as a report.

    >>> health = jdyn.gradient_health(lambda p: (p["kp"] - 7.0) ** 2, {"kp": 1.0})
    >>> health.healthy, health.gradient_norm
    (True, 12.0)

    Attributes:
        value: The loss.
        gradient_norm: Euclidean norm of its gradient.
        derivatives: Directional derivatives, compared with finite differences.
        growth: Growth of the gradient with the horizon; None without `horizons`.
        first_nan: The first place where the loss or its gradient is not finite; None if there is none.
    """

    value: float
    gradient_norm: float
    derivatives: tuple[Derivative, ...]
    growth: Growth | None
    first_nan: FirstNaN | None

    @property
    def wrong(self) -> tuple[str, ...]:
        """Leaves whose gradient disagrees with finite differences."""
        return tuple(dict.fromkeys(d.leaf for d in self.derivatives if d.verdict == "disagrees"))

    @property
    def healthy(self) -> bool:
        """Tell whether everything is finite, and nothing disagrees."""
        return self.first_nan is None and not self.wrong

    def __str__(self):
        parts = [f"loss {self.value:.6g}, |gradient| {self.gradient_norm:.6g}", *self._table()]
        parts += [str(part) for part in (self.growth, self.first_nan) if part is not None]
        return "\n".join(parts)

    def _table(self):
        if not self.derivatives:
            return []
        width = max(len(d.leaf + d.direction) for d in self.derivatives)
        rows = [f"{'':{width}}  {'autodiff':>13}  {'differences':>13}  {'error':>7}"]
        for d in self.derivatives:
            note = f": {d.note}" if d.note else ""
            rows.append(
                f"{d.leaf + d.direction:{width}}  {d.autodiff:13.6e}  {d.differences:13.6e}  {d.error:7.0e}  "
                f"{d.verdict}{note}"
            )
        return [*rows, self._summary()]

    def _summary(self):
        verdicts = [d.verdict for d in self.derivatives]
        if self.wrong:
            return (
                f"Autodiff disagrees with finite differences for {', '.join(self.wrong)}: do not descend this gradient."
            )
        if "not finite" in verdicts:
            return "The gradient is not finite."
        if "cannot tell" in verdicts:
            agreeing = verdicts.count("agrees")
            return (
                f"{agreeing} of {len(verdicts)} derivatives agree, and finite differences cannot tell about the rest."
            )
        return "Autodiff agrees with finite differences."


def gradient_health(
    loss: Callable[..., Float[Array, ""] | tuple[Float[Array, ""], Trajectory]],
    params: PyTree,
    *,
    horizons: Sequence[float] = (),
    system: SystemOf | None = None,
    directions: int = 4,
    rtol: float | None = None,
    seed: int = 0,
) -> GradientHealth:
    """Check that the gradient of a loss is right, finite, and does not explode with the simulated time; find where it
    fails.

    ```
    def loss(params, t1):
        motion = jdyn.simulate(model, q0, v0, t1, controller=jdyn.PD(model, target, **params), throw=False)
        return jnp.sum((motion.q - target) ** 2), motion

    print(jdyn.gradient_health(loss, {"kp": 50.0, "kd": 5.0}, horizons=(0.5, 1.0, 2.0)))
    ```

    Reverse-mode derivatives along every coordinate of small leaves, and along random directions in larger ones, are
    compared with central differences and their error estimate. They may agree or disagree; if the loss is noisy,
    chaotic or has a kink, the comparison may be impossible. A loss that simulates with adaptive steps is as noisy as
    its tolerances are loose. Steps suit the motion, not its derivative: if a parameter changes little now but causes
    something abrupt, such as friction that starts from zero, its derivative may be much less exact.

    >>> health = jdyn.gradient_health(lambda p: jnp.sqrt(p["kp"] - 1.0), {"kp": 1.0})
    >>> health.healthy
    False

    Args:
        loss: Scalar function of the parameters, as for `tune`, or of the parameters and the horizon [s] if `horizons`
            are given. If it returns `(value, trajectory)`, numbers that are not finite are searched in the trajectory.
            With `throw=False` in its simulation, a failure does not end the check.
        params: Any PyTree; its floating-point leaves are checked.
        horizons: At least three simulated times [s], shortest first. The gradient is computed for each, everything else
            for the last.
        system: The `jdyn.System` that the loss simulates, as a function of the parameters: with it, and the trajectory,
            bodies are named whose force or acceleration, or a derivative of it, is not finite.
        directions: Number of directions in a leaf: its coordinates if they are no more, else random ones.
        rtol: Relative difference that still counts as agreement; 1e-3 if left out, 1e-2 in float32. Autodiff takes
            the step sizes of an adaptive simulation for constants, so agreement ends at its tolerances.
        seed: Seed of random directions.

    Raises:
        ValueError: if there is nothing to differentiate, a parameter is NaN, the horizons are not three or more that
            increase, or `loss` returns something else.

    Source: of the differences, Ridders 1982, see `jdyn.tuning.finite_differences`.
    """
    tuned, fixed = tunable(params)
    _check(tuned, horizons, directions)
    times = _times(tuned, horizons)
    programs = _Programs.of(loss, fixed, times[-1])
    (value, trajectory), gradient = programs.gradient(tuned, times[-1])
    norms = [programs.norm(tuned, t1) for t1 in times[:-1]] + [_norm(value, gradient)]
    derivatives, first_nan = (), None
    if np.isfinite(value):
        along = functools.partial(programs.values_along, tuned)
        looked_along = directions_in(tuned, directions, seed)
        derivatives = tuple(compared(along, tuned, gradient, rtol, direction) for direction in looked_along)
    if not np.isfinite(norms[-1]):
        params = eqx.combine(tuned, fixed)
        leaves, place = _place(programs, value, gradient, trajectory, tuned, params, system)
        if place.time is None and len(horizons):
            place = place._replace(time=_shortest(programs, tuned, horizons, norms))
        first_nan = FirstNaN(leaves, place.time, place.bodies, place.reason)
    growth = fitted_growth(horizons, norms) if len(horizons) else None
    return GradientHealth(float(value), norms[-1], derivatives, growth, first_nan)


class _Programs(NamedTuple):
    """A loss, compiled.

    Attributes:
        gradient: `(tuned, t1) -> (value, trajectory), gradient`.
        values_along: `(tuned, move, steps) -> values` at the last horizon.
        gradient_of_rows: `tuned -> gradient` of a sum over the rows of the trajectory, at the last horizon.
    """

    gradient: Callable
    values_along: Callable
    gradient_of_rows: Callable

    @staticmethod
    def of(loss, fixed, last) -> "_Programs":
        def evaluate(tuned, t1):
            result = loss(eqx.combine(tuned, fixed), *(() if t1 is None else (t1,)))
            value, trajectory = result if isinstance(result, tuple) else (result, None)
            if not (trajectory is None or isinstance(trajectory, Trajectory)):
                found = type(trajectory).__name__
                raise ValueError(f"loss: expected a value, or a value and a jdyn.Trajectory, got a value and a {found}")
            return scalar(value), trajectory

        def values_along(tuned, move, steps):
            def value(h):
                moved = jax.tree.map(lambda x, dx: x + h.astype(x.dtype) * dx, tuned, move)
                return evaluate(moved, last)[0]

            # One after another: each has its own step sizes, and one loss at a time needs memory.
            return jax.lax.map(value, steps)

        def rows(tuned):
            trajectory: Any = evaluate(tuned, last)[1]
            return sum(jnp.sum(jnp.where(jnp.isfinite(x), x, 0)) for x in (trajectory.q, trajectory.v))

        gradient = eqx.filter_value_and_grad(evaluate, has_aux=True)
        return _Programs(eqx.filter_jit(gradient), eqx.filter_jit(values_along), eqx.filter_jit(jax.grad(rows)))

    def norm(self, tuned, t1) -> float:
        (value, _), gradient = self.gradient(tuned, t1)
        return _norm(value, gradient)


def _check(tuned, horizons, directions):
    nan = [name for name, leaf in named_leaves(tuned) if np.any(np.isnan(leaf))]
    if nan:
        raise ValueError(f"params: expected numbers, found NaN in {', '.join(nan)}")
    if directions < 1:
        raise ValueError(f"directions: expected at least 1, got {directions}")
    increasing = all(a < b for a, b in itertools.pairwise([0.0, *horizons]))
    if len(horizons) and (len(horizons) < 3 or not increasing):
        raise ValueError(f"horizons: expected three or more positive times that increase, got {tuple(horizons)}")


def _times(tuned, horizons):
    dtype = functools.reduce(jnp.promote_types, (leaf.dtype for leaf in jax.tree.leaves(tuned)))
    return [jnp.asarray(t1, dtype) for t1 in horizons] or [None]


def _norm(value, gradient) -> float:
    """Euclidean norm without overflow; NaN if the value is not finite."""
    if not np.isfinite(value):
        return np.nan
    return math.hypot(*(float(x) for leaf in jax.tree.leaves(gradient) for x in np.ravel(leaf)))


def _place(programs, value, gradient, trajectory, tuned, params, system) -> tuple[tuple[str, ...], Place]:
    """Leaves whose derivative is not finite, and the first place of it."""
    if not np.isfinite(value):
        leaves = tuple(name for name, _ in named_leaves(tuned))
        return leaves, _UNSEEN if trajectory is None else of_value(trajectory, system, params)
    leaves = tuple(name for name, leaf in named_leaves(gradient) if not np.all(np.isfinite(leaf)))
    if trajectory is None:
        return leaves, _UNSEEN
    place = None if system is None else of_gradient(trajectory, system, params)
    if place is not None:
        return leaves, place
    if np.isfinite(_norm(value, programs.gradient_of_rows(tuned))):
        return leaves, Place(None, (), "the trajectory has a finite gradient, what the loss makes of it has not")
    more = "give `system` to have the body named" if system is None else "save more rows to have it found"
    return leaves, Place(None, (), f"the gradient of the trajectory is not finite; {more}")


_UNSEEN = Place(None, (), "let the loss return (value, trajectory) to have it looked for in the simulation")


def _shortest(programs, tuned, horizons, norms) -> float:
    """The shortest horizon whose gradient is not finite, by bisection."""
    finite = [0, *(i + 1 for i, norm in enumerate(norms) if np.isfinite(norm))]
    good, bad = [0.0, *horizons][finite[-1]], horizons[finite[-1]]
    for _ in range(HALVINGS):
        middle = (good + bad) / 2
        norm = programs.norm(tuned, _times(tuned, [middle])[0])
        good, bad = (middle, bad) if np.isfinite(norm) else (good, middle)
    return bad
