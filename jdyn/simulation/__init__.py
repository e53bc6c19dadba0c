"""Integration of the equations of motion in time."""

from jdyn.simulation.manifold import OnManifold as OnManifold
from jdyn.simulation.result import Result as Result
from jdyn.simulation.result import SimulationError as SimulationError
from jdyn.simulation.result import result_meanings as result_meanings
from jdyn.simulation.simulate import simulate as simulate
from jdyn.simulation.trajectory import Trajectory as Trajectory
