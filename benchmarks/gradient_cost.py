"""What a gradient through a simulation costs: a Panda that tracks a motion for two seconds, and its loss by the gains
and all inertial parameters, beside the simulation alone and beside diffrax' own adjoint."""

import statistics
import time

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

import jdyn
from jdyn.control.controller import with_memory
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField

TIME = 2.0
MAX_STEPS = 4096
UNOPTIMISED = {"xla_backend_optimization_level": 0}
STEPS = diffrax.PIDController(rtol=1e-6, atol=1e-8)


def problem():
    """The model, where it starts, what it is to follow, and what to differentiate by."""
    model = jdyn.load("panda")
    q0 = model.random(jax.random.key(0))
    reference = jdyn.control.Quintic(model, q0, q0 + 0.4, 0.0, 1.5)
    parameters = {
        "kp": jnp.full(model.nv, 100.0),
        "kd": jnp.full(model.nv, 20.0),
        "inertias": jax.tree.map(lambda x: 1.1 * x, model.inertias),
    }
    return model, q0, reference, parameters


def losses():
    """The loss through `simulate` and through diffrax, and the parameters."""
    model, q0, reference, parameters = problem()
    times = jnp.linspace(0, TIME, 41)
    wanted = jax.vmap(reference)(times)[0]

    def robot(p):
        heavier = eqx.tree_at(lambda m: m.inertias, model, p["inertias"])
        return heavier, jdyn.control.Tracking(model, reference, kp=p["kp"], kd=p["kd"])

    def ours(p):
        heavier, controller = robot(p)
        trajectory = jdyn.simulate(
            heavier, q0, jnp.zeros(model.nv), TIME, controller=controller, saveat=times, stepsize_controller=STEPS,
            max_steps=MAX_STEPS, throw=False,
        )  # fmt: skip
        return jnp.sum((trajectory.q - wanted) ** 2)

    def theirs(p, checkpoints=None):
        heavier, controller = robot(p)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(VectorField(heavier, with_memory(controller), None)), diffrax.Tsit5(), 0.0, TIME, 0.01,
            State(q0, jnp.zeros(model.nv)), saveat=diffrax.SaveAt(ts=times), stepsize_controller=STEPS,
            max_steps=MAX_STEPS, throw=False, adjoint=diffrax.RecursiveCheckpointAdjoint(checkpoints),
        )  # fmt: skip
        return jnp.sum((solution.ys.q - wanted) ** 2)

    return ours, theirs, parameters


def compiled(function, p):
    started = time.perf_counter()
    program = jax.jit(function).lower(p).compile()
    return program, time.perf_counter() - started


def medians(programs, p, repeats=15):
    """Median times of blocked runs, the programs taken in turn."""
    times = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in programs.items():
            started = time.perf_counter()
            jax.block_until_ready(program(p))
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def difference(one, other):
    """Largest difference of two gradients, each leaf relative to its largest number."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b))) for a, b in pairs)


def main():
    jax.config.update("jax_enable_x64", True)
    print(f"jax {jax.__version__}, {jax.default_backend()}, float64")
    ours, theirs, p = losses()
    loops = {"simulate": ours, "diffrax": theirs}
    functions = loops | {f"gradient of {name}": jax.grad(loss) for name, loss in loops.items()}
    programs = {name: compiled(function, p) for name, function in functions.items()}
    seconds = medians({name: program for name, (program, _) in programs.items()}, p)
    print(f"{'':28}compile s   run ms   memory MB   over forward")
    for name, (program, compiling) in programs.items():
        memory = program.memory_analysis().temp_size_in_bytes / 1e6
        share = seconds[name] / seconds["simulate"]
        print(f"{name:28}{compiling:9.1f}{1e3 * seconds[name]:9.1f}{memory:12.2f}{share:15.2f}")
    # Steps that diffrax computes again, and code that XLA optimises in another way, are rounded otherwise.
    alike = jax.jit(jax.grad(ours), compiler_options=UNOPTIMISED)(p)
    kept = jax.jit(jax.grad(lambda p: theirs(p, MAX_STEPS)), compiler_options=UNOPTIMISED)(p)
    gradients = {name: programs[f"gradient of {name}"][0](p) for name in loops}
    print(f"relative difference of the gradients: {difference(gradients['simulate'], gradients['diffrax']):.0e};")
    print(f"rounded alike, with a checkpoint of every step: {difference(alike, kept):.0e}")


if __name__ == "__main__":
    main()
