"""Channels of measured efforts: their delay, offsets and gains, which are estimated with the base parameters."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Literal, get_args

import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.special
from jaxtyping import Float

from jdyn.identification.base import ROUNDINGS, basis
from jdyn.identification.base_fit import BaseFit
from jdyn.identification.rows import LONGEST_DELAY, Rows
from jdyn.identification.standard import Part, standard_values
from jdyn.identification.weighted import weighted_least_squares
from jdyn.model import Model
from jdyn.terminal.messages import enumerated
from jdyn.tuning import TuneWarning

Channel = Literal["delay", "offset", "gain"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)

# Delays that are tried first, over the longest one either way.
TRIED = 41
# Steps of Gauss and Newton, and what is left of a delay [s] and a gain in the end.
STEPS = 30
LEFT = 1e-9
# A direction of channels that changes forces by a smaller share than this is none.
NO_SHARE = 1e-7


@dataclasses.dataclass(frozen=True)
class ChannelFit:
    """Estimates of the channels of efforts.

    >>> one = np.zeros((1, 1))
    >>> fit = jdyn.identification.ChannelFit(("delay",), ("s",), np.array([0.002]), np.array([1e-4]), 100, one)
    >>> print(fit.intervals().round(4))
    [[0.0018 0.0022]]

    Attributes:
        names: `delay` [s]: forces were written so much later than the positions to which they belong;
            `offset:JOINT` [N m or N]: what is measured where there is no force, which is also by how much friction
            forwards is larger than its mean with that backwards; `gain:JOINT`: force by what was measured, the
            torque constant [N m/A or N/A] of currents.
        units: Theirs.
        values: Estimates, shape (channels,).
        deviations: Standard deviations of these, shape (channels,).
        freedom: Number of measured efforts beyond that of all that was estimated.
        slopes: Change of the best channels with base parameters, where a model has others than forces alone tell,
            shape (channels, rank).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Float[np.ndarray, " channels"]
    deviations: Float[np.ndarray, " channels"]
    freedom: int
    slopes: Float[np.ndarray, "channels rank"]

    def intervals(self, level: float = 0.95) -> Float[np.ndarray, "channels 2"]:
        """Confidence intervals, as those of `BaseFit`."""
        reach = scipy.special.stdtrit(self.freedom, (1 + level) / 2) * self.deviations
        return np.stack([self.values - reach, self.values + reach], axis=1)

    def beside(self, shift: Float[np.ndarray, " rank"]) -> ChannelFit:
        """The best channels beside base parameters that are so much larger than their estimates."""
        return dataclasses.replace(self, values=self.values + self.slopes @ shift)

    def __getitem__(self, name: str) -> float:
        """The estimate of a channel, by its name; 0 of delays and offsets that were not looked for, and 1 of gains."""
        if name in self.names:
            return float(self.values[self.names.index(name)])
        return 1.0 if name.startswith("gain") else 0.0


def fit_channels(
    model: Model, logs: Sequence[Rows], parts: Sequence[Part], channels: Sequence[Channel], currents: bool
) -> tuple[BaseFit, ChannelFit]:
    """Estimate base parameters and channels from the rows of one or more logs, by weighted least squares.

    Gains and the delay make it nonlinear: steps of Gauss and Newton, from the best one of some delays.

    Raises:
        ValueError: if there are no more rows than unknowns, forces depend on no parameter, or the motion does not tell
            the channels, such as gains without a known force.

    Warns:
        jdyn.tuning.TuneWarning: if rows are few, or the estimates do not settle.

    Source: Gautier, Briot, Global identification of joint drive gains and dynamic parameters of robots, Journal of
    Dynamic Systems, Measurement, and Control 2014 (gains by a known payload).
    """
    rows = _AllRows(model, logs, parts, channels, currents)
    state = _Channels(np.zeros(model.nv), rows.first_gains() if currents else np.ones(model.nv), 0.0)
    rows.check(state)
    with warnings.catch_warnings():
        # The last fit warns.
        warnings.simplefilter("ignore", TuneWarning)
        if "delay" in channels:
            state = dataclasses.replace(state, delay=rows.best_delay(state))
        change = np.inf
        for _ in range(STEPS):
            state, change = rows.moved(state, rows.fit(state))
            rows.check(state)
            if change < LEFT:
                break
    if change >= LEFT:
        warnings.warn("the delay or the gains did not settle", TuneWarning, stacklevel=3)
    fit = rows.fit(state)
    return rows.base_fit(fit), rows.channel_fit(state, fit)


@dataclasses.dataclass(frozen=True)
class _Channels:
    """Offsets and gains of coordinates, the delay of all, and base parameters beyond the nominal ones."""

    offsets: np.ndarray
    gains: np.ndarray
    delay: float
    beyond: np.ndarray | None = None


class _AllRows:
    """Least squares of all logs together; unknowns are channels first, as base parameters follow by themselves then."""

    def __init__(self, model, logs, parts, channels, currents):
        self.model, self.logs, self.channels, self.currents = model, logs, channels, currents
        Y = np.concatenate([log.regressor for log in logs])
        self.base = basis(model, Y.astype(model.dtype), parts)
        if not self.base.rank:
            raise ValueError(f"q, v: forces of this motion depend on no parameter of {', '.join(parts)}")
        # Of the last fit, with which the next one starts.
        self.noise = None
        self.Y, self.nominal = Y[..., self.base.columns], np.concatenate([log.nominal for log in logs])
        self.names = [
            *(f"offset:{name}" for name in model.topology.v_names if "offset" in channels),
            *(f"gain:{name}" for name in model.topology.v_names if "gain" in channels),
            *(["delay"] if "delay" in channels else []),
        ]

    def efforts(self, delay):
        values, rates = zip(*(log.at(delay) for log in self.logs), strict=True)
        return np.concatenate(values), np.concatenate(rates)

    def first_gains(self):
        """Gains by which the nominal model explains currents best."""
        currents, _ = self.efforts(0.0)
        sizes = np.sum(currents**2, axis=0)
        gains = np.sum(currents * self.nominal, axis=0) / np.where(sizes > 0, sizes, 1)
        bad = [name for name, gain in zip(self.model.topology.v_names, gains, strict=True) if not gain]
        if bad:
            raise ValueError(f"dataset: expected currents and forces of every joint, got zeros of {enumerated(bad)}")
        return gains

    def predicted(self, state):
        """Forces of the nominal model, and of what base parameters are beyond it."""
        return self.nominal if state.beyond is None else self.nominal + self.Y @ state.beyond

    def columns(self, state):
        """Derivatives of forces by the channels, in the order of their names."""
        rows, nv, _ = self.Y.shape
        own = np.eye(nv)
        columns = []
        if "offset" in self.channels:
            columns.append(np.broadcast_to(own, (rows, nv, nv)))
        if "gain" in self.channels:
            columns.append(own * (self.predicted(state) + state.offsets)[:, :, None])
        if "delay" in self.channels:
            _, rates = self.efforts(state.delay)
            columns.append(-(state.gains * rates)[:, :, None])
        return np.concatenate(columns, axis=2) if columns else np.zeros((rows, nv, 0))

    def unexplained(self, state):
        values, _ = self.efforts(state.delay)
        return state.gains * values - self.nominal

    def fit(self, state):
        y = self.unexplained(state)
        largest = float(np.max(np.maximum(np.abs(y + self.nominal), np.abs(self.nominal))))
        if not largest:
            raise ValueError("tau: expected forces that tell something, got zeros where the model has none either")
        least = ROUNDINGS * float(jnp.finfo(self.model.dtype).eps) * largest
        found = weighted_least_squares(np.concatenate([self.columns(state), self.Y], axis=2), y, least, self.noise)
        self.noise = found.noise
        return found

    def check(self, state):
        """Refuse channels that forces do not tell from each other and from base parameters."""
        columns = self.columns(state)
        size = columns.shape[2]
        if not size:
            return
        scales = np.linalg.norm(columns.reshape(-1, size), axis=0)
        A = np.concatenate([self.Y, columns / np.where(scales > 0, scales, 1)], axis=2).reshape(
            -1, self.base.rank + size
        )
        # Channels last: what is left of them beside base parameters is the lower right block.
        left = np.linalg.qr(A / np.linalg.norm(A, axis=0, keepdims=True).clip(1e-300)).R[-size:, -size:]
        _, sizes, directions = np.linalg.svd(left)
        least = max(NO_SHARE, ROUNDINGS * float(jnp.finfo(self.model.dtype).eps))
        if sizes[-1] > least and np.all(scales > 0):
            return
        weights = np.abs(directions[-1])
        names = [name for name, weight in zip(self.names, weights, strict=True) if weight > 0.1 * weights.max()]
        raise ValueError(
            f"channels: this motion does not tell {enumerated(names)} from the parameters of the robot; "
            "gains need a force that is known: a log with a known payload (loaded), or parts that are not unknown"
        )

    def best_delay(self, state):
        """The one of some delays with the least weighted squares."""
        noise = self.fit(state).noise
        # Rates are not needed where delays are tried.
        A = np.delete(np.concatenate([self.columns(state), self.Y], axis=2), self.names.index("delay"), axis=2)
        Q = np.linalg.qr((A / noise[:, None]).reshape(-1, A.shape[2])).Q
        tried = np.linspace(-LONGEST_DELAY, LONGEST_DELAY, TRIED)
        losses = []
        for delay in tried:
            y = (self.unexplained(dataclasses.replace(state, delay=delay)) / noise).ravel()
            losses.append(np.sum((y - Q @ (Q.T @ y)) ** 2))
        return float(tried[np.argmin(losses)])

    def moved(self, state, fit):
        """The channels after a step, and its length."""
        found = dict(zip(self.names, fit.values, strict=False))
        names = self.model.topology.v_names
        gains = np.array([found.get(f"gain:{name}", 0.0) for name in names])
        # A step that would turn a gain around is one too long.
        gains = np.clip(gains, -0.5, 1.0)
        later = found.get("delay", 0.0)
        delay = state.delay + later
        if abs(delay) > LONGEST_DELAY:
            raise ValueError(f"dataset: expected forces within {LONGEST_DELAY} s of the motion, got a longer delay")
        offsets = np.array([found.get(f"offset:{name}", 0.0) for name in names])
        beyond = fit.values[len(self.names) :]
        return _Channels(offsets, state.gains / (1 + gains), delay, beyond), max(np.max(np.abs(gains)), abs(later))

    def unit(self, name):
        """Unit of a channel."""
        what, _, joint = name.partition(":")
        if what == "delay":
            return "s"
        topology = self.model.topology
        motions = [motion for kind in topology.kinds for motion in kind.motions]
        slides = motions[topology.independent_v[topology.v_names.index(joint)]] == "slide"
        force = "N" if slides else "N m"
        if what == "offset":
            return force
        return f"{force}/A" if self.currents else ""

    def base_fit(self, fit):
        first = len(self.names)
        nominal = self.base.combinations @ np.asarray(standard_values(self.model), float)
        values, covariance = nominal + fit.values[first:], fit.covariance[first:, first:]
        return BaseFit(self.base, nominal, values, covariance, fit.noise, fit.freedom, fit.root[first:, first:])

    def channel_fit(self, state, fit):
        first = len(self.names)
        deviations = np.sqrt(np.diag(fit.covariance))[:first]
        # Least squares of the channels alone, as the root has them first.
        slopes = -scipy.linalg.solve_triangular(fit.root[:first, :first], fit.root[:first, first:])
        values, scales = [], []
        gains = dict(zip(self.model.topology.v_names, state.gains, strict=True))
        for name, value in zip(self.names, fit.values, strict=False):
            what, _, joint = name.partition(":")
            values.append({"delay": state.delay, "gain": gains.get(joint)}.get(what, value))
            # A step of a gain is one of its inverse, relative to it.
            scales.append(-gains[joint] if what == "gain" else 1.0)
        return ChannelFit(
            tuple(self.names),
            tuple(map(self.unit, self.names)),
            np.array(values),
            np.abs(scales) * deviations,
            fit.freedom,
            np.array(scales)[:, None] * slopes,
        )
