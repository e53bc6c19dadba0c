"""Impulses: rigid contact at many points at once, as complementarity on cones of friction.

>>> weight = jdyn.impulses.ConeProblem(jnp.eye(3)[None, :, None], jnp.array([[0.1, 0.0, -1.0]]), jnp.array([0.5]))
>>> found = jdyn.impulses.ADMM().solve(weight)
>>> print(found.gamma.round(3), jdyn.impulses.ContactMode(int(found.mode[0])).name)
[[-0.1  0.   1. ]] STICKS
"""

from jdyn.impulses import ADMM as ADMM
from jdyn.impulses import ConeProblem as ConeProblem
from jdyn.impulses import ConeSolution as ConeSolution
from jdyn.impulses import ConeSolver as ConeSolver
from jdyn.impulses import ContactMode as ContactMode
from jdyn.impulses import GaussSeidel as GaussSeidel
