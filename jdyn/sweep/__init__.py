"""Sweeps over thousands of simulations."""

from jdyn.sweep.controlled_move import ControlledMove as ControlledMove
from jdyn.sweep.controlled_move import random_start as random_start
from jdyn.sweep.design import Design as Design
from jdyn.sweep.design import Grid as Grid
from jdyn.sweep.design import Samples as Samples
from jdyn.sweep.drawn import LatinHypercube as LatinHypercube
from jdyn.sweep.drawn import Log as Log
from jdyn.sweep.drawn import Sobol as Sobol
from jdyn.sweep.outputs import Lane as Lane
from jdyn.sweep.replay import replay as replay
from jdyn.sweep.sensitivity import Morris as Morris
from jdyn.sweep.sensitivity import Saltelli as Saltelli
from jdyn.sweep.spec import Spec as Spec
from jdyn.sweep.stored import open_sweep as open_sweep
from jdyn.sweep.sweep import SweepInterrupted as SweepInterrupted
from jdyn.sweep.sweep import sweep as sweep
