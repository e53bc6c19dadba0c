# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   language_info:
#     name: python
# ---

# %% [markdown]
# # Formulation stiffness
#
# Forward dynamics is one linear system. Its formulations differ in the order in which they eliminate unknowns: they
# agree on paper and part in floating point. This notebook looks at a pair of links, the second of which is long and
# heavy, with the methods of jdyn: first at single accelerations, then at what an adaptive integrator makes of them.
#
# The experiments are those of B. Cloutier, *Properties of robot forward dynamics algorithms with applications to
# simulation*, MSc thesis, University of British Columbia, 1995, chapter 5.

# %%
import jax
import jax.numpy as jnp
import numpy as np

import jdyn
from jdyn.studies.cloutier1995 import fall, turn, two_links, two_links_of_one

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## One acceleration
#
# Both links hang in the plane, the second 10⁵ times as long and heavy as the first. From rest, the acceleration of
# joint 1 is a smooth function of the angle of joint 2, with an amplitude of 10⁻⁵ of its value. The articulated-body
# algorithm shows it; factoring the mass matrix leaves noise (figure 5.5).

# %%
bad = jdyn.studies.MatrixABA("cancelling")
found = turn(two_links(1e5), (jdyn.CRBA(), bad, jdyn.ABA()), samples=361)
curves = {str(method): found.accelerations[method][:, 0] for method in (jdyn.CRBA(), jdyn.ABA())}
jdyn.plots.curves(found.values, curves, "angle of joint 2 [rad]", "acceleration of joint 1 [rad/s²]").figure

# %% [markdown]
# The cause is not the algorithm's name. The same recursion with its sums in another order, `MatrixABA("cancelling")`,
# is as bad (figure 5.7): a light body is added to a heavy one before what the joint takes away is subtracted.

# %%
rough = {
    str(method): float(np.max(np.abs(np.diff(found.accelerations[method][:, 0], 2)))) for method in (bad, jdyn.ABA())
}
rough

# %% [markdown]
# ## Which method to trust
#
# `jdyn.diagnose` measures how many digits each method keeps, in float32 and in float64, on random states.

# %%
diagnosis = jdyn.diagnose(two_links(1e4), method=[bad], samples=4)
print(diagnosis)

# %% [markdown]
# ## What an integrator makes of it
#
# Ten seconds from the horizontal (figure 5.6). While errors stay below the tolerance nothing happens; once they do not,
# the step controller takes noise for motion. In float32 that point comes nine orders of magnitude earlier.

# %%
models = [two_links_of_one(share) for share in (1e-1, 1e-6, 1e-8, 1e-9)]
conditions = [np.linalg.cond(jdyn.mass_matrix(model, model.neutral())) for model in models]
lines = {}
for dtype in (jnp.float64, jnp.float32):
    for method in (jdyn.ABA(), jdyn.CRBA()):
        falls = [fall(model.astype(dtype), 10.0, method=method) for model in models]
        counts = [x.evaluations if x.result == jdyn.Result.success else np.nan for x in falls]
        lines[f"{method} {np.dtype(dtype).name}"] = conditions, counts
jdyn.plots.stiffness(lines, what="evaluations in 10 s at a tolerance of 1e-6").figure
