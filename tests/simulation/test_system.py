"""All that is simulated in one PyTree, and its step of a given length."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jdyn
from jdyn.constraints import constraint_distance
from tests.contact.scenes import ball, box

pytestmark = pytest.mark.fast_compile

ARM = jdyn.load("double_pendulum")
Q0, V0 = jnp.array([0.4, -0.3]), jnp.array([0.5, 0.2])
STEPS = diffrax.ConstantStepSize()


def held(kp=20.0, kd=2.0):
    return jdyn.System(ARM, controller=jdyn.PD(ARM, jnp.ones(2), kp=kp, kd=kd))


def falling(contact):
    """A ball that has sunk into the ground a little, and slides."""
    system = jdyn.System(ball(), contact=contact)
    return system, system.state(system.model.neutral().at[2].set(0.0999), jnp.array([0.0, 1, 0, 0.3, 0, -0.01]))


CONTACTS = [jdyn.CompliantContact(), jdyn.ConvexContact()]


# What a simulation takes.


def test_the_short_form_is_the_same():
    system = held()
    whole = jdyn.simulate(system, system.state(Q0, V0), 0.5)
    short = jdyn.simulate(ARM, Q0, V0, 0.5, controller=system.controller)
    named = jdyn.simulate(ARM, q0=Q0, v0=V0, t1=0.5, controller=system.controller)  # pyright: ignore
    for other in (short, named):
        np.testing.assert_array_equal(whole.q, other.q)
        np.testing.assert_array_equal(whole.system.controller.kp, other.system.controller.kp)


def test_parts_are_checked_and_options_known():
    with pytest.raises(ValueError, match=r"model: expected a jdyn.Model"):
        jdyn.System(jnp.ones(2))  # pyright: ignore
    for name in ("contact", "joint_limits", "method", "controller"):
        with pytest.raises(ValueError, match=f"{name}: expected "):
            jdyn.System(ARM, **{name: 3})
    with pytest.raises(ValueError, match=r"q: expected shape \(2,\)"):
        held().state(jnp.ones(3))
    with pytest.raises(ValueError, match=r"state: expected one of the system, as jdyn.System.state gives it"):
        jdyn.simulate(held(), Q0, 0.5)  # pyright: ignore
    with pytest.raises(ValueError, match=r"v: expected shape \(2,\)"):
        jdyn.simulate(held(), jdyn.State(Q0, jnp.ones(3)), 0.5)
    with pytest.raises(TypeError, match="simulate: no option is called 'max_step'; is it 'max_steps'"):
        jdyn.simulate(held(), held().state(), 0.5, max_step=3)  # pyright: ignore


@pytest.mark.slow
def test_every_number_is_a_leaf():
    """The derivative of the end by a gain, a mass and the target, in both modes."""

    def end(leaves):
        kp, mass, target = leaves
        system = eqx.tree_at(lambda system: (system.controller.kp, system.controller.target), held(), (kp, target))
        system = dataclasses.replace(system, model=jdyn.vary(ARM, {"body:link2.mass": mass}))
        return jdyn.simulate(system, system.state(Q0, V0), 0.3, saveat=diffrax.SaveAt(t1=True)).q[-1]

    leaves = jnp.array(20.0), jnp.array(1.5), jnp.array([0.7, 0.1])
    check_grads(jax.jit(end), (leaves,), order=1, modes=["rev"], atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_numbers_have_names():
    """Those of all parts, models within parts included: a list, changes, gradients and refusals."""
    weight = jdyn.GravityCompensation(ARM)
    system = jdyn.System(
        ARM, controller=jdyn.PD(ARM, jnp.ones(2), kp=20.0, kd=2.0) + weight, joint_limits=jdyn.CompliantLimits(),
        constraints=[jdyn.constraints.Gear("joint2", "joint1", (0.0, -2.0))],
    )  # fmt: skip
    numbers = jdyn.parameters(system)
    assert numbers.keys() > jdyn.parameters(ARM).keys()
    for name, x in numbers.items():
        assert jnp.array_equal(jdyn.parameters(jdyn.vary(system, {name: x}))[name], x, equal_nan=True), name
    changed = jdyn.vary(system, {"controller.terms.0.kp": 3.0, "body:link2.mass": 2.0})
    assert changed.controller.terms[0].kp == 3.0 and changed.model.inertias.mass[1] == 2.0
    heavy = jdyn.vary(system, {"controller.terms.1.model.body:link2.mass": 2.0})
    assert heavy.controller.terms[1].model.inertias.mass[1] == 2.0 and heavy.model is not heavy.controller
    np.testing.assert_array_equal(heavy.model.inertias.mass, ARM.inertias.mass)

    def loss(kp):
        gained = jdyn.vary(system, {"controller.terms.0.kp": kp})
        return jnp.sum(gained.controller(0.0, Q0, V0) ** 2)

    assert jax.grad(loss)(20.0) != 0
    for name, message in {
        "controller.terms.0.kq": "no part is called 'kq'; there are",
        "controller.terms.0": "is no number, but a PD",
        "controler.terms.0.kp": "vary: no number is called 'controler.terms.0.kp'; is it 'controller.terms.0.kp'",
        "controller.terms.1.model.body:link3.mass": "no body is called 'link3'",
    }.items():
        with pytest.raises(ValueError, match=message):
            jdyn.vary(system, {name: 1.0})
    with pytest.raises(ValueError, match=r"controller.terms.0.kp: expected a scalar, got shape \(3,\); jax.vmap"):
        jdyn.vary(system, {"controller.terms.0.kp": jnp.ones(3)})


@pytest.mark.slow
def test_systems_come_in_batches():
    def gained(kp):
        return held(kp)

    gains = jnp.array([5.0, 20.0, 80.0])
    systems = jax.vmap(gained)(gains)
    state = held().state(Q0, V0)
    axes = jax.tree.map(lambda _: None, held())
    axes = eqx.tree_at(lambda axes: axes.controller.kp, axes, 0, is_leaf=lambda x: x is None)
    one_gain = eqx.tree_at(lambda system: system.controller.kp, held(), gains)
    for batch in (
        jdyn.simulate_batch(systems, state, 0.4, in_axes={"system": 0}),
        jdyn.simulate_batch(one_gain, state, 0.4, in_axes={"system": axes}),
        jax.vmap(lambda kp: jdyn.simulate(gained(kp), state, 0.4))(gains),
    ):
        for lane, kp in enumerate(gains):
            alone = jdyn.simulate(gained(kp), state, 0.4)
            np.testing.assert_allclose(batch.q[lane], alone.q, atol=1e-12)
            np.testing.assert_allclose(batch.accelerations[lane], alone.accelerations, atol=1e-9)
    with pytest.raises(ValueError, match="in_axes: expected names among system, state, t1, "):
        jdyn.simulate_batch(systems, state, 0.4, in_axes={"model": 0})


@pytest.mark.slow
def test_a_motion_goes_on_with_what_its_controller_remembers():
    system = jdyn.System(ARM, controller=jdyn.PID(ARM, jnp.ones(2), kp=20.0, ki=30.0, kd=2.0))
    whole = jdyn.simulate(system, system.state(Q0, V0), 1.0)
    half = jdyn.simulate(system, system.state(Q0, V0), 0.5)
    state = jdyn.State(half.q[-1], half.v[-1], jax.tree.map(lambda x: x[-1], half.parts))
    rest = jdyn.simulate(system, state, 1.0, t0=0.5)
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], atol=1e-6)
    anew = jdyn.simulate(system, jdyn.State(half.q[-1], half.v[-1]), 1.0, t0=0.5)
    assert np.abs(anew.q[-1] - whole.q[-1]).max() > 1e-2


SCENE = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 0.1"/>
    <body name="rod" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" range="-30 30" limited="true"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" contype="0" conaffinity="0"/>
    </body>
    <body name="bob" pos="0.3 0 1"><freejoint/><geom type="sphere" size="0.05"/></body>
    <body name="ball" pos="1 0 0.3"><freejoint/><geom type="sphere" size="0.1"/></body>
  </worldbody>
  <equality><connect body1="rod" body2="bob" anchor="0.3 0 0"/></equality>
  <keyframe><key name="low" qpos="0.2 0.294 0 0.9404 1 0 0 0 1 0 0.1 1 0 0 0"/></keyframe>
</mujoco>"""


@pytest.mark.slow
def test_a_file_is_one_system(tmp_path):
    """All that it says, without a warning, which would be an error here; MuJoCo comes to rest at the same places."""
    mujoco = pytest.importorskip("mujoco")
    system = jdyn.load_system(SCENE)
    assert [type(each).__name__ for each in system.constraints] == ["Connect"]
    assert set(system.configurations) == {"qpos0", "low"}
    begin = system.state()
    np.testing.assert_allclose(begin.q, system.configurations["qpos0"])
    assert system.state("low").q[0] == 0.2
    damped = jdyn.vary(system, {"joint:hinge.damping": 0.5})
    motion = jdyn.simulate(damped, begin, 6.0, saveat=diffrax.SaveAt(t1=True))
    compiled = mujoco.MjModel.from_xml_string(SCENE)
    compiled.dof_damping[0] = 0.5
    data = mujoco.MjData(compiled)
    for _ in range(3000):
        mujoco.mj_step(compiled, data)
    # The rod rests on its end, which is softer there, and the ball on the floor.
    assert 0.5 < motion.q[-1, 0] < 0.54 and abs(motion.q[-1, 0] - data.qpos[0]) < 0.02
    np.testing.assert_allclose([motion.q[-1, 10], data.qpos[10]], 0.1, atol=2e-3)
    with pytest.raises(ValueError, match="q: no configuration is called 'hig'; there are"):
        system.state("hig")
    nothing = '<body><joint/><inertial pos="0 0 -1" mass="1" diaginertia="1 1 1"/></body>'
    assert jdyn.load_system(f"<mujoco><worldbody>{nothing}</worldbody></mujoco>").contact is None
    alone = jdyn.load_system("panda")
    assert alone.contact is None and isinstance(alone.joint_limits, jdyn.CompliantLimits) and not alone.constraints


@pytest.mark.parametrize("flags, contact, limits", [("contact", 0, 1), ("limit", 1, 0), ("constraint", 0, 0)])
def test_a_file_may_switch_contact_and_limits_off(flags, contact, limits):
    pytest.importorskip("mujoco")
    system = jdyn.load_system(SCENE.replace("<worldbody>", f'<option><flag {flags}="disable"/></option><worldbody>'))
    assert (system.contact is not None, system.joint_limits is not None) == (contact, limits)


# What a trajectory knows.


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "controller",
    [
        lambda t, q, v: -3.0 * v,
        jdyn.control.ZeroOrderHold(lambda t, q, v: -3.0 * v, 0.01),
    ],
)
def test_functions_are_known_too(controller):
    """Also where a transformation returns them, with what they close over."""
    motion = jax.jit(lambda q0: jdyn.simulate(ARM, q0, V0, 0.3, controller=controller))(Q0)
    rows = motion.tau
    if isinstance(controller, jdyn.control.DynamicController):
        assert np.all(np.isfinite(rows)) and np.abs(rows).max() > 1
    else:
        np.testing.assert_allclose(rows, -3.0 * motion.v, atol=1e-14)

    def damped(kd):
        return jdyn.simulate(ARM, Q0, V0, 0.3, controller=lambda t, q, v: -kd * v)

    motions = jax.vmap(damped)(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(motions.tau, -jnp.array([1.0, 2.0])[:, None, None] * motions.v, atol=1e-14)
    slope = jax.grad(lambda kd: jnp.sum(damped(kd).tau ** 2))(1.0)
    difference = (jnp.sum(damped(1.0 + 1e-5).tau ** 2) - jnp.sum(damped(1.0 - 1e-5).tau ** 2)) / 2e-5
    np.testing.assert_allclose(slope, difference, rtol=1e-4)


class Twice(jdyn.Controller):
    """Numbers of several kinds decide what it computes."""

    kp: float
    times: int = 2
    on: bool = True

    def __call__(self, t, q, v):
        if not self.on:
            return 0 * v
        for _ in range(self.times):
            v = v - self.kp * q
        return jnp.cumsum(v, axis=self.times - 2)


@pytest.mark.slow
@pytest.mark.parametrize("controller", [Twice(0.5), jdyn.GravityCompensation(ARM)])
def test_controllers_of_batches_compute_as_they_did(controller):
    def run(q0):
        return jdyn.simulate(ARM, q0, V0, 0.1, controller=controller)

    many = jax.vmap(run)(jnp.stack([Q0, -Q0]))
    motion, inside = run(Q0), jax.jit(lambda q0: run(q0).tau)(Q0)
    expected = [controller(*row) for row in zip(motion.ts, motion.q, motion.v, strict=True)]
    for found in (motion.tau, many.tau[0], inside):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    again = jdyn.simulate(motion.system, motion.system.state(Q0, V0), 0.1)
    np.testing.assert_array_equal(again.q, motion.q)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_motions_with_different_functions_go_together():
    """Those of controllers leave their forces; those of constraints are kept, with what they close over."""

    def run(k):
        return jdyn.simulate(ARM, Q0, V0, 0.1, controller=lambda t, q, v: -k * v)

    def driven(k):
        return jdyn.simulate(
            ARM, Q0, V0, 0.1, constraints=[jdyn.constraints.PrescribedJoint("joint1", lambda t: Q0[0] + k * t)]
        )

    # Each call of `run` compiles a program, since its controller is a new function.
    one = run(1.0)
    both = jax.tree.map(lambda *x: jnp.stack(x), one, run(2.0))
    np.testing.assert_allclose(both.tau, -jnp.array([1.0, 2.0])[:, None, None] * both.v, atol=1e-14)
    chosen = jax.jit(lambda p: jax.lax.cond(p, lambda: run(1.0), lambda: run(2.0)))(True)
    np.testing.assert_array_equal(chosen.tau, one.tau)
    halves = one.resample(jnp.array([0.05])).tau
    np.testing.assert_allclose(halves, -one.interpolate(0.05)[1][None], atol=1e-3)
    with pytest.raises(ValueError, match=r"a trajectory keeps the commands of a controller that has functions"):
        jdyn.simulate(one.system, one.system.state(), 0.1)
    alone = driven(0.5)
    told = [jdyn.constraints.PrescribedJoint("joint1", lambda t: Q0[0] + 0.5 * t)]
    for lanes in (
        jax.vmap(driven)(jnp.array([0.5, 0.5])),
        jdyn.simulate_batch(ARM, jnp.stack([Q0, Q0]), jnp.stack([V0, V0]), 0.1, constraints=told),
    ):
        np.testing.assert_allclose(lanes.multipliers[0], alone.multipliers, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(jax.jit(driven)(0.5).multipliers, alone.multipliers, rtol=1e-9, atol=1e-9)


# One step.


def test_a_step_is_compiled_as_any_function():
    """With actuators, whose numbers are arrays without a hash."""
    system = jdyn.System(ARM, actuators=[jdyn.actuators.Motor("joint1")])
    start, action = system.state(Q0, V0), jnp.ones(1)
    inside, _ = jax.jit(system.step)(start, action)
    np.testing.assert_allclose(inside.v, system.step(start, action)[0].v, rtol=1e-12)
    jax.jit(system.sense)(start)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [None, pytest.param(jdyn.solvers.Rodas5P(), marks=pytest.mark.exhaustive)])
def test_steps_know_what_functions_close_over(solver):
    def end(k):
        system = jdyn.System(ARM, controller=lambda t, q, v: -k * v * v)
        return jnp.sum(system.step(system.state(Q0, V0), dt=0.05, solver=solver)[0].v)

    difference = (end(2.0 + 1e-5) - end(2.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(end)(2.0), difference, rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(end, (2.0,), (1.0,))[1], difference, rtol=1e-6)


def test_steps_compile_once():
    """Whatever the numbers are that they are given."""
    system, state = held(), held().state(Q0, V0)
    state, _ = system.step(state, [0.1, 0.0], dt=0.001, t=0.0)  # pyright: ignore
    with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
        compiled = []
        patch.setattr(jax._src.compiler, "compile_or_get_cached", lambda *a, **k: compiled.append(a))
        for i in range(1, 4):
            state, _ = system.step(state, [0.1 * i, 0.0], dt=0.001 * i, t=0.001 * i)  # pyright: ignore
    assert not compiled


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda system, state: system.step((Q0, V0)), "state: expected one of the system"),
        (lambda system, state: system.step(state, dt=jnp.ones(2)), "dt and t: expected scalars"),
        (lambda system, state: system.step(state, dt=0.0), "dt: expected a positive number, got 0.0"),
        (lambda system, state: system.step(state, jnp.ones(3)), r"action: expected shape \(2,\)"),
        (
            lambda system, state: system.step(jdyn.State(Q0, V0, {"controller": jnp.ones(2)})),
            "state: expected parts of this system, 'controller' as None",
        ),
        (lambda system, state: jdyn.System(ARM, constraints=[3]), "constraints: expected a list of them"),
        (lambda system, state: jdyn.System(ARM, constraints=None), "constraints: expected a list of them"),
        (
            lambda system, state: jdyn.simulate(system, state, 0.1, controller=None),
            "controller is a part of the system",
        ),
        (lambda system, state: jdyn.simulate(ARM, state, 0.1), "a state goes with a system"),
        (lambda system, state: jdyn.simulate(ARM, Q0, V0, 0.1, 7.0), "expected model, q0, v0, t1, got 5 arguments"),
        (lambda system, state: jdyn.simulate(ARM, Q0, 0.1), "expected model, q0, v0, t1, got no t1"),
        (
            lambda system, state: jdyn.simulate_batch(ARM, Q0, V0, 0.1, 7.0),
            "simulate_batch: expected model, q0, v0, t1",
        ),
        (
            lambda system, state: jdyn.simulate_batch(ARM, Q0, V0, 0.1, in_axes={"controller": 0}),
            "in_axes: expected arguments that are given, got 'controller'",
        ),
    ],
)
def test_what_does_not_fit_is_said(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wrong(held(), held().state(Q0, V0))


@pytest.mark.slow
@pytest.mark.parametrize("contact", CONTACTS)
def test_steps_are_those_of_a_simulation(contact):
    """Of constant steps with the same solver."""
    system, state = falling(contact)
    solver = jdyn.solvers.ConvexEuler(rows=1) if contact.stepwise else jdyn.solvers.ROSJ43()
    motion = jdyn.simulate(
        system, state, 0.02, solver=solver, stepsize_controller=STEPS, dt0=0.002, saveat=jnp.array([0.002, 0.02])
    )

    def stepped(state, _):
        state, info = system.step(state, dt=0.002, solver=solver)
        return state, (state, info)

    end, (states, infos) = jax.lax.scan(stepped, state, None, length=10)
    np.testing.assert_allclose(states.q[0], motion.q[0], atol=1e-14)
    np.testing.assert_allclose(end.q, motion.q[-1], atol=1e-12)
    np.testing.assert_allclose(end.v, motion.v[-1], atol=1e-10)
    assert np.all(infos.result == jdyn.Result.success)
    np.testing.assert_allclose(infos.accelerations[0], (states.v[0] - state.v) / 0.002, rtol=1e-12)
    if contact.stepwise:
        force = infos.contact_forces.force[-1].sum(0)
        np.testing.assert_allclose(force, motion.contact_forces.force[-1].sum(0), rtol=1e-9)


@pytest.mark.slow
def test_steps_converge_with_their_order():
    system = held()
    exact = jdyn.simulate(
        system, system.state(Q0, V0), 0.4, stepsize_controller=diffrax.PIDController(rtol=1e-12, atol=1e-12),
        saveat=diffrax.SaveAt(t1=True),
    ).q[-1]  # fmt: skip

    def error(count, **options):
        def stepped(i, state):
            return system.step(state, dt=0.4 / count, t=i * 0.4 / count, **options)[0]

        return np.abs(jax.lax.fori_loop(0, count, stepped, system.state(Q0, V0)).q - exact).max()

    for solver, order in ((None, 3), (jdyn.solvers.SemiImplicitEuler(), 1), (diffrax.Heun(), 2)):
        errors = [error(count, solver=solver) for count in (20, 40)]
        assert errors[0] / errors[1] > 0.8 * 2**order


@pytest.mark.slow
@pytest.mark.parametrize(
    "contact",
    [
        None,
        pytest.param(CONTACTS[0], marks=pytest.mark.exhaustive),
        # Those of convex steps are in test_convex_terms.py and test_convex_contact.py.
        pytest.param(CONTACTS[1], marks=pytest.mark.exhaustive),
    ],
)
def test_derivatives_of_a_step_are_differences(contact):
    if contact is None:
        system = held()
        state = system.state(Q0, V0)
    else:
        system, state = falling(contact)

    def end(q_shift, v, action, dt):
        at = dataclasses.replace(state, q=system.model.integrate(state.q, q_shift), v=v)
        after, _ = system.step(at, action, dt)
        return system.model.difference(state.q, after.q), after.v

    still = jnp.zeros(system.model.nv)
    point = still, state.v, 0.1 * jnp.ones_like(still), 0.002
    check_grads(jax.jit(end), point, order=1, modes=["fwd", "rev"], atol=2e-4, rtol=2e-4, eps=1e-7)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_constraints_are_met_and_failures_told():
    builder = jdyn.Builder("rod")
    builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=0.01 * np.ones(3))
    model = builder.build()
    system = jdyn.System(
        model, constraints=[jdyn.constraints.Connect("ball", "world", point_a=(0.0, 0, 1.0), point_b=(0, 0, 1.0))]
    )
    state = system.state(v=jnp.array([0.0, 1.0, 0, 0.0, 0, 0]))
    begun = jdyn.assemble(model, system.constraints, state.q, state.v)
    state = dataclasses.replace(state, q=begun.q, v=begun.v)
    motion = jdyn.simulate(system, state, 0.1, saveat=diffrax.SaveAt(t1=True))

    def stepped(state, _):
        return system.step(state, dt=0.002)

    end, infos = jax.lax.scan(stepped, state, None, length=50)
    assert np.all(infos.result == jdyn.Result.success)
    np.testing.assert_allclose(end.q, motion.q[-1], atol=1e-6)
    missed = constraint_distance(model, system.constraints, end.q, end.v)
    assert max(map(float, missed)) < 1e-12
    _, info = system.step(dataclasses.replace(state, v=state.v.at[0].set(jnp.nan)), dt=0.002)
    assert info.result == jdyn.Result.nonfinite
    limited = jdyn.System(ARM, joint_limits=jdyn.ImpactLimits())
    with pytest.raises(ValueError, match="step: joint_limits or contact look for instants"):
        limited.step(limited.state())


@pytest.mark.slow
def test_controllers_tick_and_batches_step():
    """A hold of 4 ms changes its command after every second step."""
    system = jdyn.System(ARM, controller=jdyn.control.ZeroOrderHold(jdyn.PD(ARM, jnp.ones(2), kp=20.0, kd=2.0), 0.004))
    states = jax.vmap(lambda q: system.state(q, V0))(jnp.stack([Q0, Q0 + 0.1, Q0 + 0.2]))

    def stepped(carry, _):
        t, states = carry
        states, _ = jax.vmap(lambda state: system.step(state, dt=0.002, t=t))(states)
        return (t + 0.002, states), jax.vmap(lambda s: system.controller.force(t, s.q, s.v, s.parts["controller"]))(
            states
        )

    (_, end), commands = jax.lax.scan(stepped, (0.0, states), None, length=10)
    changed = np.abs(np.diff(commands[:, 0, 0])) > 0
    assert changed.tolist() == [True, False] * 4 + [True]
    motion = jdyn.simulate(system, jax.tree.map(lambda x: x[1], states), 0.02, saveat=diffrax.SaveAt(t1=True))
    np.testing.assert_allclose(end.q[1], motion.q[-1], atol=1e-7)


def test_a_step_costs_a_step():
    """Operations beside those of the equations of motion: once for semi-implicit Euler."""
    system = jdyn.System(jdyn.load("panda"))
    state = system.state()

    def flops(function, *arguments):
        return jax.jit(function).lower(*arguments).compile().cost_analysis()["flops"]

    alone = flops(lambda q, v: jdyn.forward_dynamics(system.model, q, v, jnp.zeros_like(v)), state.q, state.v)
    taken = flops(lambda state: system.step(state, solver=jdyn.solvers.SemiImplicitEuler())[0], state)
    assert taken < 1.5 * alone


@pytest.mark.slow
def test_single_precision_stays_single():
    system = jdyn.System(box().astype(jnp.float32), contact=jdyn.CompliantContact())
    state = system.state()
    after, info = system.step(state, dt=0.002)
    assert after.q.dtype == after.v.dtype == info.accelerations.dtype == jnp.float32
