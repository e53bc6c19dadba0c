"""Formulations of forward dynamics that are kept for comparison, and the experiments of Cloutier's thesis.

>>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
>>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.GaussDP()).round(3))
[-6.047  8.063]
"""

from jdyn.studies import cloutier1995 as cloutier1995
from jdyn.studies import formulations as formulations
from jdyn.studies import prrr as prrr
from jdyn.studies.cloutier1995 import Statistics as Statistics
from jdyn.studies.cloutier1995 import statistics as statistics
from jdyn.studies.formulations import BlockElimination as BlockElimination
from jdyn.studies.formulations import ConjugateGradient as ConjugateGradient
from jdyn.studies.formulations import GaussDP as GaussDP
from jdyn.studies.formulations import GibbsAppell as GibbsAppell
from jdyn.studies.formulations import LeastConstraint as LeastConstraint
from jdyn.studies.formulations import MatrixABA as MatrixABA
from jdyn.studies.formulations import ModifiedABA as ModifiedABA
from jdyn.studies.formulations import OrthogonalComplement as OrthogonalComplement
from jdyn.studies.formulations import WalkerOrin as WalkerOrin
