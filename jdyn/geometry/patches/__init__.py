"""The points at which two shapes touch, as many for every two kinds of shapes as there are rows for them."""

from jdyn.geometry.patches.table import PATCHES as PATCHES
from jdyn.geometry.patches.table import contact_patch as contact_patch
