"""Programs of every quantity out of a JAX library's functions of one configuration."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import cases, clock, work


def run(functions: cases.Functions, case: cases.Case, given, dtype, repeats, budget):
    """Times of one case and its first results, in the file's order of joints."""
    program, names = _PROGRAMS[case.quantity]
    order = Order(functions, given["joints"])
    batch = [jnp.asarray(x, dtype) for x in order.states(given, names, case.batch)]
    whole = program(functions)
    began = time.perf_counter()
    lowered = jax.jit(whole).lower(*batch)
    lower_s = time.perf_counter() - began
    began = time.perf_counter()
    compiled = lowered.compile()
    compile_s = time.perf_counter() - began
    # Several matrices are set side by side, but not within what is timed.
    result = np.concatenate(jax.tree.leaves(compiled(*batch)), axis=-1)
    if result.dtype != dtype:
        raise TypeError(f"it computed in {result.dtype}, not in {dtype}")
    times = clock.measure(lambda: jax.block_until_ready(compiled(*batch)), repeats, budget)
    counted = work.counted(whole, batch, compiled)
    found = order.result(case.quantity, result[: cases.COMPARED].astype(float))
    return {"lower_s": lower_s, "compile_s": compile_s, **times, **counted}, found


class Order:
    """The joints of a library beside those of the file; a base comes first in both."""

    def __init__(self, functions, joints):
        self.base = 0 if functions.base == "fixed" else 6
        self.convention, joints = functions.base, list(joints)
        if sorted(functions.joints) != sorted(joints):
            raise ValueError(f"it found {len(functions.joints)} joints in a file of {len(joints)}")
        there = np.array([joints.index(name) for name in functions.joints], int)
        self.there, self.back = (self._with_base(x, self.base) for x in (there, np.argsort(there)))
        self.q_there = self._with_base(there, self.base + 1 if self.base else 0)

    @staticmethod
    def _with_base(order, base):
        return np.concatenate([np.arange(base), base + order])

    def states(self, given, names, count):
        return [self._state(given, name, count) for name in names]

    def _state(self, given, name, count):
        if name == "taus":
            return np.repeat(self._state(given, "tau", count)[:, None], cases.ROLLOUT_STEPS, axis=1)
        x = given["damping"] if name == "damping" else given[f"{name}:{self.convention}"]
        if len(x) < count:
            raise ValueError(f"{count} lanes of {len(x)} states")
        return x[:count][:, self.q_there if name == "q" else self.there]

    def result(self, quantity, found):
        if quantity in ("forward dynamics", "inverse dynamics", "sweep"):
            return found[:, self.back]
        if quantity in ("mass matrix", "derivatives"):
            blocks = np.split(found, found.shape[2] // found.shape[1], axis=2)
            return np.concatenate([block[:, self.back][..., self.back] for block in blocks], axis=2)
        if self.base:
            return found
        n = len(self.back)
        return np.concatenate([block[:, self.back] for block in np.split(found, found.shape[1] // n, axis=1)], axis=1)


def forward_dynamics(functions):
    return jax.vmap(functions.forward)


def inverse_dynamics(functions):
    return jax.vmap(functions.inverse)


def mass_matrix(functions):
    return jax.vmap(functions.mass)


def derivatives(functions):
    def by_forward_mode(q, v, tau):
        def near(dq, v, tau):
            return functions.forward(functions.integrate(q, dq), v, tau)

        return jax.jacfwd(near, (0, 1, 2))(jnp.zeros_like(v), v, tau)

    return jax.vmap(functions.derivatives or by_forward_mode)


def last_state(functions, q, v, taus):
    """100 steps of semi-implicit Euler."""

    def step(state, tau):
        q, v = state
        v = v + cases.TIME_STEP * functions.forward(q, v, tau)
        return (functions.integrate(q, cases.TIME_STEP * v), v), None

    return jax.lax.scan(step, (q, v), taus)[0]


def rollout(functions):
    return jax.vmap(lambda q, v, taus: jnp.concatenate(last_state(functions, q, v, taus)))


def rollout_gradient(functions):
    """With respect to the first state and the forces of every step: [dL/dq dL/dv dL/dtaus], L = (|q|² + |v|²) / 2."""

    def loss(q, v, taus):
        q, v = last_state(functions, q, v, taus)
        return (jnp.vdot(q, q) + jnp.vdot(v, v)) / 2

    def gradient(q, v, taus):
        return jnp.concatenate([x.ravel() for x in jax.grad(loss, (0, 1, 2))(q, v, taus)])

    return jax.vmap(gradient)


def sweep(functions):
    """Where 2 s take a robot that falls through a medium, whose damping differs from lane to lane."""
    return functions.sweep or functools.partial(_sweep_by_diffrax, functions)


def _sweep_by_diffrax(functions, q, v, damping):
    import diffrax

    if functions.base != "fixed":
        raise cases.Unavailable("sweeps are of robots on a fixed base")
    rtol, atol = cases.TOLERANCES[str(q.dtype)]

    def lane(q, v, damping):
        def rate(t, state, damping):
            q, v = state
            return v, functions.forward(q, v, -damping * v)

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rate),
            diffrax.Tsit5(),
            0.0,
            cases.SWEEP_SECONDS,
            0.01,
            (q, v),
            damping,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.PIDController(rtol, atol),
            adjoint=diffrax.ForwardMode(),
            max_steps=16384,
            throw=False,
        )
        return jax.tree.map(lambda x: x[-1], solution.ys)[0]

    return jax.vmap(lane)(q, v, damping)


_PROGRAMS = {
    "forward dynamics": (forward_dynamics, ("q", "v", "tau")),
    "inverse dynamics": (inverse_dynamics, ("q", "v", "a")),
    "mass matrix": (mass_matrix, ("q",)),
    "derivatives": (derivatives, ("q", "v", "tau")),
    "rollout": (rollout, ("q", "v", "taus")),
    "rollout gradient": (rollout_gradient, ("q", "v", "taus")),
    "sweep": (sweep, ("q", "v", "damping")),
}
