"""The command `jdyn view`."""

from __future__ import annotations

import pathlib
import webbrowser

import jax.numpy as jnp

import jdyn
from jdyn.cli.common import contact_of, let_go, load_robot, on_ground
from jdyn.sweep import random_start


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
    model = load_robot(options, options.srdf)
    start = model.neutral() if options.t1 is None else random_start(model, options.seed)
    model, contact = on_ground(options, model, start), contact_of(options)
    if options.t1 is None:
        return jdyn.view(jdyn.System(model, contact=contact), **shown)
    trajectory = let_go(options, model, start, jnp.zeros(model.nv, model.dtype), throw=False)
    return jdyn.view(trajectory, **shown)
