"""Numbers of a system by name."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from jdyn.actuators import Actuator, Actuators
from jdyn.array import shaped
from jdyn.model import Model
from jdyn.model import parameters as numbers_of_model
from jdyn.model import vary as vary_model
from jdyn.simulation.system import System
from jdyn.terminal.messages import short, unknown

PARTS = ("controller", "actuators", "contact", "elements", "constraints", "joint_limits", "sensors")
# What names of numbers of a model begin with.
OF_MODELS = ("gravity", "body", "joint", "frame", "collision")


def parameters(system: Model | System) -> dict[str, Array]:
    """Numbers of a model, or of all that is simulated, by the names that `vary` takes.

    >>> numbers = jdyn.parameters(jdyn.load("pendulum"))
    >>> print(numbers["gravity"], numbers["body:link1.mass"])
    [ 0.    0.   -9.81] 1.0
    >>> model = jdyn.load("pendulum")
    >>> system = jdyn.System(model, controller=jdyn.PD(model, jnp.ones(1), kp=50.0, kd=10.0))
    >>> print(jdyn.parameters(system)["controller.kp"])
    50.0

    Args:
        system: A model or a system.

    Returns:
        `gravity` [m/s²], and of each

        - body: `body:NAME.mass` [kg], `com` in the body's frame [m], `inertia` about the centre of mass, in body
          axes [kg m²], shape (3, 3);
        - joint: `joint:NAME.damping`, `friction`, `friction_speed`, `stiffness`, `armature`, the limits `velocity` and
          `effort`, shape (nv of the joint,); `rest` and the limits `lower` and `upper`, shape (nq of the joint,);
          `translation` of its frame in its parent [m]; its own geometry, such as `axis`;
        - frame: `frame:NAME.translation` in its body [m];
        - collision shape: `collision:NAME.translation` in its body [m], its `size` [m], or `scale` of a mesh, and
          `friction` (sliding [1], torsional [m], rolling [m]), and of a height field its `heights` [m], as
          `jdyn.Shapes` has them.

        Of a system also those of its other parts, by where they stand: `controller.kp`, `contact.material.stiffness`,
        `actuators.elbow.kp`, `elements.0.stiffness`, `constraints.0.length`. Of a model within a part, such as that of
        a controller, names follow where it stands: `controller.model.body:NAME.mass`.
    """
    if not isinstance(system, System):
        return numbers_of_model(system)
    found = numbers_of_model(system.model)
    for part in PARTS:
        found |= {f"{part}.{name}": x for name, x in _numbers(getattr(system, part)).items() if name}
    return found


def vary(system: Any, changes: Mapping[str, ArrayLike]) -> Any:
    """A copy of a model, or of a system, with other numbers, by name: for sweeps, gradients and files.

    ```
    heavy = jdyn.vary(model, {"body:hand.mass": 2.0, "joint:j3.damping": p["damping"], "gravity": [0.0, 0.0, -1.62]})
    softer = jdyn.vary(system, {"controller.kp": 50.0, "body:hand.mass": 2.0})
    ```

    >>> model = jdyn.vary(jdyn.load("pendulum"), {"body:link1.mass": 2.0, "gravity": [0.0, 0.0, -1.62]})
    >>> print(jdyn.gravity_forces(model, jnp.array([jnp.pi / 2])).round(3))
    [1.62]

    Args:
        system: A model or a system.
        changes: Numbers by the names that `jdyn.parameters` lists. A scalar counts for every coordinate of a joint, for
            every entry of an array of a part, and for the sliding friction of a shape. Torsional and rolling friction
            can be varied where a shape of the model has a `condim` of 4 or 6, as those have that are built with three
            coefficients. Axes are scaled to unit length; a body that gets another mass or centre of mass keeps its
            inertia about that centre.

    Raises:
        ValueError: if `system` is none, there is no such name, with similar ones, a shape is wrong, or nothing can have
            a value, such as a negative mass. Traced values are judged by `jdyn.simulate`, which ends with
            `jdyn.Result.bad_model`. Numbers of other parts than models are taken as they are.
    """
    if not isinstance(system, System):
        return vary_model(system, changes)
    for name in changes:
        if re.split("[.:]", name)[0] not in (*PARTS, *OF_MODELS):
            raise ValueError(f"vary: {unknown('number', name, tuple(parameters(system)))}")
    apart = {name: value for name, value in changes.items() if name.partition(".")[0] in PARTS}
    model = vary_model(system.model, {name: x for name, x in changes.items() if name not in apart})
    system = dataclasses.replace(system, model=model)
    for name, value in apart.items():
        system = _changed(system, name, name, value)
    return system


def _numbers(tree) -> dict[str, Array]:
    """Numbers of a part by their paths; an empty path is the tree itself."""
    if isinstance(tree, Model):
        return numbers_of_model(tree)
    if _is_number(tree):
        return {"": jnp.asarray(tree)}
    found = {}
    for child, x in _children(tree).items():
        found |= {f"{child}.{name}" if name else child: number for name, number in _numbers(x).items()}
    return found


def _is_number(x) -> bool:
    # Equinox calls what traced arrays have no method for.
    return eqx.is_inexact_array(x) or (not eqx.is_array(x) and eqx.is_inexact_array_like(x))


def _children(tree) -> dict[str, Any]:
    """Parts of a part by name or by number."""
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        static = [field.name for field in dataclasses.fields(tree) if field.metadata.get("static")]
        return {name: x for name, x in vars(tree).items() if name not in static}
    if isinstance(tree, Mapping):
        return {str(name): x for name, x in tree.items()}
    if isinstance(tree, tuple | list):
        return dict(zip(_names(tree), tree, strict=True))
    return {}


def _names(parts) -> Sequence[str]:
    """Names of parts in a row: those of actuators, else numbers."""
    if parts and all(isinstance(part, Actuator) for part in parts):
        return Actuators(tuple(parts)).names
    return [str(i) for i in range(len(parts))]


def _changed(tree, path, name, value):
    """A part in which the number at a path is another one; `name` is what the user called it."""
    if isinstance(tree, Model):
        return vary_model(tree, {path: value})
    if not path:
        if not _is_number(tree):
            raise ValueError(f"vary: {short(name)} is no number, but a {type(tree).__name__}")
        old = jnp.asarray(tree)
        if np.ndim(value) > old.ndim:
            raise ValueError(
                f"{name}: expected {'a scalar' if old.ndim == 0 else f'shape {old.shape}'}, got shape "
                f"{np.shape(value)}; jax.vmap makes a batch of systems: jax.vmap(lambda x: jdyn.vary(system, "
                f"{{{name!r}: x}}))(values)"
            )
        return jnp.broadcast_to(shaped(name, value, old.dtype, *dict.fromkeys([(), old.shape])), old.shape)
    head, _, rest = path.partition(".")
    children = _children(tree)
    if head not in children:
        raise ValueError(f"vary: {short(name)}: {unknown('part', head, tuple(children))}")
    new = _changed(children[head], rest, name, value)
    if dataclasses.is_dataclass(tree):
        return eqx.tree_at(lambda tree: getattr(tree, head), tree, new, is_leaf=lambda x: x is children[head])
    if isinstance(tree, Mapping):
        return {key: new if str(key) == head else x for key, x in tree.items()}
    return type(tree)(new if name == head else x for name, x in children.items())
