"""Which geoms of a MuJoCo model may touch, and what jdyn's own rules have to be told for that.

Source: MuJoCo's documentation, chapter Computation, section Collision, Selection.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from jdyn.model.shapes import by_direction, counted


class GeomPairs:
    """Pairs of the geoms of a MuJoCo model.

    Args:
        m: The `MjModel`.
        joints: How many joints each body has in jdyn; a base may have another number in the file.
        filters_parents: Whether neighbours do not touch.

    Attributes:
        touching: Whether two geoms may touch; symmetric.
        excluded: Pairs of bodies that may not touch, and of which jdyn has to be told.
        included: Pairs of geoms that may touch, and of which jdyn has to be told.
        friction: Coefficients of sliding, torsional and rolling friction of pairs, where they do not follow from those
            of the geoms; five of those that depend on the direction.
    """

    touching: Bool[np.ndarray, "ngeom ngeom"]
    excluded: list[tuple[int, int]]
    included: list[tuple[int, int]]
    friction: dict[tuple[int, int], np.ndarray]

    def __init__(self, m, joints: Sequence[int], filters_parents: bool):
        bits = (m.geom_contype[:, None] & m.geom_conaffinity) != 0
        weld = _welds(m, joints)
        of_geoms = np.ix_(m.geom_bodyid, m.geom_bodyid)
        meeting = (bits | bits.T) & (weld[:, None] != weld)[of_geoms]
        # Whether the column's body is on a joint that is on the row's body.
        on = weld[:, None] == weld[m.body_parentid[weld]]
        theirs = _either(on & (weld != 0)[:, None]) & filters_parents
        # In jdyn, several joints of one body are a chain of bodies, and neither the world's own shapes nor bodies on
        # free joints have neighbours.
        ours = _either(on & _borne(m, joints)[weld] & (np.arange(m.nbody) != 0)[:, None])
        stated = _pairs(m.nbody, m.exclude_signature >> 16, m.exclude_signature & 0xFFFF)
        explicit = _pairs(m.ngeom, m.pair_geom1, m.pair_geom2)
        self.touching = (meeting & ~(theirs | stated)[of_geoms]) | explicit
        apart = np.argwhere(meeting & (theirs & ~ours)[of_geoms])
        self.excluded = _rows(stated | _pairs(m.nbody, *m.geom_bodyid[apart].T))
        self.included = _rows(explicit | (self.touching & ours[of_geoms]))
        self.friction = _own_friction(m)


def _own_friction(m) -> dict[tuple[int, int], np.ndarray]:
    found = {}
    for pair, (a, b) in enumerate(zip(m.pair_geom1.tolist(), m.pair_geom2.tolist(), strict=True)):
        priority = m.geom_priority[[a, b]]
        speaking = np.array([a, b])[priority == np.max(priority)]
        of_geoms = np.max(m.geom_friction[speaking], axis=0) * counted(np.max(m.geom_condim[speaking]))
        # MuJoCo has two coefficients each of sliding and rolling friction.
        own = m.pair_friction[pair] * by_direction(counted(m.pair_dim[pair]))
        if np.any(own != by_direction(of_geoms)):
            found[min(a, b), max(a, b)] = own if own[0] != own[1] or own[3] != own[4] else own[[0, 2, 3]]
    return found


def _welds(m, joints: Sequence[int]) -> Int[np.ndarray, " nbody"]:
    """Body nearest to the world that each body is fixed to."""
    weld = np.arange(m.nbody)
    for body in range(1, m.nbody):
        if not joints[body]:
            weld[body] = weld[m.body_parentid[body]]
    return weld


def _borne(m, joints: Sequence[int]) -> Bool[np.ndarray, " nbody"]:
    """Tell whether each body is on one joint in jdyn, which is not free. Bases have free joints that are not in the
    file."""
    free = m.body_jntnum == 0
    free[m.jnt_bodyid[m.jnt_type == 0]] = True
    return (np.asarray(joints) == 1) & ~free


def _either(matrix: Bool[np.ndarray, "n n"]) -> Bool[np.ndarray, "n n"]:
    return matrix | matrix.T


def _pairs(n: int, first, second) -> Bool[np.ndarray, "n n"]:
    matrix = np.zeros((n, n), bool)
    matrix[first, second] = True
    return _either(matrix)


def _rows(matrix: Bool[np.ndarray, "n n"]) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in np.argwhere(np.triu(matrix))]
