"""All of a URDF file that can be simulated."""

import os
from typing import Any

from jdyn.io.scene import Scene
from jdyn.io.srdf_configurations import load_srdf_configurations
from jdyn.io.urdf import read_urdf
from jdyn.io.urdf_actuators import UrdfActuators


def load_urdf_scene(
    source: str | os.PathLike, *, srdf: str | os.PathLike | None = None, dtype=None, **options: Any
) -> Scene:
    """Load the robot of a URDF file, its actuators, joints that follow others by its `<ros2_control>`, and the states
    of an SRDF file beside it, with one warning about the rest. Arguments and errors are those of `load_urdf`."""
    builder, root = read_urdf(source, srdf=srdf, **options)
    found = UrdfActuators(root, builder)
    model = builder.build(dtype=dtype)
    return Scene(
        model,
        tuple(found.constraints),
        {} if srdf is None else load_srdf_configurations(model, srdf),
        touches=False,
        actuators=found.actuators(model),
    )
