"""Three robots beside Pinocchio's: on a fixed base, on a free one, and with a joint that follows another."""

import functools

import pinocchio as pin
import pytest

from jdyn.interop import PinocchioMap
from tests.reference.example_robots import FILES, FIXED, FLOATING, FOLDER, load

# And a frame of each, beyond the last joint.
CASES = {
    "fixed": ("ur5", FIXED, "ee_link"),
    "floating": ("solo12", FLOATING, "HR_FOOT"),
    "mimic": ("panda", FIXED, "panda_rightfinger"),
}
each_robot = pytest.mark.parametrize("name", CASES)


@functools.cache
def pair(name):
    """The model, Pinocchio's of the robot without couplings, what leads from one to the other, and the frame."""
    robot, floating, frame = CASES[name]
    model = load(robot, floating)
    base = [pin.JointModelFreeFlyer()] if floating else []
    peer = pin.buildModelFromUrdf(str(FOLDER / FILES[robot]), *base)
    return model, peer, PinocchioMap(model, peer), frame
