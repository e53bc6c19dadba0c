"""Scenes in the hands of MuJoCo, and of SciPy's integrators around Pinocchio."""

import contextlib
import pathlib
import tempfile
from typing import NamedTuple

import mujoco
import numpy as np
import pinocchio as pin
from mujoco import rollout
from scipy.integrate import solve_ivp

from benchmarks import peer_models, robots
from benchmarks.scenes import Drive, Scene
from jdyn.interop import MujocoMap, PinocchioMap

MUJOCO = {
    "MuJoCo Euler": mujoco.mjtIntegrator.mjINT_EULER,
    "MuJoCo implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "MuJoCo implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT,
    "MuJoCo RK4": mujoco.mjtIntegrator.mjINT_RK4,
}
SCIPY = {"SciPy DOP853": "DOP853", "SciPy LSODA": "LSODA", "SciPy Radau": "Radau"}
LEAST_MASS = 1e-12
# Steps after which a rollout goes on from where it was, since it keeps every state.
CHUNK = 500


class Unavailable(Exception):
    """What a library cannot do: why, in one line."""


@contextlib.contextmanager
def _written(model):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "robot.urdf")
        robots.write_plain(model, path)
        yield path


class Mujoco:
    """A scene's lanes as models of MuJoCo, on one thread.

    Dampers and rotors are those of joints, PD controllers are actuators whose force is affine in position and velocity,
    and gravity is compensated by `gravcomp`.

    Raises:
        Unavailable: if the scene has friction.
    """

    def __init__(self, scene: Scene):
        if scene.has_friction:
            raise Unavailable("its friction is a constraint, not a smooth force")
        self.scene = scene
        with _written(scene.model) as path:
            spec = peer_models.mujoco_spec(str(path), np.asarray(scene.model.gravity), scene.floating)
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET | mujoco.mjtDisableBit.mjDSBL_WARMSTART
        joints = [joint for joint in spec.joints if joint.type != mujoco.mjtJoint.mjJNT_FREE]
        for joint in joints if scene.drive else ():
            _add_actuator(spec, joint)
        for body in list(spec.bodies)[1:]:
            # It takes no body without a mass, such as the first of the PUMA, whose mass on its axis would do nothing.
            body.mass = max(body.mass, LEAST_MASS)
            body.gravcomp = bool(scene.drive and scene.drive.compensated)
        self.models = [self._of_lane(spec, lane) for lane in range(scene.lanes if scene.varies else 1)]
        self.map = MujocoMap(scene.model, self.models[0])
        size = mujoco.mj_stateSize(self.models[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self.start = np.zeros((scene.lanes, size))
        q, v = self.map.q_to_peer(scene.q0), self.map.v_to_peer(scene.q0, scene.v0)
        self.start[:, 1 : 1 + self.map.nq + self.map.nv] = np.concatenate([q, v], axis=1)
        self.data = mujoco.MjData(self.models[0])

    def _of_lane(self, spec, lane):
        scene = self.scene
        if scene.payload is not None:
            last = spec.body(scene.model.body_names[-1])
            mass = float(scene.model.inertias.mass[-1])
            last.mass = mass + scene.payload[lane]
            # The controller does not know of the payload.
            last.gravcomp = mass / last.mass if scene.drive and scene.drive.compensated else 0
        model = spec.compile()
        mapped = MujocoMap(scene.model, model)
        model.dof_damping[:] = mapped.per_velocity(scene.model.damping)
        model.dof_armature[:] = mapped.per_velocity(scene.model.armature)
        if scene.drive:
            kp, kd = (mapped.per_velocity(gain[lane])[-model.nu :] for gain in (scene.drive.kp, scene.drive.kd))
            target = mapped.q_to_peer(scene.drive.target)[-model.nu :]
            model.actuator_biasprm[:, :3] = np.stack([kp * target, -kp, -kd], axis=1)
        return model

    def end(self, integrator, steps: int, lanes: int | None = None) -> np.ndarray:
        """States at the end, a row a lane, of the first lanes or all."""
        models = self.models[:lanes]
        for model in models:
            model.opt.integrator, model.opt.timestep = integrator, self.scene.t1 / steps
        state, left = self.start[:lanes], steps
        with rollout.Rollout(nthread=0) as roll:
            while left:
                count = min(left, CHUNK)
                states = np.asarray(roll.rollout(models, self.data, state, nstep=count)[0])
                state, left = states[:, -1].copy(), left - count
        return state

    def configurations(self, state) -> np.ndarray:
        """Of states at the end, in jdyn's order; NaN where MuJoCo stopped early."""
        q = self.map.q_from_peer(state[:, 1 : 1 + self.map.nq])
        reached = np.isclose(state[:, 0], self.scene.t1, rtol=1e-9)
        return np.where(reached[:, None], q, np.nan)


def _add_actuator(spec, joint):
    spec.add_actuator(
        name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED, biastype=mujoco.mjtBias.mjBIAS_AFFINE,
    )  # fmt: skip


class Solution(NamedTuple):
    """Configurations at the end, a row a lane, and how often forward dynamics was evaluated, per lane."""

    q: np.ndarray
    evaluations: float


class Pinocchio:
    """A scene's first lanes as differential equations around Pinocchio's articulated-body algorithm."""

    def __init__(self, scene: Scene, lanes: int):
        self.scene, self.lanes = scene, range(min(lanes, scene.lanes))
        root = [pin.JointModelFreeFlyer()] if scene.floating else []
        self.models = []
        for model in [scene.model, *(scene.loaded(lane) for lane in self.lanes)]:
            with _written(model) as path:
                built = pin.buildModelFromUrdf(str(path), *root)
            built.gravity.linear = np.asarray(scene.model.gravity)
            built.armature = PinocchioMap(scene.model, built).per_velocity(scene.model.armature)
            self.models.append(built)
        self.map = PinocchioMap(scene.model, self.models[0])

    def end(self, method, rtol, atol) -> Solution:
        found = [self._end_of(lane, method, rtol, atol) for lane in self.lanes]
        return Solution(self.map.q_from_peer([q for q, _ in found]), float(np.mean([count for _, count in found])))

    def acceleration(self, lane: int, q, v) -> np.ndarray:
        """Of a state of a lane, in jdyn's order."""
        q_peer, v_peer = self.map.q_to_peer(q), self.map.v_to_peer(q, v)
        return self.map.a_from_peer(q, v, self._rate(lane)(q_peer, v_peer)[self.map.nq :])

    def _end_of(self, lane, method, rtol, atol):
        scene, nq = self.scene, self.map.nq
        q0 = self.map.q_to_peer(scene.q0[lane])
        start = np.concatenate([q0, self.map.v_to_peer(scene.q0[lane], scene.v0[lane])])
        rate, count = self._rate(lane), 0

        def counted(t, y):
            nonlocal count
            count += 1
            return rate(y[:nq], y[nq:])

        solution = solve_ivp(counted, (0, scene.t1), start, method, t_eval=[scene.t1], rtol=rtol, atol=atol)
        if not solution.success:
            raise FloatingPointError(solution.message)
        return solution.y[:nq, -1], count

    def _rate(self, lane):
        """Of a state (q, v), as Pinocchio has them."""
        scene, model = self.scene, self.models[1 + lane]
        data, force = model.createData(), self._force(scene.drive, lane)
        mechanism = scene.model
        names = ("damping", "friction", "friction_speed")
        damping, friction, speed = (self.map.per_velocity(getattr(mechanism, name)) for name in names)
        speed = np.where(friction > 0, speed, 1)
        base = _free_rate if scene.floating else lambda q, v: v

        def rate(q, v):
            tau = force(q, v) - damping * v
            if scene.has_friction:
                tau -= friction * np.tanh(v / speed)
            return np.concatenate([base(q, v), pin.aba(model, data, q, v, tau)])

        return rate

    def _force(self, drive: Drive | None, lane):
        model = self.models[0]
        if drive is None:
            return lambda q, v: np.zeros(model.nv)
        kp, kd, data = self.map.per_velocity(drive.kp[lane]), self.map.per_velocity(drive.kd[lane]), model.createData()
        target, start = self.map.q_to_peer(drive.target), model.nq - model.nv
        compensated = drive.compensated

        def force(q, v):
            # A base that floats has no gains.
            tau = kp * (target - q)[start:] - kd * v
            return tau + pin.computeGeneralizedGravity(model, data, q) if compensated else tau

        return force


def _free_rate(q, v):
    """Of a configuration whose first joint is a free one: a position, and a quaternion with its real part last."""
    quaternion, spin = pin.Quaternion(q[3:7]), pin.Quaternion(0.0, *v[3:6])
    turned = 0.5 * (quaternion * spin).coeffs()
    return np.concatenate([quaternion.toRotationMatrix() @ v[:3], turned, v[6:]])
