"""Strict JAX for every test: float64, no silent promotion of types or ranks. Warnings are errors (pyproject.toml)."""

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
