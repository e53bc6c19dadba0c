"""The command `jdyn identify`."""

from __future__ import annotations

import pathlib

import jdyn
from jdyn.cli.common import compiling, load_robot
from jdyn.identification import measurement, read_log


def identify(options):
    """Estimate a robot's parameters from a measured motion, and write it as a URDF file."""
    model = load_robot(options)
    motion = measurement(model, read_log(options.data))
    with compiling() as times:
        result = jdyn.identify(model, *motion, parts=options.parts, spread=options.spread)
    print(f"compiled in {times.compiling:.1f} s, ran in {times.running:.1f} s")
    print(f"{model.name}: {len(motion.q)} samples, {result.message}\n")
    print(result)
    output = options.output or pathlib.Path(f"identified-{model.name}.urdf").resolve()
    jdyn.save_urdf(result.model, output)
    print(f"\nmodel:  {output}")
