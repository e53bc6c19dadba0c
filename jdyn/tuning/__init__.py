"""Tuning of parameters by gradient."""

from jdyn.tuning.tune import TuneResult as TuneResult
from jdyn.tuning.tune import TuneWarning as TuneWarning
from jdyn.tuning.tune import tune as tune
