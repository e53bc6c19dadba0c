"""Seeded random mechanisms, for tests and benchmarks."""

import numpy as np

from jdyn.model.build import Builder
from jdyn.model.joints import Ball, Continuous, Free, Helical, Joint, Planar, Prismatic, Revolute, Universal
from jdyn.model.model import Model
from jdyn.spatial import Transform

ALL_KINDS: tuple[type[Joint], ...] = (
    Revolute, Continuous, Prismatic, Helical, Universal, Ball, Planar, Free,
)  # fmt: skip


def random_tree(
    seed: int, nb: int, *, kinds: tuple[type[Joint], ...] = ALL_KINDS, reach: int | None = None, dtype=None
) -> Model:
    """A random tree of `nb` bodies with random axes, placements and inertias.

    >>> model = jdyn.random_tree(0, 5, kinds=(jdyn.Revolute, jdyn.Ball))
    >>> model.nb, {kind.__name__ for kind in model.topology.kinds} <= {"Ball", "Revolute"}
    (5, True)

    Args:
        seed: Equal seeds give equal models.
        nb: Number of bodies.
        kinds: Joint kinds to draw from; each appears at least once if `nb` is large enough.
        reach: Each body's parent is one of this many bodies before it: 1 gives a chain, `None` any body.
            Bodies are therefore not in depth-first order.
        dtype: Floating type of the leaves; JAX's default if left out.

    Returns:
        The model; masses are between 0.5 and 2 kg, link lengths about 0.3 m.
    """
    rng = np.random.default_rng(seed)
    builder = Builder(f"random_tree_{seed}_{nb}")
    order = [*rng.permutation(len(kinds)), *rng.integers(len(kinds), size=nb)]
    for i in range(nb):
        first = 0 if reach is None else max(0, i - reach)
        parent = "world" if i == 0 else f"body{rng.integers(first, i)}"
        semi_axes = rng.uniform(0.05, 0.2, size=3)
        mass, frame = rng.uniform(0.5, 2.0), _random_rotation(rng)
        builder.add_link(
            f"body{i}",
            _random_joint(kinds[order[i]], rng),
            parent=parent,
            placement=Transform(_random_rotation(rng), rng.normal(scale=0.2, size=3)),  # type: ignore[arg-type]
            mass=mass,
            com=rng.normal(scale=0.1, size=3),
            inertia=frame @ np.diag(mass / 5 * (np.sum(semi_axes**2) - semi_axes**2)) @ frame.T,
            joint_name=f"joint{i}",
        )
    return builder.build(dtype=dtype)


def _random_joint(kind: type[Joint], rng: np.random.Generator) -> Joint:
    R = _random_rotation(rng)
    if kind in (Ball, Free):
        return kind()
    if kind is Helical:
        return Helical(R[0], rng.uniform(-0.2, 0.2))  # type: ignore[arg-type]
    if kind is Planar:
        return Planar(R[0], R[1])
    if kind is Universal:
        return Universal(R[0], R[1] + 0.3 * R[0])
    return kind(R[0])  # type: ignore[call-arg]


def _random_rotation(rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)
