"""Springs and impacts at the ends of the joints' ranges."""

import abc
import dataclasses
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, Scalar

from jdyn.dynamics import mass_matrix
from jdyn.elements import Stops, along_ends, approach
from jdyn.model import Model, Units
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

    @abc.abstractmethod
    def stops(self, model: Model) -> Stops:
        """Springs there."""

    @abc.abstractmethod
    def events(self, field: VectorField) -> tuple[Event, ...]:
        """Impacts there."""


def has_ends(model: Model) -> bool:
    """Tell whether the range of a joint has an end."""
    return bool(jnp.any(jnp.isfinite(jnp.stack([model.limits.lower, model.limits.upper]))))


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
        slide: How many metres of a joint that slides count as a radian, where the other numbers are those of joints
            that turn; `jdyn.scale` changes it.

    Raises:
        ValueError: if one is not a positive number; the dissipation may be zero.
    """

    backwards: ClassVar[bool] = True
    # A metre, which stays where forces do.
    units: ClassVar[Units] = {"frequency": "1/s", "dissipation": "s", "onset": "", "slide": "N s^2/kg"}

    frequency: Scalar | float = 100.0
    dissipation: Scalar | float = 0.5
    onset: Scalar | float = 1e-3
    slide: Scalar | float = 1.0

    def __check_init__(self):
        _check("frequency", self.frequency, lambda x: x > 0, "a positive number")
        _check("dissipation", self.dissipation, lambda x: x >= 0, "a number that is not negative")
        _check("onset", self.onset, lambda x: x > 0, "a positive number")
        _check("slide", self.slide, lambda x: x > 0, "a positive number")

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
        unit = self.unit(model)
        onset = onset * unit
        return Stops(frequency**2 * inertia, dissipation / unit, onset, jnp.zeros_like(onset))

    def unit(self, model: Model) -> Float[Array, "*ends"]:
        """Unit of the coordinate of each end: one, and `slide` of joints that slide; one for all where these are
        alike."""
        if isinstance(self.slide, float) and self.slide == 1:
            return jnp.ones((), model.dtype)
        motions = [motion for kind in model.topology.kinds for motion in kind.motions]
        sliding = [motions[place] == "slide" for place in model.topology.ranged[1]]
        sliding += [False] * len(model.topology.balls[0])
        return jnp.where(np.array(sliding, bool), jnp.asarray(self.slide, model.dtype), 1)


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
        resting: The springs, whose `slide` counts for the speed as well.
        resting_speed: What is slow [rad/s or m/s].

    Raises:
        ValueError: if the restitution is not from 0 to 1, or the speed is negative.

    Source: Brach, Rigid body collisions, Journal of Applied Mechanics 1989.
    """

    backwards: ClassVar[bool] = False
    units: ClassVar[Units] = {"restitution": "", "resting_speed": "1/s"}

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
        unit = self.resting.unit(model)
        sinking = jnp.finfo(model.dtype).eps ** SINKING

        def condition(t, y):
            gaps, _ = approach(model, y.q, y.v)
            return gaps.reshape(-1)

        def reset(t, y, entry):
            _, speeds = approach(model, y.q, y.v)
            speed = speeds.reshape(-1)[entry]
            resting = slow * (unit[entry % len(unit)] if unit.ndim else unit)
            left = jnp.where(speed > resting, restitution, 0)
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
