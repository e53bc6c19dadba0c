"""Arguments of `jdyn prrr` and `jdyn prrrfdt`, with the defaults of `jdyn.studies.cloutier1995.Session`."""

import argparse
import math
import pathlib
import re

from jdyn.terminal.argument_types import count, not_negative, number, picture, positive

# What a statistics file may have, as in `session_files.QUANTITIES`, and how a session is integrated, as
# `jdyn.studies.cloutier1995.INTEGRATIONS` has it.
QUANTITIES = ("positions", "velocities", "accelerations", "energy", "evaluations", "condition", "difference")
INTEGRATIONS = ("rka", "stiff", "stifbs", "rk", "adams")
METHODS = ("abm", "crbm")
# The thesis' names of linear solvers, and those of `CRBA`.
LINEAR = {"cd": "cholesky", "lu": "lu", "gje": "gauss-jordan", "svd": "svd"}
INTEGRATION_HELP = (
    "Runge-Kutta with adaptive steps, a "
    "Rosenbrock method or Bader's and Deuflhard's extrapolation for stiff robots, "
    "Runge-Kutta with steps of one length, Adams-Bashforth-Moulton with adaptive steps (default: rka)"
)


def add_words(words: argparse.ArgumentParser):
    """Add the arguments of `jdyn prrr`, which computes in double precision like the thesis."""
    add = words.add_argument
    add_robot(words, "three links of 10 m, 1 kg, 1 m width")
    add("--interactive", action="store_true", help="ask the thesis' questions")
    add(
        "--statistics",
        choices=QUANTITIES,
        nargs="+",
        default=list(QUANTITIES),
        metavar="NAME",
        help=f"of {', '.join(QUANTITIES)}",
    )
    add("--method", choices=METHODS, default="crbm", help="forward dynamics (default: crbm)")
    add("--integration", choices=INTEGRATIONS, default=INTEGRATIONS[0], help=INTEGRATION_HELP)
    for name, read, default, meaning in (
        ("t0", number, 0.0, "start [s]"),
        ("t1", number, 10.0, "stop [s]"),
        ("first-step", positive, 0.01, "first step [s]; with rk, every step"),
        ("smallest-step", not_negative, 0.0, "a shorter step ends the simulation [s]"),
        ("accuracy", positive, 1e-4, "of a step, relative"),
        ("interval", not_negative, 0.01, "save interval [s]"),
        ("rows", rows, 1000, "most steps saved"),
        ("max-steps", count, 10_000, "most steps to try"),
    ):
        add(f"--{name}", type=read, default=default, metavar="X", help=f"{meaning} (default: {default:g})")
    add_state(words, "1.5 and zeros", "zeros", "1 each")


def add_sweep_words(words: argparse.ArgumentParser):
    """Add the arguments of `jdyn prrrfdt`, which computes in double precision like the thesis."""
    add_robot(words, "links of 1 m, 1 kg and 100 m, 100 kg, both 1 m wide")
    add = words.add_argument
    add("--vary", nargs="+", default=["q2"], metavar="INPUT", help="inputs, which vary together (default: q2)")
    add("--from", dest="low", type=number, default=0.0, metavar="X", help="first value (default: 0)")
    add("--to", dest="high", type=number, default=2 * math.pi, metavar="X", help="last value (default: 2 pi)")
    add("--samples", type=count, default=181, help="number of values (default: 181)")
    add("--log", action="store_true", help="values in geometric progression")
    add("--method", choices=METHODS, nargs="+", default=list(METHODS), help="forward dynamics (default: all)")
    add_state(words, "zeros", "zeros", "zeros")
    add("--plot", type=picture, metavar="FILE", help="picture of the accelerations of joint 1")


def add_robot(words: argparse.ArgumentParser, default: str):
    """Add the robot, the factorisation of its mass matrix, and the output folder."""
    words.set_defaults(dtype="float64")
    add = words.add_argument
    add("file", metavar="FILE", nargs="?", help=f"robot file (default: {default})")
    add("--id", type=identifier, default="T01", help="test identifier: the files' names begin with it (default: T01)")
    add("--output", type=folder, default=".", metavar="FOLDER", help="where the files go (default: here)")
    add("--links", type=count, metavar="N", help="number of links, instead of a FILE")
    for name, unit in (("lengths", "m"), ("masses", "kg"), ("widths", "m")):
        add(f"--{name}", type=positive, nargs="+", metavar="X", help=f"[{unit}], one number, or one for each link")
    add("--linear", choices=LINEAR, default="lu", help="linear solver of crbm: Cholesky, LU with partial pivoting, "
        "Gauss-Jordan, singular values (default: lu)")  # fmt: skip


def add_state(words: argparse.ArgumentParser, q0: str, v0: str, torques: str):
    """Add the state and the forces on the robot; the help describes the defaults in words."""
    add = words.add_argument
    for name, read, default, meaning in (
        ("gravity", number, 9.8, "[m/s²]"),
        ("friction", not_negative, 0.0, "viscous, of every joint [N m s/rad]"),
    ):
        add(f"--{name}", type=read, default=default, metavar="X", help=f"{meaning} (default: {default:g})")
    for name, meaning, default in (
        ("q0", "positions at the start [rad]", q0),
        ("v0", "velocities at the start [rad/s]", v0),
        ("torques", "of the motors [N m]", torques),
    ):
        add(
            f"--{name}",
            type=number,
            nargs="+",
            metavar="X",
            help=f"{meaning} (default: {default}), one number a link",
        )


def identifier(word: str) -> str:
    if not re.fullmatch(r"[\w-]+", word):
        raise argparse.ArgumentTypeError(f"expected letters, digits, - and _, got {word!r}")
    return word


def folder(word: str) -> pathlib.Path:
    path = pathlib.Path(word).resolve()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path}")
    return path


def rows(word: str) -> int:
    if count(word) < 2:
        raise argparse.ArgumentTypeError(f"expected at least 2, the first and the last, got {word}")
    return int(word)
