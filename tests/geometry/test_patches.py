"""Points at which shapes touch."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jdyn.geometry import (
    Box,
    Capsule,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    HeightField,
    Sphere,
    contact_patch,
    separation,
)
from jdyn.geometry.patches.flat import flat_on_flat
from jdyn.spatial import Transform, quaternion_exp, quaternion_to_matrix

pytestmark = pytest.mark.fast_compile

SHAPES = {
    "sphere": Sphere(jnp.array(0.2)),
    "capsule": Capsule(jnp.array(0.1), jnp.array(0.5)),
    "box": Box(jnp.array([0.3, 0.4, 0.5])),
    "cylinder": Cylinder(jnp.array(0.2), jnp.array(0.4)),
    "ellipsoid": Ellipsoid(jnp.array([0.1, 0.2, 0.3])),
    "hull": ConvexHull.of(np.random.default_rng(1).normal(size=(12, 3)) * 0.2),
}
HERE = Transform.identity()


def _quaternions(seed, count):
    quaternions = np.random.default_rng(seed).normal(size=(count, 4))
    return quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)


def _poses(seed, count, reach):
    turns = jax.vmap(quaternion_to_matrix)(jnp.asarray(_quaternions(seed, count)))
    return Transform(turns, jnp.asarray(np.random.default_rng(seed + 100).uniform(-reach, reach, (count, 3))))


_of_poses = jax.jit(jax.vmap(lambda a, b, X_a, X_b: contact_patch(a, X_a, b, X_b), (None, None, 0, 0)))
_BATCH = 50


def _repeated(X, count):
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), X)


def of_poses(a, X_a, b, X_b):
    """Patches of two shapes in many poses, by one program whatever their number."""
    count = len(X_a.translation)
    rows = np.minimum(np.arange(-(-count // _BATCH) * _BATCH), count - 1).reshape(-1, _BATCH)
    X_a, X_b = jax.tree.map(np.asarray, (X_a, X_b))
    parts = [_of_poses(a, b, *jax.tree.map(lambda x, k=k: x[k], (X_a, X_b))) for k in rows]
    return jax.tree.map(lambda *x: np.concatenate(x)[:count], *parts)


def _check_rows(points):
    """What holds for all rows; those without a point are finite but for their distance."""
    there = np.isfinite(points.distance)
    gaps = points.distance[there][:, None] * points.normal[there]
    np.testing.assert_allclose((points.b - points.a)[there], gaps, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(points.normal, axis=-1), 1, rtol=1e-14)
    assert all(np.isfinite(x).all() for x in (points.a, points.b)) and (np.asarray(points.weight) >= 0).all()


@pytest.mark.parametrize("kind", SHAPES)
def test_the_deepest_point_of_a_shape_in_a_half_space_is_its_support(kind):
    shape = SHAPES[kind]
    X_ground, X = _poses(0, 20, 1.0), _poses(1, 20, 1.0)
    points = of_poses(HalfSpace(), X_ground, shape, X)
    _check_rows(points)
    normals = X_ground.rotation[:, :, 2]
    lowest = jax.vmap(lambda X, n: X.point_to_parent(shape.support(-(X.rotation.T @ n))))(X, normals)
    heights = jnp.sum((lowest - X_ground.translation) * normals, axis=1)
    np.testing.assert_allclose(jnp.min(points.distance, axis=1), heights, atol=1e-14)
    deepest = jnp.argmin(points.distance, axis=1)
    np.testing.assert_allclose(points.b[jnp.arange(20), deepest], lowest, atol=1e-14)


def _field(rows=5, columns=7):
    return HeightField(jnp.asarray(np.random.default_rng(2).uniform(0, 0.3, (rows, columns))), jnp.array([3.0, 2.0]))


def test_a_height_field_is_as_high_as_that_of_mujoco():
    field = _field()
    rows, columns = field.heights.shape
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset><hfield name="f" nrow="{rows}" ncol="{columns}" size="1.5 1 1 0.1"/></asset>
        <worldbody><geom name="g" type="hfield" hfield="f"/></worldbody></mujoco>"""
    )
    model.hfield_data[:] = np.asarray(field.heights).ravel()
    heights = np.asarray(field.heights, np.float32).astype(float)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    places = np.random.default_rng(3).uniform(-1, 1, (100, 2)) * (1.4, 0.9)
    ours, _ = jax.vmap(HeightField(jnp.asarray(heights), field.sides).surface)(jnp.asarray(places))
    theirs = [
        2 - mujoco.mj_rayHfield(model, data, 0, np.array([x, y, 2.0]), np.array([0.0, 0.0, -1.0]), None)
        for x, y in places
    ]
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("kind", SHAPES)
def test_an_even_height_field_is_a_half_space(kind):
    slopes = np.array([0.3, -0.2])
    x, y = np.linspace(-2, 2, 9), np.linspace(-3, 3, 7)
    field = HeightField(jnp.asarray(slopes[0] * x[None] + slopes[1] * y[:, None] + 0.1), jnp.array([4.0, 6.0]))
    normal = np.array([*-slopes, 1]) / np.linalg.norm([*slopes, 1])
    across = np.cross(normal, [1.0, 0, 0])
    across /= np.linalg.norm(across)
    plane = Transform(jnp.asarray(np.stack([np.cross(across, normal), across, normal], 1)), jnp.array([0, 0, 0.1]))
    X_ground, X = _poses(4, 1, 1.0), _poses(5, 20, 0.9)
    X_ground = jax.tree.map(lambda x: x[0], X_ground)
    X = jax.vmap(lambda X: X_ground @ X)(X)
    ours = of_poses(field, _repeated(X_ground, 20), SHAPES[kind], X)
    expected = of_poses(HalfSpace(), _repeated(X_ground @ plane, 20), SHAPES[kind], X)
    for name in ("a", "b", "normal", "distance"):
        np.testing.assert_allclose(getattr(ours, name), getattr(expected, name), atol=1e-14)


def test_beyond_its_border_a_height_field_touches_nothing():
    field = HeightField(jnp.zeros((3, 3)), jnp.array([2.0, 2.0]))
    ball = SHAPES["sphere"]
    X = Transform(_repeated(HERE, 2).rotation, jnp.array([[0.99, 0.0, 0.1], [1.01, 0.0, 0.1]]))
    points = of_poses(field, _repeated(HERE, 2), ball, X)
    np.testing.assert_allclose(points.distance, [[-0.1], [np.inf]])
    _check_rows(points)


def test_a_ball_rolls_over_a_height_field_without_jumps():
    """Neither distance nor normal jumps where it passes from triangle to triangle."""
    field = _field()
    along = jnp.linspace(-1.2, 1.2, 4001)
    X = jax.vmap(lambda x: Transform(jnp.eye(3), jnp.stack([x, 0.6 * x + 0.05, 0.3 + 0 * x])))(along)
    points = of_poses(field, _repeated(HERE, 4001), SHAPES["sphere"], X)
    # Steps of 0.7 mm; slopes up to 0.6, and up to 1.2 / m more of them from one end of a cell to the other.
    assert np.max(np.abs(np.diff(points.distance[:, 0]))) < 2e-3
    assert np.max(np.abs(np.diff(points.normal[:, 0], axis=0))) < 2e-3


@pytest.mark.parametrize(("first", "second"), [(HalfSpace(), HalfSpace()), (HalfSpace(), _field())])
def test_ground_does_not_touch_ground(first, second):
    with pytest.raises(ValueError, match="expected at most one half-space or height field in a pair"):
        contact_patch(first, HERE, second, HERE)


def test_a_height_field_of_one_row_is_refused():
    with pytest.raises(ValueError, match="two rows and two columns or more, got 1 x 3"):
        HeightField(jnp.zeros((1, 3)), jnp.ones(2)).surface(jnp.zeros(2))


UNIT = Box(jnp.ones(3))


def _turned(axis, angles, places):
    """Poses after turns about an axis, at places that all have in common or for each one."""
    quaternions = np.concatenate([np.cos(angles / 2)[:, None], np.sin(angles / 2)[:, None] * np.asarray(axis)], axis=1)
    places = jnp.broadcast_to(jnp.asarray(places, float), (len(angles), 3))
    return Transform(jax.vmap(quaternion_to_matrix)(jnp.asarray(quaternions)), places)


def _stiffness_and_force(points):
    """Sums of weights of points that touch, and of weights times squared depths."""
    depths = np.maximum(0, -points.distance)
    return np.sum(points.weight * (depths > 0), axis=1), np.sum(points.weight * depths**2, axis=1)


@pytest.mark.slow
def test_a_box_on_a_box_touches_with_four_corners():
    places = jnp.array([[0.0, 0.0, 0.99], [0.4, -0.3, 0.99], [1e-14, 1e-14, 0.99]])
    points = of_poses(
        UNIT, _repeated(HERE, 3), UNIT, Transform(_turned((0, 0, 1), np.array([0, 0, 1e-13]), 0).rotation, places)
    )
    _check_rows(points)
    for row, place in enumerate(places):
        touching = (points.distance[row] < 0) & (points.weight[row] > 1e-9)
        np.testing.assert_allclose(points.weight[row][touching], 1, atol=1e-9)
        corners = np.sort(points.b[row][touching][:, :2], axis=0)
        region = np.clip(np.asarray(place)[:2, None] + np.array([-0.5, 0.5]), -0.5, 0.5)
        np.testing.assert_allclose(corners, np.repeat(region.T, 2, axis=0), atol=1e-9)


def test_a_box_on_a_box_turns_without_jumps():
    """From four corners to eight and back, with the same stiffness, and no torque about the middle."""
    angles = np.linspace(0, np.pi / 2, 46)
    points = of_poses(UNIT, _repeated(HERE, 46), UNIT, _turned((0, 0, 1), angles, (0, 0, 0.99)))
    touching = np.sum(points.distance < 0, axis=1)
    assert (touching[0], touching[20], touching[-1]) == (4, 8, 4)
    stiffness, force = _stiffness_and_force(points)
    np.testing.assert_allclose(stiffness, 4, rtol=1e-9)
    np.testing.assert_allclose(force, 4e-4, rtol=1e-9)
    middle = np.sum(np.where(points.distance < 0, points.weight, 0)[..., None] * points.a, axis=1)
    np.testing.assert_allclose(middle[:, :2], 0, atol=1e-9)


def _check_no_jumps(a, b, path):
    """A hundredth of the steps of a path changes forces by a hundredth."""

    def largest_change(steps):
        X = path(np.linspace(0, 1, steps + 1))
        return np.max(np.abs(np.diff(_stiffness_and_force(of_poses(a, _repeated(HERE, steps + 1), b, X))[1])))

    assert largest_change(9999) < 0.03 * largest_change(99) + 1e-15


def test_a_turned_box_slides_off_a_box_without_jumps():
    _check_no_jumps(UNIT, UNIT, lambda s: _turned((0, 0, 1), 0.3 * s, np.stack([0.85 * s, 0.85 * s, 0 * s + 0.99], 1)))


def _tilting(shape, axis, reach):
    """Poses of a shape 1 cm deep in the face of the unit box above, tilted by up to an angle."""

    def path(s):
        X = _turned(axis, reach * s, 0)
        lowest = jax.vmap(lambda R: (R @ shape.support(-R[2]))[2])(X.rotation)
        return Transform(X.rotation, X.translation.at[:, 2].set(0.49 - lowest))

    return path


def test_a_box_tilts_on_a_box_without_jumps():
    """On its edge, past the angle at which another face is below."""
    _check_no_jumps(UNIT, UNIT, _tilting(UNIT, (0.1, 0.995, 0), 1.2))


def _mujoco_boxes(sides):
    geoms = "".join(
        f'<body><freejoint/><geom type="box" mass="1" size="{" ".join(map(str, np.asarray(s) / 2))}"/></body>'
        for s in sides
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    return model, mujoco.MjData(model)


def test_boxes_touch_where_they_do_in_mujoco():
    sides = [(0.6, 0.8, 1.0), (0.5, 0.7, 0.3)]
    quaternions = np.stack([_quaternions(seed, 200) for seed in (0, 1)])
    places = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 200, 3))
    X = [
        Transform(jax.vmap(quaternion_to_matrix)(jnp.asarray(q)), jnp.asarray(x))
        for q, x in zip(quaternions, places, strict=True)
    ]
    points = of_poses(Box(jnp.array(sides[0])), X[0], Box(jnp.array(sides[1])), X[1])
    _check_rows(points)
    depths = -np.min(points.distance, axis=1)
    model, data = _mujoco_boxes(sides)
    shallow, same = 0, 0
    for k in np.flatnonzero((depths > 0) & (depths < 0.1)):
        data.qpos[:] = np.concatenate([places[0, k], quaternions[0, k], places[1, k], quaternions[1, k]])
        mujoco.mj_forward(model, data)
        deepest = np.argmin(data.contact.dist)
        # MuJoCo prefers some directions to others that are as good but for a millionth.
        assert abs(depths[k] + data.contact.dist[deepest]) < 1e-5
        same += bool(
            np.allclose(data.contact.frame[deepest, :3], points.normal[k, 0], atol=1e-9)
            and abs(depths[k] + data.contact.dist[deepest]) < 1e-9
        )
        shallow += 1
    assert shallow >= 20 and same >= 0.95 * shallow


def _finite(points):
    """All numbers of rows, with zeros for rows without a point."""
    there = jnp.isfinite(points.distance)
    rows = jnp.concatenate([points.a, points.b, points.normal], axis=1)
    rows = jnp.concatenate([rows, points.distance[:, None], points.weight[:, None]], axis=1)
    return jnp.where(there[:, None], rows, 0).reshape(-1)


def _moved(X, step):
    """A pose after a small turn and a small shift."""
    turn = jnp.concatenate([jnp.ones(1, step.dtype), step[:3] / 2])
    turn = quaternion_to_matrix(turn / jnp.sqrt(turn @ turn))
    return Transform(turn @ X.rotation, X.translation + step[3:])


def _of_step(a, b, X_a, X_b, step):
    sized = jax.tree.map(lambda x: x * (1 + step[6]) if jnp.issubdtype(x.dtype, jnp.floating) else x, b)
    return _finite(contact_patch(a, X_a, sized, _moved(X_b, step[:6])))


SPECIAL = np.array([[0.0, 0, 0], [0, 0, 1.0], [1.0, 1.0, 1.0], [0, 1.0, 1.0], [0, 0, 3.0], [3.0, 2.0, 5.0]])


def _check_derivatives(a, b, reach):
    """Against differences at random poses, and that there are some where shapes are aligned or in one place."""
    poses = _poses(7, 40, reach)
    special = Transform(_repeated(HERE, len(SPECIAL)).rotation, jnp.asarray(SPECIAL))
    X = jax.tree.map(lambda *x: jnp.concatenate(x), poses, special)
    h, at = 1e-6, jnp.zeros(7)
    of = jax.jit(jax.vmap(lambda step: jax.vmap(lambda X: _of_step(a, b, HERE, X, step))(X)))
    ends = of(jnp.concatenate([h * jnp.eye(7), -h * jnp.eye(7)]))
    numeric = np.moveaxis(np.asarray(ends[:7] - ends[7:]) / (2 * h), 0, -1)
    forward = jax.jit(jax.vmap(jax.jacfwd(lambda X, step: _of_step(a, b, HERE, X, step), 1), (0, None)))(X, at)
    assert np.isfinite(forward).all()
    # Some pose may be within h of one where corners come or go.
    errors = np.max(np.abs(np.asarray(forward) - numeric), axis=(1, 2))[:40]
    assert np.sum(errors < 1e-6) >= 39
    pull = jnp.cos(jnp.arange(forward.shape[1], dtype=float))
    reverse = jax.jit(jax.vmap(jax.grad(lambda step, X: pull @ _of_step(a, b, HERE, X, step)), (None, 0)))(at, X)
    scale = np.max(np.abs(np.asarray(forward)))
    np.testing.assert_allclose(reverse, jnp.einsum("i,nij->nj", pull, forward), atol=1e-12 * scale)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_derivatives_of_points_on_a_height_field_agree_with_differences(kind):
    _check_derivatives(_field(), SHAPES[kind], 0.8)


def test_heights_of_a_field_have_derivatives():
    field, shape, X = _field(), SHAPES["ellipsoid"], jax.tree.map(lambda x: x[0], _poses(9, 1, 0.5))

    def distance(heights):
        return contact_patch(HeightField(heights, field.sides), HERE, shape, X).distance[0]

    gradient = jax.jit(jax.grad(distance))(field.heights)
    direction = jnp.asarray(np.random.default_rng(0).normal(size=field.heights.shape))
    ends = jax.jit(jax.vmap(lambda h: distance(field.heights + h * direction)))(jnp.array([1e-6, -1e-6]))
    np.testing.assert_allclose(jnp.sum(gradient * direction), (ends[0] - ends[1]) / 2e-6, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("box", "box"),
        *(pytest.param(*pair, marks=pytest.mark.exhaustive) for pair in (("box", "cylinder"), ("capsule", "hull"))),
    ],
)
def test_derivatives_of_points_agree_with_differences(first, second):
    _check_derivatives(SHAPES[first], SHAPES[second], 0.3)


@pytest.mark.slow
def test_points_between_boxes_in_single_precision():
    box, here, X = jax.tree.map(lambda x: x.astype(jnp.float32), (UNIT, _repeated(HERE, 20), _poses(8, 20, 0.7)))
    points = of_poses(box, here, box, X)
    assert {x.dtype for x in jax.tree.leaves(points)} == {jnp.dtype(jnp.float32)}
    exact = of_poses(UNIT, _repeated(HERE, 20), UNIT, _poses(8, 20, 0.7))
    np.testing.assert_allclose(jnp.min(points.distance, axis=1), jnp.min(exact.distance, axis=1), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("sphere", "box"), ("capsule", "capsule"), ("box", "cylinder"), ("hull", "hull"),
        *(
            pytest.param(*pair, marks=pytest.mark.exhaustive)
            for pair in (("capsule", "box"), ("capsule", "hull"), ("box", "hull"), ("cylinder", "cylinder"))
        ),
    ],
)  # fmt: skip
def test_the_deepest_row_is_the_separation(first, second):
    a, b, X_a, X_b = SHAPES[first], SHAPES[second], _poses(0, 100, 0.25), _poses(1, 100, 0.25)
    points = of_poses(a, X_a, b, X_b)
    _check_rows(points)
    nearest = jax.jit(jax.vmap(lambda X_a, X_b: separation(a, X_a, b, X_b, everywhere=False)))(X_a, X_b)
    deepest = np.min(np.where(points.weight > 1e-3, points.distance, np.inf), axis=1)
    assert np.sum(deepest < 0) > 20
    np.testing.assert_allclose(deepest, nearest.distance, atol=1e-12)
    total = np.sum(points.weight, axis=1)
    assert (total > 1 - 1e-9).all() and (total < 4 + 1e-9).all()


@pytest.mark.slow
def test_a_capsule_on_a_box_touches_with_its_ends_or_where_the_box_ends():
    places = np.array([[0.2, 0, 0.59], [0.4, 0, 0.59]])
    X = _turned((0, 1, 0), np.full(2, np.pi / 2), places)
    points = of_poses(SHAPES["capsule"], X, UNIT, _repeated(HERE, 2))
    for row, ends in enumerate([(-0.05, 0.45), (0.15, 0.5)]):
        touching = points.distance[row] < 0
        np.testing.assert_allclose(np.sort(points.a[row][touching][:, 0]), ends, atol=1e-12)
        np.testing.assert_allclose(points.distance[row][touching], -0.01, atol=1e-12)
        np.testing.assert_allclose(points.weight[row][touching], 1, atol=1e-12)


@pytest.mark.slow
def test_parallel_capsules_touch_with_two_points_and_crossed_ones_with_one():
    a = Capsule(jnp.array(0.1), jnp.array(1.0))
    upright, across, standing = (
        jnp.eye(3),
        jnp.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]),
        jnp.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]]),
    )
    places = jnp.array([[0.19, 0, 0.3], [0.19, 0, 0.3], [0.69, 0, 0.3]])
    points = of_poses(a, _repeated(HERE, 3), a, Transform(jnp.stack([upright, across, standing]), places))
    parallel, crossed, stood = ((points.distance[row] < 0) & (points.weight[row] > 1e-9) for row in range(3))
    np.testing.assert_allclose(points.a[2][stood], [[0.1, 0, 0.3]], atol=1e-12)
    np.testing.assert_allclose(points.distance[2][stood], -0.01)
    np.testing.assert_allclose(np.sort(points.a[0][parallel][:, 2]), [-0.2, 0.5], atol=1e-12)
    np.testing.assert_allclose(points.weight[0][parallel], 1, atol=1e-12)
    np.testing.assert_allclose(points.a[1][crossed], [[0.1, 0, 0.3]], atol=1e-12)
    np.testing.assert_allclose(points.weight[1][crossed], 1, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([points.distance[0][parallel], points.distance[1][crossed]]), -0.01)
    # From parallel to crossed.
    _check_no_jumps(a, a, lambda s: _turned((1, 0, 0), s * np.pi / 2, (0.19, 0, 0.3)))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.exhaustive), "float32"])
def test_a_capsule_that_hardly_leans_stands_on_one_point(dtype):
    """On another one's middle and beside it, with finite gradients of forces and of their rates."""
    leans = jnp.array([0, 6e-17, 1e-13, 1e-9, 1e-6], dtype)
    a, b = (Capsule(*jnp.array(sizes, dtype)) for sizes in ((0.1, 1.0), (0.08, 0.4)))
    on_side = quaternion_to_matrix(quaternion_exp(jnp.array([0, jnp.pi / 2, 0], dtype)))

    def at(lean, aside):
        R = quaternion_to_matrix(quaternion_exp(jnp.stack([lean / 2, 0 * lean, lean]))) @ on_side
        return contact_patch(a, Transform.identity(dtype), b, Transform(R, jnp.stack([0.37 + 0 * aside, aside, lean])))

    def pressed(lean, aside):
        points = at(lean, aside)
        return points.weight @ jnp.where(points.distance < 0, points.distance, 0) ** 2

    def rate(lean, aside):
        return jax.jvp(lambda lean: pressed(lean, aside), (lean,), (jnp.ones_like(lean),))[1]

    for aside in jnp.array([0.0, 1e-7, 0.02], dtype):
        found = jax.jit(jax.vmap(at, (0, None)))(leans, aside)
        np.testing.assert_allclose(found.weight, [[1, 0, 0]] * len(leans), atol=1e-6)
        for function in (pressed, rate):
            gradients = jax.jit(jax.vmap(jax.grad(function, (0, 1)), (0, None)))(leans, aside)
            assert np.all(np.isfinite(gradients)), (aside, gradients)


@pytest.mark.slow
def test_two_lines_touch_as_polygons_that_are_lines_do():
    """Points, weights, and derivatives of a sum over them; also where lines are nearly parallel."""
    rng, count = np.random.default_rng(5), 200
    a, b = (Capsule(*jnp.asarray(rng.uniform([[0.05], [0.1]], [[0.5], [2.0]], (2, count)))) for _ in range(2))
    ways = rng.normal(size=(2, count, 3))
    angles = 10.0 ** rng.uniform(-9, 0.5, (count, 1))
    turns, places = jnp.asarray(ways[0] / np.linalg.norm(ways[0], axis=1, keepdims=True) * angles), 0.4 * ways[1]
    given = a, b, _poses(6, count, 0.5), turns, jnp.asarray(places), jnp.asarray(rng.normal(size=(count, 3)))

    def touching(function):
        def at(share, a, b, X_a, turn, place, spin):
            turned = quaternion_to_matrix(quaternion_exp(turn)) @ quaternion_to_matrix(quaternion_exp(share * spin))
            points = function(a, X_a, b, X_a @ Transform(turned, place + share * spin))
            depths = jnp.where(points.distance < 0, points.distance, 0)
            return points.weight @ depths**2, (points.distance, points.weight, points.weight[:, None] * points.a)

        return jax.jit(jax.vmap(jax.value_and_grad(at, has_aux=True), (None, *(0,) * len(given))))(0.0, *given)

    ours, others = touching(contact_patch), touching(flat_on_flat)
    assert np.sum(ours[0][1][0][:, 1] < 0) > 50
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-10), ours, others)


@pytest.mark.slow
def test_a_cylinder_on_a_box_touches_with_four_points_of_its_rim_or_two_of_its_side():
    cylinder = SHAPES["cylinder"]
    X = _turned((0, 1, 0), np.array([0, np.pi / 2]), np.array([[0, 0, 0.69], [0, 0, 0.69]]))
    points = of_poses(UNIT, _repeated(HERE, 2), cylinder, X)
    for row, count in enumerate((4, 2)):
        touching = points.distance[row] < 0
        assert np.sum(touching) == count
        np.testing.assert_allclose(points.distance[row][touching], -0.01, atol=1e-12)
        np.testing.assert_allclose(points.weight[row][touching], 1, atol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(points.b[row][touching][:, :2], axis=1), 0.2, atol=1e-12)
    _check_no_jumps(UNIT, cylinder, _tilting(cylinder, (0.6, 0.8, 0), 1.4))


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [("sphere", "box"), ("capsule", "capsule"), ("capsule", "box")])
def test_round_shapes_are_as_deep_as_in_mujoco(first, second):
    """Where only their roundings overlap: MuJoCo has closed forms then."""
    sizes = {"sphere": "0.2", "capsule": "0.1 0.25", "box": "0.15 0.2 0.25"}
    bodies = "".join(
        f'<body><freejoint/><geom type="{kind}" size="{sizes[kind]}" mass="1"/></body>' for kind in (first, second)
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    quaternions, places = _quaternions(3, 200), np.random.default_rng(4).uniform(-0.35, 0.35, (200, 3))
    X = Transform(jax.vmap(quaternion_to_matrix)(jnp.asarray(quaternions)), jnp.asarray(places))
    points = of_poses(SHAPES[first], _repeated(HERE, 200), SHAPES[second], X)
    depths, deepest = -np.min(points.distance, axis=1), np.argmin(points.distance, axis=1)
    rounding = float(SHAPES[first].radius) * (2 if first == second else 1)
    shallow = np.flatnonzero((depths > 0) & (depths < 0.9 * rounding))
    assert len(shallow) > 20
    for k in shallow:
        data.qpos[:] = [0, 0, 0, 1, 0, 0, 0, *places[k], *quaternions[k]]
        mujoco.mj_forward(model, data)
        theirs = np.argmin(data.contact.dist)
        np.testing.assert_allclose(-data.contact.dist[theirs], depths[k], atol=1e-9)
        np.testing.assert_allclose(data.contact.frame[theirs, :3], points.normal[k, deepest[k]], atol=1e-9)
