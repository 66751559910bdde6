"""One page of a list."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `next_cursor` is opaque; None on the last page."""

    items: tuple[T, ...]
    next_cursor: str | None = None
