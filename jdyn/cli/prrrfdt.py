"""`jdyn prrrfdt`: the forward dynamics test program of Cloutier's thesis."""

import argparse
import dataclasses
import math
import pathlib

import numpy as np

from jdyn.cli.session_words import METHODS, add_robot, add_state, links_of, method
from jdyn.cli.tables import print_table
from jdyn.cli.words import count, number, picture
from jdyn.io import Link
from jdyn.stiffness import Session, StaticSweep, static_sweep
from jdyn.view import plot_curves

# Figure 5.3: the second link is a hundred times as long and heavy as the first; nothing moves or pushes.
LINKS = Link(1.0, 1.0, 1.0), Link(100.0, 100.0, 1.0)
REST = Session(links=LINKS, q0=(0.0, 0.0), v0=(0.0, 0.0), torques=(0.0, 0.0))


def add_sweep_words(words: argparse.ArgumentParser):
    """What the command understands. It computes in double precision, as the thesis does."""
    add_robot(words, "links of 1 m, 1 kg and 100 m, 100 kg, both 1 m wide")
    add = words.add_argument
    add("--vary", nargs="+", default=["q2"], metavar="INPUT", help="what varies, all of them alike (default: q2)")
    add("--from", dest="low", type=number, default=0.0, metavar="X", help="first value (default: 0)")
    add("--to", dest="high", type=number, default=2 * math.pi, metavar="X", help="last value (default: 2 pi)")
    add("--samples", type=count, default=181, help="number of values (default: 181)")
    add("--log", action="store_true", help="values in geometric progression")
    add("--method", choices=METHODS, nargs="+", default=list(METHODS), help="forward dynamics (default: all)")
    add_state(words, REST, "zeros", "zeros", "zeros")
    add("--plot", type=picture, metavar="FILE", help="picture of the accelerations of joint 1")


def prrrfdt(options):
    """The forward dynamics test of Cloutier's thesis (1995, section 5.1.2): accelerations of a planar robot of
    rectangular links by articulated bodies (ABM) and by composite rigid bodies (CRBM), while one input takes many
    values and all others stay; and how far the two are from each other.

    An INPUT is q, v, torque, length, mass or width with the number of a link, such as q2 or length2, or it is gravity
    or friction. Several inputs take the same values together: --vary length2 mass2 --from 1 --to 1e6 --log.

    Without words the second joint of figure 5.3's robot turns once around.

    Writes columns of text: the value, the condition number of the mass matrix, the accelerations of all joints by each
    method, and the relative differences of CRBM's from ABM's where both are asked for."""
    names = list(dict.fromkeys(options.method))
    methods = {name: method(name, options.linear) for name in names}
    session, values = _start(options), _values(options)
    found = static_sweep(session, options.vary, values, tuple(methods.values()))
    columns = _columns(found, methods)
    _print_largest(found, columns, options.vary)
    path = pathlib.Path(options.output) / f"{options.id}-sweep.txt"
    header = " ".join([",".join(options.vary), *columns])
    # As many digits as bring the same numbers back.
    np.savetxt(path, np.column_stack([found.values, *columns.values()]), fmt="%.17g", header=header)
    print(f"file:  {path}")
    if options.plot:
        curves = {name: found.accelerations[methods[name]][:, 0] for name in names}
        scale = "log" if options.log else "linear"
        figure = plot_curves(
            values, curves, ", ".join(options.vary), "acceleration of joint 1 [rad/s²]", scales=(scale, "linear")
        )
        figure.savefig(options.plot, dpi=150)
        print(f"picture:  {options.plot}")


def _start(options) -> Session:
    links = links_of(options, LINKS)
    zeros = (0.0,) * len(links)
    given = {name: tuple(getattr(options, name) or zeros) for name in ("q0", "v0", "torques")}
    return dataclasses.replace(REST, links=links, gravity=options.gravity, friction=options.friction, **given)


def _values(options) -> np.ndarray:
    if not options.log:
        return np.linspace(options.low, options.high, options.samples)
    if options.low <= 0 or options.high <= 0:
        raise ValueError(f"--log: expected positive values, got {options.low:g} to {options.high:g}")
    return np.geomspace(options.low, options.high, options.samples)


def _columns(found: StaticSweep, methods) -> dict[str, np.ndarray]:
    columns = {"condition": found.condition}
    for name, one in methods.items():
        for joint, a in enumerate(found.accelerations[one].T, start=1):
            columns[f"{name}{joint}[rad/s2]"] = a
    if len(methods) == len(METHODS):
        for joint, x in enumerate(found.difference(methods["crbm"], methods["abm"]).T, start=1):
            columns[f"difference{joint}[1]"] = x
    return columns


def _print_largest(found: StaticSweep, columns, varied):
    rows = [
        (name, f"{np.max(x):.4g}", f"{found.values[np.argmax(x)]:.4g}")
        for name, x in columns.items()
        if name.startswith(("condition", "difference"))
    ]
    print_table(("", "largest", f"at {', '.join(varied)}"), rows)
