"""Whoever swaps arguments is told which one must be the model."""

import inspect

import jax.numpy as jnp
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile


def _required(function):
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(function).parameters.values()
    return [p for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]


def _taking_a_model():
    for module in (jdyn, jdyn.plots):
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if callable(function) and not name.startswith("_"):
                try:
                    required = _required(function)
                except (TypeError, ValueError):
                    continue
                if any(p.name == "model" for p in required):
                    yield pytest.param(function, id=name)


FUNCTIONS = list(_taking_a_model())


def test_the_walk_finds_the_functions():
    assert len(FUNCTIONS) > 30


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_wrong_model_is_named(function):
    arguments = {p.name: jnp.ones(2) for p in _required(function)}
    with pytest.raises(ValueError, match=r"^model: expected a jdyn\.Model .*, got an array of shape \(2,\); are the"):
        function(**arguments)


def test_swapped_arguments_by_position():
    model = jdyn.load("double_pendulum")
    q = jnp.ones(2)
    with pytest.raises(ValueError, match=r"model: expected a jdyn\.Model"):
        jdyn.forward_dynamics(q, model, q, q)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"model: expected a jdyn\.Model.* got a str"):
        jdyn.mass_matrix("panda", q)  # pyright: ignore[reportArgumentType]
