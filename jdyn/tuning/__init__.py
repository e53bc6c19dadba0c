"""Tuning of parameters by gradient."""

from jdyn.tuning import losses as losses
from jdyn.tuning.bijections import Bijection as Bijection
from jdyn.tuning.bijections import Interval as Interval
from jdyn.tuning.bijections import PhysicalInertia as PhysicalInertia
from jdyn.tuning.bijections import Positive as Positive
from jdyn.tuning.bijections import Simplex as Simplex
from jdyn.tuning.gradient_health import GradientHealth as GradientHealth
from jdyn.tuning.gradient_health import gradient_health as gradient_health
from jdyn.tuning.history import Patience as Patience
from jdyn.tuning.least_squares import tune_least_squares as tune_least_squares
from jdyn.tuning.minibatches import Minibatches as Minibatches
from jdyn.tuning.result import StartsResult as StartsResult
from jdyn.tuning.result import TuneResult as TuneResult
from jdyn.tuning.result import TuneWarning as TuneWarning
from jdyn.tuning.risk import CVaR as CVaR
from jdyn.tuning.risk import Worst as Worst
from jdyn.tuning.risk import robust as robust
from jdyn.tuning.starts import tune_starts as tune_starts
from jdyn.tuning.tune import tune as tune
