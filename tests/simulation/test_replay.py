"""Gradients by record and replay, against diffrax' own adjoint and finite differences."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.control.controller import with_memory
from jdyn.simulation import adjoint as replay
from jdyn.simulation.manifold import OnManifold
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField
from tests.drawn import unit

pytestmark = pytest.mark.fast_compile


class RoundSteps(diffrax.PIDController):
    """Lengths of steps to 13 bits: programs that round apart by 1e-16 choose lengths that are 1e-8 apart otherwise, and
    so 1e-10 in gradients."""

    def adapt_step_size(self, *args):
        keep, t0, t1, *rest = super().adapt_step_size(*args)
        mantissa, exponent = jnp.frexp(t1 - t0)
        return keep, t0, t0 + jnp.ldexp(jnp.round(mantissa * 2**13) / 2**13, exponent), *rest


STEPS = RoundSteps(rtol=1e-6, atol=1e-8)

# Its programs are shorter than the default solver's.
SMALL = diffrax.Tsit5()


def flyer():
    """A free body that carries an arm."""
    builder = jdyn.Builder("flyer")
    builder.add_link("hull", jdyn.Free(), mass=2.0, com=(0.05, 0, 0.02), inertia=(0.03, 0.07, 0.09))
    builder.add_link("arm", jdyn.Revolute((1, 1, 0)), parent="hull", mass=0.4, com=(0, 0, 0.3), inertia=[0.01] * 3)
    return builder.build()


FLYER = flyer()
Q0 = unit([-0.68, 0.64, 0.87, 0.2, 0.32, -0.69, 0.62, -2.64], 3)
V0 = jnp.array([-1.18, -0.12, 0.17, 0.96, -0.83, 0.69, 0.08])
WEIGHTS = jnp.asarray(np.random.default_rng(2).normal(size=FLYER.nq + FLYER.nv))


class Wobble(jdyn.Controller):
    gain: jax.Array

    def __call__(self, t, q, v):
        return -self.gain * v + 0.1 * jnp.sin(3 * t)


def parameters():
    return {"model": FLYER, "controller": Wobble(jnp.array(0.3)), "v0": V0, "t1": jnp.array(1.5)}


def loss(rows):
    return jnp.sum(jnp.concatenate([rows.q, rows.v], axis=1) @ WEIGHTS * (1 + jnp.arange(len(rows.q), dtype=float)))


def by_replay(p, saveat, solver=SMALL, **options):
    trajectory = jdyn.simulate(
        p["model"],
        Q0,
        p["v0"],
        p["t1"],
        controller=p["controller"],
        stepsize_controller=STEPS,
        saveat=saveat,
        solver=solver,
        **options,
    )
    return loss(trajectory), trajectory


def by_diffrax(p, saveat):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(VectorField(p["model"], with_memory(p["controller"]), None)),
        OnManifold(SMALL, p["model"]),
        jnp.zeros(()), p["t1"], jnp.array(0.01), State(p["model"].normalize(Q0), p["v0"]),
        saveat=saveat, stepsize_controller=STEPS, max_steps=400,
        adjoint=diffrax.RecursiveCheckpointAdjoint(checkpoints=400),
    )  # fmt: skip
    return loss(solution.ys), solution


ROWS = diffrax.SaveAt(t0=True, ts=jnp.array([0.2, 0.21, 0.8]), t1=True)


@pytest.fixture(scope="module")
def replayed():
    """The loss and its motion, and the gradient by everything; other programs' gradients are compared with it."""
    value_and_gradient = eqx.filter_jit(eqx.filter_value_and_grad(by_replay, has_aux=True))
    return value_and_gradient(parameters(), ROWS, max_steps=400)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_equals_checkpointing_through_diffrax(replayed):
    (ours, trajectory), found = replayed
    value_and_gradient = eqx.filter_jit(eqx.filter_value_and_grad(by_diffrax, has_aux=True))
    (theirs, solution), expected = value_and_gradient(parameters(), ROWS)
    assert trajectory.stats["accepted_steps"] == solution.stats["num_accepted_steps"] > 30
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    # With fewer checkpoints than steps diffrax is off by 1e-10: the steps that it recomputes are rounded otherwise.
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * max(1, float(jnp.max(jnp.abs(y), initial=0))))


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("max_steps", [64, 100])
def test_checkpoints_may_be_any_number_of_steps_apart(max_steps, replayed, monkeypatch):
    monkeypatch.setattr(replay, "FIRST_STEPS", 7)
    found = eqx.filter_jit(eqx.filter_grad(lambda p: by_replay(p, ROWS, max_steps=max_steps)[0]))(parameters())
    # States between checkpoints are found again by a program that rounds otherwise.
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(replayed[1]), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * max(1, float(jnp.max(jnp.abs(y), initial=0))))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_forward_mode_agrees(replayed):
    def by_gain(gain):
        p = parameters() | {"controller": Wobble(gain)}
        return by_replay(p, ROWS, adjoint=diffrax.ForwardMode(), max_steps=400)[0]

    forwards = eqx.filter_jit(jax.jacfwd(by_gain))(parameters()["controller"].gain)
    np.testing.assert_allclose(forwards, replayed[1]["controller"].gain, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_gradient_costs_what_it_is_by(replayed):
    """By some of all that there is: the same numbers, by a smaller program, without cotangents of the model."""
    p = parameters()
    gains, starts = {"controller": p["controller"]}, {"v0": p["v0"], "t1": p["t1"]}

    def size(some):
        return by_replay(p | some, ROWS, max_steps=64)[0]

    def lowered(some):
        return jax.jit(lambda some: eqx.filter_grad(size)(some)).lower(some)

    whole, *parts = map(lowered, (p, gains, starts))
    operations = [program.as_text().count("stablehlo.") for program in (whole, *parts)]
    # All of them compute beforehand what recursions need of the model.
    assert max(operations[1:]) < 0.91 * operations[0]
    expected = replayed[1]
    for some, part in zip((gains, starts), parts, strict=True):
        found = jax.tree.leaves(part.compile()(some))
        for x, y in zip(found, jax.tree.leaves({name: expected[name] for name in some}), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


ANGLES, MASS = jnp.array([0.3, 0.5]), jnp.array(1.3)


def size(q, mass):
    """Of where a double pendulum ends."""
    model = jdyn.load("double_pendulum")
    heavier = model.with_body(model.body_names[-1], mass=mass)
    return jnp.sum(jdyn.simulate(heavier, q, jnp.zeros(2), 0.3, solver=SMALL, throw=False).q[-1] ** 2)


@pytest.fixture(scope="module")
def gradients_of_size():
    gradients = jax.jit(jax.grad(size, (0, 1)))(ANGLES, MASS)
    assert all(np.all(np.abs(gradient) > 0.1) for gradient in gradients)
    return gradients


WAYS = {
    "loop": lambda q, mass: jax.lax.scan(lambda sum, _: (sum + size(q, mass), None), 0.0, length=1)[0],
    "loop by a mass": lambda q, mass: jax.lax.scan(lambda m, _: (m * size(q, m) / mass, None), mass, length=1)[0],
    "batch": lambda q, mass: jnp.sum(jax.vmap(size, (0, None))(q[None], mass)),
    "recomputed": jax.checkpoint(size),
}


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WAYS)
def test_gradients_within_other_transformations(name, gradients_of_size):
    """Loops, batches and recomputation ask again for the rule, each time with other numbers differentiated by."""
    for k, gradient in enumerate(gradients_of_size):
        found = jax.jit(jax.grad(WAYS[name], k))(ANGLES, MASS)
        np.testing.assert_allclose(found, gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_derivative_is_linear(gradients_of_size):
    linear = jax.linearize(lambda q: size(q, MASS), ANGLES)[1]
    found = jax.linear_transpose(linear, ANGLES)(1.0)[0]
    np.testing.assert_allclose(found, gradients_of_size[0], rtol=1e-9, atol=1e-12)


@pytest.mark.exhaustive
def test_gradients_of_a_batch_are_those_of_its_lanes():
    speeds, gain = 3 * jax.random.normal(jax.random.key(3), (70, FLYER.nv)), jnp.array(0.3)

    def lane(v0, gain, t1):
        p = parameters() | {"v0": v0, "controller": Wobble(gain), "t1": t1}
        return by_replay(p, jnp.array([0.1, 0.2]), solver=jdyn.solvers.Automatic(), max_steps=400)[0]

    ends = jnp.linspace(0.2, 1.0, 70)
    own, shared = jax.jit(jax.grad(lambda v, g: jnp.sum(jax.vmap(lane, (0, None, 0))(v, g, ends)), (0, 1)))(
        speeds, gain
    )
    single = jax.jit(jax.grad(lane, (0, 1)))
    for k in (0, 33, 69):
        np.testing.assert_allclose(own[k], single(speeds[k], gain, ends[k])[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(shared, sum(single(v, gain, t)[1] for v, t in zip(speeds, ends, strict=True)), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_step_as_a_row():
    def total(v0):
        trajectory = jdyn.simulate(
            FLYER, Q0, v0, 0.5, saveat=diffrax.SaveAt(steps=True), max_steps=100, dt0=0.05,
            stepsize_controller=diffrax.ConstantStepSize(),
        )  # fmt: skip
        return jnp.nansum(trajectory.v @ WEIGHTS[FLYER.nq :])

    gradient = jax.jit(jax.grad(total))(V0)
    direction = jax.random.normal(jax.random.key(5), V0.shape)
    h = 1e-5
    slope = (total(V0 + h * direction) - total(V0 - h * direction)) / (2 * h)
    np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_tracking_panda_against_finite_differences():
    """By its gains and all its inertial parameters, over two seconds, along random directions of relative change."""
    model = jdyn.load("panda")
    q0 = model.random(jax.random.key(0))
    reference = jdyn.control.Quintic(model, q0, q0 + 0.4, 0.0, 1.5)
    wanted = jax.vmap(reference)(jnp.linspace(0, 2, 11))[0]

    @jax.jit
    @jax.value_and_grad
    def error_and_gradient(p):
        robot = eqx.tree_at(lambda m: m.inertias, model, p["inertias"])
        motion = jdyn.simulate(
            robot, q0, jnp.zeros(model.nv), 2.0, controller=jdyn.control.Tracking(model, reference, kp=p["kp"],
            kd=p["kd"]),
            saveat=jnp.linspace(0, 2, 11), stepsize_controller=diffrax.PIDController(rtol=1e-10, atol=1e-12),
        )  # fmt: skip
        return jnp.sum((motion.q - wanted) ** 2)

    p = {
        "kp": jnp.full(model.nv, 100.0), "kd": jnp.full(model.nv, 20.0),
        "inertias": jax.tree.map(lambda x: 1.1 * x, model.inertias),
    }  # fmt: skip
    _, gradient = error_and_gradient(p)
    scale = jnp.sqrt(sum(jnp.sum((x * dx) ** 2) for x, dx in zip(*map(jax.tree.leaves, (p, gradient)), strict=True)))
    for seed in range(3):
        keys = jax.random.split(jax.random.key(seed), len(jax.tree.leaves(p)))
        leaves, structure = jax.tree.flatten(p)
        change = [x * jax.random.normal(key, x.shape) for x, key in zip(leaves, keys, strict=True)]

        def moved(h, leaves=leaves, change=change, structure=structure):
            there = [x + h * dx for x, dx in zip(leaves, change, strict=True)]
            return error_and_gradient(jax.tree.unflatten(structure, there))[0]

        # Rounding and the tolerances leave 1e-10 of the error over h, the fourth order term h⁴.
        h = 3e-3
        slope = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
        found = sum(jnp.sum(dx * g) for dx, g in zip(change, jax.tree.leaves(gradient), strict=True))
        assert abs(found - slope) < 1e-6 * scale, (found, slope, scale)
