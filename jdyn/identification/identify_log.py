"""Identification from a log: filters, delay, offsets and gains of measured efforts, and forces that were held out."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from jdyn.identification.channels import CHANNELS, Channel, ChannelFit, fit_channels
from jdyn.identification.filters import ParallelFilter
from jdyn.identification.identify import Identification, check_request, nearest_possible
from jdyn.identification.measurement import in_radians, measurement
from jdyn.identification.recording import WIDER, recording
from jdyn.identification.rows import Rows, filtered_rows, measured_rows
from jdyn.identification.standard import PARTS, Part, indices_of
from jdyn.model import Model, checked
from jdyn.terminal.tables import print_table

if TYPE_CHECKING:
    import xarray

# Widest band of the parallel filter, by the rate of sampling.
NYQUIST = 0.5


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Forces of a log, measured and as the identified model predicts them, through one filter.

    >>> zero = np.zeros((3, 1))
    >>> found = jdyn.identification.Prediction(np.arange(3.0), zero, zero + 1.0, zero, zero, zero)
    >>> print(found.errors)
    [1.]

    Attributes:
        times: [s], shape (rows,).
        v: Velocities [rad/s or m/s], shape (rows, nv).
        measured: Measured forces [N m or N], by the delay, offsets and gains that suit the identified model best, shape
            (rows, nv).
        predicted: By the identified model.
        nominal: By the model that was given.
        friction: Share of dampers and friction in `predicted`.
    """

    times: Float[np.ndarray, " rows"]
    v: Float[np.ndarray, "rows nv"]
    measured: Float[np.ndarray, "rows nv"]
    predicted: Float[np.ndarray, "rows nv"]
    nominal: Float[np.ndarray, "rows nv"]
    friction: Float[np.ndarray, "rows nv"]

    @property
    def residuals(self) -> Float[np.ndarray, "rows nv"]:
        """Measured forces less predicted ones [N m or N]."""
        return self.measured - self.predicted

    @property
    def errors(self) -> Float[np.ndarray, " nv"]:
        """Root of the mean square of residuals [N m or N]."""
        return np.sqrt(np.mean(self.residuals**2, axis=0))

    @property
    def relative(self) -> Float[np.ndarray, " nv"]:
        """Errors by the root of the mean square of measured forces."""
        return self.errors / np.sqrt(np.mean(self.measured**2, axis=0))


@dataclasses.dataclass(frozen=True)
class LogIdentification:
    """An identified model, and what a log says of it and of itself. `print` shows it as tables.

    >>> import xarray
    >>> t = np.linspace(0.0, 20.0, 2001)
    >>> q, a = np.sin(2 * t)[:, None], -4 * np.sin(2 * t)[:, None]
    >>> tau = 0.3 * a + 0.5 * 9.81 * np.sin(q) + 0.02 * np.random.default_rng(0).normal(size=(2001, 1))
    >>> log = xarray.Dataset({"q": (("time", "q_coordinate"), q), "tau": (("time", "v_coordinate"), tau)}, {"time": t})
    >>> found = jdyn.identification.identify_log(jdyn.load("pendulum"), log, parts=["inertias"], cutoff=5.0)
    >>> print(found.channels.names, bool(abs(found.channels["delay"]) < 0.002))
    ('offset:joint1', 'delay') True

    Attributes:
        identification: The model, base parameters with intervals, and noise.
        parts: What was unknown.
        channels: Delay, offsets and gains, as forces alone tell them.
        currents: Whether currents were measured in place of forces.
        training: Forces that the fit knows.
        held_out: Forces that it does not know, if some were held out.
        condition: Condition number of the regressor of base parameters, whose columns are scaled to length one.
        band: Of the filter that both sides went through [Hz], if there was one.
        notes: What was done to the log, in sentences.
    """

    identification: Identification
    parts: tuple[Part, ...]
    channels: ChannelFit
    currents: bool
    training: Prediction
    held_out: Prediction | None
    condition: float
    band: float | None
    notes: tuple[str, ...]

    @property
    def model(self) -> Model:
        """The identified model."""
        return self.identification.model

    @property
    def correlation(self) -> Float[np.ndarray, " nv"]:
        """Correlation of residuals from one row to the next, by coordinate; intervals take them for independent."""
        r = self.training.residuals - np.mean(self.training.residuals, axis=0)
        return np.sum(r[1:] * r[:-1], axis=0) / np.sum(r**2, axis=0)

    def __str__(self):
        out = io.StringIO()
        print(f"{self.identification}\n", file=out)
        if self.channels.names:
            rows = [
                (name, f"{value:.4g} {unit}".strip(), f"{low:.4g} to {high:.4g}")
                for name, unit, value, (low, high) in zip(
                    self.channels.names,
                    self.channels.units,
                    self.channels.values,
                    self.channels.intervals(),
                    strict=True,
                )
            ]
            print_table(("channel", "estimate", "95 % interval"), rows, out)
            print(file=out)
        heads = ("forces", "error", "relative", "correlation", *(["held out", "relative"] if self.held_out else []))
        columns = [self.training.errors, self.training.relative, self.correlation]
        columns += [self.held_out.errors, self.held_out.relative] if self.held_out else []
        rows = zip(self.model.topology.v_names, *([f"{x:.3g}" for x in column] for column in columns), strict=True)
        print_table(heads, list(rows), out)
        print(f"\ncondition of the regressor: {self.condition:.3g}", file=out)
        for note in self.notes:
            print(f"- {note}", file=out)
        return out.getvalue().rstrip("\n")


def identify_log(
    model: Model,
    dataset: xarray.Dataset,
    *,
    parts: Sequence[Part] = PARTS,
    spread: float = 1.0,
    cutoff: float | Literal["auto"] | None = None,
    band: float | None = None,
    channels: Sequence[Channel] | None = None,
    held_out: float | xarray.Dataset = 0.2,
    loaded: Sequence[tuple[Model, xarray.Dataset]] = (),
    degrees: bool = False,
) -> LogIdentification:
    """Identify a robot from a log of positions and torques, or motor currents, alone.

    ```
    found = jdyn.identification.identify_log(model, jdyn.identification.read_log(pathlib.Path("log.csv")))
    print(found)
    jdyn.identification.save_report(found, "fit.html")
    ```

    Positions are filtered and differentiated (`recording`). Regressors and efforts go through one further filter
    before rows are left out (parallel filtering), so that the filter does not bias the fit. The delay of efforts,
    their offsets and, of currents, torque constants are estimated with the base parameters. `jdyn.identify` says which
    model it is then.

    Viscous and Coulomb friction are the model's dampers and friction, and its asymmetry is an offset; the speed below
    which friction is smooth stays that of the model.

    If the log has velocities, and `cutoff` is left out, these and accelerations are taken as they are, nothing is
    filtered, and no delay is looked for.

    >>> import xarray
    >>> t = np.linspace(0.0, 20.0, 2001)
    >>> q, a = np.sin(2 * t)[:, None], -4 * np.sin(2 * t)[:, None]
    >>> tau = 0.3 * a + 0.5 * 9.81 * np.sin(q) + 0.02 * np.random.default_rng(0).normal(size=(2001, 1))
    >>> log = xarray.Dataset({"q": (("time", "q_coordinate"), q), "tau": (("time", "v_coordinate"), tau)}, {"time": t})
    >>> found = jdyn.identification.identify_log(jdyn.load("pendulum"), log, parts=["inertias"], cutoff=5.0)
    >>> print(found.held_out.errors.round(2))
    [0.01]

    Args:
        model: The mechanism, with nominal values.
        dataset: As `jdyn.identification.read_log` reads it.
        parts: What is unknown of the robot.
        spread: As for `jdyn.identify`.
        cutoff: Of the low pass of positions [Hz]; by `recording` if it is left out or `"auto"`.
        band: Of the filter of regressors and efforts [Hz]; if left out, twice the cut-off.
        channels: What is unknown of efforts: `"delay"`, of all alike, `"offset"`, `"gain"`. If left out, delay and
            offsets where there is a filter, and gains of currents.
        held_out: Share of the log, its end, that the fit does not know; or another log.
        loaded: Other logs of the same robot, each with the model that was moved there, such as one with a known
            payload. They differ from `model` by what is known.
        degrees: Whether angles are in degrees.

    Returns:
        The model, channels, and forces as measured and as predicted.

    Raises:
        ValueError: as `recording`, `measurement` and `jdyn.identify`; if the log does not tell gains, for want of a
            force that is known; or if there are no such channels.

    Warns:
        jdyn.identification.LogWarning: if samples were filled in or resampled.
        jdyn.tuning.TuneWarning: if rows are few, or estimates do not settle.

    Source: Gautier, Dynamic identification of robots with power model, ICRA 1997; Gautier, Briot, Global identification
    of joint drive gains and dynamic parameters of robots, Journal of Dynamic Systems, Measurement, and Control 2014.
    """
    checked(model)
    check_request(model, parts, spread)
    filtering = cutoff is not None or "v" not in dataset.variables
    if channels is None:
        channels = ("delay", "offset") if filtering else ()
    if isinstance(channels, str) or not set(channels) <= set(CHANNELS):
        raise ValueError(f"channels: expected some of {', '.join(CHANNELS)}, got {channels!r}")
    if "delay" in channels and not filtering:
        raise ValueError("channels: expected a cutoff, as a delay is looked for between samples of filtered forces")
    reader = _Reader(None if cutoff == "auto" else cutoff, band, filtering, degrees)
    rows = reader.rows(model, dataset)
    currents = reader.currents
    if currents and "gain" not in channels:
        channels = (*channels, "gain")
    share = float(held_out) if isinstance(held_out, (int, float)) else 0.0
    training, other = _split(rows, share, reader.reach)
    logs = [training]
    for number, (robot, log) in enumerate(loaded, 1):
        _check_alike(model, robot)
        logs.append(reader.rows(robot, log, f"loaded log {number}: "))
    base_fit, channel_fit = fit_channels(model, logs, parts, channels, currents)
    found = nearest_possible(model, base_fit, parts, spread)
    notes = reader.notes
    if not isinstance(held_out, (int, float)):
        other = reader.rows(model, held_out, "held-out log: ")
    Y = np.concatenate([log.regressor for log in logs])[..., base_fit.base.columns].reshape(-1, base_fit.base.rank)
    condition = float(np.linalg.cond(Y / np.linalg.norm(Y, axis=0)))
    beside = channel_fit.beside(base_fit.base.combinations @ found.values - base_fit.values)
    known = _prediction(found, beside, training)
    unknown = None if other is None else _prediction(found, beside, other)
    return LogIdentification(
        found, tuple(parts), channel_fit, currents, known, unknown, condition, reader.band, tuple(notes)
    )


class _Reader:
    """Rows of logs, all of which go through the filters of the first one."""

    def __init__(self, cutoff, band, filtering, degrees):
        self.cutoff, self.band, self.filtering, self.degrees = cutoff, band, filtering, degrees
        self.currents, self.reach, self.notes = False, 0.0, []

    def rows(self, model, dataset, name="") -> Rows:
        """Rows of a log, whose notes begin with a name."""
        before = len(self.notes)
        found = self._rows(model, dataset)
        self.notes[before:] = [f"{name}{note}" for note in self.notes[before:]]
        return found

    def _rows(self, model, dataset):
        if not self.filtering:
            motion = measurement(model, in_radians(model, dataset, self.degrees))
            self.notes.append(f"{len(motion.q)} samples, with velocities as they were measured; nothing was filtered")
            return measured_rows(model, np.asarray(dataset["time"].values, float), motion)
        log = recording(model, dataset, cutoff=self.cutoff, degrees=self.degrees)
        self.notes += log.notes
        self.cutoff, self.currents = log.cutoff, log.currents
        if self.band is None:
            self.band = min(WIDER * log.cutoff, NYQUIST / log.step)
        elif not 0 < self.band <= 0.5 / log.step:
            raise ValueError(f"band: expected a frequency up to {0.5 / log.step:.4g} Hz, got {self.band}")
        found, parallel = filtered_rows(model, log, self.band), ParallelFilter(log.step, self.band)
        self.reach = 2 * parallel.half * log.step
        efforts, kept = "currents" if log.currents else "torques", "all rows are kept"
        if parallel.every > 1:
            kept = f"one row of {parallel.every} is kept"
        self.notes.append(
            f"regressors and {efforts} through a filter of {self.band:.4g} Hz without phase, after which {kept}: "
            f"{len(found.times)} rows"
        )
        return found


def _split(rows, share, reach) -> tuple[Rows, Rows | None]:
    """Rows at the beginning and at the end of a log, so far apart that no sample belongs to both."""
    if not 0 <= share < 1:
        raise ValueError(f"held_out: expected a share of the log from 0 to less than 1, got {share}")
    if not share:
        return rows, None
    end = rows.times[-1] - share * (rows.times[-1] - rows.times[0])
    first, last = rows[rows.times < end - reach], rows[rows.times >= end]
    if not len(first.times):
        raise ValueError(f"held_out: expected a share that leaves something of the log, got {share}")
    return first, last


def _check_alike(model, other):
    checked(other)
    if (other.topology.v_names, other.topology.parents) != (model.topology.v_names, model.topology.parents):
        raise ValueError(
            f"loaded: expected models that differ from {model.name!r} by numbers, got other joints in {other.name!r}"
        )


def _prediction(found: Identification, channels: ChannelFit, rows: Rows) -> Prediction:
    names = found.model.topology.v_names
    efforts, _ = rows.at(channels["delay"])
    gains, offsets = (np.array([channels[f"{what}:{name}"] for name in names]) for what in ("gain", "offset"))
    of_friction = indices_of(found.model, ["damping", "friction"])
    return Prediction(
        rows.times,
        rows.v,
        gains * efforts - offsets,
        rows.nominal + rows.regressor @ (found.values - found.nominal),
        rows.nominal,
        rows.regressor[..., of_friction] @ found.values[of_friction],
    )
