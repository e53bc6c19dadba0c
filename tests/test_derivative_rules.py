"""Files that have rules of differentiation of their own, or cut derivatives: whoever adds one says why in a review."""

import pathlib
import re

import jdyn

PACKAGE = pathlib.Path(jdyn.__file__).parent
RULES = {
    # Equations of motion, and steps.
    "dynamics/forward.py", "impulses/cones/solver.py", "impulses/problem.py", "impulses/saddle_point.py",
    "simulation/across_kinks.py", "simulation/adjoint.py", "simulation/loop.py", "simulation/solvers/implicit_kick.py",
    "simulation/solvers/shifted.py",
    # Recursions that are fast, by the derivative of what they compute.
    "dynamics/at_rest.py", "dynamics/derivatives.py", "dynamics/forward_derivatives.py", "dynamics/inverse.py",
    "dynamics/kinematics.py", "dynamics/mass_matrix.py", "dynamics/second_derivatives.py",
    # Solutions of equations, by the implicit function theorem, and functions that are safe where a quotient is not.
    "control/riccati.py", "dynamics/inverse_inertia.py", "geometry/ellipsoids.py", "geometry/outside.py",
    "impacts/path.py", "planning/inverse_kinematics.py", "spatial/quaternions.py", "transmissions/wrapping.py",
    # A sentence where there is no derivative, or not in both modes.
    "planning/ilqr.py", "tuning/least_squares.py",
    # Counts of operations, and functions that a compiler sees as a whole.
    "execution/deferred.py", "execution/few_kernels.py", "execution/lane_refill.py", "execution/left_out.py",
    "studies/cloutier1995/operations.py",
}  # fmt: skip
CUTS = {
    # Lengths of steps and what plans them.
    "simulation/state.py", "simulation/energy_control.py", "simulation/events.py", "simulation/loop.py",
    "simulation/solvers/automatic.py", "simulation/solvers/extrapolation.py", "simulation/manifold.py",
    "simulation/variation.py", "simulation/varied_run.py", "impacts/path.py",
    # What is only reported.
    "simulation/solvers/convex_euler.py", "constraints/singular.py", "impulses/cones/solver.py",
    # Guesses, and matrices that iterations or stages approximate with.
    "constraints/acceleration.py", "constraints/assembly.py", "constraints/projection.py", "impulses/problem.py",
    "impulses/saddle_point.py", "simulation/solvers/implicit_rates.py", "simulation/solvers/implicit_motion.py",
    "simulation/solvers/shifted.py", "simulation/adjoint.py", "geometry/distance.py", "transmissions/wrapping.py",
    # Values with the derivatives of others: terms that are zero and there for their derivative, and corrections that
    # leave derivatives as they are.
    "contact/compliant.py", "contact/compliant_gradients.py", "contact/convex/contact.py", "contact/kinks.py",
    "contact/stiffening.py", "simulation/simulate.py", "sensors/imperfect.py",
    # Choices: of pairs and of when to look at them, of features of shapes, of rows.
    "contact/points.py", "contact/time_of_contact.py", "geometry/field_distance.py", "geometry/hull.py",
    "geometry/patches/features.py", "geometry/rays.py", "tuning/losses.py", "simulation/impact_event.py",
    "contact/rigid.py",
    # Sizes that drop out, or only say where zero begins.
    "geometry/capsules.py", "geometry/directions.py",
    # Copies of what the model has; derivatives go to the original.
    "dynamics/recursion/joint_frames.py",
}  # fmt: skip


def _files_with(pattern):
    found = (path for path in PACKAGE.rglob("*.py") if re.search(pattern, path.read_text(encoding="utf-8")))
    return {path.relative_to(PACKAGE).as_posix() for path in found}


def test_rules_are_where_contributing_says():
    assert _files_with(r"custom_jvp|custom_vjp|custom_root|custom_linear_solve|def_jvp|def_vjp") == RULES


def test_derivatives_are_cut_in_known_files():
    assert _files_with(r"stop_gradient\(") == CUTS
