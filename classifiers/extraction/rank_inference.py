"""Ranks of lines and exits that do not name one: exits by local rank, likely writers, the rank of a single log."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from classifiers.contracts import RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.process_exits import ProcessExit


def demote_stream_rank(
    raw: RawCase, items: Sequence[EvidenceItem], exits: Sequence[ProcessExit], texts: Sequence[str]
) -> None:
    """Make the rank of the only log a likely rank, where several processes may have written to that log.

    Args:
        raw: the case.
        items: its evidence items; changed in place.
        exits: the process exits that launchers report.
        texts: the texts of the streams, in order.
    """
    full = [index for index, _ in enumerate(raw.streams) if texts[index].strip()]
    if len(full) != 1 or raw.streams[full[0]].rank is None:
        return
    rank = raw.streams[full[0]].rank
    others = any(one.rank not in {None, rank} or one.local_rank not in {None, rank} for one in exits)
    others = others or any(item.rank not in {None, rank} for item in items)
    if not others and (raw.job.gpus or 1) <= 1:
        return
    for item in items:
        if item.stream == full[0] and item.rank_from_stream:
            item.rank, item.likely_rank = None, item.rank


def infer_likely_ranks(items: Iterable[EvidenceItem], attributions: Sequence[LineAttribution | None]) -> None:
    """Set the likely rank of initiating lines that do not name their rank; `attributions` by stream."""
    for item in items:
        attribution = attributions[item.stream] if item.stream < len(attributions) else None
        if attribution is None or item.role != "initiating" or item.rank is not None or item.line_number is None:
            continue
        rank = attribution.rank_near(item.start_offset)
        item.likely_rank = rank if rank is not None else item.likely_rank


def exited_ranks(exits: Iterable[ProcessExit]) -> tuple[int, ...]:
    """The ranks, else local ranks, of exits."""
    ranks = (one.rank if one.rank is not None else one.local_rank for one in exits)
    return tuple(rank for rank in ranks if rank is not None)


def resolve_local_ranks(exits: Iterable[ProcessExit], attribution: LineAttribution) -> list[ProcessExit]:
    """The exits, with the rank of a local rank where the log connects the two."""
    out = list(exits)
    if all(one.rank is not None or one.local_rank is None for one in out):
        return out
    ranks = attribution.ranks_by_local_rank()
    return [
        replace(one, rank=ranks[one.local_rank])
        if one.rank is None and one.local_rank is not None and one.local_rank in ranks
        else one
        for one in out
    ]
