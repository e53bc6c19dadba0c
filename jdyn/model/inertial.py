"""Inertial parameters on the host, in float64, as pseudo-inertia matrices.

The pseudo-inertia of a body is the 4×4 matrix J = ∫ x xᵀ dm of its homogeneous points x = [position; 1]:
J = [[Σ, h], [hᵀ, m]]. The J of a body is the sum over its parts, and a change of frame T gives T J Tᵀ. A body is
physically possible if and only if J is positive semidefinite: its principal moments satisfy the triangle inequality.

Source: Wensing, Kim, Slotine, Linear matrix inequalities for physically consistent inertial parameter
identification, RA-L 2018.
"""

import numpy as np

# Published parameters are rounded: violations of the triangle inequality below this fraction of the largest principal
# moment count as rounding errors.
TRIANGLE_TOLERANCE = 1e-3
# Moments with a radius of gyration below this [m] count as rounding errors of a point mass.
POINT_RADIUS = 1e-6


def pseudo_inertia(mass: float, com: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """J about the frame's origin, from mass, centre of mass and rotational inertia about that centre."""
    first_moment = mass * com
    J = np.zeros((4, 4))
    J[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia + np.outer(first_moment, com)
    J[:3, 3] = J[3, :3] = first_moment
    J[3, 3] = mass
    return J


def homogeneous(rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
    """The 4×4 matrix of a pose."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation, translation
    return T


def ten_parameters(J: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, first moment and rotational inertia `[xx, xy, yy, xz, yz, zz]` about the frame's origin."""
    I = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return J[3, 3], J[:3, 3], I[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]


def central_inertia(mass: float, first_moment: np.ndarray, rotational: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass and rotational inertia about it, of ten parameters about the frame's origin."""
    com = first_moment / mass if mass else np.zeros(3)
    xx, xy, yy, xz, yz, zz = rotational
    moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return com, moments - mass * (com @ com * np.eye(3) - np.outer(com, com))


def inertia_problems(mass: float, com: np.ndarray, inertia: np.ndarray) -> list[str]:
    """The problems of these parameters, in words; empty if there are none."""
    if not np.isfinite(mass) or not np.all(np.isfinite(com)) or not np.all(np.isfinite(inertia)):
        return ["inertial parameters must be finite numbers"]
    problems = []
    if mass < 0:
        problems.append(f"mass is {mass:g}, expected a number that is not negative")
    if np.max(np.abs(inertia - inertia.T)) > 1e-9 * max(np.max(np.abs(inertia)), 1e-300):
        problems.append("the inertia matrix is not symmetric")
    return problems


def negative_moment(mass: float, inertia: np.ndarray) -> str | None:
    """A message if a principal moment of a symmetric matrix is negative, else `None`."""
    moments, slack = _moments(mass, inertia)
    if moments[0] >= -slack:
        return None
    return f"principal moments of inertia are {_shown(moments)}, expected none below zero"


def triangle_violation(mass: float, inertia: np.ndarray) -> str | None:
    """A message if the moments of a symmetric matrix violate the triangle inequality, else `None`."""
    moments, slack = _moments(mass, inertia)
    if moments[-1] <= moments[0] + moments[1] + slack:
        return None
    return (
        f"principal moments of inertia are {_shown(moments)}: the largest exceeds the sum of the other two, "
        "which is impossible for a rigid body"
    )


def _moments(mass, inertia):
    """Principal moments in ascending order, and the largest violation that may be rounding."""
    moments = np.linalg.eigvalsh(inertia)
    return moments, TRIANGLE_TOLERANCE * max(abs(moments[0]), abs(moments[-1])) + mass * POINT_RADIUS**2


def _shown(moments):
    return ", ".join(f"{moment:.6g}" for moment in moments)
