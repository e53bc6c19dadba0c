"""The inverse of the mass matrix and what follows from it, against Pinocchio and dense linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from tests.drawn import drawn_states, with_joint_elements
from tests.dynamics.pinocchio_robots import each_robot, pair
from tests.errors import relative_error

pytestmark = pytest.mark.fast_compile

AXES = {"body": pin.LOCAL, "aligned": pin.LOCAL_WORLD_ALIGNED}
IMPULSE = jnp.array([0.3, -0.2, 0.1, 1.0, 2.0, -1.5])


def everything(model, frames, axes, q):
    return {
        "inverse": jdyn.mass_matrix_inverse(model, q),
        "delassus": jdyn.delassus_matrix(model, q, frames, frame=axes),
        "inertia": jdyn.operational_space_inertia(model, q, frames[0], frame=axes),
        "response": jdyn.impulse_response(model, q, frames[0], IMPULSE, frame=axes),
    }


def of_pinocchio(name, frames, axes, q):
    """From Pinocchio's inverse of M, or of Tᵀ M T where joints follow others."""
    model, peer, to, _ = pair(name)
    data, state, T = peer.createData(), to.q_to_peer(q), to.velocity_map(q)
    if model.topology.mimics:
        M = np.triu(pin.crba(peer, data, state))
        inverse = np.linalg.inv(T.T @ (M + np.triu(M, 1).T) @ T)
    else:
        inverse = np.triu(pin.computeMinverse(peer, data, state))
        back = to.velocity_map_inverse(q)
        inverse = back @ (inverse + np.triu(inverse, 1).T) @ back.T
    numbers = [peer.getFrameId(frame) for frame in frames]
    pin.computeJointJacobians(peer, data, state)
    pin.updateFramePlacements(peer, data)
    each = [to.jacobian_from_peer(q, pin.getFrameJacobian(peer, data, number, AXES[axes])) for number in numbers]
    J = np.concatenate(each)
    return {
        "inverse": inverse,
        "delassus": J @ inverse @ J.T,
        "inertia": np.linalg.inv(each[0] @ inverse @ each[0].T),
        "response": inverse @ each[0].T @ np.asarray(IMPULSE),
    }


@pytest.mark.slow
@each_robot
def test_every_function_agrees_with_pinocchio(name):
    """The second frame is on the path to the first one, or the base itself."""
    model, _, _, frame = pair(name)
    axes = "body" if name == "floating" else "aligned"
    frames = frame, model.body_names[0 if name == "floating" else 2]
    q, *_ = drawn_states(model, 2)
    together = jax.jit(jax.vmap(lambda q: everything(model, frames, axes, q)))(q)
    for lane in range(2):
        for function, exact in of_pinocchio(name, frames, axes, np.asarray(q[lane])).items():
            # The inverse of what is nearly singular is worse than what it is made of.
            worse = np.linalg.cond(exact) if function == "inertia" else 1e2
            error = relative_error(together[function][lane], exact)
            assert error < min(1e-10, 1e-13 * worse), (function, error)


# With joints of several degrees of freedom and rotors.
TREE = with_joint_elements(jdyn.random_tree(5, 4, kinds=(jdyn.Free, jdyn.Universal)))
LAST = TREE.nb - 1


def by_dense_matrices(model, q):
    inverse = jnp.linalg.inv(jdyn.mass_matrix(model, q))
    J = jdyn.jacobian(model, q, LAST)
    return inverse, jnp.linalg.inv(J @ inverse @ J.T)


def by_responses(model, q):
    return jdyn.mass_matrix_inverse(model, q), jdyn.operational_space_inertia(model, q, LAST)


@pytest.mark.slow
def test_derivatives_are_those_of_dense_matrices():
    """In both modes, by the configuration and by a mass."""
    q = jnp.stack([TREE.neutral(), TREE.random(jax.random.key(1))])
    start, direction = (jnp.zeros(TREE.nv), jnp.ones(())), (jnp.arange(1.0, TREE.nv + 1), jnp.ones(()))

    def slopes(function, q):
        def of(e, mass):
            return function(TREE.with_body(TREE.body_names[-1], mass=mass), TREE.integrate(q, e))

        return jax.jvp(of, start, direction)[1], jax.vjp(of, *start)[1](weights)

    keys = jax.random.split(jax.random.key(0))
    weights = tuple(jax.random.normal(key, (n, n)) for key, n in zip(keys, (TREE.nv, 6), strict=True))
    expected, found = (
        jax.tree.leaves(jax.jit(jax.vmap(lambda q, f=function: slopes(f, q)))(q))
        for function in (by_dense_matrices, by_responses)
    )
    for x, exact in zip(found, expected, strict=True):
        assert relative_error(x, exact) < 1e-9


@pytest.mark.slow
@pytest.mark.exhaustive
def test_second_derivatives():
    model, q = jdyn.load("double_pendulum"), jnp.array([0.3, -0.4])

    def found(q):
        return jdyn.mass_matrix_inverse(model, q)[0, 1]

    def exact(q):
        return jnp.linalg.inv(jdyn.mass_matrix(model, q))[0, 1]

    for function in (jax.hessian, lambda f: jax.jacrev(jax.jacrev(f))):
        assert relative_error(function(found)(q), jax.hessian(exact)(q)) < 1e-11


@pytest.mark.slow
def test_single_precision():
    """Types stay, and digits that a factor of M loses on a long chain are kept."""
    chain = jdyn.ROBOTS["chain"](30)
    q = 0.1 * jnp.ones(chain.nv)
    exact = jdyn.mass_matrix_inverse(chain, q)
    single = chain.astype(jnp.float32), q.astype(jnp.float32)
    found = jdyn.mass_matrix_inverse(*single)
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, found.T)
    by_factor = jnp.linalg.inv(jdyn.mass_matrix(*single))
    assert relative_error(found, exact) < min(1e-3, 0.1 * relative_error(by_factor, exact))


def test_what_is_wrong_is_named():
    model, q = jdyn.load("pendulum"), jnp.zeros(1)
    with pytest.raises(ValueError, match=r"impulse: .*\(6,\)"):
        jdyn.impulse_response(model, q, "tip", jnp.zeros(3))
    with pytest.raises(ValueError, match="'tipp'"):
        jdyn.delassus_matrix(model, q, ["tip", "tipp"])
    with pytest.raises(ValueError, match="frame: "):
        jdyn.delassus_matrix(model, q, ["tip"], frame="local")
    # A pendulum cannot move in all directions.
    assert not np.all(np.abs(jdyn.operational_space_inertia(model, q, "tip")) < 1e6)
    assert jdyn.delassus_matrix(model, q, []).shape == (0, 0)
