"""MJCF robots: compiled by MuJoCo itself, translated to jdyn's builder.

Each MuJoCo body becomes a body with the same name and frame, except that

- several joints on one body become a chain of massless bodies `body/joint`, and the last joint moves the body itself;
- a hinge or ball joint with a nonzero `pos` turns about a point other than the body's origin: its child frame is at
  that point and is called `body/joint`, and the MuJoCo body becomes a frame fixed to it;
- a body without joints is lumped into its parent and becomes a frame. Sites become frames.

The full configuration `model.expand(q)` is MuJoCo's `qpos`: hinge and slide coordinates include `ref`, and a free
joint's coordinates are its pose in the world. Velocities are MuJoCo's `qvel`, except for free joints: `qvel` holds the
linear velocity in world axes, then the angular velocity in body axes; jdyn's `v` holds the angular, then the linear
velocity, both in body axes.
"""

import contextlib
import os
import re
import threading
import warnings
from collections.abc import Iterable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.io import mjcf_source
from jdyn.io.mjcf_actuators import actuators
from jdyn.io.mjcf_configurations import configurations, mocap_poses
from jdyn.io.mjcf_constraints import constraint, open_equalities
from jdyn.io.mjcf_elements import elements
from jdyn.io.mjcf_ignored import ignored, ignored_in_constraints, ignored_in_scene, on_demand
from jdyn.io.mjcf_sensors import sensors
from jdyn.io.mjcf_source import Document
from jdyn.io.mjcf_tendons import joint_elements, tendon_elements
from jdyn.io.mjcf_translation import Translation
from jdyn.io.scene import Scene
from jdyn.model import Builder, Constraint, Model, ModelError, ModelWarning
from jdyn.model.shapes import HULL_VERTICES
from jdyn.spatial import Transform
from jdyn.terminal.messages import listed

_INSTALL = 'pip install "jdyn[mjcf]"'
_warning_handler = threading.Lock()


def load_mjcf(
    source: str | os.PathLike,
    *,
    floating_base: bool | None = None,
    package_dirs: Iterable[str | os.PathLike] = (),
    hull_vertices: int = HULL_VERTICES,
    dtype=None,
) -> Model:
    """Load a MuJoCo model. MuJoCo itself compiles it: `pip install "jdyn[mjcf]"`.

    This translates masses, inertias, placements, gravity, sites, shapes, joints with their damping, friction loss,
    springs, armature and limits, plain motors (as effort limits), and joint equalities `q1 = c0 + c1 q2` (as mimic
    joints). Shapes are the geoms that MuJoCo's viewers draw at first, those of the groups 0 to 2, and those that can
    touch; others, which are neither seen nor felt there, are left out. The same pairs of them may touch as in MuJoCo,
    by its bits, its filter of neighbours, `<exclude>` and `<pair>`, with the same friction, and from the same margin.
    `load_mjcf_constraints` reads other equalities. One warning names everything that would change the motion in MuJoCo.

    Args:
        source: Path of a MuJoCo `.xml` file, or its text.
        floating_base: `True` frees the single root body if it is fixed to the world, `False` fixes every free body at
            its pose in the file, `None` follows the file.
        package_dirs: Folders, besides the file's own, from which included files and meshes may be read.
        hull_vertices: How many vertices the hulls have at most as which meshes touch.
        dtype: Floating type of the leaves; JAX's default if left out.

    Returns:
        The model. See `jdyn.io.mjcf` for how its bodies and coordinates relate to MuJoCo's.

    Raises:
        ModelError: if the file cannot be read, MuJoCo refuses it, or it is not a valid mechanism.
        ValueError: naming folders of `package_dirs` that do not exist.
        ImportError: if `mujoco` is not installed.

    Warns:
        ModelWarning: once, naming everything that is ignored or suspicious.
    """
    translation, messages = _translated(source, package_dirs, floating_base)
    kinds = {"not simulated": ignored(translation), "simulated if asked for": on_demand(translation)}
    return _warned(translation, hull_vertices, kinds | {"MuJoCo says": messages}).build(dtype=dtype)


def load_mjcf_scene(
    source: str | os.PathLike,
    *,
    floating_base: bool | None = None,
    package_dirs: Iterable[str | os.PathLike] = (),
    hull_vertices: int = HULL_VERTICES,
    dtype=None,
) -> Scene:
    """Load all of a MuJoCo file that can be simulated: the results of `load_mjcf`, `load_mjcf_constraints` and
    `load_mjcf_configurations` together, sensors, what acts on tendons, the medium and carried weight, with one warning
    about the rest. Arguments and errors are theirs."""
    translation, messages = _translated(source, package_dirs, floating_base)
    kinds = {"not simulated": ignored_in_scene(translation), "MuJoCo says": messages}
    model = _warned(translation, hull_vertices, kinds).build(dtype=dtype)
    constraints = tuple(constraint(translation, equality) for equality in open_equalities(translation)[0])
    return Scene(
        model,
        constraints,
        _configurations(translation, model),
        touches=True,
        actuators=actuators(translation),
        sensors=sensors(translation, model),
        elements=(
            *tendon_elements(translation),
            *joint_elements(translation),
            *elements(translation, model),
        ),
        contact=not translation.disabled("CONTACT", "CONSTRAINT"),
        stops=not translation.disabled("LIMIT", "CONSTRAINT"),
    )


def load_mjcf_constraints(
    source: str | os.PathLike, *, package_dirs: Iterable[str | os.PathLike] = ()
) -> tuple[Constraint, ...]:
    """The equalities of a MuJoCo model as constraints on what `load_mjcf` makes of it, however its base is.

    A connect becomes a `jdyn.constraints.Connect`, a weld a `jdyn.constraints.Weld` or, with a `torquescale` of zero, a
    `jdyn.constraints.Connect`. Joint equalities that `load_mjcf` does not turn into mimic joints become a
    `jdyn.constraints.Gear`, or a `jdyn.constraints.PrescribedJoint` if they have one joint. Equalities of tendons that
    add up joints become a `jdyn.constraints.JointSum`, if they are linear. What mocap bodies hold is
    `jdyn.constraints.Guided` by them. What the file switches off is left out.
    Constraints are rigid, MuJoCo's equalities are soft.

    Args:
        source: As for `load_mjcf`.
        package_dirs: As for `load_mjcf`.

    Returns:
        The constraints, in the order of the file.

    Raises:
        ModelError: if the file cannot be read, or MuJoCo refuses it.
        ImportError: if `mujoco` is not installed.

    Warns:
        ModelWarning: once, naming everything that is ignored.
    """
    translation, _ = _translated(source, package_dirs)
    messages = [f"not simulated: {message}" for message in ignored_in_constraints(translation)]
    if messages:
        warnings.warn(listed(translation.builder.source, "warning", messages), ModelWarning, stacklevel=2)
    return tuple(constraint(translation, equality) for equality in open_equalities(translation)[0])


def load_mjcf_configurations(
    model: Model, source: str | os.PathLike, *, package_dirs: Iterable[str | os.PathLike] = ()
) -> dict[str, Float[Array, " nq"]]:
    """The configurations that a MuJoCo file names: `"qpos0"`, the pose in which it is written, and its keyframes.

    Args:
        model: What `load_mjcf` makes of the file, with any base.
        source: As for `load_mjcf`.
        package_dirs: As for `load_mjcf`.

    Returns:
        Each configuration in the coordinates of the model, by name; keyframes without one are `key0`, `key1`, ...
        Those of models that the file attaches are not among them.

    Raises:
        ModelError: if the file cannot be read, MuJoCo refuses it, or a keyframe is not a configuration.
        ValueError: if the model has joints that the file lacks.
        ImportError: if `mujoco` is not installed.
    """
    return _configurations(_translated(source, package_dirs)[0], model)


def load_mjcf_mocap_poses(
    source: str | os.PathLike, *, package_dirs: Iterable[str | os.PathLike] = ()
) -> dict[str, dict[str, Transform]]:
    """Poses of the mocap bodies of a MuJoCo file where it starts, `"qpos0"`, and in its keyframes, as
    `jdyn.load_mocap_poses` describes them, with its errors."""
    found = mocap_poses(_translated(source, package_dirs)[0])
    # Not one map over all: it would sort the names.
    return {
        name: {body: jax.tree.map(lambda x: jnp.asarray(x, float), pose) for body, pose in poses.items()}
        for name, poses in found.items()
    }


def _configurations(translation, model):
    named = configurations(translation, model)
    return {name: jax.device_put(np.asarray(q, model.dtype)) for name, q in named.items()}


def _warned(translation: Translation, hull_vertices: int, kinds: dict[str, list[str]]) -> Builder:
    """Builder of a file's model, with warnings of several kinds."""
    builder = translation.builder
    builder.hull_vertices = hull_vertices
    for kind, messages in kinds.items():
        for message in messages:
            builder.warning(f"{kind}: {message}")
    return builder


def _translated(source, package_dirs, floating_base=None) -> tuple[Translation, list[str]]:
    """A file's model, and MuJoCo's warnings."""
    mujoco = _mujoco()
    document = mjcf_source.read(source, package_dirs)
    compiled, messages = compile_document(mujoco, document)
    return Translation(mujoco, compiled, document, floating_base), messages


def _mujoco():
    try:
        import mujoco
    except ModuleNotFoundError as error:
        if error.name != "mujoco":
            raise
        raise ImportError(f"MJCF files are compiled by MuJoCo, which is not installed: {_INSTALL}") from None
    if int(mujoco.__version__.split(".")[0]) < 4:
        raise ImportError(f"MJCF files need MuJoCo 4, got {mujoco.__version__}: {_INSTALL}")
    return mujoco


def compile_document(mujoco, document: Document):
    """MuJoCo's compiled model, and MuJoCo's warnings."""
    with _warnings_of(mujoco) as messages:
        try:
            return mujoco.MjModel.from_xml_string(document.text, document.assets), messages
        except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
            refusal = _in_words(str(error), document)
    raise ModelError(f"{document.label}: MuJoCo refuses it: {refusal}")


@contextlib.contextmanager
def _warnings_of(mujoco) -> Iterator[list[str]]:
    """Collect MuJoCo's warnings instead of letting it print them and write them to a file in the working folder."""
    messages: list[str] = []
    with _warning_handler:
        previous = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda message: messages.append(" ".join(message.split())))
        try:
            yield messages
        finally:
            mujoco.set_mju_user_warning(previous)


def _in_words(message: str, document: Document) -> str:
    """MuJoCo's message in one line, with the file names and line numbers of the user's files."""

    def origin(match: re.Match) -> str:
        number = int(match[1])
        return document.lines[number - 1] if 0 < number <= len(document.lines) else match[0]

    text = "; ".join(line.strip() for line in message.splitlines() if line.strip())
    text = re.sub(r"^(XML )?Error: ", "", text)
    text = re.sub(r"Element name '', id \d+, ", "", text)
    for key, path in document.paths.items():
        text = text.replace(key, path)
    return re.sub(r"\bline (\d+)", origin, text)
