"""Error and time against tolerance of motions with compliant contact: the default solver, an explicit one and one that
is implicit in everything, with MuJoCo's fixed steps beside them. Run from the repository's root:
`python -m benchmarks.contact`, or `python -m benchmarks.contact --scenes bounce,edge --stiffness 1e5`.

Errors are those of the last configuration, against the smallest tolerance of `jdyn.solvers.Rodas5P`, on the tangent
space. MuJoCo has a contact law of its own: its error is against its own smallest step.
"""

import argparse
import time
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jdyn

TOLERANCES = [10.0**-n for n in range(3, 11)]
SOLVERS = {"Automatic": None, "Rodas5P": jdyn.solvers.Rodas5P(), "Tsit5": diffrax.Tsit5()}
END = diffrax.SaveAt(t1=True)


class Scene(NamedTuple):
    """A motion.

    Attributes:
        xml: The body in MuJoCo, or None.
        qpos: Its start there.
    """

    model: jdyn.Model
    q0: jax.Array
    v0: jax.Array
    t1: float
    controller: jdyn.Controller | None = None
    xml: str | None = None
    qpos: list[float] | None = None


def free(kind, size, inertia):
    builder = jdyn.Builder(kind)
    builder.add_link("body", jdyn.Free(), mass=1.0, inertia=inertia)
    builder.add_shape("body", kind, size, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def _xml(geom, inertia):
    return (
        "<mujoco><worldbody><geom type='plane' size='0 0 1' friction='0.5 0 0'/><body><freejoint/>"
        f"<inertial pos='0 0 0' mass='1' diaginertia='{inertia}'/><geom {geom} friction='0.5 0 0'/>"
        "</body></worldbody></mujoco>"
    )


def bounce() -> Scene:
    """A ball falls 0.3 m and bounces."""
    model = free("sphere", 0.1, (0.004, 0.004, 0.004))
    xml = _xml("type='sphere' size='0.1'", "0.004 0.004 0.004")
    return Scene(model, model.neutral().at[2].set(0.4), jnp.zeros(6), 0.5, None, xml, [0, 0, 0.4, 1, 0, 0, 0])


def edge() -> Scene:
    """A box falls on an edge."""
    inertia, half = (1 / 12 * 0.25, 1 / 12 * 0.2, 1 / 12 * 0.13), 0.2
    model = free("box", (0.2, 0.3, 0.4), inertia)
    start = [0, 0, 0.35, np.cos(half), np.sin(half), 0, 0]
    xml = _xml("type='box' size='0.1 0.15 0.2'", " ".join(map(str, inertia)))
    return Scene(model, jnp.array(start), jnp.zeros(6), 0.4, None, xml, start)


def standing() -> Scene:
    """A quadruped lands on its feet, from 1 cm, and stands."""
    model = jdyn.with_ground(jdyn.load("quadruped"))
    q = model.neutral().at[7:].set(jnp.tile(jnp.array([0.0, -0.8, 1.6]), 4))
    q = q.at[2].set(0.29)
    hold = jnp.zeros(model.nv).at[6:].set(1.0)
    return Scene(model, q, jnp.zeros(model.nv), 0.5, jdyn.PD(model, q, kp=60 * hold, kd=2 * hold))


SCENES = {"bounce": bounce, "edge": edge, "standing": standing}


def _simulate(scene, contact, solver, tolerance):
    # An array, so that one program serves all tolerances.
    tolerance = jnp.asarray(tolerance)
    return jdyn.simulate(
        scene.model, scene.q0, scene.v0, scene.t1, contact=contact, controller=scene.controller, solver=solver,
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance), saveat=END, throw=False,
        max_steps=300_000,
    )  # fmt: skip


def _seconds(run):
    start = time.perf_counter()
    result = jax.block_until_ready(run())
    return result, time.perf_counter() - start


def errors(scene: Scene, stiffness: float, solvers: list[str]):
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(2 * stiffness, 0.3, 0.5))
    exact = _simulate(scene, contact, SOLVERS["Rodas5P"], 1e-12)
    print(f"  reference: {int(exact.stats['accepted_steps'])} steps, {jdyn.Result(int(exact.result)).name}")
    for name in solvers:
        _, first = _seconds(lambda name=name: _simulate(scene, contact, SOLVERS[name], TOLERANCES[0]))
        print(f"  {name}, first call {first:.1f} s")
        for tolerance in TOLERANCES:
            motion, seconds = _seconds(lambda name=name, x=tolerance: _simulate(scene, contact, SOLVERS[name], x))
            missed = float(jnp.linalg.norm(scene.model.difference(exact.q[0], motion.q[0])))
            steps = (int(motion.stats[key]) for key in ("accepted_steps", "rejected_steps", "dynamics_calls"))
            accepted, rejected, calls = steps
            print(f"    tolerance {tolerance:.0e}  error {missed:.1e}  {1e3 * seconds:8.1f} ms  {accepted:6d} steps, "
                  f"{rejected} rejected, {calls} evaluations")  # fmt: skip


def _mujoco_end(m, scene: Scene, step: float):
    data = mujoco.MjData(m)
    data.qpos[:], m.opt.timestep = scene.qpos, step
    start = time.perf_counter()
    for _ in range(round(scene.t1 / step)):
        mujoco.mj_step(m, data)
    return data.qpos.copy(), time.perf_counter() - start


def mujoco_errors(scene: Scene):
    m = mujoco.MjModel.from_xml_string(scene.xml)
    exact, _ = _mujoco_end(m, scene, 1e-6)
    print("  MuJoCo, Euler")
    for step in (4e-3, 2e-3, 1e-3, 5e-4, 1e-4, 2e-5):
        end, seconds = _mujoco_end(m, scene, step)
        print(f"    step {step:.0e} s  error {np.linalg.norm(end - exact):.1e}  {1e3 * seconds:8.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", default="bounce,edge,standing")
    parser.add_argument("--solvers", default="Automatic,Rodas5P,Tsit5")
    parser.add_argument("--stiffness", type=float, default=1e5, help="of a contact [N/m]")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    for each in arguments.scenes.split(","):
        scene = SCENES[each]()
        print(f"{each}: {SCENES[each].__doc__} {arguments.stiffness:.0e} N/m")
        errors(scene, arguments.stiffness, arguments.solvers.split(","))
        if scene.xml is not None:
            mujoco_errors(scene)
