"""Sweeps on several devices and on a cluster, in processes of their own."""

import subprocess
import sys
import types
from concurrent.futures import Future

import numpy as np
import pytest
import xarray

from jdyn.sweep import engines

pytestmark = pytest.mark.slow

# Lanes of unequal lengths, and one that fails.
LANE = """
import os, sys, threading, time
import jax, jax.numpy as jnp, numpy as np, jdyn
jax.config.update("jax_enable_x64", True)
model = jdyn.load("pendulum")

def lane(p):
    heavy = model.with_body(model.body_names[0], mass=p["mass"])
    controller = jdyn.PD(model, [0.5], kp=p["mass"], kd=0.1)
    start = p["q0"][None], jnp.zeros(1), p["t1"]
    motion = jdyn.simulate(heavy, *start, controller=controller, saveat=[0.0, p["t1"]], throw=False)
    return {"q": motion.q[-1, 0], "steps": motion.stats["accepted_steps"], "result": motion.result}

starts = np.linspace(0, 3, 3000)
starts[1234] = np.nan
design = jdyn.designs.Samples(mass=np.linspace(1, 2, 3000), q0=starts, t1=np.geomspace(0.1, 10, 3000))
"""

LOCAL = f"{LANE}\njdyn.sweep(lane, design, chunk=101, store=sys.argv[1])\n"

DEVICES = f"""
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
{LANE}
from jdyn.sweep.program import Program

used, lowered_for = [], Program._lowered_for
Program._lowered_for = lambda self, device: used.append(device) or lowered_for(self, device)
jdyn.sweep(lane, design, chunk=101, store=sys.argv[1])
assert used == jax.local_devices() and len(used) == 2
"""

# Workers import the program, and must not learn the precision from it.
CLUSTER = f"""
{LANE.replace("jax.config", "if __name__ == '__main__': jax.config")}
def main():
    import dask, distributed
    from jdyn.sweep.store import Store

    def killing(self, chunk, outputs):
        write(self, chunk, outputs)
        written.append(chunk)
        if len(written) in (3, 9):
            # One of two workers; its nanny starts another one.
            victim = client.run(os.getpid).popitem()
            os.kill(victim[1], 9)

    written, write = [], Store.write
    Store.write = killing
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None)
    # A cluster gives up workers that are not back by then, and machines may be slow.
    dask.config.set({{"distributed.deploy.lost-worker-timeout": "10 minutes"}})
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        jdyn.sweep(lane, design, chunk=101, store=sys.argv[1], engine=client)
    assert sorted(written) == list(range(30)), written

if __name__ == "__main__":
    main()
"""


def swept(path, code):
    program = path.with_suffix(".py")
    program.write_text(code)
    subprocess.run([sys.executable, program, path], check=True, timeout=600)
    return xarray.open_zarr(path, chunks=None).load()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("local") / "store", LOCAL)


def test_two_devices_come_to_the_same_result(tmp_path, local):
    xarray.testing.assert_identical(swept(tmp_path / "store", DEVICES), local)
    np.testing.assert_array_equal(np.flatnonzero(local["result"]), [1234])


@pytest.mark.exhaustive
def test_a_cluster_whose_workers_are_killed_comes_to_the_same_result(tmp_path, local):
    """Bit for bit, and computes no chunk twice that is written."""
    xarray.testing.assert_identical(swept(tmp_path / "store", CLUSTER), local)


def test_a_cluster_without_workers_is_told_of(monkeypatch):
    """And waited for: the lanes are computed when one comes."""
    monkeypatch.setattr(engines, "PATIENCE", 0.01)
    future = Future()

    class Cluster:
        asked = 0

        def nthreads(self):
            self.asked += 1
            if self.asked == 2:
                future.set_result({})
            return {} if self.asked == 1 else {"worker": 1}

        def get_executor(self, pure):
            return None

    dask = engines.Dask(Cluster(), len, {}, 1, types.SimpleNamespace(double=True, digest=""))
    with pytest.warns(RuntimeWarning, match="has no worker"):
        assert dask.done([future]) == {future}
