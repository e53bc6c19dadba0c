"""The torque-free motion of a rigid body in closed form (Landau and Lifshitz, Mechanics, section 37)."""

import numpy as np
from scipy.integrate import quad
from scipy.spatial.transform import Rotation
from scipy.special import ellipj

INERTIA = np.array([0.03, 0.07, 0.09])


class FreeBody:
    """A body with principal moments I₁ < I₂ < I₃ that starts with ω = (a, 0, c) and turns about its third axis."""

    def __init__(self, a, c):
        I1, I2, I3 = INERTIA
        twice_energy, square = I1 * a**2 + I3 * c**2, (I1 * a) ** 2 + (I3 * c) ** 2
        if square <= twice_energy * I2:
            raise ValueError("the body turns about its first axis")
        low, high = twice_energy * I3 - square, square - twice_energy * I1
        self.size = np.sqrt([low / (I1 * (I3 - I1)), low / (I2 * (I3 - I2)), high / (I3 * (I3 - I1))])
        self.rate = np.sqrt((I3 - I2) * high / (I1 * I2 * I3))
        self.parameter = (I2 - I1) * low / ((I3 - I2) * high)
        self.momentum = np.sqrt(square)

    def velocity(self, t):
        """ω in the body [rad/s]."""
        sn, cn, dn, _ = ellipj(self.rate * t, self.parameter)
        return self.size * [cn, sn, dn]

    def _attitude(self, t):
        """Body axes in a frame whose third axis is the angular momentum, up to the turn at the start."""
        m = INERTIA * self.velocity(t) / self.momentum

        def precession(s):
            w = self.velocity(s)
            return self.momentum * (INERTIA[:2] @ w[:2] ** 2) / np.sum((INERTIA[:2] * w[:2]) ** 2)

        phi = quad(precession, 0, t, epsabs=1e-14, epsrel=1e-13, limit=500)[0]
        return Rotation.from_euler("ZXZ", [phi, np.arccos(m[2]), np.arctan2(m[0], m[1])])

    def rotation(self, t):
        """Body axes at `t`, in those at the start."""
        return self._attitude(0.0).inv() * self._attitude(t)
