"""Rooted trees, which conditions of order belong to (Hairer, Nørsett, Wanner 1993, section II.2)."""


def forests(order, trees):
    """All multisets of trees with so many nodes; `trees(order)` lists those of one size."""
    if order == 0:
        return [()]
    found = {
        tuple(sorted((first, *rest), key=repr))
        for size in range(1, order + 1)
        for first in trees(size)
        for rest in forests(order - size, trees)
    }
    return sorted(found, key=repr)
