"""Scenes: worlds to look at, with what it takes to simulate them."""

from typing import NamedTuple

from jdyn.world.coordinator import Coordinator
from jdyn.world.world import World


class Scene(NamedTuple):
    """World to look at.

    >>> scene = jdyn.world.newtons_cradle(3)
    >>> print(scene.world.names, scene.t1)
    ('ball1', 'ball2', 'ball3') 2.0

    Attributes:
        world: The world.
        t1: How long it moves [s].
        coordinator: Under which it is best simulated; None for one system.
    """

    world: World
    t1: float
    coordinator: Coordinator | None = None
