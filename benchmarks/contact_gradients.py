"""Gradients through compliant contact: both modes beside closed forms and differences, what they cost, and what a
gradient reach does where nothing touches yet. Run from the repository's root: `python -m benchmarks.contact_gradients`.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jdyn

G, STEP = 9.81, 1e-5
STEPS = diffrax.PIDController(rtol=1e-8, atol=1e-11)
END = diffrax.SaveAt(t1=True)


class Case(NamedTuple):
    """A number at the end of a motion.

    Attributes:
        end: From two parameters, and the `adjoint` of `jdyn.simulate`.
        exact: The same in closed form.
        at: The parameters.
    """

    name: str
    end: Callable
    exact: Callable
    at: tuple[float, float]


def rigid(stiffness, friction=0.0, dissipation=0.0, **options):
    """Contact of bodies of a stiffness with a rigid ground."""
    ground = jdyn.Material(jnp.inf, 0.0, 0.0)
    return jdyn.CompliantContact(
        material=jdyn.Material(stiffness, dissipation, friction), materials={"ground": ground}, **options
    )


def ball() -> jdyn.Model:
    """Of 1 kg, on a vertical rail; its coordinate is the height of its lowest point."""
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Prismatic(jnp.array([0.0, 0.0, 1.0])), mass=1.0, inertia=(0.01, 0.01, 0.01))
    builder.add_shape("ball", "sphere", 0.1, placement=(0, 0, 0.1), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def block() -> jdyn.Model:
    """Of 1 kg, which moves along x and z, and does not turn; its bottom is at the height of its coordinate."""
    builder = jdyn.Builder("block")
    builder.add_link("rail", jdyn.Prismatic(jnp.array([1.0, 0.0, 0.0])))
    builder.add_link(
        "block", jdyn.Prismatic(jnp.array([0.0, 0.0, 1.0])), parent="rail", mass=1.0, inertia=(0.01, 0.01, 0.01)
    )
    builder.add_shape("block", "box", (0.2, 0.2, 0.2), placement=(0, 0, 0.1), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def bounce(located: bool) -> Case:
    """Height after a bounce without losses, by the height at the start and the stiffness."""
    model, T = ball(), 0.6

    def end(height, stiffness, adjoint):
        motion = jdyn.simulate(
            model, height[None], jnp.zeros(1), T, contact=rigid(stiffness, located=located), stepsize_controller=STEPS,
            saveat=END, adjoint=adjoint,
        )  # fmt: skip
        return motion.q[0, 0]

    def exact(height, stiffness):
        speed, omega = jnp.sqrt(2 * G * height), jnp.sqrt(stiffness)
        left = T - speed / G - 2 * (jnp.pi - jnp.arctan(speed * omega / G)) / omega
        return speed * left - G * left**2 / 2

    return Case("bouncing ball" + ", kinks located" * located, end, exact, (0.2, 1e5))


def _on_the_ground(model, friction, slip, push, v0, T, adjoint):
    q0 = jnp.array([0.0, -G / 4e5])
    return jdyn.simulate(
        model, q0, jnp.stack([v0, jnp.zeros_like(v0)]), T, contact=rigid(1e5, friction, 5.0, slip_speed=slip),
        controller=jdyn.Constant(jnp.stack([push, jnp.zeros_like(push)])), stepsize_controller=STEPS, saveat=END,
        adjoint=adjoint,
    )  # fmt: skip


def sliding() -> Case:
    """Way of a block until it stops, by its speed and the friction."""
    model, slip = block(), 1e-3

    def end(speed, friction, adjoint):
        return _on_the_ground(model, friction, slip, jnp.zeros(()), speed, 0.5, adjoint).q[0, 0]

    def exact(speed, friction):
        return (speed * jnp.sqrt(speed**2 + slip**2) + slip**2 * jnp.arcsinh(speed / slip)) / (2 * friction * G)

    return Case("sliding block", end, exact, (1.0, 0.5))


def sticking() -> Case:
    """Speed at which a pushed block creeps, by the push and the friction."""
    model, slip = block(), 1e-3

    def end(push, friction, adjoint):
        return _on_the_ground(model, friction, slip, push, jnp.zeros(()), 0.3, adjoint).v[0, 0]

    def exact(push, friction):
        share = push / (friction * G)
        return slip * share / jnp.sqrt(1 - share**2)

    return Case("sticking block", end, exact, (3.0, 0.5))


def _timed(function, *args):
    """The result, and the seconds of a second call."""
    jax.block_until_ready(function(*args))
    start = time.perf_counter()
    result = jax.block_until_ready(function(*args))
    return result, time.perf_counter() - start


def _differences(value, at):
    """Of order 4."""
    weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
    moved = [sum(w * value(*_moved(at, i, n)) for n, w in weights.items()) / (STEP * at[i]) for i in range(len(at))]
    return np.array(moved)


def _moved(at, i, n):
    return [jnp.asarray(x * (1 + n * STEP * (i == j))) for j, x in enumerate(at)]


def compare(case: Case):
    at = [jnp.asarray(x) for x in case.at]
    exact = np.array(jax.grad(case.exact, (0, 1))(*at))
    value = jax.jit(lambda *x: case.end(*x, None))
    end, alone = _timed(value, *at)
    reverse, back = _timed(jax.jit(jax.grad(lambda *x: case.end(*x, None), (0, 1))), *at)
    forward, ahead = _timed(jax.jit(jax.jacfwd(lambda *x: case.end(*x, diffrax.ForwardMode()), (0, 1))), *at)
    rows = {
        "reverse": (reverse, back),
        "forward": (forward, ahead),
        "differences": (_differences(value, at), 8 * alone),
    }
    missed = abs(float(end) / float(case.exact(*at)) - 1)
    print(f"{case.name}: the end differs from the closed form by {missed:.1e}; simulated in {1e3 * alone:.1f} ms")
    for name, (gradient, seconds) in rows.items():
        errors = np.abs(np.array(gradient) / exact - 1)
        print(f"  {name:12} errors {errors[0]:.1e} {errors[1]:.1e}   {1e3 * seconds:7.1f} ms")


def table() -> jdyn.Model:
    """Two balls of 1 kg on one rail with dampers, the second 0.6 m ahead of the first."""
    builder = jdyn.Builder("table", gravity=(0, 0, 0))
    for name, x in (("pusher", 0.0), ("puck", 0.6)):
        builder.add_link(
            name, jdyn.Prismatic(jnp.array([1.0, 0.0, 0.0])), placement=(x, 0, 0), mass=1.0, inertia=(0.01, 0.01, 0.01),
            damping=1.0,
        )  # fmt: skip
        builder.add_shape(name, "sphere", 0.05, role="collision")
    return builder.build()


def push(reach: float | None, iterations: int = 40):
    """Gradient descent on the speed of the pusher that brings the puck 0.3 m ahead; at first the two do not touch."""
    model = table()
    contact = jdyn.CompliantContact(material=jdyn.Material(2e4, 0.1, 0.0), gradient_reach=reach)

    def loss(speed):
        motion = jdyn.simulate(
            model, jnp.zeros(2), jnp.stack([speed, jnp.zeros_like(speed)]), 4.0, contact=contact, saveat=END
        )
        return (motion.q[0, 1] - 0.3) ** 2

    step, speed, history = jax.jit(jax.value_and_grad(loss)), jnp.asarray(0.3), []
    for _ in range(iterations):
        missed, slope = step(speed)
        history.append((float(speed), float(missed), float(slope)))
        speed = speed - jnp.clip(2.0 * slope, -0.1, 0.1)
    (_, _, first), (speed, missed, _) = history[0], history[-1]
    print("push to a target,", "true gradient" if reach is None else f"reach {reach} m", end=": ")
    print(f"slope at first {first:.1e}; after {iterations} steps, {speed:.3f} m/s, missed by {missed**0.5:.1e} m")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for case in (bounce(False), bounce(True), sliding(), sticking()):
        compare(case)
    for reach in (None, 0.02, 0.1):
        push(reach)
