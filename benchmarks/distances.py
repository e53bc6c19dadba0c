"""Distances and contact points of the shapes of robots, beside coal's and MuJoCo's, on one core.

`taskset -c 0 python -m benchmarks.distances` prints, for each robot, seconds to compile, microseconds of one state and
of one of a batch, and how far distances are from coal's. coal (through Pinocchio) and MuJoCo get the shapes where they
are, jdyn's functions find their poses as well. MuJoCo looks for contacts alone: pairs whose boxes are apart cost it
nothing. With `--boxes` it prints what contact points of many boxes cost, of all pairs and of the nearest.
"""

import argparse
import dataclasses
import pathlib
import time
import warnings

import coal
import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

import jdyn
from benchmarks.clock import measure
from jdyn.contact import colliders, contact_points

BATCH = 1024
_ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def robots() -> dict[str, tuple[jdyn.Model, mujoco.MjModel | None]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jdyn.ModelWarning)
        humanoid = jdyn.load(_ASSETS / "humanoid.xml")
    return {
        "humanoid": (humanoid, mujoco.MjModel.from_xml_path(str(_ASSETS / "humanoid.xml"))),
        "quadruped": (jdyn.with_ground(jdyn.load("quadruped")), None),
    }


def coal_pairs(model: jdyn.Model) -> tuple[pin.GeometryModel, pin.GeometryData]:
    """The shapes of a model, without joints, and its pairs."""
    found, geometry = colliders(model), pin.GeometryModel()
    for entry, size in zip(found.entries, np.asarray(found.sizes, float), strict=True):
        shape = {
            "plane": lambda size: coal.Halfspace(np.array([0.0, 0, 1]), 0.0),
            "sphere": lambda size: coal.Sphere(size[0]),
            "capsule": lambda size: coal.Capsule(size[0], size[1]),
            "box": lambda size: coal.Box(size),
            "cylinder": lambda size: coal.Cylinder(size[0], size[1]),
            "ellipsoid": lambda size: coal.Ellipsoid(size),
        }[entry.kind](size)
        geometry.addGeometryObject(pin.GeometryObject(entry.name, 0, pin.SE3.Identity(), shape))
    for first, second in found.pairs:
        geometry.addCollisionPair(pin.CollisionPair(first, second))
    return geometry, pin.GeometryData(geometry)


def placed(model: jdyn.Model, data: pin.GeometryData, q) -> None:
    found, poses = colliders(model), jdyn.forward_kinematics(model, q)
    for number, entry in enumerate(found.entries):
        X = jax.tree.map(lambda leaf, number=number: leaf[number], found.placements)
        if entry.body >= 0:
            X = jax.tree.map(lambda leaf, body=entry.body: leaf[body], poses) @ X
        data.oMg[number] = pin.SE3(np.array(X.rotation, float), np.array(X.translation, float))


def compiled(function, *arguments):
    began = time.perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    return time.perf_counter() - began, lambda: jax.block_until_ready(program(*arguments))


def microseconds(call, states: int = 1) -> float:
    return 1e6 * float(np.median(measure(call, 7, 20.0)["cpu_s"])) / states


def of_robot(name: str, model: jdyn.Model, twin: mujoco.MjModel | None) -> None:
    qs = jax.vmap(model.random)(jax.random.split(jax.random.key(0), BATCH))
    found, bare = colliders(model), model.without_shapes()
    print(f"\n{name}: {len(found.entries)} shapes, {len(found.pairs)} pairs")
    print(f"{'':24}{'one [us]':>10}{f'of {BATCH}':>10}{'compiling both [s]':>20}")
    functions = {
        "distances": lambda model, found, q: jdyn.contact.distances(model, q).distance,
        "contact points": lambda model, found, q: contact_points(found, jdyn.forward_kinematics(model, q)),
    }
    for what, function in functions.items():
        given = model if what == "distances" else bare
        one, single = compiled(function, given, found, qs[0])
        many, batch = compiled(jax.vmap(function, (None, None, 0)), given, found, qs)
        times = f"{microseconds(single):10.1f}{microseconds(batch, BATCH):10.2f}"
        print(f"{'jdyn ' + what:24}{times}{one:12.1f}{many:8.1f}", flush=True)
    geometry, data = coal_pairs(model)
    errors = []
    for q in qs[:20]:
        placed(model, data, q)
        pin.computeDistances(geometry, data)
        theirs = np.array([result.min_distance for result in data.distanceResults])
        ours = np.asarray(jdyn.contact.distances(model, q).distance)
        errors.append(np.max(np.abs(ours - theirs)[theirs > 1e-3], initial=0.0))
    print(f"{'coal distances':24}{microseconds(lambda: pin.computeDistances(geometry, data)):10.1f}")
    print(f"largest difference from coal where apart: {max(errors):.1e} m")
    if twin is not None:
        d = mujoco.MjData(twin)
        mujoco.mj_integratePos(twin, d.qpos, np.random.default_rng(0).normal(size=twin.nv), 1.0)
        mujoco.mj_kinematics(twin, d)
        print(f"{'MuJoCo collision':24}{microseconds(lambda: mujoco.mj_collision(twin, d)):10.1f}")


def lattice(count: int) -> tuple[jdyn.Model, jax.Array]:
    """Boxes that float, turned at random, some of which touch."""
    builder, rng = jdyn.Builder("boxes"), np.random.default_rng(0)
    for number in range(count):
        builder.add_link(f"box{number}", jdyn.Free(), mass=1.0, inertia=0.1)
        builder.add_shape(f"box{number}", "box", (0.2, 0.2, 0.2), role="collision")
    side = int(np.ceil(count ** (1 / 3)))
    places = 0.32 * np.stack(np.unravel_index(np.arange(count), (side, side, side)), axis=-1)
    turns = rng.normal(size=(count, 4))
    q = np.concatenate([places, turns / np.linalg.norm(turns, axis=1)[:, None]], axis=1)
    return builder.build(), jnp.array(q.ravel())


def of_boxes() -> None:
    print(f"{'boxes':>6}{'pairs':>7}{'looked at':>11}{'one state [us]':>16}{'compiling [s]':>15}{'missed':>8}")
    for count in (10, 20, 30, 50, 100):
        model, q = lattice(count)
        found, poses = colliders(model), jdyn.forward_kinematics(model, q)
        for nearest in (None, 4 * count):
            chosen = dataclasses.replace(found, nearest=nearest)
            seconds, call = compiled(contact_points, chosen, poses)
            missed = bool(jnp.any(jnp.isnan(call()[0].distance)))
            looked = len(found.pairs) if nearest is None else min(nearest, len(found.pairs))
            print(f"{count:6}{len(found.pairs):7}{looked:11}{microseconds(call):16.1f}{seconds:15.1f}{missed!s:>8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boxes", action="store_true", help="many boxes instead of robots")
    if parser.parse_args().boxes:
        return of_boxes()
    for name, (model, twin) in robots().items():
        of_robot(name, model, twin)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
