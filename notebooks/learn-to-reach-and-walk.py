# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   language_info:
#     name: python
# ---

# %% [markdown]
# # Learning to reach, and to walk
#
# Two tasks for reinforcement learning: an arm reaches for what it is shown, and a quadruped walks. Both are a
# `jdyn.environments.Environment`, whose functions run in batches; what learns is an evolution strategy of the library
# `cma`, which needs returns alone. Gradients are there as well, see "Train a policy" in the guide. All of it takes 75 s
# of processor time, a third of which is compiling.

# %%
import dataclasses

import cma
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jdyn

SEEDS, POPULATION = 3, 12


def earned(environment, key, policy):
    """The return of an episode, and the states in it; `policy` gives the action after an episode so far."""

    def one(now, _):
        now = environment.step(now, policy(now))
        return now, (now.reward, now.state)

    _, (rewards, states) = jax.lax.scan(one, environment.reset(key), length=environment.episode_length)
    return rewards.sum(), states


# %% [markdown]
# ## Evolution
#
# Covariance matrix adaptation (Hansen, 2016) draws policies about a mean, and moves the mean to those that earn more.
# Three strategies, which differ in their random numbers, run side by side: a generation of all is one batch.


# %%
def evolved(returns, size, generations):
    """The mean policy of each seed in the end, and its mean returns by generation."""
    strategies = [
        cma.CMAEvolutionStrategy(
            np.zeros(size),
            0.5,
            {"randn": np.random.RandomState(seed).randn, "seed": np.nan, "popsize": POPULATION, "verbose": -9},
        )
        for seed in range(SEEDS)
    ]
    curves = []
    for key in jax.random.split(jax.random.key(0), generations):
        policies = np.array([strategy.ask() for strategy in strategies])
        found = np.array(returns(jnp.asarray(policies.reshape(-1, size)), key)).reshape(SEEDS, POPULATION)
        for strategy, drawn, of_each in zip(strategies, policies, found, strict=True):
            strategy.tell(list(drawn), -of_each)
        curves.append(found.mean(axis=1))
    return jnp.array([strategy.mean for strategy in strategies]), np.array(curves)


def drawn_over_generations(curves):
    """Returns of all seeds over the generations."""
    named = {f"seed {seed}": curve for seed, curve in enumerate(curves.T)}
    figure = jdyn.plots.curves(np.arange(len(curves)), named, "generation", "mean return").figure
    figure.set_size_inches(5, 3)
    return figure


def picture(pixels):
    """A figure as large as its pixels, without axes."""
    height, width, _ = pixels.shape
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100)
    figure.add_axes((0, 0, 1, 1)).imshow(pixels)
    figure.axes[0].axis("off")
    plt.close(figure)
    return figure


# %% [markdown]
# ## An arm reaches
#
# A Panda whose weight is compensated and whose joints are damped. It sees where the goal is from its flange, and
# chooses the torques of its seven joints. The reward is the distance to the goal, with a minus. The goal is a number of
# the system like any other, so that each lane has its own.

# %%
panda = jdyn.load("panda")
home = jnp.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
calm = jdyn.GravityCompensation(panda) + jdyn.PD(panda, home, kp=0.0, kd=20.0)
goal = jdyn.sensors.FramePosition("goal", "world", pose=jdyn.pose((0.5, 0.0, 0.5)), reference="flange")
reach = jdyn.environments.Environment(
    jdyn.System(panda, controller=calm, sensors=[goal]),
    dt=0.02,
    observe=lambda state, sensors: sensors["goal"],
    reward=lambda before, action, after, sensors: -jnp.linalg.norm(sensors["goal"]),
    start=lambda key: (home, jnp.zeros(7)),
    episode_length=75,
)
middle = jdyn.frame_pose(panda, home, "flange").translation


def goals(key, number):
    """Goals up to 20 cm away from the flange along each axis."""
    return middle + jax.random.uniform(key, (number, 3), minval=-0.2, maxval=0.2)


def reached(policy, place):
    """Return and states of one episode, by a linear policy of 7 times 3 numbers."""
    system = jdyn.vary(reach.system, {"sensors.0.pose.translation": place})
    torques = policy.reshape(7, 3)
    return earned(
        dataclasses.replace(reach, system=system),
        jax.random.key(0),
        lambda now: reach.commands(jnp.tanh(torques @ now.observation)),
    )


reaches = jax.jit(jax.vmap(jax.vmap(reached, (None, 0))))  # policies, and 8 goals for each


def reach_returns(policies, key):
    places = jnp.broadcast_to(goals(key, 8), (len(policies), 8, 3))
    return reaches(policies, places)[0].mean(axis=1)


reaching, reach_curves = evolved(reach_returns, size=21, generations=30)
drawn_over_generations(reach_curves)

# %% [markdown]
# The mean policies and 96 goals that they have not seen, and six of these in a picture: the arm at the end of each
# episode.

# %%
fresh = jnp.tile(goals(jax.random.key(1), 96).reshape(POPULATION, 8, 3), (SEEDS, 1, 1))
last = reaches(jnp.repeat(reaching, POPULATION, axis=0), fresh)[1].q[:, :, -1]
flange = jax.jit(jax.vmap(jax.vmap(lambda q: jdyn.frame_pose(panda, q, "flange").translation)))(last)
misses = np.linalg.norm(flange - fresh, axis=-1).reshape(SEEDS, -1)
for seed, of_each in enumerate(misses):
    print(f"seed {seed}: median {1e3 * np.median(of_each):.1f} mm, largest {1e3 * of_each.max():.1f} mm")
picture(jdyn.snapshot(panda, last[0, :6], size=(320, 240)))
# %% [markdown]
# ## A quadruped walks
#
# A Mini Cheetah with position servos of limited torque, on the ground. Diagonal legs move together; of this trot six
# numbers are to be learned: how often and how far the legs swing, how high and when they are lifted, how far they lean,
# and how deep the trunk hangs. With zeros it stands still. An episode takes 2.4 s, in steps of 5 ms with convex
# contact; it ends where the trunk falls. The reward is the way forward, less what the trunk shakes, and a metre for a
# fall.

# %%
CROUCH = jnp.array([-0.8, 1.6])  # hip and knee
TROT = jnp.array([0.0, jnp.pi, jnp.pi, 0.0])  # front right and left, hind right and left
BODY = 0.38  # length of the trunk [m]
dog = jdyn.with_ground(jdyn.load("quadruped"))
servos = [
    jdyn.actuators.PositionServo(name, kp=60.0, kd=3.0, force_range=(-effort, effort))
    for name, effort in zip(dog.joint_names[1:], np.array(dog.limits.effort)[6:], strict=True)
]
stand = dog.neutral().at[2].set(0.3).at[7:].set(jnp.tile(jnp.array([0.0, *CROUCH]), 4))


def fallen(state, sensors):
    _, x, y, _ = state.q[3:7]
    return (state.q[2] < 0.15) | (x**2 + y**2 > 0.25)  # low, or tilted by more than 60 degrees


def advance(before, action, after, sensors):
    shaking = after.v[:3] @ after.v[:3]
    return after.q[0] - before.q[0] - 4e-4 * shaking - fallen(after, sensors)


walk = jdyn.environments.Environment(
    jdyn.System(dog, actuators=servos, contact=jdyn.ConvexContact()),
    dt=0.005,
    steps_per_action=4,
    observe=lambda state, sensors: state.q,
    reward=advance,
    done=fallen,
    start=lambda key: (stand.at[7:].add(0.02 * jax.random.normal(key, 12)), jnp.zeros(18)),
    episode_length=120,
)


def gait(policy, t):
    """Targets of the twelve servos."""
    often, far, high, when, lean, deep = jnp.tanh(policy)
    phase = 2 * jnp.pi * 1.25 * 2**often * t + TROT
    hip = CROUCH[0] + 0.3 * lean + 0.5 * far * jnp.sin(phase)
    knee = CROUCH[1] + 0.4 * deep + 0.8 * high * jnp.maximum(jnp.cos(phase + jnp.pi / 2 * when), 0)
    return jnp.stack([jnp.zeros(4), hip, knee], axis=1).ravel()


def walked(policy, key):
    """Return and states of one episode."""
    return earned(walk, key, lambda now: gait(policy, 0.02 * now.steps))


walks = jax.jit(jax.vmap(walked))  # policies, and a start for each


def walk_returns(policies, key):
    return walks(policies, jnp.broadcast_to(key, len(policies)))[0]


walking, walk_curves = evolved(walk_returns, size=6, generations=40)
drawn_over_generations(walk_curves)

# %% [markdown]
# The mean policies and twelve starts that they have not seen: how far they walk, in lengths of the trunk. Below is the
# policy that walks farthest, every 0.4 s.

# %%
starts = jnp.tile(jax.random.split(jax.random.key(1), POPULATION), SEEDS)
paths = walks(jnp.repeat(walking, POPULATION, axis=0), starts)[1].q.reshape(SEEDS, POPULATION, -1, dog.nq)
lengths = np.array(paths[:, :, -1, 0]) / BODY
for seed, of_each in enumerate(lengths):
    print(f"seed {seed}: median {np.median(of_each):.1f}, from {of_each.min():.1f} to {of_each.max():.1f}")
farthest = np.argmax(np.median(lengths, axis=1))
side = jdyn.Camera(azimuth=-1.4, elevation=0.25)
picture(jdyn.snapshot(dog, paths[farthest, 0, ::-20], camera=side, size=(640, 180)))
