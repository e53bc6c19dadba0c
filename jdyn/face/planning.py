"""Costs, targets and results of planning.

>>> target = jdyn.planning.FrameTarget("link2", jnp.array([0.5, 0.0, 0.5]))
>>> print(type(target).__name__)
FrameTarget
"""

from jdyn.planning import Cost as Cost
from jdyn.planning import FrameTarget as FrameTarget
from jdyn.planning import Optimized as Optimized
from jdyn.planning import Plan as Plan
from jdyn.planning import PlanFeedback as PlanFeedback
from jdyn.planning import Reach as Reach
from jdyn.planning import SquaredResiduals as SquaredResiduals
