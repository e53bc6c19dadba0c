"""Designs of experiments: which points a sweep visits.

>>> design = jdyn.designs.Grid(gain=[1.0, 2.0], mass=[0.5, 1.0, 1.5])
>>> print(design.size)
6
"""

from jdyn.sweep import Design as Design
from jdyn.sweep import Grid as Grid
from jdyn.sweep import LatinHypercube as LatinHypercube
from jdyn.sweep import Log as Log
from jdyn.sweep import Morris as Morris
from jdyn.sweep import Saltelli as Saltelli
from jdyn.sweep import Samples as Samples
from jdyn.sweep import Sobol as Sobol
