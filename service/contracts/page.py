"""One page of a list."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

COUNT_LIMIT = 10_000  # counts on pages stop one beyond it: 10,001 stands for any larger number


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `next_cursor` is opaque; None on the last page."""

    items: tuple[T, ...]
    next_cursor: str | None = None
