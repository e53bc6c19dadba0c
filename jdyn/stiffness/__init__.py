"""Formulation stiffness: what the rounding of a forward-dynamics method costs, and what that costs an integrator.

The experiments of Cloutier's thesis (1995, chapter 5), for any mechanism, method and floating type.
"""

from jdyn.stiffness.condition import condition_numbers as condition_numbers
from jdyn.stiffness.fall import Fall as Fall
from jdyn.stiffness.fall import fall as fall
from jdyn.stiffness.families import heavier_tips as heavier_tips
from jdyn.stiffness.families import thesis_family as thesis_family
from jdyn.stiffness.operations import Operations as Operations
from jdyn.stiffness.operations import UncountableError as UncountableError
from jdyn.stiffness.operations import forward_dynamics_operations as forward_dynamics_operations
from jdyn.stiffness.operations import operations as operations
from jdyn.stiffness.recipes import QualityControl as QualityControl
from jdyn.stiffness.recipes import WithRate as WithRate
from jdyn.stiffness.rounding import Roundings as Roundings
from jdyn.stiffness.rounding import roundings as roundings
from jdyn.stiffness.session import FIGURE_5_2 as FIGURE_5_2
from jdyn.stiffness.session import INTEGRATIONS as INTEGRATIONS
from jdyn.stiffness.session import Outcome as Outcome
from jdyn.stiffness.session import Session as Session
from jdyn.stiffness.session import simulated as simulated
from jdyn.stiffness.static_sweep import StaticSweep as StaticSweep
from jdyn.stiffness.static_sweep import static_sweep as static_sweep
from jdyn.stiffness.static_sweep import turn as turn
from jdyn.stiffness.statistics import Statistics as Statistics
from jdyn.stiffness.statistics import statistics as statistics
from jdyn.stiffness.steps import Steps as Steps
from jdyn.stiffness.steps import take_steps as take_steps
from jdyn.stiffness.thesis import CHAINS as CHAINS
from jdyn.stiffness.thesis import ENERGY_5_8 as ENERGY_5_8
from jdyn.stiffness.thesis import EVALUATIONS as EVALUATIONS
from jdyn.stiffness.thesis import four_links as four_links
from jdyn.stiffness.thesis import long_chain as long_chain
from jdyn.stiffness.thesis import two_links as two_links
from jdyn.stiffness.thesis import two_links_of_one as two_links_of_one
