"""Distances of the shapes of a model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile


def balls(count=3):
    """Balls that slide along x, above ground."""
    builder = jdyn.Builder("balls")
    for number in range(count):
        name = f"ball{number}"
        builder.add_link(name, jdyn.Prismatic((1, 0, 0)), placement=(0, 0, 1), mass=1.0, inertia=0.1)
        builder.add_shape(name, "sphere", 0.1 * (number + 1), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


MODEL = balls()
Q = jnp.array([0.0, 1.0, 3.0])


def test_pairs_are_by_kinds_and_have_their_names():
    grounded = [("ground", f"ball{number}") for number in range(3)]
    assert jdyn.contact.collision_pairs(MODEL) == (
        *grounded,
        ("ball0", "ball1"),
        ("ball0", "ball2"),
        ("ball1", "ball2"),
    )


def test_distances_of_balls_are_those_of_their_middles_without_radii():
    found = jdyn.contact.distances(MODEL, Q)
    assert found.names == jdyn.contact.collision_pairs(MODEL)
    np.testing.assert_allclose(found.distance, [0.9, 0.8, 0.7, 0.7, 2.6, 1.5], atol=1e-15)
    np.testing.assert_allclose(found.b - found.a, found.distance[:, None] * found.normal, atol=1e-15)


def test_chosen_pairs_come_as_they_are_asked_for():
    asked = [("ball2", "ball0"), ("ball1", "ground"), ("ball0", "ball2")]
    found = jdyn.contact.distances(MODEL, Q, pairs=asked)
    assert found.names == tuple(asked)
    np.testing.assert_allclose(found.distance, [2.6, 0.8, 2.6], atol=1e-15)
    np.testing.assert_allclose(found.normal, [[-1, 0, 0], [0, 0, -1], [1, 0, 0]], atol=1e-15)
    np.testing.assert_allclose(found.a, [[2.7, 0, 1], [1, 0, 0.8], [0.1, 0, 1]], atol=1e-15)


def test_pairs_that_may_not_touch_have_distances_too():
    builder = jdyn.Builder("neighbours")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        builder.add_link(name, jdyn.Revolute((0, 1, 0)), parent=parent, placement=(0, 0, -1), mass=1.0, inertia=0.1)
        builder.add_shape(name, "sphere", 0.1, role="collision")
    model = builder.build()
    assert jdyn.contact.collision_pairs(model) == () and jdyn.contact.distances(model, jnp.zeros(2)).distance.shape == (
        0,
    )
    np.testing.assert_allclose(
        jdyn.contact.distances(model, jnp.zeros(2), [("upper", "lower")]).distance, [0.8], atol=1e-15
    )


def test_an_unknown_shape_is_refused_by_name():
    with pytest.raises(ValueError, match=r"pairs: no collision shape is called 'ball3'; there are ball0, ball1"):
        jdyn.contact.distances(MODEL, Q, pairs=[("ball0", "ball3")])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (("ball0", "ball1"), r"pairs: expected pairs of names, such as .*, got 'ball0' for one"),
        ([("ball0", "ball1", "ball2")], r"got \('ball0', 'ball1', 'ball2'\) for one"),
        ([("ball0", "ball0")], "pairs: expected two shapes, got 'ball0' twice"),
    ],
)
def test_pairs_that_are_none_are_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        jdyn.contact.distances(MODEL, Q, pairs=pairs)


def test_derivatives_by_sizes_and_placements_are_those_of_the_formula():
    by_model = jax.grad(lambda model: jnp.sum(jdyn.contact.distances(model, Q).distance))(MODEL)
    # Each ball is in three pairs; the ground's height counts in three.
    np.testing.assert_allclose(by_model.shapes.sizes[:3, 0], [-3, -3, -3], atol=1e-14)
    np.testing.assert_allclose(by_model.shapes.placements.translation[3], [0, 0, -3], atol=1e-14)


def test_batches_and_float32_go_through():
    single = MODEL.astype(jnp.float32)
    found = jax.vmap(lambda q: jdyn.contact.distances(single, q))(jnp.stack([Q, 2 * Q]).astype(jnp.float32))
    assert found.distance.dtype == jnp.float32 and found.distance.shape == (2, 6)
    np.testing.assert_allclose(found.distance[1, 3:], [1.7, 5.6, 3.5], rtol=1e-6)


def test_each_height_field_has_a_grid_of_its_own():
    builder = jdyn.Builder("hills")
    for number, (rows, columns) in enumerate([(2, 3), (4, 2)]):
        builder.add_link(
            f"ball{number}", jdyn.Prismatic((0, 0, 1)), placement=(3.0 * number, 0, 0), mass=1.0, inertia=1.0
        )
        builder.add_shape(f"ball{number}", "sphere", 0.1, role="collision")
        heights = np.full((rows, columns), 0.1 * (number + 1))
        builder.add_shape(
            "world", "height field", (2, 2), placement=(3.0 * number, 0, 0), role="collision", heights=heights,
            name=f"hill{number}",
        )  # fmt: skip
    model, pairs = builder.build(), [("hill0", "ball0"), ("ball1", "hill1"), ("hill1", "ball0")]
    found = jdyn.contact.distances(model, jnp.array([1.0, 2.0]), pairs)
    np.testing.assert_allclose(found.distance, [0.8, 1.7, np.inf], atol=1e-14)
    higher = jdyn.vary(model, {"collision:hill1.heights": jnp.ones((4, 2))})
    np.testing.assert_allclose(
        jdyn.contact.distances(higher, jnp.array([1.0, 2.0]), pairs).distance[1], 0.9, atol=1e-14
    )
    assert jdyn.parameters(higher)["collision:hill1.heights"].shape == (4, 2)
