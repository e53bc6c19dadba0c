"""MuJoCo's results for every function, in jdyn's conventions."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from jdyn.interop.mujoco import MujocoMap
from jdyn.interop.values import State, Values, deepest_body
from jdyn.model import Model


class MujocoValues:
    """Evaluates jdyn's functions with MuJoCo: smooth dynamics only, without constraints, actuators and fluid.

    Damping, springs and rotor inertia are compared; friction is not, since it is a constraint in MuJoCo. Bodies that
    never move do not contribute to energy, momentum or centre of mass.

    Args:
        mujoco: The module.
        model: jdyn's model.
        mj_model: MuJoCo's model of the same robot. It is modified: features that are not compared are switched off.

    Attributes:
        model: jdyn's model without friction.
        bodies: Mask of jdyn's bodies that MuJoCo has as well.
    """

    def __init__(self, mujoco: Any, model: Model, mj_model: Any):
        off = mujoco.mjtDisableBit
        mj_model.opt.disableflags |= int(off.mjDSBL_CONSTRAINT) | int(off.mjDSBL_ACTUATION)
        mj_model.opt.density = mj_model.opt.viscosity = 0
        self.mujoco, self.mj_model = mujoco, mj_model
        self.model = dataclasses.replace(model, friction=jnp.zeros_like(model.friction))
        self.map = MujocoMap(model, mj_model)
        self.bodies = self.map.takes_force
        self._moving = np.flatnonzero(mj_model.body_weldid)

    def __call__(self, s: State) -> Values:
        """Every function at one state."""
        T, drift = self.map.velocity_map(s.q), self.map.drift(s.q, s.v)
        rest, d = self._data(s, moving=False), self._data(s, moving=True)
        full_M = self._mass_matrix(d)
        M = T.T @ full_M @ T
        bias = T.T @ (d.qfrc_bias - d.qfrc_passive - self._external(d) + full_M @ drift)
        a = np.linalg.solve(M, s.tau - bias) if self.model.topology.mimics else self.map.a_from_peer(s.q, s.v, d.qacc)
        J = self._jacobians(s, d)
        poses = [self._pose(d, b) for b in np.flatnonzero(self.bodies)]
        velocities = np.array([self._velocity(d, b) for b in np.flatnonzero(self.bodies)])
        center, momentum = self._center_of_mass(d), self._momentum(d)
        return {
            "forward_kinematics": (np.array([R for R, _ in poses]), np.array([p for _, p in poses])),
            "body_velocities": (velocities[:, :3], velocities[:, 3:]),
            **{f"jacobian, {frame}": (x[:3], x[3:]) for frame, x in J.items()},
            "inverse_dynamics": (M @ s.a + bias,),
            "forward_dynamics, ABA": (a,),
            "forward_dynamics, CRBA": (a,),
            "mass_matrix": (M,),
            "bias_forces": (bias,),
            "gravity_forces": (T.T @ rest.qfrc_bias,),
            "coriolis_matrix @ v": (T.T @ (d.qfrc_bias - rest.qfrc_bias + full_M @ drift),),
            "kinetic_energy": (np.array(0.5 * s.v @ M @ s.v),),
            "potential_energy": (np.array(self._potential_energy(d)),),
            "center_of_mass": (center,),
            "momentum": (momentum[:3], momentum[3:]),
        }

    def derivatives(self, s: State) -> Values:
        """Empty, since MuJoCo's derivatives are finite differences."""
        return {}

    def _data(self, s: State, moving: bool):
        """MuJoCo's results at a state; if not `moving`, without velocity and forces."""
        d = self.mujoco.MjData(self.mj_model)
        d.qpos[:] = self.map.q_to_peer(s.q)
        if moving:
            d.qvel[:] = self.map.v_to_peer(s.q, s.v)
            d.qfrc_applied[:] = self.map.tau_to_peer(s.q, s.tau)
            d.xfrc_applied[:] = self.map.f_ext_to_peer(s.q, s.f_ext * self.bodies[:, None])
        self.mujoco.mj_forward(self.mj_model, d)
        return d

    def _mass_matrix(self, d):
        M = np.zeros((self.map.nv, self.map.nv))
        for row, unit in zip(M, np.eye(self.map.nv), strict=True):
            self.mujoco.mj_mulM(self.mj_model, d, row, unit)
        return M

    def _external(self, d):
        """Generalized forces of `xfrc_applied`."""
        total = np.zeros(self.map.nv)
        for body, wrench in enumerate(d.xfrc_applied):
            self.mujoco.mj_applyFT(self.mj_model, d, wrench[:3], wrench[3:], d.xipos[body], body, total)
        return total

    def _pose(self, d, body):
        """World pose of one of jdyn's bodies."""
        (R, p), peer = self.map.body_pose(body), self.map.body_ids[body]
        rotation = d.xmat[peer].reshape(3, 3) @ R.T
        return rotation, d.xpos[peer] - rotation @ p

    def _velocity(self, d, body):
        """Velocity [ω; v] of one of jdyn's bodies, in its frame and at its origin."""
        (R, p), m = self.map.body_pose(body), np.zeros(6)
        kind = self.mujoco.mjtObj.mjOBJ_XBODY
        self.mujoco.mj_objectVelocity(self.mj_model, d, kind, self.map.body_ids[body], m, 1)
        omega = R @ m[:3]
        return np.concatenate([omega, R @ m[3:] - np.cross(omega, p)])

    def _jacobians(self, s: State, d):
        # The deepest body is a leaf, so MuJoCo has it, unlike bodies between two joints of one MuJoCo body.
        body, J = deepest_body(self.model), np.zeros((6, self.map.nv))
        R, p = self._pose(d, body)
        self.mujoco.mj_jac(self.mj_model, d, J[:3], J[3:], p, self.map.body_ids[body])
        aligned = self.map.jacobian_from_peer(s.q, J)
        angular, linear = aligned[:3], aligned[3:]
        return {
            "body": np.concatenate([R.T @ angular, R.T @ linear]),
            "world": np.concatenate([angular, linear + np.cross(p, angular, axisb=0, axisc=0)]),
            "aligned": aligned,
        }

    def _center_of_mass(self, d):
        masses = self.mj_model.body_mass[self._moving]
        return masses @ d.xipos[self._moving] / np.sum(masses)

    def _momentum(self, d):
        """Momentum [angular; linear] about the centre of mass."""
        m, center, total = self.mj_model, self._center_of_mass(d), np.zeros(6)
        for body in self._moving:
            J = np.zeros((6, self.map.nv))
            self.mujoco.mj_jacBodyCom(m, d, J[:3], J[3:], body)
            R = d.ximat[body].reshape(3, 3)
            linear = m.body_mass[body] * (J[:3] @ d.qvel)
            spin = R @ (m.body_inertia[body] * (R.T @ (J[3:] @ d.qvel)))
            total += np.concatenate([spin + np.cross(d.xipos[body] - center, linear), linear])
        return total

    def _potential_energy(self, d):
        m = self.mj_model
        self.mujoco.mj_energyPos(m, d)
        still = np.flatnonzero(m.body_weldid == 0)
        return d.energy[0] + m.body_mass[still] @ (d.xipos[still] @ m.opt.gravity)
