"""Solvers beside the default, and what they work with.

>>> motion = jdyn.simulate(jdyn.load("pendulum"), jnp.array([0.5]), jnp.zeros(1), 1.0, solver=jdyn.solvers.Rodas5P())
>>> print(bool(motion.success))
True
"""

from jdyn.simulation import ROSJ43 as ROSJ43
from jdyn.simulation import AdamsBashforthMoulton as AdamsBashforthMoulton
from jdyn.simulation import Automatic as Automatic
from jdyn.simulation import BaderDeuflhard as BaderDeuflhard
from jdyn.simulation import BulirschStoer as BulirschStoer
from jdyn.simulation import CashKarp as CashKarp
from jdyn.simulation import ConvexEuler as ConvexEuler
from jdyn.simulation import EnergyError as EnergyError
from jdyn.simulation import HalveOrGrow as HalveOrGrow
from jdyn.simulation import ImplicitMidpoint as ImplicitMidpoint
from jdyn.simulation import LinearlyImplicitEuler as LinearlyImplicitEuler
from jdyn.simulation import MoreauEuler as MoreauEuler
from jdyn.simulation import OnManifold as OnManifold
from jdyn.simulation import Rodas5P as Rodas5P
from jdyn.simulation import SemiImplicitEuler as SemiImplicitEuler
from jdyn.simulation import StormerVerlet as StormerVerlet
