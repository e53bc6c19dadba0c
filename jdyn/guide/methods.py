"""# Choosing a method

All methods of forward dynamics solve the same equation, M a + h = τ. They differ in cost, and in how many digits they
keep. The default, `jdyn.ABA`, is right nearly always. This page is for the rest.

## What the mechanism asks for

`jdyn.diagnose` runs methods on random states of a mechanism, in float32 and in float64, compares them with a more
accurate one, and says which to take. Two rods of equal weight are easy for all of them:

>>> easy = jdyn.diagnose(jdyn.load("double_pendulum"))
>>> print(f"condition number up to {easy.condition.max():.0f}; take {easy.method}")
condition number up to 44; take ByBatch()

A short, light link between a heavy one and the base is not. The condition number of the mass matrix shows it:

>>> hard = jdyn.diagnose(jdyn.ROBOTS["double_pendulum"](lengths=[0.001, 1.0], masses=[1e-4, 1.0]))
>>> print(f"condition number above {10 ** np.floor(np.log10(hard.condition.max())):.0e}; take {hard.method}")
condition number above 1e+06; take ABA()
>>> print(hard.digits[jdyn.ABA()]["float32"] > 5, hard.digits[jdyn.CRBA()]["float32"] > 2)
True False

`print(hard)` shows all of it as a table. Errors of `jdyn.CRBA`, which forms the mass matrix and factors it, grow with
the condition number; those of `jdyn.ABA`, which eliminates one joint after another, do not. An adaptive solver
takes such errors for motion: a simulation fails, or takes many times the steps (`jdyn stiffness` shows it).

## Which method when

| you have | take |
|---|---|
| no reason to think about it | `jdyn.ABA`, the default |
| single configurations, up to a hundred joints | `jdyn.ByBatch`: `jdyn.CRBA` for one, `jdyn.ABA` in batches |
| masses or lengths that differ by a million, in float32 | `jdyn.ArrayABA`, three times as long |
| long chains, few lanes, a GPU | `jdyn.ParallelABA` |
| the wish that jdyn chooses | `method="auto"`, what `jdyn.diagnose` says |
| a result to check | `jdyn.CRBA` or `jdyn.studies.LeastConstraint`, which share nothing with ABA |

>>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
>>> for method in (jdyn.ABA(), jdyn.ArrayABA(), jdyn.CRBA(), jdyn.studies.LeastConstraint()):
...     print(type(method).__name__, jdyn.forward_dynamics(model, q, zero, zero, method=method).round(3))
ABA [-6.047  8.063]
ArrayABA [-6.047  8.063]
CRBA [-6.047  8.063]
LeastConstraint [-6.047  8.063]

Nine more are there for comparison, each as its paper has it: `jdyn.studies.MatrixABA`, `jdyn.studies.ModifiedABA`,
`jdyn.studies.WalkerOrin`, `jdyn.studies.ConjugateGradient`, `jdyn.studies.OrthogonalComplement`,
`jdyn.studies.GibbsAppell`, `jdyn.studies.GaussDP`, `jdyn.studies.BlockElimination`, `jdyn.studies.LeastConstraint`. All
of them go wherever a `method` does: into `jdyn.simulate`, `jdyn.linearize` and so on. Derivatives never go through a
method's recursion; they come from the equation, with the factors that the method has.

## float32 or float64

JAX computes in float32 unless `jax.config.update("jax_enable_x64", True)` comes first. The model decides: its numbers
have a type, and all that is computed from it has the same.

>>> print(jdyn.load("pendulum").dtype, jdyn.load("pendulum", dtype=jnp.float32).dtype)
float64 float32
>>> print(model.astype(jnp.float32).dtype)
float32

In float32, forward dynamics is good to about five digits. Simulations then have `rtol=1e-5, atol=1e-6` by themselves,
and larger tolerances with contact, since rounding hides smaller errors. They may be long: steps of
`diffrax.PIDController`, the default, are as short as a motion asks for, however late it is, and only what is a
function of time sees times rounded. For differences of large numbers and designs by `jdyn.LQR`, take float64.

## How recursions run

`model.executor` says how the bodies are visited: `"levels"` all bodies of one depth at once, `"lanes"` one after
another on single numbers with the batch last. `"auto"` takes levels for a single configuration, lanes for batches on a
processor, and one thread a lane on an NVIDIA GPU. Several robots in one model, see `jdyn.merge`, cost what each costs
alone: each tree has its own base, and matrices are zero between trees. There is no need to change the executor, but
`dataclasses.replace` can:

>>> import dataclasses
>>> lanes = dataclasses.replace(model, executor="lanes")
>>> print(jdyn.forward_dynamics(lanes, q, zero, zero).round(3))
[-6.047  8.063]
"""
