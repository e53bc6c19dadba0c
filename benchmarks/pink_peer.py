"""Inverse kinematics by pink, in a process of its own: `python benchmarks/pink_peer.py TASK OUT`.

TASK is an npz file: `urdf`, the frame's name `frame`; a row a pose, `rotation`, `translation`, and configurations
`starts`, which are tried one after another until one meets the pose; `steps` of each, and `tolerance`. OUT is written
with the configurations and the processor seconds of each pose. It needs `pin-pink` and one of the solvers of quadratic
programs that `qpsolvers` knows, and not jdyn.
"""

import sys
import time

import numpy as np
import pink
import pinocchio as pin
import qpsolvers

# Of the whole error, each step takes all; more damping than rounding takes where the pose leaves motions free.
STEP, DAMPING = 1.0, 1e-8


def reach(model, data, task, start, steps, tolerance, solver):
    """Configuration, and whether it meets the pose."""
    limits = [pink.limits.ConfigurationLimit(model, config_limit_gain=1.0)]
    now = pink.Configuration(model, data, start)
    for _ in range(steps):
        if np.max(np.abs(task.compute_error(now))) < tolerance:
            return now.q, True
        # Rounding at the end of a range is not an error.
        v = pink.solve_ik(now, [task], STEP, solver, damping=DAMPING, limits=limits, safety_break=False)
        now.integrate_inplace(v, STEP)
    return now.q, np.max(np.abs(task.compute_error(now))) < tolerance


def best(model, data, frame, pose, starts, *options):
    """Configuration and processor seconds."""
    began = time.process_time()
    task = pink.tasks.FrameTask(frame, position_cost=1.0, orientation_cost=1.0, lm_damping=1e-3)
    task.set_target(pose)
    q = starts[0]
    for start in starts:
        q, met = reach(model, data, task, start, *options)
        if met:
            break
    return q, time.process_time() - began


def main():
    given = np.load(sys.argv[1])
    model = pin.buildModelFromUrdf(str(given["urdf"]))
    data, frame = model.createData(), str(given["frame"])
    solver = next(name for name in ("daqp", "quadprog", "proxqp") if name in qpsolvers.available_solvers)
    q, seconds = [], []
    for R, p, starts in zip(given["rotation"], given["translation"], given["starts"], strict=True):
        options = int(given["steps"]), float(given["tolerance"]), solver
        found, spent = best(model, data, frame, pin.SE3(R, p), starts, *options)
        q.append(found)
        seconds.append(spent)
    np.savez(sys.argv[2], q=q, seconds=seconds, versions=[f"pink {pink.__version__}", solver])


if __name__ == "__main__":
    main()
