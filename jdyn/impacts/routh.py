"""Laws of impact that follow the path of the impulse, by where restitution ends."""

import abc

import jax
import jax.numpy as jnp
from jaxtyping import Scalar

from jdyn.array import where
from jdyn.impacts.impact import ImpactLaw, ImpactMode
from jdyn.impacts.path import End, Friction, Place, onward, phase


class PathOfImpulse(ImpactLaw):
    """Friction by Coulomb's law at every instant of the impact: the point may slide, stop, stick, or slide back.

    The normal impulse p_n grows from zero. In compression the bodies approach, v_n < 0. Laws differ in where the
    restitution after it ends.

    Source: Routh 1905, Dynamics of a system of rigid bodies, volume 1, articles 180 to 198, in the plane; Keller,
    Impact with friction, Journal of Applied Mechanics 53, 1986, in space.
    """

    @abc.abstractmethod
    def end(self, start: Place, compressed: Place, restitution: Scalar) -> End:
        """End of restitution, by the start of the impact and the end of its compression."""

    def impulse(self, W, v, restitution, friction, static):
        point = Friction(W, friction, static)
        start = Place(v, jnp.zeros_like(v), jnp.zeros_like(friction))
        ahead, holds, holding_margin = onward(point)

        def follow(known, number):
            at, stopped, margin = known
            restitutes = number == 1
            end = where(restitutes, self.end(start, at, restitution), End.of("speed", jnp.zeros_like(friction)))
            after = phase(point, at, stopped, ahead, end)
            # Up to rounding it is zero where restitution begins.
            v = after.at.v.at[2].set(jnp.where(restitutes, after.at.v[2], 0.0))
            margin = jnp.minimum(margin, jnp.where(stopped, jnp.inf, after.margin))
            return (Place(v, after.at.p, after.at.work), after.stopped, margin), after.stopped

        # A loop over compression and restitution, since two phases take twice as long to compile.
        begin = start, jnp.array(False), jnp.full_like(friction, jnp.inf)
        (last, stopped, margin), (early, _) = jax.lax.scan(follow, begin, jnp.arange(2))
        in_compression = jnp.where(holds, ImpactMode.STICKS_IN_COMPRESSION, ImpactMode.REVERSES_IN_COMPRESSION)
        in_restitution = jnp.where(holds, ImpactMode.STICKS_IN_RESTITUTION, ImpactMode.REVERSES_IN_RESTITUTION)
        mode = jnp.where(early, in_compression, jnp.where(stopped, in_restitution, ImpactMode.SLIDES))
        return last.p, mode, jnp.minimum(margin, jnp.where(stopped, holding_margin, jnp.inf))


class Newton(PathOfImpulse):
    """Restitution ends where v_n = −e v_n⁻, whatever friction does. It may make energy where friction is large.

    >>> law = jdyn.impacts.Newton()
    >>> hit = law(jnp.eye(3), jnp.array([1.0, 0.0, -2.0]), 0.5, friction=0.1)
    >>> print(hit.velocity.round(3), f"{hit.work:.3f}")
    [0.7 0.  1. ] -1.755

    Source: thesis 6.4.2, equation (6.5).
    """

    def end(self, start, compressed, restitution):
        return End.of("speed", -restitution * start.v[2])


class Poisson(PathOfImpulse):
    """Restitution ends where p_n = (1 + e) times the normal impulse of compression. It makes no energy.

    >>> law = jdyn.impacts.Poisson()
    >>> hit = law(jnp.eye(3), jnp.array([1.0, 0.0, -2.0]), 0.5, friction=0.1)
    >>> print(hit.impulse.round(3) + 0.0)
    [-0.3  0.   3. ]

    Source: thesis 6.4.2, equation (6.9).
    """

    def end(self, start, compressed, restitution):
        return End.of("impulse", (1 + restitution) * compressed.p[2])


class Stronge(PathOfImpulse):
    """Restitution ends where the normal impulse has given back e² of the work that it took in compression. It makes no
    energy.

    >>> law = jdyn.impacts.Stronge()
    >>> hit = law(jnp.eye(3), jnp.array([1.0, 0.0, -2.0]), 0.5, friction=0.1)
    >>> print(hit.velocity.round(3))
    [0.7 0.  1. ]

    Source: Stronge, Rigid body collisions with friction, Proceedings of the Royal Society A 431, 1990.
    """

    def end(self, start, compressed, restitution):
        lost = jnp.maximum(-compressed.work, jnp.finfo(compressed.work.dtype).tiny)
        return End.of("work", compressed.work + restitution**2 * lost, restitution * jnp.sqrt(lost))
