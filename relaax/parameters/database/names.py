"""Names of databases."""

from typing import NamedTuple

from relaax.processes.identifiers import require_name


class DatabaseName(NamedTuple):
    """The name of a database (seed 002, "About tags", 1)."""

    experiment: str
    trial: str
    policy: str

    def path(self) -> str:
        """Return the folder below the root; ConfigurationError for a name that is no folder's."""
        for part, name in self._asdict().items():
            require_name(f"the name of the {part} of a parameter database", name)
        return "/".join(self)
