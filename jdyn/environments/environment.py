"""Environments that are functions: episodes go in, and come out a step later."""

import dataclasses
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray, Scalar

from jdyn.actuators import Actuators
from jdyn.array import where
from jdyn.execution.compiled import uncollected
from jdyn.simulation import Result, State, System
from jdyn.terminal.messages import enumerated, short

Values = dict[str, Float[Array, "..."]]


def _number(x: ArrayLike) -> Array:
    # Numbers of Python would be parts of the program.
    return jnp.asarray(x)


class EnvState(eqx.Module):
    """An episode at the time of one of its actions, as `Environment.reset` and `Environment.step` give it.

    >>> environment = jdyn.environments.Environment(
    ...     jdyn.System(jdyn.load("pendulum")), 0.05,
    ...     observe=lambda state, sensors: state.q, reward=lambda before, action, after, sensors: -(after.q[0] ** 2),
    ... )
    >>> now = environment.step(environment.reset(jax.random.key(0)), jnp.ones(1))
    >>> print(now.observation.round(4), now.reward.round(6), now.done)
    [0.0037] -1.4e-05 False

    Attributes:
        state: State of the system.
        sensors: Values of the sensors of the system, by name.
        observation: Observation of the state, by which the next action is chosen.
        final_observation: Observation to which the last action has led. It differs from `observation` where that is the
            first one of a new episode, see `auto_reset`.
        reward: Reward of the last action.
        terminated: Whether the last action has ended the episode by `done`.
        truncated: Whether the episode has ended for another reason: its length, or a step that failed.
        result: `jdyn.Result.success`, or the reason for which a step of the last action failed, as an integer.
        steps: Number of actions in this episode.
        key: Key of the next start.
    """

    state: State
    sensors: Values
    observation: Float[Array, "..."]
    final_observation: Float[Array, "..."]
    reward: Scalar
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    result: Int[Array, ""]
    steps: Int[Array, ""]
    key: PRNGKeyArray

    @property
    def done(self) -> Bool[Array, ""]:
        """Tell whether the last action has ended the episode."""
        return self.terminated | self.truncated


class Environment(eqx.Module):
    """An environment for reinforcement learning: pure functions from one `jdyn.environments.EnvState` to the next.

    `reset` and `step` are compiled, work under `jit`, `vmap`, `jvp` and `grad`, and inside `jax.lax.scan`. The same key
    and the same actions give the same episodes. Every number of the system is a leaf: `jdyn.vary(environment.system,
    ...)` within a `jax.vmap` gives each lane a mechanism of its own.

    >>> rail = jdyn.actuators.Motor("rail", command_range=(-10.0, 10.0))
    >>> balance = jdyn.environments.Environment(
    ...     jdyn.System(jdyn.load("cartpole"), actuators=[rail]),
    ...     dt=0.02,
    ...     observe=lambda state, sensors: jnp.concatenate([state.q, state.v]),
    ...     reward=lambda before, action, after, sensors: 1.0,
    ...     done=lambda state, sensors: (jnp.abs(state.q[0]) > 2.4) | (jnp.abs(state.q[1]) > 0.2),
    ...     start=lambda key: (jax.random.uniform(key, 2, minval=-0.05, maxval=0.05), jnp.zeros(2)),
    ...     episode_length=500,
    ... )
    >>> policy = jnp.array([[0.1, 2.0, 0.1, 0.5]])
    >>> def one(now, _):
    ...     now = balance.step(now, balance.commands(jnp.tanh(policy @ now.observation)))
    ...     return now, now.reward
    >>> _, rewards = jax.lax.scan(one, balance.reset(jax.random.key(0)), length=100)
    >>> print(rewards.sum())
    100.0

    Attributes:
        system: What moves. An action is a command of each of its actuators, or without actuators a generalized force
            on each entry of v, as for `jdyn.System.step`; a controller of the system acts beside it.
        dt: Length of a step [s].
        observe: `observe(state, sensors)` gives the observation, an array of any shape.
        reward: `reward(before, action, after, sensors)` gives a number, from the states before and after the action.
        done: `done(state, sensors)` says whether the episode ends there; if None, only its length ends it.
        start: `start(key)` gives q and v where an episode starts, which have to meet the constraints of the system; if
            None, all episodes start with `system.state()`.
        steps_per_action: Steps for which an action is held.
        episode_length: Number of actions after which an episode is truncated; None for no limit.
        auto_reset: Whether the next episode starts in the step that ends one, for training with many environments at
            once. Otherwise an episode that has ended stays as it is, with rewards of zero, so that rewards of a
            rollout add up to those of one episode.
        solver: As for `jdyn.System.step`.

    Raises:
        ValueError: if a part is something else.
    """

    system: System
    dt: Scalar = eqx.field(converter=_number)
    observe: Callable[[State, Values], ArrayLike]
    reward: Callable[[State, Array, State, Values], ArrayLike]
    done: Callable[[State, Values], ArrayLike] | None = None
    start: Callable[[PRNGKeyArray], tuple[ArrayLike, ArrayLike]] | None = None
    steps_per_action: int = eqx.field(default=1, static=True)
    episode_length: int | None = eqx.field(default=None, static=True)
    auto_reset: bool = eqx.field(default=False, static=True)
    solver: diffrax.AbstractSolver | None = None

    def __check_init__(self):
        if not isinstance(self.system, System):
            raise ValueError(f"system: expected a jdyn.System, got {short(self.system)}")
        if self.dt.shape or (not isinstance(self.dt, Tracer) and not np.asarray(self.dt) > 0):
            raise ValueError(f"dt: expected a positive number, got {self.dt}")
        for name in ("observe", "reward", "done", "start"):
            function = getattr(self, name)
            if not callable(function) and (function is not None or name in ("observe", "reward")):
                raise ValueError(f"{name}: expected a function, got {short(function)}")
        for name in ("steps_per_action", "episode_length"):
            number = getattr(self, name)
            if not _is_count(number) and (number is not None or name == "steps_per_action"):
                raise ValueError(f"{name}: expected a positive whole number, got {short(number)}")

    # `jax.jit` looks up methods by hash; arrays have none.
    def __hash__(self) -> int:
        return id(self)

    @property
    def action_range(self) -> Float[Array, "nu 2"]:
        """Limits of actions: the command ranges of the actuators; without actuators, the effort limits of the model, of
        which zero means no limit. Infinite where there is no limit."""
        model = self.system.model
        if not self.system.actuators:
            effort = model.limits.effort[jnp.array(model.topology.independent_v)]
            effort = jnp.where(effort > 0, effort, jnp.inf)
            return jnp.stack([-effort, effort], axis=1)
        actuators, free = self.system.actuators, jnp.array([-jnp.inf, jnp.inf], model.dtype)
        ranges = [free if (limits := each.command_limits) is None else limits for each in actuators]
        counts = Actuators(actuators).command_counts
        rows = [jnp.broadcast_to(each, (count, 2)) for each, count in zip(ranges, counts, strict=True)]
        return jnp.concatenate(rows).astype(model.dtype)

    def commands(self, u: Float[ArrayLike, " nu"]) -> Float[Array, " nu"]:
        """Actions by numbers from -1 to 1, the lower and the upper end of `action_range`, as policies often give them.

        Args:
            u: One for each entry of an action; what is beyond -1 or 1 is limited.

        Raises:
            ValueError: if an entry of an action has no limits.
        """
        limits = self.action_range
        if not isinstance(limits, Tracer):
            self._check_limited(np.asarray(limits))
        low, high = limits.T
        u = jnp.asarray(u, limits.dtype)
        if u.shape != low.shape:
            raise ValueError(f"u: expected shape {low.shape}, got {u.shape}")
        return low + (high - low) * (jnp.clip(u, -1, 1) + 1) / 2

    def reset(self, key: PRNGKeyArray) -> EnvState:
        """Start an episode.

        Args:
            key: Key by which `start` draws, and of all further episodes.

        Raises:
            ValueError: if a function of the environment gives something else than it should.
        """
        if not isinstance(key, jax.Array) or not (jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or key.shape == (2,)):
            raise ValueError(f"key: expected one such as jax.random.key(0), got {short(key)}")
        return _reset(self, key)

    def step(self, env_state: EnvState, action: Float[ArrayLike, " nu"]) -> EnvState:
        """Take one action.

        If a step fails, as where numbers overflow, the episode is truncated in the last state before the action: NaN
        comes neither into observations nor into rewards. (Derivatives through a failed step may be NaN.)

        Args:
            env_state: Where it begins, see `reset`.
            action: Commands of the actuators, or generalized forces [N m or N], shape (nv,), if the system has none.

        Raises:
            ValueError: as for `reset` and `jdyn.System.step`.
        """
        if not isinstance(env_state, EnvState):
            raise ValueError(f"env_state: expected one of Environment.reset, got {short(env_state)}")
        return _step(self, env_state, jnp.asarray(action))

    def _check_limited(self, limits: np.ndarray) -> None:
        free = np.flatnonzero(~np.all(np.isfinite(limits), axis=1))
        if free.size:
            actuators = self.system.actuators
            names = Actuators(actuators).command_names if actuators else self.system.model.topology.v_names
            remedy = "give them a command_range=(low, high)" if actuators else "let jdyn.actuators act on the system"
            raise ValueError(
                f"action_range: there are no limits of {enumerated([names[i] for i in free])}; {remedy}, or take "
                "actions in units of their own"
            )


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x > 0


@uncollected
@eqx.filter_jit
def _reset(environment: Environment, key: PRNGKeyArray) -> EnvState:
    """See `Environment.reset`."""
    following, key = jax.random.split(key)
    system = environment.system
    if environment.start is None:
        state = system.state()
    else:
        started = environment.start(key)
        if not isinstance(started, tuple) or len(started) != 2:
            raise ValueError(f"start: expected a pair of q and v, got {short(started)}")
        state = system.state(*map(jnp.asarray, started))
    sensors = system.sense(state)
    observation = _observed(environment, state, sensors)
    return EnvState(
        state=state,
        sensors=sensors,
        observation=observation,
        final_observation=observation,
        reward=jnp.zeros((), state.q.dtype),
        terminated=jnp.array(False),
        truncated=jnp.array(False),
        result=jnp.array(Result.success, jnp.int32),
        steps=jnp.array(0, jnp.int32),
        key=following,
    )


@uncollected
@eqx.filter_jit
def _step(environment: Environment, before: EnvState, action: Array) -> EnvState:
    """See `Environment.step`."""
    after = _acted(environment, before, action)
    if environment.auto_reset:
        return jax.lax.cond(after.done, lambda ended: _restarted(environment, ended), lambda after: after, after)
    stayed = dataclasses.replace(before, reward=jnp.zeros_like(before.reward))
    return where(before.done, stayed, after)


def _restarted(environment: Environment, ended: EnvState) -> EnvState:
    """The next episode, with the end of the last one."""
    return dataclasses.replace(
        _reset(environment, ended.key),
        final_observation=ended.observation,
        reward=ended.reward,
        terminated=ended.terminated,
        truncated=ended.truncated,
        result=ended.result,
    )


def _acted(environment: Environment, before: EnvState, action: Array) -> EnvState:
    """The episode after an action."""
    system, held = environment.system, environment.steps_per_action
    dtype = before.state.q.dtype
    action = action.astype(dtype)
    first = before.steps * held

    def one(now, number):
        state, _, result = now
        t = (first + number).astype(dtype) * environment.dt.astype(dtype)
        state, info = system.step(state, action, environment.dt, t=t, solver=environment.solver)
        return (state, info.sensors, jnp.where(result == Result.success, info.result, result)), None

    start = before.state, before.sensors, jnp.array(Result.success, jnp.int32)
    if held == 1:
        (state, sensors, result), _ = one(start, jnp.array(0, jnp.int32))
    else:
        (state, sensors, result), _ = jax.lax.scan(one, start, jnp.arange(held, dtype=jnp.int32))
    # States of controllers and elements, too, which the next step begins with.
    result = jnp.where((result == Result.success) & ~_finite(state), Result.nonfinite, result).astype(jnp.int32)
    failed = result != Result.success
    state, sensors = where(failed, (before.state, before.sensors), (state, sensors))
    steps = before.steps + 1
    too_long = failed if environment.episode_length is None else failed | (steps >= environment.episode_length)
    observation = _observed(environment, state, sensors)
    return EnvState(
        state=state,
        sensors=sensors,
        observation=observation,
        final_observation=observation,
        reward=_rewarded(environment, before.state, action, state, sensors),
        terminated=_ended(environment, state, sensors),
        truncated=too_long,
        result=result,
        steps=steps,
        key=before.key,
    )


def _finite(tree: Any) -> Bool[Array, ""]:
    numbers = [x for x in jax.tree.leaves(tree) if eqx.is_inexact_array(x)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in numbers]))


def _observed(environment: Environment, state: State, sensors: Values) -> Float[Array, "..."]:
    observation = _array("observe", "an array", environment.observe(state, sensors))
    return observation if eqx.is_inexact_array(observation) else observation.astype(state.q.dtype)


def _rewarded(environment: Environment, before: State, action: Array, after: State, sensors: Values) -> Scalar:
    reward = _array("reward", "a number", environment.reward(before, action, after, sensors))
    if reward.shape:
        raise ValueError(f"reward: expected a number, got shape {reward.shape}")
    return reward.astype(after.q.dtype)


def _ended(environment: Environment, state: State, sensors: Values) -> Bool[Array, ""]:
    if environment.done is None:
        return jnp.array(False)
    done = _array("done", "True or False", environment.done(state, sensors))
    if done.shape or done.dtype != bool:
        raise ValueError(f"done: expected True or False, got {done.dtype} of shape {done.shape}")
    return done


def _array(name: str, expected: str, x: Any) -> Array:
    try:
        return jnp.asarray(x)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected {expected}, got {short(x)}") from error
