"""Error against evaluations and time: extrapolation methods beside Runge-Kutta methods.

    python benchmarks/work_precision.py [--quick]

Three rods fall freely for a second, in float64. The error is the largest of any angle at the end, against SciPy's
DOP853 at a tolerance of 1e-13 on Pinocchio's articulated-body algorithm. Methods take turns in every round of timing.
"""

import argparse
import statistics
import time
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

import jdyn

LENGTH, MASS, END = 0.5, 1.0, 1.0
Q0, V0 = np.array([1.5, 0.3, -0.2]), np.array([0.5, -1.0, 1.0])
# Of a slender rod about its middle, but for the axis along it, about which nothing turns.
INERTIA = np.array([MASS * LENGTH**2 / 12, MASS * LENGTH**2 / 12, 1e-4])
SOLVERS = (jdyn.BulirschStoer(), jdyn.BaderDeuflhard(), diffrax.Dopri8(), diffrax.Tsit5())
TOLERANCES = (1e-6, 1e-8, 1e-10, 1e-12)


def chain() -> jdyn.Model:
    builder = jdyn.Builder("rods")
    for i in range(3):
        where = {} if i == 0 else {"parent": f"rod{i - 1}", "placement": (0, 0, -LENGTH)}
        builder.add_link(
            f"rod{i}", jdyn.Revolute((0, 1, 0)), mass=MASS, com=(0, 0, -LENGTH / 2), inertia=INERTIA, **where
        )
    return builder.build()


def reference() -> np.ndarray:
    """Angles at the end."""
    model = pin.Model()
    for i in range(3):
        placement = pin.SE3(np.eye(3), np.array([0, 0, -LENGTH if i else 0.0]))
        joint = model.addJoint(i, pin.JointModelRY(), placement, f"rod{i}")
        inertia = pin.Inertia(MASS, np.array([0, 0, -LENGTH / 2]), np.diag(INERTIA))
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    data = model.createData()

    def rate(t, y):
        return np.concatenate([y[3:], pin.aba(model, data, y[:3], y[3:], np.zeros(3))])

    start = np.concatenate([Q0, V0])
    return solve_ivp(rate, (0, END), start, method="DOP853", rtol=1e-13, atol=1e-13).y[:3, -1]


class Row(NamedTuple):
    solver: str
    tolerance: float
    error: float
    evaluations: int
    jacobians: int
    steps: int
    seconds: float


def program(solver, model):
    def end(tolerance):
        return jdyn.simulate(
            model, jnp.asarray(Q0), jnp.asarray(V0), END, solver=solver, saveat=diffrax.SaveAt(t1=True), throw=False,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
        )  # fmt: skip

    started = time.perf_counter()
    compiled = jax.jit(end).lower(jnp.zeros(())).compile()
    return compiled, time.perf_counter() - started


def timed(program, argument) -> float:
    started = time.perf_counter()
    jax.block_until_ready(program(argument))
    return time.perf_counter() - started


def measured(tolerances, rounds) -> tuple[dict[str, float], list[Row]]:
    """Seconds of compiling by solver, and a row for each solver and tolerance."""
    model, exact = chain(), reference()
    programs = {type(solver).__name__: program(solver, model) for solver in SOLVERS}
    rows = []
    for tolerance in tolerances:
        argument, samples = jnp.asarray(tolerance), {name: [] for name in programs}
        found = {name: compiled(argument) for name, (compiled, _) in programs.items()}
        for _ in range(rounds):
            for name, (compiled, _) in programs.items():
                samples[name].append(timed(compiled, argument))
        for name, motion in found.items():
            stats = {key: int(motion.stats[key]) for key in ("dynamics_calls", "jacobians", "accepted_steps")}
            error = float(np.max(np.abs(np.asarray(motion.q[-1]) - exact)))
            rows.append(Row(name, tolerance, error, *stats.values(), statistics.median(samples[name])))
    return {name: seconds for name, (_, seconds) in programs.items()}, rows


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--quick", action="store_true", help="one tolerance, one round")
    quick = words.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    print(f"jax {jax.__version__}, diffrax {diffrax.__version__}, {jax.devices()[0].device_kind}, float64")
    compiling, rows = measured(TOLERANCES[:1] if quick else TOLERANCES, 1 if quick else 15)
    print("compiled in " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in compiling.items()))
    print(f"\n{'solver':15} {'rtol':>7} {'error':>9} {'evaluations':>12} {'Jacobians':>10} {'steps':>6} {'run ms':>8}")
    for row in rows:
        print(
            f"{row.solver:15} {row.tolerance:7.0e} {row.error:9.1e} {row.evaluations:12} {row.jacobians:10} "
            f"{row.steps:6} {1e3 * row.seconds:8.2f}"
        )


if __name__ == "__main__":
    main()
