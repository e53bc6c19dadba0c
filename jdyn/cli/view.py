"""The command `jdyn view`."""

from __future__ import annotations

import pathlib
import webbrowser

import jdyn
from jdyn.cli.common import load_scene, on_ground, start_of


def view(options):
    """Show a robot, or a lane of a store, in a browser, or write a page that does."""
    with _viewer(options) as viewer:
        if options.export:
            print(f"page:  {viewer.export(options.export)}")
            return
        if options.browser:
            webbrowser.open(viewer.url)
        viewer.wait_for_interrupt()


def _viewer(options):
    shown = {"look": options.look, "port": 0 if options.export else options.port}
    if pathlib.Path(options.robot).is_dir():
        if options.t1 is not None:
            raise ValueError(f"--t1: lanes of {options.robot} are as long as their sweep says; leave it out")
        return jdyn.view(store=options.robot, lane=options.lane or 0, **shown)
    if options.lane is not None:
        raise ValueError(f"--lane: expected the folder of a sweep's store, got {options.robot!r}")
    system = load_scene(options)
    start = system.model.neutral() if options.t1 is None else start_of(options, system)
    system = on_ground(options, system, start)
    if options.t1 is None:
        return jdyn.view(system, **shown)
    return jdyn.view(jdyn.simulate(system, system.state(start), options.t1, throw=False), **shown)
