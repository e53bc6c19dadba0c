"""Results of a sweep in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from jdyn.simulation import result_meanings
from jdyn.sweep.design import Design, extra_dims

if TYPE_CHECKING:
    import xarray


class Memory:
    """Results in memory, in the interface of `Store`.

    Attributes:
        over: The design.
        chunk: Lanes of a chunk.
        attrs: Attributes of parameters and variables, by name.
    """

    after_interruption = "which are lost; sweep(..., store=path) keeps them"

    def __init__(self, over: Design, chunk: int, attrs: Mapping[str, Mapping[str, str]]):
        self.over, self.chunk, self.attrs, self._outputs = over, chunk, attrs, {}

    def missing(self) -> list[int]:
        return list(range(self._chunks))

    def lanes(self, chunk: int) -> np.ndarray:
        """Neighbours in a design take about as long as each other: they go to different chunks, which then all take as
        long."""
        return np.arange(chunk, self.over.size, self._chunks)

    def write(self, chunk: int, outputs: Mapping[str, np.ndarray]) -> None:
        for name, output in outputs.items():
            all = self._outputs.setdefault(name, np.empty((self.over.size, *output.shape[1:]), output.dtype))
            all[self.lanes(chunk)] = output

    def dataset(self) -> xarray.Dataset:
        """Along the axes of the design."""
        import xarray  # it takes as long to import as JAX, and nothing else needs it

        over, dims, shape = self.over, tuple(self.over.dims), tuple(self.over.dims.values())
        variables = {
            name: ((*dims, *extra_dims(name, output.shape[1:])), output.reshape(shape + output.shape[1:]))
            for name, output in self._outputs.items()
        }
        dataset = xarray.Dataset(variables, over.coordinates())
        dataset["result"].attrs.update(result_meanings())
        for name, attributes in self.attrs.items():
            dataset[name].attrs.update(attributes)
        return dataset

    @property
    def _chunks(self):
        return -(-self.over.size // self.chunk)
