"""The commands of `jdyn`."""

from __future__ import annotations

import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from jdyn.actuators import Actuators
from jdyn.cli.common import (
    compiling,
    deepest,
    default_path,
    draw_motion,
    holding,
    listed,
    load_all,
    load_robot,
    load_scene,
    on_ground,
    start_of,
    write_picture,
)
from jdyn.cli.identify import identify
from jdyn.cli.sweeps import replay, sweep
from jdyn.cli.tuning import tune
from jdyn.cli.view import view
from jdyn.cli.world import world
from jdyn.compile.kept_programs import kept_programs, programs_made_anew
from jdyn.model import ModelWarning
from jdyn.simulation import Result, SimulationError
from jdyn.simulation.parts import without_commands
from jdyn.studies.cloutier1995 import EVALUATIONS, Fall, condition_numbers, fall, heavier_tips, thesis_family
from jdyn.studies.prrr.prrr import prrr
from jdyn.studies.prrr.prrrfdt import prrrfdt
from jdyn.sweep import random_start
from jdyn.terminal.messages import enumerated, readable
from jdyn.terminal.tables import print_table
from jdyn.view import plots

# Rows of a motion that is drawn.
ROWS = 501


def run(options) -> int:
    """Run the command that the words ask for.

    Returns:
        The exit status: 0; 1 after an error that was explained on standard error, or if no lane of a sweep succeeds;
        130 after Ctrl-C.

    Raises:
        BrokenPipeError: if nobody reads on what it writes.
    """
    commands = {
        "info": info, "simulate": simulate, "sweep": sweep, "replay": replay, "tune": tune, "stiffness": stiffness,
        "prrr": prrr, "prrrfdt": prrrfdt, "identify": identify, "view": view, "world": world,
    }  # fmt: skip
    try:
        programs = kept_programs() if options.cache else programs_made_anew()
        with warnings.catch_warnings(), jax.enable_x64(options.dtype == "float64"), programs:
            warnings.showwarning = _show_warning
            return commands[options.command](options) or 0
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError, SimulationError) as error:
        print(f"jdyn: {readable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interruption:
        print(f"jdyn: {str(interruption) or 'interrupted'}", file=sys.stderr)
        return 130


def _show_warning(message, category, filename, lineno, file=None, line=None):
    print(f"jdyn: warning: {message}", file=sys.stderr)


# Commands.


def info(options):
    """Print the parts of a robot."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        system = load_all(options)
    model = system.model
    topology = model.topology
    print(f"{model.name}: {model.nb} bodies, {model.nv} degrees of freedom, {model.nq} coordinates")
    print(f"total mass {float(jnp.sum(model.inertias.mass)):.6g} kg, gravity {listed(model.gravity)} m/s²\n")
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
            listed(limits.lower[_range(topology, body)]),
            listed(limits.upper[_range(topology, body)]),
            listed(limits.velocity[topology.v_slice(body)]),
            listed(limits.effort[topology.v_slice(body)]),
            leaders.get(body, ""),
        )
        for body in range(model.nb)
    ]
    print_table(heads, rows)
    print("limits in rad or m, rad/s or m/s, N m or N; '-' where there is none\n")
    if model.frame_names:
        print(f"frames: {', '.join(model.frame_names)}")
    if model.nv:
        conditions = _conditions(model)
        print(
            f"condition number of the mass matrix: {conditions[0]:.4g} in the neutral configuration, "
            f"{conditions[1:].min():.4g} to {conditions[1:].max():.4g} in {len(conditions) - 1} random ones"
        )
    _print_parts(system)
    messages = [str(warning.message) for warning in caught]
    print("warnings: none" if not messages else "\n".join(["warnings:", *(f"  {message}" for message in messages)]))


def _print_parts(system: jdyn.System):
    """Print what a system has beside its model."""
    names = {
        "actuators": Actuators(system.actuators).names,
        "sensors": [sensor.name for sensor in system.sensors],
        "force elements": [type(element).__name__ for element in system.elements],
        "constraints": [
            f"{type(each).__name__} of {' and '.join((*each.frames, *each.joints))}" for each in system.constraints
        ],
        "configurations": list(system.configurations),
    }
    also = {"contact of shapes": system.contact, "ends of joints' ranges": system.joint_limits}
    lines = [f"{what}: {enumerated(known)}" for what, known in names.items() if known]
    lines += [", ".join(what for what, part in also.items() if part is not None)]
    if any(lines):
        print(
            "\n".join(
                [
                    "all that is above is jdyn.load's; jdyn.load_system has besides:",
                    *(f"  {line}" for line in lines if line),
                ]
            )
        )


def _range(topology, body) -> slice:
    """Places of the ends of a joint's range; of a ball joint's, of its largest angle alone."""
    places = topology.q_slice(body)
    return slice(places.start, places.start + 1) if topology.kinds[body] is jdyn.Ball else places


def _conditions(model, samples=64):
    keys = jax.random.split(jax.random.key(0), samples)
    configurations = jnp.concatenate([model.neutral()[None], jax.vmap(model.random)(keys)])
    return condition_numbers(model, configurations)


def simulate(options):
    """Let a robot move from a start."""
    system = load_scene(options)
    q0 = start_of(options, system)
    system = on_ground(options, system, q0)
    model = system.model
    v0 = jnp.zeros(model.nv) if options.v0 is None else jnp.asarray(options.v0, model.dtype)
    saveat = jnp.linspace(0, options.t1, ROWS, dtype=model.dtype)
    if options.hold:
        system = system.but(actuators=(), controller=holding(model, q0))
    if options.ctrl is None and (silent := without_commands(system)):
        print(f"{silent}; --ctrl gives others")
    if options.ctrl is not None:
        if not system.actuators:
            raise ValueError(f"--ctrl: {model.name!r} has no actuators")
        system = system.but(controller=jdyn.control.Constant(jnp.asarray(options.ctrl, model.dtype)))
    with compiling() as times:
        trajectory = jax.block_until_ready(jdyn.simulate(system, system.state(q0, v0), options.t1, saveat=saveat))
    stats = {name: int(count) for name, count in trajectory.stats.items() if name != "t_reached"}
    print(
        f"{model.name}: compiled in {times.compiling:.2f} s, {options.t1:g} s of motion in {times.running:.2f} s; "
        f"{stats['accepted_steps']} steps accepted, {stats['rejected_steps']} rejected, "
        f"{stats['dynamics_calls']} evaluations of forward dynamics"
    )
    total = np.asarray(trajectory.energy)
    print(f"energy: {total[0]:.8g} J at the start, {total[-1]:.8g} J at the end")
    print(f"q(t1) = {listed(trajectory.q[-1])}")
    draw_motion(options, trajectory)


def stiffness(options):
    """Count the evaluations of falls while a mechanism becomes ill-conditioned."""
    methods = jdyn.ABA(), jdyn.ArrayABA(), jdyn.CRBA()
    with jax.enable_x64(True):
        family, start = _family(options)
        if options.robot:
            print(jdyn.diagnose(next(iter(family.values()))), end="\n\n")
        with compiling() as times:
            columns = {
                f"{method} {dtype}": [
                    fall(model.astype(dtype), options.t1, method=method, q0=start, tolerance=options.tolerance)
                    for model in family.values()
                ]
                for dtype in ("float64", "float32")
                for method in methods
            }
    print(f"compiled in {times.compiling:.1f} s, ran in {times.running:.1f} s\n")
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
    axes = plots.stiffness(drawn)
    axes.set_title(name)
    write_picture(axes.figure, options.plot or default_path("stiffness", name).with_suffix(".png"))


def _family(options):
    """Mechanisms that become ill-conditioned, by label, and their common start."""
    if not options.robot:
        return thesis_family(), None
    model = load_robot(options).astype(jnp.float64)
    return heavier_tips(model, deepest(model)), random_start(model, options.seed)


def _evaluations(one: Fall) -> int | None:
    return one.evaluations if one.result == Result.success else None
