"""Distances of the shapes of robots, against coal's."""

import pathlib
import warnings

import coal
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

import jdyn
from jdyn.contact import colliders

pytestmark = [pytest.mark.fast_compile, pytest.mark.slow]

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs/mujoco/assets"
# coal's own error where shapes are curved.
CURVED = 1e-6


def coal_shape(entry, size):
    match entry.kind:
        case "plane":
            return coal.Halfspace(np.array([0.0, 0, 1]), 0.0)
        case "sphere":
            return coal.Sphere(size[0])
        case "capsule":
            return coal.Capsule(size[0], size[1])
        case "box":
            return coal.Box(size)
        case "cylinder":
            return coal.Cylinder(size[0], size[1])
        case "ellipsoid":
            return coal.Ellipsoid(size)
        case _:
            points = coal.StdVec_Vec3s()
            for vertex in trimesh.load(entry.path).vertices:
                points.append(vertex * size)
            return coal.ConvexBase.convexHull(points, False, "Qt")


def coals_distances(model, q, pairs):
    found, poses = colliders(model), jdyn.forward_kinematics(model, q)
    shapes = {}
    for row, entry in enumerate(found.entries):
        X = jax.tree.map(lambda leaf, row=row: leaf[row], found.placements)
        if entry.body >= 0:
            X = jax.tree.map(lambda leaf, body=entry.body: leaf[body], poses) @ X
        placed = coal.Transform3s(np.array(X.rotation), np.array(X.translation))
        shapes[entry.name] = coal_shape(entry, np.array(found.sizes[row])), placed
    request = coal.DistanceRequest()
    request.gjk_tolerance = 1e-9
    request.gjk_max_iterations = 1000
    return np.array([coal.distance(*shapes[a], *shapes[b], request, coal.DistanceResult()) for a, b in pairs])


with warnings.catch_warnings():
    warnings.simplefilter("ignore", jdyn.ModelWarning)
    HUMANOID = jdyn.load(ASSETS / "humanoid.xml")


def test_distances_of_a_humanoid_are_coals():
    found = jax.jit(jax.vmap(lambda q: jdyn.contact.distances(HUMANOID, q)))
    qs = jax.vmap(HUMANOID.random)(jax.random.split(jax.random.key(0), 4))
    ours = found(qs)
    pairs = jdyn.contact.collision_pairs(HUMANOID)
    for q, distance in zip(qs, ours.distance, strict=True):
        np.testing.assert_allclose(distance, coals_distances(HUMANOID, q, pairs), atol=1e-9)
    np.testing.assert_allclose(ours.b - ours.a, ours.distance[:, :, None] * ours.normal, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(ours.normal, axis=2), 1, rtol=1e-13)


def zoo(tmp_path):
    """A body of each kind above ground."""
    trimesh.creation.icosahedron().export(tmp_path / "ball.stl")
    sizes = {"sphere": 0.3, "capsule": (0.2, 0.5), "box": (0.3, 0.5, 0.7), "cylinder": (0.3, 0.5),
             "ellipsoid": (0.2, 0.3, 0.4), "mesh": (0.3, 0.4, -0.5)}  # fmt: skip
    builder = jdyn.Builder("zoo")
    for kind, size in sizes.items():
        builder.add_link(kind, jdyn.Free(), mass=1.0, inertia=0.1)
        builder.add_shape(kind, kind, size, role="collision", path=tmp_path / "ball.stl" if kind == "mesh" else None)
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def test_distances_of_every_kind_are_coals(tmp_path):
    model, rng = zoo(tmp_path), np.random.default_rng(0)
    q = np.concatenate([rng.uniform(-1, 1, (6, 3)) * 3 + [0, 0, 4], rng.normal(size=(6, 4))], axis=1)
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    exact, curved = [("capsule", "sphere"), ("mesh", "box")], [("cylinder", "ellipsoid")]
    pairs = exact + [(kind, "ground") for kind in model.body_names] + curved
    ours = np.asarray(jdyn.contact.distances(model, jnp.array(q.ravel()), pairs).distance)
    theirs = coals_distances(model, jnp.array(q.ravel()), pairs)
    assert np.all(theirs > 0)
    np.testing.assert_allclose(ours[:-1], theirs[:-1], atol=1e-9)
    np.testing.assert_allclose(ours[-1], theirs[-1], atol=CURVED)


def test_derivatives_of_distances_are_those_of_differences():
    q = HUMANOID.random(jax.random.key(1))
    way = np.random.default_rng(0).normal(size=HUMANOID.nv)

    def along(s):
        return jdyn.contact.distances(HUMANOID, HUMANOID.integrate(q, s * jnp.array(way))).distance

    _, forward = jax.jvp(along, (0.0,), (1.0,))
    h = 1e-5
    np.testing.assert_allclose(forward, (along(h) - along(-h)) / (2 * h), atol=1e-6)
    weights = jnp.array(np.random.default_rng(1).normal(size=len(forward)))
    backward = jax.grad(lambda s: weights @ along(s))(0.0)
    np.testing.assert_allclose(backward, weights @ forward, rtol=1e-11)
