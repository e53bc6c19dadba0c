"""Sweeps over thousands of simulations."""

from jdyn.sweep.design import Design as Design
from jdyn.sweep.design import Grid as Grid
from jdyn.sweep.design import Samples as Samples
from jdyn.sweep.sweep import sweep as sweep
