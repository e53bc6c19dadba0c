"""Formulations that are kept for comparison, and the experiments and programs of Cloutier's thesis.

Simulations need nothing from here. Everything is built on public names of the library, so each folder shows how to
extend it from outside.
"""
