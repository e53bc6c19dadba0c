"""Real robots of the `example-robot-data` wheel, and which of them a test takes by default.

The wheel has no iiwa; the xArm 7, a chain of seven revolute joints as well, stands in for it. Robots of one structure
share compiled programs, and stand next to each other for that reason.
"""

import pathlib
import warnings

import pinocchio as pin
import pytest

import jdyn

FOLDER = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
FILES = {
    "double_pendulum": "double_pendulum_description/urdf/double_pendulum.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "ur10": "ur_description/urdf/ur10_robot.urdf",
    "so100": "so_arm_description/urdf/so100.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "tiago": "tiago_description/robots/tiago.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
}
FIXED, FLOATING = False, True
SAMPLES = 4


def robots(*cases, slow=(), exhaustive=()):
    marked = [pytest.param(*case, marks=pytest.mark.slow) for case in slow]
    marked += [pytest.param(*case, marks=[pytest.mark.slow, pytest.mark.exhaustive]) for case in exhaustive]
    return pytest.mark.parametrize("name, floating", [*cases, *marked])


every_robot = robots(
    ("solo12", FLOATING),
    slow=[("panda", FIXED)],
    # Of the structure of others.
    exhaustive=[
        *(
            (name, FIXED)
            for name in ("double_pendulum", "so100", "allegro", "kinova", "ur5", "ur10", "xarm7", "z1", "tiago")
        ),
        *((name, FLOATING) for name in ("anymal_b", "anymal_c", "a1", "hyq", "talos")),
    ],
)


def load(name, floating):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        return jdyn.load(FOLDER / FILES[name], floating_base=floating)
