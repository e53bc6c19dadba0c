"""Policies learn in environments."""

import jax
import jax.numpy as jnp
import optax
import pytest

import jdyn

BALANCE = jdyn.environments.Environment(
    jdyn.System(jdyn.load("cartpole"), actuators=[jdyn.actuators.Motor("rail", command_range=(-10.0, 10.0))]),
    dt=0.02,
    observe=lambda state, sensors: jnp.concatenate([state.q, state.v]),
    reward=lambda before, action, after, sensors: 1.0,
    done=lambda state, sensors: (jnp.abs(state.q[0]) > 2.4) | (jnp.abs(state.q[1]) > 0.2),
    start=lambda key: tuple(jax.random.uniform(key, (2, 2), minval=-0.05, maxval=0.05)),
    episode_length=200,
)
LANES, UPDATES, NOISE = 64, 30, 0.5


def rollout(policy, key):
    """Observations, actions from -1 to 1, and rewards of an episode a lane, time first."""
    start, noise = jax.random.split(key)
    noise = NOISE * jax.random.normal(noise, (BALANCE.episode_length, LANES, 1))

    def one(now, noise):
        u = now.observation @ policy + noise
        after = jax.vmap(BALANCE.step)(now, jax.vmap(BALANCE.commands)(u))
        return after, (now.observation, u, after.reward)

    first = jax.vmap(BALANCE.reset)(jax.random.split(start, LANES))
    return jax.lax.scan(one, first, noise)[1]


@jax.jit
@jax.vmap
def learned(key):
    """Mean lengths of episodes by the number of updates, by the likelihood ratio alone (Williams, 1992)."""
    optimizer = optax.adam(0.1)

    def update(now, key):
        policy, memory = now
        observations, u, rewards = rollout(policy, key)
        to_come = jnp.cumsum(rewards[::-1], axis=0)[::-1]
        advantages = (to_come - to_come.mean(axis=1, keepdims=True)) * (rewards > 0)

        def loss(policy):
            deviations = jnp.sum((u - observations @ policy) ** 2, axis=-1) / (2 * NOISE**2)
            return jnp.mean(advantages / (1 + advantages.std()) * deviations)

        updates, memory = optimizer.update(jax.grad(loss)(policy), memory)
        return (optax.apply_updates(policy, updates), memory), rewards.sum(axis=0).mean()

    policy = jnp.zeros((4, 1))
    return jax.lax.scan(update, (policy, optimizer.init(policy)), jax.random.split(key, UPDATES))[1]


@pytest.mark.exhaustive
def test_a_policy_learns_to_balance_a_pole(ordinary_promotion):
    lengths = learned(jax.random.split(jax.random.key(0), 3))
    assert lengths.shape == (3, UPDATES)
    assert (lengths[:, 0] < 50).all() and (lengths[:, -1] > 150).all()
