"""Law of impulses at points of contact within a step."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.contact.convex.in_planes import Matrices, beside, rise, rubbing_along, split, squares
from jdyn.contact.directional import weighed_rows
from jdyn.impulses.friction import Friction, row_dot
from jdyn.impulses.law import ConvexLaw, Line

Points = Float[Array, "points"]
Vectors = Float[Array, "points 3"]
Sticking = Bool[Array, " points"]


class LaggedContact(ConvexLaw):
    """γ(u), where u is how the velocities of shape b relative to shape a, one of each point, change in a step of
    length h.

    With u_n = u · normal, and the slip s at the end, slip₀ and what u has beside the normal,

        γ = n(u_n) normal − bound s / max(|s|, slip),
        n(u_n) = h (force − h stiffness u_n)₊ (damping − dissipation u_n)₊.

    Where friction depends on the direction, its weights W take s to W s, and the second part to W times that. Both
    parts fall along u, so that −γ is the gradient of a convex function: n is the impulse of Hunt and Crossley's
    law with the depth at the end of the step, and the bound of friction is known from its start.

    Source: Castro, Han, Masterjohn, Irrotational contact fields, arXiv 2312.03908, 2023, the lagged model.

    Attributes:
        h: Length of the step [s].
        normal: Unit vectors from a to b.
        force: Of the springs at the end if u is zero; negative where shapes would be apart [N].
        stiffness: [N/m].
        damping: The factor at the end if u is zero.
        dissipation: [s/m].
        sliding: Friction against s.
        slip: slip₀, that at the end if u is zero, weighed [m/s].
        weights: W; None for the same friction in all directions.
        kink: What all points get, and what those lose that press, for derivatives: zero; None where there are none.
    """

    h: Scalar
    normal: Vectors
    force: Points
    stiffness: Points
    damping: Points
    dissipation: Points
    sliding: Friction
    slip: Vectors
    weights: Matrices | None = None
    kink: tuple[Vectors, Vectors] | None = None

    @classmethod
    def from_start(
        cls,
        h: Scalar,
        normal: Vectors,
        force: Points,
        stiffness: Points,
        dissipation: Points,
        sliding: Friction,
        start: Vectors,
        gained: Vectors,
        weights: Matrices | None = None,
    ) -> "LaggedContact":
        """Make it of what is known where the step begins.

        Velocities are those of the configuration at the start. Without what is gained, a foot about which a leg turns
        would have to stick there, and slip where the step ends, and the ground would be lower for it than it is. The
        next step would mend that at once, with an impulse that does not belong to the motion, and that soon needs more
        friction than there is.

        Args:
            h, normal, stiffness, dissipation, sliding: As above.
            force: Of the springs at the start, stiffness times depth; negative where shapes are apart [N].
            start: Velocities of b relative to a [m/s].
            gained: By which they grow within the step if nothing accelerates, as points and bodies move [m/s].
            weights: As above.
        """
        speed, parting = row_dot(start, normal), row_dot(gained, normal)
        force = force - h * stiffness * (speed + parting / 2)
        damping = 1 - dissipation * (speed + parting)
        slip = weighed_rows(weights, beside(start + gained, normal))
        return cls(h, normal, force, stiffness, damping, dissipation, sliding, slip, weights)

    def sticks(self, u: Vectors) -> Sticking:
        return self.sliding.sticks(self._slip(u))

    def may_stick(self, u: Vectors) -> Sticking:
        return self.sliding.may_stick(self._slip(u))

    def shares(self, u: Vectors) -> Vectors:
        return self.sliding.true_share(self._slip(u))

    def reverses(self, u: Vectors, du: Vectors, sticking: Sticking) -> Sticking:
        return self.sliding.reverses(self._slip(u), self._beside(du), sticking)

    def predicted_shares(self, u: Vectors, du: Vectors, sticking: Sticking, shares: Vectors) -> Vectors:
        return self.sliding.predicted_shares(self._slip(u), self._beside(du), sticking, shares)

    def share_errors(self, u: Vectors, shares: Vectors) -> tuple[Points, Points]:
        return self.sliding.share_errors(self._slip(u), shares)

    def on_one_side(self, u: Vectors, before: Vectors) -> Bool[Array, ""]:
        presses, pressed = (self._pressed(row_dot(u, self.normal))[0] > 0 for u in (u, before))
        return jnp.all(presses == pressed)

    def impulse(self, u: Vectors, sticking: Sticking) -> Vectors:
        pressed, _ = self._pressed(row_dot(u, self.normal))
        rubbed = weighed_rows(self.weights, self.sliding.impulse(self._slip(u), sticking))
        gamma = pressed[:, None] * self.normal + rubbed
        if self.kink is None:
            return gamma
        due, met = self.kink
        return gamma + due - jnp.where((pressed > 0)[:, None], met, 0)

    def slope(self, u: Vectors, sticking: Sticking, shares: Vectors) -> Matrices:
        _, fall = self._pressed(row_dot(u, self.normal))
        rubbed = rise(self.sliding, self.normal, self._slip(u), sticking, shares)
        if self.weights is not None:
            rubbed = self.weights @ rubbed @ self.weights
        return fall[:, None, None] * squares(self.normal) + rubbed

    def line_derivatives(self, u: Vectors, w: Vectors) -> Line:
        w_normal, w_beside = row_dot(w, self.normal), self._beside(w)
        pressed, fall = self._pressed(row_dot(u, self.normal))
        pressing = Line(-jnp.sum(pressed * w_normal), jnp.sum(fall * w_normal**2))
        return pressing + rubbing_along(self.sliding, self.normal, self._slip(u), w_beside)

    def _slip(self, u: Vectors) -> Vectors:
        # Of the change alone, so that rounding of the speed along the normal does not move what sticks.
        return self.slip + self._beside(u)

    def _beside(self, u: Vectors) -> Vectors:
        """Part of u beside the normal, as far as it counts."""
        return weighed_rows(self.weights, split(u, self.normal)[1])

    def _pressed(self, speed: Points) -> tuple[Points, Points]:
        """n, and how it falls with the change of the speed."""
        force = self.force - self.h * self.stiffness * speed
        damping = self.damping - self.dissipation * speed
        pushes = (force > 0) & (damping > 0)
        fall = self.h * (self.h * self.stiffness * damping + self.dissipation * force)
        return jnp.where(pushes, self.h * force * damping, 0), jnp.where(pushes, fall, 0)
