"""MuJoCo files of others against MuJoCo: forces of actuators, tendons, sensors, accelerations and motions."""

import pathlib

import gymnasium
import pytest

from benchmarks import mujoco_files

pytestmark = pytest.mark.fast_compile

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hopper", "reacher", "swimmer"])
def test_small_files_agree(name):
    found = mujoco_files.compared(ASSETS / f"{name}.xml", ASSETS, motion=name == "reacher")
    assert found.refused is None and found.errors
    assert not found.wrong


def test_what_differs_is_found():
    found = mujoco_files.Agreement(
        errors={"forces": {"actuators": 1e-7}, "motion": {"the end": 2e-6}, "moments": {"tendons": float("nan")}}
    )
    assert [*found.wrong] == ["forces of actuators", "motion of the end", "moments of tendons"]
    assert found.error("sensors") is None


@pytest.mark.exhaustive
def test_installed_files_agree():
    """All files of gymnasium, and of dm_control and robosuite, where they are installed."""
    found = mujoco_files.all_compared(mujoco_files.installed())
    read = {str(path): one for path, _, one in found if not one.by_both}
    assert len(read) >= 14
    assert not {name: one.refused or one.wrong for name, one in read.items() if one.refused or one.wrong}
