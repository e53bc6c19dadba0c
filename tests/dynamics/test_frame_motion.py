"""Velocities, accelerations and Jacobians of frames, against Pinocchio and differentiation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from tests.drawn import drawn_states
from tests.dynamics.pinocchio_robots import each_robot, pair

pytestmark = pytest.mark.fast_compile

AXES = {"body": pin.LOCAL, "world": pin.WORLD, "aligned": pin.LOCAL_WORLD_ALIGNED}


def everything(model, of, q, v, a):
    """Each function in all axes."""
    found = {}
    for frame in AXES:
        found[frame] = {
            "velocity": jdyn.frame_velocity(model, q, v, of, frame=frame),
            "spatial": jdyn.frame_acceleration(model, q, v, a, of, frame=frame),
            "classical": jdyn.frame_acceleration(model, q, v, a, of, frame=frame, classical=True),
            "jacobian": jdyn.jacobian(model, q, of, frame=frame),
            "rate": jdyn.jacobian_rate(model, q, v, of, frame=frame),
        }
    return found


def of_pinocchio(name, q, v, a):
    _, peer, to, frame = pair(name)
    data, number = peer.createData(), peer.getFrameId(frame)
    state = to.q_to_peer(q), to.v_to_peer(q, v), to.a_to_peer(q, v, a)
    pin.forwardKinematics(peer, data, *state)
    pin.computeJointJacobiansTimeVariation(peer, data, *state[:2])
    pin.updateFramePlacements(peer, data)
    found = {}
    for ours, theirs in AXES.items():
        there = peer, data, number, theirs
        found[ours] = {
            "velocity": np.roll(pin.getFrameVelocity(*there).vector, 3),
            "spatial": np.roll(pin.getFrameAcceleration(*there).vector, 3),
            "classical": np.roll(pin.getFrameClassicalAcceleration(*there).vector, 3),
            "jacobian": to.jacobian_from_peer(q, pin.getFrameJacobian(*there)),
            "rate": to.jacobian_from_peer(q, pin.getFrameJacobianTimeVariation(*there)),
        }
    return found


@pytest.mark.slow
@each_robot
def test_every_function_agrees_with_pinocchio(name):
    model, _, _, frame = pair(name)
    q, v, a, _ = drawn_states(model, 2)
    together = jax.jit(jax.vmap(lambda *state: everything(model, frame, *state)))(q, v, a)
    for lane in range(2):
        expected = of_pinocchio(name, *(np.asarray(x[lane]) for x in (q, v, a)))
        for axes, functions in expected.items():
            for function, exact in functions.items():
                found = together[axes][function][lane]
                np.testing.assert_allclose(
                    found, exact, atol=1e-10 * max(1, np.max(np.abs(exact))), err_msg=f"{axes} {function}"
                )


# Of every kind of joint, at a body in the middle of the tree and a point beside it.
TREE = jdyn.random_tree(5, 6, kinds=(jdyn.Free, jdyn.Universal, jdyn.Ball, jdyn.Planar, jdyn.Helical))
POINT = (0.1, -0.2, 0.3)


@functools.partial(jax.jit, static_argnums=0)
def along_the_motion(axes, q, v, a, body):
    """What functions say, and the derivatives of what they are rates of."""
    point = None if axes == "world" else POINT
    options = {"point": point, "frame": axes}

    def moving(function):
        return jax.jvp(function, (q, v), (TREE.rate(q, v), a))[1]

    velocity = jdyn.frame_velocity(TREE, q, v, body, **options)
    acceleration = jdyn.frame_acceleration(TREE, q, v, a, body, **options, classical=axes == "aligned")
    J = jdyn.jacobian(TREE, q, body, **options)
    rate = jdyn.jacobian_rate(TREE, q, v, body, **options)
    found = velocity, acceleration, rate, acceleration
    expected = (
        J @ v,
        moving(lambda q, v: jdyn.frame_velocity(TREE, q, v, body, **options)),
        moving(lambda q, v: jdyn.jacobian(TREE, q, body, **options)),
        J @ a + rate @ v,
    )
    return found, expected


@pytest.mark.slow
@pytest.mark.parametrize("axes", AXES)
def test_rates_are_derivatives_along_the_motion(axes):
    states = drawn_states(TREE, 3)[:3]
    for x, exact in zip(
        *jax.vmap(along_the_motion, (None, 0, 0, 0, 0))(axes, *states, jnp.array([1, 3, 5])), strict=True
    ):
        np.testing.assert_allclose(x, exact, atol=1e-11 * np.max(np.abs(exact)))


SMALL = jdyn.random_tree(2, 3, kinds=(jdyn.Free, jdyn.Universal))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("axes", ["body", "world", "aligned"])
def test_modes_of_differentiation_agree(axes):
    """In some state and at rest, where no derivative is NaN."""
    q, v, a, _ = drawn_states(SMALL, 2)
    q, v, a = q.at[1].set(SMALL.neutral()), v.at[1].set(0), a.at[1].set(0)

    def function(q, v, a):
        rate = jdyn.jacobian_rate(SMALL, q, v, 2, frame=axes)
        return jdyn.frame_acceleration(SMALL, q, v, a, 2, frame=axes, classical=True), rate @ a

    modes = [jax.jit(jax.vmap(mode(function, (0, 1, 2))))(q, v, a) for mode in (jax.jacfwd, jax.jacrev)]
    for forward, reverse in zip(*map(jax.tree.leaves, modes), strict=True):
        assert np.all(np.isfinite(forward))
        np.testing.assert_allclose(forward, reverse, atol=1e-11 * max(1, np.max(np.abs(forward))))


@pytest.mark.slow
def test_single_precision_stays_single():
    model = jdyn.load("double_pendulum").astype(jnp.float32)
    x = jnp.ones(2, jnp.float32)
    for found in jax.tree.leaves(everything(model, "tip", x, x, x)):
        assert found.dtype == jnp.float32 and np.all(np.isfinite(found))


def test_a_frame_that_is_wrong_is_named():
    model, x = jdyn.load("double_pendulum"), jnp.zeros(2)
    for function, state in (
        (jdyn.frame_velocity, (x, x)), (jdyn.frame_acceleration, (x, x, x)), (jdyn.jacobian_rate, (x, x)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="'tipp'"):
            function(model, *state, "tipp")
        with pytest.raises(ValueError, match="frame: expected 'body' or 'world' or 'aligned'"):
            function(model, *state, "tip", frame="local")
        with pytest.raises(ValueError, match="point: "):
            function(model, *state, "tip", point=POINT, frame="world")
        with pytest.raises(ValueError, match=r"q: expected shape \(2,\)"):
            function(model, jnp.zeros(3), *state[1:], "tip")
    assert np.all(np.isnan(jax.jit(lambda body: jdyn.frame_velocity(model, x, x, body))(jnp.array(2))))
