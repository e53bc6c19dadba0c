"""Islands of objects: sets that touch or are coupled, and that nothing joins to each other."""

from collections.abc import Iterable, Sequence


def connected(names: Sequence[str], links: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Islands that links make of names, each in the order of the names.

    >>> connected(["a", "b", "c"], [("c", "a")])
    (('a', 'c'), ('b',))
    """
    root = {name: name for name in names}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for first, *others in links:
        for other in others:
            root[find(other)] = find(first)
    islands: dict[str, list[str]] = {}
    for name in names:
        islands.setdefault(find(name), []).append(name)
    return tuple(map(tuple, islands.values()))
