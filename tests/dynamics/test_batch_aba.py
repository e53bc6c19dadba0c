"""The articulated-body algorithm number by number: rounding, shapes of programs, joints that follow others."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.dynamics.aligned import aligned_bodies
from jdyn.dynamics.traverse import unpack

SCREWS = jdyn.Revolute, jdyn.Prismatic, jdyn.Helical


def _states(model, lanes, dtype=jnp.float64):
    keys = jax.random.split(jax.random.key(0), 3)
    q = jax.vmap(model.random)(jax.random.split(keys[0], lanes))
    v, tau = (jax.random.normal(key, (lanes, model.nv)) for key in keys[1:])
    return tuple(x.astype(dtype) for x in (q, v, tau))


def _forward(method):
    return jax.jit(jax.vmap(lambda *x: jdyn.forward_dynamics(*x, method=method), in_axes=(None, 0, 0, 0)))


@pytest.mark.parametrize("kinds", [SCREWS, (jdyn.Revolute,), (jdyn.Prismatic,)], ids=["screws", "turning", "sliding"])
def test_joints_of_one_degree_of_freedom(kinds):
    """Against another algorithm, with rotors; and against the matrices of the same one where rounding to single
    precision leaves axes and rotations neither unit nor orthogonal."""
    model = jdyn.random_tree(3, 7, kinds=kinds)
    model = dataclasses.replace(model, armature=jnp.linspace(0, 0.3, model.nv))
    states = _states(model, 4)
    rounded = model.astype(jnp.float32).astype(jnp.float64)
    for robot, method in ((model, jdyn.CRBA()), (rounded, jdyn.ABA())):
        found, exact = (_forward(each)(robot, *states) for each in (jdyn.BatchABA(), method))
        assert np.max(np.abs(found - exact)) < 1e-11 * np.max(np.abs(exact))


def test_frames_are_those_of_the_joints():
    """A body's motion subspace is a coordinate axis, and poses lead to the same points."""
    model = jdyn.load("panda")
    q = model.random(jax.random.key(1))
    body = unpack(model.topology, aligned_bodies(model, q))
    assert [column.rows for column in body.S] == [(2,)]
    np.testing.assert_allclose(body.S[0].values[0], 1, atol=1e-15)
    rotations, translations = (np.stack(x, axis=1) for x in body.pose)
    place, turned = np.zeros(3), np.eye(3)
    for R, p in zip(rotations.reshape(-1, 3, 3), translations, strict=True):
        place, turned = place + turned @ p, turned @ R
    np.testing.assert_allclose(place, jdyn.forward_kinematics(model, q).translation[-1], atol=1e-14)


def test_single_precision():
    """A chain of thirty links as exact as by `ABA`, from which it differs by rounding."""
    model = jdyn.random_tree(0, 30, kinds=(jdyn.Revolute,), reach=1, dtype=jnp.float32)
    double, states = model.astype(jnp.float64), _states(model.astype(jnp.float64), 16, jnp.float32)
    exact = _forward(jdyn.ABA())(double, *(x.astype(jnp.float64) for x in states))

    def error(method):
        found = np.asarray(_forward(method)(model, *states), float)
        return np.median(np.max(np.abs(found - exact), axis=1) / np.max(np.abs(exact), axis=1))

    assert error(jdyn.BatchABA()) < max(2 * error(jdyn.ABA()), 2e-6)


@pytest.mark.slow
def test_joints_of_several_degrees_of_freedom_in_single_precision():
    model = jdyn.random_tree(5, 4, kinds=(jdyn.Universal, jdyn.Revolute, jdyn.Helical))
    assert {kind.nv for kind in model.topology.kinds} == {1, 2}
    states = _states(model, 3)
    exact = np.asarray(_forward(jdyn.CRBA())(model, *states))
    single = model.astype(jnp.float32), *(x.astype(jnp.float32) for x in states)
    found = np.asarray(_forward(jdyn.BatchABA())(*single))
    assert found.dtype == np.float32
    assert np.max(np.abs(found - exact)) < 1e-4 * np.max(np.abs(exact))
