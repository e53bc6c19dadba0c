"""A method of order 4 for stiff joints."""

from collections.abc import Callable
from typing import ClassVar

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from jdyn.simulation.manifold import local_term
from jdyn.simulation.solver import Counted, Traits, Work, never_limited
from jdyn.simulation.solvers.implicit_rates import coupling, implicit_rates
from jdyn.simulation.solvers.tableau import Interpolation, Tableau, ended, stages, triangle

GAMMA = 0.2
# The estimate is this share of the difference to the embedded method, which is that to another one of order 3: errors
# are then about as large as tolerances ask for.
ESTIMATE = 1 / 4
# α and γ below the diagonal, row by row from the second; the last row of α is the sum of those before.
_ALPHA = [
    [0.1888698807560092],
    [0.12741243574108155, 0.18180659344063105],
    [-0.3199708221128634, 0.7280838146209244, -0.3830370036086011],
    [0.008450626073601976, -0.6436309388025192, 1.2811725383174155, 0.08751786274840906],
    [0.0782030719613271, -1.057585348744788, 1.138121645628526, 0.42256508724996356, 0.13048816405586297],
    [
        0.04863200088195354,
        -0.03137156363410764,
        0.34222036809156536,
        0.10695418255018882,
        0.8119949093003966,
        -0.2784298971899967,
    ],
]
_BELOW = [
    [-0.17065488920759758],
    [-0.11162281841594777, -0.084048367024796],
    [0.2400295386399271, -0.48560888054024426, 0.039491151885372146],
    [0.0604984518830787, 0.25530357845361235, -0.5825986890157892, 0.056235488538608346],
    [-0.0480214715925809, 0.5474642553357557, -0.32572826227169627, -0.12548874294826662, -0.2444171613028765],
    [
        0.015106298877773061,
        -0.639340376493081,
        0.7871165773533852,
        0.06215742735610554,
        -0.997246024678416,
        0.5722060975842332,
    ],
    [
        -0.056090675274248776,
        0.5814605167671267,
        -0.6568277481480902,
        -0.033380255405910005,
        0.2939298727013679,
        -0.026409756835658577,
        -0.3026819538045871,
    ],
]
# Of the powers of the share of the step: the smallest weights of order 3 for any W at every share, that end with
# those of the step.
_DENSE = [
    [
        -0.014908234133745764,
        0.2969913733068071,
        0.36984520369043533,
        0.7373657008268332,
        0.014045395768553102,
        -0.7081391387387495,
        0.11456460541436049,
        0.19023509386550602,
    ],
    [
        0.005475879529188093,
        -0.3715759297062377,
        0.12414283431394578,
        -1.095676311998325,
        0.5457232430615426,
        2.1961146431807874,
        -0.739937423416027,
        -0.6642669349648755,
    ],
    [
        0.011456839324825406,
        0.04362506369891088,
        -0.08732640291723098,
        0.49069556556832755,
        -0.42162315201401596,
        -1.2232566623453116,
        0.5553791301166744,
        0.6310496185678205,
    ],
    [
        0.0056231397652097,
        -0.058291930659538624,
        0.06584756220970699,
        0.003346400103548754,
        -0.029466729492728418,
        0.002647601461849898,
        -0.03268826591959764,
        0.04298222253155015,
    ],
]


def _tableau() -> Tableau:
    below = triangle(_BELOW)
    implicit = below + GAMMA * np.eye(len(below))
    alpha = np.zeros_like(below)
    alpha[:-1, :-1] = triangle(_ALPHA)
    alpha[-1] = alpha[-2] + implicit[-2]
    # The last stage is at the end of a method of order 3, as the step is one further: of stiff motion, both leave none.
    b, error = alpha[-1] + implicit[-1], ESTIMATE * implicit[-1]
    return Tableau(alpha, below, np.full(len(b), GAMMA), b, error, np.array(_DENSE))


TABLEAU = _tableau()


class ROSJ43(diffrax.AbstractAdaptiveSolver):
    """A method of order 4 with an embedded one of order 3, implicit in the forces of the joints: dampers, friction,
    springs, and controllers such as `PD`.

    A step takes eight evaluations of forward dynamics with larger rotors, and no other linear system: gains, dampers
    and friction on light links do not limit it. With compliant contact, or a `jdyn.ForceElement` whose slopes couple
    joints, a step also solves a system of the size of the velocity, whose solution all stages share, and stiff ground
    does not limit it either. What a controller remembers, and forces that couple joints, as those of an LQR, enter as
    in explicit methods, but for the sums of these forces' slopes; `Rodas5P` is implicit in all. The order does not
    depend on what is left out. Both methods are stiffly accurate, and dense output is of order 3.

    `jdyn.simulate` takes it by itself where it helps, see `jdyn.solvers.Automatic`.

    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.ROSJ43())
    >>> print(motion.q[-1].round(3))
    [-0.902]

    Source: Rosenbrock-W methods (Hairer, Wanner 1996, section IV.7), but with the matrix W of each stage, not of the
    step: so a stage is forward dynamics alone. That takes more conditions of order, one for every tree whose nodes have
    any number of children by α and at most one by γ. The weights are ours. They solve these conditions, with small
    errors of order 5 and on the stiff problem of Prothero and Robinson (there, section IV.15).
    """

    traits: ClassVar[Traits] = Traits(limited_by_stability=never_limited)
    tableau: ClassVar[Tableau] = TABLEAU
    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., diffrax.AbstractLocalInterpolation]] = Interpolation

    def order(self, terms):
        return 4

    def init(self, terms, t0, t1, y0, args):
        return Counted(None, Work.of())

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        terms = local_term(self, terms)
        tableau, here = self.tableau, terms.from_chart(y0)
        coupled, c = coupling(terms.term, t0, here), float(tableau.diagonal[-1]) * terms.contr(t0, t1)
        system = implicit_rates(terms.term, t0, here, coupled, c)
        k, _ = stages(tableau, terms, system, t0, t1, y0, jax.tree.map(jnp.zeros_like, y0), 0)
        y1, error, dense = ended(tableau, y0, k)
        return y1, error, dense, Counted(None, Work.of(len(tableau.b))), diffrax.RESULTS.successful
