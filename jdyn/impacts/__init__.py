"""Impacts: laws of what bodies do that collide, at one point or at many at once."""

from jdyn.impacts.algebraic import Brach as Brach
from jdyn.impacts.algebraic import Frictionless as Frictionless
from jdyn.impacts.algebraic import StickOrSlide as StickOrSlide
from jdyn.impacts.impact import Impact as Impact
from jdyn.impacts.impact import ImpactLaw as ImpactLaw
from jdyn.impacts.impact import ImpactMode as ImpactMode
from jdyn.impacts.routh import Newton as Newton
from jdyn.impacts.routh import PathOfImpulse as PathOfImpulse
from jdyn.impacts.routh import Poisson as Poisson
from jdyn.impacts.routh import Stronge as Stronge
from jdyn.impacts.together import ImpactsTogether as ImpactsTogether
from jdyn.impacts.together import NewtonTogether as NewtonTogether
from jdyn.impacts.together import PoissonTogether as PoissonTogether
from jdyn.impacts.together import TogetherLaw as TogetherLaw
