"""Environments as those of Gymnasium, which need not be installed."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from jaxtyping import ArrayLike

from jdyn.environments.environment import Environment
from jdyn.view import Camera

if TYPE_CHECKING:
    import gymnasium


def to_gymnasium(
    environment: Environment,
    *,
    observation_range: tuple[ArrayLike, ArrayLike] | None = None,
    normalized: bool = True,
    render_mode: str | None = None,
    camera: Camera | None = None,
    size: tuple[int, int] = (640, 480),
) -> gymnasium.Env:
    """An environment as a `gymnasium.Env`, for libraries that expect one.

    Episodes of a seed are always the same. The dictionary `info` has `q`, `v`, the values of `sensors`, and `result`,
    a code of `jdyn.Result`.

    >>> environment = jdyn.environments.Environment(
    ...     jdyn.System(jdyn.load("cartpole"), actuators=[jdyn.actuators.Motor("rail", command_range=(-10.0, 10.0))]),
    ...     dt=0.02,
    ...     observe=lambda state, sensors: state.q,
    ...     reward=lambda before, action, after, sensors: jnp.cos(after.q[1]),
    ...     episode_length=500,
    ... )
    >>> env = jdyn.environments.to_gymnasium(environment)
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    >>> print(observation.shape, env.action_space.shape, terminated, truncated)
    (2,) (1,) False False

    Args:
        environment: The environment; of its functions only `start` may draw.
        observation_range: Lower and upper limit of observations, numbers or arrays, as far as they are known. They are
            declared, not enforced.
        normalized: Whether actions are numbers from -1 to 1, see `Environment.commands`. Otherwise they are commands or
            forces in units of their own.
        render_mode: `"rgb_array"` for pictures by `render`, or None.
        camera: As for `jdyn.animate`. If left out, it follows a base that moves freely, or else sees all that
            the joints can reach.
        size: Width and height of pictures [pixels].

    Raises:
        ValueError: if actions have no limits, though they are to be normalized, or an argument is wrong.
        ImportError: without Gymnasium, `pip install "jdyn[gymnasium]"`.
    """
    adapters = _adapters()
    adapter = adapters.Adapter(environment, observation_range, normalized, render_mode, camera, size)
    return adapters.SystemEnv(adapter)


def to_gymnasium_vector(
    environment: Environment,
    num_envs: int,
    *,
    observation_range: tuple[ArrayLike, ArrayLike] | None = None,
    normalized: bool = True,
    render_mode: str | None = None,
    camera: Camera | None = None,
    size: tuple[int, int] = (640, 480),
) -> gymnasium.vector.VectorEnv:
    """Many environments as a `gymnasium.vector.VectorEnv`, stepped as one batch.

    The next episode of a lane starts in the step that ends one (`AutoresetMode.SAME_STEP`); `info["final_obs"]` and
    `info["final_info"]` then say where that one has ended. Lane i with seed s has the episodes of `to_gymnasium` with
    seed s + i; `reset(options={"reset_mask": lanes})` starts some of them again.

    >>> environment = jdyn.environments.Environment(
    ...     jdyn.System(jdyn.load("pendulum")),
    ...     dt=0.02,
    ...     observe=lambda state, sensors: state.q,
    ...     reward=lambda before, action, after, sensors: jnp.cos(after.q[0]),
    ...     episode_length=100,
    ... )
    >>> envs = jdyn.environments.to_gymnasium_vector(environment, 8, normalized=False)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations, rewards, terminated, truncated, infos = envs.step(np.ones((8, 1)))
    >>> print(observations.shape, rewards.shape)
    (8, 1) (8,)

    Args:
        environment: The environment, as for `to_gymnasium`.
        num_envs: Number of lanes.
        observation_range: As for `to_gymnasium`.
        normalized: As for `to_gymnasium`.
        render_mode: As for `to_gymnasium`.
        camera: As for `to_gymnasium`.
        size: As for `to_gymnasium`.

    Raises:
        ValueError: as for `to_gymnasium`, or if there is no lane.
        ImportError: without Gymnasium, `pip install "jdyn[gymnasium]"`.
    """
    adapters = _adapters()
    adapter = adapters.Adapter(environment, observation_range, normalized, render_mode, camera, size)
    return adapters.SystemVectorEnv(adapter, num_envs)


def _adapters() -> types.ModuleType:
    try:
        from jdyn.environments import gymnasium_envs
    except ImportError as error:
        raise ImportError('Gymnasium is not installed; pip install "jdyn[gymnasium]"') from error
    return gymnasium_envs
