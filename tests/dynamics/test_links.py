"""What simulations compute once of a model: it changes no result, and no changed copy keeps it."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.dynamics.recursion.joint_frames import with_links
from tests.drawn import drawn_states

pytestmark = pytest.mark.fast_compile

LANES = 3
SINGLE = jdyn.random_tree(4, 4, kinds=(jdyn.Revolute, jdyn.Helical))
FLOATING = jdyn.load("quadruped")


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [pytest.param(SINGLE, id="fixed", marks=pytest.mark.exhaustive), pytest.param(FLOATING, id="floating")]
)
def test_dynamics_are_the_same(model):
    """Accelerations and forces that hold, and how they change with a mass and the state, in a batch of masses."""
    q, v, tau, _ = drawn_states(model, LANES)
    last, unit = model.body_names[-1], jnp.ones(())

    def accelerations(prepare, mass, q, v, tau):
        heavier = prepare(model.with_body(last, mass=mass))
        return jdyn.forward_dynamics(heavier, q, v, tau + jdyn.gravity_forces(heavier, q))

    def found(prepare):
        def lane(mass, *state):
            return jax.jvp(functools.partial(accelerations, prepare), (mass, *state), (unit, *state))

        return jax.jit(jax.vmap(lane))(jnp.linspace(1.0, 3.0, LANES), q, v, tau)

    for once, anew in zip(found(with_links), found(lambda model: model), strict=True):
        np.testing.assert_allclose(once, anew, rtol=1e-10, atol=1e-10 * np.max(np.abs(anew)))


def test_changed_copies_forget():
    model = with_links(SINGLE)
    assert model.links is not None
    joint = next(name for name, kind in zip(model.joint_names, model.topology.kinds, strict=True) if kind.nv)
    for changed in (
        model.with_body(model.body_names[0], mass=2.0),
        model.with_joint(joint, placement=(0.1, 0.2, 0.3)),
        model.with_joint(joint, axis=(0.0, 1.0, 0.0)),
    ):
        assert changed.links is None
    # Rotors and dampers are not part of it.
    assert model.with_joint(joint, armature=0.1, damping=1.0).links is not None


def test_trees_that_it_does_not_suit_stay_as_they_are():
    for model in (jdyn.random_tree(0, 3, kinds=(jdyn.Ball,)), jdyn.load("pendulum")):
        assert (with_links(model).links is None) == (not model.topology.single_dof_joints)


class OtherMass(jdyn.Controller):
    """Holds against gravity, with a mass that it sets in every call."""

    model: jdyn.Model
    mass: jax.Array

    def __call__(self, t, q, v):
        changed = self.model.inertias.mass.at[-1].set(self.mass)
        inertias = dataclasses.replace(self.model.inertias, mass=changed)
        return jdyn.gravity_forces(dataclasses.replace(self.model, inertias=inertias), q)


def test_controllers_that_change_their_model_are_left_alone():
    model = jdyn.load("double_pendulum")
    controllers = jdyn.GravityCompensation(model) + OtherMass(model, jnp.array(3.0))
    first, second = controllers.with_links().terms
    assert first.model.links is not None and second.model.links is None
    q0, v0 = jnp.array([0.3, 0.4]), jnp.zeros(2)
    wanted = jdyn.gravity_forces(model, q0) + OtherMass(model, jnp.array(3.0))(0.0, q0, v0)
    np.testing.assert_allclose(controllers.with_links()(0.0, q0, v0), wanted, rtol=1e-14)
