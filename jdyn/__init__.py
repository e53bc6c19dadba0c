"""jdyn: differentiable, batchable multibody dynamics on JAX.

Conventions, never varied:

- SI units and radians, right-handed frames. Gravity is a leaf of the model, (0, 0, -9.81) m/s² by default.
- Spatial vectors are `(6,)` arrays, angular part first: motion [ω; v], force [n; f]. Body quantities are in the
  body's own frame unless the name says otherwise.
- Configuration `q` (nq,), velocity `v` (nv,), acceleration `a` (nv,), generalized force `tau` (nv,). `v` is a
  tangent vector, not dq/dt, for ball and free joints.
- Quaternions are wxyz and of unit length. A free joint's `q` is `[x y z, w x y z]`, its `v` the spatial velocity
  [ω; v] in the body's frame. Continuous joints have one angle.
- External forces `f_ext` (nb, 6) act on each body at its frame's origin, in the body's frame.
- Bodies are numbered parents first; the world is -1 and is not a body. Links on fixed joints are lumped into the
  body that carries them and live on as frames.
- `X_pb` is the pose of b in p and takes b-coordinates to p: `X_wb = X_wp @ X_pb`.
- Functions take one configuration; `jax.vmap` makes batches, over states, models, or both.

The library and JAX are loaded when one of its names is first asked for: the command line explains itself without them.
Importing it adds flags to the environment variable `XLA_FLAGS`, with which XLA compiles batches for processors in two
thirds of the time, and gradients of simulations run up to four times as fast; those that are there already stay. XLA
reads them when JAX first computes, so import jdyn before.
"""

import importlib
import sys
import types
from typing import TYPE_CHECKING

from jdyn.execution.xla_flags import set_xla_flags as _set_xla_flags

if TYPE_CHECKING:
    from jdyn.face import *  # noqa: F403

__version__ = "0.1.0"

_set_xla_flags()


# Folders of whose names the face has something for users: functions, and modules with the public names of the folder.
_OF_THE_FACE = (
    "sweep", "view", "actuators", "contact", "control", "constraints", "elements", "environments", "impacts",
    "impulses", "sensors", "studies", "transmissions", "tuning", "planning", "identification",
    "world",
)  # fmt: skip


class _Package(types.ModuleType):
    def __getattr__(self, name):
        # Python asks for names like `__path__` of its own.
        if name.startswith("__") or name == "face":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        _show_face(self)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __setattr__(self, name, value):
        # Importing a folder binds its name here.
        if not (name in _OF_THE_FACE and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self):
        # Functions that use `jdyn` are sent to other processes, which import it.
        return importlib.import_module, (self.__name__,)

    def __dir__(self):
        face = importlib.import_module("jdyn.face")
        dunder = (name for name in self.__dict__ if name.startswith("__"))
        return sorted({*dunder, *(name for name in vars(face) if not name.startswith("_"))})


def _show_face(package):
    face = importlib.import_module("jdyn.face")
    package.__dict__.update((name, value) for name, value in vars(face).items() if not name.startswith("_"))


sys.modules[__name__].__class__ = _Package
