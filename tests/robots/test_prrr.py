"""The planar robot against exact arithmetic and against what the thesis prints."""

from fractions import Fraction

import jax
import numpy as np
import pytest

import jdyn
from jdyn.robots import prrr

G = Fraction(98, 10)
ANGLES = np.stack([np.zeros(63), np.concatenate([[0, np.pi / 2, np.pi], np.linspace(0, 2 * np.pi, 60)])], axis=1)
accelerate = jax.jit(jax.vmap(jdyn.forward_dynamics, in_axes=(None, 0, None, None)))


def standard_case(ratio):
    """Two links, all widths 1, the second `ratio` times as long and heavy as the first (thesis, section 5.2.1)."""
    return prrr(2, lengths=(1, ratio), masses=(1, ratio)).with_gravity((0, 0, -9.8))


def exact_accelerations(ratio, cosine, sine):
    """From rest at q = (0, q2) without torque, in rational arithmetic."""
    m, l = (Fraction(1), Fraction(ratio)), (Fraction(1), Fraction(ratio))
    I = [m[k] * (l[k] ** 2 + 1) / 12 for k in (0, 1)]
    coupling = m[1] * l[0] * l[1] / 2 * cosine
    M22 = I[1] + m[1] * l[1] ** 2 / 4
    M12 = M22 + coupling
    M11 = I[0] + m[0] * l[0] ** 2 / 4 + m[1] * l[0] ** 2 + M22 + 2 * coupling
    g2 = m[1] * G * l[1] / 2 * cosine
    g1 = (m[0] / 2 + m[1]) * G * l[0] + g2
    det = M11 * M22 - M12**2
    return float((M12 * g2 - M22 * g1) / det), float((M12 * g1 - M11 * g2) / det)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1, 100, 40_000, 1_000_000])
def test_standard_cases_match_exact_arithmetic(ratio):
    a = accelerate(standard_case(ratio), ANGLES, np.zeros(2), np.zeros(2))[:3]
    expected = [exact_accelerations(ratio, *direction) for direction in ((1, 0), (0, 1), (-1, 0))]
    # Positions of link 2 are rounded at its own length, which is `ratio` times that of link 1.
    np.testing.assert_allclose(a, expected, rtol=1e-11 + 2 * np.finfo(float).eps * ratio)


# Axes of figure 5.5: joint 1 accelerations over all angles of joint 2. Links without width would leave both.
@pytest.mark.parametrize(("ratio", "lowest", "highest"), [(4e4, -9.8001, -9.8), (5e4, -9.80007, -9.80001)])
def test_accelerations_stay_on_the_axes_of_the_figure(ratio, lowest, highest):
    a = accelerate(standard_case(ratio), ANGLES, np.zeros(2), np.zeros(2))[:, 0]
    assert lowest < np.min(a) < np.max(a) < highest
    assert np.ptp(a) > 0.5 * (highest - lowest)


def test_positive_angles_raise_the_tip():
    tip = jax.jit(jdyn.frame_pose, static_argnums=2)(prrr(2), np.array([np.pi / 2, -np.pi / 2]), "tip").translation
    np.testing.assert_allclose(tip, [1, 0, 1], atol=1e-15)
