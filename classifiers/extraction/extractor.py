"""Raw logs, node events and scheduler words become ordered evidence: what began it, what followed, what only ended it.

Only lines with a hit of the scanner are looked at. Each gets a role: that of the catalogue's entry that knows it, else
by its shape (the final line of a traceback, a line that names an exception, a line with words of failure). Lines that
may have begun it are ordered by how sure that is and then by time, so that on many ranks the first one leads. An error
after which the run went on for several steps is no beginning.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from signal import SIGTERM
from typing import Final

from classifiers.contracts import Case, Evidence, LogStream, RawCase
from classifiers.extraction import benign_lines, failure_stage, suspects, training_progress
from classifiers.extraction.evidence_items import NODE, ROLE_ORDER, SCHEDULER, STRENGTH_ORDER, Extracted, Item
from classifiers.extraction.line_attribution import Speakers
from classifiers.extraction.line_headers import head_of, inner_rank, is_labelled, plain, time_of
from classifiers.extraction.line_roles import hits_of, is_code, role_of
from classifiers.extraction.ordering import demote, fold, keep, order_of, promote, put_first, put_forward
from classifiers.extraction.process_exits import Death, absent, deaths, is_report, report
from classifiers.extraction.rank_inference import guess, placed, unsettle, who
from classifiers.extraction.scan import Found, Scanner, tidy
from classifiers.extraction.tracebacks import Trace, exception_type, follow, mark_chains

_SCHEDULERS: Final = LogStream(text="", stream=SCHEDULER, first_line=None)
_MASTERS: Final = frozenset({"-master-0", "-chief-0"})
_REMEMBERED: Final = 1_000
_MOST_TRACES: Final = 48
_FEW_LINES: Final = 8
_SHORT: Final = 2_500
_BACK: Final = 2_000
_MANY: Final = 60
_LEADING: Final = 4
_SAME: Final = 8
_WORDS_OF_DEATH: Final = frozenset(
    {
        "failed", "exited", "exitcode", "exit code", "killed", "segmentation", "terminat", "signal", "missing", "stall",
        "unhealthy", "lost", "dead", "abort", "bus error", "failure", "sigkill", "sigsegv", "unavailable", "timed out",
        "preempt", "stopped", "timeout", "error", "sigterm", "sigabrt",
    }
)  # fmt: skip
_MARKS: Final = ("[rank", "[Rank", "[default", "]<std")
_TAGS: Final = re.compile(
    r"^[^\n]{0,60}?\[(?:rank ?|Rank ?|default)(?P<a>\d{1,6})\][: ]|^\[\d+,(?P<b>\d{1,6})\]<", re.MULTILINE
)
_KNOWN_BEGINNING: Final = 2
_LONG: Final = 1_500
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|\d+")


def scheduler_text(raw: RawCase) -> str:
    """What the scheduler said, a line each: the facts known, then reason and message."""
    job = raw.job
    facts = [f"status={job.status}"]
    facts += [f"exit_code={job.exit_code}"] if job.exit_code is not None else []
    facts += [f"signal={job.signal}"] if job.signal is not None else []
    lines = [" ".join(facts)]
    lines += [f"reason={job.reason}"] if job.reason else []
    lines += [f"message={' '.join(job.message.split())}"] if job.message else []
    return "\n".join(lines)


def _line_number(stream: LogStream, offset: int, number: int, text: str) -> int | None:
    if not stream.windows:
        return None if stream.first_line is None else stream.first_line + number - 1
    start, first = 0, None
    for window_offset, window_line in stream.windows:
        if window_offset > offset:
            break
        start, first = window_offset, window_line
    return None if first is None else first + text.count("\n", start, offset)


def _time_near(text: str, offset: int, line: str) -> float | None:
    found = time_of(line)
    if found is not None:
        return found
    begin = max(0, offset - _BACK)
    for earlier in reversed(text[begin:offset].split("\n")[-25:]):
        found = time_of(earlier)
        if found is not None:
            return found
    return None


def _traces_of(text: str, founds: Sequence[Found], speakers: Speakers) -> list[Trace]:
    heads = [one for one in founds if one.traceback]
    if len(heads) > _MOST_TRACES:
        heads = [*heads[: _MOST_TRACES // 2], *heads[-_MOST_TRACES // 2 :]]
    traces = (follow(text, one.offset, one.text, head_at=speakers.head) for one in heads)
    return mark_chains(text, [one for one in traces if one is not None])


def _is_mixed(text: str, rank: int | None) -> bool:
    """Whether lines of other ranks than the stream's own stand in it: then an unmarked line is nobody's."""
    if rank is None or "[" not in text or not any(mark in text for mark in _MARKS):
        return False
    return any(int(hit["a"] or hit["b"]) != rank for hit in islice(_TAGS.finditer(text), 200))


def _carried(line: str) -> str | None:
    """The exception of a traceback that one line carries whole, its line ends escaped (JSON logs), None without one."""
    parts = line.split("\\n")
    named = (exception_type(part) for part in reversed(parts)) if len(parts) > 1 else ()
    return next((name for name in named if name is not None), None)


class Extractor:
    """Makes a case of raw logs. Holds the scanner only."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._said: dict[str, list[Found]] = {}

    def _of_scheduler(self, text: str) -> list[Found]:
        """The scheduler's words, which many jobs have in common."""
        found = self._said.get(text)
        if found is None:
            if len(self._said) >= _REMEMBERED:
                self._said.clear()
            found = self._said[text] = self._scanner.scan(text)
        return found

    def extract(self, raw: RawCase) -> Extracted:
        """The case, its evidence ordered, most telling first. Pure."""
        texts: list[tuple[str, LogStream]] = [(plain(one.text), one) for one in raw.streams]
        landmarks: list[set[str]] = [set() for _ in texts]
        scanned = [self._scanner.scan(text, seen) for (text, _), seen in zip(texts, landmarks, strict=True)]
        texts.append((scheduler_text(raw), _SCHEDULERS))
        scanned.append(self._of_scheduler(texts[-1][0]))
        landmarks.append(set())
        events = [plain(one.text).replace("\n", " ") for one in raw.node_events]
        scanned_events = [self._scanner.scan(one) for one in events]
        present = frozenset(hit.id for founds in (*scanned, *scanned_events) for found in founds for hit in found.hits)
        items: list[Item] = []
        told: list[Death] = []
        missing_ranks: list[int] = []
        speakers: list[Speakers | None] = []
        for index, ((text, stream), founds) in enumerate(zip(texts, scanned, strict=True)):
            master = not landmarks[index].isdisjoint(_MASTERS)
            speakers.append(
                self._read_stream(raw, index, text, stream, founds, present, items, told, missing_ranks, master=master)
            )
        for text, event, founds in zip(events, raw.node_events, scanned_events, strict=True):
            self._read_event(raw, text, event.node, founds, present, items, len(texts), event.at)
        self._add_tail(texts, items)
        items = fold(items)
        demote(items, [one.chatter if one is not None else None for one in speakers])
        promote(items)
        items.sort(key=order_of)
        guess(items[:_LEADING], speakers)
        unsettle(raw, items, told, [text for text, _ in texts])
        own = [place for place, (text, one) in enumerate(texts) if text and one is not _SCHEDULERS]
        found_progress = training_progress.find([texts[place][0] for place in own], [landmarks[place] for place in own])
        voices = [one for one in speakers if one is not None]
        suspect = suspects.find(raw, items, told, missing_ranks, voices)
        put_forward(items, suspect.rank if suspect is not None else None)
        put_first(items, suspect.rank if suspect is not None else None)
        kept = keep(items)
        case = Case(
            job=raw.job,
            evidence=tuple(_evidence(one, texts, raw) for one in kept),
            suspect=suspect,
            progress=found_progress,
            missing=_missing(raw, missing_ranks),
            ranks_seen=suspects.ranks_seen(raw, items),
        )
        logs = [text for text, stream in texts if stream.stream != SCHEDULER]
        chars = sum(map(len, logs))
        lines = sum(text.count("\n") + 1 for text in logs if text)
        around = failure_stage.around(logs, kept)
        whole = benign_lines.without([line for text in logs for line in text.splitlines()]) if chars <= _SHORT else ()
        return Extracted(case, kept, told, chars, lines, around.found, around.last, whole)

    def _read_stream(  # noqa: C901, PLR0912, PLR0915 - one pass over a stream, a step a branch
        self,
        raw: RawCase,
        index: int,
        text: str,
        stream: LogStream,
        founds: Sequence[Found],
        present: frozenset[str],
        items: list[Item],
        told: list[Death],
        missing_ranks: list[int],
        *,
        master: bool,
    ) -> Speakers | None:
        if not text:
            return None
        foreign = _is_mixed(text, stream.rank)
        several = sum(bool(one.text) for one in raw.streams) > 1
        shared = stream.stream != SCHEDULER and (foreign or stream.rank is None or not several)
        speakers = Speakers(text, stream.rank, mixed=shared, labelled=is_labelled(text), master=master)
        traces = {one.final: one for one in _traces_of(text, founds, speakers)}
        by_offset = {one.offset: one for one in founds}
        for final, trace in traces.items():
            if final not in by_offset:
                by_offset[final] = Found(final, text.count("\n", 0, final) + 1, trace.text)
        stream_rank = None if foreign or (shared and speakers.several) else stream.rank
        timed = len(raw.streams) > 1 or bool(raw.node_events)
        met: dict[str, int] = {}
        for offset in sorted(by_offset):
            found = by_offset[offset]
            if len(by_offset) > _MANY:
                same = _NUMBER.sub("#", found.text[:300])
                met[same] = met.get(same, 0) + 1
                if met[same] > _SAME:  # who says it still counts
                    speakers.heard(found.text, same)
                    continue
            bare_trace = found.traceback and not found.hits and offset not in traces
            carried = _carried(found.text) if bare_trace else None
            if bare_trace and carried is None:
                continue
            head = speakers.head(found.text)
            rank = head.rank if head.rank is not None and not head.local else stream_rank
            own = inner_rank(found.text) if head.rank is None or head.local else None
            if own is not None:
                rank = own
            trace_here = traces.get(offset)
            if trace_here is None and is_code(text, offset, found.text[head.body :]):
                continue
            exception = trace_here.type if trace_here is not None else carried or exception_type(found.text)
            hits = hits_of(found, raw, stream.stream, present)
            role, bucket = role_of(found, found.text[head.body :].lstrip(), hits, trace_here, exception)
            if stream.stream == SCHEDULER:
                role, bucket = (role, bucket + 1) if hits else ("context", 9.0)
            if rank is None and role in {"initiating", "cascade"}:
                rank = speakers.writer(found.text, head)
            if len(by_offset) > _MANY and role in {"initiating", "cascade"}:
                speakers.complaints.add(same)
            about: list[int] = []
            ended: list[Death] = []
            if is_report(found.text):
                one = report(text, offset)
                told += [one] if one is not None else []
            elif not found.words.isdisjoint(_WORDS_OF_DEATH) or any(hit.role == "teardown" for hit in hits):
                after = text[offset + len(found.text) : offset + len(found.text) + 400]
                ended = placed(deaths(found.text, after), speakers)
                told += ended
                about = absent(found.text, after)
                missing_ranks += about
            items.append(
                Item(
                    text=found.text,
                    role=role,
                    bucket=bucket,
                    stream=index,
                    order=len(items),
                    offset=offset,
                    number=found.number,
                    rank=rank,
                    node=stream.node or head.host,
                    gpu=head.gpu,
                    time=_time_near(text, offset, found.text) if timed and role != "context" else None,
                    hits=hits,
                    exception=exception,
                    body=head.body,
                    words=found.words,
                    scheduler=stream.stream == SCHEDULER,
                    about=tuple(about),
                    death=any(one.signal != SIGTERM for one in ended),
                    ended=who(ended),
                    begin=trace_here.head if trace_here is not None else offset,
                    ends=trace_here is not None or bucket == 0,
                    unmarked=rank is not None and head.rank is None and own is None,
                    place=trace_here.place if trace_here is not None else "",
                )
            )
        return speakers if stream.stream != SCHEDULER else None

    @staticmethod
    def _read_event(
        raw: RawCase,
        text: str,
        node: str | None,
        founds: Sequence[Found],
        present: frozenset[str],
        items: list[Item],
        stream: int,
        at: object,
    ) -> None:
        found = founds[0] if founds else Found(0, 1, text)
        hits = hits_of(found, raw, NODE, present)
        role, bucket = role_of(found, text, hits, None, None)
        if role == "initiating" and not hits:
            role, bucket = "context", 9.0
        items.append(
            Item(
                text=text,
                role=role,
                bucket=bucket,
                stream=stream,
                order=len(items),
                offset=0,
                number=None,
                node=node,
                time=time_of(at.isoformat()) if hasattr(at, "isoformat") else time_of(text),
                hits=hits,
                words=found.words,
            )
        )

    @staticmethod
    def _add_tail(texts: Sequence[tuple[str, LogStream]], items: list[Item]) -> None:
        """Where little was found, some lines as they stand: the first two and the last ones of each stream."""
        if sum(item.role != "context" or bool(item.hits) for item in items) >= _FEW_LINES:
            return
        clear = any(
            item.role == "initiating" and item.bucket < _KNOWN_BEGINNING and not item.scheduler for item in items
        )
        known = {(item.stream, item.offset) for item in items}
        for index, (text, stream) in enumerate(texts):
            if clear and len(text) > _LONG:
                continue  # what began it is known: the rest of a long log would only add noise
            if stream.stream == SCHEDULER or not text.strip() or index > _FEW_LINES:
                continue
            for offset, number, line in _ends(text):
                if (index, offset) in known or is_code(text, offset, line):
                    continue
                head = head_of(line)
                items.append(
                    Item(
                        text=line[:2_000],
                        role="context",
                        bucket=9.5,
                        stream=index,
                        order=len(items),
                        offset=offset,
                        number=number,
                        rank=head.rank if head.rank is not None and not head.local else stream.rank,
                        node=stream.node or head.host,
                        body=head.body,
                    )
                )


def _ends(text: str) -> Iterable[tuple[int, int, str]]:
    """Offset, number and text of the first two and last six full lines of a text, looked for near its ends."""
    front = text[:1_500]
    offset = 0
    lines: list[tuple[int, int, str]] = []
    for number, line in enumerate(front.split("\n"), 1):
        if line.strip():
            lines.append((offset, number, line))
        offset += len(line) + 1
    short = len(text) <= len(front)
    if short:
        return lines if len(lines) <= _FEW_LINES else [*lines[:2], *lines[-6:]]
    begin = max(len(text) - 2_500, 0)
    begin = text.find("\n", begin) + 1
    offset, number = begin, text.count("\n", 0, begin) + 1
    last: list[tuple[int, int, str]] = []
    for line in text[begin:].split("\n"):
        if line.strip():
            last.append((offset, number, line))
        offset += len(line) + 1
        number += 1
    return [*lines[:2], *last[-6:]]


def _evidence(item: Item, texts: Sequence[tuple[str, LogStream]], raw: RawCase) -> Evidence:
    if item.stream >= len(texts):
        stream, number = NODE, None
    else:
        text, source = texts[item.stream]
        stream = source.stream
        number = _line_number(source, item.offset, item.number, text) if item.number is not None else None
    del raw
    best = min(item.hits, key=lambda one: (STRENGTH_ORDER[one.strength], ROLE_ORDER[one.role])) if item.hits else None
    return Evidence(
        text=tidy(item.text),
        role=item.role,
        rank=item.rank if stream not in {NODE, SCHEDULER} else None,
        node=item.node,
        stream=stream,
        line=number if stream != SCHEDULER else None,
        signature=best.id if best is not None else None,
    )


def _missing(raw: RawCase, missing_ranks: Sequence[int]) -> tuple[str, ...]:
    out = []
    for stream in raw.streams:
        name = f"rank {stream.rank}" if stream.rank is not None else "launcher"
        if stream.missing:
            out.append(f"log of {name} ({stream.stream}): {stream.missing}")
        elif not stream.text.strip():
            out.append(f"{name} wrote nothing to {stream.stream}")
    out += [f"rank {rank} did not answer the others" for rank in dict.fromkeys(missing_ranks)]
    if not raw.streams:
        out.append("no log was given")
    return tuple(out[:20])
