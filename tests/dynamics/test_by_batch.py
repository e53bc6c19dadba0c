"""One configuration takes a way of its own, with the results of batches, derivatives included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.dynamics.joint_space import joint_space
from jdyn.dynamics.kinematics import joint_kinematics, poses, poses_by_leaps
from jdyn.model.random_tree import ALL_KINDS
from tests.drawn import drawn_states, with_joint_elements

pytestmark = pytest.mark.fast_compile

EPS = float(np.finfo(np.float64).eps)
LANES = 3


def _follower():
    """A chain with a ball joint, whose last joint follows its first."""
    tree = jdyn.Builder("follower")
    for i, kind in enumerate((jdyn.Revolute((1, 0, 0)), jdyn.Ball(), jdyn.Revolute((0, 0, 1)))):
        parent, mimic = (f"b{i - 1}" if i else "world"), (jdyn.Mimic("b0", -0.7, 0.3) if i == 2 else None)
        tree.add_link(f"b{i}", kind, parent=parent, placement=(0.1, 0.2, 0.3), mimic=mimic, mass=1.0,
                      com=(0.1, 0, 0.2), inertia=0.1)  # fmt: skip
    return tree.build()


MODELS = {
    "every kind": lambda: jdyn.random_tree(7, 9, kinds=ALL_KINDS),
    "walker": lambda: jdyn.random_tree(4, 9, kinds=(jdyn.Free, jdyn.Revolute, jdyn.Revolute)),
    "follower": _follower,
}


def _assert_close(found, expected, times):
    """To some roundings of the largest entry, of a sum over paths of ten bodies."""
    assert np.max(np.abs(found - expected)) < times * EPS * np.max(np.abs(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name == "walker")) for name in MODELS]
)
def test_mass_matrix_and_bias_of_a_single_configuration(name):
    model = with_joint_elements(MODELS[name]())
    q, v, _, f_ext = drawn_states(model, LANES, seed=2)
    M, h = jax.jit(joint_space)(model, q[0], v[0], f_ext[0])
    _assert_close(M, jdyn.mass_matrix(model, q[0]), 100)
    _assert_close(h, jdyn.bias_forces(model, q[0], v[0], f_ext=f_ext[0]), 100)


@pytest.mark.slow
@pytest.mark.parametrize("reach", [1, 3, 20])
def test_leaps_find_all_poses(reach):
    """On chains, trees and bushes, of a depth that is no power of two."""
    model = jdyn.random_tree(5, 21, kinds=(jdyn.Revolute, jdyn.Prismatic), reach=reach)
    X = joint_kinematics(model, model.random(jax.random.key(0))).X
    found, expected = poses_by_leaps(model, X), poses(model, X)
    _assert_close(found.rotation, expected.rotation, 50)
    _assert_close(found.translation, expected.translation, 50)


def _response(model, state, dq):
    q, v, tau, f_ext = state

    def forward(dq):
        q_near = model.integrate(q, dq)
        return jdyn.forward_dynamics(model, q_near, v, tau, f_ext=f_ext, method=jdyn.ByBatch())

    a, pull_back = jax.vjp(forward, dq)
    return a, jax.jvp(forward, (dq,), (jnp.ones_like(dq),))[1], pull_back(jnp.ones_like(a))[0]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_of_one_and_of_many():
    """The single configuration's factors are made by matrices, those of a batch by numbers."""
    model = with_joint_elements(_follower())
    states, dq = drawn_states(model, LANES, seed=2), jnp.zeros(model.nv)
    many = jax.jit(jax.vmap(_response, (None, 0, None)))(model, states, dq)
    one = jax.jit(_response)(model, jax.tree.map(lambda x: x[1], states), dq)
    for found, expected in zip(one, many, strict=True):
        np.testing.assert_allclose(found, expected[1], rtol=1e-9, atol=1e-10 * np.max(np.abs(expected)))


def test_with_and_without_64_bits():
    """One process may do both, as diagnosis does; what is kept from one must not reach into the other."""
    model = jdyn.random_tree(4, 5, kinds=(jdyn.Revolute,), dtype=jnp.float32)
    x = jnp.ones(5, jnp.float32)
    found = []
    for enabled in (True, False):
        with jax.enable_x64(enabled):
            program = jax.jit(lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau, method=jdyn.ByBatch()))
            found.append(program(x, x, x))
    assert {a.dtype for a in found} == {jnp.dtype(jnp.float32)}
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("chosen_by_aba")
def test_the_way_is_chosen_by_the_batch():
    """The result is bit by bit that of the method in charge; a batch of one counts as a single configuration."""
    model = jdyn.random_tree(4, 5, kinds=(jdyn.Revolute,))
    q, v, tau, _ = drawn_states(model, LANES, seed=2)

    def by(method, count):
        return np.asarray(
            jax.jit(jax.vmap(lambda *x: jdyn.forward_dynamics(model, *x, method=method)))(
                q[:count], v[:count], tau[:count]
            )
        )

    single, batch = (by(method, 1) for method in (jdyn.CRBA(), jdyn.ABA()))
    assert np.any(single != batch)
    np.testing.assert_array_equal(by(jdyn.ByBatch(), 1), single)
    np.testing.assert_array_equal(by(jdyn.ByBatch(), LANES), by(jdyn.ABA(), LANES))
    np.testing.assert_array_equal(by(jdyn.ByBatch(jdyn.ABA(), jdyn.CRBA()), 1), batch)
