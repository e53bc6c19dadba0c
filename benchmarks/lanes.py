"""What a batch costs whose lanes differ: `jdyn.simulate_batch` beside diffrax under `jax.vmap`, in one run.

Pendulums on springs swing for two seconds, and the springs' stiffness makes the number of steps log-normal. Ideal is
the time of as many steps when all lanes need the same number. Then one lane of 512 that is NaN, or stiff.
"""

import argparse
import statistics
import time

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jdyn

STEPS = diffrax.PIDController(rtol=1e-6, atol=1e-8)
TIME = 2.0
MAX_STEPS = 4096
# Spring that makes a lane take fifteen times as many steps as the others [N m/rad].
STIFF = 3e3


def springs(stiffness):
    """A double pendulum with a spring in each joint."""
    model = jdyn.load("double_pendulum")
    for name in model.joint_names:
        model = model.with_joint(name, stiffness=stiffness)
    return model


def refilled(stiffness):
    models = jax.vmap(springs)(stiffness)
    lanes = len(stiffness)
    q0, v0 = jnp.full((lanes, 2), 0.3), jnp.zeros((lanes, 2))
    return jdyn.simulate_batch(
        models, q0, v0, TIME, in_axes={"model": 0, "q0": 0, "v0": 0}, stepsize_controller=STEPS,
        saveat=diffrax.SaveAt(t1=True), max_steps=MAX_STEPS,
    )  # fmt: skip


def in_step(stiffness):
    """Diffrax' own loop under vmap."""

    def lane(k):
        model = springs(k)

        def field(t, y, args):
            return jnp.concatenate([y[2:], jdyn.forward_dynamics(model, y[:2], y[2:], jnp.zeros(2))])

        return diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, TIME, 0.01, jnp.array([0.3, 0.3, 0, 0]),
            stepsize_controller=STEPS, max_steps=MAX_STEPS, throw=False, adjoint=diffrax.ForwardMode(),
        ).ys  # fmt: skip

    return jax.vmap(lane)(stiffness)


def compiled(function, argument):
    started = time.perf_counter()
    program = jax.jit(function).lower(argument).compile()
    return program, time.perf_counter() - started


def medians(program, arguments, repeats):
    """Median times of blocked runs, arguments taken in turn, and what the last runs returned."""
    times, out = [[] for _ in arguments], [None] * len(arguments)
    for _ in range(repeats):
        for k, argument in enumerate(arguments):
            started = time.perf_counter()
            out[k] = jax.block_until_ready(program(argument))
            times[k].append(time.perf_counter() - started)
    return [statistics.median(x) for x in times], out


def attempts(lanes):
    return np.asarray(lanes.stats["accepted_steps"] + lanes.stats["rejected_steps"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--spread", type=float, default=2.6, help="of the logarithm of the stiffness")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"jax {jax.__version__}, {jax.default_backend()}, float64, {options.lanes} lanes of {TIME:g} s\n")
    rng = np.random.default_rng(0)
    hard = jnp.asarray(np.exp(options.spread * rng.standard_normal(options.lanes)))

    ours, ours_compiled = compiled(refilled, hard)
    steps = attempts(ours(hard))
    print(f"steps: mean {steps.mean():.1f}, most {steps.max()}, most over mean {steps.max() / steps.mean():.1f}")
    middle = hard[np.argsort(steps)[np.searchsorted(np.sort(steps), steps.mean())]]
    (wall, even), (_, same) = medians(ours, [hard, jnp.full(options.lanes, middle)], options.repeats)
    ideal = even * steps.sum() / attempts(same).sum()
    theirs, theirs_compiled = compiled(in_step, hard)
    (slow,), _ = medians(theirs, [hard], 1)
    print(f"{'':28}compile s   run s   over ideal")
    print(f"{'ideal':28}{'':9}{ideal:8.2f}")
    print(f"{'jdyn.simulate_batch':28}{ours_compiled:9.1f}{wall:8.2f}{wall / ideal:12.2f}   (goal: below 1.5)")
    print(f"{'diffrax under vmap':28}{theirs_compiled:9.1f}{slow:8.2f}{slow / ideal:12.2f}")

    plain = jnp.full(512, 10.0)
    cases = {"alike": plain, "one NaN": plain.at[100].set(jnp.nan), "one stiff": plain.at[100].set(STIFF)}
    ours, theirs = (compiled(function, plain)[0] for function in (refilled, in_step))
    (times, lanes), (slow_times, _) = medians(ours, list(cases.values()), 9), medians(theirs, list(cases.values()), 1)
    print("\n512 lanes              most steps   jdyn s   over alike   diffrax s   over alike")
    for name, seconds, slow, each in zip(cases, times, slow_times, lanes, strict=True):
        print(
            f"{name:22}{attempts(each).max():11}{seconds:9.3f}{seconds / times[0]:13.2f}"
            f"{slow:12.3f}{slow / slow_times[0]:13.2f}"
        )


if __name__ == "__main__":
    main()
