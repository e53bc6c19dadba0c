"""Forward dynamics while one input takes many values: the forward dynamics test of the thesis."""

import dataclasses
import functools
import re
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics import Method, forward_dynamics
from jdyn.model import Model
from jdyn.studies.cloutier1995.condition import condition_numbers
from jdyn.studies.cloutier1995.link_table import Link
from jdyn.studies.cloutier1995.session import Session
from jdyn.studies.cloutier1995.statistics import relative_difference


@dataclasses.dataclass(frozen=True)
class StaticSweep:
    """Accelerations while one input takes many values and all others stay constant.

    Attributes:
        values: Values of the input, shape (samples,).
        condition: Condition number of the mass matrix at each.
        accelerations: By method, shape (samples, nv) [rad/s² or m/s²].
    """

    values: np.ndarray
    condition: np.ndarray
    accelerations: dict[Method, np.ndarray]

    def difference(self, method: Method, exact: Method) -> np.ndarray:
        """Relative difference Δr of each acceleration that `method` finds from that of `exact` (section 5.1.2)."""
        return relative_difference(self.accelerations[method], self.accelerations[exact])


def turn(model: Model, methods: tuple[Method, ...], *, coordinate: int = 1, samples: int = 181) -> StaticSweep:
    """Accelerations from rest while one joint turns through a full circle and all others stay neutral.

    Args:
        model: The mechanism; the coordinate must be an angle.
        methods: Forward-dynamics methods to compare.
        coordinate: Entry of q that turns.
        samples: Number of angles.

    Source: Cloutier 1995, sections 5.1.2 and 5.2.1.
    """
    angles = np.linspace(0, 2 * np.pi, samples)
    q = jnp.tile(model.neutral(), (samples, 1)).at[:, coordinate].set(jnp.asarray(angles, model.dtype))
    rest = jnp.zeros((samples, model.nv), model.dtype)
    found = {method: np.asarray(_accelerations(method, model, (q, rest, rest), None), float) for method in methods}
    return StaticSweep(angles, condition_numbers(model, q), found)


def static_sweep(
    session: Session, inputs: Sequence[str], values: Sequence[float] | np.ndarray, methods: tuple[Method, ...]
) -> StaticSweep:
    """Accelerations at the start of a session while some of its inputs take many values together.

    Args:
        session: The robot and its start.
        inputs: Inputs that vary: `q`, `v`, `torque`, `length`, `mass` or `width` with the number of a link, such as
            `"q2"`, or `"gravity"` or `"friction"`.
        values: Values that all of them take, one after another [rad, rad/s, N m, m, kg, m, m/s², N m s/rad].
        methods: Forward-dynamics methods to compare.

    Raises:
        ValueError: if there is no such input, or a robot cannot have such a value.

    Source: Cloutier 1995, sections 5.1.2 and 5.2.1, the program prrrfdt.
    """
    sessions = []
    for value in np.asarray(values, float):
        for name in inputs:
            session = with_input(session, name, float(value))
        sessions.append(session)
    models = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(session.model() for session in sessions))
    states = tuple(
        jnp.array([getattr(session, name) for session in sessions], models.dtype) for name in ("q0", "v0", "torques")
    )
    found = {method: np.asarray(_accelerations(method, models, states, 0), float) for method in methods}
    return StaticSweep(np.asarray(values, float), condition_numbers(models, states[0]), found)


def with_input(session: Session, name: str, value: float) -> Session:
    """The session with one of its inputs, named as in `static_sweep`, set to a value."""
    if name in ("gravity", "friction"):
        return dataclasses.replace(session, **{name: value})
    match = re.fullmatch(r"(q|v|torque|length|mass|width)([1-9][0-9]*)", name)
    if match is None or int(match[2]) > len(session.links):
        raise ValueError(
            f"input: expected q, v, torque, length, mass or width with the number of a link, 1 to "
            f"{len(session.links)}, or gravity or friction; got {name!r}"
        )
    kind, link = match[1], int(match[2]) - 1
    if kind in Link._fields:
        return dataclasses.replace(
            session, links=_with_entry(session.links, link, session.links[link]._replace(**{kind: value}))
        )
    field = {"q": "q0", "v": "v0", "torque": "torques"}[kind]
    return dataclasses.replace(session, **{field: _with_entry(getattr(session, field), link, value)})


def _with_entry(row: tuple, place: int, entry) -> tuple:
    return (*row[:place], entry, *row[place + 1 :])


@functools.partial(jax.jit, static_argnums=(0, 3))
def _accelerations(method, model, states, models_axis):
    def acceleration(model, q, v, tau):
        return forward_dynamics(model, q, v, tau, method=method)

    return jax.vmap(acceleration, (models_axis, 0, 0, 0))(model, *states)
