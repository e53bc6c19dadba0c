"""What an evaluation within a simulation costs, beside forward dynamics alone: `python -m benchmarks.step_cost`.

A Panda under PD control, and the PUMA 560 of `jdyn sweep` with gravity compensated and a payload that differs by lane,
in float64, 256 lanes, constant steps. Solvers take turns, and medians of processor time are printed. Run it on one
core: `taskset -c 0 python -m benchmarks.step_cost`.
"""

import argparse
import statistics
import time

import diffrax
import jax
import jax.numpy as jnp

import jdyn
from jdyn.sweep import ControlledMove

LANES, ALONE, STEPS = 256, 1024, 100
# Solvers, and steps short enough for them [s].
SOLVERS = {
    "Tsit5": (diffrax.Tsit5(), 1e-5),
    "Automatic": (jdyn.solvers.Automatic(), 1e-5),
    "ROSJ43": (jdyn.solvers.ROSJ43(), 1e-3),
    "LinearlyImplicitEuler": (jdyn.solvers.LinearlyImplicitEuler(), 1e-3),
    "Rodas5P": (jdyn.solvers.Rodas5P(), 1e-3),
}


def panda():
    """From lanes to (model, q0, controller), and how many numbers a lane has."""
    model = jdyn.load("panda")
    controller = jdyn.PD(model, model.neutral() + 0.3, kp=100.0, kd=20.0)
    return lambda lane: (model, model.neutral() + lane, controller)


def puma():
    model = jdyn.load("puma560")
    reach, last = ControlledMove(model, 0), model.body_names[-1]
    mass = model.inertias.mass[model.topology.body(last)]
    return lambda lane: (model.with_body(last, mass=mass + lane), reach.q0, reach.controller(50.0, 4.0))


def simulated(scene, solver, step):
    def lane(number):
        model, q0, controller = scene(number)
        motion = jdyn.simulate(
            model, q0, jnp.zeros_like(model.damping), STEPS * step, controller=controller, solver=solver, dt0=step,
            stepsize_controller=diffrax.ConstantStepSize(), saveat=diffrax.SaveAt(t1=True), throw=False,
        )  # fmt: skip
        return motion.q, motion.stats["dynamics_calls"]

    lanes = jnp.linspace(0.0, 0.5, LANES)
    return jax.jit(jax.vmap(lane)), lanes


def alone(scene):
    def lane(number):
        model, q0, _ = scene(number)
        return jdyn.forward_dynamics(model, q0, jnp.ones_like(q0), jnp.ones_like(q0))

    return jax.jit(jax.vmap(lane)), jnp.linspace(0.0, 0.5, ALONE)


def spent(program, lanes) -> float:
    started = time.process_time()
    jax.block_until_ready(program(lanes))
    return time.process_time() - started


def measured(name, scene, rounds):
    programs = {solver: simulated(scene, *how) for solver, how in SOLVERS.items()}
    evaluations = {solver: float(jnp.mean(program(lanes)[1])) for solver, (program, lanes) in programs.items()}
    programs["alone"] = alone(scene)
    samples = {solver: [] for solver in programs}
    for turn in range(rounds + 1):
        for solver, (program, lanes) in programs.items():
            # A batch of forward dynamics is short.
            times = 20 if solver == "alone" else 1
            seconds = sum(spent(program, lanes) for _ in range(times)) / times
            if turn:
                samples[solver].append(seconds)
    by_itself = 1e6 * statistics.median(samples.pop("alone")) / ALONE
    print(f"\n{name}: forward dynamics alone, {ALONE} lanes, {by_itself:.2f} µs")
    print(f"{'solver':22} {'µs a step':>10} {'evaluations':>12} {'µs an evaluation':>17} {'over one alone':>15}")
    for solver, each in samples.items():
        step, count = 1e6 * statistics.median(each) / LANES / STEPS, evaluations[solver] / STEPS
        print(f"{solver:22} {step:10.2f} {count:12.2f} {step / count:17.2f} {step / count / by_itself:15.2f}")


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--rounds", type=int, default=7)
    rounds = words.parse_args().rounds
    jax.config.update("jax_enable_x64", True)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, float64, {LANES} lanes, {STEPS} steps")
    measured("Panda, PD", panda(), rounds)
    measured("PUMA 560, PD, gravity compensated, payloads", puma(), rounds)


if __name__ == "__main__":
    main()
