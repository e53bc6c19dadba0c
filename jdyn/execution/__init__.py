"""Compilers and devices: what exists only because of XLA, of processors or of GPUs."""
