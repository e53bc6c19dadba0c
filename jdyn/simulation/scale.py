"""Systems in other sizes."""

from typing import Any, overload

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PyTree, Scalar

from jdyn.actuators import Actuators
from jdyn.control.controller import Around, DynamicController, with_memory
from jdyn.model import (
    Factor,
    Model,
    Scaling,
    coordinate_factors,
    scaled,
    scaled_model,
    scaling_of,
    times,
)
from jdyn.simulation.system import System


@overload
def scale(
    mechanism: Model,
    *,
    length: ArrayLike = ...,
    mass: ArrayLike = ...,
    time: ArrayLike | None = ...,
    similar: bool = ...,
) -> Model: ...


@overload
def scale(
    mechanism: System,
    *,
    length: ArrayLike = ...,
    mass: ArrayLike = ...,
    time: ArrayLike | None = ...,
    similar: bool = ...,
) -> System: ...


def scale(
    mechanism: Any,
    *,
    length: ArrayLike = 1.0,
    mass: ArrayLike = 1.0,
    time: ArrayLike | None = None,
    similar: bool = True,
) -> Any:
    """A copy of a model or a system with lengths, masses and times multiplied by factors.

    Every number changes as its unit says: moments of inertia by mass × length², torques by mass × length² / time²,
    springs and dampers of turning joints by mass × length² / time² and mass × length² / time, of sliding ones by
    mass / time² and mass / time. The scaled mechanism therefore moves as it did, only larger and slower: if q(t) is
    a motion of one, q(t / time) is one of the other, with distances of sliding and free joints multiplied by `length`.
    Change numbers that are to be others with `jdyn.vary`.

    Density stays the same with `mass=length**3`. If `time` is left out, gravity stays the same.

    >>> rod = jdyn.load("pendulum")
    >>> large = jdyn.scale(rod, length=4.0, mass=2.0)
    >>> print(large.gravity, large.inertias.mass, jdyn.mass_matrix(large, jnp.zeros(1)) / jdyn.mass_matrix(rod, [0.0]))
    [ 0.    0.   -9.81] [2.] [[32.]]

    With `similar=False` the body alone changes, as for a person of another size: time stays real, and so do all
    numbers that have to do with time, forces or surroundings.

    >>> servo = jdyn.actuators.PositionServo("joint1", kp=50.0)
    >>> for similar in (True, False):
    ...     grown = jdyn.scale(jdyn.System(rod, actuators=[servo]), length=4.0, mass=2.0, similar=similar)
    ...     print(grown.model.inertias.mass, grown.model.frames.translation[0], grown.actuators[0].kp)
    [2.] [ 0.  0. -4.] 400.0
    [2.] [ 0.  0. -4.] 50.0

    | numbers | factor | with `similar=False` |
    |---|---|---|
    | lengths: frames, points, sizes of shapes, coordinates and ranges of sliding joints | length | length |
    | masses | mass | mass |
    | moments of inertia; armature of a turning joint | mass length² | mass length² |
    | armature of a sliding joint | mass | mass |
    | gravity | length / time², 1 if `time` is left out | 1 |
    | time constants, delays, periods | time | 1 |
    | limits of speed | 1 / time or length / time | 1 |
    | forces, torques, friction and their limits | mass length / time², mass length² / time² | 1 |
    | springs, dampers, gains, stiffness of contact | by their unit | 1 |
    | densities and drag of a medium | by their unit | 1 |
    | volts; coefficients and angles | 1 | 1 |

    All parts of a system go along: actuators, sensors, force elements, constraints, contact, limits and configurations.
    What joints and tendons do is taken in their own units: a gear of a joint stays, the coefficients of a
    `jdyn.transmissions.FixedTendon` are in m/rad, and a wrench is in m and 1 where it has forces. Commands are in the
    unit of what they command: those of position servos are lengths on sliding joints; those of
    `jdyn.actuators.Motor`, `jdyn.actuators.AffineActuator` and muscles are mere numbers, and stay. The controller goes
    on as if the mechanism had its old size: it sees old coordinates and the old time, and its outputs are changed to
    the new units. Functions of time are those of the new time. Sensors show values in new units, and their noise and
    ranges change as these do.

    Parts of your own say in a class variable `units` in which their numbers are, such as
    `units = {"stiffness": "N/m", "friction": "J/x"}`: of kg, m, s, N, J, W, Pa, and x for the unit of the coordinate of
    their joint or of the length of their transmission. Numbers within their code cannot be seen.

    Args:
        mechanism: The model or the system.
        length: Factor of all lengths, positive; shapes and frames count.
        mass: Factor of all masses, positive.
        time: Factor of all times, positive; the square root of `length` if left out. Gravity is multiplied by
            length / time².
        similar: Whether numbers that have to do with time, forces or surroundings change as well, so that motions are
            similar; if not, `time` has to be left out.

    Raises:
        ValueError: if a factor is not positive or no scalar, or a joint of your own has geometry that jdyn does not
            know; of a system, also if a part has a number of unknown unit.
    """
    if not isinstance(mechanism, System):
        return scaled_model(scaling_of(mechanism, length, mass, time, similar))
    system = mechanism
    scaling = scaling_of(system.model, length, mass, time, similar)
    each = system.actuators
    travels = (actuator.transmission.travel_factor(scaling) for actuator in each)
    scaling = scaling._replace(travels=dict(zip(Actuators(each).names, travels, strict=True)))
    controller = system.controller
    if controller is not None:
        controller = _controller(system, scaling)
    of_q, _ = coordinate_factors(scaling)
    return system.but(
        model=scaled_model(scaling),
        controller=controller,
        configurations={name: times(q, of_q) for name, q in system.configurations.items()},
        **{
            part: None if (own := getattr(system, part)) is None else scaled(own, scaling)
            for part in ("actuators", "contact", "elements", "constraints", "joint_limits", "sensors")
        },
    )


class OfOldSize(Around):
    """A controller that knows a mechanism as it was before it was scaled.

    Attributes:
        controller: The controller.
        of_q, of_v: Factors of coordinates and of velocities.
        time: Factor of times.
        outputs: Factors of what it gives.
    """

    controller: DynamicController
    of_q: Float[Array, " nq"]
    of_v: Float[Array, " nv"]
    time: Factor
    outputs: Float[Array, " outputs"]

    def seen(self, q, v):
        return q / self.of_q.astype(q.dtype), v / self.of_v.astype(v.dtype)

    def start(self, t, q, v):
        return super().start(self._old(t), q, v)

    def force(self, t, q, v, memory):
        return times(super().force(self._old(t), q, v, memory), self.outputs)

    def rate(self, t: Scalar, q: Array, v: Array, memory: PyTree[Array]) -> PyTree[Array]:
        slower = 1.0 if isinstance(self.time, float | int) else 1 / self.time
        return jax.tree.map(lambda x: times(x, slower), super().rate(self._old(t), q, v, memory))

    def next_tick(self, memory):
        return times(super().next_tick(memory), self.time)

    def update(self, t, q, v, memory):
        return super().update(self._old(t), q, v, memory)

    def closed(self, t, q, v):
        return super().closed(self._old(t), q, v)

    def _old(self, t: Any) -> Any:
        """A time as it was."""
        return t if isinstance(self.time, float | int) else (t := jnp.asarray(t)) / self.time.astype(t.dtype)


def _controller(system: System, scaling: Scaling) -> OfOldSize:
    model, (of_q, of_v) = system.model, coordinate_factors(scaling)
    one = jnp.ones((), model.dtype)
    if system.actuators:
        factors = [factor for each in system.actuators for factor in _commands(each, scaling)]
        outputs = jnp.stack([times(one, factor) for factor in factors])
    else:
        outputs = times(one, scaling.factor("J")) / (of_v if scaling.similar else jnp.ones_like(of_v))
    rates = of_v / times(one, scaling.factor("s"))
    return OfOldSize(with_memory(system.controller), of_q, rates, scaling.factor("s"), outputs)


def _commands(actuator: Any, scaling: Scaling) -> tuple[Factor, ...]:
    """Factors of the commands of an actuator."""
    return actuator.command_factors(scaling.along(actuator.transmission.travel_factor(scaling)))
