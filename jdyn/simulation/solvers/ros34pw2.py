"""A Rosenbrock-W method for stiff joints."""

from collections.abc import Callable
from typing import ClassVar

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from jdyn.dynamics.implicit_rule import keep_solutions
from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.solvers.dense_output import DenseOutput
from jdyn.simulation.solvers.joint_system import JointSystem
from jdyn.simulation.stages import plus, weighted
from jdyn.simulation.work import Counted, Work

# As the source has them: alpha, gamma, b, and b of the embedded method.
GAMMA = 4.3586652150845900e-1
ALPHA = np.array(
    [
        [0, 0, 0, 0],
        [8.7173304301691801e-1, 0, 0, 0],
        [8.4457060015369423e-1, -1.1299064236484185e-1, 0, 0],
        [0, 0, 1, 0],
    ]
)
IMPLICIT = np.array(
    [
        [GAMMA, 0, 0, 0],
        [-8.7173304301691801e-1, GAMMA, 0, 0],
        [-9.0338057013044082e-1, 5.4180672388095326e-2, GAMMA, 0],
        [2.4212380706095346e-1, -1.2232505839045147, 5.4526025533510214e-1, GAMMA],
    ]
)
B = np.array([2.4212380706095346e-1, -1.2232505839045147, 1.5452602553351020, GAMMA])
EMBEDDED = np.array([3.7810903145819369e-1, -9.6042292212423178e-2, 0.5, 2.1793326075422950e-1])
TIMES = ALPHA.sum(1)
STAGES = len(B)

# In the form of Hairer and Wanner 1996, section IV.7, which needs no product of a stage and W: U = IMPLICIT k.
_INVERSE = np.linalg.inv(IMPLICIT)
A, M, ERROR = ALPHA @ _INVERSE, B @ _INVERSE, (B - EMBEDDED) @ _INVERSE
C = np.eye(STAGES) / GAMMA - _INVERSE


def _dense() -> np.ndarray:
    """Weights of the stages at the powers 1, 2 and 3 of the share of the step: those of order 2 for any W, which also
    integrate squares."""
    conditions = np.array([np.ones(STAGES), TIMES, IMPLICIT.sum(1), TIMES**2])
    return np.linalg.solve(conditions, np.array([[1, 0, 0], [0, 1 / 2, 0], [0, 0, 0], [0, 0, 1 / 3]])).T @ _INVERSE


DENSE = _dense()


class _Interpolation(DenseOutput):
    y0: PyTree
    bends: PyTree

    def at(self, share):
        return jax.tree.map(lambda y0, k: y0 + share * (k[0] + share * (k[1] + share * k[2])), self.y0, self.bends)


class ROS34PW2(diffrax.AbstractAdaptiveSolver):
    """Rang's and Angermann's Rosenbrock-W method of order 3 with an embedded one of order 2, implicit in the forces of
    the joints: dampers, friction, springs, and controllers such as `PD`.

    A step takes four evaluations of forward dynamics, and about as long again for its linear systems, which are forward
    dynamics of the model with larger rotors: gains, dampers and friction on light links do not limit it. What a
    controller remembers, and forces that couple joints, as those of an LQR, enter as in explicit methods, but for the
    sums of these forces' slopes; `Rodas5P` is implicit in all. The order does not depend on what is left out. Dense
    output is of order 2.

    For `jdyn.simulate`.

    Source: Rang, Angermann, New Rosenbrock W-methods of order 3 for partial differential algebraic equations of index
    1, BIT Numerical Mathematics 45, 2005.
    """

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., diffrax.AbstractLocalInterpolation]] = _Interpolation

    def order(self, terms):
        return 3

    def init(self, terms, t0, t1, y0, args):
        return Counted(None, Work.of())

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        if not isinstance(terms, LocalTerm):
            raise ValueError("ROS34PW2: it works in local coordinates; use jdyn.simulate, or jdyn.OnManifold")
        control = terms.contr(t0, t1)
        system = JointSystem.of(terms.term, t0, terms.from_chart(y0), control, GAMMA)
        # Inside a loop, nothing needs protection from common-subexpression elimination.
        rate_at = jax.checkpoint(lambda t, y: terms.vf(t, y, args), prevent_cse=False, policy=keep_solutions)

        def stage(U, row):
            number, after, a, c = row
            rate = rate_at(t0 + after * (t1 - t0), plus(y0, a, U))
            b = plus(terms.prod(rate, control), c, U)
            return jax.tree.map(lambda U, x: U.at[number].set(x), U, system.solve(b)), None

        rows = jnp.arange(STAGES), *(jnp.asarray(x, y0.v.dtype) for x in (TIMES, A, C))
        U, _ = jax.lax.scan(stage, jax.tree.map(lambda y: jnp.zeros((STAGES, *y.shape), y.dtype), y0), rows)
        y1, error = plus(y0, M, U), weighted(ERROR, U)
        dense = {"y0": y0, "bends": weighted(DENSE, U)}
        return y1, error, dense, Counted(None, Work.of(STAGES)), diffrax.RESULTS.successful
