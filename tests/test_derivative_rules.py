"""Files that have rules of differentiation of their own, or cut derivatives: whoever adds one says why in a review."""

import pathlib
import re

import jdyn

PACKAGE = pathlib.Path(jdyn.__file__).parent
# Folders of what is simulated; their rules are in CONTRIBUTING.
FOLDERS = "constraints", "contact", "elements", "impulses", "simulation"
RULES = {
    "impulses/problem.py", "impulses/saddle_point.py", "simulation/across_kinks.py", "simulation/adjoint.py",
    "simulation/loop.py", "simulation/solvers/implicit_kick.py",
    "simulation/solvers/shifted.py",
}  # fmt: skip
CUTS = {
    # Lengths of steps and what plans them.
    "simulation/state.py", "simulation/energy_control.py", "simulation/events.py", "simulation/loop.py",
    "simulation/solvers/automatic.py", "simulation/solvers/extrapolation.py", "simulation/manifold.py",
    "simulation/variation.py", "simulation/varied_run.py",
    # What is only reported.
    "simulation/simulate.py", "simulation/solvers/convex_euler.py",
    "constraints/singular.py",
    # Guesses, and matrices that iterations or stages approximate with.
    "constraints/acceleration.py", "constraints/assembly.py", "constraints/projection.py", "impulses/problem.py",
    "impulses/saddle_point.py", "simulation/solvers/implicit_rates.py", "simulation/solvers/implicit_motion.py",
    "simulation/solvers/shifted.py", "simulation/adjoint.py",
    # Terms that are zero and there for their derivative.
    "contact/compliant.py", "contact/compliant_gradients.py", "contact/convex/contact.py", "contact/kinks.py",
    "contact/stiffening.py",
    # Which pairs are looked at, and when.
    "contact/points.py", "contact/time_of_contact.py",
}  # fmt: skip


def _files_with(pattern):
    paths = (path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py"))
    found = (path for path in paths if re.search(pattern, path.read_text(encoding="utf-8")))
    return {path.relative_to(PACKAGE).as_posix() for path in found}


def test_rules_are_where_contributing_says():
    assert _files_with(r"custom_jvp|custom_vjp|custom_root|custom_linear_solve|def_jvp|def_vjp") == RULES


def test_derivatives_are_cut_in_known_files():
    assert _files_with("stop_gradient") == CUTS
