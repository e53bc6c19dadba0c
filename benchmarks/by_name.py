"""Functions of frames, momentum and the inverse inertia: `python -m benchmarks.by_name [--robot panda] [--batch 1024]`.

Each in a batch in float64, beside Pinocchio's function of that name in a loop of Python over the same states. What the
loop and one call of the bindings cost alone, on a robot without joints, is the first line; it is part of the others.
Medians of processor time; compiling apart. Run it on one core: `taskset -c 0`.
"""

import argparse
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin

import jdyn
from benchmarks import clock, robots, states
from jdyn.interop import PinocchioMap

REPEATS, SECONDS = 7, 4.0


def ours(model: jdyn.Model, frame: str) -> dict[str, Callable]:
    """Functions of one state, by the names that both have below."""
    axes = {"frame": "aligned"}
    impulse = jnp.ones(6)
    return {
        "frame velocity": lambda q, v, a: jdyn.frame_velocity(model, q, v, frame, **axes),
        "frame acceleration": lambda q, v, a: jdyn.frame_acceleration(model, q, v, a, frame, **axes, classical=True),
        "Jacobian": lambda q, v, a: jdyn.jacobian(model, q, frame, **axes),
        "Jacobian's rate": lambda q, v, a: jdyn.jacobian_rate(model, q, v, frame, **axes),
        "com velocity": lambda q, v, a: jdyn.centroidal.com_velocity(model, q, v),
        "com acceleration": lambda q, v, a: jdyn.centroidal.com_acceleration(model, q, v, a),
        "com Jacobian": lambda q, v, a: jdyn.centroidal.com_jacobian(model, q),
        "momentum": lambda q, v, a: jdyn.momentum(model, q, v),
        "momentum's rate": lambda q, v, a: jdyn.centroidal.momentum_rate(model, q, v, a),
        "momentum matrix": lambda q, v, a: jdyn.centroidal.momentum_matrix(model, q),
        "its rate": lambda q, v, a: jdyn.centroidal.momentum_matrix_rate(model, q, v),
        "inverse of M": lambda q, v, a: jdyn.mass_matrix_inverse(model, q),
        "operational inertia": lambda q, v, a: jdyn.operational_space_inertia(model, q, frame),
        "Delassus matrix": lambda q, v, a: jdyn.delassus_matrix(model, q, [frame]),
        "impulse response": lambda q, v, a: jdyn.impulse_response(model, q, frame, impulse, **axes),
    }


def theirs(model: pin.Model, frame: str) -> dict[str, Callable]:
    """Pinocchio's calls for one state; where it has none of that name, what its users write."""
    data, axes, impulse = model.createData(), pin.LOCAL_WORLD_ALIGNED, np.ones(6)
    number = model.getFrameId(frame)

    def velocity(q, v, a):
        pin.forwardKinematics(model, data, q, v)
        pin.updateFramePlacement(model, data, number)
        return pin.getFrameVelocity(model, data, number, axes).vector

    def acceleration(q, v, a):
        pin.forwardKinematics(model, data, q, v, a)
        pin.updateFramePlacement(model, data, number)
        return pin.getFrameClassicalAcceleration(model, data, number, axes).vector

    def jacobian_rate(q, v, a):
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        pin.updateFramePlacement(model, data, number)
        return pin.getFrameJacobianTimeVariation(model, data, number, axes)

    place = model.frames[number]
    held = pin.ContactType.CONTACT_6D, model, place.parentJoint, place.placement, pin.LOCAL
    contacts, known = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    contacts.append(pin.RigidConstraintModel(*held))
    known.append(contacts[0].createData())

    def delassus(q):
        return pin.computeDelassusMatrix(model, data, q, contacts, known, 0.0)

    def response(q):
        force = pin.computeFrameJacobian(model, data, q, number, axes).T @ impulse
        pin.crba(model, data, q)
        pin.cholesky.decompose(model, data)
        return pin.cholesky.solve(model, data, force)

    def center(found):
        return lambda q, v, a: (pin.centerOfMass(model, data, q, v, a, False), found())[1]

    return {
        "frame velocity": velocity,
        "frame acceleration": acceleration,
        "Jacobian": lambda q, v, a: pin.computeFrameJacobian(model, data, q, number, axes),
        "Jacobian's rate": jacobian_rate,
        "com velocity": center(lambda: data.vcom[0].copy()),
        "com acceleration": center(lambda: data.acom[0].copy()),
        "com Jacobian": lambda q, v, a: pin.jacobianCenterOfMass(model, data, q, False),
        "momentum": lambda q, v, a: pin.computeCentroidalMomentum(model, data, q, v).vector,
        "momentum's rate": lambda q, v, a: pin.computeCentroidalMomentumTimeVariation(model, data, q, v, a).vector,
        "momentum matrix": lambda q, v, a: pin.computeCentroidalMap(model, data, q),
        "its rate": lambda q, v, a: pin.dccrba(model, data, q, v),
        # Its upper triangle.
        "inverse of M": lambda q, v, a: pin.computeMinverse(model, data, q),
        "operational inertia": lambda q, v, a: np.linalg.inv(delassus(q)),
        "Delassus matrix": lambda q, v, a: delassus(q),
        "impulse response": lambda q, v, a: response(q),
    }


def microseconds(call: Callable, batch: int) -> float:
    return 1e6 * statistics.median(clock.measure(call, REPEATS, SECONDS)["cpu_s"]) / batch


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--robot", default="panda", choices=[name for name in robots.NAMES if name != "chainN"])
    words.add_argument("--batch", type=int, default=1024)
    options = words.parse_args()
    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as folder:
        robot = robots.make(options.robot, pathlib.Path(folder))
        model = robot.model()
        root = [pin.JointModelFreeFlyer()] if robot.floating else []
        peer = pin.buildModelFromUrdf(str(robot.urdf), *root)
        drawn = states.make(robot, options.batch)
    given = [jnp.asarray(drawn[name]) for name in ("q", "v", "a")]
    to, (q, v, a) = PinocchioMap(model, peer), (drawn[name] for name in ("q", "v", "a"))
    rows = [*zip(to.q_to_peer(q), to.v_to_peer(q, v), to.a_to_peer(q, v, a), strict=True)]
    frame = model.body_names[-1]
    nothing, none = pin.Model(), np.zeros(0)
    data = nothing.createData()
    alone = microseconds(lambda: [pin.forwardKinematics(nothing, data, none, none) for _ in rows], options.batch)
    print(f"{robot}, batch of {options.batch}, float64, jax {jax.__version__}, {jax.devices()[0].device_kind}")
    print(f"{'µs a state':20} {'jdyn':>8} {'Pinocchio':>10} {'ratio':>6} {'compile [s]':>12}")
    print(f"{'a call alone':20} {'':8} {alone:10.2f}")
    peers = theirs(peer, frame)
    for name, function in ours(model, frame).items():
        began = time.perf_counter()
        program = jax.jit(jax.vmap(function)).lower(*given).compile()
        compiling = time.perf_counter() - began
        own = microseconds(lambda program=program: jax.block_until_ready(program(*given)), options.batch)
        other = microseconds(lambda call=peers[name]: [call(*x) for x in rows], options.batch)
        print(f"{name:20} {own:8.2f} {other:10.2f} {other / own:6.2f} {compiling:12.1f}", flush=True)


if __name__ == "__main__":
    main()
