"""The same answer twice: which calls agree in every bit, as the guide's chapter on rounding says.

How a processor fills its vectors decides about batches of other sizes; they are compared where all tests run.
"""

import hashlib
import subprocess
import sys

import diffrax
import jax
import numpy as np
import pytest

import jdyn

END = diffrax.SaveAt(t1=True)
ARM = jdyn.load("panda")
LANES = 16


def states(model, lanes=LANES):
    q = jax.vmap(model.random)(jax.random.split(jax.random.key(0), lanes))
    return q, jax.random.normal(jax.random.key(1), (lanes, model.nv), q.dtype)


@jax.jit
def accelerations(model, q, v):
    return jax.vmap(lambda q, v: jdyn.forward_dynamics(model, q, v, 0.3 * v))(q, v)


def ends(q, v):
    """Ends of a batch of motions of an arm under control."""
    system = jdyn.System(ARM, controller=jdyn.PD(ARM, ARM.neutral() + 0.3, kp=100.0, kd=20.0))
    return jdyn.simulate_batch(system, jdyn.State(q, v), 0.5, in_axes={"state": 0}, saveat=END).q[:, 0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["panda", "quadruped"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forward_dynamics_has_the_same_bits_in_all_batches(name, dtype):
    model = jdyn.load(name).astype(dtype)
    q, v = states(model)
    whole = accelerations(model, q, v)
    np.testing.assert_array_equal(accelerations(model, q, v), whole)
    for lanes in (2, 3, 8):
        np.testing.assert_array_equal(accelerations(model, q[:lanes], v[:lanes]), whole[:lanes])
    # Alone it is another program.
    alone = jdyn.forward_dynamics(model, q[0], v[0], 0.3 * v[0])
    np.testing.assert_allclose(alone, whole[0], rtol=0, atol=1e3 * np.finfo(dtype).eps * np.max(np.abs(whole[0])))


@pytest.mark.exhaustive
def test_lanes_of_simulations_have_the_same_bits_in_all_batches():
    q, v = states(ARM)
    whole = ends(q, v)
    np.testing.assert_array_equal(ends(q, v), whole)
    for lanes in (2, 5):
        np.testing.assert_array_equal(ends(q[:lanes], v[:lanes]), whole[:lanes])


CHILD = """
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tests.test_same_bits import ARM, accelerations, digest, ends, states
devices = jax.devices()
assert len(devices) == {devices}
lanes = NamedSharding(Mesh(np.array(devices), ("lanes",)), PartitionSpec("lanes"))
q, v = (jax.device_put(x, lanes) for x in states(ARM))
print(digest(accelerations(ARM, q, v)), digest(ends(q, v)))
"""


def digest(x) -> str:
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("devices", [1, 2])
def test_other_processes_and_devices_have_the_same_bits(devices, monkeypatch):
    """Compiled anew; lanes are split over two devices of this machine."""
    monkeypatch.setenv("XLA_FLAGS", f"--xla_force_host_platform_device_count={devices}")
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "false")
    q, v = states(ARM)
    expected = f"{digest(accelerations(ARM, q, v))} {digest(ends(q, v))}"
    command = [sys.executable, "-c", CHILD.format(devices=devices)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split() == expected.split()
