"""Kinematics and dynamics of one configuration; `jax.vmap` makes batches."""

from jdyn.dynamics.at_rest import gravity_forces as gravity_forces
from jdyn.dynamics.at_rest import mass_product as mass_product
from jdyn.dynamics.body_kinematics import Coordinates as Coordinates
from jdyn.dynamics.body_kinematics import Kinematics as Kinematics
from jdyn.dynamics.centroidal import center_of_mass as center_of_mass
from jdyn.dynamics.centroidal import com_acceleration as com_acceleration
from jdyn.dynamics.centroidal import com_jacobian as com_jacobian
from jdyn.dynamics.centroidal import com_velocity as com_velocity
from jdyn.dynamics.centroidal import momentum as momentum
from jdyn.dynamics.centroidal import momentum_matrix as momentum_matrix
from jdyn.dynamics.centroidal import momentum_matrix_rate as momentum_matrix_rate
from jdyn.dynamics.centroidal import momentum_rate as momentum_rate
from jdyn.dynamics.coriolis import coriolis_matrix as coriolis_matrix
from jdyn.dynamics.derivatives import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from jdyn.dynamics.diagnosis import Diagnosis as Diagnosis
from jdyn.dynamics.diagnosis import diagnose as diagnose
from jdyn.dynamics.energy import kinetic_energy as kinetic_energy
from jdyn.dynamics.energy import potential_energy as potential_energy
from jdyn.dynamics.force_slopes import differentiated_jacobians as differentiated_jacobians
from jdyn.dynamics.force_slopes import differentiated_slopes as differentiated_slopes
from jdyn.dynamics.forward import forward_dynamics as forward_dynamics
from jdyn.dynamics.forward import resolved as resolved
from jdyn.dynamics.forward_derivatives import forward_dynamics_derivatives as forward_dynamics_derivatives
from jdyn.dynamics.frame_motion import frame_acceleration as frame_acceleration
from jdyn.dynamics.frame_motion import frame_velocity as frame_velocity
from jdyn.dynamics.frame_motion import jacobian as jacobian
from jdyn.dynamics.frame_motion import jacobian_rate as jacobian_rate
from jdyn.dynamics.inverse import bias_forces as bias_forces
from jdyn.dynamics.inverse import inverse_dynamics as inverse_dynamics
from jdyn.dynamics.inverse import joint_forces as joint_forces
from jdyn.dynamics.inverse_inertia import delassus_matrix as delassus_matrix
from jdyn.dynamics.inverse_inertia import impulse_response as impulse_response
from jdyn.dynamics.inverse_inertia import mass_matrix_inverse as mass_matrix_inverse
from jdyn.dynamics.inverse_inertia import operational_space_inertia as operational_space_inertia
from jdyn.dynamics.kinematics import body_velocities as body_velocities
from jdyn.dynamics.kinematics import forward_kinematics as forward_kinematics
from jdyn.dynamics.kinematics import frame_pose as frame_pose
from jdyn.dynamics.linearization import linearize as linearize
from jdyn.dynamics.mass_matrix import mass_matrix as mass_matrix
from jdyn.dynamics.methods import ABA as ABA
from jdyn.dynamics.methods import CRBA as CRBA
from jdyn.dynamics.methods import ArrayABA as ArrayABA
from jdyn.dynamics.methods import ByBatch as ByBatch
from jdyn.dynamics.methods import Method as Method
from jdyn.dynamics.methods import ParallelABA as ParallelABA
from jdyn.dynamics.passive import passive_forces as passive_forces
from jdyn.dynamics.regressor import regressor as regressor
from jdyn.dynamics.rerooted import rerooted_state as rerooted_state
from jdyn.dynamics.second_derivatives import (
    inverse_dynamics_second_derivatives as inverse_dynamics_second_derivatives,
)
