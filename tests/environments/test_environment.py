"""Environments are steps of a system, in episodes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.array import where
from tests.errors import tol

pytestmark = pytest.mark.fast_compile

DT, HELD, LENGTH, LANES = 0.02, 3, 5, 4
# Of the solvers, the one whose programs are compiled first.
SOLVER = jdyn.solvers.SemiImplicitEuler()


def push(t, q, v):
    return jnp.sin(3 * t)[None]


def observe(state, sensors):
    return jnp.concatenate([jnp.sin(state.q), jnp.cos(state.q), state.v, sensors["gyro"]])


def reward(before, action, after, sensors):
    return jnp.cos(after.q[0]) - 0.1 * action[0] ** 2 - before.v[0] ** 2 + sensors["gyro"][1]


def done(state, sensors):
    return state.q[0] < 1.15


def start(key):
    return jax.random.uniform(key, 1, minval=1.3, maxval=1.68), jnp.array([0.5])


SYSTEM = jdyn.System(
    jdyn.load("pendulum"),
    actuators=[jdyn.actuators.Motor("joint1", command_range=(-1.0, 3.0))],
    sensors=[jdyn.sensors.Gyro("gyro", "tip")],
    controller=push,
)
ONCE = jdyn.environments.Environment(
    SYSTEM, DT, observe, reward, done, start, steps_per_action=HELD, episode_length=LENGTH, solver=SOLVER
)
AGAIN = dataclasses.replace(ONCE, auto_reset=True)
KEYS, NONE = jax.random.split(jax.random.key(0), LANES), jnp.zeros(LANES, bool)
ACTIONS = jax.random.uniform(jax.random.key(1), (12, LANES, 1), minval=-1.0, maxval=3.0)

reset_all = jax.jit(jax.vmap(ONCE.reset))
step_all = jax.jit(jax.vmap(ONCE.step))


@jax.jit
def episodes(keys, actions):
    """Rollouts that start again."""

    def one(now, action):
        now = jax.vmap(AGAIN.step)(now, action)
        return now, now

    first = jax.vmap(AGAIN.reset)(keys)
    return first, jax.lax.scan(one, first, actions)[1]


choose = jax.jit(jax.vmap(where))


def row(tree, number):
    return jax.tree.map(lambda x: x[number], tree)


def numbers(tree):
    """Leaves as NumPy's arrays, keys as the numbers that they are made of."""

    def number(x):
        return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)

    return jax.tree.map(number, tree)


def assert_close(one, other):
    for x, y in zip(jax.tree.leaves(numbers(one)), jax.tree.leaves(numbers(other)), strict=True):
        np.testing.assert_allclose(x, y, atol=tol(np.float64, 1e3))


def test_an_action_is_so_many_steps_of_the_system():
    act, step = jax.jit(ONCE.step), jax.jit(lambda *x, t: SYSTEM.step(*x, t=t, solver=SOLVER))
    now = ONCE.reset(KEYS[0])
    assert_close(now.state, SYSTEM.state(*start(jax.random.split(KEYS[0])[1])))
    for number in range(2):
        action, state = ACTIONS[number, 0], now.state
        for held in range(HELD):
            state, info = step(state, action, DT, t=(number * HELD + held) * DT)
        before, now = now, act(now, action)
        assert_close((now.state, now.sensors), (state, info.sensors))
        assert_close(now.observation, observe(state, info.sensors))
        assert_close(now.final_observation, now.observation)
        assert_close(now.reward, reward(before.state, action, state, info.sensors))
        assert (now.steps, now.result, bool(now.done)) == (number + 1, jdyn.Result.success, False)


@pytest.mark.slow
def test_episodes_start_again_where_they_end():
    first, found = episodes(KEYS, ACTIONS)
    now = reset_all(KEYS)
    assert_close(first, now)
    for number, action in enumerate(ACTIONS):
        ended = step_all(dataclasses.replace(now, terminated=NONE, truncated=NONE), action)
        begun = dataclasses.replace(
            reset_all(ended.key),
            final_observation=ended.observation,
            **{name: getattr(ended, name) for name in ("reward", "terminated", "truncated", "result")},
        )
        now = choose(ended.done, begun, ended)
        assert_close(row(found, number), now)
        # Without `auto_reset`, episodes stay as they have ended.
        stayed = dataclasses.replace(ended, reward=jnp.zeros(LANES))
        assert_close(choose(ended.done, step_all(ended, action), stayed), stayed)
    assert found.terminated.sum() > 1 and found.truncated.sum() > 1
    assert found.steps.max() == LENGTH - 1


def test_the_same_key_gives_the_same_episodes():
    found, again = (jax.tree.leaves(numbers(episodes(KEYS, ACTIONS))) for _ in range(2))
    assert all(np.array_equal(x, y) for x, y in zip(found, again, strict=True))
    assert len(np.unique(reset_all(KEYS).state.q)) == LANES


def test_a_failed_step_ends_its_episode_alone():
    _, good = episodes(KEYS, ACTIONS)
    first, found = episodes(KEYS, ACTIONS.at[0, 1].set(jnp.nan))
    lanes = np.array([0, 2, 3])
    assert_close(jax.tree.map(lambda x: x[:, lanes], found), jax.tree.map(lambda x: x[:, lanes], good))
    failed = jax.tree.map(lambda x: x[0, 1], found)
    assert failed.truncated and not failed.terminated and failed.result == jdyn.Result.nonfinite
    assert_close(failed.final_observation, first.observation[1])
    assert failed.steps == 0 and found.steps[1, 1] == 1 and found.result[1, 1] == jdyn.Result.success
    states = [found.state, found.sensors, found.observation, found.final_observation]
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(states))


@pytest.mark.slow
def test_returns_have_derivatives():
    """Also by numbers of the system, which lanes of a batch may have of their own."""

    def earned(mass, actions):
        system = jdyn.vary(SYSTEM, {"body:link1.mass": mass})
        environment = dataclasses.replace(AGAIN, system=system, done=None)

        def one(now, action):
            now = environment.step(now, action)
            return now, now.reward

        return jax.lax.scan(one, environment.reset(KEYS[0]), actions)[1]

    actions, mass, h = ACTIONS[:LENGTH, 0], 1.2, 1e-6
    slopes = jax.jit(jax.grad(lambda *x: earned(*x).sum(), argnums=(0, 1)))(mass, actions)
    masses = jnp.array([mass - h, mass + h, mass, mass])
    steps = jnp.zeros((4, *actions.shape)).at[2, 1, 0].add(-h).at[3, 1, 0].add(h)
    low_mass, high_mass, low, high = jax.jit(jax.vmap(earned))(masses, actions[None] + steps).sum(axis=1)
    np.testing.assert_allclose(slopes[0], (high_mass - low_mass) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(slopes[1][1, 0], (high - low) / (2 * h), rtol=1e-6)
    assert np.all(slopes[1] != 0)


def test_numbers_from_policies_become_commands():
    np.testing.assert_allclose(ONCE.action_range, [[-1, 3]])
    np.testing.assert_allclose([ONCE.commands([u])[0] for u in (-2.0, -1.0, 0.0, 1.0)], [-1, -1, 1, 3])
    cart = jdyn.environments.Environment(jdyn.System(jdyn.load("cartpole")), DT, observe, reward)
    np.testing.assert_allclose(cart.action_range, [[-10, 10], [-np.inf, np.inf]])
    with pytest.raises(ValueError, match=r"action_range: there are no limits of hinge; let jdyn\.actuators act"):
        cart.commands([0.0, 0.0])
    with pytest.raises(ValueError, match=r"u: expected shape \(1,\), got \(2,\)"):
        ONCE.commands([0.0, 0.0])


def manipulator():
    """A ball joint and two hinges with servos of three, two and one inputs, the latter two behind another part."""
    builder = jdyn.Builder("manipulator")
    builder.add_link("arm", jdyn.Ball(), joint_name="shoulder", mass=1.0, com=(0, 0, -0.2), inertia=0.1)
    for name, parent in (("elbow", "arm"), ("wrist", "elbow")):
        builder.add_link(name, jdyn.Revolute((0, 1, 0)), parent=parent, mass=0.5, inertia=0.05,
                         placement=jdyn.pose((0, 0, -0.3)))  # fmt: skip
    inputs = "position", "velocity"
    pid = jdyn.actuators.PIDServo(
        "elbow", kp=5.0, ki=1.0, kd=0.5, inputs=inputs, command_range=[(-1.0, 2.0), (-3.0, 3.0)]
    )
    servo = jdyn.actuators.PositionServo("wrist", kp=2.0, kd=0.1, command_range=(-0.5, 4.0))
    orientation = jdyn.transmissions.BallOrientation("shoulder")
    return jdyn.System(
        builder.build(),
        actuators=[
            jdyn.actuators.OrientationServo(orientation, kp=8.0, kd=1.0, command_range=(-0.2, 0.2), name="shoulder"),
            jdyn.actuators.ElasticDrive(pid, inertia=0.01, stiffness=50.0, damping=1.0),
            jdyn.actuators.DCMotor("wrist", 1.0, 0.5, servo=servo, command_range=(-2.0, 1.0)),
        ],
    )


@pytest.mark.slow
def test_servos_of_several_inputs_take_an_action_each():
    system, dt = manipulator(), 0.01
    environment = jdyn.environments.Environment(
        system, dt, lambda state, sensors: state.v, lambda *given: -given[1] @ given[1],
        episode_length=3, auto_reset=True, solver=SOLVER,
    )  # fmt: skip
    ranges = np.array([[-0.2, 0.2]] * 3 + [[-1, 2], [-3, 3], [-0.5, 1]])
    np.testing.assert_array_equal(environment.action_range, ranges)
    np.testing.assert_allclose(environment.commands(jnp.linspace(-1, 1, 6)), np.array(
        [low + (high - low) * i / 5 for i, (low, high) in enumerate(ranges)]
    ))  # fmt: skip
    actions = jax.random.uniform(jax.random.key(3), (3, 6), minval=ranges[:, 0], maxval=ranges[:, 1])
    now, state = environment.reset(jax.random.key(0)), system.state()
    for action in actions[:2]:
        now = environment.step(now, action)
        state, _ = system.step(state, action, dt, solver=SOLVER)
    # The elbow's commands are position and velocity, the shoulder's a rotation vector.
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14), now.state, state)
    np.testing.assert_allclose(now.reward, -actions[1] @ actions[1], rtol=1e-12)
    beyond = environment.step(now, jnp.full(6, 9.0)), environment.step(now, jnp.asarray(ranges[:, 1]))
    jax.tree.map(np.testing.assert_array_equal, *(each.state for each in beyond))
    assert bool(beyond[0].done)
    assert float(beyond[0].state.q[0]) == 1.0  # servos and the arm start again
    slopes = jax.grad(lambda action: jnp.sum(environment.step(environment.reset(KEYS[0]), action).state.v))(actions[0])
    assert np.all(np.isfinite(slopes))
    free = dataclasses.replace(environment, system=system.but(actuators=(
        dataclasses.replace(system.actuators[0], command_range=None), *system.actuators[1:]
    )))  # fmt: skip
    with pytest.raises(ValueError, match=r"no limits of shoulder\.x, shoulder\.y, shoulder\.z; give them a comm"):
        free.commands(jnp.zeros(6))
    with pytest.raises(ValueError, match=r"action: expected shape \(6,\), a command for each actuator"):
        environment.step(now, jnp.zeros(3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"system": SYSTEM.model}, r"system: expected a jdyn\.System"),
        ({"dt": 0.0}, "dt: expected a positive number, got 0"),
        ({"observe": None}, "observe: expected a function, got None"),
        ({"done": True}, "done: expected a function, got True"),
        ({"steps_per_action": 0}, "steps_per_action: expected a positive whole number, got 0"),
        ({"episode_length": 2.5}, r"episode_length: expected a positive whole number, got 2\.5"),
    ],
)
def test_parts_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(ONCE, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": lambda key: jnp.zeros(1)}, "start: expected a pair of q and v"),
        ({"start": lambda key: (jnp.zeros(2), jnp.zeros(1))}, "q: "),
        ({"observe": lambda state, sensors: {"q": state.q}}, "observe: expected an array"),
        ({"reward": lambda *_: jnp.zeros(1)}, r"reward: expected a number, got shape \(1,\)"),
        ({"done": lambda *_: 0.0}, "done: expected True or False, got float64 of shape"),
    ],
)
def test_what_functions_give_is_checked(changes, message):
    environment = dataclasses.replace(ONCE, **changes)
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda key: environment.step(environment.reset(key), jnp.zeros(1)), KEYS[0])


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"key: expected one such as jax\.random\.key\(0\), got 0"):
        ONCE.reset(0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"env_state: expected one of Environment\.reset"):
        ONCE.step(SYSTEM.state(), jnp.zeros(1))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"action: expected shape \(1,\), a command for each actuator"):
        ONCE.step(ONCE.reset(KEYS[0]), jnp.zeros(2))
