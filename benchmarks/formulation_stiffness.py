"""What Cloutier's thesis (1995) could not do: float32 for every method, mass ratios up to 1e8, chains of 1000 links.

    python benchmarks/formulation_stiffness.py

Pinocchio's ABA stands beside them where it is installed, and so do the JAX libraries of peers.txt that --peer-python
has (a process of its own, some ten seconds, for each and each ratio). The figures of the thesis are in thesis.py.
"""

import argparse
import functools
import importlib.util
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import stiffness_peers

import jdyn
from jdyn.studies.cloutier1995 import turn, two_links

ABA, CRBA = jdyn.ABA(), jdyn.CRBA()
METHODS = [
    *(jdyn.studies.MatrixABA(form) for form in ("projected", "textbook", "cancelling")),
    jdyn.ABA(bias="separate"),
    jdyn.studies.ModifiedABA(),
    jdyn.ArrayABA(),
    jdyn.ParallelABA(),
    *(jdyn.CRBA(solver) for solver in ("cholesky", "lu", "gauss-jordan", "svd", "ltl")),
    *(jdyn.studies.WalkerOrin(number) for number in (1, 2)),
    jdyn.studies.ConjugateGradient(),
    *(jdyn.studies.OrthogonalComplement(form) for form in ("normal", "factored")),
    jdyn.studies.GibbsAppell(),
    jdyn.studies.GaussDP(),
]


def heading(text):
    print(f"\n{text}\n{'-' * len(text)}")


def single_precision(peer_python):
    heading("Float32: largest relative error of the accelerations over the angle of joint 2, l2 = m2 = ratio")
    ratios = [10.0**power for power in range(9)]
    print(f"{'':44}" + "".join(f"{ratio:8.0e}" for ratio in ratios))
    errors = {method: [] for method in METHODS}
    peer, chains = [], []
    for ratio in ratios:
        model = two_links(ratio).astype(jnp.float32)
        double = model.astype(jnp.float64)
        found = turn(model, tuple(METHODS), samples=65)
        # The reference is of the data as float32 holds them, angles included.
        angles = np.float32(found.values).astype(float)
        q, rest = np.stack([0 * angles, angles], axis=1), np.zeros((len(angles), 2))
        reference = accelerations(jdyn.ArrayABA(), double, (q, rest, rest))
        for method in METHODS:
            errors[method].append(worst(found.accelerations[method], reference))
        chains.append((double, q, reference))
        if importlib.util.find_spec("pinocchio"):
            peer.append(worst(pinocchio_accelerations(double, angles), reference))
    for method, row in errors.items():
        print(f"{method!s:44}" + "".join(f"{x:8.0e}" for x in row))
    if peer:
        print(f"{'Pinocchio ABA, float64':44}" + "".join(f"{x:8.0e}" for x in peer))
    for name in stiffness_peers.PEERS:
        print(f"{name:44}", end="", flush=True)
        try:
            for chain in chains:
                print(f"{peer_error(peer_python, name, *chain):8.0e}", end="", flush=True)
        except stiffness_peers.PeerError as error:
            print(f"  {error}", end="")
        print()


def worst(a, exact):
    return np.max(np.linalg.norm(a - exact, axis=1) / np.linalg.norm(exact, axis=1))


def save_without_gravity(model, path):
    # A URDF has no place for gravity, and a warning says so where it is not the usual one.
    jdyn.save_urdf(model.with_gravity((0, 0, -9.81)), path)


def peer_error(python, name, model, q, reference):
    rest = np.zeros_like(q)
    with tempfile.TemporaryDirectory() as folder:
        save_without_gravity(model, f"{folder}/robot.urdf")
        found = stiffness_peers.run(python, name, f"{folder}/robot.urdf", model.gravity, q, rest, rest)
    return worst(found, reference)


def pinocchio_accelerations(model, angles):
    import pinocchio as pin

    with tempfile.TemporaryDirectory() as folder:
        save_without_gravity(model, f"{folder}/robot.urdf")
        peer = pin.buildModelFromUrdf(f"{folder}/robot.urdf")
    peer.gravity.linear = np.array(model.gravity, float)
    data, rest = peer.createData(), np.zeros(2)
    # Its continuous joints have a cosine and a sine.
    turns = [np.array([1.0, 0.0, np.cos(angle), np.sin(angle)]) for angle in angles]
    return np.array([pin.aba(peer, data, q, rest, rest).copy() for q in turns])


def long_chains():
    heading("Float32: relative error of the accelerations of random chains, worst of 4 states")
    methods = [ABA, jdyn.studies.MatrixABA("textbook"), jdyn.ArrayABA(), jdyn.ParallelABA(), CRBA]
    print(f"{'links':>7}" + "".join(f"{method!s:>24}" for method in methods))
    for n in (10, 100, 1000):
        model = jdyn.random_tree(0, n, kinds=(jdyn.Revolute,), reach=1, dtype=jnp.float32)
        keys = jax.random.split(jax.random.key(0), 3)
        states = (
            jax.vmap(model.random)(jax.random.split(keys[0], 4)),
            *(jax.random.normal(key, (4, n), jnp.float32) for key in keys[1:]),
        )
        exact = accelerations(jdyn.ArrayABA(), *jax.tree.map(lambda x: x.astype(jnp.float64), (model, states)))
        print(f"{n:7}" + "".join(f"{worst(accelerations(method, model, states), exact):24.0e}" for method in methods))


def accelerations(method, model, states):
    return np.asarray(_accelerations(method, model, states), float)


@functools.partial(jax.jit, static_argnums=0)
def _accelerations(method, model, states):
    return jax.vmap(lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau, method=method))(*states)


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument(
        "--peer-python", default=sys.executable, metavar="PATH", help="interpreter that has the libraries of peers.txt"
    )
    options = words.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}")
    single_precision(options.peer_python)
    long_chains()


if __name__ == "__main__":
    main()
