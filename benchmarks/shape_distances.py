"""Distances of two shapes: `python -m benchmarks.shape_distances`, float64, one core.

For every two kinds, random poses of which about half overlap. Processor time a pair of `jdyn.geometry.separation`,
vmapped in one batch, beside the time to lower and to compile it; of coal and of MuJoCo's `mj_geomDistance`, which take
one pair a call from Python; and of MJX, one batch as well, in a process of --peer-python (benchmarks/peers.txt). MJX
looks for contacts, and has no distances of most shapes that are apart, nor every pair. `proved` is the largest
difference between jdyn's distance and how far the support functions of both shapes are apart along its normal, which no
distance of shapes that are apart can undercut; the last columns are the largest differences of the others' distances
from jdyn's: of coal and MuJoCo where shapes are apart, infinite where coal finds none; of MJX where they overlap.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

import coal
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.processes import ONE_THREAD, inherited
from benchmarks.shape_child import placed, seconds
from jdyn.geometry import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, Sphere, separation
from jdyn.spatial import Transform

FAR = 10.0


def shapes():
    points = np.random.default_rng(0).normal(size=(40, 3))
    return {
        "sphere": Sphere(jnp.array(0.3)),
        "capsule": Capsule(jnp.array(0.1), jnp.array(0.7)),
        "box": Box(jnp.array([0.3, 0.5, 0.8])),
        "cylinder": Cylinder(jnp.array(0.3), jnp.array(0.7)),
        "ellipsoid": Ellipsoid(jnp.array([0.2, 0.3, 0.5])),
        "hull": ConvexHull.of(0.4 * points / np.linalg.norm(points, axis=1, keepdims=True)),
    }


def poses(count):
    rng = np.random.default_rng(1)
    places = rng.normal(size=(count, 3)) * 0.7 * rng.uniform(size=(count, 1))
    return Transform(jnp.array(Rotation.random(count, random_state=2).as_matrix()), jnp.array(places))


def by_jdyn(a, b, X):
    def one(a, b, X):
        return separation(a, Transform.identity(), b, X)

    start = time.process_time()
    lowered = jax.jit(jax.vmap(one, in_axes=(None, None, 0))).lower(a, b, X)
    middle = time.process_time()
    program = lowered.compile()
    waits = middle - start, time.process_time() - middle
    found = program(a, b, X)

    def gap(X, normal):
        far = X.point_to_parent(b.support(-(X.rotation.T @ normal)))
        return normal @ (far - a.support(normal))

    proved = np.max(np.abs(jax.vmap(gap)(X, found.normal) - found.distance))
    return np.asarray(found.distance), waits, seconds(lambda: jax.block_until_ready(program(a, b, X))), proved


def by_coal(a, b, X):
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance, request.epa_tolerance = 1e-13, 1e-11
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    first, second, here = of_coal(a), of_coal(b), coal.Transform3s.Identity()
    places = [coal.Transform3s(R, p) for R, p in zip(np.asarray(X.rotation), np.asarray(X.translation), strict=True)]
    found = np.zeros(len(places))

    def all_pairs():
        for k, place in enumerate(places):
            result.clear()
            found[k] = coal.distance(first, here, second, place, request, result)

    taken = seconds(all_pairs)
    return np.where(np.abs(found) < FAR, found, np.inf), taken


def by_mujoco(a, b, X):
    model, data, rotations, places = placed(mujoco, _two_geoms(a, b, X))
    line, found = np.zeros(6), np.zeros(len(places))

    def all_pairs():
        for k in range(len(found)):
            data.geom_xpos[1], data.geom_xmat[1] = places[k], rotations[k].ravel()
            found[k] = mujoco.mj_geomDistance(model, data, 0, 1, FAR, line)

    taken = seconds(all_pairs)
    return found, taken


def by_mjx(a, b, X, python, core):
    """NaN where MJX is not installed, or does not have the pair."""
    environment = {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    # -E: PYTHONPATH belongs to this interpreter, not to another one.
    child = subprocess.run(
        ["taskset", "-c", str(core), python, *([] if python == sys.executable else ["-E"]), "-m",
         "benchmarks.shape_child"],
        input=json.dumps(_two_geoms(a, b, X)) + "\n", cwd=pathlib.Path(__file__).parents[1], text=True,
        capture_output=True, env={**inherited(), **environment, **dict.fromkeys(ONE_THREAD, "1")},
    )  # fmt: skip
    answer = json.loads(child.stdout or '{"error": "its process has ended"}')
    if "error" in answer:
        return np.full(len(X.translation), np.nan), np.nan
    return np.array(answer["distance"]), answer["cpu_s"]


def _two_geoms(a, b, X):
    """A model of both shapes, and poses of the second one's body."""
    xml = (
        f"<mujoco><option ccd_tolerance='1e-12' ccd_iterations='500'/><asset>{_mesh(a, 'a')}{_mesh(b, 'b')}</asset>"
        f"<worldbody><geom {_geom(a, 'a')}/><body><freejoint/><geom {_geom(b, 'b')}/></body></worldbody></mujoco>"
    )
    return {"xml": xml, "rotations": np.asarray(X.rotation).tolist(), "places": np.asarray(X.translation).tolist()}


def of_coal(shape):
    """A shape as coal has it."""
    if not isinstance(shape, ConvexHull):
        sizes = [float(x) for leaf in jax.tree.leaves(shape) for x in np.ravel(leaf)]
        return getattr(coal, type(shape).__name__)(*sizes)
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    points.extend(np.asarray(shape.vertices))
    for face in np.asarray(shape.faces):
        triangles.append(coal.Triangle(*map(int, face)))
    return coal.Convex(points, triangles)


def _mesh(shape, name):
    if not isinstance(shape, ConvexHull):
        return ""
    return f"<mesh name='{name}' vertex='{' '.join(map(str, np.ravel(shape.vertices)))}'/>"


def _geom(shape, name):
    if isinstance(shape, ConvexHull):
        return f"type='mesh' mesh='{name}'"
    sizes = {
        Sphere: lambda: [shape.radius],
        Capsule: lambda: [shape.radius, shape.length / 2],
        Box: lambda: shape.sides / 2,
        Cylinder: lambda: [shape.radius, shape.length / 2],
        Ellipsoid: lambda: shape.radii,
    }[type(shape)]()
    return f"type='{type(shape).__name__.lower()}' size='{' '.join(str(float(x)) for x in sizes)}'"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1024, help="pairs in a batch")
    parser.add_argument("--pairs", help="for instance box-box,cylinder-hull; all if left out")
    parser.add_argument("--core", type=int, default=0, help="the processor to run on")
    parser.add_argument("--peer-python", default=sys.executable, help="the interpreter that has MJX")
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    every, X = shapes(), poses(options.count)
    pairs = itertools.combinations_with_replacement(every, 2)
    if options.pairs:
        pairs = [tuple(pair.split("-")) for pair in options.pairs.split(",")]
    print(f"{options.count} pairs, float64, one core; times in µs a pair, of lowering and compiling in s")
    print("pair                  lower compile   jdyn   coal mujoco     MJX   proved", end=" ")
    print(" coal differs mujoco differs MJX differs")
    for first, second in pairs:
        a, b = every[first], every[second]
        distance, (lowering, compiling), taken, proved = by_jdyn(a, b, X)
        others = [by_coal(a, b, X), by_mujoco(a, b, X), by_mjx(a, b, X, options.peer_python, options.core)]
        times = [1e6 * t / options.count for t in (taken, *(taken for _, taken in others))]
        where = distance > 1e-6, distance > 1e-6, distance < -1e-6
        differ = [
            np.max(np.abs(theirs - distance)[rows], initial=0) for (theirs, _), rows in zip(others, where, strict=True)
        ]
        print(
            f"{first + ' ' + second:21s} {lowering:5.2f} {compiling:7.2f} {times[0]:6.2f} {times[1]:6.2f} "
            f"{times[2]:6.2f} {times[3]:7.2f} {proved:8.1e} {differ[0]:13.1e} {differ[1]:14.1e} {differ[2]:11.1e}",
            flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
