"""Denavit-Hartenberg parameters, standard and modified, as poses for the builder.

In the builder, a link's frame is at its own joint. The standard convention puts the frame of link i at the link's far
end, so inertial parameters given there must be transformed.
"""

import numpy as np

from jdyn.model import pose
from jdyn.spatial import Transform


def standard(a: float, alpha: float, d: float) -> Transform:
    """Pose of link frame i in joint frame i: Tz(d) Tx(a) Rx(α), which follows the joint's Rz(q) [m, rad]."""
    return pose((a, 0, d), (alpha, 0, 0))


def modified(a: float, alpha: float, d: float) -> Transform:
    """Pose of joint frame i in link frame i - 1, after Craig: Rx(α) Tx(a) Tz(d) [m, rad]."""
    return pose((a, -d * np.sin(alpha), d * np.cos(alpha)), (alpha, 0, 0))


def in_joint_frame(link: Transform, com, inertia) -> tuple[np.ndarray, np.ndarray]:
    """Transform the centre of mass and inertia of a link from its standard frame to its joint frame.

    Args:
        link: Pose of the link frame in the joint frame.
        com: Centre of mass in the link frame [m].
        inertia: Diagonal of the inertia about that centre, in link axes [kg m²].

    Returns:
        Centre of mass and inertia matrix in the joint frame.
    """
    R = np.asarray(link.rotation)
    return R @ np.asarray(com) + np.asarray(link.translation), R @ np.diag(inertia) @ R.T
