"""Runge-Kutta methods on the configuration manifold, against closed forms."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import jdyn
from jdyn.control.controller import with_memory
from jdyn.simulation.state import State
from jdyn.simulation.vector_field import VectorField
from tests.simulation.free_body import INERTIA, FreeBody

pytestmark = pytest.mark.fast_compile

COM = np.array([0.1, -0.05, 0.2])
TIMES = [0.3, 0.77, 1.0]
EXACT = FreeBody(3.0, 5.0)
DRIFT = np.array([0.5, 0.2, -0.1])


def body():
    builder = jdyn.Builder("body", gravity=(0, 0, 0))
    builder.add_link("body", jdyn.Free(), mass=1.3, com=COM, inertia=INERTIA)
    return builder.build()


BODY = body()
W0 = EXACT.velocity(0.0)
V0 = jnp.concatenate([W0, DRIFT - np.cross(W0, COM)])


def exact(t):
    """Configuration of the body: its centre of mass moves straight on."""
    rotation = EXACT.rotation(t)
    return np.concatenate([COM + t * DRIFT - rotation.apply(COM), np.roll(rotation.as_quat(), 1)])


REFERENCE = jnp.array([exact(t) for t in TIMES])


def errors(solver, steps):
    """Of the configuration at the three times, by number of steps, in the tangent space."""

    @jax.vmap
    def run(dt):
        return jdyn.simulate(
            BODY, BODY.neutral(), V0, 1.0, solver=solver, dt0=dt, saveat=TIMES, throw=False,
            stepsize_controller=diffrax.ConstantStepSize(),
        ).q  # fmt: skip

    return np.linalg.norm(jax.vmap(jax.vmap(BODY.difference), (None, 0))(REFERENCE, run(1 / jnp.array(steps))), axis=-1)


@pytest.mark.parametrize(
    ("solver", "order", "dense", "steps"),
    [
        pytest.param(diffrax.Euler(), 1, 1, [1024, 2048, 4096], marks=pytest.mark.exhaustive),
        pytest.param(diffrax.Heun(), 2, 2, [128, 256, 512], marks=pytest.mark.exhaustive),
        pytest.param(diffrax.Bosh3(), 3, 3, [64, 128, 256], marks=pytest.mark.exhaustive),
        pytest.param(diffrax.Dopri5(), 5, 4, [32, 64, 128], marks=pytest.mark.exhaustive),
        pytest.param(diffrax.Tsit5(), 5, 4, [32, 64, 128], marks=pytest.mark.slow),
        # Diffrax' interpolant of Dopri8 has order 6 at most.
        pytest.param(diffrax.Dopri8(), 8, 5.5, [12, 18, 27], marks=pytest.mark.slow),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, diffrax.AbstractSolver) else "",
)
def test_methods_keep_their_order_on_se3(solver, order, dense, steps):
    found = errors(solver, steps)
    slopes = -np.diff(np.log(found), axis=0) / np.diff(np.log(steps))[:, None]
    assert abs(slopes[-1, -1] - order) < 0.2, slopes
    assert np.all(slopes[-1, :-1] > dense - 0.3), slopes


@pytest.mark.slow
def test_a_heavy_top_nutates_as_elliptic_functions_say():
    """Lagrange's top: cos θ goes to and fro between two roots of a cubic (Goldstein, section 5.7)."""
    mass, length, transverse, axial = 1.0, 0.2, 0.05, 0.02
    builder = jdyn.Builder("top")
    inertia = (transverse - mass * length**2, transverse - mass * length**2, axial)
    builder.add_link("top", jdyn.Ball(), mass=mass, com=(0, 0, length), inertia=inertia)
    model = builder.build()
    tilt, spin, precession = 0.6, 40.0, 1.0
    q0 = jnp.array([np.cos(tilt / 2), np.sin(tilt / 2), 0, 0])
    v0 = jnp.array([0, precession * np.sin(tilt), spin + precession * np.cos(tilt)])
    times = jnp.linspace(0, 2, 21)
    trajectory = jdyn.simulate(
        model, q0, v0, 2.0, saveat=times, stepsize_controller=diffrax.PIDController(rtol=1e-11, atol=1e-12),
        solver=diffrax.Dopri8(),
    )  # fmt: skip

    u0 = np.cos(tilt)
    axial_momentum = axial * float(v0[2])
    vertical_momentum = transverse * precession * np.sin(tilt) ** 2 + axial_momentum * u0
    a, b = axial_momentum / transverse, vertical_momentum / transverse
    beta = 2 * mass * 9.81 * length / transverse
    alpha = (precession * np.sin(tilt)) ** 2 + beta * u0
    # u'² = (1 − u²)(α − β u) − (b − a u)²
    cubic = np.polysub(np.polymul([-1, 0, 1], [-beta, alpha]), np.polymul([-a, b], [-a, b]))
    low, high, top = np.sort(np.roots(cubic).real)
    k = (high - low) / (top - low)
    # It starts at rest in θ, at one of the two roots that bound its motion.
    quarter = 0 if u0 - low < high - u0 else ellipk(k)
    sn = ellipj(np.sqrt(beta * (top - low)) / 2 * np.asarray(times) + quarter, k)[0]
    expected = low + (high - low) * sn**2
    found = 1 - 2 * (trajectory.q[:, 1] ** 2 + trajectory.q[:, 2] ** 2)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_stage_keeps_accelerations_and_factors_for_its_derivative():
    """And what it starts from, instead of the hundreds of arrays of all recursions: storing them took as long as the
    recursions do."""
    model, stages = jdyn.load("double_pendulum"), diffrax.Tsit5().tableau.num_stages
    solver, term = (
        jdyn.solvers.OnManifold(diffrax.Tsit5(), model),
        diffrax.ODETerm(VectorField(model, with_memory(None), None)),
    )
    t0, t1 = jnp.array(0.0), jnp.array(0.01)

    def stepped(y):
        return solver.step(term, t0, t1, y, None, solver.init(term, t0, t1, y, None), jnp.array(True))[0]

    _, pull = jax.vjp(stepped, State(jnp.ones(2), jnp.ones(2)))
    kept = [x for x in jax.tree.leaves(pull) if x.shape[:1] == (stages,)]
    assert len(kept) < 50
