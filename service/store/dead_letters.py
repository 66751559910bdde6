"""What could not be read: kept redacted, shown, and sent again by hand."""

from collections.abc import Sequence

from service.store.records import DeadLetter, Page, StoredDeadLetter


class DeadLetters:
    """The dead letters."""

    def add(self, letters: Sequence[DeadLetter]) -> list[int]:
        """Store them; the new ids in order. The same bytes from the same place are stored once."""
        raise NotImplementedError

    def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[StoredDeadLetter]:
        """Newest first.

        Raises:
            InvalidInput: a limit out of range (1–500), a cursor that is not of this list.
        """
        raise NotImplementedError

    def get(self, letter_id: int) -> StoredDeadLetter:
        """One dead letter.

        Raises:
            NotFound: no such letter.
        """
        raise NotImplementedError

    def mark_resent(self, letter_id: int) -> None:
        """Remember that it was sent again now.

        Raises:
            NotFound: no such letter.
        """
        raise NotImplementedError
