"""Movies and pictures of mechanisms; plots of motions, sweeps and tuned controllers."""

from jdyn.view import plots as plots
from jdyn.view.animate import animate as animate
from jdyn.view.animate import snapshot as snapshot
from jdyn.view.camera import Camera as Camera
from jdyn.view.movie import Movie as Movie
from jdyn.view.steady import SteadyPictures as SteadyPictures
from jdyn.view.viewer import view as view
