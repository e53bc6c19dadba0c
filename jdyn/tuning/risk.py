"""Losses over many models or scenarios, and what of them is to be small: their mean, or the bad end."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


def robust(
    loss: Callable[[PyTree, PyTree], Float[Array, ""]],
    risk: Callable[[Float[Array, " samples"]], Float[Array, ""]] = jnp.mean,
) -> Callable[[PyTree, PyTree], Float[Array, ""]]:
    """The risk of `loss(params, sample)` over many samples, such as payloads, frictions or initial states.

    ```
    def loss(gains, payload):
        heavier = model.with_body("hand", mass=payload)
        ...

    payloads = jnp.linspace(0.5, 2.0, 16)
    jdyn.tune(jdyn.robust(loss, jdyn.tuning.CVaR(0.25)), gains, data=payloads, optimizer=optax.adam(0.1), steps=100)
    ```

    The samples are one batch of `jax.vmap`. If one has no finite loss, the risk is not finite either.

    >>> loss = jdyn.robust(lambda p, target: (p - target) ** 2, jdyn.tuning.CVaR(0.5))
    >>> print(loss(jnp.array(0.0), jnp.array([1.0, 2.0, 3.0, 4.0])))
    12.5

    Args:
        loss: Of the parameters and one sample, a scalar.
        risk: Of the losses of all samples: `jnp.mean`; `jdyn.tuning.CVaR(share)`, the mean of the worst, or the
            maximum; `jdyn.tuning.Worst(width)`, nearly the maximum but smooth; or any function. With
            `jdyn.tuning.Minibatches` it is that of a batch, which says little about the worst of all samples if batches
            are small.

    Returns:
        The function `(params, samples)`; samples are a PyTree of arrays with a leading axis, shape (samples, ...).
    """

    def of_samples(params, samples):
        return risk(jax.vmap(lambda sample: loss(params, sample))(samples))

    return of_samples


class CVaR(eqx.Module):
    """Conditional value at risk: the mean of the worst share of losses; of the loss at the edge, a part counts.

    It is continuous, and convex in the losses. Where two losses at the edge change places its gradient jumps.

    >>> print(jdyn.tuning.CVaR(0.25)(jnp.array([1.0, 2.0, 3.0, 10.0])))  # the mean of the worst quarter
    10.0

    Attributes:
        share: Above 0, at most 1, which is the mean. Up to 1 / samples it is the maximum.

    Raises:
        ValueError: if the share is none.

    Source: Rockafellar, Uryasev 2002, Conditional value-at-risk for general loss distributions, Journal of Banking and
    Finance, proposition 8.
    """

    share: float

    def __check_init__(self):
        if not 0 < self.share <= 1:
            raise ValueError(f"CVaR: expected a share of the samples, above 0 and at most 1, got {self.share}")

    def __call__(self, losses: Float[Array, " samples"]) -> Float[Array, ""]:
        number = max(self.share * len(losses), 1)
        weights = jnp.clip(number - jnp.arange(len(losses), dtype=losses.dtype), 0, 1) / number
        return jnp.sum(weights * jnp.sort(losses, descending=True))


class Worst(eqx.Module):
    """Nearly the largest loss, but smooth: w ln(mean(exp(loss / w))), the entropic risk.

    It is below the maximum by w ln(samples) at most, and never below the mean. Losses that are within w of the largest
    one count in its gradient. `jdyn.tuning.CVaR` with a small share is the maximum itself; an optimizer then goes to
    and fro where the worst sample changes. (`jnp.max` is not safe: its derivative looks for the losses that equal it,
    and finds none where XLA computes them a second time and rounds differently.)

    >>> print(jdyn.tuning.Worst(0.1)(jnp.array([1.0, 2.0, 3.0])).round(2))
    2.89

    Attributes:
        width: w, in units of the loss.

    Raises:
        ValueError: if the width is not positive.

    Source: Föllmer, Schied 2016, Stochastic Finance, example 4.13.
    """

    width: float

    def __check_init__(self):
        if not self.width > 0:
            raise ValueError(
                f"Worst: expected a positive width in units of the loss, got {self.width}; jnp.max is exact"
            )

    def __call__(self, losses: Float[Array, " samples"]) -> Float[Array, ""]:
        return self.width * (jax.nn.logsumexp(losses / self.width) - jnp.log(jnp.asarray(len(losses), losses.dtype)))
