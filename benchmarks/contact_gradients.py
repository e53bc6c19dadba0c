"""Gradients through contact: both modes beside closed forms and differences, what they cost, and what a gradient reach
does where nothing touches yet.

    python -m benchmarks.contact_gradients [NAME ...]

Names are parts of those of cases, such as `ball`, `block`, `peg`, `leg`, `cube` or `push`; all if none is given. Times
are those of the processor, compiling apart; a gradient's is that of the simulation times a number.
"""

import argparse
import time

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jdyn
from benchmarks.clock import measure
from benchmarks.contact_cases import AHEAD, END, Case, bounce, compliant, convex, hop, peg, sliding, sticking, toss

# Of differences, as a share of the parameter.
STEP = 1e-4
CASES = (
    bounce(False),
    bounce(True),
    sliding(),
    sticking(),
    peg(compliant, (1e-8, 1e-10)),
    peg(convex, (1e-5, 1e-7)),
    hop(compliant, (1e-8, 1e-10)),
    hop(convex, (1e-6, 1e-8)),
    hop(compliant, (1e-8, 1e-10), kd=3.0, located=True),
    toss(jdyn.RigidContact(friction=0.5), (1e-6, 1e-8)),
    toss(jdyn.CompliantContact(located=True), (1e-6, 1e-8)),
    toss(jdyn.CompliantContact(), (1e-6, 1e-8)),
    toss(jdyn.ConvexContact(), (1e-8, 1e-9)),
)


def _compiled(function, at):
    """The function as a program for these arguments, and the seconds to compile it."""
    began = time.process_time()
    program = jax.jit(function).lower(*at).compile()
    return program, time.process_time() - began


def _seconds(program, at):
    """Of a call."""
    return float(np.median(measure(lambda: jax.block_until_ready(program(*at)), 5, 5.0)["cpu_s"]))


def differences(value, at):
    """Central ones of two steps, extrapolated to order 4."""
    weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
    moved = [sum(w * value(*_moved(at, i, n)) for n, w in weights.items()) / (STEP * at[i]) for i in range(len(at))]
    return np.array(moved)


def _moved(at, i, n):
    return [x * (1 + n * STEP * (i == j)) for j, x in enumerate(at)]


def compare(case: Case):
    """Print errors of a case's derivatives, relative for each parameter, and what they cost."""
    at, (usual, tight) = [jnp.asarray(x) for x in case.at], map(jnp.asarray, case.tolerances)
    which = tuple(range(len(at)))
    value, compiling = _compiled(lambda tolerance, *x: case.end(tolerance, None, *x), (usual, *at))
    alone = _seconds(value, (usual, *at))
    by_differences = differences(lambda *x: value(tight, *x), at)
    print(f"{case.name}: simulated in {1e3 * alone:.1f} ms, compiled in {compiling:.0f} s", end="")
    if case.exact is None:
        oracle = by_differences
        print(f"; errors against differences at a tolerance of {case.tolerances[1]:.0e}")
    else:
        oracle = np.array(jax.grad(case.exact, which)(*at))
        missed = abs(float(value(usual, *at)) / float(case.exact(*at)) - 1)
        print(f"; the end misses its closed form by {missed:.1e}")
        _row("differences", by_differences, oracle, f"{4 * len(at)} simulations")
    for name, derivatives, adjoint in (("reverse", jax.grad, None), ("forward", jax.jacfwd, diffrax.ForwardMode())):

        def end(*x, adjoint=adjoint):
            return case.end(usual, adjoint, *x)

        program, compiling = _compiled(derivatives(end, which), at)
        seconds = _seconds(program, at)
        cost = f"{seconds / alone:.1f} simulations, compiled in {compiling:.0f} s"
        _row(name, np.array(program(*at)), oracle, cost)


def _row(name, found, oracle, cost):
    errors = " ".join(f"{error:.1e}" for error in np.abs(found / oracle - 1))
    print(f"  {name:12} errors {errors}   {cost}", flush=True)


def table() -> jdyn.Model:
    """Two balls of 1 kg on one rail with dampers, the second 0.6 m ahead of the first."""
    builder = jdyn.Builder("table", gravity=(0, 0, 0))
    for name, x in (("pusher", 0.0), ("puck", 0.6)):
        builder.add_link(
            name, jdyn.Prismatic(AHEAD), placement=(x, 0, 0), mass=1.0, inertia=(0.01, 0.01, 0.01),
            damping=1.0,
        )  # fmt: skip
        builder.add_shape(name, "sphere", 0.05, role="collision")
    return builder.build()


def push(reach: float | None, longest: float | None, steps: int = 40):
    """Adam on the speed of the pusher that brings the puck 0.3 m ahead, by steps of at most `longest`; at first the two
    do not touch."""
    model = table()
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(2e4, 0.1, 0.0), gradient_reach=reach)
    controller = diffrax.PIDController(rtol=1e-6, atol=1e-8, dtmax=longest)

    def missed(speed):
        motion = jdyn.simulate(
            model, jnp.zeros(2), jnp.stack([speed, jnp.zeros_like(speed)]), 4.0, contact=contact, saveat=END,
            stepsize_controller=controller, throw=False,
        )  # fmt: skip
        return (motion.q[0, 1] - 0.3) ** 2

    # Differences are not what derivatives with a reach are to agree with.
    found = jdyn.tune(missed, jnp.asarray(0.3), optimizer=optax.adam(0.05), steps=steps, check=False, progress=False)
    told = "true gradient" if reach is None else f"reach {reach} m"
    told += ", steps as long as errors allow" if longest is None else f", steps up to {1e3 * longest:.0f} ms"
    print(f"push to a target, {told}: {found.params:.3f} m/s, missed by {found.losses[found.best_step] ** 0.5:.1e} m")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names
    jax.config.update("jax_enable_x64", True)

    def chosen(name):
        return not names or any(part in name for part in names)

    for case in filter(lambda case: chosen(case.name), CASES):
        compare(case)
    for reach, longest in ((None, None), (0.1, None), (0.1, 5e-3)):
        if chosen("push to a target"):
            push(reach, longest)


if __name__ == "__main__":
    main()
