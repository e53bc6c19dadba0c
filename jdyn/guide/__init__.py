"""# Guide

jdyn is a toolkit for multibody dynamics that can be differentiated and run in batches, in Python on JAX. It loads a
robot, simulates it thousands of times in one batch, and takes gradients through all of it.

Chapters:

- [Tutorial](guide/tutorial.html): from a robot file of your own to a picture. Begin here.
- [Overview](guide/overview.html): everything in a few lines each.
- [Methods](guide/methods.html): which method of forward dynamics, and float32 or float64.
- [Rounding](guide/rounding.html): its cost, and the thesis that measured it.
- [Solvers](guide/solvers.html): which solver, which tolerances, and what to do with stiff motions.
- [Contact](guide/contact.html): shapes that touch, forces there, and their gradients.
- [Worlds](guide/worlds.html): many objects, their impacts, and steps of their own.
- [Recipes](guide/recipes.html): short answers to what people ask for.
- [Conventions](guide/conventions.html): units, frames, order of coordinates, beside those of other programs.
- [Other programs](guide/interop.html): Pinocchio, MuJoCo, arrays and files.
- [Limitations](guide/limitations.html): what jdyn does not do.

The reference is `jdyn`, the names that `import jdyn` gives, each with an example, and the modules below it.

All examples are run as tests. They begin with

```
import jax, jax.numpy as jnp, numpy as np, jdyn
jax.config.update("jax_enable_x64", True)
```

and may leave files in an empty folder. Where they print numbers, these are rounded. `+ 0.0` turns -0. into 0.

The pages are made by `python -m jdyn.guide FOLDER` (`pip install "jdyn[docs]"`), and need no network to be read.
"""
