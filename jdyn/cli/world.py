"""The command `jdyn world`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.cli.common import compiling, draw_motion
from jdyn.terminal.tables import print_table
from jdyn.world import SCENES

# Rows of a motion that is drawn, and impacts that are listed.
ROWS, MOST = 501, 20


def world(options):
    """Simulate a scene, and print its impacts and the balance of its energy."""
    scene = SCENES[options.scene]()
    t1 = scene.t1 if options.t1 is None else options.t1
    coordinator = None if options.merged else scene.coordinator
    with compiling() as times:
        motion = scene.world.simulate(
            t1,
            saveat=jnp.linspace(0, t1, ROWS),
            max_events=1000 if coordinator is None else 64,
            coordinator=coordinator,
        )
        jax.block_until_ready(motion.q)
    hits = motion.impacts.records
    print(
        f"{options.scene}: {len(motion.names)} objects, compiled in {times.compiling:.2f} s, {t1:g} s of motion in "
        f"{times.running:.2f} s; {len(hits)} impacts"
    )
    size = [float(np.linalg.norm(hit.impulse)) for hit in hits]
    rows = [[f"{hit.t:.6f}", *hit.pair, f"{x:.4g}", f"{hit.energy:.4g}"] for hit, x in zip(hits, size, strict=True)]
    print_table(["t [s]", "first", "second", "impulse [N s]", "energy [J]"], rows[:MOST])
    if len(rows) > MOST:
        print(f"... and {len(rows) - MOST} more")
    energy, lost = np.asarray(motion.energy), np.asarray(motion.energy_of_impacts)
    print(f"energy: {energy[0]:.8g} J at the start, {energy[-1]:.8g} J at the end; {lost[-1]:.8g} J by impacts")
    draw_motion(options, motion.trajectory)
    if options.save:
        motion.save(options.save)
        print(f"motion:   {options.save}")
