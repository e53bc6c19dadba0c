"""Error against processor time of rigid bodies that slide, stick, leave each other and collide, on one core, in
float64: jdyn.RigidContact beside MuJoCo and Drake.

    python -m benchmarks.rigid_order [--motions slides,bounces] [--drake-python PATH]

The truth is the motion of rigid bodies: a closed form, or where there is none jdyn's own at a tolerance of 1e-11. The
error is the largest difference at the end of all positions [m] and entries of rotation matrices. Shapes of MuJoCo and
of Drake are soft. They get several stiffnesses, of which at each error the fastest counts: MuJoCo its own time
constant, and the least that its steps allow; Drake three. Where bodies bounce, nothing damps them. Drake is what
--drake-python has: "cenic", its convex integrator under error control, and "SAP", constant steps.
"""

import argparse
import itertools
import json
import subprocess
import time
from collections.abc import Callable, Iterator

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jdyn
from benchmarks import rigid_motions
from benchmarks.clock import measure
from benchmarks.mujoco_twin import mjcf
from benchmarks.processes import ONE_THREAD, ROOT, inherited
from benchmarks.rigid_motions import Motion
from benchmarks.verdict import Point, table, verdict

OWN = "jdyn"
TOLERANCES = tuple(10.0**-k for k in range(2, 12))
REFERENCE = 1e-11
STEPS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
ACCURACIES = tuple(10.0**-k for k in range(1, 10))
STIFFNESSES = (1e5, 1e7, 1e9)
DISSIPATION = 50.0
# Steps that a bounce takes in MuJoCo: by the stiffness, where it is not a constant one, over the inertia [1/s²].
STEPS_A_BOUNCE = (5, 20)
SOFT_BOUNCE = 1e4


class Jdyn:
    """jdyn's program of a motion, for all tolerances."""

    def __init__(self, motion: Motion):
        model, (q, v) = rigid_motions.model(motion), rigid_motions.start(motion)

        def end(tolerance):
            contact = jdyn.RigidContact(friction=motion.friction, restitution=motion.restitution)
            controller = diffrax.PIDController(tolerance, 1e-2 * tolerance)
            found = jdyn.simulate(
                model, jnp.asarray(q), jnp.asarray(v), motion.t1, contact=contact, stepsize_controller=controller,
                saveat=diffrax.SaveAt(t1=True), max_steps=100_000, max_events=2000, throw=False,
            )  # fmt: skip
            return found.q[-1], found.stats["accepted_steps"] + found.stats["rejected_steps"], found.result

        began = time.process_time()
        self.program = jax.jit(end).lower(1.0).compile()
        self.compile_s = time.process_time() - began

    def __call__(self, tolerance: float) -> tuple[np.ndarray, float]:
        """Poses at the end, and how many steps were tried; NaN if it does not get there."""
        q, steps, result = self.program(tolerance)
        poses = rigid_motions.poses(q)
        return (poses if int(result) == jdyn.Result.success else np.full_like(poses, np.nan)), float(steps)


def mujoco_program(motion: Motion, step: float, stiff: int, method: str = "Euler") -> Callable[[], np.ndarray]:
    """MuJoCo's simulation with such steps, to the poses at the end; with so many steps a bounce, or where nothing
    bounces the least time constant, if `stiff` is not zero."""
    model = mujoco.MjModel.from_xml_string(mjcf(rigid_motions.model(motion)))
    count = int(np.ceil(motion.t1 / step - 1e-9))
    model.opt.timestep = motion.t1 / count
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{method.upper()}")
    model.opt.cone, model.opt.impratio, model.opt.tolerance = mujoco.mjtCone.mjCONE_ELLIPTIC, 10, 1e-10
    model.geom_friction[:, 0] = motion.friction
    model.geom_condim[:] = 3 if motion.friction > 0 else 1
    if motion.restitution == 1:
        stiffness = (np.pi / stiff / model.opt.timestep) ** 2 if stiff else SOFT_BOUNCE
        model.geom_solref[:] = -stiffness, 0
    elif stiff:
        model.geom_solref[:] = 2 * model.opt.timestep, 1
    if stiff or motion.restitution == 1:
        model.geom_solimp[:, :2] = 0.9999
    data, start = mujoco.MjData(model), mujoco.MjData(model)
    # At the start its free joints' velocities are those of the world's axes, as jdyn's are with axes along them.
    q, v = rigid_motions.start(motion)
    start.qpos[:], start.qvel[:] = q, v.reshape(-1, 6)[:, [3, 4, 5, 0, 1, 2]].ravel()

    def end():
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = start.qpos, start.qvel, 0
        mujoco.mj_step(model, data, nstep=count)
        return rigid_motions.poses(data.qpos)

    return end


class Drake:
    """Drake's process for one motion."""

    def __init__(self, python: str, motion: Motion):
        # -E: PYTHONPATH belongs to this interpreter, not to another one.
        self.process = subprocess.Popen(
            [python, "-E", str(ROOT / "benchmarks" / "drake_peer.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=inherited() | dict.fromkeys(ONE_THREAD, "1"),
        )  # fmt: skip
        self.version = self.ask(motion.told())["version"]

    def ask(self, request: dict) -> dict:
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("Drake's process has no pipes")
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError("Drake's process has ended")
        return json.loads(line)

    def close(self):
        self.process.kill()
        self.process.wait()


def points(motion: Motion, truth: np.ndarray, ours: Jdyn, drake: Drake | None, options) -> Iterator[Point]:
    """All runs of a motion; curves end where a run takes longer than allowed."""

    def point(curve, setting, poses, seconds, **more):
        error = float(np.max(np.abs(poses - truth)))
        return Point(motion.name, curve, setting, error if np.isfinite(error) else np.inf, seconds, 1, **more)

    def timed(call):
        return float(np.median(measure(call, options.repeats, options.seconds)["cpu_s"]))

    for tolerance in TOLERANCES:
        poses, steps = ours(tolerance)
        seconds = timed(lambda: jax.block_until_ready(ours.program(tolerance)))  # noqa: B023
        yield point(OWN, tolerance, poses, seconds, steps=steps)
        if seconds > options.seconds:
            break
    elastic = motion.restitution == 1
    stiff_ones = STEPS_A_BOUNCE if elastic else (1,)
    for stiff, method in [(0, "Euler"), *itertools.product(stiff_ones, ("Euler", "RK4"))]:
        kind = "soft" if not stiff else f"{stiff} steps a bounce" if elastic else "stiff"
        for step in STEPS:
            call = mujoco_program(motion, step, stiff, method)
            found = point(f"MuJoCo {method}, {kind}", step, call(), timed(call))
            yield found
            if found.seconds > options.seconds:
                break
    # Nothing bounces by SAP.
    methods = {} if drake is None else {"cenic": ACCURACIES} | ({} if elastic else {"sap": STEPS})
    damping = 0.0 if elastic else DISSIPATION
    for method, settings in methods.items():
        for stiffness in STIFFNESSES:
            for setting in settings:
                request = {"method": method, "setting": setting, "stiffness": stiffness, "dissipation": damping}
                runs = [drake.ask(request)]
                while runs[0].get("seconds", np.inf) < options.seconds / 5 and len(runs) < options.repeats:
                    runs.append(drake.ask(request))
                if "error" in runs[0]:
                    print(f"  Drake {method}, {stiffness:g} N/m, at {setting:g}: {runs[0]['error'][:80]}")
                    continue
                seconds = float(np.median([run["seconds"] for run in runs]))
                yield point(f"Drake {method}, {stiffness:.0e} N/m", setting, np.array(runs[0]["poses"]), seconds)
                if seconds > options.seconds:
                    break


def order(found: list[Point]) -> float:
    """Slope of the error by the tolerance on a log-log plot, where it is above what rounding leaves."""
    rows = [(x.setting, x.error) for x in found if x.curve == OWN and 1e-11 < x.error < np.inf]
    return float(np.polyfit(*np.log(np.array(rows)).T, 1)[0]) if len(rows) > 1 else np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motions", default="", help="beginnings of names, separated by commas; all if left out")
    parser.add_argument("--drake-python", help="the interpreter that has Drake")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="the longest run of a curve")
    parser.add_argument("--curves", action="store_true", help="print all points")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"One core, float64, {time.strftime('%Y-%m-%d')}, MuJoCo {mujoco.__version__}; times in µs")
    for make in rigid_motions.MOTIONS:
        motion = make()
        if motion.name.startswith(tuple(options.motions.split(","))):
            drake = Drake(options.drake_python, motion) if options.drake_python else None
            try:
                show(motion, drake, options)
            finally:
                if drake:
                    drake.close()


def show(motion: Motion, drake: Drake | None, options):
    """Prints one motion's table."""
    ours = Jdyn(motion)
    print(f"\n## {motion.name}: {motion.about}\n")
    print(f"jdyn compiles in {ours.compile_s:.1f} s" + (f"; Drake {drake.version}" if drake else ""))
    truth = ours(REFERENCE)[0] if motion.end is None else motion.end()
    found = list(points(motion, truth, ours, drake, options))
    for x in found if options.curves else [x for x in found if x.curve == OWN]:
        steps = "" if x.steps is None else f"{x.steps:7.0f} steps"
        print(f"  {x.curve:28} {x.setting:8.0e} {x.error:9.1e} {1e6 * x.seconds:10.4g} {steps}")
    print(f"  error by tolerance: slope {order(found):.2f}")
    print(*table(verdict(found, OWN, (OWN,))), sep="\n", flush=True)


if __name__ == "__main__":
    main()
