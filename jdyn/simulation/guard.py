"""Step controllers that notice when a simulation cannot go on, and count what solvers do not report."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree, Scalar

# A step of this many roundings of the time is too small to be told from none.
SMALLEST_STEP = 16

# First step to try [s]; controllers correct it within a few steps.
FIRST_STEP = 0.01


class GuardState(eqx.Module):
    """What the guard remembers between steps.

    Attributes:
        inner: State of the wrapped controller.
        smallest: Smallest step worth trying [s].
        reached: Time reached by accepted steps [s].
        fresh: Whether the next step must evaluate its first stage, for want of an earlier step to take it from.
        first_stages: How many steps had to.
        nonfinite: Whether the simulation ended because of a non-finite state or rate.
    """

    inner: PyTree
    smallest: Scalar
    reached: Scalar
    fresh: Bool[Array, ""]
    first_stages: Int[Array, ""]
    nonfinite: Bool[Array, ""]


class Guard(diffrax.AbstractStepSizeController):
    """The wrapped controller, but a simulation that cannot go on ends at once instead of trying to `max_steps`.

    It ends where an accepted state is not finite, and where a rejected step would have to be repeated with one that
    rounding of the time swallows.
    """

    controller: diffrax.AbstractStepSizeController

    def wrap(self, direction):
        return type(self)(self.controller.wrap(direction))

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        tnext, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        t0, t1 = jnp.asarray(t0), jnp.asarray(t1)
        smallest = SMALLEST_STEP * jnp.finfo(t1.dtype).eps * jnp.maximum(jnp.abs(t0), jnp.abs(t1))
        yes, no = jnp.array(True), jnp.array(False)
        return tnext, GuardState(inner, jax.lax.stop_gradient(smallest), t0, yes, jnp.zeros((), jnp.int32), no)

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        state: GuardState = controller_state
        keep, next_t0, next_t1, made_jump, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, state.inner
        )
        keep = jnp.asarray(keep)
        # Written so that a NaN step counts as too small.
        stuck = ~keep & ~(next_t1 - next_t0 > state.smallest)
        broken = ~_finite(y1_candidate) & (keep | stuck)
        result = diffrax.RESULTS.where(stuck | broken, diffrax.RESULTS.dt_min_reached, result)
        state = GuardState(
            inner,
            state.smallest,
            jnp.where(broken, state.reached, next_t0),
            jnp.where(keep, made_jump, state.fresh),
            state.first_stages + state.fresh.astype(state.first_stages.dtype),
            broken,
        )
        return keep, next_t0, next_t1, made_jump, state, result


class AdaptiveGuard(Guard, diffrax.AbstractAdaptiveStepSizeController):
    """A guard that also starts with `FIRST_STEP`, and shows implicit solvers the wrapped controller's tolerances."""

    controller: diffrax.AbstractAdaptiveStepSizeController

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        dt0 = jnp.array(FIRST_STEP, t1.dtype) if dt0 is None else dt0
        return super().init(terms, t0, t1, y0, dt0, args, func, error_order)

    @property
    def rtol(self):
        return self.controller.rtol

    @property
    def atol(self):
        return self.controller.atol

    @property
    def norm(self):
        return self.controller.norm


def guarded(controller: diffrax.AbstractStepSizeController) -> Guard:
    """`controller` under guard."""
    adaptive = isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)
    return AdaptiveGuard(controller) if adaptive else Guard(controller)  # type: ignore[call-arg]


def _finite(tree):
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
