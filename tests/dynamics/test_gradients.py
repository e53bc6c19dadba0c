"""Derivatives of forward dynamics: both modes, second order, every argument and every leaf of the model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jdyn
from jdyn.model.random_tree import ALL_KINDS
from tests.drawn import drawn_states

pytestmark = pytest.mark.fast_compile


@pytest.fixture(scope="module")
def model():
    """Every kind of joint, passive elements, and two joints that follow others."""
    builder = jdyn.Builder("every kind")
    body = {"mass": 1.3, "com": (0.1, -0.05, 0.2), "inertia": (0.05, 0.06, 0.07)}
    joints = [
        jdyn.Free(),
        jdyn.Ball(),
        jdyn.Planar((0.1, 0.2, 1), (1, 0, 0)),
        jdyn.Universal((1, 0, 0), (0.2, 1, 0)),
        jdyn.Helical((0, 1, 1), 0.1),
        jdyn.Prismatic((1, 1, 0)),
        jdyn.Continuous((0, 0, 1)),
    ]
    for i, joint in enumerate(joints):
        builder.add_link(
            f"b{i}", joint, parent=f"b{(i - 1) // 2}" if i else "world",
            placement=jdyn.pose((0.1, 0.2, 0.3), (0.3, 0.2, 0.1)),
            damping=0.1, friction=0.2, friction_speed=0.5, stiffness=1.1, armature=0.05, **body,
        )  # fmt: skip
    mimics = [jdyn.Mimic("b6", -0.7, 0.3), jdyn.Mimic("b5", 2.0)]
    for i, mimic in enumerate(mimics):
        builder.add_link(f"follower{i}", jdyn.Revolute((1, 0, 0)), parent="b6", mimic=mimic, **body)
    return builder.build()


@jax.jit
def _forward(model, q, v, tau, f_ext):
    return jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext)


def _check_second_order(model):
    check_grads(_forward, (model, *drawn_states(model)), order=2, modes=("fwd", "rev"), eps=1e-5, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_second_order_of_a_small_tree():
    """With respect to the state, the forces and every number of the model."""
    _check_second_order(jdyn.random_tree(1, 2, kinds=(jdyn.Ball, jdyn.Revolute)))


@pytest.mark.exhaustive
def test_arguments_and_leaves_second_order(model):
    _check_second_order(model)


def _flat_state(model):
    """As the sizes of the rest state: zero velocity, identity quaternions, zero angles, straight arm."""
    zero = jnp.zeros(model.nv)
    return model.neutral(), zero, zero, jnp.zeros((model.nb, 6))


@jax.jit
def _all_gradients(model, q, v, tau, f_ext):
    weights = jnp.arange(1.0, model.nv + 1)

    def loss(*arguments):
        return weights @ _forward(*arguments)

    reverse = jax.grad(loss, argnums=(0, 1, 2, 3, 4))(model, q, v, tau, f_ext)
    second = jax.grad(
        lambda q: jnp.sum(jax.jvp(lambda v: loss(model, q, v, tau, f_ext), (v,), (jnp.ones_like(v),))[1])
    )(q)
    return reverse, second


@pytest.mark.slow
def test_nothing_is_nan_at_rest(model):
    for leaf in jax.tree.leaves(_all_gradients(model, *_flat_state(model))):
        assert np.all(np.isfinite(leaf))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_rest_gradients_are_right(model):
    """At rest the finite differences are taken along paths that stay in the configuration space."""
    q, v, tau, f_ext = _flat_state(model)

    @jax.jit
    def along(s, direction):
        dq, dv, dtau = jnp.split(s * direction, 3)
        return _forward(model, model.integrate(q, dq), v + dv, tau + dtau, f_ext)

    direction = jax.random.normal(jax.random.key(3), (3 * model.nv,))
    exact = jax.jit(jax.jacfwd(along))(0.0, direction)
    h = 1e-5
    differences = (along(h, direction) - along(-h, direction)) / (2 * h)
    # Central differences: h² of the third derivative, and rounding ε/h of the value.
    np.testing.assert_allclose(exact, differences, rtol=1e-6, atol=1e-6 * float(np.max(np.abs(exact))))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivative_equals_differentiated_recursion(model):
    """The implicit rule against automatic differentiation of the recursion itself."""
    q, v, tau, f_ext = drawn_states(model, seed=5)

    def recursion(model, q, v, tau):
        method = jdyn.studies.MatrixABA()
        return method.accelerations(model, method.factor(model, q), q, v, tau, f_ext)

    def derivative(function):
        tangents = jax.tree.map(jnp.ones_like, (q, v, tau))
        return jax.jvp(lambda q, v, tau: function(model, q, v, tau), (q, v, tau), tangents)[1]

    ours = jax.jit(lambda: derivative(lambda m, q, v, tau: jdyn.forward_dynamics(m, q, v, tau, f_ext=f_ext)))()
    automatic = jax.jit(lambda: derivative(recursion))()
    np.testing.assert_allclose(ours, automatic, rtol=0, atol=1e-10 * float(np.max(np.abs(automatic))))


@pytest.mark.slow
def test_gradient_with_respect_to_a_swept_body_under_vmap(model):
    q, v, tau, _ = drawn_states(model, seed=2)

    def loss(mass):
        changed = model.with_body("b3", mass=mass).with_joint("b4", damping=mass)
        return jnp.sum(jdyn.forward_dynamics(changed, q, v, tau) ** 2)

    masses, h = jnp.array([0.5, 1.0, 2.0]), 1e-5
    exact = jax.jit(jax.vmap(jax.grad(loss)))(masses)
    value = jax.jit(jax.vmap(loss))
    np.testing.assert_allclose(exact, (value(masses + h) - value(masses - h)) / (2 * h), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.__name__.lower())
def test_walking_the_configuration_space_is_smooth(kind):
    """`integrate` and `difference` and their first two derivatives are finite and consistent at zero."""
    model = jdyn.random_tree(0, 1, kinds=(kind,))
    q, zero = model.neutral(), jnp.zeros(model.nv)

    def there_and_back(dv):
        return model.difference(q, model.integrate(q, dv))

    derivatives = (jax.jacfwd, jax.jacrev, lambda f: jax.jacfwd(jax.jacrev(f)))
    forward, reverse, second = jax.jit(lambda dv: [d(there_and_back)(dv) for d in derivatives])(zero)
    np.testing.assert_allclose(forward, np.eye(model.nv), atol=1e-15)
    np.testing.assert_allclose(reverse, np.eye(model.nv), atol=1e-15)
    np.testing.assert_allclose(second, 0, atol=1e-15)
