"""Sessions from the arguments of `jdyn prrr` and `jdyn prrrfdt`."""

import dataclasses

from jdyn.dynamics import ABA, CRBA, Method
from jdyn.robots import per_link
from jdyn.studies.cloutier1995 import Link, Session, load_links
from jdyn.studies.prrr.words import LINEAR

FIGURE = Session()


def session_of(options) -> Session:
    """The session that the arguments ask for."""
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
    """The session with other links, and as many angles, velocities and torques."""
    if len(links) == len(session.links):
        return dataclasses.replace(session, links=links)
    zeros = (0.0,) * len(links)
    return dataclasses.replace(
        session, links=links, q0=(FIGURE.q0[0], *zeros[1:]), v0=zeros, torques=FIGURE.torques[:1] * len(links)
    )


def method(name: str, linear: str) -> Method:
    # `LINEAR` holds names of solvers, as plain strings to the type checker.
    return ABA() if name == "abm" else CRBA(LINEAR[linear])  # type: ignore[arg-type]
