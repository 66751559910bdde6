"""Extraction: raw logs, node events and the scheduler's message become a case with ordered evidence.

Only lines with a hit of the scanner are read. Each gets a role, by the catalogue entry that matches it or by its form
(the final line of a traceback, a line that names an exception, a line with words of failure), and an onset: how likely
the failure began with it. Lines are ordered by onset and then by time, so that of many ranks the first one leads. An
error after which the run went on for several steps is no beginning. The passes are listed in `passes.PASSES`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from classifiers import line_hashes
from classifiers.contracts import FLIGHT_RECORDER, Case, Evidence, LogStream, RawCase
from classifiers.extraction import benign_lines
from classifiers.extraction.envelopes.copies import without_copies
from classifiers.extraction.envelopes.unwrapping import own_text, unwrapped
from classifiers.extraction.events.compared_events import compared_with_events
from classifiers.extraction.events.event_relevance import MOST_SET_ASIDE
from classifiers.extraction.events.read_events import ReadEvent
from classifiers.extraction.evidence_items import (
    NODE,
    SCHEDULER,
    EvidenceItem,
    ExtractedCase,
    first_failing_line,
    strongest,
)
from classifiers.extraction.line_headers import in_year_of, plain, set_year, strip_colors, without_time, year_of
from classifiers.extraction.observations.only_losses import shows_only_losses
from classifiers.extraction.observations.registry import observations
from classifiers.extraction.ordering import LogOdds
from classifiers.extraction.passes import PASSES, Extraction
from classifiers.extraction.scan import ScannedLine, Scanner, tidy
from classifiers.extraction.stream_reader import MOST_LINES, StreamText
from classifiers.report_detection import is_report

_SCHEDULER_STREAM: Final = LogStream(text="", stream=SCHEDULER, first_line=None)
_CASES_AT_ONCE: Final = 64  # their logs of 8 KiB fit into the cache of a core (measured: 32 to 512 are alike)
_CACHE_SIZE: Final = 1_000  # scheduler messages; many jobs have the same (judgement)
_EVENTS_AT_ONCE: Final = 500  # the scanner keeps so many lines of a text
_EVENTS_KEPT: Final = 8_000  # texts of node events; jobs of the same nodes have the same (judgement)
_LONGEST_KEPT: Final = 1_000  # characters
_SHORT_LOG: Final = 2_500  # characters; a log up to this length is read whole (judgement)
SHORT_LOG_WITH_TIMES: Final = 5_000  # characters; times are about half of many lines, and longer logs are not short
_MOST_MISSING: Final = 20  # entries (judgement)


def scheduler_message(raw: RawCase) -> str:
    """The scheduler's message, one line each: the known facts, then reason and message."""
    job = raw.job
    facts = [f"status={job.status}"]
    facts += [f"exit_code={job.exit_code}"] if job.exit_code is not None else []
    facts += [f"signal={job.signal}"] if job.signal is not None else []
    lines = [" ".join(facts)]
    lines += [f"reason={job.reason}"] if job.reason else []
    lines += [f"message={' '.join(job.message.split())}"] if job.message else []
    return "\n".join(lines)


class Extractor:
    """Extracts cases with one scanner.

    Args:
        scanner: the scanner.
        log_odds: by the words of a line, the log odds that a failure began with it, None without words. It decides
            where no line shows a failure by a known sign, and where the words of the line that does speak against it;
            without it, a case of the first kind has no beginning.
    """

    def __init__(self, scanner: Scanner, log_odds: LogOdds | None = None) -> None:
        self._scanner = scanner
        self._log_odds = log_odds
        self._scheduler_lines: dict[str, list[ScannedLine]] = {}
        self._events: dict[str, ReadEvent] = {}

    def extract(self, raw: RawCase) -> ExtractedCase:
        """The case of a failed attempt, its evidence ordered, most telling first."""
        return self._extract_some([raw])[0]

    def extract_all(self, raws: Sequence[RawCase]) -> list[ExtractedCase]:
        """The case of each attempt, in order.

        Some cases take each pass together: its code and its tables are then in the processor's cache, which saves a
        sixth of the time.
        """
        parts = (raws[first : first + _CASES_AT_ONCE] for first in range(0, len(raws), _CASES_AT_ONCE))
        return [extracted for some in parts for extracted in self._extract_some(some)]

    def _extract_some(self, raws: Sequence[RawCase]) -> list[ExtractedCase]:
        extractions = []
        years = [year_of(_end(raw)) for raw in raws]
        with in_year_of(None):
            for raw, year in zip(raws, years, strict=True):
                set_year(year)
                extractions.append(self._scan(without_copies(raw)))
            for _name, run in PASSES:
                for extraction, year in zip(extractions, years, strict=True):
                    set_year(year)
                    run(extraction)
        return [_extracted_case(extraction) for extraction in extractions]

    def _scan(self, raw: RawCase) -> Extraction:
        streams: list[StreamText] = []
        for index, given in enumerate(raw.streams):
            source = plain(unwrapped(plain(given)))  # envelopes and texts in them may be coloured
            text = source.text
            landmarks: set[str] = set()
            streams.append(StreamText(index, text, source, self._scanner.scan(text, landmarks), landmarks))
        if raw.collectives is not None and raw.collectives.failures:
            recorder = LogStream(text="", stream=FLIGHT_RECORDER, first_line=None)
            streams.append(StreamText(len(streams), "", recorder, []))
        found = raw.diagnostics.findings if raw.diagnostics is not None else ()
        for kind in dict.fromkeys(finding.kind for finding in found):
            streams.append(StreamText(len(streams), "", LogStream(text="", stream=kind, first_line=None), []))
        message = scheduler_message(raw)
        streams.append(StreamText(len(streams), message, _SCHEDULER_STREAM, self._scan_scheduler(message)))
        events = self._scan_events([one.text for one in raw.node_events])
        # Without node events: what a log's line means must not change with what a node happens to report. Only where an
        # event is of the very path or device of the line, the two are compared.
        present = frozenset(hit.id for one in streams for line in one.lines for hit in line.hits)
        present |= observations(raw.job, streams, present) | compared_with_events(raw, streams)
        return Extraction(raw, streams, events, present, self._log_odds)

    def _scan_events(self, texts: Sequence[str]) -> list[ReadEvent]:
        """What was found in each text, which is scanned as one line; all new ones in one pass."""
        known = self._events
        new = [text for text in dict.fromkeys(texts) if text not in known]
        found: dict[str, ReadEvent] = {}
        for first in range(0, len(new), _EVENTS_AT_ONCE):
            some = new[first : first + _EVENTS_AT_ONCE]
            written = [strip_colors(text).replace("\n", " ") for text in some]
            lines = self._scanner.scan("\n".join(written).replace("\r", " "), of_events=True)
            by_number = {line.line_number: line for line in lines}
            found |= {
                text: ReadEvent(text, clean, by_number.get(number))
                for number, (text, clean) in enumerate(zip(some, written, strict=True), 1)
            }
        out = [found[text] if text in found else known[text] for text in texts]
        if len(known) > _EVENTS_KEPT:
            known.clear()
        known |= {text: one for text, one in found.items() if len(text) <= _LONGEST_KEPT}
        return out

    def _scan_scheduler(self, message: str) -> list[ScannedLine]:
        lines = self._scheduler_lines.get(message)
        if lines is None:
            if len(self._scheduler_lines) >= _CACHE_SIZE:
                self._scheduler_lines.clear()
            lines = self._scheduler_lines[message] = self._scanner.scan(message)
        return lines


def _end(raw: RawCase) -> datetime | None:
    """When a job ended, as far as known."""
    return raw.job.ended_at or raw.job.started_at


def _extracted_case(extraction: Extraction) -> ExtractedCase:
    raw, items, findings = extraction.raw, extraction.items, extraction.findings
    set_aside = extraction.set_aside[:MOST_SET_ASIDE]
    case = Case(
        job=raw.job,
        evidence=tuple(_evidence(item, extraction.streams) for item in [*items, *set_aside]),
        suspect=extraction.suspect,
        progress=extraction.progress,
        missing=_missing(raw, findings.missing, findings.lines_cut),
        ranks_seen=extraction.ranks_seen,
        uncorroborated=_is_uncorroborated(items),
    )
    logs = extraction.log_texts
    chars = sum(map(len, logs))
    first, closing = first_failing_line(items), extraction.closing_offset
    is_read_whole = _is_short(logs, chars) and not _begins_elsewhere(items)
    short, earlier = _short_log_lines(extraction, first, closing) if is_read_whole else ((), ())
    return ExtractedCase(
        case=case,
        items=items,
        process_exits=findings.exits,
        chars=chars,
        lines=sum(one.count_lines() for one in extraction.streams if one.text and not one.is_scheduler),
        cues=extraction.stage.found,
        stage=extraction.stage.last_stage,
        short_log_lines=short,
        earlier_lines=earlier,
        first_line=first,
        closing_offset=closing,
        effects=extraction.effects,
        set_aside=set_aside,
        landmarks=frozenset().union(*[one.landmarks for one in extraction.streams]),
        only_losses=shows_only_losses(items, findings.exits, extraction.progress, len(raw.job.nodes)),
    )


def _begins_elsewhere(items: Sequence[EvidenceItem]) -> bool:
    """Whether dumps or diagnostic files show the beginning: then the logs' lines are those of a run as any other."""
    first = next((item for item in items if item.role == "initiating"), None)
    return first is not None and first.derived


def _is_short(logs: Sequence[str], chars: int) -> bool:
    """Whether logs of so many characters are short; a time before each line makes no log longer."""
    if _SHORT_LOG < chars <= SHORT_LOG_WITH_TIMES:
        chars = sum(len(without_time(line)) + 1 for log in logs for line in log.split("\n"))
    return chars <= _SHORT_LOG


def _short_log_lines(
    extraction: Extraction, first: EvidenceItem | None, closing: int | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of logs that are read whole, and of these the ones before the first failing line of its log.

    Those from `closing` on, an offset in the log of the first failing line, are left out.
    """
    good_run = extraction.raw.good_run
    lines: list[str] = []
    earlier: list[str] = []
    of_report = False
    for stream in extraction.streams:
        if stream.is_scheduler:
            continue
        text = stream.text
        if is_report(text):
            of_report = True
        elif first is not None and first.stream == stream.index:
            earlier += text[: first.start_offset].splitlines()
            text = text[first.start_offset : closing]
        lines += text.splitlines()
    if good_run is not None:
        lines = [line for line in lines if not line_hashes.has_line(good_run, line)]
        earlier = [line for line in earlier if not line_hashes.has_line(good_run, line)]
    explained = {item.text.strip() for item in extraction.effects if item.explained}
    if explained:
        lines = [line for line in lines if line.strip() not in explained]
    kept = benign_lines.drop_routine(lines, of_report=of_report)
    earlier = [line for line in earlier if not benign_lines.is_routine(line)]
    return tuple(map(without_time, kept)), tuple(map(without_time, earlier))


def _is_uncorroborated(items: Sequence[EvidenceItem]) -> bool:
    """Whether the beginning is a node event that nothing else supports."""
    first = next((item for item in items if item.role == "initiating" and not item.from_scheduler), None)
    return first is not None and first.uncorroborated


def _evidence(item: EvidenceItem, streams: Sequence[StreamText]) -> Evidence:
    best = strongest(item.hits)
    stream = streams[item.stream] if item.stream < len(streams) else None
    name = NODE if stream is None else stream.source.stream
    is_unwrapped = stream is not None and stream.source.is_unwrapped and item.line_number is not None
    return Evidence(
        text=tidy(own_text(item.text) if is_unwrapped else item.text),
        role=item.role,
        rank=item.rank if name not in {NODE, SCHEDULER} else None,
        node=item.node,
        stream=name,
        line=_line_in_file(stream, item) if stream is not None and not stream.is_scheduler else None,
        signature=best.id if best is not None else None,
        note=item.set_aside,
    )


def _line_in_file(stream: StreamText, item: EvidenceItem) -> int | None:
    """The 1-based number of a line in the file that its stream was read from, None if unknown."""
    if item.line_number is None:
        return None
    source = stream.source
    if not source.windows:
        return None if source.first_line is None else source.first_line + item.line_number - 1
    start, first = 0, None
    for offset, line in source.windows:
        if offset > item.offset:
            break
        start, first = offset, line
    return None if first is None else first + stream.text.count("\n", start, item.offset)


def _missing(raw: RawCase, missing_ranks: Sequence[int], lines_cut: int) -> tuple[str, ...]:
    """What was expected and not found: logs that could not be read, empty logs, ranks that did not answer."""
    out = []
    for stream in raw.streams:
        name = f"rank {stream.rank}" if stream.rank is not None else "launcher"
        if stream.missing:
            out.append(f"log of {name} ({stream.stream}): {stream.missing}")
        elif not stream.text.strip():
            out.append(f"{name} wrote nothing to {stream.stream}")
    if lines_cut:
        out.append(f"{lines_cut:,} lines in the middle of logs: at most {MOST_LINES:,} of a failure are read")
    if raw.node_events_cut:
        out.append(
            f"{raw.node_events_cut:,} node events: the {len(raw.node_events):,} nearest to the job's end are read"
        )
    out += [f"rank {rank} did not answer the others" for rank in dict.fromkeys(missing_ranks)]
    if raw.collectives is not None:
        out += raw.collectives.unreadable
    if raw.diagnostics is not None:
        out += raw.diagnostics.unreadable
    if not raw.streams:
        out.append("no log was given")
    return tuple(out[:_MOST_MISSING])
