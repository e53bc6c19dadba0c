"""Plots of motions, sweeps and tuned controllers."""

from jdyn.view.plots import plot_motion as plot_motion
from jdyn.view.plots import plot_tuning as plot_tuning
from jdyn.view.sweep_plots import plot_fan as plot_fan
from jdyn.view.sweep_plots import plot_heat_map as plot_heat_map
from jdyn.view.sweep_plots import plot_pairs as plot_pairs
from jdyn.view.viewer import view as view
