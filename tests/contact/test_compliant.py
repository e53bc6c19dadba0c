"""Compliant contact against quadrature, closed forms and laws of conservation."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import jdyn
from tests.contact.scenes import bouncing

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)


def contact(law=None, **numbers):
    """Between a surface of these numbers and a rigid ground, without friction if nothing is said."""
    numbers = {"friction": 0.0, **numbers}
    ground = jdyn.Material(stiffness=jnp.inf, dissipation=0.0, friction=0.0)
    law = jdyn.HuntCrossley() if law is None else law
    return jdyn.CompliantContact(law, jdyn.Material(**numbers), materials={"ground": ground})


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_a_ball_leaves_with_the_speed_that_quadrature_finds(exponent):
    """With h the speed over 1/c, m h dh/dd = −k dᵉ c² (1 + h) without gravity: h − log(1 + h) is the same before and
    after, whatever the spring."""
    model, k, c, u = bouncing().with_gravity((0, 0, 0)), 1e5, 0.3, 1.2
    law = contact(jdyn.HuntCrossley(exponent), stiffness=k, dissipation=c)
    rows = diffrax.SaveAt(t1=True)
    motion = jdyn.simulate(
        model, [0.11], [-u], 0.05, contact=law, stepsize_controller=TIGHT, solver=diffrax.Dopri8(), saveat=rows
    )

    def missed(speed):
        return (c * u - np.log1p(c * u)) - (-c * speed - np.log1p(-c * speed))

    expected = scipy.optimize.brentq(missed, 1e-3, u, xtol=1e-15)
    np.testing.assert_allclose(motion.v[0, 0], expected, rtol=1e-8)
