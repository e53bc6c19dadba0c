"""Points at which shapes touch."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jdyn.geometry import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, HalfSpace, HeightField, Sphere, contact_patch
from jdyn.spatial import Transform, quaternion_to_matrix

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


def _poses(seed, count, reach):
    rng = np.random.default_rng(seed)
    quaternions = rng.normal(size=(count, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    turns = jax.vmap(quaternion_to_matrix)(jnp.asarray(quaternions))
    return Transform(turns, jnp.asarray(rng.uniform(-reach, reach, (count, 3))))


_of_poses = jax.jit(jax.vmap(contact_patch, (None, 0, None, 0)))


def of_poses(a, X_a, b, X_b):
    return jax.tree.map(np.asarray, _of_poses(a, X_a, b, X_b))


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
    of = jax.jit(jax.vmap(contact_patch, (None, None, None, 0)))
    ours, expected = of(field, X_ground, SHAPES[kind], X), of(HalfSpace(), X_ground @ plane, SHAPES[kind], X)
    for name in ("a", "b", "normal", "distance"):
        np.testing.assert_allclose(getattr(ours, name), getattr(expected, name), atol=1e-14)


def test_beyond_its_border_a_height_field_touches_nothing():
    field = HeightField(jnp.zeros((3, 3)), jnp.array([2.0, 2.0]))
    ball = SHAPES["sphere"]
    inside, outside = (
        contact_patch(field, HERE, ball, Transform(jnp.eye(3), jnp.array([x, 0.0, 0.1]))) for x in (0.99, 1.01)
    )
    np.testing.assert_allclose(inside.distance, [-0.1])
    assert outside.distance.tolist() == [np.inf]
    _check_rows(outside)


def test_a_ball_rolls_over_a_height_field_without_jumps():
    """Neither distance nor normal jumps where it passes from triangle to triangle."""
    field = _field()
    along = jnp.linspace(-1.2, 1.2, 4001)
    X = jax.vmap(lambda x: Transform(jnp.eye(3), jnp.stack([x, 0.6 * x + 0.05, 0.3 + 0 * x])))(along)
    points = jax.jit(jax.vmap(contact_patch, (None, None, None, 0)))(field, HERE, SHAPES["sphere"], X)
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


def _still(count):
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), HERE)


def _stiffness_and_force(points):
    """Sums of weights of points that touch, and of weights times squared depths."""
    depths = np.maximum(0, -points.distance)
    return np.sum(points.weight * (depths > 0), axis=1), np.sum(points.weight * depths**2, axis=1)


def test_a_box_on_a_box_touches_with_four_corners():
    places = jnp.array([[0.0, 0.0, 0.99], [0.4, -0.3, 0.99], [1e-14, 1e-14, 0.99]])
    points = of_poses(UNIT, _still(3), UNIT, Transform(_turned((0, 0, 1), np.array([0, 0, 1e-13]), 0).rotation, places))
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
    points = of_poses(UNIT, _still(46), UNIT, _turned((0, 0, 1), angles, (0, 0, 0.99)))
    touching = np.sum(points.distance < 0, axis=1)
    assert (touching[0], touching[20], touching[-1]) == (4, 8, 4)
    stiffness, force = _stiffness_and_force(points)
    np.testing.assert_allclose(stiffness, 4, rtol=1e-9)
    np.testing.assert_allclose(force, 4e-4, rtol=1e-9)
    middle = np.sum(np.where(points.distance < 0, points.weight, 0)[..., None] * points.a, axis=1)
    np.testing.assert_allclose(middle[:, :2], 0, atol=1e-9)


@pytest.mark.parametrize("path", ["slides off", "tilts"])
def test_forces_between_boxes_change_without_jumps(path):
    """As large as the steps of a path: a hundredth of them changes a hundredth of it."""

    def largest_change(steps):
        s = np.linspace(0, 1, steps + 1)
        if path == "slides off":  # over an edge and a corner, turned, almost until it falls off
            X = _turned((0, 0, 1), 0.3 * s, np.stack([0.85 * s, 0.85 * s, 0 * s + 0.99], axis=1))
        else:  # on the edge, past the angle at which another face is below
            X = _turned((0.1, 0.995, 0), 1.2 * s, 0)
            X = Transform(X.rotation, X.translation.at[:, 2].set(0.48 + jnp.sum(jnp.abs(X.rotation[:, 2]), axis=1) / 2))
        return np.max(np.abs(np.diff(_stiffness_and_force(of_poses(UNIT, _still(steps + 1), UNIT, X))[1])))

    assert largest_change(9999) < 0.03 * largest_change(99) + 1e-15


def _mujoco_boxes(sides):
    geoms = "".join(
        f'<body><freejoint/><geom type="box" mass="1" size="{" ".join(map(str, np.asarray(s) / 2))}"/></body>'
        for s in sides
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    return model, mujoco.MjData(model)


def test_boxes_touch_where_they_do_in_mujoco():
    sides = [(0.6, 0.8, 1.0), (0.5, 0.7, 0.3)]
    rng = np.random.default_rng(0)
    quaternions = rng.normal(size=(2, 200, 4))
    quaternions /= np.linalg.norm(quaternions, axis=-1, keepdims=True)
    places = rng.uniform(-0.5, 0.5, (2, 200, 3))
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
    sized = jax.tree.map(lambda x: x * (1 + step[6]), b)
    return _finite(contact_patch(a, X_a, sized, _moved(X_b, step[:6])))


def test_derivatives_of_points_between_boxes_agree_with_differences():
    a, b = UNIT, Box(jnp.array([0.6, 0.8, 0.5]))
    X = _poses(7, 40, 0.55)
    of = jax.jit(jax.vmap(lambda X, step: _of_step(a, b, HERE, X, step), (0, None)))
    h = 1e-6
    at = jnp.zeros(7)
    numeric = jnp.stack([(of(X, at.at[k].add(h)) - of(X, at.at[k].add(-h))) / (2 * h) for k in range(7)], axis=-1)
    forward = jax.jit(jax.vmap(jax.jacfwd(lambda X, step: _of_step(a, b, HERE, X, step), 1), (0, None)))(X, at)
    # Some pose is within h of a change of sides.
    error = np.max(np.abs(np.asarray(forward - numeric)), axis=(1, 2))
    assert np.sum(error < 1e-6) >= 39
    pull = jax.random.normal(jax.random.key(0), forward.shape[1:2])
    reverse = jax.jit(jax.vmap(jax.grad(lambda step, X: pull @ _of_step(a, b, HERE, X, step)), (None, 0)))(at, X)
    np.testing.assert_allclose(reverse, jnp.einsum("i,nij->nj", pull, forward), atol=1e-10)


def test_boxes_in_special_poses_have_finite_points_and_gradients():
    special = jnp.array([[0.0, 0, 0], [0, 0, 1.0], [1.0, 1.0, 1.0], [0, 1.0, 1.0], [0, 0, 3.0], [3.0, 2.0, 5.0]])
    X = Transform(jnp.broadcast_to(jnp.eye(3), (6, 3, 3)), special)
    _check_rows(of_poses(UNIT, _still(6), UNIT, X))
    total = jax.vmap(jax.grad(lambda step, X: jnp.sum(_of_step(UNIT, UNIT, HERE, X, step))), (None, 0))
    assert np.isfinite(jax.jit(total)(jnp.zeros(7), X)).all()


def test_points_between_boxes_in_single_precision():
    box, here, X = jax.tree.map(lambda x: x.astype(jnp.float32), (UNIT, _still(20), _poses(8, 20, 0.7)))
    points = of_poses(box, here, box, X)
    assert {x.dtype for x in jax.tree.leaves(points)} == {jnp.dtype(jnp.float32)}
    exact = of_poses(UNIT, _still(20), UNIT, _poses(8, 20, 0.7))
    np.testing.assert_allclose(jnp.min(points.distance, axis=1), jnp.min(exact.distance, axis=1), atol=1e-5)
