"""Cloutier's planar robot with rectangular links."""

from collections.abc import Sequence

import numpy as np

from jdyn.model import Builder, Continuous, Model
from jdyn.robots.links import box_inertia, per_link


def prrr(
    n: int = 2,
    lengths: float | Sequence[float] = 1.0,
    masses: float | Sequence[float] = 1.0,
    widths: float | Sequence[float] = 1.0,
    *,
    dtype=None,
) -> Model:
    """Planar, revolute-jointed, rectangular-linked robot ("PRRRobot"): `n` uniform rectangles in a vertical plane.

    q = 0 is the thesis' starting position: all links in line and horizontal, along +x. The motion is in the x-z
    plane; angles are relative to the previous link. Positive angles turn counter-clockwise with x to the right and z
    up, so they raise the end, frame `tip`. Joints are at the middle of the short sides, frictionless and unlimited.
    The default is the first standard case of the thesis, two links of unit length, mass and width; in its other
    cases, the second link is 10 to 10⁶ times as long and as heavy.

    The thesis does not give its moments of inertia; its figure 5.5 requires m (l² + w²) / 12 about the centre of the
    rectangle. It uses g = 9.8 m/s². Its links are flat; here their thickness is a tenth of their width, which does
    not affect motion in the plane.

    Args:
        n: Number of links.
        lengths: Lengths of the links [m], base to tip; one number for all or one each.
        masses: Masses of the links [kg]; one number for all or one each.
        widths: Widths of the links [m]; one number for all or one each.
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if `n` or a size is not a finite positive number, or the number of sizes is neither 1 nor `n`.

    Source: Cloutier, Properties of robot forward dynamics algorithms with applications to simulation, MSc thesis,
    University of British Columbia (1995), sections 2.2, 5.1 and 5.2.
    """
    sizes = per_link(n, lengths=lengths, masses=masses, widths=widths)
    builder = Builder("prrr")
    parent, end = "world", np.zeros(3)
    for i, (length, mass, width) in enumerate(zip(*sizes, strict=True)):
        link = f"link{i + 1}"
        builder.add_link(
            link,
            Continuous((0, -1, 0)),  # type: ignore[arg-type]
            parent=parent,
            placement=end,
            mass=mass,
            com=(length / 2, 0, 0),
            inertia=box_inertia(mass, (length, width / 10, width)),
            joint_name=f"joint{i + 1}",
        )
        parent, end = link, np.array([length, 0, 0])
    builder.add_frame("tip", parent, end)
    return builder.build(dtype=dtype)
