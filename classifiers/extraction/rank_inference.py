"""Who wrote what does not tell its writer: ends told by local rank, likely writers, and a lone stream's rank."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from classifiers.contracts import RawCase
from classifiers.extraction.evidence_items import Item
from classifiers.extraction.line_attribution import Speakers
from classifiers.extraction.process_exits import Death


def unsettle(raw: RawCase, items: Sequence[Item], told: Sequence[Death], texts: Sequence[str]) -> None:
    """A lone stream of several processes: its rank is only the likely writer of an unmarked line."""
    full = [index for index, stream in enumerate(raw.streams) if texts[index].strip()]
    if len(full) != 1 or raw.streams[full[0]].rank is None:
        return
    rank = raw.streams[full[0]].rank
    others = any(one.rank not in {None, rank} or one.local not in {None, rank} for one in told)
    others = others or any(item.rank not in {None, rank} for item in items)
    if not others and (raw.job.gpus or 1) <= 1:
        return
    for item in items:
        if item.stream == full[0] and item.unmarked:
            item.rank, item.likely = None, item.rank


def guess(items: Iterable[Item], speakers: Sequence[Speakers | None]) -> None:
    """The likely writers of leading lines that do not tell theirs."""
    for item in items:
        told = speakers[item.stream] if item.stream < len(speakers) else None
        if told is not None and item.role == "initiating" and item.rank is None and item.number is not None:
            near = told.near(item.begin)
            item.likely = near if near is not None else item.likely


def who(ended: Iterable[Death]) -> tuple[int, ...]:
    """The ranks, or else local ranks, whose ends are told."""
    ranks = (one.rank if one.rank is not None else one.local for one in ended)
    return tuple(rank for rank in ranks if rank is not None)


def placed(ended: Iterable[Death], speakers: Speakers) -> list[Death]:
    """Ends with the rank of their local rank, where the text ties the two together."""
    out = list(ended)
    if all(one.rank is not None or one.local is None for one in out):
        return out
    known = speakers.locals()
    return [
        replace(one, rank=known[one.local])
        if one.rank is None and one.local is not None and one.local in known
        else one
        for one in out
    ]
