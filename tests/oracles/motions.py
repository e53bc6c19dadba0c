"""Simulations without contact."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from tests.oracles import zoo
from tests.oracles.case import case, rounding, solved

TIMES = np.array([0.0, 0.3, 0.7, 1.0])


def times(dtype=jnp.float64):
    return jnp.asarray(TIMES, dtype)


@case(solved(1e-4, "steps at the default tolerance of 1e-6"), slow=False)
def pendulum_by_default():
    """Also backwards, and between rows."""
    model = zoo.pendulum()
    motion = jdyn.simulate(model, jnp.ones(1), jnp.zeros(1), 3.0, saveat=jnp.linspace(0.0, 3.0, 7))
    back = jdyn.simulate(model, motion.q[-1], motion.v[-1], 0.0, t0=3.0, saveat=jnp.linspace(3.0, 0.0, 7))
    between = motion.interpolate(1.23)
    return zoo.rows(motion) | {"energy": motion.energy, "back": back.q, "interpolated": jnp.stack(between)}


@case(solved(1e-3, "steps at the default tolerance of 1e-5 in single precision"))
def pendulum_in_float32():
    model = zoo.pendulum(jnp.float32)
    one, zero = jnp.ones(1, jnp.float32), jnp.zeros(1, jnp.float32)
    return zoo.rows(jdyn.simulate(model, one, zero, 1.0, saveat=times(jnp.float32)))


@case(solved(1e-6), slow=False)
def panda_under_pd():
    """With joint friction; forces and accelerations of rows."""
    model = zoo.panda()
    hold = zoo.held(model)
    motion = jdyn.simulate(
        model, model.neutral(), zoo.still(model), 1.0, controller=hold, saveat=times(), stepsize_controller=zoo.TIGHT
    )
    return zoo.rows(motion) | {"tau": motion.tau, "a": motion.accelerations}


@case(solved(1e-3, "steps at 1e-5 in single precision, whose rounding friction magnifies"))
def panda_under_pd_in_float32():
    model = zoo.panda(jnp.float32)
    hold, at = zoo.held(model), times(jnp.float32)
    return zoo.rows(jdyn.simulate(model, model.neutral(), zoo.still(model), 1.0, controller=hold, saveat=at))


@case(solved(1e-5))
def panda_under_pid():
    """A controller with a memory, which is bounded."""
    model = zoo.panda()
    hold = jdyn.PID(model, jnp.full(7, 0.3), kp=100.0, ki=50.0, kd=20.0, limit=3.0)
    motion = jdyn.simulate(
        model, model.neutral(), zoo.still(model), 1.0, controller=hold, saveat=times(),
        stepsize_controller=zoo.TIGHT,
    )  # fmt: skip
    memory = jnp.concatenate([jnp.reshape(x, (len(TIMES), -1)) for x in jax.tree.leaves(motion.parts)], 1)
    return zoo.rows(motion) | {"memory": memory, "tau": motion.tau}


@case(solved(1e-6))
def arm_along_a_spline():
    """Torques computed along a reference, and a place for the tip beside."""
    model = zoo.double_pendulum()
    way = jdyn.control.Spline(model, [0.0, 0.5, 1.0], [[0.1, 0.2], [0.6, -0.4], [0.3, 0.5]])
    reach = jdyn.control.OperationalSpace(model, "tip", [0.8, 0.0, -1.2], kp=20.0, kd=5.0)
    follow = jdyn.control.Tracking(model, way, kp=100.0, kd=20.0) + reach
    motion = jdyn.simulate(
        model, jnp.array([0.3, 0.4]), jnp.zeros(2), 1.0, controller=follow, solver=diffrax.Tsit5(),
        saveat=times(), stepsize_controller=zoo.TIGHT,
    )  # fmt: skip
    return zoo.rows(motion)


@case(solved(1e-6), slow=False)
def digital_motor():
    """Sampled, delayed, limited and lagging torques."""
    model = zoo.pendulum()
    drive = jdyn.PD(model, jnp.ones(1), kp=50.0, kd=8.0)
    drive = jdyn.control.FirstOrderLag(jdyn.control.ZeroOrderHold(drive, period=0.02, delay=1), time_constant=0.03)
    drive = jdyn.Saturated(drive, model, effort=8.0)
    motion = jdyn.simulate(
        model, jnp.zeros(1), jnp.zeros(1), 1.0, controller=drive, saveat=times(), stepsize_controller=zoo.TIGHT
    )
    return zoo.rows(motion) | {"tau": motion.tau}


@case(solved(1e-3, "steps at the default tolerance, along stiff forces"), slow=False)
def stiff_gains():
    """The default solver goes over to implicit steps."""
    model = zoo.panda()
    hold = zoo.held(model, kp=1e5, kd=1e4)
    motion = jdyn.simulate(model, model.neutral(), zoo.still(model), 1.0, controller=hold, saveat=times())
    return zoo.rows(motion) | {"implicit": motion.stats["implicit_steps"] > 0}


@case(solved(1e-6))
def menagerie_by_rodas():
    """Joints of many kinds, springs and friction, by an implicit method."""
    model = zoo.menagerie()
    q, v, _, _ = zoo.state(model)
    motion = jdyn.simulate(
        model, q, v, 0.5, solver=jdyn.solvers.Rodas5P(), saveat=jnp.array([0.2, 0.5]), stepsize_controller=zoo.TIGHT
    )
    return zoo.rows(motion) | {"energy": motion.energy}


@case(solved(1e-6))
def quadruped_in_the_air():
    """A floating base, with torques, by a method of diffrax."""
    model = zoo.quadruped()
    q, v, tau, _ = zoo.state(model)
    motion = jdyn.simulate(
        model, q, v, 0.5, controller=jdyn.control.Constant(tau.at[:6].set(0)), solver=diffrax.Dopri8(),
        saveat=jnp.array([0.2, 0.5]), stepsize_controller=zoo.TIGHT,
    )  # fmt: skip
    return zoo.rows(motion) | {"momentum": motion.momentum}


@case(rounding(1e4, why="steps of one length"))
def every_step():
    """Rows at the steps of diffrax's and of symplectic methods."""
    model = zoo.double_pendulum()
    methods = {
        "Tsit5": diffrax.Tsit5(),
        "semi_implicit": jdyn.solvers.SemiImplicitEuler(),
        "midpoint": jdyn.solvers.ImplicitMidpoint(),
    }
    found = {}
    for name, method in methods.items():
        motion = jdyn.simulate(
            model, jnp.array([1.0, 0.5]), jnp.zeros(2), 0.21, solver=method, dt0=0.02,
            stepsize_controller=diffrax.ConstantStepSize(), saveat=diffrax.SaveAt(t0=True, steps=True), max_steps=16,
        )  # fmt: skip
        found |= {f"{name}_t": motion.ts, f"{name}_q": motion.q, f"{name}_v": motion.v}
    return found


@case(solved(1e-5, "steps at 1e-8, and those that watch the energy at their own"))
def other_methods():
    """Extrapolation, several steps, and steps by the energy's error."""
    model, found = zoo.double_pendulum(), {}
    methods = {
        "extrapolated": jdyn.solvers.BulirschStoer(),
        "multistep": jdyn.solvers.AdamsBashforthMoulton(),
        "by_energy": jdyn.solvers.EnergyError(diffrax.Tsit5()),
    }
    for name, method in methods.items():
        motion = jdyn.simulate(
            model, jnp.array([1.0, 0.5]), jnp.zeros(2), 1.0, solver=method, saveat=times(),
            stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-8),
        )  # fmt: skip
        found[name] = motion.q
    return found


@case(solved(1e-6))
def bounces():
    """Events with a reset, and one that ends the simulation."""
    model = zoo.double_pendulum()
    lowest = jdyn.Event(lambda t, y: y.q[0], reset=lambda t, y: dataclasses.replace(y, v=-0.8 * y.v))
    late = jdyn.Event(lambda t, y: t - 3.7, terminate=True, direction="rising")
    motion = jdyn.simulate(
        model, jnp.array([1.0, 0.5]), jnp.zeros(2), 5.0, events=[lowest, late], saveat=jnp.linspace(0.0, 5.0, 11),
        stepsize_controller=zoo.TIGHT, max_events=8,
    )  # fmt: skip
    happened = {name: getattr(motion.events, name) for name in ("ts", "which", "entry")}
    return zoo.rows(motion) | happened | {"after": motion.events.v}


@case(solved(1e-5, "springs at the ends are stiff"))
def ends_of_joints():
    """Impacts and springs at the ends of joints, one of which follows another."""
    model, found = zoo.hand(), {}
    for name, ends in {"impacts": jdyn.ImpactLimits(0.5), "compliant": jdyn.CompliantLimits()}.items():
        motion = jdyn.simulate(
            model, jnp.array([0.1, 0.02]), jnp.array([0.1, 0.3]), 0.5, joint_limits=ends,
            saveat=jnp.array([0.1, 0.3, 0.5]), stepsize_controller=zoo.TIGHT,
        )  # fmt: skip
        found |= {name: motion.q, f"{name}_v": motion.v}
        if name == "impacts":
            found["ts"] = motion.events.ts[:4]
    return found


class Pulse(jdyn.Controller):
    """A torque between two instants."""

    begin: jax.Array
    end: jax.Array

    def __call__(self, t, q, v):
        return jnp.where((t > self.begin) & (t < self.end), 5.0, 0.0)[None]


@case(solved(1e-6))
def a_pulse():
    """Forces that jump at known times, and the derivative by when."""
    model = zoo.pendulum()

    def pulsed(begin):
        end = begin + 1e-3
        return jdyn.simulate(
            model, jnp.zeros(1), jnp.zeros(1), 1.0, controller=Pulse(begin, end), jump_times=jnp.stack([begin, end]),
            solver=diffrax.Tsit5(), saveat=times(), stepsize_controller=zoo.TIGHT, throw=False,
        )  # fmt: skip

    def found(begin):
        return zoo.rows(pulsed(begin)) | {"slope": jax.grad(lambda begin: pulsed(begin).q[-1, 0])(begin)}

    return jax.jit(found)(jnp.asarray(0.4321))


@case(solved(1e-6))
def driven_four_bar():
    """A closed loop whose crank turns as it is told, and the forces that this takes."""
    model, loops, q, v = zoo.four_bar()
    drive = jdyn.constraints.PrescribedJoint("upright0", lambda t: 0.8 + 1.5 * t + 0.3 * t**2)
    motion = jdyn.simulate(
        model, q, v, 0.5, constraints=[*loops, drive], solver=diffrax.Tsit5(), saveat=jnp.array([0.2, 0.5]),
        stepsize_controller=zoo.TIGHT,
    )  # fmt: skip
    return zoo.rows(motion) | {"multipliers": motion.multipliers}


@case(solved(1e-6))
def rolling_ball():
    """A sphere that rolls, which no constraint of positions says, under a force."""
    model = jdyn.load("ball")
    q0 = model.neutral().at[2].set(0.1)
    rolls = [jdyn.constraints.RollingSphere("ball", 0.1)]
    push = jdyn.control.Constant(jnp.array([0.0, 0.05, 0.1, 0.0, 0.0, 0.0]))
    v0 = jnp.array([0.0, 3.0, 0.5, 0.3, 0.0, 0.0])
    motion = jdyn.simulate(
        model, q0, v0, 0.5, controller=push, constraints=rolls, solver=diffrax.Tsit5(), saveat=jnp.array([0.2, 0.5]),
        stepsize_controller=zoo.TIGHT,
    )  # fmt: skip
    return zoo.rows(motion)


@case(solved(1e-5))
def panda_batch():
    """Lanes with other gains, payloads and ends, one of which fails."""
    model = zoo.panda()
    lanes = 8
    gains = jnp.geomspace(20.0, 2000.0, lanes)
    control = eqx.filter_vmap(lambda kp: jdyn.PD(model, jnp.full(7, 0.3), kp=kp, kd=20.0))(gains)
    loaded = jax.vmap(lambda mass: model.with_body("link7", mass=mass))(jnp.linspace(0.5, 3.0, lanes))
    starts = zoo.wave(7 * lanes, size=0.3).reshape(lanes, 7).at[5, 2].set(jnp.nan)
    motion = jdyn.simulate_batch(
        loaded, starts, jnp.zeros((lanes, 7)), jnp.linspace(0.2, 1.0, lanes), controller=control,
        in_axes={"model": 0, "q0": 0, "v0": 0, "t1": 0, "controller": 0}, saveat=diffrax.SaveAt(t1=True),
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-8),
    )  # fmt: skip
    return zoo.rows(motion) | {"t_reached": motion.stats["t_reached"]}


@case(solved(1e-5))
def four_bar_batch():
    """Lanes with other masses, one of which starts with an open loop."""
    model, loops, q, v = zoo.four_bar()
    masses = jnp.array([0.5, 1.0, 2.0, 4.0])
    starts = jnp.tile(q, (4, 1)).at[3, 0].add(0.3)
    models = jax.vmap(lambda mass: model.with_body("coupler0", mass=mass))(masses)
    motion = jdyn.simulate_batch(
        models, starts, jnp.tile(v, (4, 1)), 0.5, constraints=loops, in_axes={"model": 0, "q0": 0, "v0": 0},
        saveat=diffrax.SaveAt(t1=True), stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-8),
    )  # fmt: skip
    return zoo.rows(motion)
