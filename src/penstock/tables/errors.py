"""What a table can refuse. Each text names the thing, the cause and the next step."""

from __future__ import annotations


class TableError(Exception):
    """A table cannot do what was asked."""


class StoreDamaged(TableError):
    """The files of a store are not what was written."""

    def __init__(self, directory: str, cause: object) -> None:
        super().__init__(
            f"the store in {directory} is damaged: {cause}; remove the directory, and the table is loaded again from "
            "its topic"
        )


class StoreOfAnother(TableError):
    """The directory holds another table."""

    def __init__(self, directory: str, found: str, wanted: str) -> None:
        super().__init__(
            f"the store in {directory} holds {found}, not {wanted}; choose another directory, or remove this one"
        )


class StoreInUse(TableError):
    """Another process, or another table of this one, follows the topic into the same directory."""

    def __init__(self, directory: str, holder: str) -> None:
        super().__init__(
            f"the store in {directory} is in use by process {holder or 'unknown'}; ask that one, or choose another "
            "directory"
        )


class NotReached(TableError):
    """The table did not come as far as it was asked to in the time it was given."""


class StillLoading(NotReached):
    """The table does not hold its topic yet, or no longer: it is loaded, or loaded again."""
