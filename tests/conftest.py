"""Strict JAX for every test: float64, no silent promotion of types or ranks. Warnings are errors (pyproject.toml).

Programs are compiled as users' are, so that tests of rounding, of float32 and of published figures check what users
run. Files whose assertions do not depend on rounding say so, `pytestmark = pytest.mark.fast_compile`, and are compiled
in half of the time.
"""

import collections
import gc
import os
import pathlib
import sys
from typing import get_args

# The commands that are tested leave the programs alone that their user's commands have kept. In a folder for those of
# tests all are kept: there are ten thousand, and most are compiled in less than a second.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "false")
else:
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import jaxlib.version
import pytest
from jax._src import compiler
from jax.extend import core

# Tests import benchmarks, which are not installed. Last, so that `jdyn` is the installed one.
sys.path.append(str(pathlib.Path(__file__).parents[1]))

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


# Tracing makes many objects, few of which form cycles: to look for these as often as Python does takes a sixth of the
# time of tests that compile, and saves no memory.
gc.set_threshold(50_000, 20, 50)

# Test programs run once, so XLA's machine-code optimiser would cost more than it saves. Programs in one part take a
# tenth less of the processors, which other tests keep busy; and without its newer emitters XLA compiles in two thirds
# of the time. It refuses flags that it does not know, and knew this one in jaxlib 0.10.
FAST = {"xla_backend_optimization_level": 0, "xla_cpu_parallel_codegen_split_count": 1}
if jaxlib.version.__version__.startswith("0.10."):
    FAST["xla_cpu_use_fusion_emitters"] = False


def pytest_addoption(parser):
    parser.addoption("--executor", help="what runs recursions of all models")


def pytest_configure(config):
    if executor := config.getoption("--executor"):
        from jdyn.model import Executor, Model

        if executor not in get_args(Executor):
            raise pytest.UsageError(f"--executor: expected one of {get_args(Executor)}, got {executor!r}")
        Model.__init__.__kwdefaults__["executor"] = executor


def pytest_collection_modifyitems(items):
    for item in items:
        if any(mark.name == "fast_compile" for mark in item.own_markers):
            raise pytest.UsageError(f"{item.nodeid}: fast_compile marks whole files, whose tests share programs")
    # Files that are compiled alike follow each other, and share programs too. Those that take longer come first: no
    # worker waits for another one in the end.
    count = collections.Counter(item.path for item in items)
    items.sort(key=lambda item: (item.get_closest_marker("fast_compile") is not None, -count[item.path]))


@pytest.fixture(autouse=True, scope="module")
def programs(request):
    """How a file's programs are compiled."""
    fast = request.node.get_closest_marker("fast_compile") is not None
    if fast != _compiled["fast"] or _memory_maps() > MOST_MAPS:
        jax.clear_caches()
    _compiled["fast"] = fast
    with pytest.MonkeyPatch.context() as patch:
        if fast:
            # JAX has no setting for it that is read after the first compilation.
            patch.setattr(compiler, "get_compile_options", _fast_options)
        yield


# How the programs of this process are compiled.
_compiled = {"fast": False}
# Compiled programs take memory maps, of which a process has 65530, and XLA aborts where they run out.
MOST_MAPS = 8_000
MAPS = pathlib.Path("/proc/self/maps")


def _memory_maps():
    """Those of this process; more than it may have where the system does not tell."""
    return len(MAPS.read_bytes().splitlines()) if MAPS.exists() else MOST_MAPS + 1


_user_options = compiler.get_compile_options


def _fast_options(*args, env_options_overrides=None, **kwargs):
    return _user_options(*args, env_options_overrides=FAST | (env_options_overrides or {}), **kwargs)


@pytest.fixture
def ordinary_promotion():
    """For tests of what goes through Optax or Optimistix, which mix types and ranks."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def chosen_by_aba(request):
    """For tests of what `ABA` chooses by itself."""
    if request.config.getoption("--executor"):
        pytest.skip("--executor has chosen")


@pytest.fixture
def programs_within():
    """The programs that an operation of a program is made of; those of deferred functions are traced for it."""
    from jdyn.execution.deferred import program_of

    def within(equation):
        deferred = program_of(equation)
        if deferred is not None:
            return [deferred.jaxpr]
        leaves = jax.tree.leaves(equation.params)
        return [getattr(x, "jaxpr", x) for x in leaves if isinstance(x, core.Jaxpr | core.ClosedJaxpr)]

    return within
