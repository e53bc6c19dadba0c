"""The forward dynamics test of the thesis: any input varies, all others stay."""

import numpy as np
import pytest

import jdyn
from jdyn.studies.cloutier1995 import Link, Session, static_sweep, turn, two_links

pytestmark = pytest.mark.fast_compile

ABA, CRBA = jdyn.ABA(), jdyn.CRBA()
START = Session(
    links=(Link(1.0, 1.0, 1.0), Link(3.0, 2.0, 0.5)), q0=(0.3, -0.7), v0=(0.5, 1.5), torques=(2.0, -1.0), friction=0.1
)


def by_hand(links, q, v, torques, gravity, friction):
    """Accelerations of two rectangular links, as textbooks have them."""
    (l1, m1, w1), (l2, m2, w2) = links
    I1, I2, c = m1 * (l1**2 + w1**2) / 12, m2 * (l2**2 + w2**2) / 12, m2 * l1 * l2 / 2
    M22 = I2 + m2 * l2**2 / 4
    M12 = M22 + c * np.cos(q[1])
    M = np.array([[I1 + m1 * l1**2 / 4 + m2 * l1**2 + M22 + 2 * c * np.cos(q[1]), M12], [M12, M22]])
    h = c * np.sin(q[1]) * np.array([-v[1] * (2 * v[0] + v[1]), v[0] ** 2])
    g2 = gravity * m2 * l2 / 2 * np.cos(q[0] + q[1])
    h += np.array([gravity * (m1 / 2 + m2) * l1 * np.cos(q[0]) + g2, g2]) + friction * np.array(v)
    return np.linalg.solve(M, np.array(torques) - h), np.linalg.cond(M)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "inputs", [("q1",), ("q2",), ("v1",), ("torque2",), ("length2", "mass2"), ("width1",), ("gravity",), ("friction",)]
)
def test_every_input_varies(inputs):
    values = np.array([0.4, 1.0, 2.5])
    found = static_sweep(START, inputs, values, (ABA, CRBA))
    for row, value in enumerate(values):
        case = {
            "links": [list(link) for link in START.links], "q": list(START.q0), "v": list(START.v0),
            "torques": list(START.torques), "gravity": START.gravity, "friction": START.friction,
        }  # fmt: skip
        for name in inputs:
            kind, link = name.rstrip("12"), int(name[-1]) - 1 if name[-1] in "12" else None
            if kind in ("length", "mass", "width"):
                case["links"][link][("length", "mass", "width").index(kind)] = value
            elif link is None:
                case[kind] = value
            else:
                case[{"torque": "torques"}.get(kind, kind)][link] = value
        a, condition = by_hand(**case)
        for method in (ABA, CRBA):
            np.testing.assert_allclose(found.accelerations[method][row], a, rtol=1e-11, atol=1e-11)
        assert found.condition[row] == pytest.approx(condition, rel=1e-11)
    np.testing.assert_array_equal(found.values, values)


@pytest.mark.slow
def test_a_turn_is_a_sweep():
    """Figure 5.3's: the second joint turns, from rest and without torques."""
    links = (Link(1.0, 1.0, 1.0), Link(100.0, 100.0, 1.0))
    start = Session(links=links, q0=(0.0, 0.0), v0=(0.0, 0.0), torques=(0.0, 0.0))
    swept = static_sweep(start, ("q2",), np.linspace(0, 2 * np.pi, 9), (CRBA,))
    turned = turn(two_links(100.0), (CRBA,), samples=9)
    np.testing.assert_allclose(swept.accelerations[CRBA], turned.accelerations[CRBA], rtol=1e-9)
    np.testing.assert_allclose(swept.condition, turned.condition, rtol=1e-9)


@pytest.mark.parametrize("name", ["q3", "q0", "q", "height1", "gravity1", ""])
def test_what_is_no_input(name):
    with pytest.raises(
        ValueError, match="input: expected q, v, torque, length, mass or width with the number of a link"
    ):
        static_sweep(START, (name,), [1.0], (ABA,))
