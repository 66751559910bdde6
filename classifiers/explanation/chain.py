"""The chain of a failure: its beginning, what followed on which ranks and how much later, what was set aside."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.contracts import ChainKind, ChainStep, JobFacts
from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase, strongest
from classifiers.extraction.line_headers import in_year_of, time_of

# Judgement: a reader takes in so many steps of one kind; the others are counted together.
MOST_EFFECTS: Final = 4
MOST_SET_ASIDE: Final = 3
_LONGEST_TEXT: Final = 300  # characters (judgement)
_DAY_S: Final = 86_400
_OTHER: Final = "other lines that followed"
_KINDS: Final[dict[str, ChainKind]] = {"cascade": "consequence", "teardown": "teardown"}


@dataclass(slots=True)
class _Effect:
    """Lines of one role and title: their ranks, the first of them, and when it was printed."""

    kind: ChainKind
    title: str
    first: EvidenceItem
    time: float | None
    ranks: set[int]
    lines: int = 0


def chain_of(extracted: ExtractedCase) -> tuple[ChainStep, ...]:
    """The steps of a failure in order: beginning, consequences, teardown, the job's end, what was set aside.

    Args:
        extracted: the case with its evidence.

    Returns:
        The steps; without a beginning only the end and what was set aside. `after_s` is counted from the beginning
        where both lines have a time.
    """
    first = next((item for item in extracted.items if item.role == "initiating"), None)
    steps = [] if first is None else [_beginning(first)]
    with in_year_of(extracted.case.job.ended_at or extracted.case.job.started_at):
        steps += _effects(extracted.effects, first, None if first is None else _time(first))
    steps.append(ChainStep(kind="end", text=_end(extracted.case.job)))
    return (*steps, *_set_aside(extracted))


def _beginning(first: EvidenceItem) -> ChainStep:
    best = strongest(first.hits)
    return ChainStep(
        kind="beginning",
        text=first.message[:_LONGEST_TEXT],
        title=None if best is None or best.strength == "weak" else best.title,
        rank=first.rank if first.rank is not None else first.likely_rank,
        node=first.node,
        lines=1,
    )


def _effects(items: Sequence[EvidenceItem], first: EvidenceItem | None, began: float | None) -> list[ChainStep]:
    effects: dict[str, _Effect] = {}
    origin = None if first is None else first.rank
    for item in items:
        kind = _KINDS.get(item.role)
        if kind is None or item.from_scheduler or (first is not None and _repeats(item, first)):
            continue
        best = strongest(item.hits)
        title = best.title if best is not None else item.exception or _OTHER
        time = _time(item)
        known = effects.setdefault(title, _Effect(kind, title, item, time, set()))
        known.kind = "consequence" if kind == "consequence" else known.kind
        known.lines += 1
        known.ranks |= {item.rank} if item.rank not in {None, origin} else set()
        if time is not None and (known.time is None or time < known.time):
            known.first, known.time = item, time
    ordered = sorted(effects.values(), key=_order)
    shown, others = _most_telling(ordered)
    steps = [_step(item, began) for item in shown]
    return [*steps, *_merged(others)]


def _repeats(item: EvidenceItem, first: EvidenceItem) -> bool:
    """Whether a line says again, of the same rank and node, what the first one said: no step of its own."""
    return (item.rank, item.node, item.message) == (first.rank, first.node, first.message)


def _order(one: _Effect) -> tuple[bool, float, int]:
    """Consequences before teardown; by time where it is known, else by place."""
    return one.kind == "teardown", one.time if one.time is not None else float("inf"), one.first.position


def _most_telling(effects: Sequence[_Effect]) -> tuple[list[_Effect], list[_Effect]]:
    """The effects with a title, at most so many of each kind, and the others."""
    shown: list[_Effect] = []
    others: list[_Effect] = []
    for kind in ("consequence", "teardown"):
        of_kind = [effect for effect in effects if effect.kind == kind]
        named = [effect for effect in of_kind if effect.title != _OTHER][:MOST_EFFECTS]
        shown += named
        others += [effect for effect in of_kind if effect not in named]
    return shown, others


def _step(one: _Effect, began: float | None) -> ChainStep:
    return ChainStep(
        kind=one.kind,
        text=one.first.message[:_LONGEST_TEXT],
        title=one.title,
        rank=one.first.rank,
        node=one.first.node,
        ranks=len(one.ranks),
        lines=one.lines,
        after_s=_after(began, one.time),
    )


def _merged(others: Iterable[_Effect]) -> list[ChainStep]:
    """One step for all lines without a known form."""
    ranks: set[int] = set()
    lines = 0
    for other in others:
        ranks |= other.ranks
        lines += other.lines
    return [ChainStep(kind="consequence", text=_OTHER, ranks=len(ranks), lines=lines)] if lines else []


def _end(job: JobFacts) -> str:
    """How the scheduler says the job ended."""
    parts = [job.status.replace("_", " ")]
    parts += [f"exit code {job.exit_code}"] if job.exit_code is not None else []
    parts += [f"signal {job.signal}"] if job.signal is not None else []
    parts += [job.reason] if job.reason else []
    return ", ".join(parts)


def _set_aside(extracted: ExtractedCase) -> list[ChainStep]:
    """What explains nothing in this failure, by reason; `case.evidence` holds the lines that are shown."""
    by_reason: dict[str, ChainStep] = {}
    for line in extracted.case.evidence:
        if line.note is None:
            continue
        known = by_reason.get(line.note)
        by_reason[line.note] = ChainStep(
            kind="set_aside",
            text=line.text[:_LONGEST_TEXT] if known is None else known.text,
            title=line.note,
            node=line.node if known is None else known.node,
            lines=1 if known is None else known.lines + 1,
        )
    return sorted(by_reason.values(), key=lambda step: -step.lines)[:MOST_SET_ASIDE]


def _time(item: EvidenceItem) -> float | None:
    """Seconds into the year; of a single log, whose lines are in order anyway, that which the line itself names."""
    return item.time if item.time is not None else time_of(item.text)


def _after(began: float | None, time: float | None) -> float | None:
    """Seconds from the beginning; None if a clock must be wrong: before it, or more than a day later."""
    if began is None or time is None or not 0 <= time - began <= _DAY_S:
        return None
    return round(time - began, 1)
