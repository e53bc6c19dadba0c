"""The commands of `jdyn`."""

from __future__ import annotations

import pathlib
import re
import sys
import time
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jdyn
from jdyn.cli.identify import identify
from jdyn.compile.kept_programs import kept_programs, programs_made_anew
from jdyn.model import Free, Model, ModelWarning
from jdyn.simulation import Result, SimulationError, Trajectory
from jdyn.studies.cloutier1995 import EVALUATIONS, Fall, condition_numbers, fall, heavier_tips, thesis_family
from jdyn.studies.cloutier1995.plots import plot_evaluations
from jdyn.studies.prrr.prrr import prrr
from jdyn.studies.prrr.prrrfdt import prrrfdt
from jdyn.terminal.tables import print_table
from jdyn.view import plot_heat_map, plot_motion, plot_tuning

# Largest move of a joint: large for an arm, but not so large that it turns around itself [rad or m].
LARGEST_MOVE = 0.8
# Gains before tuning: stiff and hardly damped, so that everything swings [1/s², 1/s].
POOR_GAINS = {"kp": 100.0, "kd": 0.5}
# Cost of an effort at the limit, relative to an error of 1 rad.
EFFORT_WEIGHT = 0.01
# Rows of a motion that is drawn.
ROWS = 501


def run(options) -> int:
    """Run the command that the words ask for.

    Returns:
        The exit status: 0; 1 after an error that was explained on standard error, or if no lane of a sweep succeeds;
        130 after Ctrl-C.
    """
    commands = {
        "info": info, "simulate": simulate, "sweep": sweep, "tune": tune, "stiffness": stiffness, "prrr": prrr,
        "prrrfdt": prrrfdt, "identify": identify,
    }  # fmt: skip
    programs = kept_programs() if options.cache else programs_made_anew()
    try:
        with warnings.catch_warnings(), jax.enable_x64(options.dtype == "float64"), programs:
            warnings.showwarning = _show_warning
            return commands[options.command](options) or 0
    except (ValueError, OSError, ImportError, SimulationError) as error:
        print(f"jdyn: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interruption:
        print(f"jdyn: {str(interruption) or 'interrupted'}", file=sys.stderr)
        return 130


def _show_warning(message, category, filename, lineno, file=None, line=None):
    print(f"jdyn: warning: {message}", file=sys.stderr)


def _load(options) -> Model:
    return jdyn.load(options.robot, floating_base=options.floating_base, package_dirs=options.package_dir)


# Commands.


def info(options):
    """What a robot is made of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        model = _load(options)
    topology = model.topology
    print(f"{model.name}: {model.nb} bodies, {model.nv} degrees of freedom, {model.nq} coordinates")
    print(f"total mass {float(jnp.sum(model.inertias.mass)):.6g} kg, gravity {_listed(model.gravity)} m/s²\n")
    heads = ("body", "parent", "joint", "kind", "mass [kg]", "lower", "upper", "speed", "effort", "follows")
    leaders = {follower: topology.joint_names[leader] for follower, leader in topology.mimics}
    limits = model.limits
    rows = [
        (
            topology.body_names[body],
            "world" if topology.parents[body] < 0 else topology.body_names[topology.parents[body]],
            topology.joint_names[body],
            topology.kinds[body].__name__.lower(),
            f"{float(model.inertias.mass[body]):.4g}",
            _listed(limits.lower[topology.q_slice(body)]),
            _listed(limits.upper[topology.q_slice(body)]),
            _listed(limits.velocity[topology.v_slice(body)]),
            _listed(limits.effort[topology.v_slice(body)]),
            leaders.get(body, ""),
        )
        for body in range(model.nb)
    ]
    print_table(heads, rows)
    print("limits in rad or m, rad/s or m/s, N m or N; '-' where there is none\n")
    if model.frame_names:
        print(f"frames: {', '.join(model.frame_names)}")
    conditions = _conditions(model)
    print(
        f"condition number of the mass matrix: {conditions[0]:.4g} in the neutral configuration, "
        f"{conditions[1:].min():.4g} to {conditions[1:].max():.4g} in {len(conditions) - 1} random ones"
    )
    messages = [str(warning.message) for warning in caught]
    print("warnings: none" if not messages else "\n".join(["warnings:", *(f"  {message}" for message in messages)]))


def _conditions(model, samples=64):
    keys = jax.random.split(jax.random.key(0), samples)
    configurations = jnp.concatenate([model.neutral()[None], jax.vmap(model.random)(keys)])
    return condition_numbers(model, configurations)


def simulate(options):
    """Let a robot move from a start without motors."""
    model = _load(options)
    q0 = _drawn(model, options.seed) if options.q0 is None else jnp.asarray(options.q0, model.dtype)
    v0 = jnp.zeros(model.nv) if options.v0 is None else jnp.asarray(options.v0, model.dtype)
    started = time.perf_counter()
    saveat = jnp.linspace(0, options.t1, ROWS, dtype=model.dtype)
    trajectory = jax.block_until_ready(jdyn.simulate(model, q0, v0, options.t1, saveat=saveat))
    seconds = time.perf_counter() - started
    stats = {name: int(count) for name, count in trajectory.stats.items() if name != "t_reached"}
    print(
        f"{model.name}: {options.t1:g} s of motion in {seconds:.2f} s, compiling included; "
        f"{stats['accepted_steps']} steps accepted, {stats['rejected_steps']} rejected, "
        f"{stats['dynamics_calls']} evaluations of forward dynamics"
    )
    total = np.asarray(trajectory.energy(model))
    print(f"energy: {total[0]:.8g} J at the start, {total[-1]:.8g} J at the end")
    print(f"q(t1) = {_listed(trajectory.q[-1])}")
    if options.plot:
        _write_picture(plot_motion(model, trajectory), options.plot)


def _drawn(model, seed):
    """A configuration within the limits, the same in both precisions."""
    return model.astype(jnp.float32).random(jax.random.key(seed)).astype(model.dtype)


class Reach(eqx.Module):
    """A move from rest near q = 0 to a target within the limits, under PD control with gravity compensated.

    Gains are per unit of joint inertia, so that one number suits every joint of any robot.

    Attributes:
        model: The mechanism as the controller knows it.
        q0, target: Start and end.
        inertia: Diagonal of the mass matrix at the start [kg m² or kg].
        effort: Largest generalized force of each motor [N m or N]; infinite where the file gives none or zero.
    """

    model: Model
    q0: jax.Array
    target: jax.Array
    inertia: jax.Array
    effort: jax.Array

    def __init__(self, model: Model, seed: int):
        if Free in model.topology.kinds:
            raise ValueError(
                f"{model.name!r} has a free base, which no motor moves to a target; "
                "--fixed-base bolts it down if the file allows it"
            )
        limits, independent_q = model.limits, np.array(model.topology.independent_q)
        self.model = model
        self.q0 = jnp.clip(model.neutral(), limits.lower[independent_q], limits.upper[independent_q])
        move = model.difference(self.q0, _drawn(model, seed))
        self.target = model.integrate(self.q0, jnp.clip(move, -LARGEST_MOVE, LARGEST_MOVE))
        self.inertia = jnp.diag(jdyn.mass_matrix(model, self.q0))
        effort = limits.effort[np.array(model.topology.independent_v)]
        self.effort = jnp.where(effort > 0, effort, jnp.inf)

    def controller(self, kp, kd):
        gains = {"kp": kp * self.inertia, "kd": kd * self.inertia}
        return jdyn.PD(self.model, self.target, **gains) + jdyn.GravityCompensation(self.model)

    def run(self, model: Model, kp, kd, t1: float) -> Trajectory:
        v0 = jnp.zeros(model.nv, model.dtype)
        return jdyn.simulate(model, self.q0, v0, t1, controller=self.controller(kp, kd), throw=False)

    def distances(self, trajectory: Trajectory):
        """Distance to the target over time [rad or m]."""
        errors = jax.vmap(self.model.difference, (0, None))(trajectory.q, self.target)
        return jnp.linalg.norm(errors, axis=1)

    def efforts(self, trajectory: Trajectory, kp, kd):
        """Generalized forces of the motors over time, as fractions of the limit."""
        tau = jax.vmap(self.controller(kp, kd))(trajectory.ts, trajectory.q, trajectory.v)
        return tau / self.effort[None]


def sweep(options):
    """Many simulations of one motion under PD control, into a labelled dataset and a heat map."""
    model = _load(options)
    reach, side = Reach(model, options.seed), round(options.lanes**0.5)
    last = options.body or _deepest(model)
    body = model.topology.body(last)
    (low, high), (soft, stiff) = sorted(options.payload), sorted(options.kp)
    if low < 0:
        raise ValueError(f"--payload: expected masses of at least 0 kg, got {low:g}")
    over = jdyn.Grid(kp=np.geomspace(soft, stiff, side), payload=np.linspace(low, high, side))

    def lane(p):
        loaded = model.with_body(last, mass=model.inertias.mass[body] + p["payload"])
        trajectory = reach.run(loaded, p["kp"], options.kd, options.t1)
        distance = reach.distances(trajectory)
        return {
            "residual": jnp.max(distance[3 * distance.size // 4 :]),
            "final_error": distance[-1],
            "peak_effort": jnp.max(jnp.abs(reach.efforts(trajectory, p["kp"], options.kd))),
            "steps": trajectory.stats["accepted_steps"],
            "dynamics_calls": trajectory.stats["dynamics_calls"],
            "result": trajectory.result,
        }

    print(
        f"{model.name}: {over.size} lanes, payload {low:g} to {high:g} kg on {last!r} x kp {soft:g} to "
        f"{stiff:g} 1/s², {options.t1:g} s each, {jax.default_backend()}, {options.dtype}"
    )
    dataset = jdyn.sweep(lane, over, chunk=options.chunk)
    _describe(dataset, options)
    _print_throughput(dataset, options.t1)
    _print_extremes(dataset)
    output = options.output or _named("sweep", model.name)
    path = output.with_name(f"{output.name}.nc")
    dataset.to_netcdf(path, engine="scipy")
    print(f"dataset:  {path}")
    _write_picture(plot_heat_map(dataset, "residual"), output.with_name(f"{output.name}.png"))
    return 0 if (dataset["result"] == Result.success).any() else 1


def _deepest(model) -> str:
    """The first of the bodies with the most joints between them and the world."""
    depths = [len(path) for path in model.topology.supports]
    return model.body_names[depths.index(max(depths))]


def _named(command, robot) -> pathlib.Path:
    """The default path of a command's output, in the current folder."""
    name = re.sub(r"[^\w-]+", "_", robot)
    return pathlib.Path(f"{command}-{name}").resolve()


def _describe(dataset, options):
    """Units and meanings of a sweep's variables, by the CF conventions."""
    for name, long_name, units in (
        ("payload", "payload", "kg"),
        ("kp", "proportional gain per unit of inertia", "1/s²"),
        ("residual", "distance to the target, largest in the last quarter", "rad or m"),
        ("final_error", "distance to the target at the end", "rad or m"),
        ("peak_effort", "largest effort over its limit", "1"),
    ):
        dataset[name].attrs.update(long_name=long_name, units=units)
    dataset.attrs["title"] = f"{options.robot}: what is left after {options.t1:g} s under PD control"


def _print_throughput(dataset, t1):
    seconds, lanes = dataset.attrs["run_seconds"], dataset["result"].size
    calls = float(dataset["dynamics_calls"].sum())
    print(
        f"compiled in {dataset.attrs['compile_seconds']:.1f} s, ran in {seconds:.1f} s on {dataset.attrs['device']}: "
        f"{lanes / seconds:.0f} lanes/s, {lanes * t1 / seconds:.0f} s of motion a second, "
        f"{calls / seconds:.3g} evaluations of forward dynamics a second"
    )
    codes, counts = np.unique(dataset["result"], return_counts=True)
    failed = [(Result(code).name, count) for code, count in zip(codes, counts, strict=True) if code != Result.success]
    named = ", ".join(f"{count} {name}" for name, count in failed)
    many = sum(count for _, count in failed)
    print(f"{lanes - many} lanes succeeded, {many} failed{f' ({named})' if named else ''}\n")


def _print_extremes(dataset, count=5):
    """The lanes with the smallest and the largest residual, failed ones last."""
    columns = ("payload", "kp", "residual", "final_error", "peak_effort", "steps", "result")
    table = dataset[list(columns[2:])].to_dataframe().reset_index().sort_values("residual", na_position="last")
    for title, rows in (("best lanes", table.head(count)), ("worst lanes", table.tail(count))):
        print(f"{title}:")
        print_table(
            columns,
            [
                [*(f"{row[name]:.4g}" for name in columns[:-1]), Result(int(row["result"])).name]
                for _, row in rows.iterrows()
            ],
        )
        print()


def tune(options):
    """Tune PD gains by gradient, and draw before and after."""
    model = _load(options)
    reach = Reach(model, options.seed)

    def loss(gains):
        trajectory = reach.run(model, **gains, t1=options.t1)
        effort = jnp.sum(reach.efforts(trajectory, **gains) ** 2, axis=1)
        weight = 2 * trajectory.ts / options.t1
        return jnp.mean(weight * reach.distances(trajectory) ** 2) + EFFORT_WEIGHT * jnp.mean(effort)

    before = {name: jnp.full(model.nv, gain, model.dtype) for name, gain in POOR_GAINS.items()}
    result = jdyn.tune(
        loss, before, optimizer=optax.adam(options.rate), steps=options.steps, bounds=jdyn.Positive(), progress=True
    )
    after = result.params
    print(f"{model.name}: loss {result.losses[0]:.4g} before, {result.losses[result.best_step]:.4g} after")
    print_table(
        ("joint", "kp before", "kp after", "kd before", "kd after"),
        [
            [name, *(f"{float(gains[k][i]):.4g}" for k in ("kp", "kd") for gains in (before, after))]
            for i, name in enumerate(_motors(model))
        ],
    )
    motions = {name: reach.run(model, **gains, t1=options.t1) for name, gains in (("before", before), ("after", after))}
    plot = options.plot or _named("tune", model.name).with_suffix(".png")
    _write_picture(plot_tuning(model, result.losses, motions, reach.target), plot)


def _motors(model) -> list[str]:
    """The joint of each velocity coordinate."""
    topology = model.topology
    names = [joint for joint, kind in zip(topology.joint_names, topology.kinds, strict=True) for _ in range(kind.nv)]
    return [names[i] for i in topology.independent_v]


def stiffness(options):
    """Count the evaluations of falls while a mechanism becomes ill-conditioned."""
    methods = jdyn.ABA(), jdyn.ArrayABA(), jdyn.CRBA()
    with jax.enable_x64(True):
        family, start = _family(options)
        if options.robot:
            print(jdyn.diagnose(next(iter(family.values()))), end="\n\n")
        columns = {
            f"{method} {dtype}": [
                fall(model.astype(dtype), options.t1, method=method, q0=start, tolerance=options.tolerance)
                for model in family.values()
            ]
            for dtype in ("float64", "float32")
            for method in methods
        }
    conditions = [f"{one.condition:.0e}" for one in next(iter(columns.values()))]
    counts = {name: [_evaluations(one) for one in column] for name, column in columns.items()}
    if options.robot:
        first = {"last body": family, "condition": conditions}
    else:
        printed = {"thesis ABM": [row.abm for row in EVALUATIONS], "thesis CRBM": [row.crbm for row in EVALUATIONS]}
        first = {"first link": family, "condition": conditions} | printed
    table = first | counts
    print_table(list(table), [["-" if x is None else str(x) for x in row] for row in zip(*table.values(), strict=True)])
    drawn = {
        name: ([float(x) for x in conditions], [np.nan if count is None else count for count in column])
        for name, column in counts.items()
    }
    name = next(iter(family.values())).name
    _write_picture(plot_evaluations(drawn, title=name), options.plot or _named("stiffness", name).with_suffix(".png"))


def _family(options):
    """Mechanisms that become ill-conditioned, by label, and their common start."""
    if not options.robot:
        return thesis_family(), None
    model = _load(options).astype(jnp.float64)
    return heavier_tips(model, _deepest(model)), _drawn(model, options.seed)


def _evaluations(one: Fall) -> int | None:
    return one.evaluations if one.result == Result.success else None


def _listed(numbers) -> str:
    numbers = np.asarray(numbers)
    return "-" if np.all(np.isinf(numbers)) else " ".join(f"{number:.4g}" for number in numbers)


def _write_picture(figure, path: pathlib.Path):
    figure.savefig(path, dpi=150)
    print(f"picture:  {path}")
