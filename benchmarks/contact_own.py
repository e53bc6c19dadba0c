"""jdyn beside other programs: scenes with contact, in one compiled program a number of lanes."""

import time

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from benchmarks.contact_scenes import SCENES

# Absolute tolerances are this share of the relative ones, as in jdyn's own default.
ABSOLUTE = 1e-2
# Contact and solver by what the curve is called; `simulate` chooses a solver where there is none.
CURVES = {
    "jdyn convex": lambda: (jdyn.ConvexContact(), None),
    "jdyn compliant": lambda: (jdyn.CompliantContact(), None),
    "jdyn Rodas5P": lambda: (jdyn.CompliantContact(), jdyn.Rodas5P()),
}


class Own:
    """One of the curves; its settings are relative tolerances."""

    def __init__(self, scene: dict, curve: str):
        self.scene = SCENES[scene["name"]](len(scene["qpos"]))
        self.contact, self.solver = CURVES[curve]()
        self.version = f"jdyn {jdyn.__version__}, jax {jax.__version__}"
        self.programs: dict = {}

    def prepare(self, lanes: int) -> float:
        """Compile for a number of lanes; the seconds that took."""
        if lanes in self.programs:
            return 0.0
        scene, began = self.scene, time.perf_counter()
        q0, v0 = jnp.asarray(scene.q0[:lanes]), jnp.asarray(scene.v0[:lanes])

        def ends(tolerance, t1):
            return jdyn.simulate_batch(
                scene.model,
                q0,
                v0,
                t1,
                controller=scene.controller,
                contact=self.contact,
                reduce=_end,
                solver=self.solver,
                stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance * ABSOLUTE),
                saveat=diffrax.SaveAt(t1=True),
                max_steps=10**6,
            )

        self.programs[lanes] = jax.jit(ends).lower(0.0, 0.0).compile()
        return time.perf_counter() - began

    def run(self, tolerance: float, t1: float, lanes: int) -> np.ndarray:
        return np.asarray(self.programs[lanes](tolerance, t1))


def _end(trajectory):
    return jnp.where(trajectory.result == jdyn.Result.success, trajectory.q[-1], jnp.nan)
