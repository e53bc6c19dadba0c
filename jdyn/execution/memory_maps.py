"""Compiled programs take memory maps, of which a process has a limited number."""

import pathlib
import time
import warnings

# Linux lists the maps of a process, one a line, and says how many one may have.
MAPS = pathlib.Path("/proc/self/maps")
LIMIT = pathlib.Path("/proc/sys/vm/max_map_count")
# Of the limit, where to warn; and how long to wait before maps are counted again [s].
SHARE, PAUSE = 0.75, 1.0


class MapCounter:
    """Warns once where few maps are left."""

    def __init__(self):
        self.counted = -float("inf")
        self.warned = False

    def look(self):
        """Count the maps, if that was not done just before.

        Warns:
            RuntimeWarning: once, if three quarters of the maps are taken.
        """
        now = time.monotonic()
        if self.warned or now < self.counted + PAUSE:
            return
        self.counted = now
        try:
            limit, taken = int(LIMIT.read_text()), MAPS.read_bytes().count(b"\n")
        except (OSError, ValueError):
            # Other systems have neither file, nor this limit.
            return
        if taken < SHARE * limit:
            return
        self.warned = True
        warnings.warn(
            f"this process has {taken} memory maps, of {limit} that it may have (vm.max_map_count): programs that JAX "
            "has compiled take them, a hundred or more for each structure of a model, and without any left the process "
            "ends by a segmentation fault; call jax.clear_caches() where programs of earlier models are not needed "
            "again",
            RuntimeWarning,
            stacklevel=2,
        )


memory_maps = MapCounter()
