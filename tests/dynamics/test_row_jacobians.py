"""Jacobians of points in models of which each point knows few coordinates, beside those with a column for each."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.contact.colliders import colliders
from jdyn.dynamics import paths
from jdyn.dynamics.paths import AllCoordinates, FewCoordinates
from jdyn.dynamics.relative_motion import RelativeMotion
from jdyn.impulses import DenseJacobian, SparseJacobian

pytestmark = pytest.mark.fast_compile

NV, LANES = 6, 3
# Numbers fill rows up twice: they count twice.
COORDINATES = np.array([[0, 5, 5], [2, 1, 4], [3, 3, 3]], np.int32)


def both(count, seed=0):
    """In lanes: sparse Jacobians, and dense ones that are the same."""
    rng = np.random.default_rng(seed)
    coordinates = COORDINATES[rng.integers(0, len(COORDINATES), (LANES, count))]
    J = rng.normal(size=(LANES, count, 3, 3))
    whole = np.einsum("lpks,lpsn->lpkn", J, np.eye(NV)[coordinates])
    sparse = SparseJacobian(jnp.asarray(J), jnp.asarray(coordinates), NV)
    return rng, sparse, DenseJacobian(jnp.asarray(whole))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 9])
def test_weighed_products_are_those_of_points_that_do_not_fill_blocks(count):
    """Alone, and in lanes of which others have other points without part."""
    rng, *jacobians = both(count)
    G = rng.normal(size=(LANES, count, 3, 3))
    G[rng.uniform(size=(LANES, count)) < 0.5] = 0
    G[0] = 0
    whole = np.asarray(jacobians[1].J)
    expected = np.einsum("lpin,lpij,lpjm->lnm", whole, G, whole)
    for J in jacobians:
        weighed = type(J).weighed
        np.testing.assert_allclose(jax.jit(jax.vmap(weighed))(J, G), expected, atol=1e-13)
        for lane in range(LANES):
            alone = jax.jit(weighed)(jax.tree.map(lambda x, lane=lane: x[lane], J), G[lane])
            np.testing.assert_allclose(alone, expected[lane], atol=1e-13)


def test_products_are_those_of_all_coordinates():
    rng, sparse, dense = both(5)
    v, f = rng.normal(size=(LANES, NV)), rng.normal(size=(LANES, 5, 3))
    for name, x in (("velocities", v), ("generalized", f), ("squares", v**2)):
        found, expected = (jax.vmap(getattr(type(J), name))(J, x) for J in (sparse, dense))
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_squares_are_those_of_parts_where_no_coordinate_occurs_twice():
    rng, coordinates = np.random.default_rng(3), np.array([[0, 5, 1], [2, 1, 4]], np.int32)
    sparse = SparseJacobian(jnp.asarray(rng.normal(size=(2, 3, 3))), jnp.asarray(coordinates), NV)
    weights = rng.uniform(size=NV)
    known = dataclasses.replace(sparse, distinct=True)
    np.testing.assert_allclose(known.squares(weights), sparse.squares(weights), rtol=1e-14)


def heap(count, spread=0.2):
    """Balls about each other, and an arm with a follower that reaches among them."""
    builder = jdyn.Builder("heap")
    ball = {"mass": 1.0, "inertia": (4e-3, 4e-3, 4e-3)}
    for i in range(count):
        builder.add_link(f"ball{i}", jdyn.Free(), **ball)
        builder.add_shape(f"ball{i}", "sphere", 0.1, role="collision")
    builder.add_link("upper", jdyn.Revolute((0, 1, 0)), placement=jdyn.pose((-0.5, 0, 0.4)), damping=0.5, **ball)
    builder.add_link(
        "lower", jdyn.Revolute((0, 1, 0)), parent="upper", placement=jdyn.pose((0.3, 0, 0)), damping=0.5,
        mimic=jdyn.Mimic("upper", 0.5, 0.1), **ball,
    )  # fmt: skip
    builder.add_shape("lower", "capsule", (0.05, 0.3), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    model = builder.build()
    rng = np.random.default_rng(1)
    q = np.array(model.neutral())
    side = np.arange(3) * spread
    places = np.array([(x, y, 0.1 + z) for z in (0, 0.2) for x in side for y in side])[:count]
    q[: 7 * count].reshape(count, 7)[:, :3] = places + 0.001 * rng.normal(size=places.shape)
    return model, jnp.asarray(q), jnp.asarray(0.1 * rng.normal(size=model.nv))


def test_motion_of_pairs_is_that_of_all_joints(monkeypatch):
    """And so are its derivatives, with a joint that follows another one."""
    model, q, v = heap(8)
    shapes = colliders(model)
    pair = np.repeat(np.arange(len(shapes.pairs)), 2)
    rng = np.random.default_rng(2)
    places, v_rate = rng.normal(size=(len(pair), 3)), jnp.asarray(rng.normal(size=model.nv))
    wrenches = jnp.asarray(rng.normal(size=(len(shapes.pairs), 6)))

    def found(kind, most):
        monkeypatch.setattr(paths, "FEW", most)

        def at(q, v):
            motion = RelativeMotion.at(model, shapes.paths(model), q)
            assert isinstance(motion.paths, kind)
            jacobians = motion.jacobians(places, pair)
            by_points = [J.velocities(v) for J in jacobians]
            return motion.twists(v), motion.twists_at(places, pair, v), motion.generalized(wrenches), by_points

        return jax.jit(lambda q, v: jax.jvp(at, (q, v), (model.rate(q, v), v_rate)))(q, v)

    found, expected = found(FewCoordinates, 4), found(AllCoordinates, 1000)
    for x, y in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-13)
    (_, at_points, _, (turning, moving)), _ = found
    np.testing.assert_allclose(at_points, np.concatenate([turning, moving], axis=1), atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "most"), [(FewCoordinates, 4), (AllCoordinates, 1000)])
def test_motion_of_some_pairs_is_theirs_in_that_of_all(kind, most, monkeypatch):
    """One of them occurs twice, as pairs may that fill rows up."""
    monkeypatch.setattr(paths, "FEW", most)
    model, q, v = heap(8)
    motion, numbers = RelativeMotion.at(model, colliders(model).paths(model), q), jnp.array([17, 3, 3, 8])
    some = motion.of(numbers)
    assert isinstance(some.paths, kind)
    rng = np.random.default_rng(4)
    places, wrenches = rng.normal(size=(4, 3)), jnp.asarray(rng.normal(size=(4, 6)))
    np.testing.assert_array_equal(some.twists(v), motion.twists(v)[numbers])
    whole = jnp.zeros((len(colliders(model).pairs), 6)).at[numbers].add(wrenches)
    np.testing.assert_allclose(some.generalized(wrenches), motion.generalized(whole), atol=1e-13)
    for J, K in zip(some.jacobians(places, np.arange(4)), motion.jacobians(places, np.array(numbers)), strict=True):
        np.testing.assert_array_equal(J.velocities(v), K.velocities(v))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("contact", "until"),
    [
        (jdyn.ConvexContact(), 0.06),
        # Later, derivatives of 1e9 leave nothing of rounding's digits.
        (jdyn.CompliantContact(slip_speed=1e-3), 0.006),
    ],
    ids=["convex", "compliant"],
)
def test_a_heap_moves_as_it_does_by_all_coordinates(contact, until, monkeypatch):
    """Of more coordinates than are solved for without LAPACK; with derivatives by friction and speed."""
    model, q, v = heap(12)
    assert model.nv > 64

    def end(friction, speed):
        own = dataclasses.replace(contact, material=jdyn.contact.Material(friction=friction))
        motion = jdyn.simulate(
            model, q, speed * v, until, contact=own, saveat=diffrax.SaveAt(t1=True), adjoint=diffrax.ForwardMode(),
            stepsize_controller=diffrax.ConstantStepSize(), dt0=2e-3,
        )  # fmt: skip
        return jnp.concatenate([motion.q[-1], motion.v[-1]])

    def found():
        by = jax.jit(lambda *p: jax.jvp(end, p, (jnp.ones(()), jnp.ones(()))))
        return by(jnp.array(0.4), jnp.array(1.0))

    few, slope = found()
    monkeypatch.setattr(paths, "FEW", 1000)
    # Else the program of before is taken again.
    jax.clear_caches()
    whole, expected = found()
    assert np.max(np.abs(slope)) > 1e-3
    np.testing.assert_allclose(few, whole, atol=1e-9)
    np.testing.assert_allclose(slope, expected, atol=1e-6 * np.max(np.abs(expected)))
