"""The questions of `jdyn prrr --interactive`, in the order of figure 5.2."""

import dataclasses
from collections.abc import Sequence

from jdyn.dynamics import CRBA, Method
from jdyn.studies.cloutier1995 import INTEGRATIONS, Link, Session, load_links
from jdyn.studies.prrr.options import method, with_links
from jdyn.studies.prrr.words import LINEAR, METHODS, identifier, rows
from jdyn.terminal.argument_types import not_negative, number, positive
from jdyn.terminal.questions import ask, ask_choice, ask_numbers, ask_whether


def asked(name: str, session: Session) -> tuple[str, Session]:
    """The test identifier and the session from the answers; an empty answer keeps the given value."""
    print("PRRRobot simulator; an empty answer means what is in brackets")
    name = ask("Test identifier", name, identifier)
    links = ask("Name of robot data file", session.links, load_links, _listed(session.links))
    session = dataclasses.replace(with_links(session, links), method=_asked_method(session.method))
    integration = ask_choice("Integration method", session.integration, list(INTEGRATIONS))
    t0, t1 = _asked_times(session)
    session = dataclasses.replace(session, integration=integration, t0=t0, t1=t1)
    if not ask_whether("Use default integration parameters (y/n)?"):
        session = _asked_parameters(session)
    if not ask_whether("Use default initial robot state (y/n)?"):
        session = _asked_state(session)
    if not ask_whether("Use other default parameters (y/n)?"):
        session = _asked_forces(session)
    return name, session


def _listed(links: Sequence[Link]) -> str:
    return "; ".join(" ".join(f"{x:g}" for x in link) for link in links)


def _asked_method(default: Method) -> Method:
    composite = isinstance(default, CRBA)
    names = {solver: linear for linear, solver in LINEAR.items()}
    linear = names[default.solver] if composite else "lu"
    name = ask_choice("Forward dynamics method", "crbm" if composite else "abm", METHODS)
    return method(name, ask_choice("Linear solution method", linear, list(LINEAR)) if name == "crbm" else linear)


def _asked_times(session: Session) -> tuple[float, float]:
    while True:
        t0, t1 = ask_numbers("Start and stop times (s)", (session.t0, session.t1), number)
        if t0 < t1:
            return t0, t1
        print("  expected a stop after the start")


def _asked_parameters(session: Session) -> Session:
    return dataclasses.replace(
        session,
        first_step=ask("First integration step size (s)", session.first_step, positive),
        smallest_step=ask("Minimal integration step size (s)", session.smallest_step, not_negative),
        accuracy=ask("Integration accuracy", session.accuracy, positive),
        interval=ask("Save interval (s)", session.interval, not_negative),
        rows=ask("Maximum number of steps saved", session.rows, rows),
    )


def _asked_state(session: Session) -> Session:
    print("Initial joint positions (rad) and velocities (rad/s):")
    pairs = [
        ask_numbers(f"  q[{i}]", pair, number)
        for i, pair in enumerate(zip(session.q0, session.v0, strict=True), start=1)
    ]
    q0, v0 = zip(*pairs, strict=True)
    return dataclasses.replace(session, q0=q0, v0=v0)


def _asked_forces(session: Session) -> Session:
    gravity = ask("Gravity (m/s2)", session.gravity, number)
    friction = ask("Coefficient of joint viscous friction (N m s/rad)", session.friction, not_negative)
    print("Joint actuator torques (N m):")
    torques = tuple(ask(f"  tau[{i}]", torque, number) for i, torque in enumerate(session.torques, start=1))
    return dataclasses.replace(session, gravity=gravity, friction=friction, torques=torques)
