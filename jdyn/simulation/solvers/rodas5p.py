"""A Rosenbrock method for stiff mechanisms."""

from collections.abc import Callable
from typing import ClassVar

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jdyn.simulation.manifold import local_term, weighted
from jdyn.simulation.solver import Counted, DenseOutput, Traits, Work, never_limited
from jdyn.simulation.solvers.implicit_motion import Eliminated, ImplicitMotion
from jdyn.simulation.solvers.shifted import shifted_solution
from jdyn.simulation.solvers.step_rate import StepRate
from jdyn.simulation.solvers.tableau import triangle

# In the form of Hairer and Wanner 1996, section IV.7, which needs no product of a stage and the Jacobian.
GAMMA = 0.21193756319429014
_STATE = [-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946]
A = triangle(
    [
        [3.0],
        [2.849394379747939, 0.45842242204463923],
        [-6.954028509809101, 2.489845061869568, -10.358996098473584],
        [2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641],
        _STATE,
        [*_STATE, 1.0],
        [*_STATE, 1.0, 1.0],
    ]
)
C = triangle([
    [-14.155112264123755],
    [-17.97296035885952, -2.859693295451294],
    [147.12150275711716, -1.41221402718213, 71.68940251302358],
    [165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306],
    [24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471],
    [
        30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623,
        -28.087943162872662,
    ],
    [
        37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002,
        -54.66780262877968, -9.48861652309627,
    ],
])  # fmt: skip
TIMES = np.array([0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1, 1, 1])
TIME_DERIVATIVE = np.array(
    [0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069, 0, 0, 0]
)
DENSE = np.array(
    [
        [
            25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073,
            1.1241088310450404, 0.4272876194431874, -0.17202221070155493,
        ],
        [
            -9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044,
            15.98066361424651, -6.789040303419874, -6.710236069923372,
        ],
        [
            11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654,
            -59.78993625266729, -0.15582684282751913, 4.883087185713722,
        ],
    ]
)  # fmt: skip
STAGES = len(TIMES)


class _Interpolation(DenseOutput):
    y0: PyTree
    y1: PyTree
    bends: PyTree

    def at(self, share):
        def leaf(y0, y1, bends):
            bend = bends[0] + share * (bends[1] + share * bends[2])
            return (1 - share) * y0 + share * (y1 + (1 - share) * bend)

        return jax.tree.map(leaf, self.y0, self.y1, self.bends)


class Rodas5P(diffrax.AbstractAdaptiveSolver):
    """Steinebach's Rosenbrock method of order 5 with an embedded one of order 4, for stiff joints.

    L-stable and stiffly accurate. A step solves eight linear systems with one matrix, from the Jacobian at its start,
    and needs no iteration. The Jacobian is that of everything, in closed form; the systems have the size of the
    velocity and what the controller remembers. Dense output is of order 4.

    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.Rodas5P())
    >>> print(motion.q[-1].round(3))
    [-0.902]

    Source: Steinebach, Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia
    Differential Equations package, BIT Numerical Mathematics 63, 2023.
    """

    traits: ClassVar[Traits] = Traits(constraints=False, jacobians=True, limited_by_stability=never_limited)
    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., diffrax.AbstractLocalInterpolation]] = _Interpolation

    def order(self, terms):
        return 5

    def init(self, terms, t0, t1, y0, args):
        return Counted(None, Work.of())

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        terms = local_term(self, terms)
        rate = StepRate(terms, t0, t1, y0, args)

        def eliminated(a):
            return ImplicitMotion.of(terms, t0, t1, y0, a).eliminated(GAMMA)

        stages = _stages(rate, eliminated, Eliminated.blank(terms.model, rate.start))
        x0, unravel = rate.start, rate.state
        x1 = x0 + weighted(A[-1], stages) + stages[-1]
        bends = weighted(DENSE, stages)
        dense = {"y0": y0, "y1": unravel(x1), "bends": jax.vmap(unravel)(bends)}
        return unravel(x1), unravel(stages[-1]), dense, Counted(None, Work.of(STAGES, 1)), diffrax.RESULTS.successful


def _stages(rate: StepRate, eliminated: Callable, blank: Eliminated) -> Float[Array, "stages n"]:
    """k with k_i / γ − h J k_i = h f(u_i) + Σ_j<i c_ij k_j + d_i h² ∂f/∂t, u_i = x₀ + Σ_j<i a_ij k_j.

    Args:
        rate: h f.
        eliminated: From the acceleration at the start, the systems' matrix.
        blank: Zeros like that.
    """
    x0 = rate.start

    def stage(carry, row):
        k, system = carry
        i, after, a, c, d = row
        f = rate.at(after, x0 + weighted(a, k))
        # The first stage finds the acceleration at the start.
        system = jax.lax.cond(i == 0, eliminated, lambda _: system, f.v)
        s = GAMMA * (rate.over_step(f) + weighted(c, k))
        return (k.at[i].set(shifted_solution(rate, GAMMA, system, d, s)), system), None

    rows = jnp.arange(STAGES), *(jnp.asarray(x, x0.dtype) for x in (TIMES, A, C, TIME_DERIVATIVE))
    return jax.lax.scan(stage, (jnp.zeros((STAGES, len(x0)), x0.dtype), blank), rows)[0][0]
