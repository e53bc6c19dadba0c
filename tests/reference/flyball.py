"""A flyball governor: a shaft that turns freely, a slider on it, and two rods with weights at their ends that stiff
springs and dampers tie to the slider. No loop: the springs are forces between points.

Source: problem A05 of the IFToMM benchmark library, http://lim.ii.udc.es/mbsbenchmark; numbers from the OpenSim port,
github.com/RehabEngGroup/MBSbenchmarksInOpenSim.
"""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate

import jdyn

G = 9.81
STIFFNESS, DAMPING, LENGTH = 8e5, 4e4, 0.5
ROD, WEIGHT, SLIDER = 0.3, 5.0, 3.0
# About the axis of a rod or the shaft, across it, and of the slider.
ALONG, ACROSS, CUBE = ROD * 2e-4 / 12, ROD * (1 + 1e-4) / 12, SLIDER * 0.02 / 12
OFFSET, HEIGHT = 0.05, 1.0
# Angle of the rods below the horizontal, and place of the slider.
ANGLE, PLACE, SPEED = np.deg2rad(30), 0.5, 2 * np.pi


def governor():
    """The model. Its coordinates are the shaft's angle, the slider's height above the shaft's foot, and the angles of
    the rods below the horizontal."""
    builder = jdyn.Builder("governor", gravity=(0, 0, -G))
    builder.add_link(
        "shaft", jdyn.Revolute((0, 0, 1)), mass=ROD, com=(0, 0, 0.5), inertia=np.diag([ACROSS, ACROSS, ALONG])
    )
    builder.add_link("slider", jdyn.Prismatic((0, 0, 1)), parent="shaft", mass=SLIDER, inertia=CUBE)
    for side in (1, -1):
        # The rod's inertia, and that of the weight at its end, about the centre of mass of both.
        mass, com = ROD + WEIGHT, (ROD / 2 + WEIGHT) / (ROD + WEIGHT)
        across = ACROSS + ROD * (com - 0.5) ** 2 + WEIGHT * (1 - com) ** 2
        builder.add_link(
            f"rod{side}", jdyn.Revolute((0, side, 0)), parent="shaft", placement=(side * OFFSET, 0, HEIGHT), mass=mass,
            com=(side * com, 0, 0), inertia=np.diag([ALONG, across, across]),
        )  # fmt: skip
    return builder.build()


class Springs(jdyn.Controller):
    """Springs and dampers from the middles of the rods to the slider's sides."""

    model: jdyn.Model

    def lengths(self, q):
        X, topology = jdyn.forward_kinematics(self.model, q), self.model.topology

        def place(link, x):
            body = topology.body(link)
            return X.translation[body] + x * X.rotation[body, :, 0]

        apart = [place(f"rod{side}", 0.5 * side) - place("slider", OFFSET * side) for side in (1, -1)]
        return jnp.linalg.norm(jnp.stack(apart), axis=1)

    def __call__(self, t, q, v):
        length, rate = jax.jvp(self.lengths, (q,), (v,))
        # Forces on the coordinates have the power of the tension, whatever the point that it pulls.
        _, pulled = jax.vjp(self.lengths, q)
        return -pulled(STIFFNESS * (length - LENGTH) + DAMPING * rate)[0]


START = np.array([0, PLACE, ANGLE, ANGLE]), np.array([SPEED, 0, 0, 0])


def turning_inertia(angle):
    """About the shaft, and its slope."""
    s, c = np.sin(angle), np.cos(angle)
    rod = ROD * (OFFSET + c / 2) ** 2 + ACROSS * c**2 + ALONG * s**2
    slope = -ROD * (OFFSET + c / 2) * s - 2 * (ACROSS - ALONG) * s * c - 2 * WEIGHT * (OFFSET + c) * s
    return ALONG + CUBE + 2 * (rod + WEIGHT * (OFFSET + c) ** 2), 2 * slope


MOMENTUM = turning_inertia(ANGLE)[0] * SPEED


def reduced(t, y):
    """Rates of the shaft's angle, the slider's place, the angle of both rods, and of the last two's rates: Lagrange's
    equations, from which the angular momentum about the shaft takes the speed of the shaft."""
    _, place, angle, speed, turn = y
    s, c = np.sin(angle), np.cos(angle)
    inertia, slope = turning_inertia(angle)
    apart = np.array([c / 2, HEIGHT - s / 2 - place])
    length = np.sqrt(apart @ apart)
    by_place, by_angle = -apart[1] / length, (-s * apart[0] - c * apart[1]) / (2 * length)
    tension = STIFFNESS * (length - LENGTH) + DAMPING * (by_place * speed + by_angle * turn)
    omega = MOMENTUM / inertia
    # Half of everything that both rods have.
    moment = omega**2 * slope / 4 + (ROD / 2 + WEIGHT) * G * c - tension * by_angle
    return [omega, speed, turn, -G - 2 * tension * by_place / SLIDER, moment / (ACROSS + ROD / 4 + WEIGHT)]


def slopes(t, y):
    """Of `reduced`, by complex steps."""
    return np.stack([np.imag(reduced(t, y + 1e-30j * step)) for step in np.eye(5)], 1) / 1e-30


def solution(times, rtol=1e-9):
    """Shaft, slider and rods, and rates of the last two, by SciPy."""
    start = [0, PLACE, ANGLE, 0, 0]
    return scipy.integrate.solve_ivp(
        reduced, (0, times[-1]), start, method="Radau", jac=slopes, rtol=rtol, atol=rtol / 100, t_eval=times
    ).y  # fmt: skip
