"""Newton's cradle."""

import jax.numpy as jnp

from jdyn.contact import RigidContact
from jdyn.model import Builder, Revolute
from jdyn.world.scenes.scene import Scene
from jdyn.world.world import World

LENGTH, RADIUS, MASS = 0.5, 0.05, 1.0


def newtons_cradle(
    count: int = 5, *, lifted: int = 1, angle: float = 0.6, restitution: float = 1.0, gap: float = 1e-3
) -> Scene:
    """Newton's cradle: balls on strings in a row, of which the first ones are lifted and let go.

    With gaps between them, balls hit each other one after another, and as many leave at the other end as have come.
    Without gaps all collide at once: by `jdyn.impacts.PoissonTogether` the first of three bounces back.

    >>> world, t1, _ = jdyn.world.newtons_cradle(3, gap=1e-3)
    >>> print(world["ball2"].kinematic.pose("ball").translation.round(3) + 0.0)
    [0.101 0.    0.5  ]

    Args:
        count: Number of balls.
        lifted: How many of them are let go.
        angle: From what angle [rad].
        restitution: Coefficient of restitution.
        gap: Between neighbours at rest [m]; less than about 1e-5 m counts as none.
    """
    builder = Builder("pendulum")
    builder.add_link(
        "ball", Revolute(jnp.array([0.0, 1.0, 0.0])), mass=MASS, com=(0, 0, -LENGTH), inertia=0.4 * MASS * RADIUS**2
    )
    builder.add_shape("ball", "sphere", RADIUS, placement=(0, 0, -LENGTH), color=(0.75, 0.76, 0.8))
    string = {"placement": (0, 0, -LENGTH / 2), "color": (0.3, 0.3, 0.3)}
    builder.add_shape("ball", "capsule", (0.003, LENGTH), role="visual", name="string", **string)
    model = builder.build()
    world = World(contact=RigidContact(restitution=restitution, friction=0.0))
    for i in range(count):
        start = {"placement": (i * (2 * RADIUS + gap), 0.0, LENGTH), "q": [angle if i < lifted else 0.0]}
        world = world.with_object(f"ball{i + 1}", model, **start)
    return Scene(world, 2.0)
