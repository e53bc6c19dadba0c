"""Looks of links."""

from typing import Literal, get_args

# As visual shapes, as collision shapes, or as rods from joint to joint.
Look = Literal["visual", "collision", "skeleton"]
LOOKS: tuple[Look, ...] = get_args(Look)
