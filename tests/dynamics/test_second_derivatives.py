"""Second derivatives of inverse dynamics against finite differences of the first ones."""

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn
from jdyn.model.random_tree import ALL_KINDS
from jdyn.spatial import cross_motion
from tests.drawn import drawn_states, with_joint_elements

pytestmark = pytest.mark.fast_compile

PANDA = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots/panda_description/urdf/panda.urdf"


def _led():
    """A free base that carries a chain, one joint of which follows another."""
    builder = jdyn.Builder("led")
    builder.add_link("base", jdyn.Free(), mass=2.0, com=(0.1, 0, 0.05), inertia=(0.1, 0.12, 0.15))
    joints = {
        "turn": jdyn.Revolute((0, 1, 0)), "screw": jdyn.Helical((0.6, 0, 0.8), 0.1),
        "slide": jdyn.Prismatic((0.8, 0.6, 0)), "follow": jdyn.Revolute((0, 0.8, 0.6)),
    }  # fmt: skip
    for parent, (name, joint) in zip(["base", *joints], joints.items(), strict=False):
        builder.add_link(
            name, joint, parent=parent, placement=(0.1, 0.2, -0.1), mass=1.0, com=(0, 0.1, -0.1), joint_name=name,
            inertia=(0.02, 0.03, 0.04), mimic=jdyn.Mimic("turn", -0.5, 0.2) if name == "follow" else None,
        )  # fmt: skip
    return builder.build()


MODELS = {
    "free base and followers": _led,
    "several degrees of freedom": lambda: jdyn.random_tree(3, 2, kinds=(jdyn.Ball, jdyn.Universal)),
    "free base": lambda: jdyn.random_tree(7, 4, kinds=(jdyn.Free, jdyn.Revolute, jdyn.Helical)),
    "fixed base": lambda: jdyn.load(PANDA),
    "all kinds of joints": lambda: jdyn.random_tree(3, len(ALL_KINDS)),
}
EXHAUSTIVE = "free base", "fixed base", "all kinds of joints"


def second(model, q, v, a, f_ext):
    return jdyn.inverse_dynamics_second_derivatives(model, q, v, a, f_ext=f_ext)


def _differences(model, q, v, a, f_ext, h=1e-5):
    """By central differences of the first derivatives."""

    def first(x):
        near = model.integrate(q, x[: model.nv]), v + x[model.nv :]
        return jdyn.inverse_dynamics_derivatives(model, *near, a, f_ext=f_ext)

    units = h * jnp.eye(2 * model.nv)
    ends = jax.vmap(first)(jnp.concatenate([units, -units]))
    by_q, by_v, by_a = (jnp.moveaxis(x[: 2 * model.nv] - x[2 * model.nv :], 0, -1) / (2 * h) for x in ends)
    return by_q[..., : model.nv], by_v[..., model.nv :], by_v[..., : model.nv], by_a[..., : model.nv]


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.exhaustive] * (n in EXHAUSTIVE)) for n in MODELS])
@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
def test_against_finite_differences(name):
    """With rotors, dampers, friction and springs in the joints, and forces on bodies; in closed form in lanes."""
    model = with_joint_elements(MODELS[name]())
    # Friction that turns more slowly errs less in finite differences.
    model = dataclasses.replace(model, friction_speed=jnp.ones_like(model.friction_speed))
    states = drawn_states(model, 2)
    last = tuple(state[1] for state in states)
    if model.topology.single_dof_joints:
        found = [x[1] for x in jax.vmap(second, (None, 0, 0, 0, 0))(model, *states)]
    else:
        found = second(model, *last)
    for x, differences in zip(found, jax.jit(_differences)(model, *last), strict=True):
        assert x.shape == (model.nv,) * 3
        np.testing.assert_allclose(x, differences, atol=1e-7 * np.abs(differences).max())


@pytest.mark.slow
@pytest.mark.exhaustive
def test_order_along_the_tangent_space():
    """Derivatives along two coordinates commute up to that along their Lie bracket; half of both is the Hessian on the
    way that `integrate` takes, turns and shifts together."""
    model = jdyn.random_tree(7, 2, kinds=(jdyn.Free, jdyn.Ball))
    q, v, a, _ = drawn_states(model)
    by_q_q = jdyn.inverse_dynamics_second_derivatives(model, q, v, a).by_q_q

    @jax.jit
    def forces(ways):
        return jax.vmap(lambda e: jdyn.inverse_dynamics(model, model.integrate(q, e), v, a))(ways)

    ways, size = jax.random.normal(jax.random.key(0), (model.nv, model.nv)), np.abs(by_q_q).max()
    forth, now, back = (forces(h * ways) for h in (1e-4, 0, -1e-4))
    curvature = np.einsum("ijk,wj,wk->wi", by_q_q, ways, ways)
    np.testing.assert_allclose(curvature, (forth - 2 * now + back) / 1e-8, atol=1e-5 * np.abs(curvature).max())
    forth, back = (forces(h * jnp.eye(model.nv)).T for h in (1e-5, -1e-5))
    brackets = np.zeros((model.nv,) * 3)
    for body, kind in enumerate(model.topology.kinds):
        own, units = model.topology.v_slice(body), jnp.eye(6)[: kind.nv]
        products = jax.vmap(jax.vmap(cross_motion, (0, None)), (None, 0))(units, units)
        brackets[own, own, own] = np.moveaxis(products[..., : kind.nv], -1, 0)
    commuted = by_q_q - by_q_q.swapaxes(1, 2)
    np.testing.assert_allclose(commuted, np.tensordot((forth - back) / 2e-5, brackets, 1), atol=1e-7 * size)
    assert np.abs(commuted).max() > 0.1 * size


def test_nothing_moves():
    model = jdyn.load("<robot name='rock'><link name='base'/></robot>")
    none = jnp.zeros(0)
    assert all(x.shape == (0, 0, 0) for x in jdyn.inverse_dynamics_second_derivatives(model, none, none, none))
