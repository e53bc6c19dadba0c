"""Pinocchio's results for every function, in jdyn's conventions."""

from typing import Any

import numpy as np

from jdyn.interop.pinocchio import PinocchioMap
from jdyn.interop.values import DERIVATIVES, JACOBIAN_FRAMES, State, Values, deepest_body, dynamics_alone
from jdyn.model import Ball, Continuous, Free, Helical, Model, Prismatic, Revolute

# Joints whose subspace is constant in the child frame, both in jdyn's and in Pinocchio's coordinates. For others,
# Pinocchio's analytical derivatives and Coriolis matrix are wrong (universal) or in other coordinates (planar).
_CONSTANT_SUBSPACE = (Revolute, Continuous, Prismatic, Helical, Ball, Free)


class PinocchioValues:
    """Evaluates jdyn's functions with Pinocchio, without damping, friction and springs, which it does not have.

    A model with mimic joints is compared with Pinocchio's model of the uncoupled robot at `q_full = G q + g0`.

    Args:
        pin: The module `pinocchio`.
        model: jdyn's model.
        pin_model: Pinocchio's model of the same robot, without mimic joints.

    Attributes:
        model: jdyn's model without damping, friction and springs.
        bodies: Mask of jdyn's bodies that Pinocchio has as well: all.
    """

    def __init__(self, pin: Any, model: Model, pin_model: Any):
        self.pin, self.model, self.pin_model = pin, dynamics_alone(model), pin_model
        self.map = PinocchioMap(model, pin_model)
        self.bodies = np.ones(model.nb, bool)
        self.data = pin_model.createData()
        kinds = model.topology.kinds
        self._constant_subspaces = all(kind in _CONSTANT_SUBSPACE for kind in kinds)
        self._coupled = bool(model.topology.mimics)
        self._columns = [10 * (i - 1) + k for i in self.map.joint_ids for k in range(10)]

    def _coordinates(self, s: State):
        q, v = self.map.q_to_peer(s.q), self.map.v_to_peer(s.q, s.v)
        forces = [self.pin.Force(row) for row in self.map.f_ext_to_peer(s.q, s.f_ext)]
        return q, v, forces, self.map.velocity_map(s.q)

    def _inverse_dynamics(self, s: State, a, f_ext):
        peer = self.map.a_to_peer(s.q, s.v, a)
        q, v, forces, T = self._coordinates(s)
        return T.T @ self.pin.rnea(self.pin_model, self.data, q, v, peer, *([forces] if f_ext else []))

    def __call__(self, s: State) -> Values:
        """Every function at one state."""
        pin, model, data = self.pin, self.pin_model, self.data
        q, v, _, T = self._coordinates(s)
        ids = self.map.joint_ids
        pin.forwardKinematics(model, data, q, v)
        poses = [data.oMi[i].copy() for i in ids]
        velocities = [data.v[i].copy() for i in ids]
        center = pin.centerOfMass(model, data, q).copy()
        h = pin.computeCentroidalMomentum(model, data, q, v).copy()
        M = self._mass_matrix(q, T)
        acceleration = self.acceleration(s)
        C = T.T @ pin.computeCoriolisMatrix(model, data, q, v) @ T
        Cv = self._inverse_dynamics(s, 0 * s.v, False) - T.T @ pin.computeGeneralizedGravity(model, data, q)
        Y = pin.computeJointTorqueRegressor(model, data, q, v, self.map.a_to_peer(s.q, s.v, s.a))
        return {
            "forward_kinematics": (
                np.array([X.rotation for X in poses]),
                np.array([X.translation for X in poses]),
            ),
            "body_velocities": (np.array([m.angular for m in velocities]), np.array([m.linear for m in velocities])),
            **{f"jacobian, {frame}": self._jacobian(s, q, frame) for frame in JACOBIAN_FRAMES},
            "inverse_dynamics": (self._inverse_dynamics(s, s.a, True),),
            "forward_dynamics, ABA": (acceleration,),
            "forward_dynamics, CRBA": (acceleration,),
            "mass_matrix": (M,),
            "bias_forces": (self._inverse_dynamics(s, 0 * s.v, True),),
            "gravity_forces": (T.T @ pin.computeGeneralizedGravity(model, data, q),),
            **({"coriolis_matrix": (C,)} if self._constant_subspaces else {}),
            "coriolis_matrix @ v": (Cv,),
            # computeKineticEnergy leaves out the rotor inertia of some kinds of joints.
            "kinetic_energy": (0.5 * s.v @ M @ s.v,),
            "potential_energy": (np.array(pin.computePotentialEnergy(model, data, q)),),
            "center_of_mass": (center,),
            "momentum": (h.angular, h.linear),
            "regressor": (T.T @ Y.reshape(self.map.nv, -1)[:, self._columns],),
        }

    def acceleration(self, s: State):
        """Forward dynamics at one state."""
        q, v, forces, T = self._coordinates(s)
        if self._coupled:
            return np.linalg.solve(self._mass_matrix(q, T), s.tau - self._inverse_dynamics(s, 0 * s.v, True))
        a = self.pin.aba(self.pin_model, self.data, q, v, self.map.tau_to_peer(s.q, s.tau), forces)
        return self.map.a_from_peer(s.q, s.v, a)

    def _mass_matrix(self, q, T):
        return T.T @ _symmetric(self.pin.crba(self.pin_model, self.data, q)) @ T

    def _jacobian(self, s: State, q, frame):
        reference = {
            "body": self.pin.LOCAL, "world": self.pin.WORLD, "aligned": self.pin.LOCAL_WORLD_ALIGNED,
        }[frame]  # fmt: skip
        self.pin.computeJointJacobians(self.pin_model, self.data, q)
        J = self.pin.getJointJacobian(
            self.pin_model, self.data, self.map.joint_ids[deepest_body(self.model)], reference
        )
        # Pinocchio returns a vector where there is one column, and where there is one row.
        J = self.map.jacobian_from_peer(s.q, J.reshape(6, -1))
        return J[:3], J[3:]

    def derivatives(self, s: State) -> Values:
        """Derivatives of forward dynamics at one state; empty if Pinocchio's are wrong or not comparable."""
        if not self._constant_subspaces:
            return {}
        q, v, forces, T = self._coordinates(s)
        if self._coupled:
            return self._coupled_derivatives(s)
        tau = self.map.tau_to_peer(s.q, s.tau)
        D = self.pin.computeABADerivatives(self.pin_model, self.data, q, v, tau, forces)
        T_inverse = self.map.velocity_map_inverse(s.q)
        dq, dv, dtau = (T_inverse @ d @ T for d in (D[0], D[1], _symmetric(D[2])))
        return {name: (d,) for name, d in zip(DERIVATIVES, (dq, dv, dtau), strict=True)}

    def _coupled_derivatives(self, s: State) -> Values:
        """The same from derivatives of inverse dynamics: M da = dτ - d(ID)."""
        q, v, forces, T = self._coordinates(s)
        M = self._mass_matrix(q, T)
        a = self.map.a_to_peer(s.q, s.v, self.acceleration(s))
        dq, dv, _ = self.pin.computeRNEADerivatives(self.pin_model, self.data, q, v, a, forces)
        residuals = (-T.T @ dq @ T, -T.T @ dv @ T, np.eye(self.model.nv))
        return {name: (np.linalg.solve(M, r),) for name, r in zip(DERIVATIVES, residuals, strict=True)}


def _symmetric(upper):
    """The symmetric matrix with this upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T
