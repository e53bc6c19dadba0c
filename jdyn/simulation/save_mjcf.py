"""Models and systems to MJCF files."""

import os

from jdyn.io import Scene, write_mjcf
from jdyn.model import Model, checked
from jdyn.simulation.system import System


def save_mjcf(model: Model | System, path: str | os.PathLike) -> None:
    """Write a model or a system as a MuJoCo file, which `jdyn.load` or `jdyn.load_system` reads back.

    Bodies keep their names and frames, joints their coordinates. Frames become sites, or bodies without joints where
    they have shapes of their own; a massless body with nothing but a joint for the next body becomes a joint of that.
    Universal and planar joints become the hinges and slides that they consist of, which read back as such; continuous
    joints read back as revolute ones without limits. Mimic joints and constraints are soft in MuJoCo, and so are limits
    and friction of joints. Paths of mesh files below the file's folder are relative to it.

    Of a system there are also actuators, tendons with their springs, a medium, carried weight, constraints as
    equalities, sensors, configurations as keyframes, and whether shapes touch and joints have stops. A hinge that
    closes a loop becomes two points that are held together. Free bodies begin where the configuration `"qpos0"` has
    them, or where their springs rest.

    >>> jdyn.save_mjcf(jdyn.load("double_pendulum"), "arm.xml")
    >>> jdyn.load("arm.xml").body_names
    ('link1', 'link2')

    Args:
        model: A `jdyn.Model` or a `jdyn.System` with concrete (not traced) leaves.
        path: File to write; an existing one is replaced.

    Raises:
        ValueError: if MJCF cannot represent the kind of a joint, a body, or a name.

    Warns:
        ModelWarning: once, naming everything that is left out because MJCF cannot represent it.
    """
    if not isinstance(model, System):
        checked(model)
        write_mjcf(Scene(model, (), {}, touches=True), path, limited=True)
        return
    system = model
    scene = Scene(
        system.model,
        system.constraints,
        system.configurations,
        touches=system.contact is not None,
        actuators=system.actuators,
        sensors=system.sensors,
        elements=system.elements,
    )
    lost = [] if system.controller is None else ["the controller"]
    write_mjcf(scene, path, limited=system.joint_limits is not None, lost=lost)
