"""Shared work of commands: load the robot that the words name, list numbers, write pictures."""

from __future__ import annotations

import contextlib
import pathlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

import jdyn
from jdyn.compile.compile_time import Times, timed
from jdyn.contact import Contact, world_shapes
from jdyn.model import Model, ModelWarning
from jdyn.simulation import Trajectory
from jdyn.simulation.joint_limits import has_ends
from jdyn.sweep import Spec, random_start
from jdyn.sweep.spec import CONTACTS
from jdyn.terminal.messages import enumerated, known
from jdyn.view import plots


@contextlib.contextmanager
def compiling() -> Iterator[Times]:
    """Say that it compiles, since nothing else is heard for a while, and find out how long that takes."""
    print("compiling ...", flush=True)
    with timed() as times:
        yield times


def load_robot(options, srdf: str | None = None) -> Model:
    return jdyn.load(options.robot, floating_base=options.floating_base, package_dirs=options.package_dir, srdf=srdf)


def start_of(options, model: Model):
    """The configuration that words give by its numbers or its name, or one drawn within the limits.

    Raises:
        ValueError: if a name stands beside others or numbers, or no file names such a configuration.
    """
    if options.q0 is None:
        return random_start(model, options.seed)
    names = [word for word in options.q0 if isinstance(word, str)]
    if not names:
        return jnp.asarray(options.q0, model.dtype)
    if len(options.q0) > 1:
        raise ValueError(f"--q0: expected numbers or one name, got {' '.join(map(str, options.q0))}")
    source = options.srdf or options.robot
    found = jdyn.load_configurations(model, source, package_dirs=options.package_dir)
    if names[0] not in found:
        raise ValueError(f"--q0: {source} names no configuration {names[0]!r}; {known(names[0], [*found])}")
    return found[names[0]]


# How fast springs that hold joints are by the inertia that these see [rad/s].
HOLD = 100.0
# Contact models, by the words for them.


def contact_of(options) -> Contact | None:
    """Contact model between shapes; ground is there to be touched."""
    word = options.contact or (None if options.ground is None else "compliant")
    return None if word is None else CONTACTS[word]()


def on_ground(options, model: Model, q0) -> Model:
    """The model, with the ground that words ask for, at a height or under what is lowest at the start.

    Raises:
        ValueError: if no shape could touch it, or the model has such ground already.
    """
    if options.ground is None:
        return model
    level = jdyn.with_ground(model)
    pairs = [pair for pair in jdyn.contact.collision_pairs(level) if "ground" in pair]
    if not pairs:
        raise ValueError(f"--ground: {model.name!r} has no shapes that could touch it")
    lowest = options.ground == "lowest"
    height = float(jnp.min(jdyn.contact.distances(level, q0, pairs).distance) if lowest else options.ground)
    return jdyn.with_ground(model, (0, 0, height))


def holding(model: Model, q0) -> jdyn.PD:
    """Springs and critical dampers that hold joints at a start; what floats is free."""
    inertia = jnp.diagonal(jdyn.mass_matrix(model, q0))
    for body, kind in enumerate(model.topology.kinds):
        if kind is jdyn.Free:
            inertia = inertia.at[model.topology.v_slice(body)].set(0)
    return jdyn.PD(model, q0, kp=HOLD**2 * inertia, kd=2 * HOLD * inertia)


def let_go(options, model: Model, q0, v0, **more) -> Trajectory:
    """Its motion without motors; joints stop at the ends of their ranges, unless words say otherwise."""
    stops = jdyn.CompliantLimits() if options.limits and has_ends(model) else None
    contact = contact_of(options)
    if contact is None and (floors := world_shapes(model)):
        warnings.warn(
            f"bodies pass through {enumerated(floors)}: --contact compliant lets them touch, and simulate --q0 qpos0 "
            "starts where a MuJoCo file does",
            ModelWarning,
            stacklevel=2,
        )
    return jdyn.simulate(model, q0, v0, options.t1, joint_limits=stops, contact=contact, **more)


def read_spec(options, usual: Mapping[str, Any], entries_of: Callable[[Any], dict]) -> Spec:
    """The spec in the file that stands in a robot's place, or the one that words ask for.

    Args:
        options: The words.
        usual: What those are that a spec has, too, if they are left out.
        entries_of: From words to the entries of a spec.
    """
    if not str(options.robot).endswith(".toml"):
        robot = {"floating_base": options.floating_base, "package_dirs": options.package_dir or None}
        given = {name: value for name, value in robot.items() if value is not None}
        return Spec.of(entries_of(options) | given, f"jdyn {options.command}")
    if given := [name for name, value in usual.items() if getattr(options, name) != value]:
        words = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(f"{options.robot}: a spec says what {words} would; write it there")
    return Spec.read(options.robot)


def deepest(model) -> str:
    """The first of the bodies with the most joints between them and the world.

    Raises:
        ValueError: if nothing moves.
    """
    if not model.nb:
        raise ValueError(f"nothing of {model.name!r} moves: every link is fixed to the world")
    depths = [len(path) for path in model.topology.supports]
    return model.body_names[depths.index(max(depths))]


def default_path(command, robot) -> pathlib.Path:
    """The default path of a command's output, in the current folder."""
    name = re.sub(r"[^\w-]+", "_", robot)
    return pathlib.Path(f"{command}-{name}").resolve()


def listed(numbers) -> str:
    numbers = np.asarray(numbers)
    return "-" if np.all(np.isinf(numbers)) else " ".join(f"{number:.4g}" for number in np.ravel(numbers))


def draw_motion(options, motion: Trajectory):
    """Write the pictures that words ask for: energies above coordinates, and a movie."""
    if options.plot:
        figure = plots.Picture(figsize=(8, 6), layout="constrained")
        energies, coordinates = figure.subplots(2, sharex=True)
        plots.energy(motion, axes=energies)
        plots.trajectory(motion, axes=coordinates)
        energies.set(title=motion.system.model.name, xlabel="")
        write_picture(figure, options.plot)
    if options.movie:
        movie = jdyn.animate(motion, options.movie)
        print(f"movie:    {options.movie}, {movie.duration:.3g} s")


def write_picture(figure, path: pathlib.Path):
    figure.savefig(path, dpi=150)
    print(f"picture:  {path}")
