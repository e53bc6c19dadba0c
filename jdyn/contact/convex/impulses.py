"""Impulses at points of contact within a step, as gradients of convex functions of the velocity."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.contact.convex.friction import Friction
from jdyn.contact.convex.in_planes import rubbing, rubbing_along, split, squares
from jdyn.contact.convex.law import Law, Line

Points = Float[Array, "points"]
Vectors = Float[Array, "points 3"]


class Impulses(Law):
    """γ(u) for the velocities u of shape b relative to shape a, one of each point, at the end of a step of length h.

    With the speed u_n = u · normal and the velocity u_t beside it,

        γ = n(u_n) normal − bound u_t / max(|u_t|, slip),
        n(u_n) = h (force − h stiffness u_n)₊ (1 − dissipation u_n)₊.

    Both parts fall along u, so that −γ is the gradient of a convex function: n is the impulse of Hunt and Crossley's
    law with the depth at the end of the step, and the bound of friction is known from its start.

    Source: Castro, Han, Masterjohn, Irrotational contact fields, arXiv 2312.03908, 2023, the lagged model.

    Attributes:
        h: Length of the step [s].
        normal: Unit vectors from a to b.
        force: Of the springs at the start, stiffness times depth; negative where shapes are apart [N].
        stiffness: [N/m].
        dissipation: [s/m].
        sliding: Friction against u_t.
    """

    h: Scalar
    normal: Vectors
    force: Points
    stiffness: Points
    dissipation: Points
    sliding: Friction

    def holds(self, u: Vectors) -> Bool[Array, " points"]:
        return self.sliding.holds(split(u, self.normal)[1])

    def may_hold(self, u: Vectors) -> Bool[Array, " points"]:
        return self.sliding.may_hold(split(u, self.normal)[1])

    def still_holds(self, u: Vectors, before: Vectors, held: Bool[Array, " points"]) -> Bool[Array, " points"]:
        return self.sliding.still_holds(split(u, self.normal)[1], split(before, self.normal)[1], held)

    def on_one_side(self, u: Vectors, before: Vectors) -> Bool[Array, ""]:
        presses, pressed = (self._pressed(split(u, self.normal)[0])[0] > 0 for u in (u, before))
        return jnp.all(presses == pressed)

    def at(self, u: Vectors, held: Bool[Array, " points"]) -> tuple[Vectors, Float[Array, "points 3 3"]]:
        speed, beside = split(u, self.normal)
        pressed, fall = self._pressed(speed)
        rubbed, rise = rubbing(self.sliding, self.normal, beside, held)
        return pressed[:, None] * self.normal - rubbed, fall[:, None, None] * squares(self.normal) + rise

    def along(self, u: Vectors, w: Vectors) -> Line:
        (speed, beside), (w_normal, w_beside) = split(u, self.normal), split(w, self.normal)
        pressed, fall = self._pressed(speed)
        pressing = Line(-jnp.sum(pressed * w_normal), jnp.sum(fall * w_normal**2))
        return pressing + rubbing_along(self.sliding, self.normal, beside, w_beside)

    def _pressed(self, speed: Points) -> tuple[Points, Points]:
        """n, and how it falls with the speed."""
        force = self.force - self.h * self.stiffness * speed
        damping = 1 - self.dissipation * speed
        pushes = (force > 0) & (damping > 0)
        fall = self.h * (self.h * self.stiffness * damping + self.dissipation * force)
        return jnp.where(pushes, self.h * force * damping, 0), jnp.where(pushes, fall, 0)
