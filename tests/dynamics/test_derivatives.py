"""Full derivatives of the dynamics in closed form, against differentiation and Pinocchio."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.interop.pinocchio_values import PinocchioValues
from jdyn.interop.values import DERIVATIVES, random_states
from tests.drawn import drawn_states

pytestmark = pytest.mark.fast_compile

FOLDER = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
SPECIAL = {"armature": 0.2, "damping": 0.3, "friction": 0.1, "stiffness": 2.0}


def _differentiated(function, model, q, v, x, f_ext):
    def of(e, v, x):
        return function(model, model.integrate(q, e), v, x, f_ext=f_ext)

    return jax.jacfwd(of, (0, 1, 2))(jnp.zeros_like(v), v, x)


def _with_forces_of_joints(model):
    joints = [name for name, kind in zip(model.joint_names, model.topology.kinds, strict=True) if kind.nv == 1]
    for name in joints:
        model = model.with_joint(name, **SPECIAL)
    return model


MODELS = {
    "slides": lambda: jdyn.random_tree(3, 2, kinds=(jdyn.Prismatic,)),
    "slides on a free base": lambda: jdyn.random_tree(3, 2, kinds=(jdyn.Free, jdyn.Prismatic)),
    "screws": lambda: jdyn.random_tree(3, 6, kinds=(jdyn.Revolute, jdyn.Prismatic, jdyn.Helical)),
    "free base": lambda: jdyn.random_tree(7, 5, kinds=(jdyn.Free, jdyn.Revolute, jdyn.Revolute)),
    "mimics": lambda: jdyn.load(FOLDER / "panda_description/urdf/panda.urdf"),
    "several degrees of freedom": lambda: jdyn.random_tree(1, 3, kinds=(jdyn.Universal, jdyn.Revolute)),
}


# Of kinds of joints and of bases that others have.
OF_OTHERS = "slides", "slides on a free base", "screws"


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n in OF_OTHERS)) for n in MODELS])
@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
def test_against_differentiation(name):
    """In lanes and alone, with rotors, dampers, friction and springs in the joints; M comes out symmetric."""
    model = _with_forces_of_joints(MODELS[name]())
    states = drawn_states(model, 2)
    pairs = [(jdyn.inverse_dynamics_derivatives, jdyn.inverse_dynamics)]
    if name == "free base":
        pairs.append((jdyn.forward_dynamics_derivatives, jdyn.forward_dynamics))
    for closed, function in pairs:
        expected = jax.jit(jax.vmap(lambda *x, f=function: _differentiated(f, model, *x)))(*states)
        together = jax.vmap(lambda q, v, x, f, g=closed: g(model, q, v, x, f_ext=f))(*states)
        q, v, x, f_ext = (state[1] for state in states)
        alone = closed(model, q, v, x, f_ext=f_ext)
        for found, single, exact in zip(together, alone, expected, strict=True):
            scale = np.max(np.abs(exact))
            np.testing.assert_allclose(found, exact, atol=1e-11 * scale)
            np.testing.assert_allclose(single, exact[1], atol=1e-11 * scale)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
def test_reverse_mode_against_forward_mode(name):
    """Both as functions of quaternions as they are."""
    model = _with_forces_of_joints(MODELS[name]())
    states = drawn_states(model, 2)
    weights = jnp.arange(1.0, model.nv + 1)

    def reverse(q, v, tau, f_ext):
        _, pull = jax.vjp(lambda *x: jdyn.forward_dynamics(model, *x, f_ext=f_ext), q, v, tau)
        return pull(weights)

    def forward(q, v, tau, f_ext):
        jacobians = jax.jacfwd(lambda *x: jdyn.forward_dynamics(model, *x, f_ext=f_ext), (0, 1, 2))(q, v, tau)
        return jax.tree.map(lambda jacobian: weights @ jacobian, jacobians)

    expected, together = (jax.jit(jax.vmap(mode))(*states) for mode in (forward, reverse))
    alone = jax.jit(reverse)(*(state[1] for state in states))
    for exact, found, single in zip(expected, together, alone, strict=True):
        scale = np.max(np.abs(exact))
        np.testing.assert_allclose(found, exact, atol=1e-11 * scale)
        np.testing.assert_allclose(single, exact[1], atol=1e-11 * scale)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["free base", "mimics"])
@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
def test_many_directions_are_those_of_each(name):
    """Many go through derivatives as matrices, also where quaternions change in length, and lanes in either order."""
    model = _with_forces_of_joints(MODELS[name]())
    *states, _ = drawn_states(model, 2)
    keys = jax.random.split(jax.random.key(1), 3)
    many = [jax.random.normal(key, (model.nv, x.shape[1])) for key, x in zip(keys, states, strict=True)]

    def along(state, direction):
        return jax.jvp(lambda *x: jdyn.forward_dynamics(model, *x), state, direction)[1]

    @jax.jit
    def all_ways(states, many):
        each = jax.vmap(lambda state: jax.lax.map(lambda direction: along(state, direction), many))(states)
        lanes_outside = jax.vmap(jax.vmap(along, (None, 0)), (0, None))(states, many)
        lanes_inside = jax.vmap(jax.vmap(along, (0, None)), (None, 0))(states, many)
        return each, lanes_outside, jnp.swapaxes(lanes_inside, 0, 1)

    expected, *found = all_ways(tuple(states), tuple(many))
    for x in found:
        np.testing.assert_allclose(x, expected, atol=1e-11 * np.max(np.abs(expected)))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_gradient_with_respect_to_one_argument():
    model = MODELS["screws"]()
    *state, f_ext = drawn_states(model)

    def loss(*state):
        return jnp.sum(jdyn.forward_dynamics(model, *state, f_ext=f_ext))

    for argument, expected in enumerate(jax.grad(loss, (0, 1, 2))(*state)):
        np.testing.assert_allclose(jax.grad(loss, argument)(*state), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
def test_anymal_against_pinocchio():
    """Its analytical derivatives, of a robot that moves freely."""
    path = FOLDER / "anymal_b_simple_description/robots/anymal.urdf"
    model = jdyn.load(path, floating_base=True)
    peer = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    state = jax.tree.map(lambda x: x[0], random_states(model, 1, 0))
    expected = PinocchioValues(pin, model, peer).derivatives(state)
    found = jdyn.forward_dynamics_derivatives(model, state.q, state.v, state.tau, f_ext=state.f_ext)
    weights = np.arange(1.0, model.nv + 1)

    def weighed(e, v, tau):
        return weights @ jdyn.forward_dynamics(model, model.integrate(state.q, e), v, tau, f_ext=state.f_ext)

    gradients = jax.grad(weighed, (0, 1, 2))(jnp.zeros(model.nv), state.v, state.tau)
    for name, x, gradient in zip(DERIVATIVES, found, gradients, strict=True):
        (exact,) = expected[name]
        np.testing.assert_allclose(x, exact, atol=1e-11 * np.max(np.abs(exact)))
        np.testing.assert_allclose(gradient, weights @ exact, atol=1e-11 * np.max(np.abs(weights @ exact)))


@pytest.mark.slow
def test_second_derivatives():
    """Those of a linearization, which LQR gains over models take, against differences."""
    model = jdyn.random_tree(3, 2, kinds=(jdyn.Revolute,))
    q, v, tau, _ = drawn_states(model)

    def by_q(q):
        return jdyn.forward_dynamics_derivatives(model, q, v, tau)[0]

    found, h = jax.jacfwd(by_q)(q), 1e-5
    steps = h * jnp.eye(2)
    expected = np.stack([(by_q(q + step) - by_q(q - step)) / (2 * h) for step in steps], axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.max(np.abs(expected)))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_second_derivatives_of_a_weighed_acceleration():
    """Of the pullback, forwards and backwards, against differences of the gradient."""
    model = jdyn.random_tree(3, 2, kinds=(jdyn.Revolute,))
    q, v, tau, _ = drawn_states(model)

    def gradient(q):
        return jax.grad(lambda q: jdyn.forward_dynamics(model, q, v, tau) @ jnp.array([1.0, 2.0]))(q)

    h = 1e-5
    steps = h * jnp.eye(2)
    expected = np.stack([(gradient(q + step) - gradient(q - step)) / (2 * h) for step in steps], axis=-1)
    for found in (jax.jacfwd(gradient)(q), jax.jacrev(gradient)(q)):
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.max(np.abs(expected)))


@pytest.mark.slow
def test_lanes_beyond_a_chunk():
    """More lanes than go at a time, of models that differ: each lane has what it has alone."""
    model = jdyn.load("double_pendulum")
    q, v, tau, _ = drawn_states(model, 130)
    masses = jnp.linspace(0.5, 2.0, 130)

    def derivatives(mass, q, v, tau):
        return jdyn.forward_dynamics_derivatives(model.with_body("link2", mass=mass), q, v, tau)

    arguments = masses, q, v, tau
    together = jax.jit(jax.vmap(derivatives))(*arguments)
    for lane in (0, 127, 129):
        alone = jax.jit(derivatives)(*(x[lane] for x in arguments))
        for found, expected in zip(together, alone, strict=True):
            assert found.shape == (130, 2, 2)
            np.testing.assert_allclose(found[lane], expected, rtol=1e-12, atol=1e-13)


def test_a_step_keeps_where_it_began_and_what_it_solved():
    """For reverse mode through steps that a user takes: some copies of its state, which every function may have made,
    accelerations, and factors, which are seven numbers a joint and a matrix for a free base; not what recursions and
    rotations pass through, hundreds of arrays."""
    model, steps = MODELS["free base"](), 3

    def step(state, _):
        q, v = state
        v = v + 0.01 * jdyn.forward_dynamics(model, q, v, jnp.zeros_like(v))
        return (model.integrate(q, 0.01 * v), v), None

    def loss(q, v):
        return jnp.sum(jax.lax.scan(step, (q, v), length=steps)[0][0] ** 2)

    program = jax.make_jaxpr(jax.grad(loss, (0, 1)))(model.neutral(), jnp.ones(model.nv))
    loop = next(equation for equation in program.eqns if equation.primitive.name == "scan")
    turn = getattr(loop.params["jaxpr"], "jaxpr", loop.params["jaxpr"])
    rows = zip(loop.outvars, turn.outvars, strict=True)
    kept = [y.aval.size for x, y in rows if x.aval.shape != y.aval.shape]
    assert sum(kept) <= 7 * (model.nb - 1) + 36 + 4 * (model.nq + 2 * model.nv)
    assert len(kept) <= 20
