"""Motion of the centre of mass and momentum about it, against Pinocchio and differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from tests.drawn import drawn_states
from tests.dynamics.pinocchio_robots import each_robot, pair

pytestmark = pytest.mark.fast_compile


def everything(model, q, v, a):
    return {
        "com velocity": jdyn.centroidal.com_velocity(model, q, v),
        "com acceleration": jdyn.centroidal.com_acceleration(model, q, v, a),
        "com jacobian": jdyn.centroidal.com_jacobian(model, q),
        "momentum": jdyn.momentum(model, q, v),
        "momentum rate": jdyn.centroidal.momentum_rate(model, q, v, a),
        "matrix": jdyn.centroidal.momentum_matrix(model, q),
        "matrix rate": jdyn.centroidal.momentum_matrix_rate(model, q, v),
    }


def of_pinocchio(name, q, v, a):
    _, peer, to, _ = pair(name)
    data, T = peer.createData(), to.velocity_map(q)
    state = to.q_to_peer(q), to.v_to_peer(q, v), to.a_to_peer(q, v, a)
    pin.centerOfMass(peer, data, *state, False)
    found = {"com velocity": data.vcom[0].copy(), "com acceleration": data.acom[0].copy()}
    found["com jacobian"] = pin.jacobianCenterOfMass(peer, data, state[0], False) @ T
    found["momentum rate"] = np.roll(pin.computeCentroidalMomentumTimeVariation(peer, data, *state).vector, 3)
    found["momentum"] = np.roll(data.hg.vector, 3)
    found["matrix rate"] = to.jacobian_from_peer(q, pin.dccrba(peer, data, *state[:2]))
    found["matrix"] = to.jacobian_from_peer(q, data.Ag)
    return found


@pytest.mark.slow
@each_robot
def test_every_function_agrees_with_pinocchio(name):
    model = pair(name)[0]
    q, v, a, _ = drawn_states(model, 2)
    together = jax.jit(jax.vmap(lambda *state: everything(model, *state)))(q, v, a)
    for lane in range(2):
        expected = of_pinocchio(name, *(np.asarray(x[lane]) for x in (q, v, a)))
        assert expected.keys() == together.keys()
        for function, exact in expected.items():
            scale = max(1, np.max(np.abs(exact)))
            np.testing.assert_allclose(together[function][lane], exact, atol=1e-10 * scale, err_msg=function)


# Of every kind of joint.
TREE = jdyn.random_tree(5, 6, kinds=(jdyn.Free, jdyn.Universal, jdyn.Ball, jdyn.Planar, jdyn.Helical))


@jax.jit
@jax.vmap
def along_the_motion(q, v, a):
    """What functions say, and the derivatives of what they are rates of."""
    here = everything(TREE, q, v, a)

    def moving(function):
        return jax.jvp(function, (q, v), (TREE.rate(q, v), a))[1]

    A = here["matrix"]
    found = (*here.values(), A[3:] / jnp.sum(TREE.inertias.mass))
    expected = (
        moving(lambda q, v: jdyn.center_of_mass(TREE, q)),
        moving(lambda q, v: jdyn.centroidal.com_velocity(TREE, q, v)),
        A[3:] / jnp.sum(TREE.inertias.mass),
        A @ v,
        moving(lambda q, v: jdyn.momentum(TREE, q, v)),
        A,
        moving(lambda q, v: jdyn.centroidal.momentum_matrix(TREE, q)),
        here["com jacobian"],
    )
    return found, expected, (here["momentum rate"], A @ a + here["matrix rate"] @ v)


@pytest.mark.slow
def test_rates_are_derivatives_along_the_motion():
    found, expected, same = along_the_motion(*drawn_states(TREE, 3)[:3])
    for x, exact in zip((*found, same[0]), (*expected, same[1]), strict=True):
        np.testing.assert_allclose(x, exact, atol=1e-11 * np.max(np.abs(exact)))


SMALL = jdyn.random_tree(2, 3, kinds=(jdyn.Free, jdyn.Universal))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_modes_of_differentiation_agree():
    """In some state and at rest, where no derivative is NaN."""
    q, v, a, _ = drawn_states(SMALL, 2)
    q, v, a = q.at[1].set(SMALL.neutral()), v.at[1].set(0), a.at[1].set(0)

    def function(q, v, a):
        J, rate = jdyn.centroidal.com_jacobian(SMALL, q), jdyn.centroidal.momentum_matrix_rate(SMALL, q, v)
        return jdyn.centroidal.momentum_rate(SMALL, q, v, a), J @ a, rate @ a

    modes = [jax.jit(jax.vmap(mode(function, (0, 1, 2))))(q, v, a) for mode in (jax.jacfwd, jax.jacrev)]
    for forward, reverse in zip(*map(jax.tree.leaves, modes), strict=True):
        assert np.all(np.isfinite(forward))
        np.testing.assert_allclose(forward, reverse, atol=1e-11 * max(1, np.max(np.abs(forward))))


@pytest.mark.slow
def test_force_of_gravity_is_the_rate_of_momentum():
    """Of what falls freely; how far from the world's origin that is does not matter, in single precision neither."""
    model = jdyn.load("quadruped").astype(jnp.float32)
    q, v, _, _ = drawn_states(model, dtype=jnp.float32)
    a = jdyn.forward_dynamics(model, q, v, jnp.zeros_like(v))
    weight = jnp.sum(model.inertias.mass) * model.gravity
    for place in (0.0, 1000.0):
        found = everything(model, q.at[:3].set(place), v, a)
        assert {x.dtype for x in jax.tree.leaves(found)} == {np.dtype(np.float32)}
        rate = found["momentum rate"]
        np.testing.assert_allclose(rate, [0, 0, 0, *weight], atol=1e-3 * np.max(np.abs(weight)))
