"""Long lists of values in parts, so that a statement has a bounded number of parameters."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
CHUNK = 500  # SQLite allows 32,766 parameters in a statement; short ones stay in the statement cache


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Consecutive parts of `values`, each of at most `size`; none if there are no values."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
