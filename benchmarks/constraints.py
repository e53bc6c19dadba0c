"""What constraints cost: `python -m benchmarks.constraints [--quick] [--json FILE]`, float64, one core.

Accelerations of chains of revolute joints whose links are held to the world at a point, against the number of bodies
and of loops, beside Pinocchio and MuJoCo; what a start from the step before saves; lanes of a four-bar that are
assembled and simulated in one program; and what a step of a simulation costs with constraints and without. Medians of
processor time; compiling apart.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks import clock, robots
from benchmarks.cases import Unavailable
from benchmarks.compiled_peers import require_memory
from benchmarks.jax_peers import GRAVITY
from benchmarks.method_costs import slope
from benchmarks.peer_models import mujoco_spec
from jdyn.constraints import constraint_rows, projected
from jdyn.impulses import WarmStart

BATCH = 64
# Where links are held, in their frames [m].
POINT = (0.1, 0.2, 0.3)
# Pinocchio's accelerations and ours may differ by this, relative to the largest.
SAME = 1e-8
# Steps that are timed, and their length [s].
STEPS, STEP = 100, 1e-4
# How long before a state the step began that it starts from [s].
LAST = 0.01
# Rockers of the four-bar [m], some of which do not reach the coupler.
SHORTEST, LONGEST = 0.5, 6.0


@dataclasses.dataclass(frozen=True)
class Held:
    """A chain, some of whose links are held to the world at a point, in states that allow it.

    Attributes:
        urdf: Its file.
        model: Of it.
        bodies: Which are held.
        q, v, tau: A row a state.
        points: Where the world holds them [m].
    """

    urdf: pathlib.Path
    model: jdyn.Model
    bodies: tuple[int, ...]
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    points: np.ndarray

    @classmethod
    def chain(cls, n: int, loops: int, folder: pathlib.Path) -> "Held":
        """Links at even distances, the last one among them."""
        robot = robots.make(f"chain{n}", folder)
        model = robot.model()
        if model.joint_names != robot.joints:
            raise AssertionError("libraries would have joints in another order")
        bodies = tuple(n * (i + 1) // loops - 1 for i in range(loops))
        rng = np.random.default_rng(0)
        q, v, tau = rng.uniform(-1, 1, (BATCH, n)), rng.normal(size=(BATCH, n)), rng.normal(size=(BATCH, n))

        def allowed(q, v):
            X = jax.tree.map(lambda x: x[np.array(bodies)], jdyn.forward_kinematics(model, q))
            points = jax.vmap(lambda X: X.point_to_parent(jnp.array(POINT)))(X)
            J = constraint_rows(model, held(model, bodies, points), 0.0, q, v).J
            return v - J.T @ jnp.linalg.solve(J @ J.T, J @ v), points

        v, points = jax.jit(jax.vmap(allowed))(q, v)
        return cls(robot.urdf, model, bodies, q, np.asarray(v), tau, np.asarray(points))

    def accelerations(self, q, v, tau, points):
        return jdyn.constrained_dynamics(self.model, held(self.model, self.bodies, points), q, v, tau).a

    def free(self, q, v, tau, points):
        return jdyn.forward_dynamics(self.model, q, v, tau)

    @property
    def states(self):
        return self.q, self.v, self.tau, self.points


def held(model, bodies, points):
    return [
        jdyn.constraints.Connect("world", model.body_names[body], point_a=point, point_b=POINT)
        for body, point in zip(bodies, points, strict=True)
    ]


@dataclasses.dataclass(frozen=True)
class Timer:
    """Medians of so many samples, in so many seconds at most."""

    repeats: int
    budget: float

    def __call__(self, call: Callable[[], Any]) -> float:
        return statistics.median(clock.measure(call, self.repeats, self.budget)["cpu_s"])

    def program(self, function, *arguments) -> tuple[float, float, Any]:
        """Seconds to run and to compile, and what it returned."""
        started = time.process_time()
        program = jax.jit(function).lower(*arguments).compile()
        compiling = time.process_time() - started
        arguments = jax.device_put(arguments)
        out = jax.block_until_ready(program(*arguments))
        return self(lambda: jax.block_until_ready(program(*arguments))), compiling, out


def own(case: Held, timer: Timer) -> tuple[dict[str, float], np.ndarray]:
    """Seconds a configuration and to compile, and accelerations of the batch."""
    one = [x[0] for x in case.states]
    found, a = {}, None
    for name, function in {"free": case.free, "held": case.accelerations}.items():
        found[f"{name}, 1"], found[f"compile {name}, 1"], _ = timer.program(function, *one)
        seconds, found[f"compile {name}, {BATCH}"], a = timer.program(jax.vmap(function), *case.states)
        found[f"{name}, {BATCH}"] = seconds / BATCH
    return found, np.asarray(a)


def pinocchio(case: Held, timer: Timer) -> tuple[dict[str, float], np.ndarray]:
    """As `own`, one state after another, with the Python call."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(case.urdf))
    require_memory(model)
    data = model.createData()
    world, place = pin.SE3.Identity(), pin.SE3(np.eye(3), np.array(POINT))

    def loops(points):
        models = pin.StdVec_RigidConstraintModel()
        for body, point in zip(case.bodies, points, strict=True):
            world.translation = point
            kind, frame = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL
            models.append(pin.RigidConstraintModel(kind, model, body + 1, place, 0, world, frame))
        datas = pin.StdVec_RigidConstraintData()
        for each in models:
            datas.append(each.createData())
        return models, datas

    each = [(q, v, tau, *loops(points)) for q, v, tau, points in zip(*case.states, strict=True)]
    pin.initConstraintDynamics(model, data, *each[0][3:])
    settings = pin.ProximalSettings(1e-14, 0.0, 1)

    def accelerations():
        return [pin.constraintDynamics(model, data, *state, settings) for state in each]

    def free():
        for q, v, tau, *_ in each:
            pin.aba(model, data, q, v, tau)

    # Copies, since the next call may overwrite what it returns.
    a = np.array([pin.constraintDynamics(model, data, *state, settings).copy() for state in each])
    return {"free": timer(free) / BATCH, "held": timer(accelerations) / BATCH}, a


def mujoco(case: Held, timer: Timer) -> tuple[dict[str, float], np.ndarray]:
    """As `own`, one state after another, with the Python call. Its constraints are soft."""
    import mujoco

    try:
        spec = mujoco_spec(str(case.urdf), GRAVITY)
        for i, body in enumerate(case.bodies):
            spec.body(case.model.body_names[body]).add_site(name=f"link{i}", pos=POINT)
            # Not at the origin, since MuJoCo would take that for fixed.
            spec.worldbody.add_site(name=f"world{i}", pos=POINT)
            equality = spec.add_equality(name1=f"link{i}", name2=f"world{i}")
            equality.type, equality.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_SITE
        model = spec.compile()
    except ValueError as error:
        raise Unavailable(str(error).splitlines()[0]) from error
    data = mujoco.MjData(model)
    places = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, f"world{i}") for i in range(len(case.bodies))]

    def accelerations():
        for q, v, tau, points in zip(*case.states, strict=True):
            model.site_pos[places] = points
            data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
            mujoco.mj_forward(model, data)
            yield data.qacc.copy()

    off = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    found = {}
    for name in ("free", "held"):
        model.opt.disableflags = model.opt.disableflags | off if name == "free" else model.opt.disableflags & ~off
        found[name] = timer(lambda: list(accelerations())) / BATCH
    return found, np.array(list(accelerations()))


PEERS = {"pinocchio": pinocchio, "mujoco": mujoco}


def chain(n: int, loops: int, timer: Timer, folder: pathlib.Path) -> dict[str, Any]:
    """One row: seconds by library."""
    case = Held.chain(n, loops, folder)
    times, a = own(case, timer)
    row: dict[str, Any] = {"bodies": n, "loops": loops, "jdyn": times}
    for name, peer in PEERS.items():
        try:
            row[name], found = peer(case, timer)
            row[name]["difference"] = float(np.max(np.abs(found - a)) / np.max(np.abs(a)))
        except (Unavailable, ImportError) as error:
            row[name] = {"error": str(error)}
    if row["pinocchio"].get("difference", 0) > SAME:
        raise AssertionError(f"{n} bodies, {loops} loops: Pinocchio differs by {row['pinocchio']['difference']:.1e}")
    return row


COLUMNS = [
    *[("jdyn", name) for name in ("free, 1", "held, 1", f"free, {BATCH}", f"held, {BATCH}")],
    *[(name, kind) for name in PEERS for kind in ("free", "held")],
]


def line(row: dict[str, Any], key: str) -> str:
    cells = "".join(_micro(row[library].get(name)) for library, name in COLUMNS)
    differences = [f"{row[name]['difference']:9.0e}" if "difference" in row[name] else f"{'-':>9}" for name in PEERS]
    errors = [f"{name}: {row[name]['error']}" for name in PEERS if "error" in row[name]]
    return f"{row[key]:6}{cells}{''.join(differences)}   {'; '.join(errors)}".rstrip()


def _micro(seconds):
    return f"{'-':>10}" if seconds is None else f"{1e6 * seconds:10.4g}"


def chains(title: str, key: str, cases: list[tuple[int, int]], timer: Timer) -> list[dict[str, Any]]:
    print(f"\n{title}; µs a configuration; jdyn one by one and in batches of {BATCH}, differences to jdyn's batch")
    print(f"{'':6}" + "".join(f"{library:>10}" for library, _ in COLUMNS) + "".join(f"{x[:7]:>9}" for x in PEERS))
    print(f"{key:6}" + "".join(f"{name:>10}" for _, name in COLUMNS) + f"{'differs':>9}" * len(PEERS))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n, loops in cases:
            rows.append(chain(n, loops, timer, pathlib.Path(folder)))
            print(line(rows[-1], key))
    slopes = []
    for library, name in COLUMNS:
        points = [(row[key], row[library][name]) for row in rows if name in row[library]]
        slopes.append(f"{slope(*zip(*points, strict=True)):10.2f}" if len(points) > 2 else f"{'':10}")
    print(f"slope {''.join(slopes)}   over the three largest")
    compiling = {name: [row["jdyn"][f"compile {name}"] for row in rows] for _, name in COLUMNS[:4]}
    print("compiling:", ", ".join(f"{name}: {min(x):.1f} to {max(x):.1f} s" for name, x in compiling.items()))
    return rows


def four_bars(count: int):
    """Equal rods of 1 m and 1 kg, upright and across in turn, that hang together in a row, and move alike."""
    builder = jdyn.Builder("four-bars", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.diag([1e-3, 1 / 12, 1 / 12])}
    for i in range(count + 1):
        builder.add_link(f"upright{i}", jdyn.Revolute((0, 0, 1)), placement=(i, 0, 0), **rod)
    for i in range(count):
        builder.add_link(f"coupler{i}", jdyn.Revolute((0, 0, 1)), parent=f"upright{i}", placement=(1, 0, 0), **rod)
    end = (1.0, 0.0, 0.0)
    loops = [jdyn.constraints.Connect(f"coupler{i}", f"upright{i + 1}", point_a=end, point_b=end) for i in range(count)]
    model = builder.build()
    return model, loops, np.array([1.0 if name.startswith("upright") else -1.0 for name in model.joint_names])


def from_the_step_before(name, model, loops, q, v, timer: Timer) -> dict[str, Any]:
    """Iterations and seconds a configuration with what is known from a step of `LAST` before: nothing, forces, the
    Delassus matrix, or both; and by elimination, for one and in a batch."""
    before, lanes = jax.vmap(lambda q, v: model.integrate(q, -LAST * v))(q, v), len(q)

    def eliminated(q, v):
        return jdyn.constrained_dynamics(model, loops, q, v, jnp.zeros_like(v))

    def started(start, q, v):
        return jdyn.constrained_dynamics(model, loops, q, v, jnp.zeros_like(v), warm_start=start)

    forces = jax.jit(jax.vmap(eliminated))(before, v).multipliers
    matrices = jax.jit(jax.vmap(lambda q: jdyn.constraints.warm_start(model, loops, q).inverse))(before)
    nothing = jnp.broadcast_to(jnp.eye(matrices.shape[-1]), matrices.shape)
    starts = {
        "nothing": (nothing, 0 * forces), "forces": (nothing, forces), "matrix": (matrices, 0 * forces),
        "both": (matrices, forces),
    }  # fmt: skip
    found: dict[str, Any] = {"scene": name, "rows": matrices.shape[-1]}
    for many in (1, lanes):
        whole = jax.vmap if many > 1 else lambda f: f
        state = (q, v) if many > 1 else (q[0], v[0])
        found[f"elimination, {many}"], _, right = timer.program(whole(eliminated), *state)
        found[f"elimination, {many}"] /= many
        seconds, *_ = timer.program(whole(lambda q: jdyn.constraints.warm_start(model, loops, q).inverse), state[0])
        found[f"factors, {many}"] = seconds / many
        for kind, start in starts.items():
            start = WarmStart(*(x if many > 1 else x[0] for x in start))
            seconds, _, motion = timer.program(whole(started), start, *state)
            if not bool(jnp.max(jnp.abs(motion.a - right.a)) <= SAME * jnp.max(jnp.abs(right.a))):
                raise AssertionError(f"{name}: from {kind}, accelerations are not those of elimination")
            found[f"{kind}, {many}"] = seconds / many
            found[f"iterations, {kind}"] = float(jnp.mean(motion.iterations))
    return found


def starts(bars, loops, timer: Timer) -> list[dict[str, Any]]:
    scenes = []
    with tempfile.TemporaryDirectory() as folder:
        for n, many in loops:
            case = Held.chain(n, many, pathlib.Path(folder))
            # As slow as a long chain can move for the points to stay nearly where they are.
            place = held(case.model, case.bodies, case.points[0])
            q, v = (jnp.broadcast_to(x[0], x.shape) for x in (case.q, case.v))
            scenes.append((f"chain{n}/{many}", case.model, place, q, v))
    for count in bars:
        model, place, signs = four_bars(count)
        q = jnp.outer(jnp.linspace(0.9, 1.3, BATCH), signs)
        scenes.append((f"{count} four-bars", model, place, q, jnp.broadcast_to(jnp.asarray(-signs), q.shape)))
    kinds = ("nothing", "forces", "matrix", "both")
    print(f"\nwhat the step of {LAST} s before saves: iterations from nothing, from its forces, its matrix, and both;")
    print(f"µs a configuration, one and {BATCH} a call: elimination, factors to start from, and iterations as before")
    timed = [f"{kind}, {many}" for many in (1, BATCH) for kind in ("elimination", "factors", *kinds)]
    print(f"{'':14}{'rows':>5}" + "".join(f"{kind:>8}" for kind in kinds) + "".join(f"{x:>16}" for x in timed))
    rows = []
    for scene in scenes:
        row = from_the_step_before(*scene, timer)
        rows.append(row)
        counts = "".join(f"{row[f'iterations, {kind}']:8.1f}" for kind in kinds)
        print(f"{row['scene']:14}{row['rows']:5}{counts}" + "".join(f"{1e6 * row[x]:16.4g}" for x in timed))
    return rows


def four_bar():
    """Rods with their lengths as masses, in the plane of x and z, and its guess; without the rocker's end."""
    builder = jdyn.Builder("four-bar")
    for name, parent, place, length in [
        ("crank", "world", (0, 0, 0), 1.0),
        ("coupler", "crank", (1, 0, 0), 2.0),
        ("rocker", "world", (2, 0, 0), 1.5),
    ]:
        builder.add_link(
            name, jdyn.Revolute((0, -1, 0)), parent=parent, placement=place, mass=length, com=(length / 2, 0, 0),
            inertia=np.diag([1e-3, length**3 / 12, length**3 / 12]),
        )  # fmt: skip
    return builder.build(), jnp.array([1.0, -0.2, 1.6])


def rocker(length):
    end = length * jnp.array([1.0, 0.0, 0.0])
    return [jdyn.constraints.Connect("coupler", "rocker", point_a=(2.0, 0.0, 0.0), point_b=end)]


def lanes(count: int, timer: Timer) -> dict[str, Any]:
    """Of a four-bar by the rocker's length, some of which cannot be assembled."""
    model, guess = four_bar()

    def start(length):
        loop = rocker(length)
        return loop, jdyn.assemble(model, loop, guess, throw=False)

    def assembled(lengths):
        return jax.vmap(start)(lengths)[1].result

    def moved(lengths):
        loops, starts = jax.vmap(start)(lengths)
        motion = jdyn.simulate_batch(
            model, starts.q, starts.v, 1.0, constraints=loops, in_axes={"q0": 0, "v0": 0, "constraints": 0},
            saveat=diffrax.SaveAt(t1=True),
        )  # fmt: skip
        return starts.result, motion.result, motion.q[:, -1], motion.stats["accepted_steps"]

    lengths = jnp.linspace(SHORTEST, LONGEST, count)
    alone, compiling_alone, _ = timer.program(assembled, lengths)
    seconds, compiling, (assembly, result, q, steps) = timer.program(moved, lengths)
    codes = {
        "assembly": _counted(assembly, jdyn.constraints.Assembly),
        "simulation": _counted(result, jdyn.Result),
    }
    if bool(jnp.any(jnp.isfinite(q).all(1) != (result == jdyn.Result.success))):
        raise AssertionError("lanes that end well are not those that say so")
    steps = float(jnp.mean(steps[result == jdyn.Result.success]))
    print(f"\n{count} lanes of a four-bar, rockers of {SHORTEST} to {LONGEST} m, assembled and simulated for 1 s")
    print(f"assembled: {count / alone:.0f} lanes a second, compiling {compiling_alone:.1f} s")
    print(f"assembled and simulated: {count / seconds:.0f} lanes a second, compiling {compiling:.1f} s")
    print(f"steps of a lane that ends: {steps:.1f}")
    for name, counts in codes.items():
        print(f"{name}:", ", ".join(f"{code} {many}" for code, many in counts.items()))
    return {
        "lanes": count, "assembly_s": alone, "seconds": seconds, "compile_s": compiling, "codes": codes, "steps": steps,
    }  # fmt: skip


def _counted(results, names):
    codes, counts = np.unique(np.asarray(results), return_counts=True)
    return {names(int(code)).name: int(count) for code, count in zip(codes, counts, strict=True)}


def steps_of(name, model, loops, q, v, timer: Timer) -> dict[str, Any]:
    """Seconds a step and lane of a simulation with constraints and without, and of what it is made of."""
    tau = jnp.zeros_like(v)

    def simulated(constraints):
        def lane(q, v):
            motion = jdyn.simulate(
                model, q, v, STEPS * STEP, constraints=constraints, solver=diffrax.Tsit5(), dt0=STEP, throw=False,
                stepsize_controller=diffrax.ConstantStepSize(), saveat=diffrax.SaveAt(t1=True),
            )  # fmt: skip
            return motion.q, motion.result, motion.stats["dynamics_calls"]

        return jax.vmap(lane)

    found: dict[str, Any] = {"scene": name}
    for key, constraints in {"free": [], "held": loops}.items():
        seconds, found[f"compile {key}"], (_, result, calls) = timer.program(simulated(constraints), q, v)
        found[f"step, {key}"] = seconds / STEPS / len(q)
        if bool(jnp.any(result != jdyn.Result.success)):
            raise AssertionError(f"{name}: not all lanes end")
        found[f"evaluations, {key}"] = float(jnp.mean(calls)) / STEPS
    parts = {
        "free": lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau),
        "held": lambda q, v, tau: jdyn.constrained_dynamics(model, loops, q, v, tau).a,
        "projection": lambda q, v, tau: projected(jdyn.ABA(), model, loops, jnp.zeros(()), q, v)[:2],
    }
    for key, part in parts.items():
        found[key] = timer.program(jax.vmap(part), q, v, tau)[0] / len(q)
    return found


def steps(sizes, timer: Timer) -> list[dict[str, Any]]:
    model, guess = four_bar()
    loop = rocker(1.5)
    start = jdyn.assemble(model, loop, guess, jnp.array([2.0, 0.0, 0.0]))
    scenes = [("four-bar", model, loop, start.q, start.v)]
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            case = Held.chain(n, 1, pathlib.Path(folder))
            loop = held(case.model, case.bodies, case.points[0])
            scenes.append((f"chain{n}", case.model, loop, jnp.asarray(case.q[0]), jnp.asarray(case.v[0] / n)))
    print(f"\na step of Tsit5, {BATCH} lanes; µs a lane")
    columns = ("step, free", "step, held")
    parts = ("free", "held", "projection")
    print(
        f"{'':10}{''.join(f'{x:>12}' for x in columns)}{'ratio':>8}{''.join(f'{x:>12}' for x in parts)}   evaluations"
    )
    rows = []
    for name, *scene in scenes:
        model, loop, q, v = scene
        rows.append(steps_of(name, model, loop, *(jnp.broadcast_to(x, (BATCH, *x.shape)) for x in (q, v)), timer))
        row = rows[-1]
        cells = [f"{1e6 * row[x]:12.4g}" for x in columns]
        cells += [f"{row['step, held'] / row['step, free']:8.2f}", *(f"{1e6 * row[x]:12.4g}" for x in parts)]
        calls = [f"{row[f'evaluations, {x}']:.1f}" for x in ("free", "held")]
        print(f"{name:10}{''.join(cells)}   {' and '.join(calls)}")
    return rows


def main():
    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    words.add_argument("--repeats", type=int, default=7, help="samples of each time")
    words.add_argument("--seconds", type=float, default=30.0, help="fewer samples where they would take longer")
    words.add_argument("--core", type=int, help="the processor to run on; one of those allowed if left out")
    words.add_argument("--json", type=pathlib.Path, help="file for the results")
    words.add_argument("--quick", action="store_true", help="few bodies, loops, lanes and samples")
    words.add_argument("--parts", default="bodies,loops,starts,lanes,steps", help="some of these")
    options = words.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
    with contextlib.suppress(AttributeError):
        # Before JAX starts its threads. Not every system has it.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0)) if options.core is None else options.core})
    jax.config.update("jax_enable_x64", True)
    # Compiling is timed.
    jax.config.update("jax_enable_compilation_cache", False)
    quick = options.quick
    timer = Timer(1, 0.0) if quick else Timer(options.repeats, options.seconds)
    sizes = (4, 8, 12) if quick else tuple(2**k for k in range(3, 11))
    loops, longest = ((1, 2), 8) if quick else ((1, 2, 4, 8, 16), 64)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, float64, medians of processor time")
    parts = {
        "bodies": lambda: chains("a chain whose last link is held", "bodies", [(n, 1) for n in sizes], timer),
        "loops": lambda: chains(f"a chain of {longest}", "loops", [(longest, many) for many in loops], timer),
        "starts": lambda: starts((3,) if quick else (10, 40), [(8, 2)] if quick else [(64, 4), (64, 16)], timer),
        "lanes": lambda: lanes(16 if quick else 4096, timer),
        "steps": lambda: steps((4,) if quick else (8, 32), timer),
    }
    found = {}
    for part in options.parts.split(","):
        found[part] = parts[part]()
        if options.json:
            # After every part: a long run that is cut short leaves what it has.
            options.json.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
