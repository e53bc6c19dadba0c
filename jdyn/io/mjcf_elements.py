"""Force elements of MJCF files: the medium in which bodies move, and weight that is carried."""

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics.kinematics import carrier
from jdyn.elements import CarriedWeight, ForceElement, Medium
from jdyn.elements.medium import box_of
from jdyn.io.mjcf_translation import Translation
from jdyn.model import WORLD, Model
from jdyn.spatial import Transform


def elements(translation: Translation, model: Model) -> tuple[ForceElement, ...]:
    """Force elements of a file, of the model that is made of it."""
    t, m = translation, translation.m
    found: list[ForceElement] = []
    inertias = {body: _inertial_frame(t, model, body) for body in range(1, m.nbody) if m.body_mass[body] > 0}
    carried = {body: frame for body, frame in inertias.items() if frame[0] != WORLD}
    lifted = [body for body in carried if m.body_gravcomp[body] != 0 and not t.disabled("GRAVITY")]
    if lifted:
        points = np.stack([carried[body][1].translation for body in lifted])
        found.append(CarriedWeight(_names(model, carried, lifted), (m.body_mass * m.body_gravcomp)[lifted], points))
    swimming = [body for body in carried if body not in shaped_for_flow(t)]
    if (m.opt.density or m.opt.viscosity) and swimming:
        poses = [carried[body][1] for body in swimming]
        stacked = jax.tree.map(lambda *x: jnp.asarray(np.stack(x), model.dtype), *poses)
        boxes = np.stack([box_of(m.body_mass[body], m.body_inertia[body]) for body in swimming])
        names = _names(model, carried, swimming)
        found.append(Medium(names, stacked, boxes, m.opt.density, m.opt.viscosity, m.opt.wind))
    return tuple(found)


def shaped_for_flow(translation: Translation) -> list[int]:
    """Bodies that a medium feels by the ellipsoids of their geoms."""
    m = translation.m
    return sorted({int(m.geom_bodyid[geom]) for geom in range(m.ngeom) if m.geom_fluid[geom, 0] > 0})


def _inertial_frame(t: Translation, model: Model, body: int) -> tuple[int, Transform]:
    """The body of the model that carries a body of MuJoCo, and the pose of its principal axes in that."""
    carries, number = carrier(model, t.bodies[body])
    own = t.pose(t.m.body_ipos[body], t.m.body_iquat[body])
    if number < 0:
        return carries, own
    frame = jax.tree.map(lambda x: np.asarray(x[number], float), model.frames)
    return carries, Transform(frame.rotation @ own.rotation, frame.rotation @ own.translation + frame.translation)


def _names(model: Model, frames: dict, bodies: list[int]) -> tuple[str, ...]:
    return tuple(model.body_names[frames[body][0]] for body in bodies)
