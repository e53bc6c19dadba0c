"""`jdyn tune`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jdyn
from jdyn.cli.common import compiling, default_path, read_spec, write_picture
from jdyn.cli.parser import TUNE_WORDS
from jdyn.io import toml
from jdyn.io.toml import Table
from jdyn.sweep import Lane, Spec
from jdyn.terminal.tables import print_table
from jdyn.tuning import CVaR, losses
from jdyn.view import plots

# What a motion costs, by the names in a spec; efforts are relative to the limits of motors.
TERMS: dict[str, Callable[..., Any]] = {
    "tracking_error": lambda lane, band: losses.tracking_error(lane.motion, lane.move.target),
    "settling_time": lambda lane, band: losses.settling_time(lane.motion, lane.move.target, band=band),
    "overshoot": lambda lane, band: losses.overshoot(lane.motion, lane.move.target),
    "effort": lambda lane, band: losses.effort(lane.motion, weights=1 / lane.move.effort**2),
    "energy": lambda lane, band: losses.energy(lane.motion),
    "peak_torque": lambda lane, band: losses.peak_torque(lane.motion, rated=lane.move.effort),
}
# Late errors of 1 rad, and a small share for an effort at the limits.
USUAL = {"tracking_error": 1.0, "effort": 0.01}


class Tuning(NamedTuple):
    """The table `tune` of a spec.

    Attributes:
        steps: Of the optimizer.
        rate: Of Adam, in the logarithms of the gains.
        risk: Of the losses of all scenarios.
        band: Error that counts as settled [rad or m].
        weights: Of the terms of the loss, by name.
    """

    steps: int
    rate: float
    risk: Callable[[jax.Array], jax.Array]
    band: float
    weights: dict[str, float]

    @classmethod
    def read(cls, table: Table) -> Tuning:
        """Raises a ValueError that names line, entry and reason of every problem."""
        steps, rate = table.take("steps", toml.count, 30), table.take("rate", toml.positive, 0.3)
        risk, band = table.take("risk", _risk, jnp.mean), table.take("band", toml.positive, 0.02)
        loss = table.table("loss")
        usual = {} if loss.entries else USUAL
        weights = {name: loss.take(name, toml.number, usual.get(name, 0.0)) for name in TERMS}
        if not any(weights.values()):
            table.complain("loss", "expected a weight that is not zero")
        for read in (loss, table):
            read.close()
        table.check()
        return cls(steps, rate, risk, band, {name: weight for name, weight in weights.items() if weight})

    def cost(self, lane: Lane) -> jax.Array:
        """Cost of one motion."""
        terms = [weight * TERMS[name](lane, self.band) for name, weight in self.weights.items()]
        return jnp.sum(jnp.stack(terms))


def _risk(value):
    if value in ("mean", "worst"):
        # Of a share that is less than one scenario, it is the largest loss.
        return jnp.mean if value == "mean" else CVaR(np.finfo(float).tiny)
    if isinstance(value, str):
        raise ValueError(f"expected 'mean', 'worst' or a share of the scenarios, got {value!r}")
    return CVaR(toml.number(value))


def tune(options):
    """Tune PD gains by gradient, and draw before and after."""
    spec = read_spec(options, TUNE_WORDS, _from_poor_gains)
    tuning = Tuning.read(spec.tune)
    if varied := ", ".join(spec.varied_gains):
        raise ValueError(f"{options.robot}: {varied}: a gain that is tuned cannot be one of the scenarios' numbers")
    with spec.precision():
        _tune(spec, tuning, options)


def _from_poor_gains(options) -> dict:
    """The entries of the spec that words ask for: from stiff and hardly damped, so that everything swings."""
    return {
        "robot": options.robot, "dtype": options.dtype, "horizon": options.t1, "motion": {"seed": options.seed},
        "controller": {"kp": 100.0, "kd": 0.5}, "tune": {"steps": options.steps, "rate": options.rate},
    }  # fmt: skip


def _tune(spec: Spec, tuning: Tuning, options):
    model = spec.model
    scenarios = spec.scenarios()
    before = {name: jnp.full(model.nv, gain, model.dtype) for name, gain in spec.gains.items()}

    def loss(gains, scenario: Mapping[str, jax.Array]):
        return tuning.cost(spec.lane(scenario, gains))

    one = not scenarios
    with compiling() as times:
        result = jdyn.tune(
            (lambda gains: loss(gains, {})) if one else jdyn.robust(loss, tuning.risk), before,
            data=None if one else scenarios, optimizer=optax.adam(tuning.rate), steps=tuning.steps,
            bounds=jdyn.tuning.Positive(), checkpoint=options.checkpoint,
        )  # fmt: skip
    print(f"compiled in {times.compiling:.1f} s, ran in {times.running:.1f} s")
    after = result.params
    print(f"{model.name}: loss {result.losses[0]:.4g} before, {result.losses[result.best_step]:.4g} after")
    print_table(
        ("joint", "kp before", "kp after", "kd before", "kd after"),
        [
            [name, *(f"{float(gains[k][i]):.4g}" for k in ("kp", "kd") for gains in (before, after))]
            for i, name in enumerate(model.topology.v_names)
        ],
    )
    first = {name: values[0] for name, values in scenarios.items()}
    motions = {name: spec.lane(first, gains).motion for name, gains in (("before", before), ("after", after))}
    plot = options.plot or default_path("tune", spec.name).with_suffix(".png")
    write_picture(_picture(model, result, motions, spec.move.target), plot)


def _picture(model, result, motions, target):
    """The history beside the distances to the target, before and after."""
    figure = plots.Picture(figsize=(12, 4), layout="constrained")
    history, distances = figure.subplots(1, 2)
    plots.tuning(result, axes=history)
    plots.distance(motions, target, axes=distances)
    figure.suptitle(model.name)
    return figure
