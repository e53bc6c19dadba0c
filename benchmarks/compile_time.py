"""Compile time of batched forward dynamics against the number of bodies, what a second load of a robot costs, compile
time of simulations of a Panda under PD control and of their gradients, and that of simulations with contact.

    python benchmarks/compile_time.py

Compilations of the two sizes alternate, nothing is cached between them, and medians are printed. Simulations are
compiled once each (`--simulations none` and `--contact none` leave them out); lowering includes tracing. Those with
contact are measured in processor time, with operations as they are lowered.
"""

import argparse
import re
import statistics
import time

import diffrax
import jax
import jax.numpy as jnp

import jdyn

SIZES = (8, 128)
SOLVERS = {"default": None, "Tsit5": diffrax.Tsit5(), "Rodas5P": jdyn.solvers.Rodas5P()}


def forward(model, q, v, tau):
    return jax.vmap(jdyn.forward_dynamics, in_axes=(None, 0, 0, 0))(model, q, v, tau)


def inputs(model, batch):
    keys = jax.random.split(jax.random.key(0), 3)
    q = jax.vmap(model.random)(jax.random.split(keys[0], batch))
    v, tau = (jax.random.normal(key, (batch, model.nv), model.dtype) for key in keys[1:])
    return jax.block_until_ready((model, q, v, tau))


def compile_once(arguments):
    """Seconds to trace and compile, and the compiled program."""
    jax.clear_caches()
    started = time.perf_counter()
    compiled = jax.jit(forward).lower(*arguments).compile()
    return time.perf_counter() - started, compiled


def run_once(compiled, arguments):
    started = time.perf_counter()
    jax.block_until_ready(compiled(*arguments))
    return time.perf_counter() - started


def traces_of_two_loads(name):
    """How many programs two loads of one robot need."""
    traces = []

    @jax.jit
    def once(model, *state):
        traces.append(1)
        return forward(model, *state)

    for _ in range(2):
        once(*inputs(jdyn.load(name), 2))
    return len(traces)


def simulations(solver) -> dict:
    """Functions of a gain and a start, and one or many of the latter."""
    model = jdyn.load("panda")
    target, v0 = model.neutral() + 0.3, jnp.zeros(model.nv, model.dtype)

    def loss(kp, q0):
        controller = jdyn.PD(model, target, kp=kp, kd=20.0)
        motion = jdyn.simulate(model, q0, v0, 0.5, controller=controller, solver=solver, throw=False)
        return jnp.sum((motion.q[-1] - target) ** 2)

    one = (jnp.asarray(100.0), model.neutral())
    many = (one[0], jnp.tile(one[1], (256, 1)))
    return {
        "simulate": (loss, one),
        "of a batch": (jax.vmap(loss, (None, 0)), many),
        "gradient": (jax.grad(loss), one),
        "of a batch of gradients": (jax.vmap(jax.grad(loss), (None, 0)), many),
    }


def print_simulations(names):
    print(f"\n{'solver':8} {'program':24} {'lowered [s]':>11} {'compiled [s]':>12} {'both [s]':>9}")
    for name in names:
        for program, (function, arguments) in simulations(SOLVERS[name]).items():
            jax.clear_caches()
            times = [time.perf_counter()]
            lowered = jax.jit(function).lower(*arguments)
            times.append(time.perf_counter())
            lowered.compile()
            times.append(time.perf_counter())
            lowering, compiling = times[1] - times[0], times[2] - times[1]
            print(f"{name:8} {program:24} {lowering:11.2f} {compiling:12.2f} {lowering + compiling:9.2f}", flush=True)


def ball_on_ground():
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    return jdyn.with_ground(builder.build())


def grounded(name):
    return lambda: jdyn.with_ground(jdyn.load(name))


CONTACT_SCENES = {"ball": ball_on_ground, **{name: grounded(name) for name in ("hopper", "quadruped", "gripper")}}
CONTACTS = {"none": None, "compliant": jdyn.CompliantContact(), "convex": jdyn.ConvexContact()}


def print_contact(names):
    print(f"\n{'scene':9} {'contact':9} {'operations':>10} {'lowered [s]':>11} {'compiled [s]':>12} {'both [s]':>9}")
    for name in names:
        model = CONTACT_SCENES[name]()
        for kind, contact in CONTACTS.items():

            def simulated(model, q, v, contact=contact):
                return jdyn.simulate(model, q, v, 0.1, contact=contact, throw=False)

            jax.clear_caches()
            times = [time.process_time()]
            lowered = jax.jit(simulated).lower(model, model.neutral(), jnp.zeros(model.nv, model.dtype))
            times.append(time.process_time())
            operations = len(re.findall(r"(?<![#\w])stablehlo\.\w+", lowered.as_text()))
            times.append(time.process_time())
            lowered.compile()
            lowering, compiling = times[1] - times[0], time.process_time() - times[2]
            both = lowering + compiling
            print(f"{name:9} {kind:9} {operations:10} {lowering:11.2f} {compiling:12.2f} {both:9.2f}", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--batch", type=int, default=256)
    words.add_argument("--repeats", type=int, default=5)
    words.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    words.add_argument("--simulations", default="default,Tsit5,Rodas5P", help="solvers, separated by commas, or none")
    words.add_argument("--contact", default=",".join(CONTACT_SCENES), help="scenes, separated by commas, or none")
    options = words.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    jax.config.update("jax_enable_x64", options.dtype == "float64")
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, {options.dtype}, batch {options.batch}")
    arguments = {n: inputs(jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1), options.batch) for n in SIZES}
    compiles, runs = {n: [] for n in SIZES}, {n: [] for n in SIZES}
    for repeat in range(options.repeats + 1):
        for n in SIZES:
            seconds, compiled = compile_once(arguments[n])
            run_once(compiled, arguments[n])
            # The first round warms the process up: imports, and JAX's own first uses.
            if repeat:
                compiles[n].append(seconds)
                runs[n].append(run_once(compiled, arguments[n]))
    print(f"{'links':>5}  {'compile [s]':>11}  {'run [ms]':>9}  {'µs a link and lane':>18}")
    for n in SIZES:
        compiled, run = statistics.median(compiles[n]), statistics.median(runs[n])
        print(f"{n:5}  {compiled:11.2f}  {1e3 * run:9.2f}  {1e6 * run / n / options.batch:18.2f}")
    ratio = statistics.median(compiles[SIZES[1]]) / statistics.median(compiles[SIZES[0]])
    print(f"compile time of {SIZES[1]} links over that of {SIZES[0]}: {ratio:.2f} (goal: below 2)")
    print(f"programs compiled for two loads of one robot: {traces_of_two_loads('panda')} (goal: 1)")
    if options.simulations != "none":
        print_simulations(options.simulations.split(","))
    if options.contact != "none":
        print_contact(options.contact.split(","))


if __name__ == "__main__":
    main()
