"""The command `jdyn identify`."""

from __future__ import annotations

import pathlib

import jdyn
from jdyn.cli.common import compiling, load_robot
from jdyn.identification import identify_log, read_log, save_report


def identify(options):
    """Estimate a robot's parameters from a measured motion, and write it as a URDF file."""
    model = load_robot(options)
    held_out = options.held_out if isinstance(options.held_out, float) else read_log(options.held_out, options.topic)
    loaded = [
        (jdyn.load(robot, floating_base=options.floating_base, package_dirs=options.package_dir), read_log(data))
        for data, robot in options.loaded
    ]
    asked = {"parts": options.parts, "spread": options.spread, "channels": options.channels}
    filters = {"cutoff": options.cutoff, "band": options.band, "degrees": options.degrees}
    dataset = read_log(options.data, options.topic)
    with compiling() as times:
        found = identify_log(model, dataset, held_out=held_out, loaded=loaded, **asked, **filters)
    print(f"compiled in {times.compiling:.1f} s, ran in {times.running:.1f} s")
    print(f"{model.name}: {dataset.sizes['time']} samples, {found.identification.message}\n")
    print(found)
    output = options.output or pathlib.Path(f"identified-{model.name}.urdf").resolve()
    jdyn.save_urdf(found.model, output)
    print(f"\nmodel:  {output}")
    if options.report:
        save_report(found, options.report)
        print(f"report: {options.report}")
