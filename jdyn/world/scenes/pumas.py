"""Two PUMA 560s that collide."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jdyn.contact import RigidContact
from jdyn.control import GravityCompensation
from jdyn.model import Model, Shape, Shapes
from jdyn.robots.puma560 import puma560
from jdyn.simulation import System
from jdyn.spatial import Transform
from jdyn.world.scenes.scene import Scene
from jdyn.world.world import World

# Balls about points of the arms: link, radius [m], place along the axes of its frame [m].
BALLS = (("elbow", "link3", 0.10, (0.0, 0.0, 0.0)), ("hand", "link6", 0.09, (0.0, 0.0, 0.0)))


def two_pumas(apart: float = 0.8, *, restitution: float = 0.5, friction: float = 0.2) -> Scene:
    """Two PUMA 560s that collide: one falls, the other floats, its weight compensated.

    Joints have no friction, so that energy is only lost in impacts.

    >>> world, t1, _ = jdyn.world.two_pumas()
    >>> print(world.names, world["falling"].geometric.shapes)
    ('falling', 'floating') ('falling/elbow', 'falling/hand')

    Args:
        apart: Distance of the arms' axes [m].
        restitution: Coefficient of restitution.
        friction: Coefficient of friction.

    Source: Ruspini, Lee and Khatib, figure 6.
    """
    arm = puma560()
    free = dataclasses.replace(arm, friction=0 * arm.friction, damping=0 * arm.damping)
    falling, floating = _with_balls(free, (1, 2), (0.85, 0.35, 0.2)), _with_balls(free, (2, 1), (0.2, 0.4, 0.8))
    turned = Transform(jnp.diag(jnp.array([-1.0, -1.0, 1.0])), jnp.array([apart, 0.0, 0.0]))
    held = System(floating, controller=GravityCompensation(floating))
    world = World(contact=RigidContact(restitution=restitution, friction=friction))
    world = world.with_object("falling", falling, q=[0.0, 1.2, -1.4, 0.0, 0.0, 0.0])
    return Scene(world.with_object("floating", held, placement=turned, q=[0.0, 0.3, -1.6, 0.0, 0.3, 0.0]), 2.0)


def _with_balls(model: Model, bits: tuple[int, int], color: tuple[float, float, float]) -> Model:
    """An arm with balls that touch those of the other one alone."""
    entries = tuple(
        Shape("sphere", "collision", model.body_names.index(link), link, name, color=(*color, 1.0),
              contype=bits[0], conaffinity=bits[1])
        for name, link, _, _ in BALLS
    )  # fmt: skip
    dtype, count = model.dtype, len(BALLS)
    sizes = jnp.asarray([[radius, 0, 0] for _, _, radius, _ in BALLS], dtype)
    places = Transform(jnp.asarray(np.tile(np.eye(3), (count, 1, 1)), dtype), jnp.asarray([x[3] for x in BALLS], dtype))
    friction = jnp.asarray(np.tile([1.0, 0.0, 0.0], (count, 1)), dtype)
    return dataclasses.replace(model, shapes=Shapes(entries, sizes, places, friction))
