"""Controllers and their parts, beside those of every day: references, samplers, lags, operational space, contacts.

>>> held = jdyn.control.ZeroOrderHold(jdyn.PD(jdyn.load("pendulum"), jnp.zeros(1), kp=10.0, kd=1.0), 0.01)
>>> print(held.period)
0.01
"""

from jdyn.control import Constant as Constant
from jdyn.control import DynamicController as DynamicController
from jdyn.control import FeedforwardPD as FeedforwardPD
from jdyn.control import FirstOrderLag as FirstOrderLag
from jdyn.control import HeldContacts as HeldContacts
from jdyn.control import OperationalSpace as OperationalSpace
from jdyn.control import PartController as PartController
from jdyn.control import Posture as Posture
from jdyn.control import Quintic as Quintic
from jdyn.control import Reference as Reference
from jdyn.control import SingularRegion as SingularRegion
from jdyn.control import Spline as Spline
from jdyn.control import Tracking as Tracking
from jdyn.control import ZeroOrderHold as ZeroOrderHold
