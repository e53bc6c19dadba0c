"""jdyn, offered to be measured by what it exports."""

import dataclasses

import equinox as eqx
from diffrax import SaveAt
from jaxtyping import Array

import jdyn
from benchmarks.cases import SWEEP_SECONDS, Functions, Unavailable
from benchmarks.robots import load


class Viscous(jdyn.Controller):
    """Damping in every joint [N m s/rad]."""

    damping: Array

    def __call__(self, t, q, v):
        return -self.damping * v


def _method(model, name):
    return jdyn.diagnose(model).method if name == "auto" else getattr(jdyn, name)()


def functions(urdf, floating, dtype, method, executor) -> Functions:
    """All of it by the `method` of forward dynamics with that name, where `"auto"` is what diagnosis recommends; where
    an `executor` is given, by `ABA` with it."""
    model = load(urdf, floating).astype(dtype)
    if executor:
        model, method = dataclasses.replace(model, executor=executor), "ABA"
    method = _method(model, method)

    def derivatives(q, v, tau):
        return jdyn.forward_dynamics_derivatives(model, q, v, tau, method=method)

    def sweep(q, v, damping):
        if floating:
            raise Unavailable("sweeps are of robots on a fixed base")
        return jdyn.simulate_batch(
            model,
            q,
            v,
            SWEEP_SECONDS,
            controller=Viscous(damping),
            method=method,
            in_axes={"q0": 0, "v0": 0, "controller": eqx.if_array(0)},
            saveat=SaveAt(t1=True),
            reduce=lambda trajectory: trajectory.q[-1],
        )

    return Functions(
        base="angular first" if floating else "fixed",
        joints=list(model.joint_names[1:] if floating else model.joint_names),
        forward=lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau, method=method),
        inverse=lambda q, v, a: jdyn.inverse_dynamics(model, q, v, a),
        mass=lambda q: jdyn.mass_matrix(model, q),
        integrate=model.integrate,
        derivatives=derivatives,
        sweep=sweep,
        method=str(method),
    )
