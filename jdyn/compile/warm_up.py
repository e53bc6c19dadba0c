"""Programs that are compiled before they are needed."""

import dataclasses
import inspect
import time
import typing
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.dtypes import canonicalize_dtype
from jax.stages import Compiled
from jaxtyping import PyTree

from jdyn.dynamics.forward import forward_dynamics
from jdyn.model import Model, checked, dynamics_only

NUMBERS = jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct | float
AGAIN = "the program takes what it was compiled for, jdyn.warm_up compiles another"


@dataclasses.dataclass(frozen=True)
class Memory:
    """Memory that a program needs on its device [bytes].

    Attributes:
        arguments: Arguments, the model included.
        results: Results.
        workspace: Memory in use while it runs.
        code: The program itself; XLA does not report it for every device.
    """

    arguments: int
    results: int
    workspace: int
    code: int

    @property
    def total(self) -> int:
        return self.arguments + self.results + self.workspace + self.code


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A function that `jdyn.warm_up` has compiled: called like the function, it neither traces nor compiles.

    Arguments must have the shapes, types and topology that it was compiled for. They must lie on its device or on no
    particular one, like NumPy arrays and uncommitted JAX arrays. Their values are free, and so are the model's.

    >>> model = jdyn.load("pendulum")
    >>> program = jdyn.warm_up(model)
    >>> print(program(model, jnp.zeros(1), jnp.zeros(1), jnp.ones(1)).round(3))
    [3.]

    Attributes:
        compile_seconds: Time to trace and compile, or to load from JAX's compilation cache [s].
        memory: Memory that it needs; None where XLA does not report it.
    """

    compile_seconds: float
    memory: Memory | None
    _signature: inspect.Signature = dataclasses.field(repr=False)
    _arguments: dict[str, PyTree] = dataclasses.field(repr=False)
    _compiled: Compiled = dataclasses.field(repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function for each lane of the batch.

        Raises:
            ValueError: if an argument has another shape, type, topology or device than the program was compiled for.
        """
        in_order = not kwargs and len(args) == len(self._arguments)
        given = args if in_order else self._ordered(args, kwargs)
        arguments = [_number(known, dynamics_only(x)) for known, x in zip(self._arguments.values(), given, strict=True)]
        try:
            return self._compiled(*arguments)
        except (TypeError, ValueError):
            for (name, known), x in zip(self._arguments.items(), arguments, strict=True):
                _check(name, known, x)
            raise

    def _ordered(self, args, kwargs):
        try:
            given = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ValueError(f"expected the arguments {', '.join(self._arguments)}: {error}") from None
        return [given[name] for name in self._arguments]


def warm_up(
    model: Model,
    batch: int | None = None,
    function: Callable[..., Any] = forward_dynamics,
    *,
    in_axes: Mapping[str, Any] | None = None,
    **others: Any,
) -> Program:
    """Compile a function for batches of one size before the first batch is there.

    ```
    forward = jdyn.warm_up(model, 1024)
    print(forward.compile_seconds, forward.memory.total)
    a = forward(model, q, v, tau)  # q: (1024, nq); the masses may have changed

    def reached(model, q0, v0, kp):
        controller = jdyn.PD(model, target, kp=kp, kd=20.0)
        return jdyn.simulate(model, q0, v0, 2.0, controller=controller, throw=False).q[-1]

    simulation = jdyn.warm_up(model, 256, reached, kp=100.0, in_axes={"kp": 0})
    ```

    The program is for the device that the model was put on, or else for JAX's default device.

    >>> model = jdyn.load("pendulum")
    >>> energy = jdyn.warm_up(model, 3, jdyn.kinetic_energy)
    >>> print(energy(model, jnp.zeros((3, 1)), jnp.array([[1.0], [2.0], [3.0]])).round(3))
    [0.167 0.667 1.5  ]

    Args:
        model: The mechanism of one lane. Its topology and type are part of the program, its numbers are not. Its shapes
            are left out: a function of shapes takes them as another argument, such as `shapes=model.shapes`.
        batch: Lanes; one configuration without an axis of lanes if left out.
        function: Function of a model and one configuration: one of jdyn's, or your own. The program takes the model,
            which comes first, the arguments without a default, and those for which `others` gives numbers.
        in_axes: For each argument that differs between lanes, by name, the axis of the lanes or a PyTree of axes; None
            for what all lanes share. If left out, the state (`q`, `q0`, `v`, `v0`, `a`, `tau`, `f_ext`) differs and
            everything else is shared.
        **others: Other arguments of the function, by name. Floating-point numbers, arrays, and PyTrees of them are
            examples for one lane; the program takes others of the same shapes. Arguments without numbers, such as
            `method=jdyn.CRBA()`, `throw=False` or `max_steps=100`, are fixed.

    Returns:
        The program, called like the function: `program(model, q, v, tau)`.

    Raises:
        ValueError: if arguments are missing or unknown, or one of them mixes arrays with other values. Errors that the
            function raises while it is traced pass through.
    """
    checked(model)
    if batch is not None and batch < 1:
        raise ValueError(f"batch: expected at least one lane, got {batch}")
    if batch is None and in_axes:
        raise ValueError("in_axes: lanes can differ in a batch only, got batch=None")
    fixed = {name: x for name, x in others.items() if not any(isinstance(leaf, NUMBERS) for leaf in jax.tree.leaves(x))}
    examples = {name: dynamics_only(x) for name, x in others.items() if name not in fixed}
    signature = _signature(function, fixed, examples)
    lane = _lane(model.without_shapes(), signature, examples)
    if unknown := sorted(set(in_axes or ()) - set(lane)):
        raise ValueError(f"in_axes: expected names among {', '.join(lane)}, got {', '.join(unknown)}")
    axes = {name: 0 if name in _state(model) else None for name in lane} | {
        name: dynamics_only(axis) for name, axis in (in_axes or {}).items()
    }

    def run(model, *arguments):
        return function(model, **dict(zip(list(lane)[1:], arguments, strict=True)), **fixed)

    if batch is None:
        arguments = lane
    else:
        arguments = {name: _batched(x, axes[name], batch) for name, x in lane.items()}
        run = jax.vmap(run, tuple(axes[name] for name in lane))
    started = time.perf_counter()
    compiled = jax.jit(run).lower(*arguments.values()).compile()
    seconds = time.perf_counter() - started
    return Program(seconds, _memory(compiled), signature, arguments, compiled)


def _signature(function, fixed, examples):
    """The function's arguments that the program takes. Of several forms, it is the last one that takes a model."""
    form = (typing.get_overloads(function) or [function])[-1]
    parameters = dict(inspect.signature(form).parameters)
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    unknown = [name for name in (*fixed, *examples) if name not in parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in (parameter.kind for parameter in parameters.values()):
        raise ValueError(f"{unknown[0]}: the function takes {', '.join(parameters)} only")
    parameters |= {name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in unknown}
    taken = [
        parameter.replace(default=inspect.Parameter.empty)
        for name, parameter in parameters.items()
        if name in examples
        or (parameter.default is inspect.Parameter.empty and parameter.kind not in rest and name not in fixed)
    ]
    if not taken:
        raise ValueError("function: expected one whose first argument is the model")
    return inspect.Signature(taken)


def _lane(model, signature, examples):
    """The shapes of the program's arguments for one configuration."""
    first, *others = signature.parameters
    known = {name: jax.ShapeDtypeStruct(shape, model.dtype) for name, shape in _state(model).items()}
    known |= {name: _shapes(name, x, model.dtype) for name, x in examples.items()}
    if unknown := [name for name in others if name not in known]:
        raise ValueError(
            f"{unknown[0]}: warm_up knows the shapes of {', '.join(_state(model))}; of others it needs an example, "
            f"such as {unknown[0]}=1.0"
        )
    return {first: _shapes(first, model, model.dtype)} | {name: known[name] for name in others}


def _state(model: Model) -> dict[str, tuple[int, ...]]:
    """Shapes of the arguments that make up a state, by their names everywhere in jdyn."""
    return {
        **dict.fromkeys(("q", "q0"), (model.nq,)),
        **dict.fromkeys(("v", "v0", "a", "tau"), (model.nv,)),
        "f_ext": (model.nb, 6),
    }


def _shapes(name, tree, dtype):
    def shape(leaf):
        if not isinstance(leaf, NUMBERS):
            raise ValueError(
                f"{name}: expected floats and arrays only, got {type(leaf).__name__} among them; functools.partial "
                "makes such an argument part of the function"
            )
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        array = jnp.asarray(leaf, dtype if isinstance(leaf, float) else None)
        placed = getattr(array, "committed", False)
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding if placed else None)

    return jax.tree.map(shape, tree)


def _batched(tree, axes, batch):
    """The shapes of a batch, from those of a lane; `axes` are those of `jax.vmap`."""

    def stacked(axis, subtree):
        if axis is None:
            return subtree

        def with_lanes(x):
            place = axis % (len(x.shape) + 1)
            return x.update(shape=(*x.shape[:place], batch, *x.shape[place:]))

        return jax.tree.map(with_lanes, subtree)

    return jax.tree.map(stacked, axes, tree, is_leaf=lambda axis: axis is None)


def _memory(compiled):
    needed = compiled.memory_analysis()
    if needed is None:
        return None
    return Memory(
        arguments=needed.argument_size_in_bytes,
        results=needed.output_size_in_bytes,
        workspace=needed.temp_size_in_bytes,
        code=needed.generated_code_size_in_bytes,
    )


def _number(known, x):
    """A Python number in the type that the program was compiled for."""
    if type(x) not in (int, float) or not isinstance(known, jax.ShapeDtypeStruct):
        return x
    return np.asarray(x, known.dtype) if jnp.issubdtype(known.dtype, jnp.floating) else x


def _check(name, known, x):
    """Raise for the first part of `x` that the program was not compiled for."""
    leaves = jax.tree.leaves(x)
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise ValueError(
            f"{name}: a warmed-up program takes numbers, and this is traced (jit, vmap or grad), where the function "
            "itself belongs"
        )
    numbers = all(isinstance(leaf, NUMBERS | int) for leaf in leaves)
    if not numbers or jax.tree.structure(x) != jax.tree.structure(known):
        raise ValueError(f"{name}: expected {_described(known)}, got {_described(x)}; {AGAIN}")
    paths = [name + jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(known)]
    for path, expected, leaf in zip(paths, jax.tree.leaves(known), leaves, strict=True):
        if _described(leaf) != _described(expected):
            raise ValueError(f"{path}: expected {_described(expected)}, got {_described(leaf)}; {AGAIN}")


def _described(x) -> str:
    if isinstance(x, Model):
        return f"a model of the topology of {x.name!r}"
    if isinstance(x, NUMBERS | int):
        return f"{canonicalize_dtype(jnp.result_type(x))}{list(np.shape(x))}"
    return f"a {type(x).__name__}"
