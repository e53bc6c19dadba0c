"""Plots of motions, sweeps and tuned controllers."""

from jdyn.view.formulations import plot_curves as plot_curves
from jdyn.view.formulations import plot_evaluations as plot_evaluations
from jdyn.view.plots import plot_heat_map as plot_heat_map
from jdyn.view.plots import plot_motion as plot_motion
from jdyn.view.plots import plot_tuning as plot_tuning
