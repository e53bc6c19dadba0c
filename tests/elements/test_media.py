"""Forces of media: what they do to energy, at rest, and for ellipsoids whose added mass is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.elements.ellipsoid_medium import added_inertia
from tests.errors import relative_error, tol

pytestmark = pytest.mark.fast_compile

SIZES = np.array([[0.3, 0.2, 0.1], [0.1, 0.1, 0.4], [0.2, 0.2, 0.2]])


def ellipsoids(wind=(0.0, 0.0, 0.0), **coefficients):
    """Ellipsoids about a free body, at different places and in different attitudes."""
    turns = Rotation.from_rotvec([[0.3, 0.2, 0.1], [-1.0, 0.5, 2.0], [0.0, 0.0, 0.0]]).as_matrix()
    places = jnp.array([[0.1, 0.2, 0.3], [-0.2, 0.1, 0.0], [0.0, 0.0, 0.0]])
    names, poses = ("link1",) * 3, jdyn.Transform(jnp.asarray(turns), places)
    return jdyn.elements.EllipsoidMedium(names, poses, SIZES, *added_inertia(SIZES), wind=wind, **coefficients)


def on_body(medium, v):
    return medium.generalized(MODEL, 0.0, MODEL.neutral(), v)


MODEL = jdyn.ROBOTS["chain"](1, floating_base=True)


def get_size(medium):
    return medium.semiaxes


VELOCITIES = jax.random.normal(jax.random.key(0), (20, 6))
ONLY_LIFT = {"blunt_drag": 0.0, "slender_drag": 0.0, "angular_drag": 0.0}


def test_lift_and_added_mass_do_no_work_and_all_else_takes_energy():
    forces = jax.jit(jax.vmap(on_body, (None, 0)))
    lift, all_of_it = (forces(ellipsoids(density=50.0, **only), VELOCITIES) for only in (ONLY_LIFT, {}))
    size = jnp.linalg.norm(lift, axis=1) * jnp.linalg.norm(VELOCITIES, axis=1)
    assert jnp.all(size > 0.1)
    assert jnp.all(jnp.abs(jnp.sum(lift * VELOCITIES, axis=1)) < tol(float) * size)
    assert jnp.all(jnp.sum(all_of_it * VELOCITIES, axis=1) < 0)


def test_derivatives_are_finite_where_nothing_moves():
    slopes = jax.jit(jax.jacfwd(on_body, argnums=1))
    # Drag and lift are of second order: viscosity alone is left, of spheres of the mean radius 0.2 m.
    viscous = slopes(ellipsoids(density=50.0, viscosity=2.0), jnp.zeros(6))
    rotated = np.diag(viscous[3:, 3:])
    np.testing.assert_allclose(rotated, -3 * 6 * np.pi * 2.0 * 0.2, rtol=tol(float))
    assert jnp.all(jnp.isfinite(viscous))
    # The medium moves with the body.
    along = jnp.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    still = slopes(ellipsoids(density=50.0, wind=(1.0, 2.0, 3.0)), along)
    assert jnp.all(jnp.isfinite(still))
    flowing = ellipsoids(density=50.0)
    of_size = jax.jit(jax.grad(lambda r: jnp.sum(on_body(eqx.tree_at(get_size, flowing, r), jnp.zeros(6)))))
    assert jnp.all(of_size(jnp.asarray(SIZES)) == 0)


def test_added_inertia_of_spheres_disks_and_needles():
    """Lamb, Hydrodynamics, articles 92, 102 and 373."""
    a, thin = 0.3, 1e-8
    volumes, moments = added_inertia(np.array([[a, a, a], [a, a, thin], [thin, thin, a]]))
    sphere, needle = 4 / 3 * np.pi * a**3, 4 / 3 * np.pi * a * thin**2
    np.testing.assert_allclose(volumes[0], sphere / 2, rtol=tol(float))
    np.testing.assert_array_equal(moments[0], 0)
    # Of thin bodies, corrections are of the order of what they are thin by.
    np.testing.assert_allclose([volumes[1, 2], moments[1, 0]], [8 / 3 * a**3, 16 / 45 * a**5], rtol=10 * thin / a)
    assert relative_error(volumes[2, :2], [needle, needle]) < 1e-12


def test_a_body_becomes_the_ellipsoid_of_its_inertia():
    size = np.array([0.1, 0.2, 0.4])
    builder = jdyn.Builder("ellipsoid")
    inertia = np.diag(3.0 / 5 * (size @ size - size**2))
    builder.add_link("body", jdyn.Free(), mass=3.0, com=(0.1, 0.0, 0.0), inertia=inertia)
    medium = jdyn.elements.EllipsoidMedium.of(builder.build(), density=1.0)
    np.testing.assert_allclose(np.sort(medium.semiaxes[0]), size, rtol=1e-12)
    np.testing.assert_allclose(medium.poses.translation, [[0.1, 0, 0]], atol=1e-15)
