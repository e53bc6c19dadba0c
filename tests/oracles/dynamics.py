"""Equations of motion at one state: no steps, so that only rounding moves the results."""

import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from tests.oracles import zoo
from tests.oracles.case import case, rounding


def equations(model, q, v, tau, f_ext):
    """Everything at one state."""
    body = model.body_names[-1]
    pose = jdyn.frame_pose(model, q, body)
    return {
        "a": jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext),
        "tau": jdyn.inverse_dynamics(model, q, v, tau, f_ext=f_ext),
        "M": jdyn.mass_matrix(model, q),
        "bias": jdyn.bias_forces(model, q, v, f_ext=f_ext),
        "gravity": jdyn.gravity_forces(model, q),
        "coriolis": jdyn.coriolis_matrix(model, q, v),
        "jacobian": jdyn.jacobian(model, q, body, frame="world"),
        "place": pose.translation,
        "rotation": pose.rotation,
        "velocities": jdyn.body_velocities(model, q, v),
        "momentum": jdyn.momentum(model, q, v),
        "com": jdyn.center_of_mass(model, q),
        "energies": jnp.stack([jdyn.kinetic_energy(model, q, v), jdyn.potential_energy(model, q)]),
    }


@case(rounding(), slow=False)
def panda_equations():
    return jax.jit(equations)(zoo.panda(), *zoo.state(zoo.panda()))


@case(rounding(dtype=np.float32))
def panda_equations_float32():
    model = zoo.panda(jnp.float32)
    return jax.jit(equations)(model, *zoo.state(model))


@case(rounding())
def quadruped_equations():
    return jax.jit(equations)(zoo.quadruped(), *zoo.state(zoo.quadruped()))


@case(rounding())
def menagerie_equations():
    def found(model, q, v, tau, f_ext):
        return {
            "a": jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext),
            "M": jdyn.mass_matrix(model, q),
            "momentum": jdyn.momentum(model, q, v),
            "loads": jdyn.joint_forces(model, q, v, tau, f_ext=f_ext),
        }

    return jax.jit(found)(zoo.menagerie(), *zoo.state(zoo.menagerie()))


@case(rounding())
def quadruped_methods():
    methods = {"CRBA": jdyn.CRBA(), "ArrayABA": jdyn.ArrayABA(), "ParallelABA": jdyn.ParallelABA()}

    def found(model, q, v, tau, f_ext):
        return {
            name: jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=method)
            for name, method in methods.items()
        }

    return jax.jit(found)(zoo.quadruped(), *zoo.state(zoo.quadruped()))


@case(rounding())
def menagerie_derivatives():
    def found(model, q, v, tau, f_ext):
        slopes = jdyn.forward_dynamics_derivatives(model, q, v, tau, f_ext=f_ext)
        return dict(zip(("a_q", "a_v", "a_tau"), slopes, strict=True))

    return jax.jit(found)(zoo.menagerie(), *zoo.state(zoo.menagerie()))


@case(rounding())
def panda_derivatives():
    def found(model, q, v, tau, f_ext):
        inverse = jdyn.inverse_dynamics_derivatives(model, q, v, tau, f_ext=f_ext)
        names = ("tau_q", "tau_v", "tau_a", "A", "B")
        return dict(zip(names, (*inverse, *jdyn.linearize(model, q, v, tau)), strict=True))

    return jax.jit(found)(zoo.panda(), *zoo.state(zoo.panda()))


VARIED = ("body:link5.mass", "body:link7.com", "joint:joint3.friction")


@case(rounding())
def panda_derivatives_by_numbers_of_the_model():
    """In reverse and in forward mode, and a second derivative."""
    model = zoo.panda()
    q, v, tau, _ = zoo.state(model)
    at = {name: value for name, value in jdyn.parameters(model).items() if name in VARIED}

    def square(numbers, q):
        return jnp.sum(jdyn.forward_dynamics(jdyn.vary(model, numbers), q, v, tau) ** 2)

    def found(at, q):
        slopes, by_q = jax.grad(square, (0, 1))(at, q)
        along = jax.jvp(lambda x: jax.grad(square)(x, q), (at,), (at,))[1]
        forward = jax.jvp(lambda x: square(x, q), (at,), (at,))[1]
        flat = {"reverse": slopes, "second": along}
        stacked = {kind: jnp.concatenate([jnp.ravel(x) for x in jax.tree.leaves(y)]) for kind, y in flat.items()}
        return stacked | {"by_q": by_q, "forward": forward}

    return jax.jit(found)(at, q)


@case(rounding(), slow=False)
def panda_batch_of_models():
    """Lanes that differ in state and mass."""
    model, lanes = zoo.panda(), 32
    q = zoo.wave(lanes * 7).reshape(lanes, 7)
    v, tau = (zoo.wave(lanes * 7, phase).reshape(lanes, 7) for phase in (0.5, 0.9))
    masses = 1 + 0.5 * zoo.wave(lanes)

    def lane(mass, q, v, tau):
        return jdyn.forward_dynamics(model.with_body("link7", mass=mass), q, v, tau)

    return {"a": jax.jit(jax.vmap(lane))(masses, q, v, tau)}


@case(rounding(1e4, why="the four-bar's rows depend on each other in the plane"))
def four_bar_forces():
    model, loops, q, v = zoo.four_bar()

    def found(q, v, tau):
        motion = jdyn.constrained_dynamics(model, loops, q, v, tau)
        return {"a": motion.a, "forces": motion.forces, "multipliers": motion.multipliers}

    return jax.jit(found)(q, v, zoo.wave(model.nv))


@case(rounding(1e4))
def four_bar_derivatives():
    """In forward mode by a mass, in reverse mode by speeds and forces."""
    model, loops, q, v = zoo.four_bar()

    def a(mass, v, tau):
        return jdyn.constrained_dynamics(model.with_body("coupler0", mass=mass), loops, q, v, tau).a

    def found(*x):
        by_v, by_force = jax.grad(lambda *x: a(*x)[0], (1, 2))(*x)
        return {"by_mass": jax.jacfwd(a)(*x), "by_v": by_v, "by_force": by_force}

    return jax.jit(found)(jnp.asarray(1.0), v, zoo.wave(model.nv))


@case(rounding(1e4))
def four_bar_assembled():
    """From a guess, and its derivative by the place of a joint."""
    model, _, q, v = zoo.four_bar()

    def assembled(reach):
        point = jnp.stack([reach, 0 * reach, 0 * reach])
        loops = [jdyn.constraints.Connect("coupler0", "upright1", point_a=point, point_b=(1, 0, 0))]
        found = jdyn.assemble(model, loops, q + 0.05 * zoo.wave(model.nq), v, throw=False)
        return {"q": found.q, "v": found.v}

    def found(reach):
        here, slope = jax.jvp(assembled, (reach,), (jnp.ones_like(reach),))
        return here | {f"{name}_slope": x for name, x in slope.items()}

    return jax.jit(found)(jnp.asarray(1.05))


@case(rounding(), slow=False)
def panda_regressor():
    model = zoo.panda()
    q, v, a, _ = zoo.state(model)
    return {"regressor": jax.jit(jdyn.regressor)(model, q, v, a)}


@case(rounding(1e6, why="the condition of the base parameters"))
def identified_arm():
    """Base parameters of a double pendulum, and numbers identified from forces."""
    model, t = zoo.double_pendulum(), jnp.linspace(0.0, 3.0, 40)
    phases = jnp.array([1.3, 2.1])[None] * t[:, None]
    q, v, a = jnp.sin(phases), jnp.array([1.3, 2.1])[None] * jnp.cos(phases), 0 * phases
    true = jdyn.vary(model, {"body:link2.mass": 1.4})
    tau = jax.jit(jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(true, q, v, a)))(q, v, a)
    found = jdyn.identify(model, q, v, a, tau, parts=["inertias"])
    forces = jax.jit(jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(found.model, q, v, a)))(q[::10], v[::10], a[::10])
    return {"rank": np.asarray(jdyn.identification.base_parameters(model, parts=["inertias"]).rank), "forces": forces}


@case(rounding(1e4))
def gaps_of_the_quadruped():
    """Distances of shapes, their derivative, and the time until one touches."""
    model = jdyn.with_ground(zoo.quadruped())
    q0, _ = zoo.standing(model)
    q, pairs = q0.at[2].set(0.5), [("ground", "trunk"), ("ground", "fr_foot"), ("ground", "rl_shank")]

    def found(q, v):
        gaps = jdyn.contact.distances(model, q, pairs)
        slopes = jax.jacrev(lambda q: jdyn.contact.distances(model, q, pairs).distance)(q)
        until = jdyn.contact.time_of_contact(model, q, v, 1.0, pairs)
        return {"distance": gaps.distance, "normal": gaps.normal, "slopes": slopes, "until": until}

    return jax.jit(found)(q, zoo.still(model).at[5].set(-1.0).at[0].set(0.2))
