"""Laws of impacts at many points at once."""

import abc
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Scalar

from jdyn.array import shaped
from jdyn.impulses import ADMM, ConeProblem, ConeSolution, ConeSolver
from jdyn.model import Units

Points = Float[Array, " points"]
Vectors = Float[Array, "points 3"]
Matrix = Float[Array, "points 3 points 3"]


class ImpactsTogether(NamedTuple):
    """Effects of impacts at many points at once.

    >>> hit = jdyn.impacts.NewtonTogether()(jnp.eye(3)[None, :, None], jnp.array([[0.0, 0.0, -2.0]]), restitution=0.5)
    >>> print(hit.impulse, hit.velocity, hit.work, hit.converged)
    [[0. 0. 3.]] [[0. 0. 1.]] -1.5 True

    Attributes:
        impulse: Of each point, along two tangents and the normal [N s].
        velocity: After the impacts [m/s].
        work: Change of the kinetic energy [J].
        converged: Whether impulses were found to rounding.
        usable: Whether they were found as nearly as motions need them, see `jdyn.impulses.ConeSolution`; if not, they
            are no answer.
        mode: `jdyn.impulses.ContactMode` of each point.
        margin: How far each point is from another mode, see `jdyn.impulses.ConeSolution`.
    """

    impulse: Vectors
    velocity: Vectors
    work: Scalar
    converged: Bool[Array, ""]
    usable: Bool[Array, ""]
    mode: Int[Array, " points"]
    margin: Points


class TogetherLaw(eqx.Module):
    """Law by which bodies that touch at several points leave each other, all at once.

    Impulses at points act on each other. What a row of bodies does depends on the rule: a ball that hits two more in a
    row stops if impacts are one after another, and bounces back if they are at once.

    >>> row = jnp.array([[2.0, -1.0], [-1.0, 2.0]])[:, None, :, None] * jnp.diag(jnp.array([0.0, 0.0, 1.0]))[:, None]
    >>> hit = jdyn.impacts.NewtonTogether()(row, jnp.array([[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]]), restitution=1.0)
    >>> print(hit.impulse[:, 2].round(3))
    [1.333 0.667]

    Attributes:
        together: Whether it is a law of many points at once: yes.
    """

    together: ClassVar[bool] = True
    units: ClassVar[Units] = {}

    solver: eqx.AbstractVar[ConeSolver]

    @abc.abstractmethod
    def solution(self, G: Matrix, v: Vectors, restitution: Points, friction: Points) -> tuple[Vectors, ConeSolution]:
        """Impulses, and the solution that says what points do at the end."""

    def __call__(
        self,
        G: Float[ArrayLike, "points 3 points 3"],
        v: Float[ArrayLike, "points 3"],
        restitution: Float[ArrayLike, "..."] = 0.0,
        friction: Float[ArrayLike, "..."] = 0.0,
    ) -> ImpactsTogether:
        """The impacts of points with velocities.

        Args:
            G: Delassus matrix J M⁻¹ Jᵀ of all points, along two tangents and the normal of each [1/kg].
            v: Velocities before [m/s].
            restitution: e, from 0 to 1; one, or one for each point.
            friction: Coefficient of friction μ, not negative; likewise.

        Raises:
            ValueError: if a shape is another.
        """
        dtype = jnp.result_type(jnp.asarray(G), jnp.asarray(v), 0.0)
        v = jnp.asarray(v, dtype)
        v = shaped("v", v, dtype, (*v.shape[:1], 3))
        G = shaped("G", jnp.asarray(G), dtype, (len(v), 3, len(v), 3))
        e, mu = (jnp.broadcast_to(jnp.asarray(x, dtype), v.shape[:1]) for x in (restitution, friction))
        p, found = self.solution(G, v, e, mu)
        after = v + jnp.einsum("iajb,jb->ia", G, p)
        work, found_to = jnp.sum(p * (v + after)) / 2, (found.converged, found.usable)
        return ImpactsTogether(p, after, work, *found_to, found.mode, found.margin)


class NewtonTogether(TogetherLaw):
    """Each point that approaches leaves with e times its speed, or faster if others drive it on.

    It may make energy, and has no answer where other points block what is to leave, such as a ball that fills a gap.

    >>> hit = jdyn.impacts.NewtonTogether()(jnp.eye(3)[None, :, None], jnp.array([[1.0, 0.0, -2.0]]), 0.5, 0.1)
    >>> print(hit.velocity.round(3))
    [[0.7 0.  1. ]]

    Source: Ruspini, Khatib, Collision/contact models for the dynamic simulation of complex environments, 1997; Moreau,
    Unilateral contact and dry friction in finite freedom dynamics, 1988.

    Attributes:
        solver: Of complementarity.
    """

    solver: ConeSolver = ADMM()

    def solution(self, G, v, restitution, friction):
        found = self.solver.solve(ConeProblem(G, _with_normal(v, v[:, 2] + restitution * _approach(v)), friction))
        return found.gamma, found


class PoissonTogether(TogetherLaw):
    """Compression ends where no point approaches; then each normal impulse grows by e times that of compression, and by
    what keeps others from approaching again.

    It makes no energy without friction, and has an answer there always; with friction it may make energy.

    >>> hit = jdyn.impacts.PoissonTogether()(jnp.eye(3)[None, :, None], jnp.array([[1.0, 0.0, -2.0]]), 0.5, 0.1)
    >>> print(hit.velocity.round(3))
    [[0.8 0.  1. ]]

    Source: Anitescu, Potra, Formulating dynamic multi-rigid-body contact problems with friction as solvable linear
    complementarity problems, Nonlinear Dynamics 14, 1997, whose restitution has no friction either.

    Attributes:
        solver: Of complementarity.
    """

    solver: ConeSolver = ADMM()

    def solution(self, G, v, restitution, friction):
        def phase(known, share):
            p, v = known
            given = _with_normal(jnp.zeros_like(p), share * p[:, 2])
            found = self.solver.solve(ConeProblem(G, v + jnp.einsum("iajb,jb->ia", G, given), friction))
            return (p + given + found.gamma, found.velocity), found

        # A loop over compression and restitution, since two solvers take twice as long to compile.
        shares = jnp.stack([jnp.zeros_like(restitution), restitution])
        (p, _), phases = jax.lax.scan(phase, (jnp.zeros_like(v), v), shares)
        last = jax.tree.map(lambda x: x[-1], phases)
        both = {name: jnp.all(getattr(phases, name)) for name in ("converged", "usable")}
        return p, last._replace(**both, margin=jnp.min(phases.margin, axis=0))


def _approach(v: Vectors) -> Points:
    return jnp.minimum(v[:, 2], 0)


def _with_normal(v: Vectors, normal: Points) -> Vectors:
    return v.at[:, 2].set(normal)
