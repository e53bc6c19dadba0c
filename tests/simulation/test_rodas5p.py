"""Methods that are implicit in the whole motion: their linear systems, stability and derivatives."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.control.controller import with_memory
from jdyn.simulation.energy_control import SuppliedEnergy
from jdyn.simulation.loop import Equations
from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.solvers.implicit_motion import ImplicitMotion
from jdyn.simulation.solvers.step_rate import StepRate
from jdyn.simulation.state import Clock, State
from jdyn.simulation.vector_field import VectorField

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)


def tree(first):
    """A branched mechanism with followers, dampers, friction and springs; two of its joints have ends."""
    builder = jdyn.Builder("tree", gravity=(1, 2, -9))
    body = dict(mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.2, 0.3, 0.4), damping=0.3, friction=0.2, stiffness=4.0)
    builder.add_link("trunk", first, **body)
    builder.add_link(
        "slide", jdyn.Prismatic((1, 1, 0)), parent="trunk", joint_name="slide", lower=-0.1, upper=0.1, **body
    )
    builder.add_link("arm", jdyn.Revolute((0, 1, 1)), parent="slide", placement=(0.2, 0, 0.1), **body)
    builder.add_link(
        "finger", jdyn.Revolute((1, 0, 1)), parent="trunk", lower=-0.2, upper=0.2,
        mimic=jdyn.Mimic("slide", 1.5, 0.2), **body,
    )  # fmt: skip
    return builder.build()


FLAT, BALL, FREE = (tree(first) for first in (jdyn.Revolute((0, 1, 0)), jdyn.Ball(), jdyn.Free()))


class Feedback(jdyn.Controller):
    """Forces that each depend on all coordinates, velocities, and the time."""

    model: jdyn.Model
    gain: jax.Array

    def __call__(self, t, q, v):
        return jnp.sin(3 * t) - self.gain @ jnp.append(self.model.difference(self.model.neutral(), q), v)


def controllers(model):
    home = model.neutral()
    feedback = Feedback(model, jax.random.normal(jax.random.key(0), (model.nv, 2 * model.nv)))
    return (
        jdyn.PD(model, home, kp=50.0, kd=5.0) + jdyn.GravityCompensation(model),
        jdyn.PID(model, home, kp=50.0, ki=40.0, kd=5.0) + feedback,
    )


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("model", "which"),
    [
        pytest.param(model, which, id=f"{name}-{which}")
        for name, model in {"flat": FLAT, "ball": BALL, "free": FREE}.items()
        for which in range(2)
    ],
)
def test_elimination_solves_the_dense_system(model, which):
    """(1 − share ∂f/∂x) k = s + share ∂f/∂θ after, with the derivatives of the rate over a step as JAX finds them."""
    q, v = model.random(jax.random.key(1)), jax.random.normal(jax.random.key(2), (model.nv,))
    stops = jdyn.CompliantLimits(frequency=30.0).stops(model)
    pushed = model.integrate(q, jnp.zeros_like(v).at[-2].set(0.13 - q[-2]))

    @jax.jit
    def systems(controller, memory, direction, after, s):
        field = VectorField(model, controller, None, stops, other_owners=(SuppliedEnergy(),))
        terms = LocalTerm(Equations(field, Clock(direction)), model, pushed)
        parts = {"controller": memory, "supplied": jnp.array(0.7)}
        y = State(model.to_chart(pushed), v, parts)
        rate = StepRate(terms, jnp.array(0.3), jnp.array(0.5), y)
        by_time, by_state = jax.jacfwd(rate, (0, 1))(jnp.zeros(()), rate.start)
        a = rate.at(jnp.zeros(()), rate.start).v
        k = ImplicitMotion.of(terms, rate.t0, rate.t1, y, a).eliminated(0.4).solution(after, s)
        return k - 0.4 * by_state @ k, s + 0.4 * by_time * after, by_state

    controller = with_memory(controllers(model)[which])
    memory = jax.tree.map(lambda x: x + 0.1, controller.start(jnp.zeros(()), q, v))
    size = 2 * model.nv + 1 + sum(x.size for x in jax.tree.leaves(memory))
    s = jax.random.normal(jax.random.key(3), (size,))
    for direction in (1.0, -1.0):
        found, wanted, by_state = systems(controller, memory, jnp.array(direction), jnp.array(0.6), s)
        np.testing.assert_allclose(found, wanted, atol=1e-11 * float(jnp.max(jnp.abs(by_state))))


def cart(stiffness, damping):
    builder = jdyn.Builder("cart", gravity=(0, 0, 0))
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=1.0, stiffness=stiffness, damping=damping)
    return builder.build()


@pytest.mark.slow
@pytest.mark.parametrize(("stiffness", "damping"), [(0.0, 1.0), (1.0, 2.0), (1.0, 0.0)], ids=str)
def test_a_step_of_a_million_time_constants(stiffness, damping):
    """h λ = 10⁶, of a damper, of both, and of a spring alone: an L-stable method leaves a share of 1 / (h λ)."""
    q0, v0, omega = 0.3, 0.5, 1e6
    found = jdyn.simulate(
        cart(stiffness * omega**2, damping * omega), jnp.array([q0]), jnp.array([v0]), 1.0,
        solver=jdyn.solvers.Rodas5P(),
        saveat=END, dt0=1.0, stepsize_controller=diffrax.ConstantStepSize(),
    )  # fmt: skip
    start = np.hypot(stiffness * omega * q0, v0)
    assert np.hypot(stiffness * omega * found.q[0, 0], found.v[0, 0]) < 1e-4 * start
    if not stiffness:
        np.testing.assert_allclose(found.q, [[q0 + v0 / omega]], atol=1e-4 * v0 / omega)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_there_and_back():
    """With followers, at their ends, and a memory."""
    q0, v0 = FLAT.random(jax.random.key(1)).at[1].set(0.1), jnp.array([0.5, 0.4, -0.3])
    controller = jdyn.PID(FLAT, FLAT.neutral(), kp=5.0, ki=4.0, kd=0.5)

    def end(solver, t0, t1, q, v):
        return jdyn.simulate(
            FLAT, q, v, t1, t0=t0, controller=controller, solver=solver, saveat=END,
            stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-11), joint_limits=jdyn.CompliantLimits(),
        )  # fmt: skip

    there, exact = (end(solver, 0.0, 0.2, q0, v0) for solver in (jdyn.solvers.Rodas5P(), diffrax.Dopri8()))
    np.testing.assert_allclose(there.q, exact.q, atol=1e-8)
    np.testing.assert_allclose(there.v, exact.v, atol=1e-6)
    np.testing.assert_allclose(there.parts["controller"], exact.parts["controller"], atol=1e-8)
    back, exact = (
        end(solver, 0.2, 0.0, there.q[0], there.v[0]) for solver in (jdyn.solvers.Rodas5P(), diffrax.Dopri8())
    )
    np.testing.assert_allclose(back.q, exact.q, atol=1e-7)
    np.testing.assert_allclose(back.v, exact.v, atol=1e-5)


@pytest.mark.exhaustive
def test_gradients_in_batches_are_those_of_finite_differences():
    """Of a model, a controller and the start together, with steps that stay as they are, in both modes."""
    builder = jdyn.Builder("arm")
    builder.add_link("upper", jdyn.Ball(), mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.2, 0.3, 0.4), damping=0.3)
    model = builder.build()
    q0, v0 = model.random(jax.random.key(1)), jax.random.normal(jax.random.key(2), (2, model.nv))
    weights = jax.random.normal(jax.random.key(4), (model.nq + 2 * model.nv,))

    def loss(e, v0, adjoint=None):
        heavier = model.with_body("upper", mass=1.0 + e)
        stiffer = jdyn.PID(model, model.neutral(), kp=50.0, ki=40.0 * (1 + e), kd=5.0)
        end = jdyn.simulate(
            heavier, q0, v0 + e, 0.1, controller=stiffer, solver=jdyn.solvers.Rodas5P(), saveat=END, dt0=0.025,
            throw=False,
            stepsize_controller=diffrax.ConstantStepSize(), adjoint=adjoint,
        )  # fmt: skip
        return weights @ jnp.concatenate([end.q[0], end.v[0], end.parts["controller"][0]])

    @jax.jit
    def forwards(e, v0):
        # Differences of order 4, in the same batch.
        h = 1e-3 * jnp.array([-2.0, -1.0, 0.0, 1.0, 2.0])
        batch = jax.vmap(lambda e, v0: loss(e, v0, diffrax.ForwardMode()))
        values, slopes = jax.jvp(lambda e: batch(e + jnp.repeat(h, 2), jnp.tile(v0, (5, 1))), (e,), (jnp.ones(()),))
        return jnp.array([1.0, -8.0, 0.0, 8.0, -1.0]) @ values.reshape(5, 2) / (12 * 1e-3), slopes[4:6]

    differences, found = forwards(jnp.zeros(()), v0)
    np.testing.assert_allclose(found, differences, rtol=1e-6)
    reverse = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))
    np.testing.assert_allclose(reverse(jnp.zeros(()), v0), differences, rtol=1e-6)


def test_other_equations_are_refused():
    def rate(t, y, args):
        return State(FLAT.rate(y.q, y.v), jnp.zeros_like(y.v))

    start = State(FLAT.neutral(), jnp.zeros(FLAT.nv))
    for solver, message in (
        (jdyn.solvers.OnManifold(jdyn.solvers.Rodas5P(), FLAT), "must know them: use it in jdyn.simulate"),
        (jdyn.solvers.Rodas5P(), "Rodas5P: it works in local coordinates"),
        (jdyn.solvers.BaderDeuflhard(rtol=1e-3, atol=1e-3), "BaderDeuflhard: it works in local coordinates"),
    ):
        with pytest.raises(ValueError, match=message):
            diffrax.diffeqsolve(diffrax.ODETerm(rate), solver, 0.0, 1.0, 0.1, start)
