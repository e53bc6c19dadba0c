"""What sinks so deep into a shape that it may pass through it is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact.scenes import bouncing

pytestmark = pytest.mark.fast_compile

RADIUS, G = 0.1, 9.81


def sunk(mass, contact, t1=0.5):
    """A ball that is let go on the ground; it swings about its static depth, from none to twice as much."""
    model = jdyn.vary(bouncing(), {"body:ball.mass": mass})
    return jdyn.simulate(model, jnp.array([RADIUS]), jnp.zeros(1), t1, contact=contact)


@pytest.mark.slow
@pytest.mark.parametrize(
    "contact",
    [
        jdyn.ConvexContact(jdyn.contact.Material(2e5, 0.0)),
        jdyn.CompliantContact(material=jdyn.contact.Material(2e5, 0.0)),
    ],
    ids=["convex", "compliant"],
)
def test_a_motion_says_how_deep_it_sank_by_the_size_of_the_shape(contact):
    """Without damping twice the static depth m g / k, with a stiffness k of 1e5 N/m of both surfaces."""
    heavy = 300.0
    with pytest.warns(
        jdyn.contact.ContactWarning, match=r"overlap by 0\.05\d* m in this motion, 5\d % .* pass through"
    ):
        stats = sunk(heavy, contact).stats
    # Steps begin next to the deepest place.
    np.testing.assert_allclose(stats["greatest_depth"], 2 * heavy * G / 1e5, rtol=1e-2)
    np.testing.assert_allclose(stats["greatest_depth_by_size"], stats["greatest_depth"] / RADIUS, rtol=1e-12)
    assert stats["start_depth"] == 0
    # In a batch, nobody can be warned.
    lanes = jax.vmap(lambda mass: sunk(mass, contact).stats["greatest_depth_by_size"])(jnp.array([1.0, heavy]))
    assert lanes[0] < 2.1e-3 and lanes[1] > 0.5
