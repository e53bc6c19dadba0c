"""The movie and the figures of the README: `python -m benchmarks.pictures` draws them into the folder `notebooks`.

The movie needs the meshes of `pip install "jdyn[test]"`. Four Pandas are let go and drawn to one configuration by PD
control, with gains from stiff to soft.
"""

import pathlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks.robots import SHARED, shared_folder
from jdyn.cli import main

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
# Of the joints, then of the fingers.
START = [-1.0, -0.9, 0.0, -2.4, 0.0, 1.6, 0.8, 0.03]
TARGET = [0.9, 0.35, 0.1, -1.7, 0.0, 2.1, 0.8, 0.03]
GAINS = jnp.array([100.0, 30.0, 12.0, 6.0])
END = 2.5


def panda():
    """The robot of the wheel example-robot-data, with its meshes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        return jdyn.load(shared_folder() / SHARED["panda9"][0])


def movie(path: pathlib.Path):
    """Four gains, one solid and three as ghosts."""
    model = panda()

    def motion(gain):
        controller = jdyn.PD(model, TARGET, kp=gain, kd=jnp.sqrt(gain) * 1.6) + jdyn.GravityCompensation(model)
        start, rest = jnp.array(START), jnp.zeros(model.nv)
        return jdyn.simulate(model, start, rest, END, controller=controller, saveat=np.linspace(0, END, 76))

    jdyn.animate(
        jax.jit(jax.vmap(motion))(GAINS), path,
        camera=jdyn.Camera(azimuth=0.25, elevation=0.25), size=(440, 330), fps=15, trails=["panda_hand"],
    )  # fmt: skip


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    movie(FOLDER / "panda.gif")
    main(["sweep", "--output", str(FOLDER / "sweep-puma560")])
    (FOLDER / "sweep-puma560.nc").unlink()
    main(["stiffness", "--plot", str(FOLDER / "stiffness.png")])
