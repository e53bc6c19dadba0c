"""Formulation stiffness: what the rounding of a forward-dynamics method costs, and what that costs an integrator.

The experiments of Cloutier's thesis (1995, chapter 5), for any mechanism, method and floating type.
"""

from jdyn.studies.cloutier1995.condition import condition_numbers as condition_numbers
from jdyn.studies.cloutier1995.fall import Fall as Fall
from jdyn.studies.cloutier1995.fall import fall as fall
from jdyn.studies.cloutier1995.families import heavier_tips as heavier_tips
from jdyn.studies.cloutier1995.families import thesis_family as thesis_family
from jdyn.studies.cloutier1995.link_table import Link as Link
from jdyn.studies.cloutier1995.link_table import load_links as load_links
from jdyn.studies.cloutier1995.numerical_recipes import QualityControl as QualityControl
from jdyn.studies.cloutier1995.numerical_recipes import WithRate as WithRate
from jdyn.studies.cloutier1995.operations import Operations as Operations
from jdyn.studies.cloutier1995.operations import UncountableError as UncountableError
from jdyn.studies.cloutier1995.operations import forward_dynamics_operations as forward_dynamics_operations
from jdyn.studies.cloutier1995.operations import operations as operations
from jdyn.studies.cloutier1995.rounding import Roundings as Roundings
from jdyn.studies.cloutier1995.rounding import roundings as roundings
from jdyn.studies.cloutier1995.session import FIGURE_5_2 as FIGURE_5_2
from jdyn.studies.cloutier1995.session import INTEGRATIONS as INTEGRATIONS
from jdyn.studies.cloutier1995.session import Outcome as Outcome
from jdyn.studies.cloutier1995.session import Session as Session
from jdyn.studies.cloutier1995.session import simulated as simulated
from jdyn.studies.cloutier1995.static_sweep import StaticSweep as StaticSweep
from jdyn.studies.cloutier1995.static_sweep import static_sweep as static_sweep
from jdyn.studies.cloutier1995.static_sweep import turn as turn
from jdyn.studies.cloutier1995.statistics import Statistics as Statistics
from jdyn.studies.cloutier1995.statistics import statistics as statistics
from jdyn.studies.cloutier1995.steps import Steps as Steps
from jdyn.studies.cloutier1995.steps import take_steps as take_steps
from jdyn.studies.cloutier1995.thesis import CHAINS as CHAINS
from jdyn.studies.cloutier1995.thesis import ENERGY_5_8 as ENERGY_5_8
from jdyn.studies.cloutier1995.thesis import EVALUATIONS as EVALUATIONS
from jdyn.studies.cloutier1995.thesis import four_links as four_links
from jdyn.studies.cloutier1995.thesis import long_chain as long_chain
from jdyn.studies.cloutier1995.thesis import two_links as two_links
from jdyn.studies.cloutier1995.thesis import two_links_of_one as two_links_of_one
