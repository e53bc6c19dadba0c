"""Events where rigid shapes collide."""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Scalar

from jdyn.array import with_fields
from jdyn.contact import colliders
from jdyn.contact.colliders import Colliders, by_kinds
from jdyn.contact.laws import parting
from jdyn.contact.materials import check_numbers
from jdyn.contact.moving_points import MovingPoints
from jdyn.control import with_memory
from jdyn.elements import Elements
from jdyn.impacts import ImpactLaw, Stronge, TogetherLaw
from jdyn.model import Model
from jdyn.simulation.events import Event
from jdyn.simulation.rigid_events import hits
from jdyn.simulation.state import State
from jdyn.simulation.system import System
from jdyn.simulation.touch_event import touch_event
from jdyn.simulation.vector_field import VectorField

# Two shapes touch at all their points whose distance is less than this power of rounding, as a share of their size.
TOUCHING = 0.5
# So often at most each point of a pair is hit, one after another.
ROUNDS = 4


def impact_event(
    mechanism: Model | System,
    law: ImpactLaw | TogetherLaw | None = None,
    *,
    restitution: ArrayLike = 0.5,
    friction: ArrayLike = 0.0,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Event:
    """An event at the instants at which rigid collision shapes begin to touch: they collide, by a law of impact.

    Impulses act through all joints, and through the constraints of a system. By an `ImpactLaw`, shapes that collide at
    several points, or several pairs at one instant, collide one after another: of each pair the point first that
    approaches fastest, until none approaches. So a row of equal balls passes an impulse on to its last one. By a
    `TogetherLaw`, such as `jdyn.impacts.PoissonTogether()`, all points of all pairs that touch at the instant collide
    at once: a ball that hits two of its kind bounces back from them.

    What comes to rest bounces ever more often: the simulation ends with the code `Result.endless_events` or when
    `max_events` have happened. Where things rest, use a compliant or a convex contact.

    Derivatives are those of the order and the modes in which impacts happened, see `jdyn.impacts.Impact.margin`. Where
    a law has no answer, velocities are NaN and the simulation ends.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> model = jdyn.with_ground(builder.build())
    >>> bounces = jdyn.impact_event(model, restitution=0.5)
    >>> motion = jdyn.simulate(model, jnp.array([1.1]), jnp.zeros(1), 0.7, events=[bounces])
    >>> print(motion.events.ts[0].round(3), motion.v[-1].round(3))
    0.452 [-0.223]

    Args:
        mechanism: A model with collision shapes, or a system, whose constraints, inertia of tendons and method count.
        law: The law; `jdyn.impacts.Stronge()` if left out.
        restitution: e, from 0 to 1: one for all pairs, or one for each.
        friction: Coefficient of friction μ, likewise.
        pairs: As those of `jdyn.touch_event`.

    Raises:
        ValueError: as `jdyn.touch_event`; if there is not one number for each pair, or a known one is out of its range.

    Source: Mirtich, Canny, Impulse-based simulation of rigid bodies, Symposium on Interactive 3D Graphics 1995, for
    impacts of articulated bodies.
    """
    system = mechanism if isinstance(mechanism, System) else System(mechanism)
    model = system.model
    touches = touch_event(model, pairs, terminate=True)
    check_numbers("restitution", restitution, lambda x: (x >= 0) & (x <= 1), "numbers from 0 to 1")
    check_numbers("friction", friction, lambda x: x >= 0, "numbers not negative")
    found, names = colliders(model), touches.condition.pairs
    asked = [(min(rows), max(rows)) for rows in found.rows(names)]
    ordered = by_kinds(found.entries, dict.fromkeys(asked))
    numbers = [(min(rows), max(rows)) for rows in ordered]
    field = VectorField(model, with_memory(None), system.method, constraints=system.constraints,
                        elements=Elements(system.elements))  # fmt: skip
    law = Stronge() if law is None else law
    reset = (AtOnce if law.together else OneByOne)(
        field,
        dataclasses.replace(found, pairs=ordered),
        tuple(map(numbers.index, asked)),
        law,
        _of_pairs("restitution", restitution, len(names)),
        _of_pairs("friction", friction, len(names)),
    )
    return Event(touches.condition, reset)


class Collision(eqx.Module):
    """Reset of `impact_event`.

    Attributes:
        field: How the mechanism responds to impulses.
        colliders: Its shapes.
        places: Number of the pair of each entry.
        law: Of impact.
        restitution, friction: Of each entry.
    """

    field: VectorField
    colliders: Colliders
    places: tuple[int, ...] = eqx.field(static=True)
    law: Any
    restitution: Float[Array, " entries"]
    friction: Float[Array, " entries"]

    def __call__(self, t: Scalar, y: State, entry: Int[Array, ""]) -> State:
        points = MovingPoints.at(self.field.model, self.colliders, y.q)
        of_points = points.pairs.of_points
        here = points.exist & (jnp.asarray(of_points) == jnp.asarray(self.places)[entry])
        near = jnp.finfo(y.q.dtype).eps ** TOUCHING * self.colliders.least_sizes_of_pairs()[of_points]
        apart = jax.lax.stop_gradient(jnp.where(here, points.distance, jnp.inf))
        touch = here & (apart <= jnp.min(apart) + near)
        others = points.exist & (jax.lax.stop_gradient(points.distance) <= near)
        return with_fields(y, v=self.after(t, y, points, entry, touch, others))

    @abc.abstractmethod
    def after(
        self,
        t: Scalar,
        y: State,
        points: MovingPoints,
        entry: Int[Array, ""],
        touch: Bool[Array, " points"],
        others: Bool[Array, " points"],
    ) -> Float[Array, " nv"]:
        """Velocity after impacts at points of the pair of an entry that touch, and of other pairs."""


class OneByOne(Collision):
    """Points of one pair, one after another, by an `ImpactLaw`."""

    def after(self, t, y, points, entry, touch, others):
        most, rows = int(max(np.bincount(points.pairs.of_points))), points.rows(y.v)

        def hit(v, _):
            speeds = jnp.where(touch, parting(points.twists(v), points.normal), jnp.inf)
            J = rows[jnp.argmin(jax.lax.stop_gradient(speeds))]
            moved = jax.vmap(lambda j: self.field.response(t, y, j))(J)
            hit = self.law(J @ moved.T, J @ v, self.restitution[entry], self.friction[entry])
            return v + hit.impulse @ moved, None

        v, _ = hit(y.v, None) if most == 1 else jax.lax.scan(hit, y.v, None, ROUNDS * most)
        return v


class AtOnce(Collision):
    """All points of all pairs that touch at once, by a `TogetherLaw`."""

    def after(self, t, y, points, entry, touch, others):
        entries = np.argsort(self.places)[points.pairs.of_points]
        numbers = self.restitution[entries], self.friction[entries]
        return y.v + hits(self.field, t, y, points.rows(y.v), touch | others, self.law, *numbers).change


def _of_pairs(name: str, x: ArrayLike, pairs: int) -> Float[Array, " pairs"]:
    """One number for each pair."""
    numbers = jnp.asarray(x, float)
    if numbers.shape not in ((), (pairs,)):
        raise ValueError(f"{name}: expected one number, or one for each of {pairs} pairs, got shape {numbers.shape}")
    return jnp.broadcast_to(numbers, (pairs,))
