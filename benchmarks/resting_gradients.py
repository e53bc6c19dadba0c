"""Gradients of what rests on the ground in equilibrium, or slides there, beside differences of the motion.

    python -m benchmarks.resting_gradients [NAME ...]

A ball, a box and a quadruped start at their static depth, with compliant contact. The gradient of a sum of the velocity
at the end, in which every coordinate has another weight, is by height, stiffness, friction and speed, in reverse mode
at a relative tolerance of 1e-6; differences are central ones of order 4 at 1e-12. Errors are shares of the difference,
or of a thousandth of the largest one, each times its parameter, where it is smaller. A code in the place of an error
is the result of the simulation that was to be differentiated. Names are parts of those of cases.
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import jdyn

USUAL, TIGHT = 1e-6, 1e-12
NAMES = "height", "stiffness", "friction", "speed"
# Steps of differences, as shares of the scales of the parameters.
STEP = 1e-3
STIFFNESS, DISSIPATION, FRICTION = 1e4, 0.3, 0.4


class Case(NamedTuple):
    """A mechanism that rests at `q0` and may be pushed, for `end` seconds.

    Attributes:
        height: Entry of the configuration.
        speed: Entry of the velocity.
        controller: Of the model.
        alone: Whether it comes to rest without the controller.
    """

    model: jdyn.Model
    q0: Array
    height: int
    speed: int
    end: float
    controller: Callable
    alone: bool = True


def free(kind: str, size, inertia) -> jdyn.Model:
    """A body of 1 kg on the ground."""
    builder = jdyn.Builder(kind)
    builder.add_link("body", jdyn.Free(), mass=1.0, inertia=inertia)
    builder.add_shape("body", kind, size, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    return builder.build()


def pushed(model: jdyn.Model) -> Callable:
    """A push along x that friction holds."""
    return jdyn.control.Constant(jnp.zeros(model.nv).at[3].set(0.5))


def contact(stiffness, friction) -> jdyn.contact.Contact:
    material = jdyn.contact.Material(stiffness, DISSIPATION, friction)
    return jdyn.CompliantContact(material=material, materials={"ground": jdyn.contact.Material(jnp.inf, 0.0, 0.0)})


def settled(case: Case) -> Case:
    """The same where it has come to rest, by the motion of ten times the dissipation."""
    law = jdyn.CompliantContact(
        material=jdyn.contact.Material(STIFFNESS, 20.0, FRICTION),
        materials={"ground": jdyn.contact.Material(jnp.inf, 0.0, 0.0)},
    )
    motion = jdyn.simulate(
        case.model, case.q0, jnp.zeros(case.model.nv), 3.0, contact=law,
        controller=None if case.alone else case.controller, saveat=diffrax.SaveAt(t1=True), max_steps=262144,
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-12),
    )  # fmt: skip
    return case._replace(q0=motion.q[0])


def cases() -> dict[str, Case]:
    ball = free("sphere", 0.1, np.full(3, 4e-3))
    sides = np.array([0.2, 0.3, 0.2])
    box = free("box", sides, (np.sum(sides**2) - sides**2) / 12)
    quadruped = jdyn.with_ground(jdyn.load("quadruped"), friction=0.0)
    stance = quadruped.neutral()
    joints = jnp.arange(quadruped.nv) >= 6
    legs = jdyn.PD(quadruped, stance, kp=jnp.where(joints, 200.0, 0), kd=jnp.where(joints, 5.0, 0))
    lowest = jnp.min(jdyn.contact.distances(quadruped, stance).distance)
    return {
        "ball": (Case(ball, ball.neutral().at[2].set(0.0995), 2, 3, 0.3, pushed(ball))),
        "box": (Case(box, box.neutral().at[2].set(0.0999), 2, 3, 0.3, pushed(box))),
        "quadruped": (Case(quadruped, stance.at[2].add(-lowest - 1e-4), 2, 3, 0.1, legs, False)),
    }


def end(case: Case, tolerance, height, stiffness, friction, speed):
    """The sum of the velocity, and the result."""
    v0 = jnp.zeros(case.model.nv).at[case.speed].set(speed)
    motion = jdyn.simulate(
        case.model, case.q0.at[case.height].add(height), v0, case.end, contact=contact(stiffness, friction),
        controller=case.controller, saveat=diffrax.SaveAt(t1=True), max_steps=65536, throw=False,
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance),
    )  # fmt: skip
    weights = jnp.cos(1.0 + jnp.arange(case.model.nv))
    return motion.v[0] @ weights, (motion.result, motion.stats["accepted_steps"])


def compare(name: str, case: Case):
    """Print a row each of a case at rest and sliding."""
    motion = jax.jit(lambda *at: end(case, *at))
    gradient = jax.jit(jax.grad(lambda *at: end(case, jnp.asarray(USUAL), *at), (0, 1, 2, 3), has_aux=True))
    for told, speed in (("at rest", 0.0), ("sliding", 2.0)):
        at = [jnp.asarray(x) for x in (0.0, STIFFNESS, FRICTION, speed)]
        # Of a depth, and of a speed.
        scales = np.array([1e-4, STIFFNESS, FRICTION, 0.1 if speed else 1e-3])
        began = time.process_time()
        found, (result, steps) = jax.block_until_ready(gradient(*at))
        seconds = time.process_time() - began

        def difference(i, at=at, scales=scales):
            def moved(n):
                there = [x + n * STEP * scales[i] * (i == j) for j, x in enumerate(at)]
                return float(motion(jnp.asarray(TIGHT), *there)[0])

            return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * STEP)

        by_differences = np.array([difference(i) for i in range(len(at))])
        found = np.array(found) * scales
        size = np.maximum(np.abs(by_differences), 1e-3 * np.abs(by_differences).max())
        errors, code = np.abs(found - by_differences) / size, jdyn.Result(int(result))
        alone = int(motion(jnp.asarray(USUAL), *at)[1][1])
        row = "  ".join(f"{error:9.1e}" for error in errors) if code == jdyn.Result.success else code.name
        print(f"{name + ' ' + told:20} {row}   steps {alone} -> {int(steps)}, {seconds:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names
    jax.config.update("jax_enable_x64", True)
    print(f"{'errors by':20} " + "  ".join(f"{name:>9}" for name in NAMES))
    for name, case in cases().items():
        if not names or any(part in name for part in names):
            compare(name, settled(case))


if __name__ == "__main__":
    main()
