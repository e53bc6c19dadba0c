"""Integration of the equations of motion in time."""

from jdyn.simulation.batch import simulate_batch as simulate_batch
from jdyn.simulation.energy_control import EnergyError as EnergyError
from jdyn.simulation.energy_control import HalveOrGrow as HalveOrGrow
from jdyn.simulation.events import Event as Event
from jdyn.simulation.joint_limits import CompliantLimits as CompliantLimits
from jdyn.simulation.joint_limits import ImpactLimits as ImpactLimits
from jdyn.simulation.manifold import OnManifold as OnManifold
from jdyn.simulation.result import Result as Result
from jdyn.simulation.result import SimulationError as SimulationError
from jdyn.simulation.result import result_meanings as result_meanings
from jdyn.simulation.result import succeeded as succeeded
from jdyn.simulation.simulate import simulate as simulate
from jdyn.simulation.solvers import AdamsBashforthMoulton as AdamsBashforthMoulton
from jdyn.simulation.solvers import BaderDeuflhard as BaderDeuflhard
from jdyn.simulation.solvers import BulirschStoer as BulirschStoer
from jdyn.simulation.solvers import CashKarp as CashKarp
from jdyn.simulation.solvers import ImplicitMidpoint as ImplicitMidpoint
from jdyn.simulation.solvers import Rodas5P as Rodas5P
from jdyn.simulation.solvers import SemiImplicitEuler as SemiImplicitEuler
from jdyn.simulation.solvers import StormerVerlet as StormerVerlet
from jdyn.simulation.trajectory import Events as Events
from jdyn.simulation.trajectory import Trajectory as Trajectory
from jdyn.simulation.vector_field import State as State
