"""Laws of mechanics on random trees: kinds of joints by two, and all of them in one tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.dynamics import mass_product
from jdyn.model.random_tree import ALL_KINDS
from tests.drawn import with_joint_elements

pytestmark = pytest.mark.fast_compile

EPS = float(np.finfo(np.float64).eps)
# Kinds by two, so that a law that one breaks is known to be its.
PAIRS = zip(ALL_KINDS[::2], ALL_KINDS[1::2], strict=True)
CASES = {f"{a.__name__} and {b.__name__}": (4, (a, b)) for a, b in PAIRS} | {"all": (10, ALL_KINDS)}


# One pair of kinds by default; another one takes as long again to compile, and the tree of every kind four times. The
# other pairs say which kind breaks a law that the tree of every kind finds broken.
FIRST, *OTHERS, ALL = CASES
PARAMETERS = [
    FIRST,
    *(pytest.param(case, marks=[pytest.mark.slow, pytest.mark.exhaustive]) for case in OTHERS),
    pytest.param(ALL, marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=PARAMETERS, ids=str)
def laws(request):
    """Every quantity that the laws need, at one random state, from one compiled function."""
    nb, kinds = CASES[request.param]
    model = with_joint_elements(jdyn.random_tree(7, nb, kinds=kinds))
    keys = jax.random.split(jax.random.key(1), 4)
    q, v = model.random(keys[0]), jax.random.normal(keys[1], (model.nv,))
    a, f_ext = jax.random.normal(keys[2], (model.nv,)), jax.random.normal(keys[3], (model.nb, 6))
    return model, v, a, jax.tree.map(np.asarray, _quantities(model, q, v, a, f_ext))


@jax.jit
def _quantities(model, q, v, a, f_ext):
    tau = jdyn.inverse_dynamics(model, q, v, a, f_ext=f_ext)
    zero = jnp.zeros(model.nv)

    def along(function):
        """Rate of a function of the state that passes (q, v) with acceleration a."""
        return jax.jvp(function, (q, v), (model.rate(q, v), a))[1]

    gradient = jax.grad(lambda dv: jdyn.potential_energy(model, model.integrate(q, dv)))(zero)
    springs = jdyn.dynamics.passive_forces(model, model.expand(q), jnp.zeros(model.topology.v_offsets[-1]))
    columns = jax.vmap(lambda e: mass_product(model, q, e), out_axes=1)(jnp.eye(model.nv))
    return {
        "tau": tau,
        "ABA": jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext),
        "CRBA": jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext, method=jdyn.CRBA()),
        "M": jdyn.mass_matrix(model, q),
        "M by columns": columns,
        "M by derivative": jax.jacfwd(lambda a: jdyn.inverse_dynamics(model, q, v, a))(a),
        "M rate": along(lambda q, v: jdyn.mass_matrix(model, q)),
        "C": jdyn.coriolis_matrix(model, q, v),
        "bias": jdyn.bias_forces(model, q, v),
        "gravity": jdyn.gravity_forces(model, q),
        "springs": springs,
        "passive": jdyn.dynamics.passive_forces(model, model.expand(q), model.expand_velocity(v)),
        "potential gradient": gradient,
        "kinetic": jdyn.kinetic_energy(model, q, v),
        "energy rate": along(lambda q, v: jdyn.kinetic_energy(model, q, v) + jdyn.potential_energy(model, q)),
        "free tau": jdyn.inverse_dynamics(model, q, v, a),
        "momentum": jdyn.momentum(model, q, v),
        "com": jdyn.center_of_mass(model, q),
        "com rate": along(lambda q, v: jdyn.center_of_mass(model, q)),
        "Y": jdyn.regressor(model, q, v, a),
        "jacobian v": jnp.stack([jdyn.jacobian(model, q, b) @ v for b in range(model.nb)]),
        "velocities": jdyn.body_velocities(model, q, v),
    }


def _close(x, y, factor=1e3):
    """Equal up to `factor` roundings of the largest entry."""
    scale = max(np.max(np.abs(x)), np.max(np.abs(y)), 1.0)
    np.testing.assert_allclose(x, y, rtol=0, atol=factor * EPS * scale)


@pytest.mark.slow
def test_forward_inverts_inverse(laws):
    model, _, a, x = laws
    # Rounding tau alone moves the answer by |M⁻¹| |tau| ε.
    unavoidable = EPS * np.max(np.abs(np.linalg.inv(x["M"])) @ np.abs(x["tau"]))
    for method in ("ABA", "CRBA"):
        assert np.max(np.abs(x[method] - a)) < 50 * model.nb * max(unavoidable, EPS), method


def test_mass_matrix(laws):
    _, _, _, x = laws
    np.testing.assert_array_less(0, np.linalg.eigvalsh(x["M"]))
    _close(x["M"], x["M"].T)
    _close(x["M"], x["M by columns"])
    _close(x["M"], x["M by derivative"])


def test_bias_is_coriolis_gravity_and_passive(laws):
    _, v, _, x = laws
    _close(x["C"] @ v + x["gravity"] - x["passive"], x["bias"])
    rate = x["M rate"] - 2 * x["C"]
    _close(rate, -rate.T, 1e4)


def test_conservative_forces_are_gradients(laws):
    _, _, _, x = laws
    _close(x["gravity"] - x["springs"], x["potential gradient"], 1e4)


def test_power_balance(laws):
    """What the actuators and the dissipating joints put in is what the energy gains."""
    _, v, _, x = laws
    dissipated = (x["passive"] - x["springs"]) @ np.asarray(v)
    _close(x["free tau"] @ np.asarray(v) + dissipated, x["energy rate"], 1e4)


def test_kinetic_energy(laws):
    _, v, _, x = laws
    _close(0.5 * v @ x["M"] @ v, x["kinetic"])


def test_momentum_is_mass_times_velocity_of_the_center(laws):
    model, _, _, x = laws
    _close(x["momentum"][3:], np.sum(model.inertias.mass) * x["com rate"], 1e4)


def test_regressor(laws):
    model, _, a, x = laws
    I = model.inertias
    parameters = np.concatenate([I.mass[:, None], I.first_moment, I.rotational], axis=1).ravel()
    rotors = model.armature * a - x["passive"]
    _close(x["Y"] @ parameters + rotors, x["free tau"])


def test_jacobians_give_velocities(laws):
    _, _, _, x = laws
    _close(x["jacobian v"], x["velocities"])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_trees_of_a_hundred_bodies():
    """Batched round trip; the bound is what rounding the forces makes unavoidable, times the number of bodies."""
    for reach, kinds in ((None, ALL_KINDS), (1, (jdyn.Revolute, jdyn.Prismatic))):
        model = with_joint_elements(jdyn.random_tree(3, 100, reach=reach, kinds=kinds))
        keys = jax.random.split(jax.random.key(0), 3)
        q, v, a = model.random(keys[0]), *(jax.random.normal(key, (model.nv,)) for key in keys[1:])
        tau = jax.jit(jdyn.inverse_dynamics)(model, q, v, a)
        found = jax.jit(jdyn.forward_dynamics)(model, q, v, tau)
        inverse = np.linalg.inv(jax.jit(jdyn.mass_matrix)(model, q))
        unavoidable = EPS * np.max(np.abs(inverse) @ np.abs(tau))
        error = np.max(np.abs(found - a))
        assert error < model.nb * unavoidable
        # A chain of a hundred is too ill-conditioned for that.
        assert error < 1e-12 or reach == 1


def test_frame_invariance():
    """Moving the whole mechanism rigidly, gravity with it, changes no joint-space quantity."""
    model = jdyn.random_tree(11, 5, kinds=(jdyn.Revolute, jdyn.Prismatic, jdyn.Ball))
    R, p = jdyn.pose(rpy=(0.3, -1.1, 2.0)).rotation, jnp.array([3.0, -2.0, 1.0])
    moved = jdyn.Transform(jnp.asarray(R), p) @ jax.tree.map(lambda x: x[0], model.placements)
    other = model.with_joint("joint0", placement=moved).with_gravity(R @ model.gravity)
    keys = jax.random.split(jax.random.key(2), 3)
    q, v, tau = model.random(keys[0]), *(jax.random.normal(k, (model.nv,)) for k in keys[1:])
    forward = jax.jit(lambda m: (jdyn.forward_dynamics(m, q, v, tau), jdyn.kinetic_energy(m, q, v)))
    for x, y in zip(forward(model), forward(other), strict=True):
        _close(np.asarray(x), np.asarray(y), 1e4)


@pytest.mark.slow
def test_order_of_declaration_does_not_matter():
    """Bodies may be declared in any order; the builder sorts them parents first."""

    def build(order):
        builder = jdyn.Builder("y")
        links = {
            "a": dict(parent="world", placement=(0, 0, 0)),
            "b": dict(parent="a", placement=(0.1, 0, 0.3)),
            "c": dict(parent="a", placement=(-0.1, 0, 0.3)),
            "d": dict(parent="b", placement=(0, 0.2, 0)),
        }  # fmt: skip
        for name in order:
            builder.add_link(name, jdyn.Revolute((0, 1, 0.2)), mass=1.0, com=(0, 0, 0.1), inertia=0.01, **links[name])
        return builder.build()

    first, second = build("abcd"), build("dcba")
    q = dict(zip(first.joint_names, (0.3, -0.7, 1.1, 0.4), strict=True))
    results = []
    for model in (first, second):
        state = jnp.array([q[name] for name in model.joint_names])
        a = jdyn.forward_dynamics(model, state, state, -state)
        results.append(dict(zip(model.joint_names, a.tolist(), strict=True)))
    assert results[0] == pytest.approx(results[1], rel=1e-12)


def test_sizes_are_checked_at_trace_time():
    model = jdyn.random_tree(0, 2, kinds=(jdyn.Revolute,))
    x = jnp.zeros(2)
    with pytest.raises(ValueError, match=r"tau: expected shape \(2,\).*got \(3,\)"):
        jax.jit(jdyn.forward_dynamics)(model, x, x, jnp.zeros(3))
    with pytest.raises(ValueError, match=r"f_ext: expected shape \(2, 6\)"):
        jdyn.inverse_dynamics(model, x, x, x, f_ext=jnp.zeros(6))
    with pytest.raises(ValueError, match="no body or frame is called 'hand'"):
        jdyn.jacobian(model, x, "hand")
