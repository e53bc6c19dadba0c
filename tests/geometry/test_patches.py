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


def _check_rows(points):
    """What holds for all rows; those without a point are finite but for their distance."""
    gaps = np.where(np.isfinite(points.distance), points.distance, 0)
    np.testing.assert_allclose(points.b - points.a, gaps[..., None] * points.normal, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(points.normal, axis=-1), 1, rtol=1e-14)
    assert np.isfinite(points.a).all() and (np.asarray(points.weight) >= 0).all()


@pytest.mark.parametrize("kind", SHAPES)
def test_the_deepest_point_of_a_shape_in_a_half_space_is_its_support(kind):
    shape = SHAPES[kind]
    X_ground, X = _poses(0, 20, 1.0), _poses(1, 20, 1.0)
    points = jax.jit(jax.vmap(contact_patch, (None, 0, None, 0)))(HalfSpace(), X_ground, shape, X)
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
