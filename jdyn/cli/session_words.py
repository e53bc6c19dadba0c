"""Words of the command line that ask for a session of `jdyn prrr`."""

import argparse
import dataclasses
import pathlib
import re

from jdyn.cli.session_files import QUANTITIES
from jdyn.cli.words import count, not_negative, number, positive
from jdyn.dynamics import ABA, CRBA, Method
from jdyn.io import Link, load_links
from jdyn.robots.links import per_link
from jdyn.stiffness import INTEGRATIONS, Session

METHODS = ("abm", "crbm")
# The thesis' names of linear solvers, and those of `CRBA`.
LINEAR = {"cd": "cholesky", "lu": "lu", "gje": "gauss-jordan", "svd": "svd"}
FIGURE = Session()
INTEGRATION_HELP = (
    "Runge-Kutta with adaptive steps, a "
    "Rosenbrock method or Bader's and Deuflhard's extrapolation for stiff robots, "
    "Runge-Kutta with steps of one length, Adams-Bashforth-Moulton with adaptive steps (default: rka)"
)


def add_words(words: argparse.ArgumentParser):
    """What `jdyn prrr` understands. It computes in double precision, as the thesis does."""
    add = words.add_argument
    add_robot(words, "three links of 10 m, 1 kg, 1 m width")
    add("--interactive", action="store_true", help="ask")
    add(
        "--statistics",
        choices=QUANTITIES,
        nargs="+",
        default=list(QUANTITIES),
        metavar="NAME",
        help=f"of {', '.join(QUANTITIES)}",
    )
    add("--method", choices=METHODS, default="crbm", help="forward dynamics (default: crbm)")
    add("--integration", choices=INTEGRATIONS, default=FIGURE.integration, help=INTEGRATION_HELP)
    for name, read, meaning in (
        ("t0", number, "start [s]"),
        ("t1", number, "stop [s]"),
        ("first-step", positive, "first step [s]; with rk, every step"),
        ("smallest-step", not_negative, "a shorter step ends the simulation [s]"),
        ("accuracy", positive, "of a step, relative"),
        ("interval", not_negative, "save interval [s]"),
        ("rows", rows, "most steps saved"),
        ("max-steps", count, "most steps to try"),
    ):
        default = getattr(FIGURE, name.replace("-", "_"))
        add(f"--{name}", type=read, default=default, metavar="X", help=f"{meaning} (default: {default:g})")
    add_state(words, FIGURE, "1.5 and zeros", "zeros", "1 each")


def add_robot(words: argparse.ArgumentParser, default: str):
    """The robot, how its mass matrix is factored, and where files go."""
    words.set_defaults(dtype="float64")
    add = words.add_argument
    add("file", metavar="FILE", nargs="?", help=f"robot file (default: {default})")
    add("--id", type=identifier, default="T01", help="test identifier: the files' names begin with it (default: T01)")
    add("--output", type=folder, default=".", metavar="FOLDER", help="where the files go (default: here)")
    add("--links", type=count, metavar="N", help="number of links, instead of a FILE")
    for name, unit in (("lengths", "m"), ("masses", "kg"), ("widths", "m")):
        add(f"--{name}", type=positive, nargs="+", metavar="X", help=f"[{unit}], one number or one a link")
    add("--linear", choices=LINEAR, default="lu", help="linear solver of crbm: Cholesky, LU with partial pivoting, "
        "Gauss-Jordan, singular values (default: lu)")  # fmt: skip


def add_state(words: argparse.ArgumentParser, session: Session, q0: str, v0: str, torques: str):
    """The state, and what acts on the robot; what that is by default is told in words."""
    add = words.add_argument
    for name, read, meaning in (
        ("gravity", number, "[m/s²]"),
        ("friction", not_negative, "viscous, of every joint [N m s/rad]"),
    ):
        default = getattr(session, name)
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


def session_of(options) -> Session:
    """What the words ask for."""
    session = with_links(FIGURE, links_of(options, FIGURE.links))
    given = {name: tuple(x) for name in ("q0", "v0", "torques") if (x := getattr(options, name)) is not None}
    names = "integration", "t0", "t1", "first_step", "smallest_step", "accuracy", "interval", "rows", "max_steps"
    plain = {name: getattr(options, name) for name in (*names, "gravity", "friction")}
    return dataclasses.replace(session, method=method(options.method, options.linear), **plain, **given)


def links_of(options, default: tuple[Link, ...]) -> tuple[Link, ...]:
    sizes = {name: x for name in ("lengths", "masses", "widths") if (x := getattr(options, name)) is not None}
    if options.file is not None:
        if options.links or sizes:
            raise ValueError("expected a robot file, or --links, --lengths, --masses and --widths; got both")
        return load_links(options.file)
    if not (options.links or sizes):
        return default
    n = options.links or max(map(len, sizes.values()))
    sizes = {name: x[0] if len(x) == 1 else x for name, x in sizes.items()}
    defaults = dict(zip(("lengths", "masses", "widths"), default[0], strict=True))
    return tuple(Link(*map(float, row)) for row in zip(*per_link(n, **(defaults | sizes)), strict=True))


def with_links(session: Session, links: tuple[Link, ...]) -> Session:
    """The session with other links, and a state and torques for as many as there are."""
    if len(links) == len(session.links):
        return dataclasses.replace(session, links=links)
    zeros = (0.0,) * len(links)
    return dataclasses.replace(
        session, links=links, q0=(FIGURE.q0[0], *zeros[1:]), v0=zeros, torques=FIGURE.torques[:1] * len(links)
    )


def method(name: str, linear: str) -> Method:
    # `LINEAR` holds names of solvers, as plain strings to the type checker.
    return ABA() if name == "abm" else CRBA(LINEAR[linear])  # type: ignore[arg-type]
