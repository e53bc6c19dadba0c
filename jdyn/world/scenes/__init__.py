"""Scenes: worlds to look at, one a file."""

from collections.abc import Callable

from jdyn.world.scenes.billiards import billiards as billiards
from jdyn.world.scenes.cradle import newtons_cradle as newtons_cradle
from jdyn.world.scenes.pumas import two_pumas as two_pumas
from jdyn.world.scenes.scene import Scene as Scene

SCENES: dict[str, Callable[[], Scene]] = {
    "cradle": newtons_cradle,
    "billiards": billiards,
    "pumas": two_pumas,
}
