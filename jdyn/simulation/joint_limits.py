"""Springs and impacts at the ends of the joints' ranges."""

import abc
import dataclasses
from typing import ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Scalar

from jdyn.dynamics import mass_matrix
from jdyn.elements import Stops, along_ends, approach
from jdyn.model import Model, Scaling, Units
from jdyn.model.model import Limits
from jdyn.simulation.events import Event
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField

# Springs for joints at rest begin this far beyond the end, as a fraction of the depth over which they stiffen.
SLACK = 0.1

# A joint that loses its speed keeps this power of rounding as a share of it, and sinks to its spring. Rounding might
# let it leave its end, and a force brings it back before times can tell.
SINKING = 3 / 4


def _check(name, value, good, expected):
    """Raise a ValueError about a bad value; traced values cannot be checked."""
    if np.ndim(value) or not (isinstance(value, Tracer) or good(value)):
        raise ValueError(f"{name}: expected {expected}, got {value}")


class JointLimits(eqx.Module):
    """Springs or impacts at the ends of joints' ranges.

    Attributes:
        backwards: Whether it may happen backwards in time.
    """

    backwards: eqx.AbstractClassVar[bool]

    def scaled(self, scaling: Scaling) -> Self:
        """The same at the ends of scaled ranges.

        Raises:
            ValueError: if lengths change, and both joints that turn and joints that slide have ends.
        """
        slides = _sliding_ends(scaling.model)
        if len(slides) > 1 and not isinstance(scaling.length, float | int):
            raise scaling.refusal(
                self, "has numbers for joints that turn and joints that slide at once; leave joint_limits out, "
                "and give the scaled system new ones"
            )  # fmt: skip
        return scaling.along(scaling.length if True in slides else 1.0).numbers(self)

    @abc.abstractmethod
    def stops(self, model: Model) -> Stops:
        """Springs there."""

    @abc.abstractmethod
    def events(self, field: VectorField) -> tuple[Event, ...]:
        """Impacts there."""


def has_ends(model: Model) -> bool:
    """Tell whether the range of a joint has an end."""
    return bool(jnp.any(jnp.isfinite(jnp.stack([model.limits.lower, model.limits.upper]))))


def _sliding_ends(model: Model) -> set[bool]:
    """Tell whether joints that have ends slide, or turn, or some of each; all that may have ends, if ranges are
    traced."""
    topology, limits = model.topology, model.limits
    traced = isinstance(limits.lower, Tracer) or isinstance(limits.upper, Tracer)
    slides = [motion == "slide" for kind in topology.kinds for motion in kind.motions]
    ended = {bool(slides[v]) for q, v in zip(*topology.ranged, strict=True) if traced or _has_end(limits, q)}
    return ended | {False for q in topology.balls[0][:, 0] if traced or _has_end(limits, q)}


def _has_end(limits: Limits, q: int) -> bool:
    return bool(np.isfinite(limits.lower[q]) or np.isfinite(limits.upper[q]))


class CompliantLimits(JointLimits):
    """Joints meet springs at the ends of their ranges.

    A joint that arrives with a speed u goes about u / frequency beyond its end. Higher frequencies take smaller steps.

    >>> model = jdyn.load("pendulum").with_joint("joint1", lower=-0.2, upper=3.0)
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 2.0, joint_limits=jdyn.CompliantLimits())
    >>> print(motion.q.min() > -0.25)
    True

    Attributes:
        frequency: Square root of stiffness over the coordinate's inertia, its entry on the diagonal of the mass matrix
            in the neutral configuration, and the mean of three of a ball joint [rad/s].
        dissipation: c of the force k δ² / (δ + onset) (1 + c dδ/dt) at a depth δ [s/rad or s/m].
        onset: How far beyond the end a spring has half its stiffness [rad or m].

    Raises:
        ValueError: if one is not a positive number; the dissipation may be zero.
    """

    backwards: ClassVar[bool] = True
    units: ClassVar[Units] = {"frequency": "1/s", "dissipation": "s/x", "onset": "x"}

    frequency: Scalar | float = 100.0
    dissipation: Scalar | float = 0.5
    onset: Scalar | float = 1e-3

    def __check_init__(self):
        _check("frequency", self.frequency, lambda x: x > 0, "a positive number")
        _check("dissipation", self.dissipation, lambda x: x >= 0, "a number that is not negative")
        _check("onset", self.onset, lambda x: x > 0, "a positive number")

    def events(self, field: VectorField) -> tuple[Event, ...]:
        return ()

    def stops(self, model: Model) -> Stops:
        (_, places), (_, balls) = model.topology.ranged, model.topology.balls
        # As if no joint followed another: the end of a follower's range holds the follower.
        topology = dataclasses.replace(model.topology, mimics=())
        alone = dataclasses.replace(model, topology=topology, mimic_ratio=_none(model), mimic_offset=_none(model))
        inertias = jnp.diag(mass_matrix(alone, alone.neutral()))
        inertia = jnp.concatenate([inertias[places], jnp.mean(inertias[balls], axis=1)])
        frequency, dissipation, onset = (
            jnp.asarray(x, model.dtype) for x in (self.frequency, self.dissipation, self.onset)
        )
        return Stops(frequency**2 * inertia, dissipation, onset, jnp.zeros_like(onset))


class ImpactLimits(JointLimits):
    """Joints bounce off the ends of their ranges instantly: u⁺ = −e u⁻ for the joint that arrives, while the impulse at
    its end moves all others as well. A joint that arrives slowly loses its speed, and may rest on a spring.

    A joint that starts beyond its end does not bounce, but rests on the spring. Constant steps should be shorter
    than 2 / frequency, since a step that crosses an end feels the spring. Time must run forwards.

    >>> model = jdyn.load("pendulum").with_joint("joint1", lower=-0.2, upper=3.0)
    >>> stops = jdyn.ImpactLimits(restitution=0.8)
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 2.0, joint_limits=stops)
    >>> print(motion.q.min().round(2))
    -0.2

    Attributes:
        restitution: e, from 0 to 1.
        resting: The springs.
        resting_speed: What is slow [rad/s or m/s].

    Raises:
        ValueError: if the restitution is not from 0 to 1, or the speed is negative.

    Source: Brach, Rigid body collisions, Journal of Applied Mechanics 1989.
    """

    backwards: ClassVar[bool] = False
    units: ClassVar[Units] = {"restitution": "", "resting_speed": "x/s"}

    restitution: Scalar | float = 0.5
    resting: CompliantLimits = CompliantLimits()
    resting_speed: Scalar | float = 0.05

    def __check_init__(self):
        _check("restitution", self.restitution, lambda x: 0 <= x <= 1, "a number from 0 to 1")
        _check("resting_speed", self.resting_speed, lambda x: x >= 0, "a number that is not negative")

    def stops(self, model: Model) -> Stops:
        stops = self.resting.stops(model)
        # Steps that end at an impact must not reach the spring: its derivative would be added to that of the impact.
        return dataclasses.replace(stops, slack=SLACK * stops.onset)

    def events(self, field: VectorField) -> tuple[Event, ...]:
        """Arrival at any end: first all upper ones, then all lower ones, as entries of one condition."""
        model = field.model
        if not len(model.topology.ranged[0]) + len(model.topology.balls[0]):
            return ()
        restitution, slow = (jnp.asarray(x, model.dtype) for x in (self.restitution, self.resting_speed))
        sinking = jnp.finfo(model.dtype).eps ** SINKING

        def condition(t, y):
            gaps, _ = approach(model, y.q, y.v)
            return gaps.reshape(-1)

        def reset(t, y, entry):
            _, speeds = approach(model, y.q, y.v)
            speed = speeds.reshape(-1)[entry]
            left = jnp.where(speed > slow, restitution, 0)
            factor = jnp.where(speed > 0, 1 + jnp.where(left > sinking, left, -sinking), 0)
            return dataclasses.replace(y, v=y.v - factor * _stopping(field, t, y, entry))

        return (Event(condition, reset),)


def _stopping(field: VectorField, t: Scalar, y: State, entry: Int[Array, ""]) -> Float[Array, " nv"]:
    """The velocity that an impulse on one coordinate takes away to stop that coordinate."""
    model = field.model
    ends = len(model.topology.ranged[0]) + len(model.topology.balls[0])
    d = along_ends(model, y.q, jnp.zeros(ends, y.v.dtype).at[entry % ends].set(1))
    response = field.response(t, y, d)
    # No force moves a follower with the ratio zero.
    yielding = d @ response
    return response * (d @ y.v) / jnp.where(yielding == 0, 1, yielding)


def _none(model):
    return jnp.zeros(0, model.dtype)
