"""The articulated-body algorithm number by number, as batches have it, against matrices and other algorithms."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.dynamics.recursion.depth_first import DEPTH_FIRST, _tour
from jdyn.dynamics.recursion.joint_frames import degrees_of_freedom
from jdyn.dynamics.recursion.levels import LEVELS
from jdyn.model import Topology
from jdyn.model.random_tree import ALL_KINDS
from jdyn.model.topology import dof_tree, support_mask
from tests.drawn import drawn_states

SCREWS = jdyn.Revolute, jdyn.Prismatic, jdyn.Helical


def _forward(method):
    return jax.jit(jax.vmap(lambda *x: jdyn.forward_dynamics(*x, method=method), in_axes=(None, 0, 0, 0)))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "kinds",
    [SCREWS, (jdyn.Revolute,), (jdyn.Prismatic,)],
    ids=["screws", "turning", "sliding"],
)
def test_joints_of_one_degree_of_freedom(kinds):
    """Against another algorithm, with rotors; and against the matrices of the same one where rounding to single
    precision leaves axes and rotations neither unit nor orthogonal."""
    model = jdyn.random_tree(3, 7, kinds=kinds)
    model = dataclasses.replace(model, armature=jnp.linspace(0, 0.3, model.nv))
    states = drawn_states(model, 4)[:3]
    rounded = model.astype(jnp.float32).astype(jnp.float64)
    for robot, method in ((model, jdyn.CRBA()), (rounded, jdyn.studies.MatrixABA())):
        found, exact = (_forward(each)(robot, *states) for each in (jdyn.ABA(), method))
        assert np.max(np.abs(found - exact)) < 1e-11 * np.max(np.abs(exact))


# A free base below a tree with branches.
FREE = jdyn.random_tree(7, 6, kinds=(jdyn.Free, jdyn.Revolute, jdyn.Universal))


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(FREE, id="free", marks=[pytest.mark.slow, pytest.mark.exhaustive]),
        pytest.param(jdyn.random_tree(7, 9, kinds=ALL_KINDS), id="all", marks=pytest.mark.slow),
    ],
)
def test_batches_and_single_configurations(model):
    """Accelerations and factors of a lane are those of the configuration by itself, which takes matrices."""
    model = dataclasses.replace(model, armature=jnp.linspace(0, 0.3, model.armature.size))
    q, v, tau, _ = drawn_states(model, 3)
    f_ext = jax.random.normal(jax.random.key(1), (3, model.nb, 6))

    def solution(q, v, tau, f_ext):
        return jdyn.ABA().accelerations_and_factors(model, q, v, tau, f_ext)

    single = jax.jit(solution)
    together = jax.jit(jax.vmap(solution))(q, v, tau, f_ext)
    for lane in range(3):
        expected = single(q[lane], v[lane], tau[lane], f_ext[lane])
        for x, y in zip(jax.tree.leaves(together), jax.tree.leaves(expected), strict=True):
            assert np.max(np.abs(x[lane] - y)) < 1e-11 * max(1, np.max(np.abs(y)))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_batches_of_batches():
    """Lanes of lanes, of which the inner ones share a configuration, by one program and two."""
    q, v, tau, _ = drawn_states(FREE, 2)
    inner = jax.vmap(lambda q, v, tau: jdyn.forward_dynamics(FREE, q, v, tau), in_axes=(None, 0, None))
    found = jax.vmap(inner, in_axes=(0, None, 0))(q, v, tau)
    expected = np.stack([inner(q[i], v, tau[i]) for i in range(2)])
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.max(np.abs(expected)))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.usefixtures("chosen_by_aba")
def test_a_batch_of_one_goes_as_a_single_configuration_does():
    """Alone, and as one of the lanes of a larger batch."""
    q, v, tau, _ = drawn_states(FREE, 2)

    def one(q, v, tau):
        return jax.vmap(lambda q, tau: jdyn.forward_dynamics(FREE, q, v, tau))(q[None], tau[None])[0]

    expected = np.stack([jdyn.forward_dynamics(FREE, *(x[i] for x in (q, v, tau))) for i in range(2)])
    np.testing.assert_array_equal(jax.jit(one)(q[1], v[1], tau[1]), expected[1])
    np.testing.assert_allclose(jax.jit(jax.vmap(one))(q, v, tau), expected, atol=1e-12 * np.max(np.abs(expected)))


@pytest.mark.slow
@pytest.mark.usefixtures("chosen_by_aba")
def test_large_batches_go_in_chunks_on_processors_alone():
    """300 lanes, of which 256 at a time: a lane is as it is by itself, also where the last chunk is filled up."""
    model = jdyn.load("double_pendulum")
    states = drawn_states(model, 300)[:3]
    program = jax.jit(jax.vmap(lambda *x: jdyn.forward_dynamics(model, *x)))
    some = np.array([0, 255, 256, 299])
    expected = program(*(x[some] for x in states))
    np.testing.assert_allclose(program(*states)[some], expected, rtol=1e-11)

    def loops(platform):
        return program.trace(*states).lower(lowering_platforms=(platform,)).as_text().count("stablehlo.while")

    assert loops("cpu") == loops("cuda") + 1


TREES = {
    "chain": (-1, 0, 1),
    "two chains": (-1, -1, 0, 1),
    "two forks in a fork": (-1, 0, 0, 1, 1, 2, 2, 2, 5),
    "a fork in a fork": (-1, 0, 1, 1, 0, 4, 4, 4),
    "nothing but forks": (-1, -1, -1, 0, 0, 1, 1, 1, 2, 2, *range(3, 10), *range(3, 10)),
}


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
def test_orders_of_visits(parents):
    """Sums along every path to the world and over every subtree, by levels and depth first."""
    names = tuple(map(str, range(len(parents))))
    topology = Topology("tree", names, names, parents, (jdyn.Revolute,) * len(parents))
    assert 2 ** _tour(topology).depth <= len(parents)
    mask, x = support_mask(topology), np.random.default_rng(0).normal(size=len(parents))
    for order in (LEVELS, DEPTH_FIRST):
        packed = order.pack(topology, jnp.array(x))
        down = order.outward(topology, lambda above, x: (above + x,) * 2, jnp.array(0.5), packed)
        np.testing.assert_allclose(order.unpack(topology, down), 0.5 + mask.T @ x, rtol=1e-14)
        total, up = order.gathered(topology, lambda below, x: (below + x,) * 2, jnp.array(0.0), packed)
        np.testing.assert_allclose(order.unpack(topology, up), mask @ x, rtol=1e-13)
        np.testing.assert_allclose(total, np.sum(x), rtol=1e-13)


def test_frames_are_those_of_the_joints():
    """A body's motion subspace is a coordinate axis, and poses lead to the same points."""
    model = jdyn.load("panda")
    q = model.random(jax.random.key(1))
    (degrees,) = degrees_of_freedom(model, DEPTH_FIRST.schedule(dof_tree(model.topology)), q)
    assert degrees.S.rows == (2,)
    np.testing.assert_allclose(degrees.S.values[0], 1, atol=1e-15)
    rotations, translations = (np.stack(x, axis=-1)[:, 0] for x in degrees.displaced().pose)
    place, turned = np.zeros(3), np.eye(3)
    for R, p in zip(rotations.reshape(-1, 3, 3), translations, strict=True):
        place, turned = place + turned @ p, turned @ R
    np.testing.assert_allclose(place, jdyn.forward_kinematics(model, q).translation[-1], atol=1e-14)


@pytest.mark.usefixtures("chosen_by_aba")
@pytest.mark.parametrize("robot", ["panda", pytest.param("stanford_arm", marks=pytest.mark.slow)])
def test_programs_find_constants_of_a_model_computed(robot):
    """Joints' frames and what is placed in them take products of matrices and roots; a batch on a fixed base none."""
    model = jdyn.load(robot)
    states = drawn_states(model, 4)[:3]
    program = jax.jit(jax.vmap(lambda *x: jdyn.forward_dynamics(model, *x))).lower(*states).compile().as_text()
    assert not re.findall(r"\b(dot|sqrt|rsqrt)\(", program)


@pytest.mark.slow
def test_single_precision():
    """A chain of thirty links as exact as by matrices, from which it differs by rounding."""
    model = jdyn.random_tree(0, 30, kinds=(jdyn.Revolute,), reach=1, dtype=jnp.float32)
    double, states = model.astype(jnp.float64), drawn_states(model.astype(jnp.float64), 16, dtype=jnp.float32)[:3]
    exact = _forward(jdyn.CRBA())(double, *(x.astype(jnp.float64) for x in states))

    def error(method):
        found = np.asarray(_forward(method)(model, *states), float)
        return np.median(np.max(np.abs(found - exact), axis=1) / np.max(np.abs(exact), axis=1))

    assert error(jdyn.ABA()) < max(2 * error(jdyn.studies.MatrixABA()), 2e-6)


@pytest.mark.slow
def test_joints_of_several_degrees_of_freedom_in_single_precision():
    model = jdyn.random_tree(5, 4, kinds=(jdyn.Universal, jdyn.Revolute, jdyn.Helical))
    assert {kind.nv for kind in model.topology.kinds} == {1, 2}
    states = drawn_states(model, 3)[:3]
    exact = np.asarray(_forward(jdyn.CRBA())(model, *states))
    single = model.astype(jnp.float32), *(x.astype(jnp.float32) for x in states)
    found = np.asarray(_forward(jdyn.ABA())(*single))
    assert found.dtype == np.float32
    assert np.max(np.abs(found - exact)) < 1e-4 * np.max(np.abs(exact))
