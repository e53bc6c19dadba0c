"""Formulations that are kept for comparison, and the experiments and programs of Cloutier's thesis.

A shelf of its own: nothing here is needed to simulate, and all of it is built on public names of the library, so that
each folder shows how to add such a thing from outside.
"""
