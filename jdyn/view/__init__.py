"""Movies and pictures of mechanisms; plots of motions, sweeps and tuned controllers."""

from jdyn.view.animate import animate as animate
from jdyn.view.animate import snapshot as snapshot
from jdyn.view.camera import Camera as Camera
from jdyn.view.movie import Movie as Movie
from jdyn.view.plots import plot_motion as plot_motion
from jdyn.view.plots import plot_tuning as plot_tuning
from jdyn.view.sweep_plots import plot_fan as plot_fan
from jdyn.view.sweep_plots import plot_heat_map as plot_heat_map
from jdyn.view.sweep_plots import plot_pairs as plot_pairs
from jdyn.view.viewer import view as view
