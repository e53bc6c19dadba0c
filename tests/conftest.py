"""Strict JAX for every test: float64, no silent promotion of types or ranks. Warnings are errors (pyproject.toml).

Test programs run once, so XLA's machine-code optimiser would cost more than it saves; XLA_FLAGS decides otherwise.
"""

import os

import jaxlib.version

# Without its newer emitters XLA compiles in two thirds of the time. It aborts at flags that it does not know, and knew
# this one in the version that was tried.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    + (" --xla_cpu_use_fusion_emitters=false" if jaxlib.version.__version__.startswith("0.10.") else ""),
)
# The commands that are tested leave the programs alone that their user's commands have kept.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "false")

import jax
import pytest
from jax.extend import core

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_addoption(parser):
    parser.addoption("--executor", help="what runs every ABA() that is made without saying so; not that of ByBatch()")


def pytest_configure(config):
    if executor := config.getoption("--executor"):
        from jdyn import ABA

        try:
            ABA(executor=executor)
        except ValueError as error:
            raise pytest.UsageError(f"--executor: {error}") from None
        ABA.__init__.__kwdefaults__["executor"] = executor


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Compiled programs take memory maps, of which a process has 65530: XLA aborts where they run out."""
    yield
    jax.clear_caches()


@pytest.fixture
def chosen_by_aba(request):
    """For tests of what `ABA` chooses by itself."""
    if request.config.getoption("--executor"):
        pytest.skip("--executor has chosen")


@pytest.fixture
def programs_within():
    """The programs that an operation of a program is made of; those of deferred functions are traced for it."""
    from jdyn.dynamics.deferred import program_of

    def within(equation):
        deferred = program_of(equation)
        if deferred is not None:
            return [deferred]
        leaves = jax.tree.leaves(equation.params)
        return [getattr(x, "jaxpr", x) for x in leaves if isinstance(x, core.Jaxpr | core.ClosedJaxpr)]

    return within
