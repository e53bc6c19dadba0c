"""The predictor-corrector method of Adams, Bashforth and Moulton on the configuration manifold."""

import functools
from typing import ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.model import Model
from jdyn.simulation.manifold import LONGEST, ChartInterpolation, LocalTerm, angular_speed, pushed
from jdyn.simulation.solver import Counted, DenseOutput, ManifoldSolver, Traits, Work
from jdyn.simulation.solvers import adams_weights
from jdyn.simulation.solvers.cash_karp import CASH_KARP, HALF_WAY
from jdyn.simulation.state import State

# Number of past rates that a step uses, besides the one at its start.
PAST = 3


class History(eqx.Module):
    """The initial states of the last three steps, the latest first.

    Attributes:
        known: How many of them are known.
        ages: How long before the start of the step that comes next, negative [s].
        q, v: Configurations and velocities.
        rates: Their rates; those of `q` are not used, since they differ from chart to chart.
    """

    known: Int[Array, ""]
    ages: Float[Array, "3"]
    q: Float[Array, "3 nq"]
    v: Float[Array, "3 nv"]
    rates: State


class AdamsBashforthMoulton(ManifoldSolver, diffrax.AbstractAdaptiveSolver):
    """Predictor and corrector of order 4 for steps of any length, with two evaluations of forward dynamics a step.

    A step evaluates the rate at its start, predicts with that and three past rates, evaluates, and corrects: the mode
    called PECE. The first three steps, and the first three after a jump, are Cash and Karp's of order 5 with seven
    evaluations; in a batch all lanes then evaluate seven times.

    The error is Milne's estimate from predictor and corrector, of order 5 within a step. Dense output is the
    polynomial that the corrector integrates. Past rotations are expressed in the chart about the state at the start;
    what turns so fast that they lie beyond it, by more than π, is left to Cash and Karp's steps.

    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.AdamsBashforthMoulton())
    >>> print(motion.q[-1].round(3))
    [-0.902]

    Source: Hairer, Nørsett, Wanner 1993, sections III.1 and III.5; Faltinsen, Marthinsen, Munthe-Kaas, Multistep
    methods integrating ordinary differential equations on manifolds, Applied Numerical Mathematics 39, 2001.

    Attributes:
        model: The mechanism; `simulate` fills it in.
    """

    model: Model | None = None

    traits: ClassVar[Traits] = Traits(charts=True, resumes=False)

    def order(self, terms):
        return 4

    def error_order(self, terms):
        return 5

    def init(self, terms, t0, t1, y0, args):
        u0 = LocalTerm(terms, self.mechanism, y0.q).to_chart(y0)
        ages, q, v, rates = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (PAST, *x.shape)),
            (jnp.zeros_like(t0), y0.q, y0.v, jax.tree.map(jnp.zeros_like, u0)),
        )
        return Counted(History(jnp.array(0), ages, q, v, rates), Work.of())

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        history: History = solver_state.memory
        forgotten = made_jump | _beyond(self.mechanism, history, y0)
        history = eqx.tree_at(lambda h: h.known, history, jnp.where(forgotten, 0, history.known))
        local, control = LocalTerm(terms, self.mechanism, y0.q), terms.contr(t0, t1)
        u0 = local.to_chart(y0)

        def increment(weights, rates):
            return terms.prod(_weighted(weights, rates), control)

        def rate(time, weights, rates):
            u = jax.tree.map(jnp.add, u0, increment(weights, rates))
            return local.vf(t0 + time * (t1 - t0), u, args)

        starting = history.known < PAST
        scheme = _scheme(starting, history.ages / (t1 - t0))
        # With one number of stages for each lane, a batch would evaluate all stages and select afterwards.
        most, own = (jnp.where(condition, CASH_KARP.num_stages, 2) for condition in (unvmap_any(starting), starting))
        rates = _evaluated(most, scheme, rate, _in_chart(local, history))
        powers = increment(scheme.powers, rates)
        u1 = jax.tree.map(lambda u, powers: u + jnp.sum(powers, axis=0), u0, powers)
        return (
            local.from_chart(u1),
            pushed(local, u1, increment(scheme.error, rates)),
            {"centre": y0.q, "local": {"u0": u0, "powers": powers}},
            Counted(
                _remembered(history, jnp.asarray(t1 - t0), y0, jax.tree.map(lambda r: r[PAST], rates)), Work.of(own)
            ),
            diffrax.RESULTS.successful,
        )

    @property
    def interpolation_cls(self):
        return functools.partial(ChartInterpolation, _PowerInterpolation, self.mechanism)


class _Scheme(NamedTuple):
    """A step as weights of rates: three past ones, then those of the stages, of which the first is the start.

    Attributes:
        times: Of the stages, from 0 to 1 within the step.
        coefficients: Of the rates, in the state at which each stage is evaluated.
        powers: Of the rates, in the state within the step, for each power of the time from the first to the fourth.
        error: Of the rates, in the estimate of the error.
    """

    times: Float[Array, " stages"]
    coefficients: Float[Array, "stages rates"]
    powers: Float[Array, "powers rates"]
    error: Float[Array, " rates"]


def _scheme(starting: Bool[Array, ""], x: Float[Array, "3"]) -> _Scheme:
    """Cash and Karp's method at the start, and the predictor-corrector afterwards.

    Args:
        starting: Whether this is the start.
        x: Past times, as `adams_weights` counts them.
    """
    # Unknown times must not cause NaN, even where the result is not used.
    x = jnp.where(starting, -jnp.arange(1, PAST + 1, dtype=x.dtype), x)
    return jax.tree.map(
        lambda first, following: jnp.where(starting, jnp.asarray(first, x.dtype), following),
        _first_scheme(),
        _multistep_scheme(x),
    )


def _first_scheme():
    stages = CASH_KARP.num_stages
    coefficients = np.zeros((stages, PAST + stages))
    for i, row in enumerate(CASH_KARP.a_lower, start=1):
        coefficients[i, PAST : PAST + i] = row
    # The quartic through the state half-way and both ends with their slopes.
    data = np.zeros((4, PAST + stages))
    data[0, PAST], data[1, -1], data[2, PAST:], data[3, PAST:] = 1, 1, HALF_WAY, CASH_KARP.b_sol
    powers = np.array([[1, 0, 0, 0], [-4, 1, 16, -5], [5, -3, -32, 14], [-2, 2, 16, -8]]) @ data
    times, error = np.concatenate([[0], CASH_KARP.c]), np.concatenate([np.zeros(PAST), CASH_KARP.b_error])
    # NumPy arrays, which become arrays of the state's type.
    return _Scheme(times, coefficients, powers, error)  # type: ignore[arg-type]


def _multistep_scheme(x: Float[Array, "3"]) -> _Scheme:
    stages = CASH_KARP.num_stages
    rates = np.array([PAST + 1, PAST, 0, 1, 2])
    predicted = jnp.zeros(PAST + stages, x.dtype).at[rates].set(adams_weights.predictor(x))
    powers = jnp.zeros((4, PAST + stages), x.dtype).at[:, rates].set(adams_weights.corrector(x))
    return _Scheme(
        times=jnp.zeros(stages, x.dtype).at[1].set(1),
        coefficients=jnp.zeros((stages, PAST + stages), x.dtype).at[1].set(predicted),
        powers=powers,
        error=adams_weights.milne(x) * (jnp.sum(powers, axis=0) - predicted),
    )


def _evaluated(stages: Int[Array, ""], scheme: _Scheme, rate, past: State) -> State:
    """The rates of all stages, below the past ones; zero beyond the number of stages."""
    start = jax.tree.map(lambda x: jnp.concatenate([x, jnp.zeros((len(scheme.times), *x.shape[1:]), x.dtype)]), past)

    def stage(rates, row):
        number, time, weights = row
        new = jax.lax.cond(
            number < stages,
            lambda: rate(time, weights, rates),
            lambda: jax.tree.map(lambda x: jnp.zeros(x.shape[1:], x.dtype), rates),
        )
        return jax.tree.map(lambda rates, new: rates.at[PAST + number].set(new), rates, new), None

    return jax.lax.scan(stage, start, (jnp.arange(len(scheme.times)), scheme.times, scheme.coefficients))[0]


def _weighted(weights, rates: State) -> State:
    return jax.tree.map(lambda rates: jnp.tensordot(weights, rates, 1, precision="highest"), rates)


def _beyond(model: Model, history: History, y0: State) -> Bool[Array, ""]:
    """Tell whether past rotations may be beyond the chart about a state."""
    if model.flat:
        return jnp.array(False)
    speeds = jax.vmap(lambda v: angular_speed(model, v))(jnp.concatenate([history.v, y0.v[None]]))
    return -history.ages[-1] * jnp.max(speeds) > LONGEST


def _in_chart(local: LocalTerm, history: History) -> State:
    """The past rates in the chart of the current step."""

    def rate(q, v):
        # Rates in a chart depend on where its rotations are alone, and those are what `difference` has as well.
        return local.model.chart_rate(q, local.model.difference(local.centre, q), v)

    return eqx.tree_at(lambda rates: rates.q, history.rates, jax.vmap(rate)(history.q, history.v))


def _remembered(history: History, h: Scalar, y0: State, rate: State) -> History:
    def pushed_back(new, old):
        return jnp.concatenate([new[None], old[:-1]])

    return History(
        known=jnp.minimum(history.known + 1, PAST),
        ages=pushed_back(jnp.zeros_like(h), history.ages) - h,
        q=pushed_back(y0.q, history.q),
        v=pushed_back(y0.v, history.v),
        rates=jax.tree.map(pushed_back, rate, history.rates),
    )


class _PowerInterpolation(DenseOutput):
    u0: State
    powers: State

    def at(self, share):
        weights = share ** jnp.arange(1, 5, dtype=share.dtype)
        return jax.tree.map(jnp.add, self.u0, _weighted(weights, self.powers))
