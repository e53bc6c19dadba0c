"""Bounds, risks and results of tuning.

>>> positive = jdyn.tuning.Positive()
>>> print(positive.from_free(positive.to_free(jnp.array(2.0))).round(3))
2.0
"""

from jdyn.tuning import CVaR as CVaR
from jdyn.tuning import GradientHealth as GradientHealth
from jdyn.tuning import Interval as Interval
from jdyn.tuning import Minibatches as Minibatches
from jdyn.tuning import Patience as Patience
from jdyn.tuning import PhysicalInertia as PhysicalInertia
from jdyn.tuning import Positive as Positive
from jdyn.tuning import Simplex as Simplex
from jdyn.tuning import StartsResult as StartsResult
from jdyn.tuning import TuneResult as TuneResult
from jdyn.tuning import TuneWarning as TuneWarning
from jdyn.tuning import Worst as Worst
