"""Weights of Adams methods of order 4 for steps of uneven lengths.

Times are counted in steps: a step goes from 0 to 1, and x = (x₁, x₂, x₃), all negative, are those of three steps
before, from the last one on. Rates are in the order f₁, f₀, f(x₁), f(x₂), f(x₃), of which the first is the predicted
one at the end of the step.

Source: Hairer, Nørsett, Wanner 1993, sections III.1 and III.5.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Nodes = Float[Array, "3"]

# A cubic is known by its values at as many points; its integral from 0 has the powers 1 to 4.
_POINTS = np.linspace(0, 1, 4)
_INTEGRALS = np.diag(1 / np.arange(1, 5)) @ np.linalg.inv(np.vander(_POINTS, increasing=True))


def predictor(x: Nodes) -> Float[Array, "5"]:
    """Weights of the Adams-Bashforth method: the integral over the step of the cubic through f₀ and the past."""
    powers = _integrals(jnp.concatenate([jnp.zeros(1, x.dtype), x]))
    return jnp.concatenate([jnp.zeros(1, x.dtype), jnp.sum(powers, axis=0)])


def corrector(x: Nodes) -> Float[Array, "powers 5"]:
    """Weights of the Adams-Moulton method from the start of the step to each time θ in it, by powers θ to θ⁴; their
    sum is the weight for the whole step."""
    powers = _integrals(jnp.concatenate([jnp.ones(1, x.dtype), jnp.zeros(1, x.dtype), x[:2]]))
    return jnp.concatenate([powers, jnp.zeros((4, 1), x.dtype)], axis=1)


def milne(x: Nodes) -> Float[Array, ""]:
    """Error of the corrected state as a fraction of its distance from the predicted one: Milne's device.

    Both errors are the same derivative times a constant, the integral of the polynomial that vanishes at a method's
    nodes; -19/270 for steps of equal length.
    """
    total, product = x[0] + x[1], x[0] * x[1]
    cubic = 1 / 4 - total / 3 + product / 2
    return (-1 / 20 + total / 12 - product / 6) / ((1 - x[2]) * cubic)


def _integrals(nodes: Float[Array, "4"]) -> Float[Array, "powers 4"]:
    """Integrals from 0 of the cubics that are 1 at one node and 0 at the others, a column each."""
    points = jnp.asarray(_POINTS, nodes.dtype)
    columns = []
    for k in range(4):
        others = jnp.delete(nodes, k)
        factors = (points[:, None] - others[None]) / (nodes[k] - others)[None]
        columns.append(jnp.prod(factors, axis=1))
    return jnp.asarray(_INTEGRALS, nodes.dtype) @ jnp.stack(columns, axis=1)
