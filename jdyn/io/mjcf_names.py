"""Names for what a MuJoCo model leaves unnamed, or names twice."""

from collections.abc import Sequence
from typing import Any


class Names:
    """Issues unique names."""

    def __init__(self, *taken: str):
        self._taken = set(taken)

    def claim(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


def body_names(names: Names, given: Sequence[str | None]) -> list[str]:
    """Names of all bodies from those in the file, the world's first; an unnamed body is called after its number."""
    numbered = [name or f"body{body}" for body, name in enumerate(given)]
    return ["world", *map(names.claim, numbered[1:])]


def joint_names(names: Names, m: Any, given: Sequence[str | None], bodies: Sequence[str]) -> list[str]:
    """Names of all joints of the `MjModel` m from those in the file.

    An unnamed joint gets its body's name, with a number if the body has several joints.
    """
    claimed = {joint: names.claim(name) for joint, name in enumerate(given) if name}
    for joint in (joint for joint, name in enumerate(given) if not name):
        body = int(m.jnt_bodyid[joint])
        number = f"/{joint - m.body_jntadr[body] + 1}" if m.body_jntnum[body] > 1 else ""
        claimed[joint] = names.claim(bodies[body] + number)
    return [claimed[joint] for joint in range(len(given))]
