"""jdyn: differentiable, batchable multibody dynamics on JAX.

Conventions, never varied:

- SI units and radians, right-handed frames. Gravity is a leaf of the model, (0, 0, -9.81) m/s² by default.
- Spatial vectors are `(6,)` arrays, angular part first: motion [ω; v], force [n; f]. Body quantities are in the
  body's own frame unless the name says otherwise.
- Configuration `q` (nq,), velocity `v` (nv,), acceleration `a` (nv,), generalized force `tau` (nv,). `v` is a
  tangent vector, not dq/dt, for ball and free joints.
- Quaternions are wxyz and of unit length. A free joint's `q` is `[x y z, w x y z]`, its `v` the spatial velocity
  [ω; v] in the body's frame. Continuous joints have one angle.
- External forces `f_ext` (nb, 6) act on each body at its frame's origin, in the body's frame.
- Bodies are numbered parents first; the world is -1 and is not a body. Links on fixed joints are lumped into the
  body that carries them and live on as frames.
- `X_pb` is the pose of b in p and takes b-coordinates to p: `X_wb = X_wp @ X_pb`.
- Functions take one configuration; `jax.vmap` makes batches, over states, models, or both.
"""

from jdyn.control import LQR as LQR
from jdyn.control import PD as PD
from jdyn.control import PID as PID
from jdyn.control import ComputedTorque as ComputedTorque
from jdyn.control import Constant as Constant
from jdyn.control import Controller as Controller
from jdyn.control import DynamicController as DynamicController
from jdyn.control import FeedforwardPD as FeedforwardPD
from jdyn.control import FirstOrderLag as FirstOrderLag
from jdyn.control import GravityCompensation as GravityCompensation
from jdyn.control import OperationalSpace as OperationalSpace
from jdyn.control import Quintic as Quintic
from jdyn.control import Reference as Reference
from jdyn.control import Saturated as Saturated
from jdyn.control import Spline as Spline
from jdyn.control import Tracking as Tracking
from jdyn.control import ZeroOrderHold as ZeroOrderHold
from jdyn.dynamics import ABA as ABA
from jdyn.dynamics import CRBA as CRBA
from jdyn.dynamics import ArrayABA as ArrayABA
from jdyn.dynamics import BlockElimination as BlockElimination
from jdyn.dynamics import ByBatch as ByBatch
from jdyn.dynamics import ConjugateGradient as ConjugateGradient
from jdyn.dynamics import Couplings as Couplings
from jdyn.dynamics import Diagnosis as Diagnosis
from jdyn.dynamics import GaussDP as GaussDP
from jdyn.dynamics import GibbsAppell as GibbsAppell
from jdyn.dynamics import LeastConstraint as LeastConstraint
from jdyn.dynamics import MatrixABA as MatrixABA
from jdyn.dynamics import Method as Method
from jdyn.dynamics import ModifiedABA as ModifiedABA
from jdyn.dynamics import Motor as Motor
from jdyn.dynamics import OrthogonalComplement as OrthogonalComplement
from jdyn.dynamics import ParallelABA as ParallelABA
from jdyn.dynamics import Program as Program
from jdyn.dynamics import WalkerOrin as WalkerOrin
from jdyn.dynamics import acceleration_couplings as acceleration_couplings
from jdyn.dynamics import bias_forces as bias_forces
from jdyn.dynamics import body_velocities as body_velocities
from jdyn.dynamics import center_of_mass as center_of_mass
from jdyn.dynamics import constrained_accelerations as constrained_accelerations
from jdyn.dynamics import coriolis_matrix as coriolis_matrix
from jdyn.dynamics import diagnose as diagnose
from jdyn.dynamics import forward_dynamics as forward_dynamics
from jdyn.dynamics import forward_dynamics_derivatives as forward_dynamics_derivatives
from jdyn.dynamics import forward_kinematics as forward_kinematics
from jdyn.dynamics import frame_pose as frame_pose
from jdyn.dynamics import gravity_forces as gravity_forces
from jdyn.dynamics import inverse_dynamics as inverse_dynamics
from jdyn.dynamics import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from jdyn.dynamics import jacobian as jacobian
from jdyn.dynamics import joint_forces as joint_forces
from jdyn.dynamics import kinetic_energy as kinetic_energy
from jdyn.dynamics import linearize as linearize
from jdyn.dynamics import mass_matrix as mass_matrix
from jdyn.dynamics import momentum as momentum
from jdyn.dynamics import potential_energy as potential_energy
from jdyn.dynamics import regressor as regressor
from jdyn.dynamics import warm_up as warm_up
from jdyn.interop import verify as verify
from jdyn.io import save_urdf as save_urdf
from jdyn.model import Ball as Ball
from jdyn.model import Builder as Builder
from jdyn.model import Continuous as Continuous
from jdyn.model import Fixed as Fixed
from jdyn.model import Free as Free
from jdyn.model import Helical as Helical
from jdyn.model import Joint as Joint
from jdyn.model import Mimic as Mimic
from jdyn.model import Model as Model
from jdyn.model import ModelError as ModelError
from jdyn.model import ModelWarning as ModelWarning
from jdyn.model import Planar as Planar
from jdyn.model import Prismatic as Prismatic
from jdyn.model import Revolute as Revolute
from jdyn.model import Universal as Universal
from jdyn.model import pose as pose
from jdyn.model import random_tree as random_tree
from jdyn.robots import ROBOTS as ROBOTS
from jdyn.robots import load as load
from jdyn.simulation import AdamsBashforthMoulton as AdamsBashforthMoulton
from jdyn.simulation import BaderDeuflhard as BaderDeuflhard
from jdyn.simulation import BulirschStoer as BulirschStoer
from jdyn.simulation import CashKarp as CashKarp
from jdyn.simulation import CompliantLimits as CompliantLimits
from jdyn.simulation import EnergyError as EnergyError
from jdyn.simulation import Event as Event
from jdyn.simulation import HalveOrGrow as HalveOrGrow
from jdyn.simulation import ImpactLimits as ImpactLimits
from jdyn.simulation import ImplicitMidpoint as ImplicitMidpoint
from jdyn.simulation import OnManifold as OnManifold
from jdyn.simulation import Result as Result
from jdyn.simulation import Rodas5P as Rodas5P
from jdyn.simulation import SemiImplicitEuler as SemiImplicitEuler
from jdyn.simulation import SimulationError as SimulationError
from jdyn.simulation import State as State
from jdyn.simulation import StormerVerlet as StormerVerlet
from jdyn.simulation import Trajectory as Trajectory
from jdyn.simulation import simulate as simulate
from jdyn.simulation import simulate_batch as simulate_batch
from jdyn.spatial import SpatialInertia as SpatialInertia
from jdyn.spatial import Transform as Transform
from jdyn.stiffness import Statistics as Statistics
from jdyn.stiffness import statistics as statistics
from jdyn.sweep import Grid as Grid
from jdyn.sweep import Samples as Samples
from jdyn.sweep import sweep as sweep
from jdyn.tuning import GradientHealth as GradientHealth
from jdyn.tuning import TuneResult as TuneResult
from jdyn.tuning import TuneWarning as TuneWarning
from jdyn.tuning import gradient_health as gradient_health
from jdyn.tuning import tune as tune

__version__ = "0.1.0"
