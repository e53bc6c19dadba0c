"""Motions from which parameters can be told."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from jdyn.identification.base import BaseParameters, base_parameters
from jdyn.identification.fourier import FourierSeries, harmonics_of
from jdyn.identification.standard import PARTS, Part, standard_regressor
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.tuning import StartsResult, tune_starts

# A sum of n harmonics, seen at 20 n instants of a period, is nowhere larger than 1 / cos(π / 20) times what is seen
# (Ehlich, Zeller 1964).
INSTANTS = 20
UNSEEN = float(np.cos(np.pi / INSTANTS))


@dataclasses.dataclass(frozen=True)
class Excitation:
    """A motion for identification.

    >>> model = jdyn.load("pendulum").with_joint("joint1", lower=-1.0, upper=1.0, velocity=2.0)
    >>> options = {"harmonics": 3, "starts": 2, "steps": 20, "progress": False}
    >>> found = jdyn.identification.exciting_motion(model, 5.0, parts=["inertias"], **options)
    >>> bool(found.condition >= 1)
    True

    Attributes:
        reference: The motion. At t = 0 it is at rest, and does not accelerate.
        base: The parameters that it is for.
        condition: Condition number of the regressor of these, with columns scaled to length one, over one period.
        tuning: Of all starts; losses are minus the mean logarithm of the information on a base parameter.
    """

    reference: FourierSeries
    base: BaseParameters
    condition: float
    tuning: StartsResult


def exciting_motion(
    model: Model,
    period: float,
    *,
    harmonics: int = 5,
    parts: Sequence[Part] = PARTS,
    optimizer: optax.GradientTransformation | None = None,
    starts: int = 8,
    steps: int = 100,
    seed: int = 0,
    progress: bool | None = None,
) -> Excitation:
    """Find a periodic motion within the limits whose forces tell as much as possible of the base parameters.

    ```
    motion = jdyn.identification.exciting_motion(model, 10.0)
    controller = jdyn.control.Tracking(model, motion.reference, kp=100.0, kd=20.0)
    ```

    It maximises the determinant of the information matrix (D-optimality), which does not depend on the units of
    parameters, with noise of each force in proportion to its limit of effort, or the same on all where there is none.
    Each coordinate moves as far as its limits of position and velocity let it, and never beyond. Nothing keeps forces
    within limits of effort.

    >>> model = jdyn.load("pendulum").with_joint("joint1", lower=-1.0, upper=1.0, velocity=2.0)
    >>> options = {"harmonics": 3, "starts": 2, "steps": 20, "progress": False}
    >>> found = jdyn.identification.exciting_motion(model, 5.0, parts=["inertias"], **options)
    >>> q, v, a = jax.vmap(found.reference)(jnp.linspace(0.0, 5.0, 101))
    >>> bool(jnp.max(jnp.abs(q)) <= 1.0) and bool(jnp.max(jnp.abs(v)) <= 2.0)
    True

    Args:
        model: The mechanism, of joints whose coordinates are single numbers, each with both ends of its range, or a
            limit of velocity, or both. `model.with_joint(name, velocity=...)` has others. A coordinate without ends
            moves about 0.
        period: [s].
        harmonics: Number of sines and of cosines of each coordinate.
        parts: What is unknown.
        optimizer: Of optax; if left out, `optax.adam(0.05)`.
        starts: Number of random motions from which it starts.
        steps: Of the optimizer.
        seed: Of the starts.
        progress: As for `jdyn.tune`.

    Returns:
        The best motion of all starts.

    Raises:
        ValueError: if a joint lacks limits or is of another kind; if `period` or `starts` is not positive; or if
            `harmonics` are below 2, as a start at rest takes one, or too few for so many base parameters.

    Source: Swevers and others, Optimal robot excitation and identification, IEEE Transactions on Robotics and
    Automation 1997; D-optimality: Fedorov, Theory of Optimal Experiments (1972).
    """
    checked(model)
    _check(model, period, harmonics, starts)
    base = base_parameters(model, parts=parts)
    if INSTANTS * harmonics * model.nv < base.rank:
        raise ValueError(f"harmonics: expected more for {base.rank} base parameters, got {harmonics}")
    times = jnp.asarray(np.arange(INSTANTS * harmonics) * period / (INSTANTS * harmonics), model.dtype)

    def loss(coefficients):
        R = jnp.linalg.qr(_weighted(model, base.columns, _within_limits(model, period, coefficients), times), mode="r")
        return -2 * jnp.mean(jnp.log(jnp.abs(jnp.diagonal(R))))

    shape = (starts, model.nv, harmonics)
    keys = dict(zip(("sines", "cosines"), jax.random.split(jax.random.key(seed)), strict=True))
    drawn = {name: jax.random.normal(key, shape, model.dtype) for name, key in keys.items()}
    tuning = tune_starts(loss, drawn, optimizer=optimizer or optax.adam(0.05), steps=steps, progress=progress)
    reference = _within_limits(model, period, tuning.params)
    rows = np.asarray(_weighted(model, base.columns, reference, times), float)
    return Excitation(reference, base, float(np.linalg.cond(rows / np.linalg.norm(rows, axis=0))), tuning)


def _within_limits(model, period, coefficients) -> FourierSeries:
    """The motion with these coefficients, made to start at rest, each coordinate scaled to the limit it meets first."""
    sines, cosines = coefficients["sines"], coefficients["cosines"]
    k = harmonics_of(sines)
    sines, cosines = _without(k, sines), _without(k**2, cosines)
    lower, upper, velocity, _ = _limits(model)
    instants = jnp.arange(INSTANTS * len(k), dtype=k.dtype) * period / (INSTANTS * len(k))
    free = FourierSeries(jnp.asarray(period, k.dtype), jnp.zeros_like(velocity), sines, cosines)
    q, v, _ = jax.vmap(free)(instants)
    ends = jnp.isfinite(upper - lower)
    # Shares of the limits, which are zero of limits that are not there, and so have derivatives.
    turn, speed = jnp.max(jnp.abs(q), axis=0) / ((upper - lower) / 2), jnp.max(jnp.abs(v), axis=0) / velocity
    scale = UNSEEN / jnp.maximum(turn, speed)[:, None]
    centre = jnp.where(ends, (lower + upper) / 2, 0)
    return FourierSeries(free.period, centre, scale * sines, scale * cosines)


def _without(direction, rows):
    """Rows made orthogonal to a direction."""
    return rows - (rows @ direction)[:, None] * direction[None] / (direction @ direction)


@compiled
def _weighted(model, columns, reference, times) -> Float[Array, "rows columns"]:
    """The regressor along a motion, of forces relative to their limits, over the square root of the instants."""
    _, _, _, effort = _limits(model)
    noise = jnp.where(jnp.isfinite(effort) & (effort > 0), effort, 1)
    Y = jax.vmap(lambda t: standard_regressor(model, *reference(t)))(times)[..., columns]
    return (Y / noise[None, :, None]).reshape(-1, len(columns)) / len(times) ** 0.5


def _limits(model):
    """Ends of the range, velocity and effort of each coordinate of the model."""
    limits, q, v = model.limits, np.array(model.topology.independent_q), np.array(model.topology.independent_v)
    return limits.lower[q], limits.upper[q], limits.velocity[v], limits.effort[v]


def _check(model, period, harmonics, starts):
    if not 0 < period < np.inf:
        raise ValueError(f"period: expected a positive number of seconds, got {period}")
    if harmonics < 2:
        raise ValueError(f"harmonics: expected at least 2, as a start at rest takes one, got {harmonics}")
    if starts < 1:
        raise ValueError(f"starts: expected a positive number, got {starts}")
    if not model.flat:
        raise ValueError(
            f"model: expected joints whose coordinates are single numbers, got rotations in {model.name!r}"
        )
    limits, topology = model.limits, model.topology
    followers = [body for body, _ in topology.mimics]
    ends = (
        (limits.velocity[topology.v_slice(body)] for body in followers),
        (limits.upper[topology.q_slice(body)] for body in followers),
    )
    if any(np.any(np.isfinite(x)) for each in ends for x in each):
        named = ", ".join(topology.joint_names[body] for body in followers)
        raise ValueError(f"model: limits of joints that follow others are not kept, expected none of {named}")
    lower, upper, velocity, _ = map(np.asarray, _limits(model))
    stuck = [name for name, no in zip(topology.v_names, (upper <= lower) | (velocity <= 0), strict=True) if no]
    if stuck:
        raise ValueError(f"model: expected a range and a velocity above zero of every joint, not of {', '.join(stuck)}")
    both, none = np.isfinite(lower) & np.isfinite(upper), np.isinf(lower) & np.isinf(upper)
    fine = both | (none & np.isfinite(velocity))
    bad = [name for name, good in zip(model.topology.v_names, fine, strict=True) if not good]
    if bad:
        raise ValueError(
            f"model: expected a range or a limit of velocity of every joint, which these lack: {', '.join(bad)}; "
            "give limits by model.with_joint(name, lower=..., upper=..., velocity=...)"
        )
