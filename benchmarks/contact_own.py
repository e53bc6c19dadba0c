"""jdyn beside other programs: scenes with contact, in one compiled program a number of lanes."""

import time
from collections.abc import Callable
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks.contact_scenes import SCENES, ContactScene

# Absolute tolerances are this share of the relative ones. Other numbers of controllers are jdyn's defaults.
ABSOLUTE = 1e-2


class Curve(NamedTuple):
    """A way to simulate.

    Attributes:
        contact: Model of contact, by how many pairs are looked at.
        solver: None for what `simulate` chooses.
        steps: What a setting is: the tolerance of adaptive steps, or the length of all steps.
    """

    contact: Callable[[int | None], jdyn.contact.Contact]
    solver: diffrax.AbstractSolver | None
    steps: Callable[[jax.Array], dict]

    def options(self, scene: ContactScene) -> dict:
        """What a simulation of a scene takes beside its steps."""
        return {
            "controller": scene.controller, "contact": self.contact(scene.nearest), "solver": self.solver,
            "saveat": diffrax.SaveAt(t1=True), "max_steps": 10**6,
        }  # fmt: skip


def adaptive(tolerance: jax.Array, **numbers: float) -> dict:
    return {"stepsize_controller": diffrax.PIDController(rtol=tolerance, atol=tolerance * ABSOLUTE, **numbers)}


def convex(tolerance: jax.Array) -> dict:
    return adaptive(tolerance, safety=0.8, factormax=2.0)


def constant(timestep: jax.Array) -> dict:
    return {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": timestep}


CURVES = {
    "jdyn convex": Curve(lambda n: jdyn.ConvexContact(nearest=n), None, convex),
    "jdyn convex steps": Curve(lambda n: jdyn.ConvexContact(nearest=n), jdyn.solvers.ConvexEuler(rows=1), constant),
    "jdyn compliant": Curve(lambda n: jdyn.CompliantContact(nearest=n), None, adaptive),
    "jdyn Rodas5P": Curve(lambda n: jdyn.CompliantContact(nearest=n), jdyn.solvers.Rodas5P(), adaptive),
}


class Own:
    """One of the curves."""

    def __init__(self, scene: dict, curve: str):
        self.scene, self.curve = SCENES[scene["name"]](len(scene["qpos"])), CURVES[curve]
        self.version = f"jdyn {jdyn.__version__}, jax {jax.__version__}"
        self.programs: dict = {}

    def prepare(self, lanes: int) -> float:
        """Compile for a number of lanes; the seconds that took."""
        if lanes in self.programs:
            return 0.0
        scene, curve, began = self.scene, self.curve, time.perf_counter()
        q0, v0 = jnp.asarray(scene.q0[:lanes]), jnp.asarray(scene.v0[:lanes])
        options = curve.options(scene)

        def ends(setting, t1):
            if lanes == 1:
                return end(jdyn.simulate(scene.model, q0[0], v0[0], t1, throw=False, **options, **curve.steps(setting)))
            return jdyn.simulate_batch(scene.model, q0, v0, t1, reduce=end, **options, **curve.steps(setting))

        self.programs[lanes] = jax.jit(ends).lower(0.0, 0.0).compile()
        return time.perf_counter() - began

    def run(self, setting: float, t1: float, lanes: int) -> np.ndarray:
        return np.asarray(self.programs[lanes](setting, t1)).reshape(lanes, -1)


def end(trajectory):
    """The last configuration; NaN where a simulation failed."""
    return jnp.where(trajectory.result == jdyn.Result.success, trajectory.q[-1], jnp.nan)
