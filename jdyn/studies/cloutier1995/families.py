"""Families of mechanisms that become ill-conditioned step by step."""

import dataclasses

import jax
import jax.numpy as jnp

from jdyn.model import Model
from jdyn.studies.cloutier1995.thesis import EVALUATIONS, two_links_of_one

FACTORS = tuple(10.0**k for k in range(7))


def thesis_family() -> dict[str, Model]:
    """The ten pairs of links of figure 5.6, by the share of the first one."""
    return {f"{row.share:g}": two_links_of_one(row.share) for row in EVALUATIONS}


def heavier_tips(model: Model, body: str) -> dict[str, Model]:
    """A mechanism without friction whose `body` is 1 to 10⁶ times as heavy, by the mass of the body."""
    names = ("damping", "friction", "stiffness")
    free = dataclasses.replace(model, **{name: jnp.zeros_like(getattr(model, name)) for name in names})
    row, family = model.topology.body(body), {}
    for factor in FACTORS:
        inertias = jax.tree.map(lambda x, factor=factor: x.at[row].multiply(factor), free.inertias)
        family[f"{float(inertias.mass[row]):.4g} kg"] = dataclasses.replace(free, inertias=inertias)
    return family
