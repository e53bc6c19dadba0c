"""Which numbers a model and a configuration can have.

One table serves the builder and changed copies, which refuse by name on the host, and simulations, which find out
within a program and end with a code. Comparisons with NaN are false, and NumPy's arrays compare as JAX's do.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool

from jdyn.model.inertial import POINT_RADIUS, TRIANGLE_TOLERANCE, inertia_problems, negative_moment
from jdyn.model.topology import Topology


class Requirement(NamedTuple):
    """Requirement on each entry of an array, in words and as a comparison."""

    words: str
    holds: Callable[[Any], Any]


FINITE = Requirement("finite numbers", lambda x: abs(x) < np.inf)
NOT_NEGATIVE = Requirement("a number that is not negative", lambda x: (x >= 0) & (x < np.inf))
POSITIVE = Requirement("a positive number", lambda x: (x > 0) & (x < np.inf))
KNOWN = Requirement("numbers or infinity", lambda x: x == x)
BOUND = Requirement("a number that is not negative, or infinity", lambda x: x >= 0)

# By the last part of a number's name, see `jdyn.parameters`; all others are finite.
_REQUIRED = {
    "mass": NOT_NEGATIVE, "damping": NOT_NEGATIVE, "friction": NOT_NEGATIVE, "armature": NOT_NEGATIVE,
    "friction_speed": POSITIVE, "lower": KNOWN, "upper": KNOWN, "velocity": BOUND, "effort": BOUND,
    "size": NOT_NEGATIVE, "margin": NOT_NEGATIVE,
}  # fmt: skip
DIRECTIONS = ("axis", "axis2", "normal", "x")
PER_JOINT = ("damping", "friction", "friction_speed", "stiffness", "armature")
# A direction or a quaternion that is shorter than this has none.
SHORTEST = 1e-10


def problem_with(what: str, value: Any) -> str | None:
    """A message if a property of a joint, a body or a shape cannot have this value, else None.

    Args:
        what: The last part of its name, such as `damping`.
        value: Numbers on the host.
    """
    array = np.asarray(value, dtype=float)
    unlimited = what in ("lower", "upper", "velocity", "effort")
    if np.any(np.isnan(array)) or (not unlimited and np.any(np.isinf(array))):
        return f"{what} is {value}, expected {FINITE.words}"
    required = _REQUIRED.get(what, FINITE)
    if not np.all(required.holds(array)):
        return f"{what} is {value}, expected {required.words}"
    if what in DIRECTIONS and np.linalg.norm(array) < SHORTEST:
        return f"{what} is zero, expected a direction"
    return None


def require(owner: str, what: str, value: Any) -> None:
    """Refuse a value that a number of a model cannot have; traced values are judged where they are simulated.

    Args:
        owner: What has the number, such as `body 'hand'`; empty for the model itself.
        what: The last part of its name, such as `mass`.
        value: The value.

    Raises:
        ValueError: naming the number, what is expected, and what it is.
    """
    if isinstance(value, Tracer):
        return
    if what == "inertia":
        I = np.asarray(value, dtype=float)
        problem = next(iter(inertia_problems(0.0, np.zeros(3), I)), None) or negative_moment(0.0, I)
    else:
        problem = problem_with(what, np.asarray(value))
    if problem:
        raise ValueError(f"{owner}: {problem}" if owner else problem)


def require_order(owner: str, lower: Array, upper: Array) -> None:
    """Refuse a lower limit above the upper one, unless one is traced.

    Raises:
        ValueError: naming both.
    """
    if not isinstance(lower, Tracer) and not isinstance(upper, Tracer) and np.any(np.asarray(lower > upper)):
        raise ValueError(f"{owner}: lower limit {lower} is above the upper limit {upper}")


def impossible(model: Any) -> list[str]:
    """Problems of a model's numbers, each by its name; empty if there are none, or if the numbers are traced."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(model)):
        return []
    # In NumPy: JAX would compile a program for each operation and shape.
    model, problems = jax.tree.map(np.asarray, model), []
    for what, names, values, required in _checks(model, model.shapes):
        values = np.asarray(values)
        for place in np.argwhere(~np.asarray(required.holds(values)))[:1]:
            owner = f"{names[place[0]]}." if names else ""
            problems.append(f"{owner}{what} is {values[tuple(place)]}, expected {required.words}")
    topology, limits = model.topology, model.limits
    for i in np.flatnonzero(np.asarray(_central_trace(model) < 0)):
        problems.append(f"body:{topology.body_names[i]}.inertia is negative about the centre of mass")
    for i in np.flatnonzero(np.asarray(limits.lower > limits.upper)):
        joint = np.searchsorted(topology.q_offsets, i, side="right") - 1
        problems.append(f"joint:{topology.joint_names[joint]}.lower is {limits.lower[i]}, above {limits.upper[i]}")
    return problems


def possible(model: Any, shapes: Any = None) -> Bool[Array, ""]:
    """Decide whether there can be a model with these numbers, and with shapes apart from it; all may be traced."""
    by_requirement: dict[Requirement, list] = {}
    for _, _, values, required in _checks(model, shapes):
        by_requirement.setdefault(required, []).append(jnp.ravel(values))
    holds = [jnp.all(required.holds(jnp.concatenate(parts))) for required, parts in by_requirement.items()]
    ordered = jnp.all(model.limits.lower <= model.limits.upper)
    return jnp.all(jnp.stack([*holds, jnp.all(_central_trace(model) >= 0), ordered]))


def _central_trace(model):
    """Sums of the principal moments about the centres of mass, as far as they can be told from zero. Moments of lumped
    links of published robots may be negative one by one, so that only a sum below zero is surely wrong."""
    mass, h = model.inertias.mass, model.inertias.first_moment
    about_origin = model.inertias.rotational @ np.array([1, 0, 1, 0, 0, 1], mass.dtype)
    moved = 2 * (h * h).sum(-1) / (mass + (mass == 0).astype(mass.dtype))
    return about_origin - moved + TRIANGLE_TOLERANCE * abs(about_origin) + mass * POINT_RADIUS**2


def _checks(model: Any, shapes: Any) -> Iterator[tuple[str, Sequence[str], Any, Requirement]]:
    """Arrays of a model: what they are, the names of their rows if they have rows, their values, what is asked."""
    topology: Topology = model.topology
    bodies = [f"body:{name}" for name in topology.body_names]
    joints = [f"joint:{name}" for name in topology.joint_names]
    in_q, in_v = (
        [joints[i] for i, kind in enumerate(topology.kinds) for _ in range(getattr(kind, n))] for n in ("nq", "nv")
    )
    followers = [joints[follower] for follower, _ in topology.mimics]
    frames = [f"frame:{name}" for name in topology.frame_names]
    inertias, limits, placed = model.inertias, model.limits, ((joints, model.placements), (frames, model.frames))
    tables = [
        ((), {"gravity": model.gravity}),
        (bodies, {"mass": inertias.mass, "com": inertias.first_moment, "inertia": inertias.rotational}),
        (in_v, {what: getattr(model, what) for what in PER_JOINT}),
        (in_v, {"velocity": limits.velocity, "effort": limits.effort}),
        (in_q, {"rest": model.rest, "lower": limits.lower, "upper": limits.upper}),
        (followers, {"mimic ratio": model.mimic_ratio, "mimic offset": model.mimic_offset}),
        *((names, {"rotation": poses.rotation, "translation": poses.translation}) for names, poses in placed),
        *(
            ([joints[body] for body in group.bodies], vars(kind))
            for group, kind in zip(topology.groups, model.joints, strict=True)
        ),
    ]
    if shapes is not None:
        names = [f"{entry.role}:{entry.name}" for entry in shapes.entries]
        # Scales of meshes may be negative: they mirror.
        sized = np.array([[entry.kind != "mesh"] for entry in shapes.entries], shapes.sizes.dtype)
        tables += [
            (names, {"size": sized * shapes.sizes, "friction": shapes.friction}),
            (names, {"rotation": shapes.placements.rotation, "translation": shapes.placements.translation}),
            (names, {} if shapes.margins is None else {"margin": shapes.margins}),
        ]
    for names, values in tables:
        for what, array in values.items():
            yield what, names, array, _REQUIRED.get(what, FINITE)
