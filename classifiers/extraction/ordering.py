"""Orders a case's items: repeats folded, a beginning found where none is plain, what did not end the run put back."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from classifiers.extraction import training_progress
from classifiers.extraction.evidence_items import ROLE_ORDER, Item
from classifiers.extraction.line_headers import time_of
from classifiers.extraction.line_roles import AGAIN
from classifiers.extraction.progress_lines import Chatter
from classifiers.taxonomy import Role

_MOST: Final = 24
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|\d+")
_TAKEN_BACK: Final = 9.2
_MANY_RANKS: Final = 3
_FIRST_RANKS: Final = 3
_AT_ONCE: Final = 2.0
_SKEW: Final = 10.0
_SHORT_LOG: Final = 3
_ENDS: Final = frozenset({"sigterm", "preempt", "reclaim", "terminat", "evict", "killed", "drain", "maintenance"})
_ECHO: Final = 2.4
_WEAK: Final = 3
_COMPLAINT: Final = 2.9
_END: Final = 2.95


def fold(items: list[Item]) -> list[Item]:
    """Of lines that say the same on the same rank the first stays; across ranks two stay. The rest is counted."""
    seen: dict[tuple[str, int | None], Item] = {}
    ranks: dict[str, int] = {}
    out: list[Item] = []
    for item in items:
        if item.role == "context" and item.bucket > 9:  # noqa: PLR2004 - tail lines are few
            out.append(item)
            continue
        key = _NUMBER.sub("#", item.bare[:300])
        same = seen.get((key, item.rank))
        if same is not None:
            same.repeats += 1
            continue
        seen[key, item.rank] = item
        ranks[key] = ranks.get(key, 0) + 1
        out.append(item)
    return out


def promote(items: list[Item]) -> None:
    """Where nothing tells of a beginning or of a consequence, a short log's first line is what there is."""
    own = [item for item in items if not item.scheduler and item.number is not None]
    if not any(item.role == "initiating" and item.bucket < _ECHO and not item.scheduler for item in items):
        complaints = [item for item in own if item.role == "cascade"]
        if complaints:  # nothing tells why: the first to complain is the first failing line that there is
            first = min(complaints, key=_when)
            _begin(first)
            ranks = {first.rank}
            at_once = [one for one in complaints if _when(one)[0] <= _when(first)[0] + _AT_ONCE]
            for item in [*at_once[:1], *sorted(complaints, key=_when)]:
                if item.rank in ranks or (item.rank is None and not item.about):
                    continue
                if item.about or (len(ranks) < _FIRST_RANKS and _when(item)[0] <= _when(first)[0] + _AT_ONCE):
                    _begin(item)  # who complains at the same time, or names who is missing
                    ranks.add(item.rank)
        ends = [item for item in own if item.death and item.role == "teardown"]
        if ends:  # who died without a word is told by its launcher alone
            ends[0].role, ends[0].bucket = "initiating", _END
        if complaints or ends:
            return
    if own and len(own) <= _SHORT_LOG and all(item.role == "context" for item in own):
        first = next((item for item in own if training_progress.step_of(item.text) is None), own[0])
        first.role, first.bucket = "initiating", 3.5


def _when(item: Item) -> tuple[float, int]:
    return item.time if item.time is not None else 1e12, item.order


def _begin(item: Item) -> None:
    item.role, item.bucket = "initiating", _COMPLAINT


def _tells_an_end(item: Item) -> bool:
    return item.role in {"cascade", "teardown"} or (item.bucket < _TAKEN_BACK and not item.words.isdisjoint(_ENDS))


def put_forward(items: list[Item], rank: int | None) -> None:
    """Where the suspect's own words begin nothing, what it said or a launcher said of it first does."""
    if rank is None or any(item.role == "initiating" and item.rank == rank for item in items):
        return
    sure = any(item.role == "initiating" and item.bucket < 2 and item.rank is None and item.number for item in items)  # noqa: PLR2004
    own = [item for item in items if item.rank == rank and not item.scheduler and _tells_an_end(item)]
    if own and not sure:
        _begin(min(own, key=lambda item: (item.stream, item.offset)))
    elif not sure:
        seen = next((item for item in items if rank in item.ended and item.role != "initiating"), None)
        if seen is not None:
            _begin(seen)


def demote(items: list[Item], talks: Sequence[Chatter | None]) -> None:
    """Takes back what did not end the run.

    That is: candidates after which the ranks talked on as every day, tries that are made again, and startup words that
    many ranks say alike.

    They become context where anything else speaks for a beginning or tells of an end; else they stand behind the rest.
    `talks`: the daily talk by stream, None where a stream has no words.
    """
    alike: dict[str, set[int]] = defaultdict(set)
    for item in items:
        if item.role == "initiating" and item.rank is not None and item.bucket >= _WEAK:
            alike[_key(item)].add(item.rank)
    many = {key for key, ranks in alike.items() if len(ranks) >= _MANY_RANKS}
    doubted = [
        item
        for item in items
        if item.role in {"initiating", "cascade"} and (item.bucket == AGAIN or _is_past(item, many, talks))
    ]
    if not doubted:
        return
    rest = [one for one in items if one not in doubted and not one.scheduler]
    spoken = any(one.role in {"initiating", "cascade"} or (one.death and one.role == "teardown") for one in rest)
    for item in doubted:
        if spoken or item.role == "cascade":
            item.role, item.bucket = "context", _TAKEN_BACK
        else:
            item.bucket += 3


def _key(item: Item) -> str:
    return _NUMBER.sub("#", item.bare[:120])


def _is_past(  # noqa: PLR0911 - one return a reason
    item: Item, many: set[str], talks: Sequence[Chatter | None]
) -> bool:
    if item.scheduler or item.stream >= len(talks):
        return False
    talk = talks[item.stream]
    if talk is None:
        return False
    if talk.goes_on(item.offset, sure=item.ends):
        return True
    if item.ends:
        return False
    if item.role == "initiating" and item.bucket >= _WEAK and item.rank is not None and _key(item) in many:
        return True
    own = time_of(item.text)  # a time of its own: that of a line before it may be much older
    if own is None:
        return False
    later = (one.last_time() for one in talks if one is not None and one is not talk)
    return any(time is not None and own < time - _SKEW for time in later)


def order_of(item: Item) -> tuple[int, float, float, int]:
    """The place of an item: by role, how surely it began the failure, time, and where it stands."""
    time = item.time if item.time is not None else 1e12
    return ROLE_ORDER[item.role], item.bucket if item.bucket > 2 else min(int(item.bucket), 1), time, item.order  # noqa: PLR2004


def put_first(items: list[Item], rank: int | None) -> None:
    """Among equally sure beginnings the suspect rank's goes first."""
    if rank is None:
        return
    items.sort(
        key=lambda one: (
            *order_of(one)[:2],
            one.role == "initiating" and one.rank is not None and one.rank != rank,
            *order_of(one)[2:],
        )
    )


def keep(items: list[Item]) -> list[Item]:
    """The first items of each role, as many as are worth reading."""
    most: dict[Role, int] = {"initiating": 8, "cascade": 6, "teardown": 4, "context": 10}
    count: dict[Role, int] = {}
    out = []
    for item in items:
        count[item.role] = count.get(item.role, 0) + 1
        if count[item.role] <= most[item.role]:
            out.append(item)
    return out[:_MOST]
