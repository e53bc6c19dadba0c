"""# Choosing a solver

`jdyn.simulate` without options takes `jdyn.solvers.Automatic` with `rtol=1e-6, atol=1e-8` (in float32 `1e-5, 1e-6`). On
the nine motions of `python -m benchmarks.work_precision`, no integrator of MuJoCo or SciPy is faster for the same
error. So begin with

>>> model, q0, v0 = jdyn.load("double_pendulum"), jnp.array([1.0, 0.5]), jnp.zeros(2)
>>> motion = jdyn.simulate(model, q0, v0, 2.0)
>>> print(jdyn.Result(int(motion.result)).name, motion.stats["accepted_steps"] < 100)
success True

and change something only for a reason.

## Tolerances

A step controller of diffrax has them. Energy is a cheap check: without a controller and without damping, it should not
change by more than the tolerances explain.

>>> import diffrax
>>> def drift(rtol):
...     steps = diffrax.PIDController(rtol=rtol, atol=1e-2 * rtol)
...     energy = jdyn.simulate(model, q0, v0, 2.0, stepsize_controller=steps).energy
...     return float(jnp.max(jnp.abs(energy - energy[0])))
>>> print(drift(1e-4) < 1e-2, drift(1e-8) < 1e-6)
True True

`jdyn.solvers.EnergyError` makes the energy a part of the error that steps are judged by.

## Stiff motions

High gains, dampers and friction on light links hold the steps of an explicit method. `jdyn.solvers.Automatic` then
turns implicit by itself, each lane of a batch as it needs; the statistics say how often.

>>> firm = jdyn.PD(model, jnp.zeros(2), kp=1e5, kd=1e4)
>>> held = jdyn.simulate(model, q0, v0, 1.0, controller=firm)
>>> print(held.stats["implicit_steps"] > 0)
True

It takes stiffness away that each joint has by itself. Where a controller couples joints stiffly, as an LQR does, or a
memory of its own is fast, take `jdyn.solvers.Rodas5P`, which is implicit in all of it, or `jdyn.solvers.BaderDeuflhard`
for small tolerances.

## Which solver when

| you have | take |
|---|---|
| no reason to think about it | nothing: `jdyn.solvers.Automatic` |
| stiffness that couples joints | `jdyn.solvers.Rodas5P` |
| small tolerances, smooth motions | `jdyn.solvers.BulirschStoer`; stiff ones: `jdyn.solvers.BaderDeuflhard` |
| constant steps, energy that must not drift | `jdyn.solvers.ImplicitMidpoint` or `jdyn.solvers.StormerVerlet` |
| constant steps of low order | `jdyn.solvers.SemiImplicitEuler`; with high gains `jdyn.solvers.LinearlyImplicitEuler` |
| a method of diffrax that you trust | that one: `solver=diffrax.Dopri5()` |
| the wish to repeat an old paper | `jdyn.solvers.CashKarp`, `jdyn.solvers.AdamsBashforthMoulton` |

Constant steps need their size:

>>> options = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 0.002}
>>> motion = jdyn.simulate(model, q0, v0, 2.0, solver=jdyn.solvers.SemiImplicitEuler(), **options)
>>> print(motion.stats["accepted_steps"])
1000

## Events, limits and constraints

- `events=[jdyn.Event(condition, reset)]`: the state jumps where a condition falls through zero. The instant is found to
  rounding, and gradients go through it. Of events at one instant each happens. `jdyn.ImpactLimits` are such events at
  the ends of joints.
- `jump_times=[1.337, 1.339]`: forces jump there as functions of time. Steps end there, and miss no pulse.
- `joint_limits=jdyn.CompliantLimits()` are springs at these ends.
- `constraints=[jdyn.constraints.Connect(...)]` close loops. The start has to meet them (`jdyn.assemble` finds one), and
  every step ends on them.
- `elements=[jdyn.elements.PointSpring(...)]` are springs, drag and forces of yours. One that is stiff says how solvers
  may be implicit in it, see `jdyn.ForceElement`.

All of them work with every solver, but for constraints with `jdyn.solvers.Rodas5P` and `jdyn.solvers.BaderDeuflhard`,
whose Jacobians know none. `jdyn.guide.recipes` has examples.

## Contact

`contact=jdyn.CompliantContact()` is a force of the state, for any solver: take it where contact is soft, or gradients
are to be smooth. `contact=jdyn.ConvexContact()` brings a solver of its own, `jdyn.solvers.ConvexEuler`, which stiffness
and dry friction do not hold: what rests takes ever longer steps, what sticks does not creep, and loose tolerances, such
as 1e-3, go far. Its order is that of its rows, three if nothing is said; take five for tolerances below 1e-8, one with
constant steps for steps as simulators of games and robots take them. `contact=jdyn.RigidContact()` is for any solver,
and makes no force stiff; with constant steps take `jdyn.solvers.MoreauEuler`. `jdyn.guide.contact` says the rest.

>>> builder = jdyn.Builder("block")
>>> builder.add_link("block", jdyn.Free(), mass=1.0, inertia=(1e-3, 2e-3, 2e-3))
>>> builder.add_shape("block", "box", (0.2, 0.1, 0.1), role="collision")
>>> block = jdyn.with_ground(builder.build(), jdyn.pose(rpy=(0, 0.3, 0)))
>>> start = block.neutral().at[3:].set(jnp.array([jnp.cos(0.15), 0, jnp.sin(0.15), 0])).at[2].set(0.0523)
>>> steps = diffrax.PIDController(rtol=1e-3, atol=1e-3)
>>> rests = jdyn.simulate(block, start, jnp.zeros(6), 9.0, contact=jdyn.ConvexContact(), stepsize_controller=steps)
>>> print(rests.stats["accepted_steps"] < 200, bool(jnp.max(jnp.abs(rests.v[-1])) < 1e-3))
True True

## Gradients

- `jax.grad` needs nothing: steps are recorded, and replayed backwards. The memory is that of the steps. Where a
  coordinate rests, or stability holds explicit steps, these are also short enough for what only derivatives show, such
  as the vibrations of a spring in equilibrium, and may be many more than those of the simulation alone.
- `jax.jvp` and `jax.jacfwd` need `adjoint=diffrax.ForwardMode()`; for a few parameters they are faster, and
  `jdyn.tune_least_squares` asks for them.
- Steps count as constants, so gradients agree with differences up to the tolerances. `jdyn.gradient_health` says how
  well, where a gradient stops being finite, and whether it grows with the simulated time, as in chaotic motions.

## When it fails

`jdyn.SimulationError` says where and why. With `throw=False` the code is in `result`, and rows that were not
reached are NaN:

>>> short = jdyn.simulate(model, q0, v0, 2.0, max_steps=5, throw=False)
>>> print(jdyn.Result(int(short.result)).name, bool(jnp.isnan(short.q[-1]).all()))
max_steps True
>>> jdyn.Result.bad_model, jdyn.Result.bad_configuration
(<Result.bad_model: 8>, <Result.bad_configuration: 9>)

`jdyn.Result.turn` says that constant steps turn a free body or a ball joint by more than half a revolution each, beyond
what their coordinates tell. Step controllers that adapt lengths never get that far.

Too many steps are mostly a sign of stiffness that couples joints, of a force that is not smooth, or of tolerances that
float32 cannot meet.
"""
