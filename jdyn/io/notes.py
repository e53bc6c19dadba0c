"""Notes about what a file says and a model has not, or the other way round, each said once."""

from jdyn.model import Builder
from jdyn.terminal.messages import enumerated


class Notes:
    """Collects names by what is to be said of them."""

    def __init__(self):
        self._names: dict[str, dict[str, None]] = {}

    def add(self, what: str, name: str) -> None:
        """Record something to name in the final warning."""
        self._names.setdefault(what, {})[name] = None

    def listed(self) -> dict[str, str]:
        """The names of each note, in words."""
        return {what: enumerated(sorted(names)) for what, names in self._names.items()}

    def report(self, builder: Builder) -> None:
        """Hand all of it to a builder, as warnings."""
        for what, names in self.listed().items():
            builder.warning(f"{what}: {names}")
