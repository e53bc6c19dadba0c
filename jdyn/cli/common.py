"""Shared work of commands: load the robot that the words name, list numbers, write pictures."""

from __future__ import annotations

import contextlib
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

import jdyn
from jdyn.compile.compile_time import Times, timed
from jdyn.model import Model
from jdyn.simulation import System, Trajectory
from jdyn.sweep import Spec, random_start
from jdyn.sweep.spec import CONTACTS
from jdyn.terminal.messages import known
from jdyn.view import plots


@contextlib.contextmanager
def compiling() -> Iterator[Times]:
    """Say that it compiles, since nothing else is heard for a while, and find out how long that takes."""
    print("compiling ...", flush=True)
    with timed() as times:
        yield times


def load_robot(options, srdf: str | None = None) -> Model:
    return jdyn.load(options.robot, floating_base=options.floating_base, package_dirs=options.package_dir, srdf=srdf)


def load_all(options, srdf: str | None = None) -> System:
    """All of the robot's file."""
    return jdyn.load_system(
        options.robot, floating_base=options.floating_base, package_dirs=options.package_dir, srdf=srdf
    )


def load_scene(options) -> System:
    """All of the robot's file, with the contact and the limits that words ask for."""
    system = load_all(options, options.srdf)
    touch = system.contact
    if options.contact is not None or options.ground is not None:
        word = options.contact or "compliant"
        touch = None if word == "none" else CONTACTS[word]()
    return system.but(contact=touch, joint_limits=system.joint_limits if options.limits else None)


def start_of(options, system: System):
    """The configuration that words give by its numbers or its name, that of the file, or one drawn within the limits.

    Raises:
        ValueError: if a name stands beside others or numbers, or no file names such a configuration.
    """
    model, found = system.model, system.configurations
    if options.q0 is None:
        return found["qpos0"] if "qpos0" in found else random_start(model, options.seed)
    names = [word for word in options.q0 if isinstance(word, str)]
    if not names:
        return jnp.asarray(options.q0, model.dtype)
    if len(options.q0) > 1:
        raise ValueError(f"--q0: expected numbers or one name, got {' '.join(map(str, options.q0))}")
    if names[0] not in found:
        source = options.srdf or options.robot
        raise ValueError(f"--q0: {source} names no configuration {names[0]!r}; {known(names[0], [*found])}")
    return found[names[0]]


# How fast springs that hold joints are by the inertia that these see [rad/s].
HOLD = 100.0


def on_ground(options, system: System, q0) -> System:
    """The system, on the ground that words ask for, at a height or under what is lowest at the start.

    Raises:
        ValueError: if no shape could touch it, or the model has such ground already.
    """
    model = system.model
    if options.ground is None:
        return system
    level = jdyn.with_ground(model)
    pairs = [pair for pair in jdyn.contact.collision_pairs(level) if "ground" in pair]
    if not pairs:
        raise ValueError(f"--ground: {model.name!r} has no shapes that could touch it")
    lowest = options.ground == "lowest"
    height = float(jnp.min(jdyn.contact.distances(level, q0, pairs).distance) if lowest else options.ground)
    return system.but(model=jdyn.with_ground(model, (0, 0, height)))


def holding(model: Model, q0) -> jdyn.PD:
    """Springs and critical dampers that hold joints at a start; what floats is free."""
    inertia = jnp.diagonal(jdyn.mass_matrix(model, q0))
    for body, kind in enumerate(model.topology.kinds):
        if kind is jdyn.Free:
            inertia = inertia.at[model.topology.v_slice(body)].set(0)
    return jdyn.PD(model, q0, kp=HOLD**2 * inertia, kd=2 * HOLD * inertia)


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
