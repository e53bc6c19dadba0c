"""How forward dynamics from rest changes with the configuration."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics import Method, forward_dynamics
from jdyn.model import Model
from jdyn.stiffness.condition import condition_numbers


@dataclasses.dataclass(frozen=True)
class Turn:
    """Accelerations from rest while one coordinate takes all its values.

    Attributes:
        angles: Values of the coordinate, shape (samples,).
        condition: Condition number of the mass matrix at each.
        accelerations: By method, shape (samples, nv).
    """

    angles: np.ndarray
    condition: np.ndarray
    accelerations: dict[Method, np.ndarray]

    def difference(self, method: Method, exact: Method) -> np.ndarray:
        """Relative difference Δr of each acceleration that `method` finds from that of `exact` (section 5.1.2)."""
        return relative_difference(self.accelerations[method], self.accelerations[exact])


def relative_difference(a: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|(exact − a) / exact| for each acceleration, and |a| where `exact` is zero.

    Source: Cloutier 1995, section 5.1.2.
    """
    return np.abs((exact - a) / np.where(exact == 0, 1, exact))


def turn(model: Model, methods: tuple[Method, ...], *, coordinate: int = 1, samples: int = 181) -> Turn:
    """Turn one joint once around, everything else as in the neutral configuration, and release.

    Args:
        model: The mechanism; the coordinate must be an angle.
        methods: Forward-dynamics methods to compare.
        coordinate: Entry of q that turns.
        samples: Number of angles.

    Source: Cloutier 1995, sections 5.1.2 and 5.2.1.
    """
    angles = np.linspace(0, 2 * np.pi, samples)
    q = jnp.tile(model.neutral(), (samples, 1)).at[:, coordinate].set(jnp.asarray(angles, model.dtype))
    return Turn(
        angles,
        condition_numbers(model, q),
        {method: np.asarray(_accelerations(method, model, q), float) for method in methods},
    )


@functools.partial(jax.jit, static_argnums=0)
def _accelerations(method, model, q):
    rest = jnp.zeros(model.nv, model.dtype)
    return jax.vmap(lambda q: forward_dynamics(model, q, rest, rest, method=method))(q)
