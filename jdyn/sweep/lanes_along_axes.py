"""Variables of lanes along the axes of a design."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core.indexing import IndexingSupport, explicit_indexing_adapter


class LanesAlongAxes(BackendArray):
    """A variable along lanes, as an array along the axes of the design that is read as it is needed."""

    def __init__(self, lanes: Variable, axes: Mapping[str, int], along: Sequence[str]):
        """
        Args:
            lanes: Its first dimension is that of the lanes.
            axes: Sizes of the axes that lanes fill, the last one fastest.
            along: Those along which it varies; along others, it is that of the first lanes.
        """
        self._lanes, self._axes, self._along = lanes, dict(axes), tuple(along)
        self.shape = (*(self._axes[axis] for axis in self._along), *lanes.shape[1:])
        self.dtype = lanes.dtype

    def __getitem__(self, key: Any) -> np.ndarray:
        return explicit_indexing_adapter(key, self.shape, IndexingSupport.OUTER, self._read)

    def _read(self, key):
        of_axes, of_rest = key[: len(self._along)], key[len(self._along) :]
        numbers = np.zeros((), int)
        for axis, chosen in zip(self._along, of_axes, strict=True):
            # Lanes from one place of an axis to the next.
            names = list(self._axes)
            stride = math.prod(self._axes[name] for name in names[names.index(axis) + 1 :])
            numbers = np.add.outer(numbers, stride * np.arange(self._axes[axis])[chosen])
        lanes = numbers.ravel()
        # Neighbours are read as a slice, which takes less time.
        neighbours = lanes.size > 0 and bool(np.all(np.diff(lanes) == 1))
        rows = self._lanes[(slice(lanes[0], lanes[-1] + 1) if neighbours else lanes, *of_rest)].values
        return rows.reshape(numbers.shape + rows.shape[1:])
