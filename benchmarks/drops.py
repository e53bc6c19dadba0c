"""4096 drops of a quadruped over friction and mass, as a sweep: how far it slides, and whether it stands in the end.

    python -m benchmarks.drops [--lanes 4096] [--contact compliant] [--store FOLDER] [--picture FILE]

Mini Cheetah falls from a metre per second sideways onto the ground, under PD. Friction goes from ice to rubber, the
trunk's mass from a half to four times its own. Prints lanes a second and a processor's second, steps, what failed, and
the share that stands by friction.
"""

import argparse
import collections
import dataclasses
import time

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jdyn

END = 1.0
# What stands is as level as this [rad], and slower than that [m/s].
LEVEL, SLOW = 0.2, 0.02
CONTACT = {"convex": jdyn.ConvexContact, "compliant": jdyn.CompliantContact}
# Rows of the printed table.
ROWS = 8


def drop(p: dict, contact: type[jdyn.contact.Contact]) -> dict:
    """One lane."""
    model = jdyn.with_ground(jdyn.load("quadruped"))
    model = dataclasses.replace(model, friction=jnp.zeros(model.nv))
    q0 = model.neutral().at[2].set(0.3).at[7:].set(jnp.tile(jnp.array([0, -0.8, 1.6]), 4))
    v0 = jnp.zeros(model.nv).at[4].set(1.0)
    kp, kd = (jnp.full(model.nv, gain).at[:6].set(0) for gain in (60.0, 2.0))
    motion = jdyn.simulate(
        jdyn.vary(model, {"body:trunk.mass": p["mass"]}),
        q0,
        v0,
        END,
        controller=jdyn.PD(model, q0, kp=kp, kd=kd),
        contact=contact(material=jdyn.contact.Material(friction=p["friction"])),
        stepsize_controller=diffrax.PIDController(rtol=1e-2, atol=1e-4, safety=0.8, factormax=2.0),
        saveat=diffrax.SaveAt(t1=True),
        throw=False,
    )
    q, v = motion.q[-1], motion.v[-1]
    upright = 1 - 2 * (q[4] ** 2 + q[5] ** 2)
    return {
        "slid": q[1],
        "stands": (upright > jnp.cos(LEVEL)) & (jnp.linalg.norm(v[3:6]) < SLOW),
        "steps": motion.stats["accepted_steps"] + motion.stats["rejected_steps"],
        "result": motion.result,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=4096, help="rounded down to a square number")
    parser.add_argument(
        "--contact", choices=CONTACT, default="convex", help="compliant contact takes ten times as long"
    )
    parser.add_argument("--store", help="a folder from which the same command goes on after a crash")
    parser.add_argument("--picture", help="a heat map of how far it slides")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    contact, side = CONTACT[options.contact], int(np.sqrt(options.lanes))
    over = jdyn.designs.Grid(friction=np.linspace(0.05, 1.0, side), mass=3.3 * np.geomspace(0.5, 4.0, side))
    attrs = {"slid": {"units": "m"}, "mass": {"units": "kg"}}
    began = time.process_time()
    dataset = jdyn.sweep(lambda p: drop(p, contact), over, store=options.store, attrs=attrs)
    spent = time.process_time() - began
    results = collections.Counter(jdyn.Result(code).name for code in np.ravel(dataset["result"]))
    compiled, rate = dataset.attrs["compile_seconds"], dataset.attrs["lanes_per_second"]
    print(f"{side**2} drops of {END} s: compiled in {compiled:.1f} s, {rate:.1f} drops a second", end=", ")
    print(f"{spent:.0f} s of processors in all; {dict(results)}")
    steps = np.ravel(dataset["steps"])
    print(f"steps: median {np.median(steps):.0f}, most {steps.max():.0f}")
    print("friction     stands   slides [m]")
    slid, stands = (np.asarray(dataset[name]).reshape(side, side) for name in ("slid", "stands"))
    for rows in np.array_split(np.arange(side), min(ROWS, side)):
        friction, ways = over.values["friction"][rows], slid[rows]
        share = f"{np.mean(stands[rows]):6.0%}"
        print(f"{friction[0]:.2f} - {friction[-1]:.2f}  {share}   {np.nanmin(ways):.3f} - {np.nanmax(ways):.3f}")
    if options.picture:
        jdyn.plots.heat_map(dataset, "slid").figure.savefig(options.picture)


if __name__ == "__main__":
    main()
