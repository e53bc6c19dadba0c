"""The commands of `jdyn`."""

from __future__ import annotations

import contextlib
import pathlib
import re
import sys
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jdyn
from jdyn.cli.parser import SWEEP_WORDS
from jdyn.compile.kept_programs import kept_programs, programs_made_anew
from jdyn.model import Model, ModelWarning
from jdyn.simulation import Result, SimulationError
from jdyn.studies.cloutier1995 import EVALUATIONS, Fall, condition_numbers, fall, heavier_tips, thesis_family
from jdyn.studies.cloutier1995.plots import plot_evaluations
from jdyn.studies.prrr.prrr import prrr
from jdyn.studies.prrr.prrrfdt import prrrfdt
from jdyn.sweep import ControlledMove, Spec, drawn
from jdyn.sweep.replay import replayed
from jdyn.sweep.store import lane_of
from jdyn.terminal.tables import print_table
from jdyn.view import plot_heat_map, plot_motion, plot_tuning

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
        "info": info, "simulate": simulate, "sweep": sweep, "replay": replay, "tune": tune, "stiffness": stiffness,
        "prrr": prrr, "prrrfdt": prrrfdt,
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
    q0 = drawn(model, options.seed) if options.q0 is None else jnp.asarray(options.q0, model.dtype)
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


def sweep(options):
    """Many simulations of one motion under control, into a labelled dataset and a heat map."""
    if str(options.robot).endswith(".toml"):
        _refuse_words_beside_a_spec(options)
        spec = Spec.read(options.robot)
    else:
        spec = Spec.of(payload_against_gain(options), "jdyn sweep")
    ranges = ", ".join(f"{name} {x.min():g} to {x.max():g}" for name, x in spec.design.values.items())
    device = jax.default_backend()
    print(f"{spec.name}: {spec.design.size} lanes, {ranges}, {spec.horizon:g} s each, {device}, {spec.dtype}")
    own = {"chunk": options.chunk, "store": options.store, "shard": options.shard}
    with _cluster(options.scheduler or spec.scheduler) as client:
        dataset = spec.sweep(**{name: value for name, value in own.items() if value is not None}, engine=client)
    store = options.store or spec.store
    _print_throughput(dataset, spec.horizon)
    attributes = dataset.attrs
    dataset = (dataset if store is None else jdyn.open_sweep(store)).assign_attrs(title=spec.title)
    good = _print_results(dataset)
    _print_extremes(dataset, spec)
    output = options.output or _named("sweep", spec.name)
    if store is None:
        path = output.with_name(f"{output.name}.nc")
        dataset.assign_attrs(attributes).to_netcdf(path, engine="scipy")
        print(f"dataset:  {path}")
    else:
        print(f"dataset:  {pathlib.Path(store).resolve()}, a lane again: jdyn replay {store} --lane 0")
    if dataset["result"].ndim == 2 and dataset[spec.outputs[0]].ndim == 2:
        _write_picture(plot_heat_map(dataset, spec.outputs[0]), output.with_name(f"{output.name}.png"))
    return 0 if good else 1


def _refuse_words_beside_a_spec(options):
    """A spec says all that these words could."""
    given = [name for name, usual in SWEEP_WORDS.items() if getattr(options, name) != usual]
    if given:
        words = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{options.robot}: a spec says what to sweep; write there what {words} should say")


def payload_against_gain(options) -> dict:
    """The entries of the spec that words ask for."""
    model, side = _load(options), round(options.lanes**0.5)
    body = options.body or _deepest(model)
    model.topology.body(body)
    (low, high), (soft, stiff) = sorted(options.payload), sorted(options.kp)
    if low < 0:
        raise ValueError(f"--payload: expected masses of at least 0 kg, got {low:g}")
    varied = {
        "kp": {
            "of": "controller.kp", "low": soft, "high": stiff, "count": side, "scale": "log",
            "long_name": "proportional gain per unit of inertia",
        },
        "payload": {
            "of": f"body:{body}.mass", "by": "plus", "low": low, "high": high, "count": side,
            "long_name": f"payload on {body}",
        },
    }  # fmt: skip
    entries = {
        "title": f"{model.name}, what is left after {options.t1:g} s under PD control",
        "robot": options.robot, "dtype": options.dtype, "horizon": options.t1, "motion": {"seed": options.seed},
        "controller": {"kd": options.kd}, "design": {"parameters": varied},
    }  # fmt: skip
    if options.floating_base is not None:
        entries["floating_base"] = options.floating_base
    if options.package_dir:
        entries["package_dirs"] = options.package_dir
    return entries


@contextlib.contextmanager
def _cluster(scheduler):
    """The workers that are asked for, or None."""
    if scheduler is None:
        yield None
        return
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            'the scheduler is one of Dask, which is not installed; pip install "jdyn[cluster]"'
        ) from error
    with distributed.Client(scheduler) as client:
        yield client


def replay(options):
    """One lane of a store again, beside what is stored."""
    parameters, stored, function = lane_of(options.store, options.lane)
    lane = replayed(parameters, function, options.store)
    spec = Spec.from_json(function, options.store)
    with spec.precision():
        again = spec.kept(lane)
    print(f"{spec.title}: lane {options.lane}")
    print_table(
        ("", "stored", "again"),
        [(name, _listed(value), "") for name, value in parameters.items()]
        + [(name, _listed(stored[name]), _listed(again[name])) for name in stored if stored[name].ndim < 2],
    )
    if options.plot:
        _write_picture(plot_motion(lane.model, lane.motion), options.plot)


def _deepest(model) -> str:
    """The first of the bodies with the most joints between them and the world."""
    depths = [len(path) for path in model.topology.supports]
    return model.body_names[depths.index(max(depths))]


def _named(command, robot) -> pathlib.Path:
    """The default path of a command's output, in the current folder."""
    name = re.sub(r"[^\w-]+", "_", robot)
    return pathlib.Path(f"{command}-{name}").resolve()


def _print_throughput(dataset, t1):
    seconds, rate = dataset.attrs["run_seconds"], dataset.attrs["lanes_per_second"]
    print(
        f"compiled in {dataset.attrs['compile_seconds']:.1f} s, ran in {seconds:.1f} s on {dataset.attrs['device']}: "
        f"{rate:.0f} lanes/s, {rate * t1:.0f} s of motion a second"
    )


def _print_results(dataset) -> int:
    """Lanes by their results; the number of those that succeeded."""
    codes, counts = np.unique(dataset["result"], return_counts=True)
    by_name = {Result(code).name: count for code, count in zip(codes, counts, strict=True)}
    good = by_name.pop("success", 0) + by_name.pop("event", 0)
    waiting = by_name.pop("not_run", 0)
    named = ", ".join(f"{count} {name}" for name, count in by_name.items())
    still = f", {waiting} have not run" if waiting else ""
    print(f"{good} lanes succeeded, {sum(by_name.values())} failed{f' ({named})' if named else ''}{still}\n")
    return good


def _print_extremes(dataset, spec, count=5):
    """The lanes with the smallest and the largest first output, failed ones last."""
    scalars = [name for name in spec.outputs if dataset[name].ndim == dataset["result"].ndim]
    if not scalars:
        return
    columns = (*spec.design.values, *scalars, "result")
    table = dataset[[*scalars, "result"]].to_dataframe().reset_index().sort_values(scalars[0], na_position="last")
    table = table[table["result"] != Result.not_run]
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
    reach = ControlledMove(model, options.seed)

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
    return heavier_tips(model, _deepest(model)), drawn(model, options.seed)


def _evaluations(one: Fall) -> int | None:
    return one.evaluations if one.result == Result.success else None


def _listed(numbers) -> str:
    numbers = np.asarray(numbers)
    return "-" if np.all(np.isinf(numbers)) else " ".join(f"{number:.4g}" for number in np.ravel(numbers))


def _write_picture(figure, path: pathlib.Path):
    figure.savefig(path, dpi=150)
    print(f"picture:  {path}")
