"""Motions of real robots against SciPy's DOP853 on Pinocchio's articulated-body algorithm."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
import scipy.integrate

import jdyn
from jdyn.interop.pinocchio_values import PinocchioValues
from jdyn.interop.values import State
from tests.reference.example_robots import FILES, FIXED, FLOATING, FOLDER, load, robots

pytestmark = pytest.mark.fast_compile

ENDS = np.array([0.7, 2.0])
TIGHT = diffrax.PIDController(rtol=1e-9, atol=1e-9)


def by_scipy(peer: PinocchioValues, q0, v0):
    """Configurations and velocities at the two times; quaternions are scaled back to the sphere by the field alone."""
    model, nq = peer.model, peer.model.nq
    rate, normalize = jax.jit(lambda q, v: model.rate(q, v)), jax.jit(lambda q: model.normalize(q))
    none, forces = np.zeros(model.nv), np.zeros((model.nb, 6))

    def field(t, y):
        q, v = np.asarray(normalize(y[:nq])), y[nq:]
        return np.concatenate([rate(q, v), peer.acceleration(State(q, v, none, none, forces))])

    solution = scipy.integrate.solve_ivp(
        field, (0, ENDS[-1]), np.concatenate([q0, v0]), method="DOP853", rtol=1e-12, atol=1e-12, t_eval=ENDS
    )
    return solution.y.T[:, :nq], solution.y.T[:, nq:]


@pytest.mark.slow
@robots(
    ("ur5", FIXED),
    slow=[
        *((name, FIXED) for name in ("double_pendulum", "ur10")),
        *((name, FLOATING) for name in ("solo12", "a1", "anymal_b", "hyq")),
    ],
)
def test_two_seconds_of_motion(name, floating):
    """Within 1e-7 at a tolerance of 1e-9. Arms of seven joints that fall freely are not among them: their motion
    magnifies whatever a step leaves by four decimal places within the two seconds."""
    base = [pin.JointModelFreeFlyer()] if floating else []
    peer = PinocchioValues(pin, load(name, floating), pin.buildModelFromUrdf(str(FOLDER / FILES[name]), *base))
    model = peer.model
    q0, v0 = model.normalize(0.9 * model.neutral() + 0.1), 0.5 * jnp.ones(model.nv)
    q, v = by_scipy(peer, np.asarray(q0), np.asarray(v0))
    # Dense output is of a lower order than the end of a step, so each time ends a simulation of its own.
    for k, end in enumerate(ENDS):
        ours = jdyn.simulate(
            model, q0, v0, end, solver=diffrax.Dopri8(), stepsize_controller=TIGHT, saveat=jnp.asarray([end])
        )
        np.testing.assert_allclose(model.difference(q[k], ours.q[-1]), 0, atol=1e-7)
        np.testing.assert_allclose(ours.v[-1], v[k], rtol=1e-7, atol=1e-6)
