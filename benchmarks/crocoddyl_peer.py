"""Optimal control by Crocoddyl, in a process of its own: `python benchmarks/crocoddyl_peer.py TASK OUT`.

TASK is an npz file of the problem in `benchmarks/optimal_control.py`: `urdf`, the frame's name `frame`, `targets`, a
row a problem, `q0`, the guess `u` (steps, nv), the bound `effort`, `dt`, `weights` (of the forces, the state, the
place and the velocity at the end), `iterations` and `tolerance`. OUT is written with costs, iterations and processor
seconds of each problem. It needs `crocoddyl`, and not jdyn.
"""

import sys
import time

import crocoddyl
import numpy as np
import pinocchio as pin


def action(state, actuation, costs, effort, dt):
    model = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
    model.u_lb, model.u_ub = -effort, effort
    return crocoddyl.IntegratedActionModelEuler(model, dt)


def squares(state, residual, weights=None):
    if weights is None:
        return crocoddyl.CostModelResidual(state, residual)
    return crocoddyl.CostModelResidual(state, crocoddyl.ActivationModelWeightedQuad(weights), residual)


def problem(model, given, target):
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    by_force, by_state, by_place, by_speed = map(float, given["weights"])
    start = np.concatenate([given["q0"], np.zeros(model.nv)])
    frame = model.getFrameId(str(given["frame"]))
    speeds = np.repeat([0.0, 1.0], model.nv)

    running, end = crocoddyl.CostModelSum(state), crocoddyl.CostModelSum(state)
    running.addCost("forces", squares(state, crocoddyl.ResidualModelControl(state)), by_force)
    running.addCost("state", squares(state, crocoddyl.ResidualModelState(state, start)), by_state)
    end.addCost("place", squares(state, crocoddyl.ResidualModelFrameTranslation(state, frame, target)), by_place)
    end.addCost("speed", squares(state, crocoddyl.ResidualModelState(state, start), speeds), by_speed)
    step = action(state, actuation, running, given["effort"], float(given["dt"]))
    last = action(state, actuation, end, given["effort"], 0.0)
    return crocoddyl.ShootingProblem(start, [step] * len(given["u"]), last)


def main():
    given = np.load(sys.argv[1])
    model = pin.buildModelFromUrdf(str(given["urdf"]))
    costs, iterations, seconds = [], [], []
    for target in given["targets"]:
        solver = crocoddyl.SolverBoxDDP(problem(model, given, target))
        solver.th_stop = float(given["tolerance"])
        guess = list(given["u"])
        states = solver.problem.rollout(guess)
        began = time.process_time()
        solver.solve(states, guess, int(given["iterations"]), False)
        seconds.append(time.process_time() - began)
        costs.append(solver.cost)
        iterations.append(solver.iter + 1)
    np.savez(
        sys.argv[2], costs=costs, iterations=iterations, seconds=seconds, version=f"crocoddyl {crocoddyl.__version__}"
    )


if __name__ == "__main__":
    main()
