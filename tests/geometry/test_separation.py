"""Distances of shapes.

What proves a distance of shapes that are apart: points of both at that distance, and a plane's normal along which their
support functions are as far from each other, which no pair of points can undercut.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.spatial.transform import Rotation

from jdyn.geometry import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, HalfSpace, HeightField, Sphere, separation
from jdyn.spatial import Transform, quaternion_exp, quaternion_to_matrix, skew

pytestmark = pytest.mark.fast_compile


def _hull(seed, dtype=float):
    return ConvexHull.of(np.random.default_rng(seed).normal(size=(12, 3)) * 0.3, dtype)


SHAPES = {
    "sphere": Sphere(jnp.array(0.2)),
    "capsule": Capsule(jnp.array(0.1), jnp.array(0.7)),
    "box": Box(jnp.array([0.3, 0.5, 0.8])),
    "cylinder": Cylinder(jnp.array(0.3), jnp.array(0.7)),
    "ellipsoid": Ellipsoid(jnp.array([0.2, 0.3, 0.5])),
    "hull": _hull(0),
}
PAIRS = list(itertools.combinations_with_replacement(SHAPES, 2))
# Of curved ones that others show.
OF_OTHERS = [
    *((kind, "ellipsoid") for kind in ("box", "capsule", "cylinder", "ellipsoid")), ("ellipsoid", "hull"),
    ("box", "cylinder"), ("capsule", "cylinder"),
]  # fmt: skip
# One of each way to find it, and of each way for shapes to be where they are nearest.
SOME = [
    ("sphere", "ellipsoid"),
    ("box", "hull"),
    ("capsule", "capsule"),
    pytest.param("cylinder", "ellipsoid", marks=pytest.mark.slow),
]
SLOW = [
    pytest.param("box", "box", marks=pytest.mark.slow),
    *(pytest.param(*pair, marks=pytest.mark.exhaustive) for pair in (("cylinder", "hull"), ("capsule",) * 2)),
]


def poses(count, spread=0.8, seed=1):
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(count, 3)) * spread * rng.uniform(size=(count, 1))
    return Transform(jnp.array(Rotation.random(count, random_state=seed).as_matrix()), jnp.array(places))


@jax.jit
def separations(a, X_a, b, X_b):
    return jax.vmap(separation, in_axes=(None, 0, None, 0))(a, X_a, b, X_b)


def _gap(shape_a, X_a, shape_b, X_b, normal):
    """How far the shapes are apart along a normal."""
    farthest_a = X_a.point_to_parent(shape_a.support(X_a.rotation.T @ normal))
    farthest_b = X_b.point_to_parent(shape_b.support(-(X_b.rotation.T @ normal)))
    return normal @ (farthest_b - farthest_a)


@pytest.mark.parametrize(("first", "second"), SOME)
def test_no_plane_and_no_points_prove_another_distance(first, second):
    a, b = SHAPES[first], SHAPES[second]
    X_a, X_b = poses(300, seed=1), poses(300, seed=2)
    found = separations(a, X_a, b, X_b)
    gaps = jax.vmap(_gap, in_axes=(None, 0, None, 0, 0))(a, X_a, b, X_b, found.normal)
    assert 20 < np.sum(found.distance > 0)
    np.testing.assert_allclose(gaps, found.distance, atol=1e-14)
    np.testing.assert_allclose(found.b - found.a, found.distance[:, None] * found.normal, atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.norm(found.normal, axis=1), 1, atol=1e-14)


@pytest.mark.slow
def test_capsules_without_length_are_spheres():
    X_a, X_b = poses(100, seed=1), poses(100, seed=2)
    found = separations(*(x for X in (X_a, X_b) for x in (Capsule(jnp.array(0.1), jnp.array(0.0)), X)))
    expected = separations(*(x for X in (X_a, X_b) for x in (Sphere(jnp.array(0.1)), X)))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-14), found, expected)
    beside = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.6, 0.8, 0.0]])

    def normal(place):
        here, capsule = Transform.identity(), Capsule(jnp.array(0.1), jnp.array(0.0))
        return separation(capsule, here, capsule, Transform(jnp.eye(3), place)).normal

    np.testing.assert_allclose(
        jax.vmap(jax.jacfwd(normal))(beside), np.eye(3)[None] - beside[:, :, None] * beside[:, None], atol=1e-15
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_axes_that_are_nearly_parallel_move_their_nearest_points_no_faster_than_themselves(dtype):
    """Where infinite lines are nearest, rounding says, or what is next to it: a place without derivatives. In all
    modes, and of rates as well, which steps with contact take."""
    angles = np.append(np.finfo(dtype).eps * 10.0 ** np.arange(-3, 4), [1e-17, 1e-13, np.pi])
    a = Capsule(jnp.array(0.1, dtype), jnp.array(1.0, dtype))

    def at(turn):
        turned = quaternion_to_matrix(quaternion_exp(jnp.stack([turn, 0 * turn, 0 * turn])))
        found = separation(a, Transform.identity(dtype), a, Transform(turned, jnp.array([0.3, 0.0, 0.2], dtype)))
        return found.distance, found.a, found.normal

    def rates(turn):
        return jax.jvp(at, (turn,), (jnp.ones_like(turn),))

    def total(function):
        return lambda turn: sum(jnp.sum(x) for x in jax.tree.leaves(function(turn)))

    turns = jnp.asarray(angles, dtype)
    (distance, *_), changes = jax.jit(jax.vmap(rates))(turns)
    np.testing.assert_allclose(distance, 0.1, rtol=100 * np.finfo(dtype).eps)
    assert all(np.abs(change).max() <= 1 for change in changes)
    for function in (at, rates):
        assert np.all(np.isfinite(jax.jit(jax.vmap(jax.grad(total(function))))(turns)))


def test_boxes_that_are_nearly_aligned_part_along_their_faces():
    """Rounding chooses the directions across edges that are nearly parallel, which are no way out."""
    rng, n = np.random.default_rng(0), 2000
    depths, tilts = 10.0 ** rng.uniform(-18, -3, n), 10.0 ** rng.uniform(-19, -3, (n, 3))
    R = Rotation.from_rotvec(tilts * rng.choice([-1, 1], (n, 3))).as_matrix()
    places = np.stack([np.zeros(n), 0.035 - depths, rng.normal(size=n) * 1e-3 - 0.025], axis=1)
    a, b = Box(jnp.array([0.02, 0.01, 0.08])), Box(jnp.array([0.06, 0.06, 0.06]))
    here = jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *x.shape)), Transform.identity())
    found = separations(a, here, b, Transform(jnp.array(R), jnp.array(places)))
    # The way out along y is no longer than what overlaps there: turned boxes are longer by a sum of tilts and sides.
    size = np.sum(tilts, axis=1) * 0.2
    assert (
        np.linalg.norm(found.normal - np.array([[0.0, 1.0, 0.0]]), axis=1) < 10 * np.linalg.norm(tilts, axis=1) + 1e-7
    ).all()
    assert (-found.distance < depths + size + 1e-15).all()


def test_two_half_spaces_are_refused():
    X = Transform.identity()
    with pytest.raises(ValueError, match="two half-spaces have no distance; expected at most one"):
        separation(HalfSpace(), X, HalfSpace(), X)


def test_what_is_neither_convex_nor_a_half_space_is_refused():
    X, ground = Transform.identity(), HeightField(jnp.zeros((2, 2)), jnp.ones(2))
    with pytest.raises(ValueError, match="b: expected a half-space or a convex shape, got HeightField"):
        separation(SHAPES["box"], X, ground, X)


@pytest.mark.slow
def test_hulls_of_one_length_share_a_program_and_both_orders_agree():
    short, tall = _hull(0), _hull(3)
    rows = [max(len(x), len(y)) for x, y in zip(jax.tree.leaves(short), jax.tree.leaves(tall), strict=True)]

    def padded(hull):
        leaves, tree = jax.tree.flatten(hull)
        return tree.unflatten(
            jnp.concatenate([x, jnp.repeat(x[-1:], n - len(x), axis=0)]) for x, n in zip(leaves, rows, strict=True)
        )

    hulls = jax.tree.map(lambda *x: jnp.stack(x), padded(short), padded(tall))
    box, X_a, X_b = SHAPES["box"], poses(2, seed=6), poses(2, seed=7)
    there = jax.jit(jax.vmap(separation, in_axes=(None, 0, 0, 0)))(box, X_a, hulls, X_b)
    back = jax.jit(jax.vmap(separation, in_axes=(0, 0, None, 0)))(hulls, X_b, box, X_a)
    for k, hull in enumerate((short, tall)):
        alone = separations(box, X_a, hull, X_b)
        np.testing.assert_allclose(there.distance[k], alone.distance[k], atol=1e-14)
    np.testing.assert_allclose(back.distance, there.distance, atol=1e-14)
    np.testing.assert_allclose(back.normal, -there.normal, atol=1e-13)


@pytest.mark.slow
def test_half_spaces_are_left_along_their_normal():
    X_a, X_b = poses(5, seed=1), poses(5, seed=2)
    for shape in SHAPES.values():
        found = jax.vmap(separation, in_axes=(None, 0, None, 0))(HalfSpace(), X_a, shape, X_b)
        lowest = jax.vmap(lambda X_a, X_b, shape=shape: _lowest(X_a, shape, X_b))(X_a, X_b)
        np.testing.assert_allclose(found.distance, lowest, atol=1e-14)
        np.testing.assert_allclose(found.normal, X_a.rotation[:, :, 2], atol=1e-15)
        np.testing.assert_allclose(found.b - found.a, found.distance[:, None] * found.normal, atol=1e-14)


def _lowest(X_a, shape, X_b):
    """Height of the lowest point, by a formula for each shape."""
    X = X_a.inverse() @ X_b
    if isinstance(shape, ConvexHull):
        return jnp.min(jax.vmap(X.point_to_parent)(shape.vertices)[:, 2])
    up = X.rotation[2]
    if isinstance(shape, Box):
        return X.translation[2] - jnp.abs(up) @ shape.sides / 2
    if isinstance(shape, Ellipsoid):
        return X.translation[2] - jnp.linalg.norm(shape.radii * up)
    half = jnp.abs(up[2]) * (0 if isinstance(shape, Sphere) else shape.length / 2)
    across = jnp.hypot(up[0], up[1]) if isinstance(shape, Cylinder) else 1
    return X.translation[2] - half - across * shape.radius


def _flat(found):
    return jnp.concatenate([found.distance[None], found.a, found.b, found.normal])


def _varied(a, b, X):
    """Everything that is found, as a function of a small twist of b and of all sizes; the sizes; and how many."""
    (floats, rest) = eqx.partition((a, b), eqx.is_inexact_array)
    sizes, unravel = ravel_pytree(floats)

    def found(x):
        a, b = eqx.combine(unravel(x[6:]), rest)
        turn = skew(x[:3])
        turn = jnp.eye(3) + turn + turn @ turn / 2
        moved = Transform(turn @ X.rotation, X.translation + x[3:6])
        return _flat(separation(a, Transform.identity(), b, moved))

    return found, jnp.concatenate([jnp.zeros(6), sizes])


@pytest.mark.parametrize(("first", "second"), [SOME[0], *SLOW])
def test_derivatives_are_differences_of_distances_points_and_normals(first, second):
    a, b, X = SHAPES[first], SHAPES[second], poses(30, seed=3)

    @jax.jit
    @jax.vmap
    def compared(X):
        found, x = _varied(a, b, X)
        way = jax.random.normal(jax.random.key(0), x.shape)
        weights = jax.random.normal(jax.random.key(1), (10,))
        _, forwards = jax.jvp(found, (x,), (way,))
        _, pullback = jax.vjp(found, x)
        return forwards, weights @ forwards, pullback(weights)[0] @ way

    @jax.jit
    @jax.vmap
    def differences(X):
        found, x = _varied(a, b, X)
        way, h = jax.random.normal(jax.random.key(0), x.shape), 1e-5
        return jax.lax.map(lambda step: found(x + step * way), h * jnp.array([-2.0, -1.0, 1.0, 2.0]))

    forwards, product, pulled_back = compared(X)
    far_back, back, on, far_on = differences(X).swapaxes(0, 1)
    central = (8 * (on - back) - (far_on - far_back)) / 12e-5
    # Within one difference, a kink may be met.
    smooth = np.abs((on - back) / 2e-5 - (far_on - far_back) / 4e-5).max(axis=1) < 1e-4
    assert np.mean(smooth) > 0.9
    np.testing.assert_allclose(forwards[smooth], central[smooth], atol=1e-7)
    np.testing.assert_allclose(product, pulled_back, atol=1e-11)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(("first", "second"), [("box", "hull"), ("cylinder", "ellipsoid")])
def test_second_derivatives_are_differences_of_first_ones(first, second):
    X = poses(8, seed=4)

    @jax.jit
    @jax.vmap
    def gradients(X):
        found, x = _varied(SHAPES[first], SHAPES[second], X)
        way = jax.random.normal(jax.random.key(0), x.shape)
        gradient = jax.grad(lambda x: found(x)[0])
        sides = jax.lax.map(lambda step: gradient(x + step * way), jnp.array([-1e-5, 1e-5]))
        return jax.jvp(gradient, (x,), (way,))[1], (sides[1] - sides[0]) / 2e-5

    found, differences = gradients(X)
    scale = 1 + jnp.max(jnp.abs(found), axis=1)
    errors = jnp.max(jnp.abs(found - differences), axis=1) / scale
    assert np.sum(errors < 1e-6) >= 7, errors


def _touching(a, b, dtype):
    """Poses of b beside a, upright, on its side and slightly tilted, so that faces, edges or points touch or nearly do;
    and with both middles in one place."""
    tilts = [(0, 0, 0), (0, 0, 90), (90, 0, 0), (45, 0, 0), (6e-4, 1e-4, 6e-4)]
    rotations, places = [], []
    for rotation, axis in itertools.product(Rotation.from_euler("xyz", tilts, degrees=True).as_matrix(), np.eye(3)):
        top = a.support(jnp.array(axis)) @ axis
        bottom = rotation @ b.support(jnp.array(-rotation.T @ axis)) @ axis
        for gap, aside in itertools.product((0.5, 1e-9, 0.0, -1e-14, -1e-3), (0.0, 0.1)):
            rotations.append(rotation)
            places.append(aside * (1 - axis) + (top - bottom + gap) * axis)
        rotations.append(rotation)
        places.append(np.zeros(3))
    return Transform(jnp.array(np.array(rotations), dtype), jnp.array(np.array(places), dtype))


@pytest.mark.parametrize(
    ("first", "second", "dtype"),
    [
        (*SOME[0], "float64"),
        (*SOME[0], "float32"),
        *(
            pytest.param(*pair, dtype, marks=pytest.mark.slow if dtype == kept else pytest.mark.exhaustive)
            for *pair, kept in (
                ("box", "box", "float32"),
                ("cylinder", "hull", "float64"),
                ("capsule",) * 2 + ("float64",),
            )
            for dtype in ("float64", "float32")
        ),
    ],
)
def test_shapes_that_touch_and_parallel_faces_have_finite_derivatives(first, second, dtype):
    X = _touching(SHAPES[first], SHAPES[second], dtype)
    a, b = jax.tree.map(
        lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, (SHAPES[first], SHAPES[second])
    )
    identity = Transform.identity(dtype)

    @jax.jit
    @jax.vmap
    def found_and_gradient(X):
        sizes, rest = eqx.partition((a, b), eqx.is_inexact_array)

        def total(sizes, X):
            a, b = eqx.combine(sizes, rest)
            return jnp.sum(_flat(separation(a, identity, b, X)))

        return separation(a, identity, b, X), jax.grad(total, argnums=(0, 1))(sizes, X)

    found, gradient = found_and_gradient(X)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((found, gradient)))
    gaps = jax.vmap(_gap, in_axes=(None, None, None, 0, 0))(a, identity, b, X, found.normal)
    # Edges within a thousandth of a degree of parallel leave the direction across them fewer digits.
    np.testing.assert_allclose(gaps, found.distance, atol=1e-9 if dtype == "float64" else 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"), [pytest.param(*pair, marks=[pytest.mark.exhaustive] * (pair in OF_OTHERS)) for pair in PAIRS]
)
def test_distances_are_those_of_coal(first, second):
    coal = pytest.importorskip("coal")
    from benchmarks.shape_distances import of_coal

    a, b, X = SHAPES[first], SHAPES[second], poses(10_000, seed=5)
    # A batch takes as many iterations as its slowest pose; small ones take a third of the time.
    found = jax.jit(lambda X: jax.lax.map(lambda X: separation(a, Transform.identity(), b, X), X, batch_size=200))(X)
    gaps = jax.vmap(lambda X, normal: _gap(a, Transform.identity(), b, X, normal))(X, found.normal)
    apart = np.asarray(found.distance) > 1e-6
    # A minimum or, where they overlap, a place that no small change improves: proved for all but a few in 10 000.
    np.testing.assert_allclose(gaps[apart], found.distance[apart], atol=1e-13)
    assert np.sum(np.abs(gaps - found.distance) > 1e-9) <= 5

    request = coal.DistanceRequest()
    request.gjk_tolerance, request.epa_tolerance = 1e-13, 1e-11
    request.gjk_max_iterations = request.epa_max_iterations = 2000
    here, of_a, of_b = coal.Transform3s.Identity(), of_coal(a), of_coal(b)
    theirs = [
        coal.distance(of_a, here, of_b, coal.Transform3s(R, p), request, coal.DistanceResult())
        for R, p in zip(np.asarray(X.rotation), np.asarray(X.translation), strict=True)
    ]
    errors = np.abs(np.asarray(found.distance) - np.array(theirs))
    if {first, second} & {"cylinder", "ellipsoid"}:
        # Coal stops early for curved shapes, or without an answer, which is then infinite.
        assert np.median(errors[apart]) < 1e-9
    else:
        assert np.max(errors[apart]) < 1e-9
        assert np.max(errors[~apart]) < 1e-6
