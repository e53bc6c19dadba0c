"""Real robots against Pinocchio and MuJoCo."""

import warnings

import pinocchio as pin
import pytest

import jdyn
from jdyn.interop.pinocchio_values import PinocchioValues
from jdyn.interop.verification import compare, verify
from tests.reference.example_robots import FILES, FIXED, FLOATING, FOLDER, SAMPLES, every_robot, load, robots

pytestmark = pytest.mark.fast_compile


@pytest.mark.slow
@every_robot
def test_every_function_agrees_with_pinocchio(name, floating):
    """Pinocchio reads the file by itself."""
    base = [pin.JointModelFreeFlyer()] if floating else []
    reference = PinocchioValues(pin, load(name, floating), pin.buildModelFromUrdf(str(FOLDER / FILES[name]), *base))
    result = compare(reference, "Pinocchio", samples=SAMPLES)
    assert result.passed, f"\n{result}"
    assert len(result.errors) == len(result.comparisons), f"\n{result}"


# By default, tests of `verify` compare smaller mechanisms with MuJoCo.
@robots(slow=[("panda", FIXED), ("solo12", FLOATING), ("talos", FLOATING)], exhaustive=[("ur5", FIXED)])
def test_every_function_agrees_with_mujoco(name, floating):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        result = verify(FOLDER / FILES[name], "mujoco", floating_base=floating, samples=SAMPLES)
    assert result.passed, f"\n{result}"
    assert {"forward_dynamics, ABA", "inverse_dynamics", "mass_matrix", "momentum"} <= set(result.errors)
