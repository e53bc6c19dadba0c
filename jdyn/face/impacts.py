"""Impacts: laws of what bodies do that collide.

>>> law = jdyn.impacts.Stronge()
>>> hit = law(jnp.eye(3), jnp.array([0.5, 0.0, -1.0]), restitution=0.8, friction=0.2)
>>> print(hit.velocity.round(3), jdyn.impacts.ImpactMode(int(hit.mode)).name)
[0.14 0.   0.8 ] SLIDES
"""

from jdyn.impacts import Brach as Brach
from jdyn.impacts import Frictionless as Frictionless
from jdyn.impacts import Impact as Impact
from jdyn.impacts import ImpactLaw as ImpactLaw
from jdyn.impacts import ImpactMode as ImpactMode
from jdyn.impacts import ImpactsTogether as ImpactsTogether
from jdyn.impacts import Newton as Newton
from jdyn.impacts import NewtonTogether as NewtonTogether
from jdyn.impacts import Poisson as Poisson
from jdyn.impacts import PoissonTogether as PoissonTogether
from jdyn.impacts import StickOrSlide as StickOrSlide
from jdyn.impacts import Stronge as Stronge
from jdyn.impacts import TogetherLaw as TogetherLaw
