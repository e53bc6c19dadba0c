"""Environments for reinforcement learning: a system, what is seen of it, and what earns a reward.

>>> swing = jdyn.environments.Environment(
...     jdyn.System(jdyn.load("pendulum"), actuators=[jdyn.actuators.Motor("joint1", command_range=(-2.0, 2.0))]),
...     dt=0.05,
...     observe=lambda state, sensors: jnp.concatenate([jnp.cos(state.q), jnp.sin(state.q), state.v]),
...     reward=lambda before, action, after, sensors: -jnp.cos(after.q[0]) - 0.01 * action[0] ** 2,
...     episode_length=200,
... )
>>> states = jax.vmap(swing.reset)(jax.random.split(jax.random.key(0), 64))
>>> states = jax.vmap(swing.step)(states, jnp.ones((64, 1)))
>>> print(states.observation.shape, states.reward.shape)
(64, 3) (64,)
"""

from jdyn.environments import Environment as Environment
from jdyn.environments import EnvState as EnvState
from jdyn.environments import to_gymnasium as to_gymnasium
from jdyn.environments import to_gymnasium_vector as to_gymnasium_vector
