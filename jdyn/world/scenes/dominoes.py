"""A row of dominoes."""

import jax.numpy as jnp
import numpy as np

from jdyn.contact import RigidContact
from jdyn.model import Builder, Revolute, Touching
from jdyn.simulation import CompliantLimits
from jdyn.world.coordinator import Coordinator
from jdyn.world.scenes.scene import Scene
from jdyn.world.world import World

HEIGHT, WIDTH, THICKNESS, MASS = 0.05, 0.025, 0.008, 0.02


def dominoes(count: int = 5, *, gap: float = 0.02, push: float = 4.0, friction: float = 0.2) -> Scene:
    """Row of dominoes, of which the first one is pushed over.

    Each turns about its lower front edge, from upright until it lies. The upper edge of one touches the face of the
    next, in the middle, where it is round.

    >>> world, t1, _ = jdyn.world.dominoes(3)
    >>> print(world.names)
    ('domino1', 'domino2', 'domino3')

    Args:
        count: Number of dominoes.
        gap: Between two of them [m], less than their height.
        push: Speed of the first one at the start [rad/s].
        friction: Coefficient of friction.
    """
    builder = Builder("domino")
    middle = (-THICKNESS / 2, 0, HEIGHT / 2)
    inertia = (WIDTH**2 + HEIGHT**2, THICKNESS**2 + HEIGHT**2, THICKNESS**2 + WIDTH**2)
    hinge, inertia = Revolute(jnp.array([0.0, 1.0, 0.0])), [MASS / 12 * each for each in inertia]
    builder.add_link("domino", hinge, mass=MASS, com=middle, inertia=inertia, lower=0.0, upper=np.pi / 2)
    # Edges touch faces, faces no faces.
    face, edge = (Touching(contype=bits, conaffinity=3 - bits) for bits in (1, 2))
    builder.add_shape("domino", "box", (THICKNESS, WIDTH, HEIGHT), placement=middle, touching=face, name="face")
    top = (-THICKNESS / 2, 0, HEIGHT - THICKNESS / 2)
    builder.add_shape("domino", "sphere", THICKNESS / 2, placement=top, role="collision", touching=edge, name="edge")
    model = builder.build()
    world = World(contact=RigidContact(restitution=0.1, friction=friction), joint_limits=CompliantLimits())
    for i in range(count):
        world = world.with_object(
            f"domino{i + 1}", model, placement=(i * (THICKNESS + gap), 0, 0), v=[0 if i else push]
        )
    return Scene(world, 0.5, Coordinator(window=0.01))
