"""Environments as Gymnasium's own checks and vector environments want them."""

import sys

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import jdyn

pytestmark = pytest.mark.fast_compile

ENVIRONMENT = jdyn.environments.Environment(
    jdyn.System(
        jdyn.load("pendulum"),
        actuators=[jdyn.actuators.Motor("joint1", command_range=(-2.0, 2.0))],
        sensors=[jdyn.sensors.Gyro("gyro", "tip")],
    ),
    dt=0.05,
    observe=lambda state, sensors: jnp.concatenate([jnp.sin(state.q), jnp.cos(state.q), jnp.tanh(state.v)]),
    reward=lambda before, action, after, sensors: jnp.cos(after.q[0]) - action[0] ** 2,
    done=lambda state, sensors: state.q[0] > 0.8,
    start=lambda key: (jax.random.uniform(key, 1), jnp.ones(1)),
    episode_length=5,
)
RANGE = -1.0, 1.0


@pytest.mark.slow
def test_gymnasium_finds_nothing_to_complain_about():
    def entry(render_mode=None):
        return jdyn.environments.to_gymnasium(
            ENVIRONMENT, observation_range=RANGE, render_mode=render_mode, size=(64, 48)
        )

    gymnasium.register("jdyn/Pendulum-v0", entry_point=entry)
    try:
        env = gymnasium.make("jdyn/Pendulum-v0", render_mode="rgb_array")
        assert env.metadata["render_fps"] == 20
        check_env(env.unwrapped)
        env.reset()
        assert np.shape(env.render()) == (48, 64, 3)
    finally:
        del gymnasium.registry["jdyn/Pendulum-v0"]


@pytest.mark.slow
def test_lanes_of_a_vector_are_single_environments():
    lanes = 3
    vector = jdyn.environments.to_gymnasium_vector(ENVIRONMENT, lanes, observation_range=RANGE)
    singles = SyncVectorEnv(
        [lambda: jdyn.environments.to_gymnasium(ENVIRONMENT, observation_range=RANGE)] * lanes,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    assert vector.action_space == singles.action_space and vector.observation_space == singles.observation_space
    assert vector.metadata == singles.metadata
    assert data_equivalence(vector.reset(seed=7), singles.reset(seed=7))
    rng, ended = np.random.default_rng(0), 0
    for _ in range(12):
        actions = rng.uniform(-1, 1, size=(lanes, 1))
        found, expected = vector.step(actions), singles.step(actions)
        assert data_equivalence(found, expected)
        ended += np.sum(found[2]) + np.sum(found[3])
    assert ended > lanes
    assert data_equivalence(vector.reset(), singles.reset())
    assert data_equivalence(vector.reset(seed=[1, None, 2]), singles.reset(seed=[1, None, 2]))
    lane = np.array([False, True, False])
    again = [envs.reset(options={"reset_mask": lane}) for envs in (vector, singles)]
    assert data_equivalence(*again)


def test_actions_in_their_own_units():
    with jdyn.environments.to_gymnasium(ENVIRONMENT, normalized=False) as env:
        np.testing.assert_allclose([env.action_space.low, env.action_space.high], [[-2], [2]])
        env.reset(seed=0)
        _, reward, *_, info = env.step(np.array([1.5]))
        np.testing.assert_allclose(reward, np.cos(info["q"][0]) - 1.5**2)


def test_what_is_wrong_is_said():
    to_gymnasium = jdyn.environments.to_gymnasium
    with pytest.raises(ValueError, match=r"environment: expected a jdyn\.environments\.Environment"):
        to_gymnasium(ENVIRONMENT.system)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="render_mode: expected 'rgb_array' or None, got 'human'"):
        to_gymnasium(ENVIRONMENT, render_mode="human")
    with pytest.raises(ValueError, match=r"observation_range: expected two numbers or arrays of shape \(3,\)"):
        to_gymnasium(ENVIRONMENT, observation_range=(np.zeros(2), np.ones(2)))
    with pytest.raises(ValueError, match="num_envs: expected a positive whole number, got 0"):
        jdyn.environments.to_gymnasium_vector(ENVIRONMENT, 0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        to_gymnasium(ENVIRONMENT).step(np.zeros(1))


def test_gymnasium_need_not_be_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "jdyn.environments.gymnasium_envs", raising=False)
    monkeypatch.delattr(sys.modules["jdyn.environments"], "gymnasium_envs", raising=False)
    with pytest.raises(ImportError, match=r'Gymnasium is not installed; pip install "jdyn\[gymnasium\]"'):
        jdyn.environments.to_gymnasium(ENVIRONMENT)


def test_ends_of_episodes_are_seen_where_environments_reset_themselves():
    environment = jdyn.environments.Environment(
        jdyn.System(jdyn.load("pendulum")),
        0.05,
        observe=lambda state, sensors: state.q,
        reward=lambda before, action, after, sensors: 0.0,
        episode_length=2,
        auto_reset=True,
    )
    envs = jdyn.environments.to_gymnasium_vector(environment, 1, normalized=False)
    envs.reset(seed=0)
    envs.step(np.ones((1, 1)))
    observations, _, _, truncated, infos = envs.step(np.ones((1, 1)))
    assert truncated[0] and observations[0, 0] == 0 and infos["final_obs"][0][0] > 0
