"""Laws of impact that follow the path of the impulse, by where restitution ends."""

import abc

import jax.numpy as jnp
from jaxtyping import Scalar

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
        """Where restitution ends, by the start of the impact and the end of its compression."""

    def impulse(self, W, v, restitution, friction, static):
        point = Friction(W, friction, static)
        start = Place(v, jnp.zeros_like(v), jnp.zeros_like(friction))
        ahead, holds, holding_margin = onward(point)
        first = phase(point, start, jnp.array(False), ahead, _CompressionEnd())
        # Up to rounding it is zero.
        compressed = Place(first.at.v.at[2].set(0.0), first.at.p, first.at.work)
        last = phase(point, compressed, first.stopped, ahead, self.end(start, compressed, restitution))
        sticks, reverses = ImpactMode.STICKS_IN_COMPRESSION, ImpactMode.REVERSES_IN_COMPRESSION
        early = jnp.where(holds, sticks, reverses)
        sticks, reverses = ImpactMode.STICKS_IN_RESTITUTION, ImpactMode.REVERSES_IN_RESTITUTION
        late = jnp.where(last.stopped, jnp.where(holds, sticks, reverses), ImpactMode.SLIDES)
        margin = jnp.minimum(first.margin, jnp.where(first.stopped, jnp.inf, last.margin))
        margin = jnp.minimum(margin, jnp.where(last.stopped, holding_margin, jnp.inf))
        return last.at.p, jnp.where(first.stopped, early, late), margin


class Newton(PathOfImpulse):
    """Restitution ends where v_n = −e v_n⁻, whatever friction does. It may make energy where friction is large.

    >>> law = jdyn.impacts.Newton()
    >>> hit = law(jnp.eye(3), jnp.array([1.0, 0.0, -2.0]), 0.5, friction=0.1)
    >>> print(hit.velocity.round(3), hit.work.round(3))
    [0.7 0.  1. ] -1.755

    Source: thesis 6.4.2, equation (6.5).
    """

    def end(self, start, compressed, restitution):
        return _NewtonEnd(-restitution * start.v[2])


class Poisson(PathOfImpulse):
    """Restitution ends where p_n = (1 + e) times the normal impulse of compression. It makes no energy.

    >>> law = jdyn.impacts.Poisson()
    >>> hit = law(jnp.eye(3), jnp.array([1.0, 0.0, -2.0]), 0.5, friction=0.1)
    >>> print(hit.impulse.round(3))
    [-0.3  0.   3. ]

    Source: thesis 6.4.2, equation (6.9).
    """

    def end(self, start, compressed, restitution):
        return _PoissonEnd((1 + restitution) * compressed.p[2])


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
        lost = -compressed.work
        return _StrongeEnd(compressed.work, restitution * jnp.sqrt(lost))


class _CompressionEnd(End):
    def value(self, at):
        return at.v[2]

    def distance(self, at, slope):
        return _to_speed(at, slope, 0.0)


class _NewtonEnd(End):
    speed: Scalar

    def value(self, at):
        return at.v[2] - self.speed

    def distance(self, at, slope):
        return _to_speed(at, slope, self.speed)


class _PoissonEnd(End):
    impulse: Scalar

    def value(self, at):
        return at.p[2] - self.impulse

    def distance(self, at, slope):
        return _not_negative(self.impulse - at.p[2])


class _StrongeEnd(End):
    """Where the work has grown from `least` by the square of `root`."""

    least: Scalar
    root: Scalar

    def value(self, at):
        return at.work - self.least - self.root**2

    def distance(self, at, slope):
        left, v = -self.value(at), at.v[2]
        root = v**2 + 2 * slope * left
        there = (root >= 0) & (left > 0) & ((v > 0) | (slope > 0))
        speed = jnp.sqrt(jnp.where(there & (root > 0), root, 1))
        general = 2 * left / jnp.where(there, v + speed, 1)
        # At the start of restitution, for derivatives where e = 0.
        begins = (v == 0) & (at.work == self.least) & (slope > 0)
        at_start = self.root * jnp.sqrt(2 / jnp.where(begins, slope, 1))
        return jnp.where(begins, at_start, jnp.where(there, general, jnp.where(left > 0, jnp.inf, 0.0)))


def _to_speed(at: Place, slope: Scalar, speed: Scalar | float) -> Scalar:
    """Length of a line on which v_n grows to a speed."""
    left = _not_negative(speed - at.v[2])
    grows = slope > 0
    return jnp.where(grows, left / jnp.where(grows, slope, 1), jnp.where(left > 0, jnp.inf, 0.0))


def _not_negative(x: Scalar) -> Scalar:
    """The number, or zero, with the derivative of the number where it is zero."""
    return jnp.where(x >= 0, x, 0)
