"""Which forward-dynamics method to trust with a mechanism, by evidence."""

import contextlib
import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import inverse_dynamics
from jdyn.dynamics.mass_matrix import mass_matrix
from jdyn.dynamics.methods import ABA, CRBA, ArrayABA, ByBatch, Method
from jdyn.execution.compiled import compiled_once
from jdyn.model import Model, checked

# Fewest digits that a simulation should have.
ENOUGH = {"float32": 4.0, "float64": 9.0}
# With more degrees of freedom, forming and factoring M takes as long as eliminating joints does.
FEW = 256


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Accuracy of methods of forward dynamics on a mechanism; `print` shows it as a table.

    >>> diagnosis = jdyn.diagnose(jdyn.load("double_pendulum"))
    >>> bool(diagnosis.condition.max() < 1000), diagnosis.name
    (True, 'double_pendulum')

    Attributes:
        name: Name of the mechanism.
        condition: Condition number of the mass matrix in each configuration.
        digits: Decimal digits of the acceleration that each method keeps, in the worst configuration, by floating type.
        residuals: Largest ID(FD(τ)) − τ of each method, relative to the largest of |M| |a| + |h|.
        method: The recommended method, in the type that the model has.
        recommendation: Why, in a sentence.
    """

    name: str
    condition: np.ndarray
    digits: dict[Method, dict[str, float]]
    residuals: dict[Method, dict[str, float]]
    method: Method
    recommendation: str

    def __str__(self):
        width = max(len(str(method)) for method in self.digits)
        rows = [
            f"{self.name}: condition number of the mass matrix {min(self.condition):.3g} to {max(self.condition):.3g}",
            f"{'':{width}}  {'digits':>16}  {'residual':>19}",
            f"{'':{width}}  float32  float64   float32   float64",
        ]
        for method, digits in self.digits.items():
            residuals = self.residuals[method]
            rows.append(
                f"{method!s:{width}}  {digits['float32']:7.1f}  {digits['float64']:7.1f}   "
                f"{residuals['float32']:7.0e}   {residuals['float64']:7.0e}"
            )
        return "\n".join([*rows, self.recommendation])


def diagnose(
    model: Model,
    q: Float[Array, "samples nq"] | None = None,
    *,
    method: Method | Sequence[Method] = (),
    samples: int = 16,
    seed: int = 0,
) -> Diagnosis:
    """Measure how ill-conditioned a mechanism is, and how many digits methods of forward dynamics keep on it.

    States are drawn at random. Every method is run in float32 and in float64, and compared with `ArrayABA` in float64
    on the same data, which for float32 is rounded first, so that arithmetic alone counts; `ArrayABA` itself is
    compared with `ABA`.

    >>> jdyn.diagnose(jdyn.load("double_pendulum")).method
    ByBatch()

    Args:
        model: The mechanism; its leaves must be numbers, not traced.
        q: Configurations to look at [rad or m]; drawn within the limits if left out.
        method: Methods to look at besides `ABA`, `ArrayABA` and `CRBA`.
        samples: How many configurations to draw.
        seed: Which ones.

    Raises:
        ValueError: if the model is traced, nothing of it moves, `q` has another shape, or `samples` is not positive.
    """
    checked(model)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((model, q))):
        raise ValueError(
            f"diagnose looks at numbers, and {model.name!r} is traced here (jit, vmap or grad): call it outside, and "
            "pass the `method` that it recommends"
        )
    if not model.nv:
        raise ValueError(f"diagnose looks at the mass matrix, and nothing of {model.name!r} moves: it has none")
    if samples < 1:
        raise ValueError(f"samples: expected at least 1, got {samples}")
    more = [method] if isinstance(method, Method) else list(method)
    # Only where something is traced: constants of programs would be computed one by one.
    traced = isinstance(jnp.zeros(()), Tracer)
    with jax.ensure_compile_time_eval() if traced else contextlib.nullcontext(), jax.enable_x64(True):
        bare = model.without_shapes()
        states = _states(bare, q, samples, seed)
        return _diagnosis(bare, states, list(dict.fromkeys([ABA(), ArrayABA(), CRBA(), *more])))


def chosen_method(model: Model) -> Method:
    """The method that `diagnose` recommends; evidence is gathered once for equal models."""
    checked(model)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(model)):
        raise ValueError(
            f"method='auto' looks at numbers, and {model.name!r} is traced here (jit, vmap or grad): outside, choose "
            "with jdyn.diagnose(model).method and pass that"
        )
    if not model.nv:
        return ABA()
    leaves, structure = jax.tree.flatten(model.without_shapes())
    return _chosen(structure, tuple((leaf.tobytes(), leaf.dtype.name, leaf.shape) for leaf in map(np.asarray, leaves)))


@functools.lru_cache(maxsize=256)
def _chosen(structure, leaves):
    arrays = [np.frombuffer(data, dtype).reshape(shape) for data, dtype, shape in leaves]
    return diagnose(jax.tree.unflatten(structure, arrays)).method


def _states(model: Model, q, samples: int, seed: int):
    """Configurations, velocities, and forces, all in float32. Each force is as large as its joint alone needs to
    accelerate by one: with much larger forces the problem would be ill-posed for every method."""
    keys = jax.random.split(jax.random.key(seed), 3)
    single = model.astype(jnp.float32)
    if q is None:
        q = jax.vmap(single.random)(jax.random.split(keys[0], samples))
    q = jnp.asarray(q, jnp.float32)
    if q.ndim != 2 or q.shape[1] != model.nq or len(q) == 0:
        raise ValueError(f"q: expected shape (samples, {model.nq}) for {model.name!r}, got {q.shape}")
    v, force = (jax.random.normal(key, (len(q), model.nv), jnp.float32) for key in keys[1:])
    M = _mass_matrices(*_as((single, q), jnp.float64))
    felt = 1 / np.diagonal(np.linalg.inv(M), axis1=1, axis2=2)
    return q, v, force * felt.astype(np.float32)


def _as(tree, dtype):
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), tree)


def _diagnosis(model, states, methods):
    given = {np.dtype(dtype).name: (model.astype(dtype), *_as(states, dtype)) for dtype in (jnp.float32, jnp.float64)}
    # The same data without rounding of arithmetic. Methods treat rotations that are rounded to float32 differently,
    # since they are not quite rotations: judge float64 on a model in float64.
    exact = {dtype: _as(arguments, jnp.float64) for dtype, arguments in given.items()}
    found = {method: {dtype: _found(method, *given[dtype]) for dtype in given} for method in methods}
    references = {method: {dtype: _found(method, *exact[dtype]) for dtype in given} for method in (ABA(), ArrayABA())}
    masses = {dtype: _mass_matrices(model, q) for dtype, (model, q, *_) in exact.items()}
    bias = {dtype: _forces(model, q, v, jnp.zeros_like(v)) for dtype, (model, q, v, _) in exact.items()}
    digits, residuals = {}, {}
    for method, by_type in found.items():
        reference = references[ABA() if method == ArrayABA() else ArrayABA()]
        digits[method] = {dtype: _digits(a, reference[dtype]) for dtype, a in by_type.items()}
        residuals[method] = {
            dtype: _residual(a, exact[dtype], masses[dtype], bias[dtype]) for dtype, a in by_type.items()
        }
    chosen, why = _recommended(digits, np.dtype(model.dtype).name, model.nv)
    return Diagnosis(model.name, np.linalg.cond(masses["float64"]), digits, residuals, chosen, why)


@compiled_once
def _mass_matrices(model, q):
    return jax.vmap(mass_matrix, (None, 0))(model, q)


@functools.partial(compiled_once, static_argnums=0)
def _accelerations(method, model, q, v, tau):
    return jax.vmap(lambda q, v, tau: method.accelerations_and_factors(model, q, v, tau, None)[0])(q, v, tau)


def _found(method, model, q, v, tau):
    return np.asarray(_accelerations(method, model, q, v, tau), float)


def _digits(a, reference) -> float:
    """Digits in the worst sample; zero where a number is not finite."""
    error = np.linalg.norm(a - reference, axis=1) / np.linalg.norm(reference, axis=1)
    with np.errstate(divide="ignore"):
        return float(np.clip(np.min(np.where(np.isfinite(error), -np.log10(error), 0)), 0, 16))


def _residual(a, arguments, masses, bias) -> float:
    if not np.all(np.isfinite(a)):
        return float("nan")
    model, q, v, tau = arguments
    residual = np.abs(_forces(model, q, v, jnp.asarray(a)) - tau)
    terms = np.abs(bias) + (np.abs(masses) @ np.abs(a)[..., None])[..., 0]
    return float(np.max(np.max(residual, axis=1) / np.max(terms, axis=1)))


@compiled_once
def _forces(model, q, v, a):
    return jax.vmap(inverse_dynamics, (None, 0, 0, 0))(model, q, v, a)


def _recommended(digits, dtype: str, nv: int) -> tuple[Method, str]:
    by_aba, by_array, by_crba = (digits[method][dtype] for method in (ABA(), ArrayABA(), CRBA()))
    # One digit to spare, for states other than the samples.
    if by_aba >= ENOUGH[dtype] and by_crba >= ENOUGH[dtype] + 1 and nv <= FEW:
        return ByBatch(), (
            f"ABA() keeps {by_aba:.1f} digits in {dtype}: use it, and for one configuration at a time CRBA(), which is "
            f"faster there and keeps {by_crba:.1f}; ByBatch() is both."
        )
    if by_aba >= ENOUGH[dtype]:
        return ABA(), f"ABA() keeps {by_aba:.1f} digits in {dtype}: use it."
    if by_array >= by_aba + 1:
        return ArrayABA(), (
            f"ArrayABA() keeps {by_array:.1f} digits in {dtype} where ABA() keeps {by_aba:.1f}: use it"
            + (", or float64." if dtype == "float32" else ".")
        )
    better = "use float64." if dtype == "float32" else "look for masses and lengths that should be less far apart."
    return ABA(), f"No method keeps more than {max(by_aba, by_array):.1f} digits in {dtype}: {better}"
