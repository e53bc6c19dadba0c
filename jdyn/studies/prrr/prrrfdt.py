"""`jdyn prrrfdt`: the forward dynamics test program of Cloutier's thesis."""

import dataclasses
import pathlib
from typing import Any

import numpy as np

from jdyn.studies.cloutier1995 import Link, Session, StaticSweep, static_sweep
from jdyn.studies.prrr.options import links_of, method
from jdyn.studies.prrr.words import METHODS
from jdyn.terminal.tables import print_table
from jdyn.view import plots

# Figure 5.3: the second link is a hundred times as long and heavy as the first; nothing moves or pushes.
LINKS = Link(1.0, 1.0, 1.0), Link(100.0, 100.0, 1.0)
REST = Session(links=LINKS, q0=(0.0, 0.0), v0=(0.0, 0.0), torques=(0.0, 0.0))


def prrrfdt(options):
    """Write accelerations while inputs vary, and the differences between methods."""
    names = list(dict.fromkeys(options.method))
    methods = {name: method(name, options.linear) for name in names}
    session, values = _start(options), _values(options)
    found = static_sweep(session, options.vary, values, tuple(methods.values()))
    columns = _columns(found, methods)
    _print_largest(found, columns, options.vary)
    path = pathlib.Path(options.output) / f"{options.id}-sweep.txt"
    header = " ".join([",".join(options.vary), *columns])
    # Enough digits to read the same numbers back.
    np.savetxt(path, np.column_stack([found.values, *columns.values()]), fmt="%.17g", header=header)
    print(f"file:  {path}")
    if options.plot:
        curves = {name: found.accelerations[methods[name]][:, 0] for name in names}
        scale = "log" if options.log else "linear"
        axes = plots.curves(
            values, curves, ", ".join(options.vary), "acceleration of joint 1 [rad/s²]", scales=(scale, "linear")
        )
        figure: Any = axes.figure
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
