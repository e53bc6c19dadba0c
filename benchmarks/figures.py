"""Twelve figures of what users run: six run times and six compile times, of one checkout or of two beside each other.

    python -m benchmarks.figures [--against ../before] [--only "run panda;compile panda"] [--rounds 5] [--json FILE]

Each checkout has a process of its own, on one core, whose processor time is taken; results are waited for, and no
program is kept. With `--against`, samples of the two alternate, and rows are marked whose medians differ by more than
5 % (run) or 10 % (compile). The programs are those of this file for both checkouts, through names that any version has.
"""

import argparse
import datetime
import functools
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
# A sample shorter than this says more about the clock than about the program [s].
SHORTEST = 0.3
# Ratios further from one than these are marked.
ALLOWED = {"run": 1.05, "compile": 1.10}
FIGURES = (
    "run panda, forward dynamics of 1024",
    "run panda, 256 motions of 2 s",
    "run panda, gradient by gains of 1 s",
    "run quadruped, compliant contact, 1 s",
    "run gripper, convex contact, 1 s",
    "run four-bar, 5 s",
    "compile panda, forward dynamics of 1024",
    "compile panda, motion",
    "compile quadruped, compliant contact, 1 s",
    "compile gripper, convex contact, 1 s",
    "compile four-bar, 5 s",
    "compile ball, gradient by stiffness",
)


def programs() -> dict:
    """Functions that make a function and its arguments, by name."""
    import diffrax
    import jax
    import jax.numpy as jnp

    import jdyn

    def arm(count):
        model = jdyn.load("panda")
        x = jnp.sin(1.7 * jnp.arange(3 * count * 7.0)).reshape(3, count, 7)
        return model, x[0], x[1], x[2]

    def accelerations():
        def forward(model, q, v, tau):
            return jax.vmap(lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau))(q, v, tau)

        return forward, arm(1024)

    def held(model, q0, kp, kd, **options):
        hold = jdyn.PD(model, model.neutral() + 0.3, kp=kp, kd=kd)
        return jdyn.simulate(model, q0, jnp.zeros(7), 1.0, controller=hold, throw=False, **options)

    def motion():
        return (lambda q0, kp: held(jdyn.load("panda"), q0, kp, 20.0).q), (jnp.zeros(7), jnp.asarray(100.0))

    def gradient():
        def loss(gains):
            end = held(jdyn.load("panda"), jnp.zeros(7), *gains, saveat=diffrax.SaveAt(t1=True)).q[-1]
            return jnp.sum((end - 0.3) ** 2)

        return jax.grad(loss), (jnp.array([100.0, 20.0]),)

    def sweep():
        def ends(model, q0, v0):
            return jdyn.simulate_batch(model, q0, v0, 2.0, saveat=diffrax.SaveAt(t1=True)).q

        model, q0, v0, _ = arm(256)
        return ends, (model, 0.5 * q0, 0.5 * v0)

    def stands():
        model = jdyn.with_ground(jdyn.load("quadruped"))
        q0 = model.neutral().at[2].set(0.2925).at[7:].set(jnp.tile(jnp.array([0, -0.8, 1.6]), 4))
        kp, kd = (jnp.full(model.nv, gain).at[:6].set(0) for gain in (100.0, 8.0))
        return touching(model, q0, jdyn.PD(model, q0, kp=kp, kd=kd), jdyn.CompliantContact())

    def grips():
        model = jdyn.with_ground(jdyn.load("gripper"), (0, 0, -0.0305))
        raised = model.neutral().at[:3].set(jnp.array([0.1, 0.035, 0.035]))
        kp, kd = (jnp.zeros(model.nv).at[:3].set(jnp.array(gains)) for gains in ([1000.0] * 3, [60.0, 20.0, 20.0]))
        return touching(model, model.neutral(), jdyn.PD(model, raised, kp=kp, kd=kd), jdyn.ConvexContact())

    def touching(model, q0, hold, contact):
        def simulated(model, q0):
            still = jnp.zeros(model.nv)
            return jdyn.simulate(model, q0, still, 1.0, controller=hold, contact=contact, throw=False).q

        return simulated, (model, q0)

    def four_bar():
        from jdyn.model import Connect  # any version has it here

        builder = jdyn.Builder("four-bar", gravity=(0, -9.81, 0))
        rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": (1e-3, 1 / 12, 1 / 12)}
        for i in range(2):
            builder.add_link(f"upright{i}", jdyn.Revolute((0, 0, 1)), placement=(i, 0, 0), **rod)
        builder.add_link("coupler", jdyn.Revolute((0, 0, 1)), parent="upright0", placement=(1, 0, 0), **rod)
        loop = [Connect("coupler", "upright1", point_a=(1, 0, 0), point_b=(1, 0, 0))]
        model = builder.build()
        signs = jnp.array([-1.0 if name == "coupler" else 1.0 for name in model.joint_names])

        def simulated(model, q0, v0):
            return jdyn.simulate(model, q0, v0, 5.0, constraints=loop, throw=False).q

        return simulated, (model, 0.8 * signs, 1.5 * signs)

    def bounces():
        def end(stiffness):
            model = jdyn.with_ground(jdyn.load("ball"))
            contact = jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=stiffness))
            q0 = model.neutral().at[2].set(0.15)
            motion = jdyn.simulate(model, q0, jnp.zeros(6).at[3].set(1.0), 0.3, contact=contact, throw=False)
            return motion.q[-1, 0]

        return jax.grad(end), (jnp.asarray(1e4),)

    return {
        "panda, forward dynamics of 1024": accelerations,
        "panda, motion": motion,
        "panda, gradient by gains of 1 s": gradient,
        "panda, 256 motions of 2 s": sweep,
        "quadruped, compliant contact, 1 s": stands,
        "gripper, convex contact, 1 s": grips,
        "four-bar, 5 s": four_bar,
        "ball, gradient by stiffness": bounces,
    }


def child(core: int):
    """The process of a checkout: a line with the name of a figure comes in, one with a sample of it goes out."""
    os.sched_setaffinity(0, {core})
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import jax
    import numpy as np

    import jdyn

    def compiled(make):
        """A program, its arguments, and the seconds that tracing, lowering and compiling take."""
        jax.clear_caches()
        function, arguments = make()
        began = time.process_time()
        program = jax.jit(function).lower(*arguments).compile()
        return program, arguments, time.process_time() - began

    def run_for(call, calls):
        began = time.process_time()
        for _ in range(calls):
            jax.block_until_ready(call())
        return time.process_time() - began

    # JAX's own first uses.
    jax.jit(lambda x: x + 1).lower(1.0).compile()
    made, ready = programs(), {}
    print(json.dumps({"jdyn": jdyn.__file__, "jax": jax.__version__}), file=lines)
    for line in sys.stdin:
        kind, _, name = line.strip().partition(" ")
        try:
            if kind == "compile":
                seconds = compiled(made[name])[2]
            else:
                if name not in ready:
                    program, arguments, _ = compiled(made[name])
                    call = functools.partial(program, *arguments)
                    if not all(np.isfinite(x).all() for x in jax.tree.leaves(call())):
                        raise ValueError("what it gives is not finite")
                    ready[name] = call, max(1, round(SHORTEST / max(run_for(call, 1), 1e-6)))
                call, calls = ready[name]
                seconds = run_for(call, calls) / calls
            print(json.dumps({"seconds": seconds}), file=lines)
        except Exception as error:
            print(json.dumps({"error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}), file=lines)


class Checkout:
    """The process of a checkout, which measures when it is asked."""

    def __init__(self, path: pathlib.Path, core: int):
        self.path = path.resolve()
        own = {"JAX_ENABLE_COMPILATION_CACHE": "false", "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
        # Without the folder of this file, so that nothing beside it comes first.
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__, "--child", str(core)],
            env=os.environ | own | {"PYTHONPATH": str(self.path)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.loaded = self._line()
        if self.path not in pathlib.Path(self.loaded["jdyn"]).parents:
            raise SystemExit(f"{self.path}: jdyn comes from {self.loaded['jdyn']}")

    def _line(self) -> dict:
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise SystemExit(f"{self.path}: its process ended with code {self.process.wait()}")
        return json.loads(line)

    def sample(self, figure: str) -> dict:
        print(figure, file=self.process.stdin)
        return self._line()

    def end(self):
        self.process.kill()
        self.process.wait()


def measured(checkouts: list[Checkout], figure: str, rounds: int) -> list[dict]:
    """For each checkout, samples [s] that alternate, or an error."""
    found: list[dict] = [{"seconds": []} for _ in checkouts]
    for k in range(rounds):
        # ABBA, so that neither is always first.
        for checkout, mine in list(zip(checkouts, found, strict=True))[:: -1 if k % 2 else 1]:
            sample = checkout.sample(figure) if "error" not in mine else {}
            if "error" in sample:
                mine["error"] = sample["error"]
            elif sample:
                mine["seconds"].append(sample["seconds"])
    return found


def row(figure: str, found: list[dict]) -> str:
    """A line of the table: median and range of each checkout [ms], and the ratio of the first to the second."""
    words = [f"{figure:44}"]
    for each in found:
        ms = [1e3 * x for x in each["seconds"]]
        words.append(
            each["error"] if "error" in each else f"{statistics.median(ms):9.4g} ({min(ms):.4g} to {max(ms):.4g})"
        )
    if len(found) == 2 and not any("error" in each for each in found):
        ratio = ratio_of(found)
        words.append(f"{ratio:6.3f}{mark(figure, ratio)}")
    return "  ".join(words)


def ratio_of(found: list[dict]) -> float:
    mine, other = (statistics.median(each["seconds"]) for each in found)
    return mine / other


def mark(figure: str, ratio: float) -> str:
    allowed = ALLOWED[figure.split()[0]]
    return " slower" if ratio > allowed else " faster" if ratio < 1 / allowed else ""


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--against", type=pathlib.Path, help="another checkout")
    words.add_argument("--only", help="beginnings of figures, separated by semicolons; all if left out")
    words.add_argument("--rounds", type=int, default=5, help="samples of each figure")
    words.add_argument("--json", type=pathlib.Path, help="file for all samples")
    words.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    words.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = words.parse_args()
    if options.child is not None:
        return child(options.child)
    only = tuple(options.only.split(";")) if options.only else ("",)
    chosen = [figure for figure in FIGURES if figure.startswith(only)]
    if not chosen:
        words.error(f"no figure begins with {options.only!r}; there are {'; '.join(FIGURES)}")
    checkouts = [Checkout(path, options.core) for path in (ROOT, options.against) if path is not None]
    report = {
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "jax": [each.loaded["jax"] for each in checkouts],
        "checkouts": [str(each.path) for each in checkouts],
        "figures": {},
    }
    print(
        f"jax {', '.join(report['jax'])}; processor time on one core, median (least to most) of {options.rounds} [ms]"
    )
    for figure in chosen:
        report["figures"][figure] = measured(checkouts, figure, options.rounds)
        print(row(figure, report["figures"][figure]), flush=True)
    for each in checkouts:
        each.end()
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
