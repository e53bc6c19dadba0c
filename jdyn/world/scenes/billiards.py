"""Billiards."""

import jax.numpy as jnp
import numpy as np

from jdyn.contact import RigidContact
from jdyn.model import Builder, Planar, pose
from jdyn.world.coordinator import Coordinator
from jdyn.world.scenes.scene import Scene
from jdyn.world.world import World

RADIUS, MASS = 0.0286, 0.17
# Half of the length and of the width of the cloth [m].
TABLE = (1.27, 0.635)
COLORS = ((0.9, 0.75, 0.1), (0.1, 0.2, 0.7), (0.8, 0.1, 0.1), (0.4, 0.1, 0.5), (0.9, 0.45, 0.1), (0.1, 0.5, 0.2))


def billiards(rows: int = 3, *, speed: float = 4.0, restitution: float = 0.95, friction: float = 0.05) -> Scene:
    """Break of a rack of billiard balls, on a table with cushions.

    Balls stay on the cloth, as `jdyn.Planar` joints have it, and slow down by damping; friction acts between balls and
    at cushions. Islands are of balls that meet: `jdyn.world.Coordinator` has the others go on alone.

    >>> world, t1, coordinator = jdyn.world.billiards(2)
    >>> print(world.names)
    ('table', 'cue', 'ball1', 'ball2', 'ball3')

    Args:
        rows: Rows of the rack: 5 for 15 balls.
        speed: Speed of the cue ball [m/s].
        restitution: Coefficient of restitution.
        friction: Coefficient of friction.
    """
    world = World(contact=RigidContact(restitution=restitution, friction=friction), gravity=(0.0, 0.0, 0.0))
    world = world.with_object("table", _table())
    world = world.with_object("cue", _ball((0.95, 0.95, 0.9)), q=[-0.6, 0.013, 0.0], v=[speed, 0.0, 0.0])
    places = [(row, place - row / 2) for row in range(rows) for place in range(row + 1)]
    # Balls that touch would collide at once: a hair is between these.
    step = 2 * RADIUS + 5e-4
    for number, (row, side) in enumerate(places, 1):
        start = [0.4 + row * step * np.sqrt(3) / 2, side * step, 0.0]
        world = world.with_object(f"ball{number}", _ball(COLORS[(number - 1) % len(COLORS)]), q=start)
    return Scene(world, 2.0, Coordinator(window=0.02))


def _ball(color):
    builder = Builder("ball")
    joint = Planar(normal=jnp.array([0.0, 0.0, 1.0]), x=jnp.array([1.0, 0.0, 0.0]))
    builder.add_link("ball", joint, mass=MASS, inertia=0.4 * MASS * RADIUS**2, damping=0.02 * MASS)
    builder.add_shape("ball", "sphere", RADIUS, placement=(0, 0, RADIUS), color=color)
    return builder.build()


def _table():
    quarter, (x, y) = np.pi / 2, TABLE
    builder = Builder("table")
    for name, place, turned in (
        ("east", (x, 0, 0), (0, -quarter, 0)),
        ("west", (-x, 0, 0), (0, quarter, 0)),
        ("north", (0, y, 0), (quarter, 0, 0)),
        ("south", (0, -y, 0), (-quarter, 0, 0)),
    ):
        builder.add_shape("world", "plane", (0, 0), placement=pose(place, turned), role="collision", name=name)
    builder.add_shape(
        "world", "box", (2 * x, 2 * y, 0.02), placement=(0, 0, -0.01), role="visual", color=(0.1, 0.45, 0.25)
    )
    return builder.build()
