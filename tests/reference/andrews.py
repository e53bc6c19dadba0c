"""Andrews' squeezing mechanism: seven hinges in a plane that form a tree, and three loops.

Source: Hairer, Wanner, Solving ordinary differential equations II, 1996, section VII.7; numbers and the solution at
0.03 s are those of Mazzia, Magherini, Test set for initial value problem solvers, problem "andrews".
"""

import jax.numpy as jnp
import numpy as np

import jdyn

MASS = np.array([0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498])
INERTIA = np.array([2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5])
A, B, C = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273]), np.array([0.014, 0.072])
D, DA, E, EA, RR, RA, SS, SA, SB = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092, 0.035, 0.01874, 0.01043
SC, SD, TA, TB, U, UA, UB, ZF, ZT, FA = 0.018, 0.02, 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421
STIFFNESS, LENGTH, TORQUE = 4530.0, 0.07785, 0.033
END = 0.03

# β, Θ, γ, Φ, δ, Ω, ε.
START = np.array([
    -0.0617138900142764496358948458001, 0, 0.455279819163070380255912382449, 0.222668390165885884674473185609,
    0.487364979543842550225598953530, -0.222668390165885884674473185609, 1.23054744454982119249735015568,
])  # fmt: skip
START_A = np.array([14222.4439199541138705911625887, -10666.8329399655854029433719415, 0, 0, 0, 0, 0])
START_MULTIPLIERS = np.array([98.5667038, -6.12268834425566265503114393122, 0, 0, 0, 0])
REFERENCE = np.array([
    0.1581077119629904e2, -0.1575637105984298e2, 0.4082224013073101e-1, -0.5347301163226948, 0.5244099658805304,
    0.5347301163226948, 0.1048080741042263e1,
])  # fmt: skip
REFERENCE_V = np.array([
    0.1139920302151208e4, -0.1424379294994111e4, 0.1103291221937134e2, 0.1929337464421385e2, 0.5735699284790808,
    -0.1929337464421385e2, 0.3231791658026955,
])  # fmt: skip


def mechanism():
    """The model, its constraints, and the places of β, Θ, ... among its coordinates."""
    builder = jdyn.Builder("andrews", gravity=(0, 0, 0))

    def add(number, name, place, com, parent="world"):
        # Inertia about axes in the plane does nothing.
        builder.add_link(
            f"K{number}", jdyn.Revolute((0, 0, 1)), parent=parent, placement=(*place, 0), joint_name=name,
            mass=MASS[number - 1], com=(*com, 0), inertia=INERTIA[number - 1] * np.diag([0.6, 0.6, 1]),
        )  # fmt: skip

    add(1, "beta", (0, 0), (RA, 0))
    add(2, "theta", (RR, 0), (-DA, 0), "K1")
    add(3, "gamma", B, (SB, -SA))
    add(5, "delta", A, (TA, TB))
    add(4, "phi", (ZT, 0), (0, EA - E), "K5")
    add(7, "epsilon", A, (UA, UB))
    add(6, "omega", (0, -U), (ZF - FA, 0), "K7")
    model = builder.build()
    ends = {"K3": (0, -SS, 0), "K4": (0, -E, 0), "K6": (ZF, 0, 0)}
    loops = [jdyn.constraints.Connect("K2", body, point_a=(-D, 0, 0), point_b=end) for body, end in ends.items()]
    order = [model.joint_names.index(name) for name in "beta theta gamma phi delta omega epsilon".split()]
    return model, loops, order


def forces(t, q, v):
    """The motor at β, and the spring from C to a point of K3."""
    gamma = q[2]
    c, s = jnp.cos(gamma), jnp.sin(gamma)
    apart = jnp.array([SD * c + SC * s, SD * s - SC * c]) + B - C
    length = jnp.linalg.norm(apart)
    pull = -STIFFNESS * (length - LENGTH) / length * apart
    return jnp.zeros(7, q.dtype).at[0].set(TORQUE).at[2].set(pull @ jnp.array([SC * c - SD * s, SD * c + SC * s]))
