"""Impulses at points of contact within a step, as gradients of convex functions of the velocity."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.contact.convex.friction import Friction, dot
from jdyn.contact.convex.in_planes import rubbing, rubbing_along, split, squares
from jdyn.contact.convex.law import Law, Line

Points = Float[Array, "points"]
Vectors = Float[Array, "points 3"]


class Impulses(Law):
    """γ(u) for the velocities u of shape b relative to shape a, one of each point, at the end of a step of length h.

    With the speed u_n = u · normal, the speed g_n = gained · normal, and the slip s, what u + gained has beside the
    normal,

        γ = n(u_n) normal − bound s / max(|s|, slip),
        n(u_n) = h (force − h stiffness (u_n + g_n/2))₊ (1 − dissipation (u_n + g_n))₊.

    Both parts fall along u, so that −γ is the gradient of a convex function: n is the impulse of Hunt and Crossley's
    law with the depth at the end of the step, and the bound of friction is known from its start.

    The velocities u are those of the configuration at the start. Without what is gained, a foot about which a leg turns
    would have to stick there, and slip where the step ends, and the ground would be lower for it than it is. The next
    step would mend that at once, with an impulse that does not belong to the motion, and that soon needs more friction
    than there is.

    Source: Castro, Han, Masterjohn, Irrotational contact fields, arXiv 2312.03908, 2023, the lagged model.

    Attributes:
        h: Length of the step [s].
        normal: Unit vectors from a to b.
        force: Of the springs at the start, stiffness times depth; negative where shapes are apart [N].
        stiffness: [N/m].
        dissipation: [s/m].
        sliding: Friction against s.
        gained: By which velocities grow within the step if nothing accelerates, as points and bodies move [m/s].
    """

    h: Scalar
    normal: Vectors
    force: Points
    stiffness: Points
    dissipation: Points
    sliding: Friction
    gained: Vectors

    def holds(self, u: Vectors) -> Bool[Array, " points"]:
        return self.sliding.holds(self._slip(u))

    def may_hold(self, u: Vectors) -> Bool[Array, " points"]:
        return self.sliding.may_hold(self._slip(u))

    def still_holds(self, u: Vectors, before: Vectors, held: Bool[Array, " points"]) -> Bool[Array, " points"]:
        return self.sliding.still_holds(self._slip(u), self._slip(before), held)

    def on_one_side(self, u: Vectors, before: Vectors) -> Bool[Array, ""]:
        presses, pressed = (self._pressed(dot(u, self.normal))[0] > 0 for u in (u, before))
        return jnp.all(presses == pressed)

    def at(self, u: Vectors, held: Bool[Array, " points"]) -> tuple[Vectors, Float[Array, "points 3 3"]]:
        pressed, fall = self._pressed(dot(u, self.normal))
        rubbed, rise = rubbing(self.sliding, self.normal, self._slip(u), held)
        return pressed[:, None] * self.normal - rubbed, fall[:, None, None] * squares(self.normal) + rise

    def along(self, u: Vectors, w: Vectors) -> Line:
        w_normal, w_beside = split(w, self.normal)
        pressed, fall = self._pressed(dot(u, self.normal))
        pressing = Line(-jnp.sum(pressed * w_normal), jnp.sum(fall * w_normal**2))
        return pressing + rubbing_along(self.sliding, self.normal, self._slip(u), w_beside)

    @property
    def _parting(self) -> Points:
        return dot(self.gained, self.normal)

    def _slip(self, u: Vectors) -> Vectors:
        return split(u + self.gained, self.normal)[1]

    def _pressed(self, speed: Points) -> tuple[Points, Points]:
        """n, and how it falls with the speed."""
        force = self.force - self.h * self.stiffness * (speed + self._parting / 2)
        damping = 1 - self.dissipation * (speed + self._parting)
        pushes = (force > 0) & (damping > 0)
        fall = self.h * (self.h * self.stiffness * damping + self.dissipation * force)
        return jnp.where(pushes, self.h * force * damping, 0), jnp.where(pushes, fall, 0)
