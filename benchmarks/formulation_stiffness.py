"""Cloutier's thesis (1995), chapter 5, once more: its figures beside what jdyn finds, and what it could not do.

    python benchmarks/formulation_stiffness.py --pictures FOLDER

Prints figures 5.3, 5.4, 5.6, 5.8 and 5.9 as tables; draws 5.3, 5.5, 5.6 and 5.7. Then float32 for every method, mass
ratios up to 1e8, and chains up to 1000 links. Pinocchio's ABA stands beside them where it is installed, and so do the
JAX libraries of peers.txt that --peer-python has (a process of its own, some ten seconds, for each and each ratio).
"""

import argparse
import functools
import importlib.util
import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import stiffness_peers

import jdyn
from jdyn.stiffness import CHAINS, EVALUATIONS, fall, long_chain, turn, two_links, two_links_of_ten
from jdyn.view import plot_evaluations, plot_turn

ABA, CRBA, BAD = jdyn.ABA(), jdyn.CRBA(), jdyn.MatrixABA("cancelling")
METHODS = [
    *(jdyn.MatrixABA(form) for form in ("projected", "textbook", "cancelling")),
    jdyn.ABA(bias="separate"),
    jdyn.ModifiedABA(),
    jdyn.ArrayABA(),
    jdyn.ParallelABA(),
    *(jdyn.CRBA(solver) for solver in ("cholesky", "lu", "gauss-jordan", "svd", "ltl")),
    *(jdyn.WalkerOrin(number) for number in (1, 2)),
    jdyn.ConjugateGradient(),
    *(jdyn.OrthogonalComplement(form) for form in ("normal", "factored")),
    jdyn.GibbsAppell(),
    jdyn.GaussDP(),
]


def heading(text):
    print(f"\n{text}\n{'-' * len(text)}")


def condition_and_difference():
    heading(
        "Figures 5.3 and 5.4: condition number and relative difference ABM to CRBM, largest over the angle of joint 2"
    )
    print("l2 = m2     condition   difference   (figure 5.3 at 1e2: of the order of 1e4 and 1e-12)")
    for power in range(7):
        found = turn(two_links(10.0**power), (ABA, CRBA))
        print(f"{10.0**power:7.0e}   {max(found.condition):10.1e}   {np.max(found.difference(CRBA, ABA)[:, 0]):10.1e}")


def evaluations():
    heading("Figure 5.6: evaluations in 10 s at 1e-6, first link's share of 10 m and 10 kg")
    print("  share  condition      thesis ABM   CRBM  ratio      ABA   CRBA  ratio    float32 ABA   CRBA")
    lines = {}
    for row in EVALUATIONS:
        model = two_links_of_ten(row.share)
        falls = [fall(model.astype(t), 10.0, method=m) for t in (jnp.float64, jnp.float32) for m in (ABA, CRBA)]
        done = [x.evaluations if x.result == jdyn.Result.success else None for x in falls]
        theirs = f"{row.abm:15} {row.crbm or '-':>6} {ratio(row.crbm, row.abm):>6}"
        double = f"{done[0]:8} {done[1] or '-':>6} {ratio(done[1], done[0]):>6}"
        print(f"{row.share:7.0e}   {falls[0].condition:8.0e} {theirs} {double} {done[2]:14} {done[3] or '-':>6}")
        for x, count in zip(falls, done, strict=True):
            xs, ys = lines.setdefault(f"{x.method} {x.dtype}", ([], []))
            xs.append(falls[0].condition)
            ys.append(np.nan if count is None else count)
    return lines


def ratio(count, base):
    return "-" if count is None else f"{count / base:.2f}"


def energies():
    heading("Figures 5.8 to 5.10: chains in 60 s at 1e-4, deviation of the mean energy in %, seconds compiling apart")
    print(" n     energy     thesis ABM      %   CRBM      %        ABA      %      s     CRBA      %      s")
    for row in CHAINS:
        falls = [fall(long_chain(row.n), 60.0, method=m, tolerance=1e-4, energy=row.energy) for m in (ABA, CRBA)]
        ours = "".join(f" {x.evaluations:8} {x.energy_deviation:6.3f} {x.seconds:6.2f}" for x in falls)
        theirs = f"{row.abm:12}  {row.abm_deviation:.3f} {row.crbm:6}  {row.crbm_deviation:.3f}"
        print(f"{row.n:2}   {row.energy:8}   {theirs}  {ours}")


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
        angles = np.float32(found.angles).astype(float)
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
    methods = [ABA, jdyn.MatrixABA("textbook"), jdyn.ArrayABA(), jdyn.ParallelABA(), CRBA]
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


def pictures(folder, lines):
    plot_evaluations(lines, "Figure 5.6").savefig(folder / "figure-5-6.png", dpi=150)
    found = turn(two_links(100.0), (ABA, CRBA))
    curves = {"condition number": found.condition, "relative difference": found.difference(CRBA, ABA)[:, 0]}
    plot_turn(found.angles, curves, "l2 = m2 = 100", log=True).savefig(folder / "figure-5-3.png", dpi=150)
    found = turn(two_links(1e5), (CRBA, BAD, ABA), samples=721)
    for figure, method in (("5-5", CRBA), ("5-7", BAD)):
        curves = {str(m): found.accelerations[m][:, 0] for m in (method, ABA)}
        ylabel = "acceleration of joint 1 [rad/s²], l2 = m2 = 1e5"
        plot_turn(found.angles, curves, ylabel).savefig(folder / f"figure-{figure}.png", dpi=150)
    print(f"\npictures: {folder.resolve()}")


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--pictures", type=pathlib.Path, metavar="FOLDER", help="where to draw the figures")
    words.add_argument(
        "--peer-python", default=sys.executable, metavar="PATH", help="interpreter that has the libraries of peers.txt"
    )
    options = words.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}")
    condition_and_difference()
    lines = evaluations()
    energies()
    single_precision(options.peer_python)
    long_chains()
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
        pictures(options.pictures, lines)


if __name__ == "__main__":
    main()
