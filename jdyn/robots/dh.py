"""Denavit-Hartenberg parameters, standard and modified, as poses for the builder.

A link of the builder has its frame on its own joint. The standard convention puts the frame of link i at the link's
far end instead, so its parameters have to be carried from there.
"""

import numpy as np

from jdyn.model import pose
from jdyn.spatial import Transform


def standard(a: float, alpha: float, d: float) -> Transform:
    """Pose of link frame i in joint frame i: Tz(d) Tx(a) Rx(α), what follows the joint's Rz(q) [m, rad]."""
    return pose((a, 0, d), (alpha, 0, 0))


def modified(a: float, alpha: float, d: float) -> Transform:
    """Pose of joint frame i in link frame i - 1, after Craig: Rx(α) Tx(a) Tz(d) [m, rad]."""
    return pose((a, -d * np.sin(alpha), d * np.cos(alpha)), (alpha, 0, 0))


def in_joint_frame(link: Transform, com, inertia) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass and inertia of a link, given in its standard frame, in the frame of its joint.

    Args:
        link: Pose of the link frame in the joint frame.
        com: Centre of mass in the link frame [m].
        inertia: Diagonal of the inertia about that centre, link axes [kg m²].

    Returns:
        Centre of mass, and inertia as a matrix, in the joint frame.
    """
    R = np.asarray(link.rotation)
    return R @ np.asarray(com) + np.asarray(link.translation), R @ np.diag(inertia) @ R.T
