"""mujoco_warp: MuJoCo's kernels for many worlds at once, captured as one graph on a GPU."""

import numpy as np

from benchmarks import cases, clock
from benchmarks.jax_peers import GRAVITY, mujoco_joints
from benchmarks.jax_programs import Order
from benchmarks.peer_models import mujoco_model


def run(urdf, floating, case, given, dtype, repeats, budget):
    """Times of one case and its first results, in the file's order of joints."""
    import warp

    if dtype != np.float32:
        raise cases.Unavailable("it computes in float32")
    if case.quantity not in _PROGRAMS:
        raise cases.Unavailable(f"it has no {case.quantity}")
    host = mujoco_model(str(urdf), GRAVITY, floating)
    host.opt.timestep = cases.TIME_STEP
    order = Order(_Offered("world" if floating else "fixed", mujoco_joints(host, floating)), given["joints"])
    program, names = _PROGRAMS[case.quantity]
    worlds = program(host, *(x.astype(np.float32) for x in order.states(given, names, case.batch)))
    # The first call compiles its kernels.
    worlds.call()
    found = worlds.result()
    graph = None
    if warp.get_device().is_cuda:
        with warp.ScopedCapture() as captured:
            worlds.call()
        graph = captured.graph

    def call():
        worlds.call() if graph is None else warp.capture_launch(graph)
        warp.synchronize()

    times = clock.measure(call, repeats, budget)
    return times | {"note": "MuJoCo's forward, with a constraint solver that finds none"}, order.result(
        case.quantity, found[: cases.COMPARED].astype(float)
    )


class _Offered:
    def __init__(self, base, joints):
        self.base, self.joints = base, joints


class _Worlds:
    def __init__(self, host, q, v):
        import mujoco_warp
        import warp

        self.library, self.model = mujoco_warp, mujoco_warp.put_model(host)
        self.data = mujoco_warp.make_data(host, nworld=len(q))
        self.start = warp.array(q), warp.array(v)

    def begin(self):
        import warp

        warp.copy(self.data.qpos, self.start[0])
        warp.copy(self.data.qvel, self.start[1])


class _Forward(_Worlds):
    def __init__(self, host, q, v, tau):
        super().__init__(host, q, v)
        self.begin()
        self.data.qfrc_applied.assign(tau)

    def call(self):
        self.library.forward(self.model, self.data)

    def result(self):
        return self.data.qacc_smooth.numpy()


class _Rollout(_Worlds):
    def __init__(self, host, q, v, taus):
        import warp

        super().__init__(host, q, v)
        self.taus = [warp.array(np.ascontiguousarray(tau)) for tau in np.swapaxes(taus, 0, 1)]

    def call(self):
        import warp

        self.begin()
        for tau in self.taus:
            warp.copy(self.data.qfrc_applied, tau)
            self.library.step(self.model, self.data)

    def result(self):
        return np.concatenate([self.data.qpos.numpy(), self.data.qvel.numpy()], axis=1)


_PROGRAMS = {
    "forward dynamics": (_Forward, ("q", "v", "tau")),
    "rollout": (_Rollout, ("q", "v", "taus")),
}
