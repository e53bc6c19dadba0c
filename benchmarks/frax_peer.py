"""The process of diffrax around frax: `python -m benchmarks.frax_peer`, which needs no jdyn.

Questions are lines of JSON on standard input, each answered by one on standard output; see `frax_rollouts.py`, which
asks them. The first describes the scene.
"""

import copy
import json
import os
import sys
import time
import traceback

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import clock, peer_models
from benchmarks.child import in_one_line

SOLVERS = {"Tsit5": diffrax.Tsit5(), "Dopri8": diffrax.Dopri8()}
# What gravity looks like from the links [m/s²], linear first, as its forward_dynamics has it.
LIFT = np.array([0, 0, 9.81, 0, 0, 0])
MAX_STEPS = 10**7
# A lane that flies apart is given up here [s]; diffrax would try ever smaller steps.
LEAST_STEP = 1e-12


class Lanes:
    """A scene's lanes, whose mechanism is frax' and whose joint forces are written here, since it has none.

    Attributes:
        lanes: What is mapped over: starts `q0`, `v0`, gains `kp`, `kd` if there is a controller, and `payload` [kg] if
            there is any; in frax' order of joints.
    """

    def __init__(self, scene: dict):
        self.scene = scene
        self.robot = peer_models.frax_robot(scene["urdf"], scene["floating"])
        # A floating base is three coordinates and a quaternion, with six velocities.
        self.nq, self.nv = (7, 6) if scene["floating"] else (0, 0)
        found, joints = list(self.robot.joint_names[self.nv :]), scene["joints"]
        if sorted(found) != sorted(joints):
            raise ValueError(f"it found {len(found)} joints in a file of {len(joints)}")
        there = np.array([joints.index(name) for name in found], int)
        self.q_there, self.v_there = (np.append(np.arange(n), n + there) for n in (self.nq, self.nv))
        self.joint = {key: np.asarray(scene[key])[self.v_there] for key in ("damping", "friction", "armature")}
        self.friction_speed = np.asarray(scene["friction_speed"])[self.v_there]
        self.lanes = {"q0": self._q(scene["q0"]), "v0": self._v(scene["v0"])}
        if scene["drive"]:
            self.target = self._q(scene["drive"]["target"])
            self.lanes |= {gain: self._v(scene["drive"][gain]) for gain in ("kp", "kd")}
        if scene["payload"]:
            self.lanes["payload"] = jnp.asarray(scene["payload"])
        self.programs = {}

    def _q(self, q):
        return jnp.asarray(q)[..., self.q_there]

    def _v(self, v):
        return jnp.asarray(v)[..., self.v_there]

    def accelerations(self, q, v, lanes):
        """Of states in the scene's order, a row each, of the lanes of these numbers."""
        chosen = jax.tree.map(lambda x: x[np.asarray(lanes)], self.lanes)
        found = jax.jit(jax.vmap(self._acceleration))(self._q(q), self._v(v), chosen)
        return found[:, np.argsort(self.v_there)]

    def end(self, solver, rtol, atol, repeats, seconds):
        """Where the lanes are at the end, and the times of getting there."""
        compiled_s = self._compile(solver)
        program, tolerances = self.programs[solver], (jnp.asarray(rtol), jnp.asarray(atol))
        kept = []

        def call():
            kept[:] = [jax.block_until_ready(program(tolerances, self.lanes))]

        times = clock.measure(call, repeats, seconds)
        q, steps = kept[0]
        if q.dtype != np.float64:
            raise TypeError(f"it computed in {q.dtype}, not in float64")
        q = q[:, np.argsort(self.q_there)].tolist()
        return {"q": q, "steps": float(np.mean(steps)), "times": times, "compile_s": compiled_s}

    def _compile(self, solver) -> float:
        """Seconds; zero if that has been done before."""
        if solver in self.programs:
            return 0.0
        started = time.perf_counter()
        lanes = jax.vmap(lambda tolerances, lane: self._end_of(solver, tolerances, lane), (None, 0))
        rest = (jnp.zeros(()), jnp.zeros(()))
        self.programs[solver] = jax.jit(lanes).lower(rest, self.lanes).compile()
        return time.perf_counter() - started

    def _end_of(self, solver, tolerances, lane):
        def rate(t, state, lane):
            q, v = state
            turning = self.robot.velocity_to_qdot_map(q) @ v if self.scene["floating"] else v
            return turning, self._acceleration(q, v, lane)

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rate),
            SOLVERS[solver],
            0.0,
            self.scene["t1"],
            self.scene["first_step"],
            (lane["q0"], lane["v0"]),
            lane,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.PIDController(*tolerances, dtmin=LEAST_STEP, force_dtmin=False),
            # Nothing is recorded for derivatives that nobody asks for.
            adjoint=diffrax.ForwardMode(),
            max_steps=MAX_STEPS,
            throw=False,
        )
        reached = solution.result == diffrax.RESULTS.successful
        return jnp.where(reached, solution.ys[0][-1], jnp.nan), solution.stats["num_steps"]

    def _acceleration(self, q, v, lane):
        robot, force = self._loaded(lane), self._force(q, v, lane)
        if not self.joint["armature"].any():
            return robot.forward_dynamics(q, v, force, None)
        # Its forward_dynamics line by line, but for rotors, which it does not know. Its public functions of the mass
        # matrix and the other forces would find the links' axes and inertias twice.
        links = robot._spatial_axes_and_inertias(robot.joint_to_world_transforms(q))
        M = robot._crba_from_spatial_data(*links) + np.diag(self.joint["armature"])
        bias = robot._rnea_from_spatial_data(*links, v=v, a=None, gravity_accel=LIFT, F_ext=None)
        return jax.scipy.linalg.solve(M, force - bias, assume_a="pos")

    def _loaded(self, lane):
        if "payload" not in lane:
            return self.robot
        # Its robots have one set of masses, which its functions read as they are traced.
        robot, last = copy.copy(self.robot), self.robot.joint_names.index(self.scene["joints"][-1])
        robot.link_masses = jnp.asarray(robot.link_masses).at[last].add(lane["payload"])
        return robot

    def _force(self, q, v, lane):
        tau = jnp.zeros_like(v)
        if self.joint["damping"].any():
            tau -= self.joint["damping"] * v
        if self.joint["friction"].any():
            speed = np.where(self.joint["friction"] > 0, self.friction_speed, 1)
            tau -= self.joint["friction"] * jnp.tanh(v / speed)
        if self.scene["drive"]:
            # A base that floats has no gains.
            tau += lane["kp"] * (self.target - q)[self.nq - self.nv :] - lane["kd"] * v
            if self.scene["drive"]["compensated"]:
                # By a controller that does not know of payloads.
                tau += self.robot.gravity_vector(q)
        return tau


def _answer(lanes: Lanes, question: dict) -> dict:
    if "solver" in question:
        return lanes.end(**question)
    return {"a": lanes.accelerations(**question).tolist()}


def main():
    # What libraries print is not ours.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    lanes = None
    for line in sys.stdin:
        try:
            if lanes is None:
                lanes, answer = Lanes(json.loads(line)), {}
            else:
                answer = _answer(lanes, json.loads(line))
        except Exception as error:
            traceback.print_exc()
            answer = {"error": in_one_line(error)}
        print(json.dumps(answer), file=lines)


if __name__ == "__main__":
    main()
