"""Environments for reinforcement learning."""

from jdyn.environments.environment import Environment as Environment
from jdyn.environments.environment import EnvState as EnvState
from jdyn.environments.to_gymnasium import to_gymnasium as to_gymnasium
from jdyn.environments.to_gymnasium import to_gymnasium_vector as to_gymnasium_vector
