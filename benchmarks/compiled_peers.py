"""Pinocchio and MuJoCo, compiled from C++ and C, called from Python.

What is reported is the library's own time. Where it has a loop over states of its own, that is timed; where Python
loops, the same calls on a robot without joints are timed too and taken off: they cost what Python and its bindings
cost, but for the copying of longer arrays, which stays.
"""

import os

import numpy as np

from benchmarks import cases, clock
from benchmarks.jax_peers import GRAVITY
from benchmarks.jax_programs import Order

# More than the reference needs, less than a run of thousands of states would take.
REFERENCE_LANES = 4


def run_pinocchio(urdf, floating, case, given, dtype, repeats, budget):
    import pinocchio as pin

    if dtype != np.float64:
        raise cases.Unavailable("its Python bindings are in float64 alone")
    root = [pin.JointModelFreeFlyer()] if floating else []
    model = pin.buildModelFromUrdf(str(urdf), *root)
    require_memory(model)
    joints = list(model.names[2 if floating else 1 :])
    offered = _Offered("body xyzw" if floating else "fixed", joints)
    order = Order(offered, given["joints"])
    quantity = case.quantity
    if quantity == "sweep":
        return _untimed(_pinocchio_sweep(model, order, given), "no adaptive integrator; the reference only")
    calls, names = _PINOCCHIO[quantity]
    states = [np.ascontiguousarray(x) for x in order.states(given, names, case.batch)]
    call = calls(model)
    found = order.result(quantity, np.array(call([x[: cases.COMPARED] for x in states])))
    if quantity in ("forward dynamics", "inverse dynamics"):
        return _pinocchio_batched(model, quantity, states, repeats, budget), found
    return _net(call, calls(pin.Model()), states, repeats, budget), found


def require_memory(model):
    """Its data hold four arrays of nv³ numbers, whatever is computed: 34 GB of them for 1024 joints."""
    needed, there = 4 * 8 * model.nv**3, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there / 2:
        raise cases.Unavailable(f"its data need {needed / 1e9:.0f} GB of memory, of {there / 1e9:.0f} GB")


class _Offered:
    def __init__(self, base, joints):
        self.base, self.joints = base, joints


def _untimed(found, why):
    return {"note": why}, found


def _net(call, empty, states, repeats, budget):
    nothing = [np.zeros((*x.shape[:-1], 0)) for x in states]
    times = clock.measure(lambda: call(states), repeats, budget)
    idle = clock.measure(lambda: empty(nothing), repeats, budget)
    for key in ("wall_s", "cpu_s"):
        overhead = float(np.median(idle[key]))
        times[f"python_{key}"] = overhead
        times[key] = [max(x - overhead, 0.0) for x in times[key]]
    return times | {"note": "less the same calls on a robot without joints"}


def _pinocchio_batched(model, quantity, states, repeats, budget):
    """Pinocchio's own loop over states."""
    import pinocchio as pin

    function = {"forward dynamics": pin.abaInParallel, "inverse dynamics": pin.rneaInParallel}[quantity]
    pool = pin.ModelPool(model, 1)
    columns = [np.asfortranarray(x.T) for x in states]
    out = np.zeros_like(columns[1], order="F")
    return clock.measure(lambda: function(1, pool, *columns, out), repeats, budget) | {"note": "its own loop in C++"}


def _each(data_of, function):
    """A function of one state, for all of them in turn."""

    def of(model):
        data = data_of(model)
        return lambda states: [function(model, data, *state) for state in zip(*states, strict=True)]

    return of


def _pinocchio_each(function):
    return _each(lambda model: model.createData(), function)


def _mujoco_each(function):
    def data_of(model):
        import mujoco

        return mujoco.MjData(model)

    return _each(data_of, function)


def _forward(model, data, q, v, tau):
    import pinocchio as pin

    return pin.aba(model, data, q, v, tau)


def _inverse(model, data, q, v, a):
    import pinocchio as pin

    return pin.rnea(model, data, q, v, a)


def _mass(model, data, q):
    import pinocchio as pin

    return pin.crba(model, data, q)


def _derivatives(model, data, q, v, tau):
    import pinocchio as pin

    # Copies, since the next call overwrites what it returns.
    return np.concatenate(pin.computeABADerivatives(model, data, q, v, tau), axis=1)


def _rollout(model, data, q, v, taus):
    import pinocchio as pin

    h = cases.TIME_STEP
    for tau in taus:
        v = v + h * pin.aba(model, data, q, v, tau)
        q = pin.integrate(model, q, h * v)
    return np.concatenate([q, v])


def _gradient(model, data, q, v, taus):
    """Chained by hand, from the last step to the first, of the derivatives at each; on the tangent space."""
    import pinocchio as pin

    h, steps, by_tau = cases.TIME_STEP, [], []
    for tau in taus:
        # What it returns is overwritten by the next call.
        by_state = [x.copy() for x in pin.computeABADerivatives(model, data, q, v, tau)]
        v = v + h * data.ddq
        steps.append((by_state, _base_of_step(model, q, h * v)))
        q = pin.integrate(model, q, h * v)
    if model.nq != model.nv:
        # Half the square of the base's position; that of its quaternion does not change.
        forwards = pin.Quaternion(q[3:7]).toRotationMatrix().T @ q[:3]
        q = np.concatenate([forwards, np.zeros(3), q[7:]])
    for (by_q, by_v, by_force), base in reversed(steps):
        v, q = v + h * _pulled(q, base, 1), _pulled(q, base, 0)
        by_tau.append(h * (by_force.T @ v))
        q, v = q + h * (by_q.T @ v), v + h * (by_v.T @ v)
    return np.concatenate([q, v, *reversed(by_tau)])


def _base_of_step(model, q, dv):
    """Where a floating base is taken, by where it was and by how it moved; `None` for a fixed one."""
    import pinocchio as pin

    return None if model.nq == model.nv else [J[:6, :6] for J in pin.dIntegrate(model, q, dv)]


def _pulled(x, base, argument):
    return x if base is None else np.concatenate([base[argument].T @ x[:6], x[6:]])


def _pinocchio_sweep(model, order, given):
    """Ends of the first lanes, by an integrator of order 8 at tolerances far below those compared."""
    import pinocchio as pin
    from scipy.integrate import solve_ivp

    if model.nq != model.nv:
        raise cases.Unavailable("sweeps are of robots on a fixed base")
    data, n, ends = model.createData(), model.nv, []
    for q, v, damping in zip(*order.states(given, ("q", "v", "damping"), REFERENCE_LANES), strict=True):

        def rate(t, x, damping=damping):
            return np.concatenate([x[n:], pin.aba(model, data, x[:n], x[n:], -damping * x[n:])])

        start = np.concatenate([q, v])
        solution = solve_ivp(rate, (0, cases.SWEEP_SECONDS), start, "DOP853", rtol=1e-11, atol=1e-12)
        ends.append(solution.y[:n, -1])
    return order.result("sweep", np.array(ends))


_PINOCCHIO = {
    "forward dynamics": (_pinocchio_each(_forward), ("q", "v", "tau")),
    "inverse dynamics": (_pinocchio_each(_inverse), ("q", "v", "a")),
    "mass matrix": (_pinocchio_each(_mass), ("q",)),
    "derivatives": (_pinocchio_each(_derivatives), ("q", "v", "tau")),
    "rollout": (_pinocchio_each(_rollout), ("q", "v", "taus")),
    "rollout gradient": (_pinocchio_each(_gradient), ("q", "v", "taus")),
}


def run_mujoco(urdf, floating, case, given, dtype, repeats, budget):
    import mujoco

    from benchmarks.jax_peers import mujoco_joints
    from benchmarks.peer_models import mujoco_model

    if dtype != np.float64:
        raise cases.Unavailable("it is compiled in float64")
    if case.quantity not in _MUJOCO:
        raise cases.Unavailable("no adaptive integrator" if case.quantity == "sweep" else "no analytical derivatives")
    model = mujoco_model(str(urdf), GRAVITY, floating)
    model.opt.timestep = cases.TIME_STEP
    order = Order(_Offered("world" if floating else "fixed", mujoco_joints(model, floating)), given["joints"])
    calls, names = _MUJOCO[case.quantity]
    states = order.states(given, names, case.batch)
    call = calls(model)
    found = order.result(case.quantity, np.array(call([x[: cases.COMPARED] for x in states])))
    if case.quantity == "rollout":
        times = clock.measure(lambda: call(states), repeats, budget)
        return times | {"note": "its own loop in C"}, found
    return _net(call, calls(mujoco.MjSpec().compile()), states, repeats, budget), found


def _mujoco_forward(model, data, q, v, tau):
    import mujoco

    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
    # mj_forward without what is not smooth, sensors and energy.
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_makeM(model, data)
    mujoco.mj_factorM(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_fwdAcceleration(model, data)
    return data.qacc_smooth.copy()


def _mujoco_inverse(model, data, q, v, a):
    import mujoco

    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
    mujoco.mj_inverse(model, data)
    return data.qfrc_inverse.copy()


def _mujoco_mass(model, data, q):
    import mujoco

    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_makeM(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M


def _mujoco_rollout(model):
    import mujoco
    from mujoco import rollout

    data, spec = mujoco.MjData(model), mujoco.mjtState.mjSTATE_QFRC_APPLIED

    def call(states):
        q, v, taus = states
        start = np.concatenate([np.zeros((len(q), 1)), q, v], axis=1)
        trajectory, _ = rollout.rollout(model, data, start, taus, control_spec=spec)
        return np.asarray(trajectory)[:, -1, 1 : 1 + model.nq + model.nv]

    return call


_MUJOCO = {
    "forward dynamics": (_mujoco_each(_mujoco_forward), ("q", "v", "tau")),
    "inverse dynamics": (_mujoco_each(_mujoco_inverse), ("q", "v", "a")),
    "mass matrix": (_mujoco_each(_mujoco_mass), ("q",)),
    "rollout": (_mujoco_rollout, ("q", "v", "taus")),
}
LIBRARIES = {"pinocchio": run_pinocchio, "mujoco": run_mujoco}
