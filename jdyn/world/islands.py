"""Islands of objects: sets that touch or are coupled, and that nothing joins to each other."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def connected(names: Sequence[T], links: Iterable[Sequence[T]]) -> tuple[tuple[T, ...], ...]:
    """Islands that links make of names, each in the order of the names.

    >>> connected(["a", "b", "c"], [("c", "a")])
    (('a', 'c'), ('b',))
    """
    root = {name: name for name in names}

    def find(name: T) -> T:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for link in links:
        for other in link[1:]:
            root[find(other)] = find(link[0])
    islands: dict[T, list[T]] = {}
    for name in names:
        islands.setdefault(find(name), []).append(name)
    return tuple(map(tuple, islands.values()))
