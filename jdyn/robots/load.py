"""Load any robot: by bundled name, from a file, or from its text."""

import difflib
import inspect
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jaxtyping import Array, Float

from jdyn.io import (
    Scene,
    load_mjcf,
    load_mjcf_configurations,
    load_mjcf_constraints,
    load_mjcf_mocap_poses,
    load_mjcf_scene,
    load_sdf,
    load_sdf_configurations,
    load_sdf_constraints,
    load_sdf_scene,
    load_srdf_configurations,
    load_urdf,
    load_urdf_scene,
)
from jdyn.io.xml import parse, read
from jdyn.model import Constraint, Model, ModelError
from jdyn.model.model import checked
from jdyn.model.shapes import HULL_VERTICES
from jdyn.robots.catalogue import ROBOTS
from jdyn.spatial import Transform
from jdyn.terminal.messages import short

_READERS = {"robot": load_urdf, "mujoco": load_mjcf, "sdf": load_sdf}
# What is not a URDF file, in messages.
_OTHERS = {
    None: "a bundled robot",
    "mujoco": "a MuJoCo file, whose <contact> says what may touch",
    "sdf": "an SDF file, whose <self_collide> says what may touch",
}


def load(
    source: str | os.PathLike,
    *,
    floating_base: bool | None = None,
    package_dirs: Sequence[str | os.PathLike] = (),
    srdf: str | os.PathLike | None = None,
    hull_vertices: int = HULL_VERTICES,
    arguments: Mapping[str, Any] | None = None,
    dtype=None,
) -> Model:
    """A model from a bundled robot's name, a URDF, xacro, SDF or MuJoCo file, or the text of one but xacro.

    Closed loops and other constraints of MuJoCo and SDF files are read by `jdyn.load_constraints`, the start of these
    files, the keyframes of MuJoCo files and the states of SRDF files by `jdyn.load_configurations`; all of a file
    together by `jdyn.load_system`.

    ```
    jdyn.load("panda")
    jdyn.load("robots/arm.urdf", package_dirs=["robots"], srdf="robots/arm.srdf")
    jdyn.load("robots/arm.urdf.xacro", package_dirs=["robots"], arguments={"prefix": "left_"})
    jdyn.load("worlds/arm.world", package_dirs=["models"])
    jdyn.load("<mujoco> ... </mujoco>")
    ```

    >>> model = jdyn.load("cartpole")
    >>> model.joint_names, model.nv
    (('rail', 'hinge'), 2)

    A xacro file is a program. Its expressions reach numbers, words, lists, YAML files and variables of the
    environment, and it includes files of its own folder, of its package and of `package_dirs`; whatever else is
    refused. But nothing limits its time and its memory: do not load such files of people whom you do not trust.

    An SDF file is read with all of its models, and those that it includes from the file's folder and `package_dirs`.
    In a world, names of links and joints begin with that of their model, as in `arm::hand`. Links that no joint holds
    are free, as SDF says; `floating_base=False` fixes them where the file has them.

    Args:
        source: A name in `jdyn.ROBOTS`; the path of a URDF (`<robot>`), an SDF (`<sdf>`) or a MuJoCo file (`<mujoco>`);
            or the text of one. A bundled name takes precedence over a file of the same name; write `./name` for the
            file. A URDF file whose name ends in `.xacro` is expanded first, for which `pip install "jdyn[xacro]"`.
        floating_base: Whether the base is free to move; the robot's or the file's own choice if left out.
        package_dirs: Folders to search for the `package://` and `model://` paths of a file, and for the `$(find ...)`
            of xacro: packages, or folders of packages.
        srdf: Path of an SRDF file, or its text, beside a URDF file: which of its links may not touch.
        hull_vertices: How many vertices the hulls have at most as which meshes of a file touch: more are nearer to the
            meshes, and slower.
        arguments: Values of the `<xacro:arg>` of a xacro file, by name.
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if there is no bundled robot of that name, it does not support the requested base, `srdf` or
            `arguments` are given for a file that cannot have them, or a folder of `package_dirs` does not exist.
        ModelError: (a `ValueError`) if a file or a text is not a valid robot; it lists every problem found.
        ImportError: if MuJoCo or xacro is needed, and not installed.
    """
    root = None if isinstance(source, str) and source in ROBOTS else _root(source)
    if srdf is not None and root != "robot":
        raise ValueError(f"srdf: expected a URDF file beside it, got {_OTHERS[root]}; leave out srdf")
    if arguments is not None and root != "robot":
        what = _OTHERS[root].partition(",")[0]
        raise ValueError(f"arguments: expected a xacro file, got {what}; leave out arguments")
    if root is None:
        return _bundled(str(source), floating_base, dtype)
    options: dict = {"hull_vertices": hull_vertices}
    options |= {"srdf": srdf, "arguments": arguments} if root == "robot" else {}
    return _READERS[root](source, floating_base=floating_base, package_dirs=package_dirs, dtype=dtype, **options)


def load_scene(
    source: str | os.PathLike,
    *,
    package_dirs: Sequence[str | os.PathLike] = (),
    srdf: str | os.PathLike | None = None,
    arguments: Mapping[str, Any] | None = None,
    **options: Any,
) -> Scene:
    """The model that `load` finds, with all else that the file says of a simulation. Arguments and errors are those of
    `load`."""
    root = None if isinstance(source, str) and source in ROBOTS else _root(source)
    if root == "robot":
        return load_urdf_scene(source, package_dirs=package_dirs, srdf=srdf, arguments=arguments, **options)
    if root is not None and srdf is None and arguments is None:
        load_all = load_mjcf_scene if root == "mujoco" else load_sdf_scene
        return load_all(source, package_dirs=package_dirs, **options)
    model = load(source, package_dirs=package_dirs, srdf=srdf, arguments=arguments, **options)
    return Scene(model, (), {}, touches=False)


def load_constraints(
    source: str | os.PathLike, *, package_dirs: Sequence[str | os.PathLike] = ()
) -> tuple[Constraint, ...]:
    """The constraints that a file has beyond the tree of its joints: `<equality>` of MuJoCo files, joints of SDF files
    that close loops.

    ```
    model, loops = jdyn.load("fourbar.xml"), jdyn.load_constraints("fourbar.xml")
    start = jdyn.assemble(model, loops, model.neutral())
    trajectory = jdyn.simulate(model, start.q, start.v, 2.0, constraints=loops)
    ```

    A connect becomes a `jdyn.constraints.Connect`, a weld a `jdyn.constraints.Weld`, a polynomial of a joint's
    coordinate a `jdyn.constraints.Gear`, a locked joint a `jdyn.constraints.PrescribedJoint`, a linear equality of
    tendons that add up joints a `jdyn.constraints.JointSum`. Polynomials of degree one that `jdyn.load` turns into
    mimic joints are not among them. What mocap bodies hold is `jdyn.constraints.Guided` by them, at their poses in the
    file until `jdyn.constraints.guide` moves them. Constraints are rigid, while MuJoCo's equalities are soft.

    >>> text = '''<mujoco><worldbody>
    ...   <body name="rod"><joint/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 -1"/></body>
    ... </worldbody><equality><connect body1="rod" anchor="0 0 -1"/></equality></mujoco>'''
    >>> [type(constraint).__name__ for constraint in jdyn.load_constraints(text)]
    ['Connect']

    Of SDF files, a revolute or continuous joint that closes a loop becomes a `jdyn.constraints.Hinge`, a ball joint a
    `jdyn.constraints.Connect`, a fixed one a `jdyn.constraints.Weld`.

    Args:
        source: As for `jdyn.load`. URDF files and bundled robots have none, but for joints that `<ros2_control>` alone
            couples, which `jdyn.load_system` reads.
        package_dirs: As for `jdyn.load`.

    Returns:
        The constraints, in the order of the file.

    Raises:
        ValueError: if there is no bundled robot of that name.
        ModelError: (a `ValueError`) if a file or a text is not a robot.

    Warns:
        ModelWarning: once, naming the equalities that are left out, and what about others is ignored.
    """
    if isinstance(source, str) and source in ROBOTS:
        return ()
    root = _root(source)
    if root == "robot":
        return ()
    return (load_mjcf_constraints if root == "mujoco" else load_sdf_constraints)(source, package_dirs=package_dirs)


def load_configurations(
    model: Model, source: str | os.PathLike, *, package_dirs: Sequence[str | os.PathLike] = ()
) -> dict[str, Float[Array, " nq"]]:
    """The configurations that a file names: the start of a MuJoCo or SDF file, the keyframes of a MuJoCo file, the
    states of an SRDF file.

    `model.neutral()` has zeros and identities, which are rarely a pose to start from: torsos of MuJoCo's robots would
    be in the floor. `"qpos0"` is the pose in which a MuJoCo or SDF file is written.

    ```
    ant = jdyn.load("ant.xml")
    start = jdyn.load_configurations(ant, "ant.xml")["qpos0"]
    talos = jdyn.load("talos.urdf", floating_base=True, srdf="talos.srdf")
    sitting = jdyn.load_configurations(talos, "talos.srdf")["half_sitting"]
    ```

    >>> text = '''<mujoco><worldbody>
    ...   <body name="ball" pos="0 0 2"><freejoint name="free"/><geom size="0.1"/></body>
    ... </worldbody><keyframe><key name="low" qpos="0 0 0.1 1 0 0 0"/></keyframe></mujoco>'''
    >>> ball = jdyn.load(text)
    >>> for name, q in jdyn.load_configurations(ball, text).items():
    ...     print(name, q)
    qpos0 [0. 0. 2. 1. 0. 0. 0.]
    low [0.  0.  0.1 1.  0.  0.  0. ]

    Args:
        model: The robot, with any base.
        source: The MuJoCo or SDF file that the robot is from (`<mujoco>`, `<sdf>`), or the SRDF file beside its URDF
            file (`<robot>`); a path, or the text. Bundled robots name no configurations.
        package_dirs: As for `jdyn.load`.

    Returns:
        Each configuration by its name. MuJoCo's keyframes without a name are `key0`, `key1`, ...; states of an SRDF
        file that share a name are `group/name`. What a state does not mention is where `model.neutral()` has it. In
        SRDF files quaternions are x, y, z, w, and `root_joint`, or a virtual joint of a link that floats, is the base.

    Raises:
        ValueError: if there is no bundled robot of that name, or the model has joints that the MuJoCo file lacks.
        ModelError: (a `ValueError`) if a file or a text cannot be read, or holds what is no configuration.

    Warns:
        ModelWarning: once, naming what is ignored of an SRDF file.
    """
    checked(model)
    if isinstance(source, str) and source in ROBOTS:
        return {}
    root = _root(source)
    if root == "robot":
        return load_srdf_configurations(model, source)
    of_file = load_mjcf_configurations if root == "mujoco" else load_sdf_configurations
    return of_file(model, source, package_dirs=package_dirs)


def load_mocap_poses(
    source: str | os.PathLike, *, package_dirs: Sequence[str | os.PathLike] = ()
) -> dict[str, dict[str, Transform]]:
    """Poses of the mocap bodies of a MuJoCo file where it starts and in its keyframes, for `jdyn.constraints.guide`.

    ```
    system, poses = jdyn.load_system("scene.xml"), jdyn.load_mocap_poses("scene.xml")
    held = system.but(constraints=jdyn.constraints.guide(system.constraints, poses["home"]))
    ```

    >>> text = '''<mujoco><worldbody>
    ...   <body name="hand" mocap="true" pos="0 0 1"/>
    ...   <body name="ball" pos="0 0 1"><freejoint/><geom size="0.1"/></body>
    ... </worldbody><equality><weld body1="hand" body2="ball"/></equality>
    ... <keyframe><key name="up" mpos="0 0 2" qpos="0 0 2 1 0 0 0"/></keyframe></mujoco>'''
    >>> for name, poses in jdyn.load_mocap_poses(text).items():
    ...     print(name, poses["hand"].translation)
    qpos0 [0. 0. 1.]
    up [0. 0. 2.]

    Args:
        source: As for `jdyn.load`. URDF files and bundled robots have no mocap bodies.
        package_dirs: As for `jdyn.load`.

    Returns:
        For `"qpos0"`, the pose in which the file is written, and each keyframe, named as by `jdyn.load_configurations`,
        the pose in the world of each mocap body by its name.

    Raises:
        ValueError: if there is no bundled robot of that name.
        ModelError: (a `ValueError`) if a file or a text is not a robot, or a keyframe has no such poses.
    """
    if (isinstance(source, str) and source in ROBOTS) or _root(source) == "robot":
        return {}
    return load_mjcf_mocap_poses(source, package_dirs=package_dirs)


def _root(source: str | os.PathLike) -> str:
    """The root element of a robot file."""
    if _is_bare_name(source):
        raise ValueError(_unknown_name(str(source)))
    text, label, _ = read(source, "URDF, SDF or MuJoCo")
    root = parse(text, label).tag
    if root not in _READERS:
        raise ModelError(
            f"{label}: the root element is <{root}>, expected <robot> (URDF), <sdf> (SDF) or <mujoco> (MuJoCo)"
        )
    return root


def _bundled(name: str, floating_base: bool | None, dtype) -> Model:
    maker = ROBOTS[name]
    if floating_base is None:
        return maker(dtype=dtype)
    if _takes_floating_base(maker):
        return maker(floating_base=floating_base, dtype=dtype)
    if floating_base:
        able = ", ".join(other for other, maker in ROBOTS.items() if _takes_floating_base(maker))
        raise ValueError(
            f"floating_base: the bundled {name!r} is bolted to the world, and the inertia of its base is unknown; "
            f"leave out floating_base, or use one of {able}"
        )
    return maker(dtype=dtype)


def _takes_floating_base(maker) -> bool:
    return "floating_base" in inspect.signature(maker).parameters


def _is_bare_name(source) -> bool:
    """Tell whether a string is neither XML nor an existing path, and resembles neither."""
    if not isinstance(source, str) or source.lstrip("\ufeff \t\r\n")[:1] in ("<", ""):
        return False
    return not re.search(r"[/\\.\n]", source) and not os.path.exists(source)


def _unknown_name(name: str) -> str:
    close = difflib.get_close_matches(name, ROBOTS, n=1)
    return (
        f"no bundled robot is called {short(name)}"
        + (f"; did you mean {close[0]!r}?" if close else ".")
        + f" There are {', '.join(ROBOTS)}. load also takes the path of a URDF (.urdf), an SDF (.sdf) or a MuJoCo "
        "(.xml) file, or the text of one"
    )
