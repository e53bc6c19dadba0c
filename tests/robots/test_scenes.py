"""Scenes with something to touch, against mechanics by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.contact import colliders, contact_points
from jdyn.robots import ball, ball_on_plate, box, cartpole_with_walls, gripper, hopper

pytestmark = pytest.mark.fast_compile

forward_kinematics = jax.jit(jdyn.forward_kinematics)


def hopper_energies(q, v):
    """Kinetic and potential energy of Raibert's hopper from the places of two centres of mass in the plane."""

    def centres(q):
        x, z, pitch, hip, leg = q
        swing = pitch + hip
        body = jnp.stack([x, z])
        hip_point = body + 0.4 * jnp.stack([jnp.sin(pitch), -jnp.cos(pitch)])
        below = (1 + leg - 0.5) * jnp.stack([jnp.sin(swing), -jnp.cos(swing)])
        return body, hip_point + below

    (body, leg), (v_body, v_leg) = jax.jvp(centres, (q,), (v,))
    kinetic = 5 * v_body @ v_body + 5 * v[2] ** 2 + 0.5 * v_leg @ v_leg + 0.5 * (v[2] + v[3]) ** 2
    return kinetic, 9.81 * (10 * body[1] + leg[1]) + 500 * q[4] ** 2


def test_hopper_has_the_energies_of_raiberts():
    q, v = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5)))
    kinetic, potential = jax.jit(hopper_energies)(q, v)
    model = hopper()
    np.testing.assert_allclose(jax.jit(jdyn.kinetic_energy)(model, q, v), kinetic, rtol=1e-13)
    np.testing.assert_allclose(jax.jit(jdyn.potential_energy)(model, q), potential, rtol=1e-13)


def test_hopper_stands_on_its_spring():
    model, weight = hopper(), 11 * 9.81
    q = jnp.array([0, 1.4, 0, 0, -0.0981])
    upward = jnp.zeros((3, 6)).at[2, 5].set(weight)
    a = jax.jit(jdyn.forward_dynamics)(model, q, jnp.zeros(5), jnp.zeros(5), f_ext=upward)
    np.testing.assert_allclose(a, 0, atol=1e-12)


def test_foot_of_the_hopper_goes_where_the_docstring_says():
    pose = jax.jit(jdyn.frame_pose, static_argnums=2)
    foot = [pose(hopper(), jnp.array(q), "foot").translation for q in ([0, 0, 0, 0, 0.0], [0, 0, 0, 0.1, -0.2])]
    np.testing.assert_allclose(foot[0], [0, 0, -1.4], atol=1e-15)
    np.testing.assert_allclose(foot[1], [0.8 * np.sin(0.1), 0, -0.4 - 0.8 * np.cos(0.1)], atol=1e-15)


def test_walls_are_as_far_from_the_tip_as_they_should_be():
    model, q = cartpole_with_walls(0.7), jnp.array([0.1, 0.3])
    shapes = colliders(model)
    points, _ = contact_points(shapes, forward_kinematics(model, q))
    names = [[shapes.entries[i].name for i in pair] for pair in shapes.pairs]
    assert names == [["left_wall", "tip"], ["right_wall", "tip"]]
    tip = 0.1 + np.sin(0.3)
    np.testing.assert_allclose(points.distance, [0.7 + tip, 0.7 - tip], atol=1e-15)
    np.testing.assert_allclose(points.normal, [[1, 0, 0], [-1, 0, 0]], atol=1e-15)


def test_fingers_close_on_the_cube():
    model = gripper()
    moved = [
        forward_kinematics(model, model.neutral().at[:3].set(jnp.array(q))) for q in ([0, 0, 0.0], [0.2, 0.01, 0.015])
    ]
    left, right, cube = 1, 2, 3
    at = [np.asarray(X.translation) for X in moved]
    np.testing.assert_allclose(at[0][[left, right]], [[0, 0.05, 0.02], [0, -0.05, 0.02]], atol=1e-15)
    np.testing.assert_allclose(at[0][cube], 0)
    np.testing.assert_allclose(at[1] - at[0], [[0, 0, 0.2], [0, -0.01, 0.2], [0, 0.015, 0.2], [0, 0, 0]], atol=1e-15)


def test_the_plate_tilts_as_the_docstring_says():
    model = ball_on_plate(0.03)
    X = forward_kinematics(model, model.neutral().at[:2].set(jnp.array([0.1, 0.2])))
    uphill = np.asarray(X.rotation[-2, 2, :2])  # heights of the ends of the plate's axes
    assert uphill[0] < 0 < uphill[1]
    np.testing.assert_allclose(X.translation, [[0, 0, -0.03], [0, 0, 0]])
    np.testing.assert_allclose(model.inertias.mass[-1], 7800 * 4 / 3 * np.pi * 0.03**3, rtol=1e-15)


@pytest.mark.parametrize(
    ("model", "inertia"),
    [
        (ball(0.2, 3.0), [0.048, 0.048, 0.048]),
        (box((0.3, 0.2, 0.1), 2.0), [2 * 0.05 / 12, 2 * 0.1 / 12, 2 * 0.13 / 12]),
        (box(0.3, 2.0), [2 * 0.18 / 12] * 3),
    ],
    ids=["ball", "box", "cube"],
)
def test_free_bodies_are_uniform(model, inertia):
    M = jax.jit(jdyn.mass_matrix)(model, model.neutral())
    mass = float(model.inertias.mass[0])
    np.testing.assert_allclose(M, np.diag([*inertia, mass, mass, mass]), rtol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ball(0.0), r"radius: expected finite positive numbers"),
        (lambda: box((1, 2)), r"sides: expected one number or 3 of them"),
        (lambda: box(mass=-1.0), r"mass: expected finite positive numbers"),
        (lambda: gripper(np.nan), r"load: expected finite positive numbers"),
        (lambda: ball_on_plate(-0.1), r"radius: expected finite positive numbers"),
        (lambda: cartpole_with_walls(0.0), r"distance: expected finite positive numbers"),
    ],
)
def test_impossible_numbers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
