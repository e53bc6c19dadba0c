"""Motions that turn by more than rotation vectors tell, π: rows between steps, and steps themselves."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.simulation.interpolation import hermite

pytestmark = pytest.mark.fast_compile

COM = np.array([0.1, -0.05, 0.2])
G = np.array([0, 0, -9.81])


def thrown():
    """A body whose axes of inertia are those of its frame, far from the centre of mass, with a ball joint in there."""
    builder = jdyn.Builder("thrown")
    builder.add_link("body", jdyn.Free(), mass=1.3, com=COM, inertia=(0.03, 0.03, 0.03))
    builder.add_link("ball", jdyn.Ball(), parent="body", placement=COM, mass=0.2, inertia=(1e-3,) * 3)
    return builder.build()


def flight(spin, own, times):
    """Rows of that body and of the ball in it, which spin at constant angular velocities: closed form."""
    drift = np.array([0.5, 2.0, 4.0])
    body, ball = (Rotation.from_rotvec(np.outer(times, w)) for w in (spin, own))
    along = drift + np.outer(times, G)
    place = np.outer(times, drift) + np.outer(times**2 / 2, G)
    attitudes = [turned.as_quat(scalar_first=True) for turned in (body, ball)]
    spins = [np.broadcast_to(w, (len(times), 3)) for w in (spin, own)]
    q = np.concatenate([place - body.apply(COM), *attitudes], axis=1)
    v = np.concatenate([spins[0], body.inv().apply(along) - np.cross(spin, COM), spins[1]], axis=1)
    return q, v


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_a_constant_spin_is_exact_between_rows_however_far_it_turns(dtype):
    model, axis = thrown().astype(dtype), np.array([2.0, -1.0, 2.0]) / 3
    between = jax.jit(jax.vmap(lambda ts, q, v, t: hermite(model, ts, q, v, t), (None, 0, 0, None)))
    between = jax.jit(jax.vmap(between, (None, None, None, 0)))
    speeds = np.array([0.5, 2.0, np.pi, 2 * np.pi, 20.0, 200.0])
    rows, inside = np.array([0.0, 1.0, 2.5]), np.linspace(0, 2.5, 23)
    motions = [[flight(s * axis, -1.7 * s * axis[::-1], t) for s in speeds] for t in (rows, inside)]
    (q, v), (q_true, v_true) = (tuple(jnp.array(x, dtype) for x in zip(*m, strict=True)) for m in motions)
    q_found, v_found = (jnp.moveaxis(x, 0, 1) for x in between(jnp.array(rows, dtype), q, v, jnp.array(inside, dtype)))
    apart = jax.vmap(jax.vmap(model.difference))(q_true, q_found)
    # Angles are rounded in proportion to their size.
    allowed = 20 * float(jnp.finfo(dtype).eps) * (1 + 4 * speeds)
    assert np.all(np.max(np.abs(apart), axis=(1, 2)) < allowed)
    assert np.all(np.max(np.abs(v_found - v_true), axis=(1, 2)) < allowed * (1 + speeds))


@pytest.mark.parametrize(
    "dtype",
    [pytest.param(jnp.float64, marks=pytest.mark.slow), pytest.param(jnp.float32, marks=pytest.mark.exhaustive)],
)
def test_rows_within_steps_of_a_ball_that_rolls(dtype):
    """It stays on the ground, turns as it rolls and keeps its energy in every row, though it turns by more than π in a
    step."""
    builder = jdyn.Builder("r")
    builder.add_link("b", jdyn.Free(), mass=1.0, inertia=(4e-3,) * 3)
    builder.add_shape("b", "sphere", 0.1, role="collision", touching=jdyn.contact.Touching(friction=0.3))
    model = jdyn.with_ground(builder.build(), friction=0.3).astype(dtype)
    q0, speeds = model.neutral().at[2].set(0.0999), np.array([2.0, 20.0, 200.0])
    # It rolls on the middle of where shapes overlap.
    v0 = jnp.array(np.outer(speeds, [0, 1, 0, 0.09995, 0, 0]), dtype)
    motion = jax.vmap(lambda v0: jdyn.simulate(model, q0, v0, 0.6, contact=jdyn.ConvexContact()))(v0)
    steps = np.asarray(motion.stats["accepted_steps"])
    assert steps[-1] * np.pi < speeds[-1] * 0.6
    assert jnp.max(jnp.abs(motion.q[:, :, 2] - 0.0999)) < 1e-4
    energy = jax.vmap(lambda motion: motion.energy)(motion)
    assert jnp.max(jnp.abs(energy / energy[:, :1] - 1)) < 1e-3
    angles = speeds[:, None] * np.linspace(0, 0.6, 101)
    turned = np.stack([np.cos(angles / 2), 0 * angles, np.sin(angles / 2), 0 * angles], axis=-1)
    along = 1 - np.abs(np.sum(np.asarray(motion.q[:, :, 3:]) * turned, axis=-1))
    # Half the square of half the angle between them, at 100 times the tolerance.
    assert np.max(along) < 0.01**2 / 8


def tumbling():
    """A body that turns about its middle axis, and over again and again: the angular momentum has a length of 2."""
    builder = jdyn.Builder("tumbling", gravity=(0, 0, 0))
    builder.add_link("body", jdyn.Free(), mass=1.0, inertia=(1.0, 2.0, 3.0))
    return builder.build(), jnp.array([0.01, 1.0, 0, 0, 0, 0])


LONG_STEPS = [jdyn.solvers.BulirschStoer(), jdyn.solvers.BaderDeuflhard()]
OTHERS = [
    jdyn.solvers.Automatic(), jdyn.solvers.AdamsBashforthMoulton(), jdyn.solvers.CashKarp(), jdyn.solvers.ROSJ43(),
    jdyn.solvers.Rodas5P(), diffrax.Tsit5(),
    diffrax.Dopri8(), diffrax.Kvaerno5(), diffrax.HalfSolver(jdyn.solvers.ImplicitMidpoint()),
    diffrax.HalfSolver(jdyn.solvers.StormerVerlet()),
]  # fmt: skip
TYPES = [(jnp.float64, 1e-6), (jnp.float32, 1e-5)]


def named(solver):
    return type(solver).__name__ if isinstance(solver, diffrax.AbstractSolver) else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "dtype", "tolerance"),
    [
        (LONG_STEPS[0], *TYPES[0]),
        (LONG_STEPS[1], *TYPES[1]),
        pytest.param(LONG_STEPS[0], *TYPES[1], marks=pytest.mark.exhaustive),
        pytest.param(LONG_STEPS[1], *TYPES[0], marks=pytest.mark.exhaustive),
        *[pytest.param(solver, *kind, marks=pytest.mark.exhaustive) for solver in OTHERS for kind in TYPES],
    ],
    ids=named,
)
def test_no_step_leaves_its_chart(solver, dtype, tolerance):
    """Steps beyond a whole turn changed the length of the angular momentum by up to 3.4."""
    model, v0 = tumbling()
    model, v0 = model.astype(dtype), v0.astype(dtype)
    steps = diffrax.SaveAt(steps=True)
    motion = jdyn.simulate(model, model.neutral(), v0, 300.0, solver=solver, saveat=steps)
    count = int(motion.stats["accepted_steps"])
    spin = np.asarray(motion.v[:count, :3])
    momentum = np.linalg.norm(spin * [1.0, 2.0, 3.0], axis=1)
    assert np.max(np.abs(momentum / 2 - 1)) < 100 * tolerance
    assert np.max(np.diff(motion.ts[:count]) * np.linalg.norm(spin[:-1], axis=1)) < np.pi


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver",
    [diffrax.Tsit5(), pytest.param(jdyn.solvers.AdamsBashforthMoulton(), marks=pytest.mark.exhaustive)],
    ids=named,
)
def test_constant_steps_that_turn_too_far_end_with_a_code(solver):
    model, v0 = tumbling()

    def run(dt):
        return jdyn.simulate(
            model, model.neutral(), v0, 40.0, solver=solver, stepsize_controller=diffrax.ConstantStepSize(), dt0=dt,
            saveat=diffrax.SaveAt(t1=True), throw=False,
        )  # fmt: skip

    motion = jax.vmap(run)(jnp.array([0.05, 4.0, 8.0]))
    assert motion.result.tolist() == [jdyn.Result.success, jdyn.Result.turn, jdyn.Result.turn]
    assert motion.stats["accepted_steps"][1:].tolist() == [0, 0]
    assert motion.stats["rejected_steps"][1:].tolist() == [1, 1]


# In single precision diffrax' root finder takes rounding of what has moved far for divergence, see below.
SLOW_ROOTS = [solver for solver in OTHERS if isinstance(solver, diffrax.Kvaerno5)]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("solver", "dtype", "tolerance"),
    [
        pytest.param(solver, *kind)
        for solver in (*LONG_STEPS, *OTHERS)
        for kind in TYPES
        if not (solver in SLOW_ROOTS and kind[0] == jnp.float32)
    ],
    ids=named,
)
def test_rows_are_as_exact_as_ends_of_steps(solver, dtype, tolerance):
    """Of a body on a free joint and of one on a ball joint in there, which spin three times round and more, at any
    speed; errors of both grow from step to step, those of rows not beyond those of ends."""
    model, turned = thrown().astype(dtype), np.linspace(0.2, 20, 59)
    axis = np.array([2.0, -1.0, 2.0]) / 3

    @jax.vmap
    def run(q0, v0, end):
        rows = diffrax.SaveAt(ts=jnp.array(turned, dtype) / 20 * end, steps=True)
        return jdyn.simulate(model, q0, v0, end, solver=solver, saveat=rows)

    speeds = np.array([2.0, 20.0, 200.0])
    starts = zip(*(flight(s * axis, -1.7 * s * axis[::-1], np.zeros(1)) for s in speeds), strict=True)
    motions = run(*(jnp.array(np.stack(x)[:, 0], dtype) for x in starts), jnp.array(20.1 / speeds, dtype))
    for speed, motion in zip(speeds, (jax.tree.map(lambda x, i=i: x[i], motions) for i in range(3)), strict=True):
        count = int(np.sum(np.isfinite(motion.ts)))
        ts = np.asarray(motion.ts[:count], float)
        q, v = (jnp.array(x, dtype) for x in flight(speed * axis, -1.7 * speed * axis[::-1], ts))
        apart = jax.vmap(model.difference)(q, motion.q[:count])
        apart = np.concatenate([apart, np.asarray(motion.v[:count] - v) / (1 + speed)], axis=1)
        error = np.max(np.abs(apart), axis=1)
        within = np.min(np.abs(ts[:, None] * speed - turned * 20.1 / 20), axis=1) < 1e-3
        # Tolerances are relative to how far it falls.
        allowed = 100 * tolerance * max(1, np.max(np.abs(q)))
        assert np.max(error[within]) < np.max(error[~within]) + allowed


@pytest.mark.exhaustive
def test_diffrax_alone_uses_up_its_steps_with_kvaerno5_in_single_precision():
    """The motion of `test_rows_are_as_exact_as_ends_of_steps` by diffrax' own loop, with quaternions as coordinates."""
    model = thrown().astype(jnp.float32)
    axis = np.array([2.0, -1.0, 2.0]) / 3
    y0 = tuple(jnp.array(x[0], jnp.float32) for x in flight(2 * axis, -3.4 * axis[::-1], np.zeros(1)))

    def rates(t, y, args):
        q, v = y
        return model.rate(q, v), jdyn.forward_dynamics(model, model.normalize(q), v, jnp.zeros_like(v))

    motion = diffrax.diffeqsolve(
        diffrax.ODETerm(rates), diffrax.Kvaerno5(), *jnp.array([0, 10.05, 0.01], jnp.float32), y0,
        throw=False, max_steps=16384,
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
    )  # fmt: skip
    assert motion.result == diffrax.RESULTS.max_steps_reached
    assert motion.stats["num_rejected_steps"] > motion.stats["num_accepted_steps"]
