"""Batches as kernels: what a GPU is asked for, what runs elsewhere, and simulations whose lanes are threads."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from benchmarks.main_job import motion
from jdyn.dynamics.recursion import batching
from jdyn.execution import lane_refill
from jdyn.execution.threads import kernel, nvrtc
from jdyn.sweep import ControlledMove
from tests import test_cuda
from tests.execution.threads.on_host import needs_compiler, run, source

# Trees on free bases and on the ground.
CELL = {"arm": "double_pendulum", "a": "quadruped", "b": "quadruped"}
SLOW = "quadruped", "cell"
PTX = ".version 8.0 // instead of a compiler's"


@pytest.fixture
def gpu(monkeypatch):
    """Programs are made as for a GPU of NVIDIA; C++ is kept, and not compiled."""
    texts = []

    def compiled(text, architecture):
        texts.append(text)
        return PTX

    monkeypatch.setattr(kernel, "compiled", compiled)
    for module in (kernel, batching, lane_refill):
        monkeypatch.setattr(module, "threaded", lambda: True)
    monkeypatch.setattr(kernel, "_architecture", lambda: 90)
    yield texts
    jax.clear_caches()


def lowered(function, *operands):
    return jax.jit(function).trace(*operands).lower(lowering_platforms=("cuda",)).as_text()


def doubled(x, shared):
    return [2 * x + shared, jnp.stack([x, x * shared])]


def batch(x, shared, function=doubled, otherwise=None):
    def plain(x, shared):
        return jax.vmap(function, (0, None))(x, shared)

    return kernel.on_threads(function, otherwise or plain, len(x), [True, False], [x, shared])


def test_a_batch_is_one_call(gpu):
    text = lowered(batch, np.arange(100.0), np.float64(3.0))
    assert text.count("__gpu$xla.gpu.ptx") == 1 and PTX in text
    assert "grid_x = 4" in text and "block_x = 32" in text and "output_indices = [2 : i32, 3 : i32]" in text
    assert len(gpu) == 1 and "#define LANES 100" in gpu[0]


def test_results_that_nobody_uses_are_not_computed(gpu):
    text = lowered(lambda x, shared: batch(x, shared)[0], np.arange(100.0), np.float64(3.0))
    assert "output_indices = [2 : i32]" in text and "o1" not in gpu[0]


def test_a_batch_of_none_is_no_call(gpu):
    assert "xla.gpu.ptx" not in lowered(batch, np.zeros(0), np.float64(3.0)) and not gpu


def plain(x, shared):
    """What `batch` computes, without kernels."""
    return jax.vmap(doubled, (0, None))(x, shared)


def two_batches(axes):
    """Operands of two batches of three lanes, and of functions that take them so."""
    rng, (first, second) = np.random.default_rng(0), axes
    x = rng.normal(size=(3,) if first is None else (3, 2) if first == 1 else (2, 3))
    return x, np.float64(3.0) if second is None else rng.normal(size=2)


AXES = [(0, None), (None, 0), (0, 0), (1, 0)]


@pytest.mark.parametrize("axes", AXES)
def test_batches_of_batches_are_one_batch(gpu, axes):
    text = lowered(jax.vmap(batch, axes), *two_batches(axes))
    assert text.count("__gpu$xla.gpu.ptx") == 1 and len(gpu) == 1 and "#define LANES 6" in gpu[0]


@pytest.mark.parametrize("axes", AXES)
def test_batches_of_batches_run_in_another_way_elsewhere(axes):
    operands = two_batches(axes)
    expected = jax.vmap(plain, axes)(*operands)
    for found, other in zip(jax.jit(jax.vmap(batch, axes))(*operands), expected, strict=True):
        np.testing.assert_array_equal(found, other)


@needs_compiler
@pytest.mark.parametrize("axes", AXES)
def test_kernels_of_batches_of_batches(gpu, axes):
    operands = two_batches(axes)
    (equation,) = [x for x in jax.make_jaxpr(jax.vmap(batch, axes))(*operands).eqns if x.primitive.name == "threads"]
    whole = equation.params["batch"]
    x, shared = operands
    x = np.broadcast_to(x.T if axes[0] == 1 else x, (2, 3)).reshape(6)
    shared = shared if axes[1] is None else np.repeat(shared, 3)
    found = run(whole.source(), whole.lanes, whole.varies, [x, shared])
    for mine, other in zip(found, jax.vmap(plain, axes)(*operands), strict=True):
        np.testing.assert_array_equal(mine.reshape(other.shape), other)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (2, 2, 3)])
def test_batches_of_any_depth_and_size(shape):
    def nested(function):
        for _ in shape[1:]:
            function = jax.vmap(function, (0, None))
        return function

    operands = np.random.default_rng(0).normal(size=shape), np.float64(3.0)
    for found, expected in zip(jax.jit(nested(batch))(*operands), nested(plain)(*operands), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_batches_of_batches_of_dynamics(gpu):
    """As linear models along many plans."""
    model = jdyn.load("double_pendulum")

    def slopes(q):
        return jax.jacfwd(lambda v: jdyn.forward_dynamics(model, q, v, v))(q)

    text = lowered(jax.vmap(jax.vmap(slopes)), np.zeros((2, 3, model.nq)))
    lanes = {int(count) for count in re.findall(r"#define LANES (\d+)", "".join(gpu))}
    assert text.count("__gpu$xla.gpu.ptx") >= 1 and lanes <= {6, 6 * model.nv}, lanes


def test_elsewhere_a_batch_runs_as_it_did():
    x, shared = np.arange(5.0), np.float64(3.0)
    for found, expected in zip(jax.jit(batch)(x, shared), jax.vmap(doubled, (0, None))(x, shared), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_threads_cannot_do_runs_as_it_did_and_says_so(gpu):
    def values(x, shared):
        return [jnp.linalg.eigvalsh(jnp.diag(jnp.stack([x, shared])))]

    with pytest.warns(UserWarning, match="threads of a GPU cannot do the operation stablehlo.custom_call"):
        text = lowered(lambda x, shared: batch(x, shared, values), np.arange(5.0), np.float64(3.0))
    assert "xla.gpu.ptx" not in text and not gpu


def test_one_kernel_a_function_of_dynamics(gpu):
    model = jdyn.load("quadruped")
    q, v = jnp.tile(model.neutral(), (3, 1)), jnp.zeros((3, model.nv))
    text = lowered(jax.vmap(lambda q, v: jdyn.forward_dynamics(model, q, v, v)), q, v)
    assert text.count("__gpu$xla.gpu.ptx") == 1
    text = lowered(lambda q, v: jdyn.forward_dynamics(model, q, v, v), q[0], v[0])
    assert "__gpu$xla.gpu.ptx" not in text


@pytest.mark.filterwarnings("ignore:a batch runs slower")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=pytest.mark.exhaustive if x == test_cuda.SLOW else pytest.mark.slow)
        for x in test_cuda.FUNCTIONS
    ],
)
def test_all_functions_have_programs_for_batches(gpu, name):
    shapes = [(2, 3, size) for size in (test_cuda.MODEL.nq, test_cuda.MODEL.nv, test_cuda.MODEL.nv)]
    states = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]
    text = lowered(jax.vmap(jax.vmap(test_cuda.FUNCTIONS[name])), *states)
    # What works on whole arrays is fast as it is.
    assert ("gpu.ptx" in text) == (name not in ("Coriolis matrix", "ParallelABA()"))


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_the_main_job_has_kernels(gpu, gradient):
    """Its program grows as simulations learn more, and kernels have a limit."""
    reach = ControlledMove(jdyn.load("puma560", dtype=jnp.float32), 0)

    def lane(p):
        return motion(jnp.float32(2), reach, p)["residual"]

    lanes = {name: np.ones(4, np.float32) for name in ("kp", "payload")}
    assert lowered(jax.vmap(jax.grad(lane) if gradient else lane), lanes).count("gpu.ptx") == 1 + gradient


@needs_compiler
@pytest.mark.parametrize("name", ["double_pendulum", *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW)])
def test_forward_dynamics(gpu, name):
    parts = CELL if name == "cell" else {"alone": name}
    model, rng = jdyn.merge({x: jdyn.load(robot) for x, robot in parts.items()}), np.random.default_rng(0)
    q = np.array(jax.vmap(model.normalize)(rng.normal(size=(4, model.nq))))
    v, tau = rng.normal(size=(2, 4, model.nv))

    def accelerations(q, v, tau):
        return [jdyn.forward_dynamics(model, q, v, tau)]

    (found,) = run(source(accelerations, 4, [True] * 3, [q, v, tau]), 4, [True] * 3, [q, v, tau])
    expected = jax.jit(jax.vmap(lambda *x: jdyn.forward_dynamics(model, *x)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "threaded", lambda: False)
        expected = expected(q, v, tau)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


class OnHost:
    """Kernels run on the processor within JAX's programs."""

    def __call__(self, function, otherwise, lanes, varies, operands):
        lane = [jax.ShapeDtypeStruct(x.shape[each:], x.dtype) for x, each in zip(operands, varies, strict=True)]
        shapes = [jax.ShapeDtypeStruct((lanes, *x.shape), x.dtype) for x in jax.eval_shape(function, *lane)]

        def called(*operands):
            operands = [np.asarray(x) for x in operands]
            found = iter(run(source(function, lanes, varies, operands), lanes, varies, operands))
            return [next(found) if np.prod(x.shape) else np.zeros(x.shape, x.dtype) for x in shapes]

        return jax.pure_callback(called, shapes, *operands)


@pytest.fixture
def on_host(monkeypatch):
    monkeypatch.setattr(lane_refill, "threaded", lambda: True)
    monkeypatch.setattr(lane_refill, "on_threads", OnHost())
    jax.clear_caches()
    yield
    jax.clear_caches()


def _compared(function, *operands):
    """What threads find, and what XLA does."""
    found = jax.jit(jax.vmap(function))(*operands)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_refill, "threaded", lambda: False)
        jax.clear_caches()
        return found, jax.jit(jax.vmap(function))(*operands)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    "elements", [(), (jdyn.elements.PointSpring("tip", "world", 20.0, 1.0),)], ids=["alone", "on a spring"]
)
def test_simulations(on_host, elements):
    """Lanes take their own steps, some implicit; accepted steps are the same, and rows up to rounding."""
    model = jdyn.load("double_pendulum")
    starts = np.random.default_rng(0).normal(size=(3, model.nq))

    def motion(q):
        trajectory = jdyn.simulate(model, q, jnp.zeros_like(q), 1.0, elements=elements, throw=False)
        return trajectory.q, trajectory.stats["accepted_steps"], trajectory.result

    found, expected = _compared(motion, starts)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[2], expected[2])
    np.testing.assert_allclose(found[0], expected[0], atol=1e-12)


@needs_compiler
@pytest.mark.slow
@pytest.mark.exhaustive
def test_gradients_of_simulations(on_host):
    model, starts = jdyn.load("pendulum"), np.array([[0.3], [2.0]])

    def end(q):
        return jdyn.simulate(model, q, jnp.zeros_like(q), 0.3, throw=False).q[-1, 0]

    found, expected = _compared(jax.grad(end), starts)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("driver", "ptx"),
    [(0, "8.0"), (11080, "8.0"), (12000, "8.0"), (12050, "8.5"), (12060, "8.5"), (12080, "8.7"), (13000, "9.0")],
)
def test_ptx_is_of_the_version_that_the_driver_reads(driver, ptx, monkeypatch):
    """By the table of releases in NVIDIA's manual of PTX ISA."""

    class Driver:
        def cuDriverGetVersion(self, number):
            number._obj.value = driver
            return 0

    monkeypatch.setattr(nvrtc.ctypes, "CDLL", lambda name: Driver())
    assert nvrtc.for_driver(".version 9.3\n.target sm_90\n") == f".version {ptx}\n.target sm_90\n"
    # That of an older compiler stays.
    assert nvrtc.for_driver(".version 7.8\n") == ".version 7.8\n"


def test_nvrtc_compiles_or_says_what_is_missing():
    text = 'extern "C" __global__ void lanes(float* x) { x[threadIdx.x] *= 2; }'
    try:
        ptx = nvrtc.compiled(text, "compute_80")
    except FileNotFoundError as error:
        assert "pip install" in str(error)
        return
    assert ptx.count(".visible .entry lanes") == 1 and ".version {}.{}\n".format(*nvrtc.newest_ptx()) in ptx
    with pytest.raises(nvrtc.CompilationError, match="undefined"):
        nvrtc.compiled(text.replace("2;", "nothing;"), "compute_80")
