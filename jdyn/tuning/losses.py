"""Costs of a motion: numbers to minimise, of one trajectory; `jax.vmap` takes many.

Each is an integral or a maximum over the saved rows, so that rows must be dense enough to show it:
`simulate(..., saveat=jnp.linspace(0.0, t1, 201))`. Rows that a simulation has not reached make it NaN.

>>> model = jdyn.load("pendulum")
>>> motion = jdyn.simulate(model, jnp.ones(1), jnp.zeros(1), 1.0)
>>> print(jdyn.losses.tracking_error(motion, jnp.ones(1)) > 0)
True
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.array import shaped
from jdyn.simulation import Trajectory

# Errors below this share of the band are as good as none.
NEGLIGIBLE = 1e-6


def tracking_error(trajectory: Trajectory, target: ArrayLike, *, weights: ArrayLike = 1.0) -> Float[Array, ""]:
    """The mean over time of Σ w e², where the tangent vector e leads from the configuration to the target.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, jnp.ones(1), jnp.zeros(1), 1.0)
    >>> print(jdyn.losses.tracking_error(motion, motion.q).round(3))
    0.0

    Args:
        trajectory: A motion.
        target: Configuration to reach [rad or m], shape (nq,), or those to follow, a row for each of the trajectory's,
            shape (times, nq).
        weights: w, a scalar or shape (nv,); where it is 1 / (tolerated error)² [1/rad² or 1/m²], a sum of 1 is good.

    Returns:
        Units of w times rad² or m².

    Raises:
        ValueError: if a shape is wrong.
    """
    errors = _errors(trajectory, target)
    return _mean(trajectory, jnp.sum(_for_each("weights", weights, errors) * errors**2, axis=1))


def settling_time(
    trajectory: Trajectory, target: ArrayLike, *, band: ArrayLike, softness: float = 0.1
) -> Float[Array, ""]:
    """The time after which every coordinate stays within a band around its target [s], made smooth.

    It is the integral over time of a number that goes from 1 to 0 where the largest error that is still to come enters
    the band, while it falls by a factor of e^(4 softness) or so. For an error that falls exponentially it is the time
    itself, but for rows. A motion that does not settle has its whole duration, and a gradient that still shows the way.

    >>> model = jdyn.load("pendulum")
    >>> controller = jdyn.PD(model, jnp.zeros(1), kp=30.0, kd=7.0)
    >>> motion = jdyn.simulate(model, jnp.ones(1), jnp.zeros(1), 2.0, controller=controller)
    >>> print(f"{jdyn.losses.settling_time(motion, jnp.zeros(1), band=0.01):.1f}")
    0.7

    Args:
        trajectory: A motion.
        target: Configuration to reach [rad or m], shape (nq,), or those to follow, shape (times, nq).
        band: Largest error that counts as settled [rad or m], a scalar or shape (nv,).
        softness: In terms of the logarithm of the error; a smaller one is nearer to the time and rougher.

    Raises:
        ValueError: if a shape is wrong, or the softness is not positive.
    """
    if not softness > 0:
        raise ValueError(f"softness: expected a positive number, got {softness}")
    errors = _errors(trajectory, target)
    to_come = _largest_to_come(jax.vmap(_largest)((errors / _for_each("band", band, errors)) ** 2))
    logarithm = 0.5 * jnp.log(jnp.where(to_come < NEGLIGIBLE**2, NEGLIGIBLE**2, to_come))
    return _integral(trajectory, jax.nn.sigmoid(logarithm / softness))


def overshoot(trajectory: Trajectory, target: ArrayLike) -> Float[Array, ""]:
    """Overshoot of the worst coordinate beyond its target, as a share of its distance at the start.

    Coordinates that start at their target, to the root of rounding, have none. Without any overshoot it is 0, and so is
    its gradient.

    >>> model = jdyn.load("pendulum")
    >>> controller = jdyn.PD(model, jnp.zeros(1), kp=30.0, kd=1.0)
    >>> motion = jdyn.simulate(model, jnp.ones(1), jnp.zeros(1), 2.0, controller=controller)
    >>> print(f"{jdyn.losses.overshoot(motion, jnp.zeros(1)):.1f}")
    0.6

    Args:
        trajectory: A motion.
        target: Configuration to reach [rad or m], shape (nq,).

    Raises:
        ValueError: if a shape is wrong.
    """
    model = trajectory.system.model
    errors = _errors(trajectory, shaped("target", target, trajectory.q.dtype, (model.nq,), owner=model.name))
    start = jnp.broadcast_to(errors[0], errors.shape)
    moving = jnp.abs(start) > jnp.finfo(start.dtype).eps ** 0.5
    beyond = jnp.where(moving, -errors / jnp.where(moving, start, 1), 0)
    return jax.nn.relu(_largest(beyond))


def effort(trajectory: Trajectory, *, weights: ArrayLike = 1.0) -> Float[Array, ""]:
    """The mean over time of Σ w τ².

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> controller = jdyn.control.Constant(jnp.array([2.0]))
    >>> motion = jdyn.simulate(model, rest, rest, 1.0, controller=controller)
    >>> print(jdyn.losses.effort(motion).round(3))
    4.0

    Args:
        trajectory: A motion.
        weights: w, a scalar or shape (nv,); where it is 1 / (rated torque or force)², a sum of 1 is what motors stand.

    Returns:
        Units of w times (N m)² or N².

    Raises:
        ValueError: if a shape is wrong.
    """
    tau = trajectory.tau
    return _mean(trajectory, jnp.sum(_for_each("weights", weights, tau) * tau**2, axis=1))


def energy(trajectory: Trajectory) -> Float[Array, ""]:
    """Mechanical energy that motors deliver, ∫ Σ max(τ v, 0) dt [J]: what the mechanism returns is lost in them.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> controller = jdyn.control.Constant(jnp.array([2.0]))
    >>> motion = jdyn.simulate(model, rest, rest, 0.5, controller=controller)
    >>> print(jdyn.losses.energy(motion).round(2), jnp.ptp(motion.energy).round(2))
    1.1 1.1

    Args:
        trajectory: A motion.
    """
    return _integral(trajectory, jnp.sum(jax.nn.relu(trajectory.tau * trajectory.v), axis=1))


def peak_torque(trajectory: Trajectory, *, rated: ArrayLike = 1.0) -> Float[Array, ""]:
    """The largest |τ| / rated of any coordinate at any time. Its gradient is that of the row where it is largest.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> controller = jdyn.control.Constant(jnp.array([2.0]))
    >>> motion = jdyn.simulate(model, rest, rest, 1.0, controller=controller)
    >>> print(jdyn.losses.peak_torque(motion, rated=4.0).round(3))
    0.5

    Args:
        trajectory: A motion.
        rated: What each motor stands [N m or N], a scalar or shape (nv,).

    Raises:
        ValueError: if a shape is wrong.
    """
    tau = trajectory.tau
    return _largest(jnp.abs(tau) / _for_each("rated", rated, tau))


def _errors(trajectory, target):
    """Tangent vectors from each row's configuration to its target, shape (times, nv)."""
    q, model = trajectory.q, trajectory.system.model
    target = shaped("target", target, q.dtype, (model.nq,), q.shape, owner=model.name)
    return jax.vmap(model.difference)(q, jnp.broadcast_to(target, q.shape))


def _for_each(name, value, like):
    """A number, or one for each coordinate, in every row of an array, shape (times, nv)."""
    return jnp.broadcast_to(shaped(name, value, like.dtype, (), like.shape[1:]), like.shape)


# Maxima by index: the derivative of `jnp.max` looks for the entries that equal it, and finds none, and 0/0, where XLA
# computes them a second time and rounds differently.


def _largest(x):
    return x.ravel()[jnp.argmax(x)]


@jax.jit
def _largest_to_come(x):
    """For each entry the largest of itself and those after it."""

    def larger(later, earlier):
        keep = earlier[0] > later[0]
        return tuple(jnp.where(keep, a, b) for a, b in zip(earlier, later, strict=True))

    _, places = jax.lax.associative_scan(larger, (jax.lax.stop_gradient(x), jnp.arange(len(x))), reverse=True)
    return x[places]


def _integral(trajectory, values):
    return jax.scipy.integrate.trapezoid(values, trajectory.ts)


def _mean(trajectory, values):
    return _integral(trajectory, values) / (trajectory.ts[-1] - trajectory.ts[0])
