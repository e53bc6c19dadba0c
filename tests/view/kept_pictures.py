"""Small pictures that tests compare with those in `pictures/`.

`python tests/view/kept_pictures.py` draws them anew. Look at them before you commit them.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

import jdyn
from jdyn.simulation.trajectory import Events

FOLDER = pathlib.Path(__file__).parent / "pictures"
SIZE = 96, 72


def motion_through(ts, q, v):
    """A trajectory that no one has simulated, which takes no time to compile."""
    nothing = ts[..., :0]
    events = Events(nothing, nothing.astype(int), nothing.astype(int), q[..., :0, :], v[..., :0, :])
    return jdyn.Trajectory(ts, q, v, {}, events, jnp.zeros(ts.shape[:-1], int), {})


def double_pendulum():
    """A plane, seen from the front: the first link level, the second one hanging."""
    return jdyn.snapshot(jdyn.load("double_pendulum"), [np.pi / 2, -np.pi / 2], size=SIZE)


def quadruped():
    """A floating base on the ground, with a ghost to its side."""
    model = jdyn.load("quadruped")
    q = model.neutral()
    return jdyn.snapshot(model, jnp.stack([q, q.at[1].add(0.4)]), size=SIZE)


def pendulum_after_a_swing():
    """The last frame of a movie, with a trail."""
    ts = jnp.linspace(0, 0.6, 13)
    motion = motion_through(ts, 1.5 * jnp.cos(4 * ts)[:, None], -6 * jnp.sin(4 * ts)[:, None])
    motion = motion.with_system(jdyn.load("pendulum"))
    movie = jdyn.animate(motion, fps=10, size=SIZE, trails=["tip"])
    return movie.frame(movie.frames - 1)


def shapes():
    """Every kind of solid, in a row: box, ball, ellipsoid, cylinder, capsule."""
    builder = jdyn.Builder("shapes")
    builder.add_link("base", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=1.0)
    solids = {
        "box": ((0.5, 0.5, 0.8), (0.8, 0.3, 0.2)),
        "sphere": (0.35, (0.2, 0.5, 0.8)),
        "ellipsoid": ((0.3, 0.2, 0.45), (0.9, 0.7, 0.2)),
        "cylinder": ((0.25, 0.9), (0.3, 0.6, 0.3)),
        "capsule": ((0.2, 0.6), (0.6, 0.6, 0.6)),
    }
    for number, (kind, (size, color)) in enumerate(solids.items()):
        builder.add_shape("base", kind, size, placement=(0, 0.8 * number, 0.5), role="visual", color=color)
    camera = jdyn.Camera(azimuth=0.3, elevation=0.3)
    return jdyn.snapshot(builder.build(), [0.0], size=SIZE, camera=camera)


PICTURES = {draw.__name__: draw for draw in (double_pendulum, quadruped, pendulum_after_a_swing, shapes)}

if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for name, draw in PICTURES.items():
        Image.fromarray(draw()).save(FOLDER / f"{name}.png", optimize=True)
