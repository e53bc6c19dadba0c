"""Events where shapes touch."""

from collections.abc import Callable, Sequence

import equinox as eqx
from jaxtyping import Array, Float, Scalar

from jdyn.contact import colliders, distances
from jdyn.contact.time_of_contact import time_to_pass_pairs
from jdyn.model import Model
from jdyn.simulation.events import SAMPLES_PER_STEP, Event, StepLimitingCondition
from jdyn.simulation.state import State


class Gaps(StepLimitingCondition):
    """The condition of events where shapes touch: signed distances.

    Attributes:
        model: With its shapes, which simulations leave out of theirs.
        pairs: Names of the shapes of each entry.
    """

    model: Model
    pairs: tuple[tuple[str, str], ...] = eqx.field(static=True)

    def __call__(self, t: Scalar, y: State) -> Float[Array, " pairs"]:
        return distances(self.model, y.q, self.pairs).distance

    def longest_step(self, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]) -> Scalar:
        return time_to_pass_pairs(self.model, self.pairs, q, v, a, SAMPLES_PER_STEP)


def touch_event(
    model: Model,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    reset: Callable[..., State] | None = None,
    terminate: bool = False,
) -> Event:
    """An event at the instants at which collision shapes begin to touch: the state is reset, or the simulation ends.

    The instant and the state after it are differentiable, as those of every `jdyn.Event`, also by sizes and placements
    of shapes: make the event within the function that is differentiated, of its model.

    Simulations look at the distances at eight places of each step, and with `diffrax.PIDController`, the default, steps
    are so short that no shape passes through the middle of another between two of them, by the velocity at the start
    and the last acceleration. What grazes an edge between two may be missed, and with other step controllers what
    touches and parts: a ball of radius r that passes through a wall of thickness h at the speed u, for (h + 2 r) / u.
    `jdyn.contact.time_of_contact` misses nothing, for motions of constant velocity.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> model = jdyn.with_ground(builder.build())
    >>> landing = jdyn.touch_event(model, terminate=True)
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 2.0, events=[landing])
    >>> print(f"{motion.events.ts[0]:.3f} s", landing.condition.pairs[motion.events.entry[0]])
    0.428 s ('ground', 'ball')

    Args:
        model: The mechanism, with its shapes.
        pairs: Names of two collision shapes for each entry of the event; if left out, all that may touch, in the order
            of `jdyn.contact.collision_pairs`. `condition.pairs` of the event has them.
        reset: `reset(t, y, entry)`, the state after the pair of that number has touched.
        terminate: Whether the simulation ends there, with the code `Result.event`.

    Raises:
        ValueError: if the model has no collision shapes, or none of a name; if no two may touch; or if the event
            neither resets nor terminates.
    """
    found = colliders(model)
    pairs = found.names if pairs is None else tuple((first, second) for first, second in pairs)
    found.rows(pairs)
    if not pairs:
        raise ValueError(
            f"touch_event: no two collision shapes of {model.name!r} may touch, see jdyn.contact.collision_pairs; put "
            f"ground "
            "under it by jdyn.with_ground, or name pairs"
        )
    return Event(Gaps(model, pairs), reset, terminate)
