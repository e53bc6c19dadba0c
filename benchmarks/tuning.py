"""How well tuning does: PD gains of robots that reach for a target, from gains that are ten times off, beside a fine
grid; and gains for the worst of payloads that are up to 20 % off, beside those tuned for the one in the middle.

`python -m benchmarks.tuning`
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jdyn
from jdyn import losses
from jdyn.terminal.tables import print_table

ROBOTS = "puma560", "panda"
TIME, ROWS = 1.5, 76
# A joint alone, with unit inertia and a unit weight of its error, is best at a natural frequency of WEIGHT^(-1/4).
WEIGHT = 1e-4
# Moves [rad]: a short one ends where a payload that is off leaves the arm, which is then most of the error.
FAR, NEAR = 0.5, 0.05
PAYLOAD, OFF = 2.0, np.linspace(0.8, 1.2, 5)
STEPS, RATE = 100, 0.3
GRID = 20
TEN_TIMES_OFF = np.array([[10, 10], [10, 0.1], [0.1, 10], [0.1, 0.1]])


@dataclasses.dataclass(frozen=True)
class Reach:
    """A robot with a payload that moves to a target under PD control; gravity is compensated for the payload that it
    should be. Gains are per unit of joint inertia, so that two numbers suit all joints.

    Attributes:
        model: The robot with the payload that it should have.
        start, target: Configurations [rad].
        inertia: Diagonal of the mass matrix at the start [kg m²].
    """

    model: jdyn.Model
    start: jax.Array
    target: jax.Array
    inertia: jax.Array

    @staticmethod
    def of(robot: jdyn.Model, move: float) -> "Reach":
        """Of every joint by the same angle, to either side."""
        model = _with_payload(robot, PAYLOAD)
        start = model.random(jax.random.key(1))
        target = start + move * jnp.where(jnp.arange(model.nq) % 2 == 0, 1.0, -1.0)
        return Reach(model, start, target, jnp.diag(jdyn.mass_matrix(model, start)))

    def loss(self, gains, payload=1.0):
        """The mean squared error and effort of the PD controller, for a payload that is as many times what it should
        be."""
        pd = jdyn.PD(self.model, self.target, **{name: gain * self.inertia for name, gain in gains.items()})
        motion = jdyn.simulate(
            _with_payload(self.model, (payload - 1) * PAYLOAD), self.start, jnp.zeros(self.model.nv), TIME,
            controller=pd + jdyn.GravityCompensation(self.model), saveat=jnp.linspace(0, TIME, ROWS), throw=False,
        )  # fmt: skip
        effort = losses.effort(motion, weights=1 / self.inertia**2)
        return losses.tracking_error(motion, self.target) + WEIGHT * effort


def _with_payload(model, kilograms):
    last = model.body_names[-1]
    return model.with_body(last, mass=model.inertias.mass[-1] + kilograms)


def best_of_grid(loss):
    """The best gains of a grid over three decades of both, and of a finer one around it, and their loss."""
    run = jax.jit(jax.vmap(loss))
    best, least = {"kp": 100.0, "kd": 14.0}, np.inf
    for decades in (3.0, 0.3):
        factors = np.logspace(-decades / 2, decades / 2, GRID)
        kp, kd = (numbers.ravel() for numbers in np.meshgrid(best["kp"] * factors, best["kd"] * factors))
        found = np.asarray(run({"kp": jnp.asarray(kp), "kd": jnp.asarray(kd)}))
        lowest = np.nanargmin(found)
        best, least = {"kp": float(kp[lowest]), "kd": float(kd[lowest])}, float(found[lowest])
    return best, least


def optimizer():
    """Adam, which forgets within ten steps how steep it was far off."""
    return optax.adam(optax.cosine_decay_schedule(RATE, STEPS), b2=0.9)


def tuned_from_far(loss, best):
    """The tuning from both gains ten times too large or too small, in all four ways at once.

    Of the logarithm of the loss, which falls by shares: from hundreds of times the best, its own gradients are so large
    that they say little of those near it.
    """
    starts = {name: jnp.asarray(best[name] * TEN_TIMES_OFF[:, i]) for i, name in enumerate(("kp", "kd"))}
    return jdyn.tune_starts(
        lambda gains: jnp.log(loss(gains)), starts, optimizer=optimizer(), steps=STEPS, bounds=jdyn.tuning.Positive()
    )


def steps_to_within(result, least):
    """The first step with a loss within 5 % of the grid's best; None if there is none."""
    within = np.flatnonzero(np.exp(result.losses) <= 1.05 * least)
    return int(within[0]) if len(within) else None


def tuned_for(payloads, reach, risk=jnp.mean):
    """The gains with the least risk over payloads, as times what the payload should be."""
    return jdyn.tune(
        jdyn.robust(reach.loss, risk), {"kp": 30.0, "kd": 5.0}, data=jnp.asarray(payloads), optimizer=optimizer(),
        steps=STEPS, bounds=jdyn.tuning.Positive(),
    ).params  # fmt: skip


def compare_with_grid():
    """A line for each robot and start."""
    rows = []
    for robot in ROBOTS:
        loss = Reach.of(jdyn.load(robot), FAR).loss
        best, least = best_of_grid(loss)
        for factors, result in zip(TEN_TIMES_OFF, tuned_from_far(loss, best).results, strict=True):
            shares = np.exp(result.losses) / least
            start = " and ".join(f"{name} x {factor:g}" for name, factor in zip(best, factors, strict=True))
            times = f"{shares[0]:.4g}", f"{shares[result.best_step]:.4f}"
            rows.append((robot, start, *times, str(steps_to_within(result, least))))
    print_table(("robot", "start", "loss / grid's best", "tuned / grid's best", "steps to within 5 %"), rows)


def without_friction(robot):
    """A robot that a payload can pull away: the PUMA's friction would hold it wherever it stops."""
    model = jdyn.load(robot)
    return dataclasses.replace(model, friction=0 * model.friction)


def compare_risks():
    """The losses of gains for the payload in the middle and for the worst one, a line for each robot and tuning."""
    rows = []
    for robot in ROBOTS:
        reach = Reach.of(without_friction(robot), NEAR)
        of_all = jax.jit(jax.vmap(reach.loss, (None, 0)))
        worst = jdyn.tuning.CVaR(1 / len(OFF))
        for name, gains in {"x 1": tuned_for([1.0], reach), "the worst": tuned_for(OFF, reach, worst)}.items():
            found = np.asarray(of_all(gains, jnp.asarray(OFF)))
            shown = (f"{float(gains['kp']):.4g}", f"{float(gains['kd']):.4g}", f"{found[2]:.4g}", f"{found.max():.4g}")
            rows.append((robot, name, *shown))
    print_table(("robot", "tuned for payload", "kp", "kd", "loss at x 1", "worst loss, x 0.8 to x 1.2"), rows)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    compare_with_grid()
    print()
    compare_risks()
