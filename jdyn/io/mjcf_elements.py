"""Force elements of MJCF files: the medium in which bodies move, and weight that is carried."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics.kinematics import carrier
from jdyn.elements import CarriedWeight, EllipsoidMedium, ForceElement, Medium
from jdyn.elements.medium import box_of
from jdyn.io.mjcf_translation import Translation
from jdyn.model import WORLD, Model
from jdyn.spatial import Transform

Carried = tuple[int, Transform]


def elements(translation: Translation, model: Model) -> tuple[ForceElement, ...]:
    """Force elements of a file, of the model that is made of it."""
    t, m = translation, translation.m
    if without_passive_forces(t):
        return ()
    found: list[ForceElement] = []
    massive = [body for body in range(1, m.nbody) if m.body_mass[body] > 0]
    frames = {body: _carried(t, model, body, t.pose(m.body_ipos[body], m.body_iquat[body])) for body in massive}
    inertias = {body: frame for body, frame in frames.items() if frame[0] != WORLD}
    lifted = [body for body in inertias if m.body_gravcomp[body] != 0 and not t.disabled("GRAVITY")]
    if lifted:
        carried = [inertias[body] for body in lifted]
        points = np.stack([pose.translation for _, pose in carried])
        found.append(CarriedWeight(_names(model, carried), (m.body_mass * m.body_gravcomp)[lifted], points))
    if m.opt.density or m.opt.viscosity:
        found.extend(_medium(t, model, inertias))
    return tuple(found)


def without_passive_forces(t: Translation) -> bool:
    """Tell whether the file disables all passive forces, which it does with springs and dampers."""
    return t.disabled("SPRING") and t.disabled("DAMPER")


def _medium(t: Translation, model: Model, inertias: dict[int, Carried]) -> Iterator[ForceElement]:
    """The medium about massive bodies: about the ellipsoids of those that have some, and boxes of all others."""
    m, about = t.m, (t.m.opt.density, t.m.opt.viscosity, t.m.opt.wind)
    geoms = [i for i in range(m.ngeom) if m.geom_fluid[i, 0] > 0 and int(m.geom_bodyid[i]) in inertias]
    boxed = [body for body in inertias if body not in m.geom_bodyid[geoms]]
    if boxed:
        carried = [inertias[body] for body in boxed]
        boxes = np.stack([box_of(m.body_mass[body], m.body_inertia[body]) for body in boxed])
        yield Medium(_names(model, carried), _poses(model, carried), boxes, *about)
    if geoms:
        carried = [
            _carried(t, model, int(m.geom_bodyid[geom]), t.pose(m.geom_pos[geom], m.geom_quat[geom])) for geom in geoms
        ]
        semiaxes = np.stack([_semiaxes(t, geom) for geom in geoms])
        # Whether there are forces, five coefficients, added masses and added moments of inertia.
        _, coefficients, volumes, moments = np.split(m.geom_fluid[geoms], [1, 6, 9], axis=1)
        poses = _poses(model, carried)
        yield EllipsoidMedium(_names(model, carried), poses, semiaxes, volumes, moments, *about, *coefficients.T)


def _semiaxes(t: Translation, geom: int) -> np.ndarray:
    """Semiaxes of the ellipsoid as which a medium feels a geom."""
    kinds, size = t.mujoco.mjtGeom, t.m.geom_size[geom]
    match int(t.m.geom_type[geom]):
        case kinds.mjGEOM_SPHERE:
            return size[[0, 0, 0]]
        case kinds.mjGEOM_CAPSULE:
            return np.array([size[0], size[0], size[0] + size[1]])
        case kinds.mjGEOM_CYLINDER:
            return size[[0, 0, 1]]
        case _:
            return size


def _carried(t: Translation, model: Model, body: int, own: Transform) -> Carried:
    """The body of the model that carries a body of MuJoCo, and the pose in that of a frame with a pose in this."""
    carries, number = carrier(model, t.bodies[body])
    if number < 0:
        return carries, own
    frame = jax.tree.map(lambda x: np.asarray(x[number], float), model.frames)
    return carries, Transform(frame.rotation @ own.rotation, frame.rotation @ own.translation + frame.translation)


def _poses(model: Model, carried: list[Carried]) -> Transform:
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x), model.dtype), *(pose for _, pose in carried))


def _names(model: Model, carried: list[Carried]) -> tuple[str, ...]:
    return tuple(model.body_names[body] for body, _ in carried)
