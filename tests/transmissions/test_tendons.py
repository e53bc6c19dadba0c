"""Tendons against closed forms, and their derivatives. `tests/io/test_mjcf_tendons.py` compares with MuJoCo."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jdyn
from jdyn.array import in_type
from jdyn.transmissions import FixedTendon, PathPoint, Pulley, SpatialTendon, WrappedCylinder, WrappedSphere, wrapping

pytestmark = pytest.mark.fast_compile

ARM = jdyn.load("double_pendulum")
RADIUS = 0.2
ACROSS = jdyn.pose(rpy=[np.pi / 2, 0.0, 0.0])
# A drum on the axis of the first joint.
DRUM = WrappedCylinder("world", RADIUS, ACROSS)
RING = WrappedSphere("link1", 0.1, jdyn.pose([0.3, 0.1, -0.4]), inside=True)


def seen(tendon, q, model=ARM):
    kinematics = jdyn.elements.Kinematics.of(model, q, jnp.zeros(model.nv, q.dtype))
    return tendon.length(kinematics), tendon.moments(kinematics)


@eqx.filter_jit
def with_slopes(tendon, q):
    return seen(tendon, q), jax.grad(lambda q: seen(tendon, q)[0])(q)


# Closed forms.


@pytest.mark.slow
def test_joints_add_up_also_those_that_follow():
    builder = jdyn.Builder("fingers")
    for name, mimic in (("a", None), ("b", jdyn.Mimic("ja", -2.0, 0.1)), ("c", None)):
        builder.add_link(name, jdyn.Prismatic([1, 0, 0]), mass=1.0, joint_name=f"j{name}", mimic=mimic)
    model = builder.build()
    tendon = FixedTendon(["ja", "jb"], [2.0, -3.0])
    q = jnp.linspace(0.1, 0.4, model.nq)
    (length, moments), by_q = eqx.filter_jit(
        lambda q: (seen(tendon, q, model), jax.grad(lambda q: seen(tendon, q, model)[0])(q))
    )(q)
    np.testing.assert_allclose(length, 2 * q[0] - 3 * (-2 * q[0] + 0.1), atol=1e-15)
    np.testing.assert_allclose(moments, [8.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(by_q, moments, atol=1e-15)


SIDE = PathPoint("world", [0.1, 0.0, 1.0])
OVER = [PathPoint("world", [-0.9, 0.0, 0.0]), DRUM, PathPoint("link1", [0.0, 0.0, -0.7])]


@pytest.mark.parametrize("angle, side", [(0.5, None), (1.2, None), (1.5, None), (0.5, SIDE), (2.0, SIDE)])
def test_a_tendon_leads_around_a_drum_by_arcs_of_a_circle(angle, side):
    tendon = SpatialTendon([OVER[0], dataclasses.replace(DRUM, side=side), OVER[2]])
    turn, sense = (np.pi / 2 + angle, 1) if side is None else (3 * np.pi / 2 - angle, -1)
    tangents = np.sqrt(np.array([0.9, 0.7]) ** 2 - RADIUS**2)
    arc = turn - np.sum(np.arctan2(tangents, RADIUS))
    (length, moments), by_q = with_slopes(tendon, jnp.array([angle, 0.4]))
    np.testing.assert_allclose(moments, by_q, atol=1e-14)
    if arc > 0:
        np.testing.assert_allclose(length, np.sum(tangents) + RADIUS * arc, rtol=1e-14)
        np.testing.assert_allclose(moments, [sense * RADIUS, 0.0], atol=1e-14)
    else:
        np.testing.assert_allclose(length, np.hypot(0.9 + 0.7 * np.sin(angle), 0.7 * np.cos(angle)), rtol=1e-14)
    assert (arc > 0) == (angle > 1 or side is not None)


def test_a_tendon_climbs_a_drum_on_a_screw_line():
    """A line on the surface that is rolled out, as long as the tendon is."""
    start, end = jnp.array([-1.0, 0.5, 0.0]), jnp.array([1.0, 0.5, 2.0])
    path = wrapping.around_cylinder(start, end, jnp.array(1.0), None, False)
    flat = wrapping.around_cylinder(start, end * jnp.array([1.0, 1.0, 0.0]), jnp.array(1.0), None, False)
    np.testing.assert_allclose(path.length, np.hypot(flat.length, 2.0), rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(path.directions, axis=1), 1, rtol=1e-14)
    for way, direction in ((path.points[0] - start, path.directions[0]), (end - path.points[1], path.directions[1])):
        np.testing.assert_allclose(way / np.linalg.norm(way), direction, atol=1e-12)


def test_a_ring_lets_a_tendon_pass_where_it_is_shortest():
    """No other point of the ring makes it shorter, nor does it miss the ring."""
    start, end, around = jnp.array([2.0, 0.3, 0.4]), jnp.array([1.5, 1.2, -0.5]), np.linspace(-np.pi, np.pi, 2001)
    path = wrapping.around_sphere(start, end, jnp.array(0.7), None, True)
    x = np.asarray(start) / np.linalg.norm(start)
    y = np.asarray(end) - np.asarray(end) @ x * x
    ring = 0.7 * (np.cos(around)[:, None] * x + np.sin(around)[:, None] * y / np.linalg.norm(y))
    lengths = sum(np.linalg.norm(ring - np.asarray(point), axis=1) for point in (start, end))
    assert path.touches
    assert 0 <= lengths.min() - path.length < 1e-5
    np.testing.assert_allclose(np.linalg.norm(path.points, axis=1), 0.7, rtol=1e-14)
    through = wrapping.around_sphere(start, -end, jnp.array(0.7), None, True)
    assert not through.touches
    np.testing.assert_allclose(through.length, np.linalg.norm(start + end), rtol=1e-14)


@pytest.mark.slow
def test_branches_after_a_pulley_count_in_part():
    at = [PathPoint("world", [0.5, 0.0, 0.5]), PathPoint("link1", [0.1, 0.0, -0.5]), PathPoint("tip")]
    q = jnp.array([0.4, -0.9])
    parts = [with_slopes(SpatialTendon(path), q) for path in (at[:2], at[1:], [at[0], at[2]])]
    whole = with_slopes(SpatialTendon([*at[:2], Pulley(2.0), *at[1:], Pulley(4.0), at[0], at[2]]), q)
    for found, *each in zip(jax.tree.leaves(whole), *map(jax.tree.leaves, parts), strict=True):
        np.testing.assert_allclose(found, each[0] + each[1] / 2 + each[2] / 4, atol=1e-14)


# Derivatives.


MANY = SpatialTendon(
    [
        *(OVER[0], dataclasses.replace(DRUM, side=SIDE), OVER[2]),
        *(RING, PathPoint("link2", [0.1, 0.2, -0.3]), WrappedSphere("link2", 0.15, jdyn.pose([0.2, 0.1, -0.6]))),
        *(PathPoint("tip", [0.3, 0.0, 0.0]), Pulley(3.0), OVER[0], PathPoint("tip")),
    ]
)
Q = jnp.array([1.3, -0.7])


def touching(tendon, q):
    kinematics = jdyn.elements.Kinematics.of(ARM, q, jnp.zeros(2))
    found = []
    for start, body, end in zip(tendon.path, tendon.path[1:], tendon.path[2:], strict=False):
        if not isinstance(body, PathPoint | Pulley):
            place = body.place(kinematics)
            ends = [place.point_to_child(x.position(kinematics)) for x in (start, end)]
            side = None if body.side is None else place.point_to_child(body.side.position(kinematics))
            found.append(bool(body.path(*ends, side).touches))
    return found


@pytest.mark.slow
def test_all_numbers_have_derivatives_in_both_modes():
    assert touching(MANY, Q) == [True, True, True]
    numbers, rest = eqx.partition(MANY, eqx.is_inexact_array)
    function = jax.jit(lambda numbers, q: seen(eqx.combine(numbers, rest), q))
    check_grads(function, (numbers, Q), order=1, modes=["fwd", "rev"], eps=1e-6, atol=1e-6, rtol=1e-6)
    (_, moments), by_q = with_slopes(MANY, Q)
    np.testing.assert_allclose(moments, by_q, atol=1e-13)


@pytest.mark.slow
def test_single_precision_and_batches():
    angles = jnp.stack([Q, Q + 0.05, jnp.array([0.1, 0.2])])
    exact = jax.vmap(lambda q: seen(MANY, q))(angles)
    single = in_type(MANY, jnp.float32), in_type(ARM, jnp.float32)
    found = jax.jit(jax.vmap(lambda q: seen(single[0], q, single[1])))(angles.astype(jnp.float32))
    for x, y in zip(found, exact, strict=True):
        assert x.dtype == jnp.float32
        np.testing.assert_allclose(x, y, atol=3e-6)
    for q, length in zip(angles, exact[0], strict=True):
        np.testing.assert_allclose(with_slopes(MANY, q)[0][0], length, rtol=1e-14)


# The centre, near it, on the surface, one above another, on one line with the centre, on the axis, and elsewhere.
PLACES = [
    *((0, 0, 0), (1e-200, 0, 0), (1, 0, 0), (0.6, 0, 0.8), (2, 0, 0), (2, 1e-9, 0), (-2, 0, 0)),
    *((0, 0, 1), (0, 0, -3), (1, 1, 0), (1, 1, 1), (0.5, 0, 0)),
]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float64, pytest.param(jnp.float32, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("around", [wrapping.around_sphere, wrapping.around_cylinder])
def test_derivatives_are_finite_everywhere(around, dtype):
    """Second ones of lengths, too, as implicit steps take them of forces."""
    ends = jnp.array([[a, b] for a in PLACES for b in PLACES], dtype)
    sides = jnp.array([[0, 2, 0], [0, 0, 0], [0, 0, 3], [-1, 0, 0]], dtype)
    radius = jnp.ones((), dtype)

    def paths(ends, radius, side):
        found = [around(*ends, radius, *case) for case in ((None, False), (side, False), (None, True))]
        return [(path.length, path.points, path.directions) for path in found]

    def lengths(ends, side):
        return sum(length for length, *_ in paths(ends, radius, side))

    def derivatives(ends, side):
        slopes = jax.jacrev(paths, (0, 1, 2))(ends, radius, side)
        return paths(ends, radius, side), slopes, jax.jacfwd(jax.jacrev(lengths))(ends, side)

    of_sides = jax.vmap(derivatives, (None, 0))
    found = jax.jit(jax.vmap(lambda ends: of_sides(ends, sides)))(ends)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(found))


# Errors.


def test_paths_that_are_none_are_refused():
    a, body = PathPoint("world"), WrappedSphere("link1", 0.1)
    for path in ([], [a], [a, body], [body, a, a], [a, body, body, a], [a, a, Pulley(2.0)], [a, Pulley(2.0), a, a]):
        with pytest.raises(ValueError, match="expected branches of two points or more"):
            SpatialTendon(path)
    with pytest.raises(ValueError, match="expected PathPoint, WrappedSphere, WrappedCylinder or Pulley, got 'tip'"):
        SpatialTendon(["tip", a])
    with pytest.raises(ValueError, match="a tendon that runs inside has no side"):
        WrappedSphere("link1", 0.1, side=a, inside=True)


@pytest.mark.parametrize(
    "tendon, message",
    [
        (FixedTendon(["joint1", "knee"]), "knee"),
        (FixedTendon(["joint1", "joint2"], [1.0, 2.0, 3.0]), r"coefficients: expected shape \(2,\) or a scalar"),
        (SpatialTendon([PathPoint("world"), PathPoint("hand")]), "hand"),
    ],
)
def test_names_and_sizes_are_checked(tendon, message):
    with pytest.raises(ValueError, match=message):
        seen(tendon, jnp.zeros(2))


def test_joints_of_several_coordinates_are_refused():
    free = jdyn.ROBOTS["chain"](1, floating_base=True)
    with pytest.raises(ValueError, match="needs joints with one coordinate, got a Free"):
        seen(FixedTendon(free.joint_names[:1]), free.neutral(), free)
