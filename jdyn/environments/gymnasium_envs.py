"""Classes of Gymnasium around environments."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Array, ArrayLike, PRNGKeyArray

from jdyn.array import where
from jdyn.environments.environment import Environment, EnvState
from jdyn.terminal.messages import short
from jdyn.view import Camera, SteadyPictures

RENDER_MODES = ["rgb_array"]


@dataclasses.dataclass(frozen=True)
class Adapter:
    """An environment, and how Gymnasium sees it; `jdyn.environments.to_gymnasium` describes the fields."""

    environment: Environment
    observation_range: tuple[ArrayLike, ArrayLike] | None
    normalized: bool
    render_mode: str | None
    camera: Camera | None
    size: tuple[int, int]

    def __post_init__(self):
        if not isinstance(self.environment, Environment):
            raise ValueError(f"environment: expected a jdyn.environments.Environment, got {short(self.environment)}")
        if self.render_mode not in (None, *RENDER_MODES):
            raise ValueError(f"render_mode: expected 'rgb_array' or None, got {short(self.render_mode)}")
        # Gymnasium's interfaces start the next episodes, after they have seen where the last ones end.
        object.__setattr__(self, "environment", dataclasses.replace(self.environment, auto_reset=False))

    @property
    def metadata(self) -> dict[str, Any]:
        environment = self.environment
        rate = 1 / (float(environment.dt) * environment.steps_per_action)
        return {"render_modes": [*RENDER_MODES], "render_fps": round(rate) or rate}

    def action_space(self) -> gymnasium.spaces.Box:
        environment = self.environment
        limits = np.asarray(environment.action_range)
        if self.normalized:
            environment.commands(np.zeros(len(limits)))
            limits = np.full_like(limits, [-1, 1])
        return gymnasium.spaces.Box(limits[:, 0], limits[:, 1], dtype=limits.dtype.type)

    def observation_space(self) -> gymnasium.spaces.Box:
        like = jax.eval_shape(self.environment.reset, jax.random.key(0)).observation
        low, high = (-np.inf, np.inf) if self.observation_range is None else self.observation_range
        try:
            low, high = (np.broadcast_to(np.asarray(limit, like.dtype), like.shape) for limit in (low, high))
        except ValueError as error:
            raise ValueError(
                f"observation_range: expected two numbers or arrays of shape {like.shape}, got "
                f"{short(self.observation_range)}"
            ) from error
        return gymnasium.spaces.Box(low, high, dtype=like.dtype.type)

    @functools.cached_property
    def pictures(self) -> SteadyPictures:
        start = self.environment.reset(jax.random.key(0)).state.q
        return SteadyPictures(self.environment.system.model, start, self.camera, self.size)


class SystemEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """See `jdyn.environments.to_gymnasium`.

    Attributes:
        env_state: The episode; None before the first `reset`.
    """

    env_state: EnvState | None = None

    def __init__(self, adapter: Adapter):
        self.adapter, self.render_mode = adapter, adapter.render_mode
        self.metadata = adapter.metadata
        self.action_space, self.observation_space = adapter.action_space(), adapter.observation_space()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        if seed is None and self.env_state is not None:
            key = self.env_state.key
        else:
            key = _key(self.np_random)
        self.env_state = self.adapter.environment.reset(key)
        return np.array(self.env_state.observation), _info(self.env_state)

    def step(self, action: np.ndarray):
        environment, normalized = self.adapter.environment, self.adapter.normalized
        after = self.env_state = _step(environment, _begun(self.env_state), jnp.asarray(action), normalized)
        flags = bool(after.terminated), bool(after.truncated)
        return np.array(after.observation), float(after.reward), *flags, _info(after)

    def render(self):
        if self.render_mode is None:
            return None
        return self.adapter.pictures.of(np.asarray(_begun(self.env_state).state.q))


class SystemVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """See `jdyn.environments.to_gymnasium_vector`.

    Attributes:
        env_states: The episodes, a lane each; None before the first `reset`.
    """

    env_states: EnvState | None = None

    def __init__(self, adapter: Adapter, num_envs: int):
        if not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs: expected a positive whole number, got {short(num_envs)}")
        self.adapter, self.num_envs, self.render_mode = adapter, num_envs, adapter.render_mode
        self.metadata = adapter.metadata | {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_action_space, self.single_observation_space = adapter.action_space(), adapter.observation_space()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed if isinstance(seed, int) else None)
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        if seeds is None:
            seeds = [None] * self.num_envs
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: expected {self.num_envs} of them, one for each lane, got {len(seeds)}")
        begun, lanes = _reset_all(self.adapter.environment, jnp.stack(self._keys(seeds))), np.ones(self.num_envs, bool)
        if self.env_states is not None and options is not None and "reset_mask" in options:
            lanes = np.asarray(options["reset_mask"], bool)
            begun = jax.vmap(where)(jnp.asarray(lanes), begun, self.env_states)
        self.env_states = begun
        return np.array(begun.observation), _infos(begun, lanes)

    def step(self, actions: np.ndarray):
        environment, normalized = self.adapter.environment, self.adapter.normalized
        before = _begun(self.env_states)
        ended, self.env_states = _step_all(environment, before, jnp.asarray(actions), normalized)
        infos = _infos(self.env_states, np.ones(self.num_envs, bool))
        done = np.array(ended.done)
        if done.any():
            final = {"final_obs": _where_done(done, np.array(ended.observation)), "final_info": _infos(ended, done)}
            infos |= final | {f"_{name}": done.copy() for name in final}
        flags = np.array(ended.terminated), np.array(ended.truncated)
        return np.array(self.env_states.observation), np.array(ended.reward, np.float64), *flags, infos

    def render(self):
        if self.render_mode is None:
            return None
        return tuple(map(self.adapter.pictures.of, np.asarray(_begun(self.env_states).state.q)))

    def _keys(self, seeds: Sequence[int | None]) -> list[PRNGKeyArray]:
        known = None if self.env_states is None else self.env_states.key
        return [
            _key(np_random(seed)[0]) if seed is not None else _key(self.np_random) if known is None else known[i]
            for i, seed in enumerate(seeds)
        ]


@eqx.filter_jit
def _step(environment: Environment, before: EnvState, action: Array, normalized: bool) -> EnvState:
    return environment.step(before, environment.commands(action) if normalized else action)


@eqx.filter_jit
def _reset_all(environment: Environment, keys: PRNGKeyArray) -> EnvState:
    return jax.vmap(environment.reset)(keys)


@eqx.filter_jit
def _step_all(
    environment: Environment, before: EnvState, actions: Array, normalized: bool
) -> tuple[EnvState, EnvState]:
    """Episodes after an action, and the same with the next ones in the place of those that have ended."""

    def one(before, action):
        ended = _step(environment, before, action, normalized)
        return ended, where(ended.done, environment.reset(ended.key), ended)

    return jax.vmap(one)(before, actions)


def _begun(env_state: EnvState | None) -> EnvState:
    if env_state is None:
        raise gymnasium.error.ResetNeeded("call reset before step or render")
    return env_state


def _key(generator: np.random.Generator) -> PRNGKeyArray:
    return jax.random.key(int(generator.integers(2**31)))


def _info(env_state: EnvState) -> dict[str, Any]:
    """Everything about an episode that is neither observed nor a reward."""
    known = {"q": env_state.state.q, "v": env_state.state.v, "result": env_state.result}
    known |= {"sensors": env_state.sensors} if env_state.sensors else {}
    return jax.tree.map(lambda x: np.array(x)[()], known)


def _infos(env_states: EnvState, lanes: np.ndarray) -> dict[str, Any]:
    """The same of some lanes, beside the lanes that have it, as Gymnasium's vector environments give it."""
    return _masked(_info(env_states), lanes)


def _masked(known: dict[str, Any], lanes: np.ndarray) -> dict[str, Any]:
    masked = {}
    for name, x in known.items():
        if isinstance(x, dict):
            masked[name] = _masked(x, lanes)
        else:
            x[~lanes] = 0
            masked[name] = x
        masked[f"_{name}"] = lanes.copy()
    return masked


def _where_done(done: np.ndarray, observations: np.ndarray) -> np.ndarray:
    """Observations of lanes as an array of objects, None for lanes whose episode goes on."""
    found = np.full(len(done), None, object)
    for lane in np.flatnonzero(done):
        found[lane] = observations[lane]
    return found
