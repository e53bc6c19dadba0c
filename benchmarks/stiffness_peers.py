"""Forward dynamics in float32 by other JAX libraries, each in a process of its own.

    python benchmarks/stiffness_peers.py NAME URDF STATES OUT

STATES is an npz file of gravity (3,), q, v and tau (samples, n) of a fixed-base chain of hinges; OUT is written with
the accelerations a (samples, n). `run` does this from another process. No peer needs jdyn beside it: see peers.txt.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import numpy as np
import peer_models

SECONDS = 300


class PeerError(Exception):
    """A peer that is not installed, failed or took too long: why, in one line."""


def mjx(urdf, gravity, q, v, tau):
    import jax
    from mujoco import mjx

    model = mjx.put_model(peer_models.mujoco_model(urdf, gravity))
    rest = mjx.make_data(model)

    def one(q, v, tau):
        return mjx.forward(model, rest.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc_smooth

    return jax.jit(jax.vmap(one))(q, v, tau)


def brax(urdf, gravity, q, v, tau):
    import jax
    from brax.generalized import dynamics, pipeline

    system = peer_models.brax_system(urdf, gravity)

    def one(q, v, tau):
        state = pipeline.init(system, q, v)
        return state.mass_mx_inv @ dynamics.forward(system, state, tau)

    return jax.jit(jax.vmap(one))(q, v, tau)


def jaxsim(urdf, gravity, q, v, tau):
    import jax
    from jaxsim import api

    model = peer_models.jaxsim_model(urdf, gravity)

    def one(q, v, tau):
        data = api.data.JaxSimModelData.build(model, joint_positions=q, joint_velocities=v)
        return api.model.forward_dynamics_aba(model, data, joint_forces=tau)[1]

    return jax.jit(jax.vmap(one))(q, v, tau)


def frax(urdf, gravity, q, v, tau):
    import jax

    robot = peer_models.frax_robot(urdf)
    lift = np.concatenate([-gravity, np.zeros(3, np.float32)])

    # Its forward_dynamics, line by line, but for the 9.81 m/s² written there.
    def one(q, v, tau):
        bias = robot.rnea(q, v, None, lift, None)
        return jax.scipy.linalg.solve(robot.mass_matrix(q), tau - bias, assume_a="pos")

    return jax.jit(jax.vmap(one))(q, v, tau)


def adam(urdf, gravity, q, v, tau):
    import jax
    import jax.numpy as jnp

    robot = peer_models.adam_robot(urdf, gravity, jnp.float32)
    base, rest = jnp.eye(4), jnp.zeros(6)

    # Its articulated-body algorithm lets the base float; the mass matrix is what it has for a fixed one.
    def one(q, v, tau):
        bias = robot.bias_force(base, q, rest, v)[6:]
        return jax.scipy.linalg.solve(robot.mass_matrix(base, q)[6:, 6:], tau - bias, assume_a="pos")

    return jax.jit(jax.vmap(one))(q, v, tau)


PEERS = {"MJX": mjx, "Brax": brax, "frax": frax, "adam": adam, "jaxsim ABA": jaxsim}


def run(python, name, urdf, gravity, q, v, tau):
    """Accelerations (samples, n) that the peer `name` of the interpreter `python` finds; PeerError where none."""
    # JaxSim chooses float64 unless told; products in reduced precision, as on a GPU, would hide what is compared.
    environment = {**os.environ, "JAX_ENABLE_X64": "0", "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        states, out = (pathlib.Path(folder, file) for file in ("states.npz", "accelerations.npz"))
        np.savez(states, **{k: np.float32(x) for k, x in {"gravity": gravity, "q": q, "v": v, "tau": tau}.items()})
        # -E: PYTHONPATH belongs to this interpreter, not to the peer's.
        command = [python, "-E", __file__, name, urdf, states, out]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerError(f"{type(error).__name__}: {error}") from error
        if done.returncode:
            raise PeerError((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
        return np.load(out)["a"].astype(float)


def main():
    name, urdf, states, out = sys.argv[1:]
    given = np.load(states)
    try:
        a = np.asarray(PEERS[name](urdf, *(given[k] for k in ("gravity", "q", "v", "tau"))))
    except Exception as error:
        traceback.print_exc()
        # The last line, which `run` reads, says it all.
        sys.exit(" ".join(f"{type(error).__name__}: {error}".split()))
    if a.dtype != np.float32:
        raise TypeError(f"{name} computed in {a.dtype}, not in float32")
    np.savez(out, a=a)


if __name__ == "__main__":
    main()
