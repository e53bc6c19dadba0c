"""Questions of plots to a motion."""

import numpy as np

from jdyn.simulation import Trajectory


def one_motion(name: str, motion) -> None:
    """Refuse what is no motion, and a batch of them.

    Raises:
        ValueError: that says how to pick a lane.
    """
    a_motion(name, motion)
    if np.ndim(motion.ts) != 1:
        raise ValueError(
            f"{name}: expected one motion, got a batch of shape {np.shape(motion.ts)[:-1]}; pick a lane with "
            "jax.tree.map(lambda leaf: leaf[i], trajectory)"
        )


def a_motion(name: str, motion) -> None:
    """Refuse what is no motion.

    Raises:
        ValueError: that names what it is.
    """
    if not isinstance(motion, Trajectory):
        raise ValueError(f"{name}: expected a jdyn.Trajectory, got {type(motion).__name__}")
