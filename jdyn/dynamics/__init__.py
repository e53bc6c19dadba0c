"""Kinematics and dynamics of one configuration; `jax.vmap` makes batches."""

from jdyn.dynamics.coriolis import coriolis_matrix as coriolis_matrix
from jdyn.dynamics.energy import center_of_mass as center_of_mass
from jdyn.dynamics.energy import kinetic_energy as kinetic_energy
from jdyn.dynamics.energy import momentum as momentum
from jdyn.dynamics.energy import potential_energy as potential_energy
from jdyn.dynamics.forward import forward_dynamics as forward_dynamics
from jdyn.dynamics.inverse import bias_forces as bias_forces
from jdyn.dynamics.inverse import gravity_forces as gravity_forces
from jdyn.dynamics.inverse import inverse_dynamics as inverse_dynamics
from jdyn.dynamics.inverse import mass_product as mass_product
from jdyn.dynamics.inverse import passive_forces as passive_forces
from jdyn.dynamics.kinematics import body_velocities as body_velocities
from jdyn.dynamics.kinematics import forward_kinematics as forward_kinematics
from jdyn.dynamics.kinematics import frame_pose as frame_pose
from jdyn.dynamics.kinematics import jacobian as jacobian
from jdyn.dynamics.mass_matrix import mass_matrix as mass_matrix
from jdyn.dynamics.methods import ABA as ABA
from jdyn.dynamics.methods import CRBA as CRBA
from jdyn.dynamics.methods import Method as Method
from jdyn.dynamics.methods import ModifiedABA as ModifiedABA
from jdyn.dynamics.regressor import regressor as regressor
