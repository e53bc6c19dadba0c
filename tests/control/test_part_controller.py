"""Robots side by side, each with its own controller, move as they do alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile


def cell():
    """A whole, its moving parts, and their controllers: an integral, samples, and gravity alone."""
    arm, rod, box = jdyn.load("double_pendulum"), jdyn.load("pendulum"), jdyn.load("box").without_shapes()
    goals = jnp.array([0.5, -0.3]), jnp.array([0.2])
    controllers = {
        "arm": jdyn.PID(arm, goals[0], kp=40.0, ki=10.0, kd=8.0),
        "rod": jdyn.control.ZeroOrderHold(jdyn.PD(rod, goals[1], kp=20.0, kd=4.0), period=0.05),
        "box": jdyn.GravityCompensation(box),
    }
    parts = {"arm": arm, "rod": rod, "box": box}
    return jdyn.merge({"box": box, "arm": arm, "rod": rod}), parts, controllers


@pytest.mark.slow
def test_each_part_moves_as_it_does_alone():
    whole, parts, controllers = cell()
    each = [jdyn.control.PartController(controller, whole, part) for part, controller in controllers.items()]
    start = whole.neutral(), jnp.linspace(0.1, 0.5, whole.nv)
    motion = jdyn.simulate(whole, *start, 0.5, controller=each[0] + each[1] + each[2])
    for part, model in parts.items():
        q, v = (
            [place for place, name in enumerate(names) if name.startswith(f"{part}/")]
            for names in (whole.topology.q_names, whole.topology.v_names)
        )
        alone = jdyn.simulate(model, start[0][jnp.array(q)], start[1][jnp.array(v)], 0.5, controller=controllers[part])
        np.testing.assert_allclose(motion.q[-1][jnp.array(q)], alone.q[-1], atol=2e-5)
        np.testing.assert_allclose(motion.v[-1][jnp.array(v)], alone.v[-1], atol=2e-4)


def test_gains_pass_through():
    whole, parts, _ = cell()

    def force(kp):
        controller = jdyn.PD(parts["arm"], jnp.ones(2), kp=kp, kd=1.0)
        controller = jdyn.control.PartController(controller, whole, "arm")
        return controller.force(0.0, whole.neutral(), jnp.zeros(whole.nv), None)

    slope = jax.jacfwd(force)(3.0)
    np.testing.assert_allclose(slope, jnp.zeros(whole.nv).at[jnp.array([6, 7])].set(1.0))


def test_an_unknown_part_is_named():
    whole, _, controllers = cell()
    with pytest.raises(ValueError, match=r"no moving part is called 'leg'.*arm"):
        jdyn.control.PartController(controllers["arm"], whole, "leg")
