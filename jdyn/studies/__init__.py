"""Formulations that are kept for comparison, and the experiments and programs of Cloutier's thesis.

Simulations need nothing from here. Everything is built on public names of the library, so each folder shows how to
extend it from outside.
"""

import importlib

_FOLDERS = {
    "cloutier1995": ("Statistics", "statistics"),
    "formulations": (
        "BlockElimination", "ConjugateGradient", "GaussDP", "GibbsAppell", "LeastConstraint", "MatrixABA",
        "ModifiedABA", "OrthogonalComplement", "WalkerOrin",
    ),
}  # fmt: skip


def __getattr__(name):
    # Commands import words of a study, and are to answer before JAX is there.
    for folder, names in _FOLDERS.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{folder}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
