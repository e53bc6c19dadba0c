"""One thread a lane: programs of batches as kernels of a GPU."""
