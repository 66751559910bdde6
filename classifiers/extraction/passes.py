"""The passes of extraction, in order: each adds to or changes the evidence of one case."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from classifiers import line_hashes
from classifiers.contracts import FLIGHT_RECORDER, GoodRun, Progress, RawCase, Suspect
from classifiers.extraction import evidence_items, failure_stage, ordering, training_progress
from classifiers.extraction.benign_lines import without_harmless
from classifiers.extraction.demotion import survival
from classifiers.extraction.demotion.missing_parts import demote_missing_parts, demote_unreadable
from classifiers.extraction.demotion.unrelated_reports import demote_other_jobs
from classifiers.extraction.events import event_relevance
from classifiers.extraction.events.read_events import EntriesOfNodes, EventEntries, NodeHit, ReadEvent, of_one_kind
from classifiers.extraction.events.shared_servers import lost_by_several
from classifiers.extraction.evidence_items import NODE, ROLE_ORDER, EvidenceItem
from classifiers.extraction.last_act import last_act
from classifiers.extraction.line_attribution import LineAttribution
from classifiers.extraction.line_roles import LineFacts, applicable_hits, classify_line
from classifiers.extraction.onset import Onset
from classifiers.extraction.ranks import demote_stream_rank, infer_likely_ranks, ranks_seen
from classifiers.extraction.sampled_lines import last_of_only_log, sample_ends
from classifiers.extraction.scan import ATTEMPT_MARKS
from classifiers.extraction.stream_reader import StreamFindings, StreamReader, StreamText
from classifiers.extraction.suspects.evidence import SuspectEvidence
from classifiers.extraction.suspects.search import find_suspect
from classifiers.fleet_evidence.recent_changes import CHANGE, NO_CAUSE
from classifiers.observation_names import SERVER_LOST_BY_SEVERAL
from classifiers.taxonomy import Role

IN_LAST_GOOD_RUN: Final = "the last good run of this job printed this line too"
_LEADING: Final = 4  # items whose likely rank is searched (judgement: later ones are seldom read)


@dataclass(slots=True)
class Extraction:
    """One case while its evidence is collected.

    Attributes:
        raw: the case.
        streams: its log streams and, last, the scheduler's message.
        node_events: what was found in each node event.
        present: ids of all catalogue entries that match a line of the logs or of the scheduler's message.
        log_odds: the log odds, by its words, that a failure began with a line; None if no model of lines is at hand.
        findings: evidence items, process exits and missing ranks.
        attributions: who printed which line, by stream; None for a stream without text and the scheduler's message.
        suspect: the suspect.
        progress: the progress of the run.
        ranks_seen: how many different ranks have a stream or a line.
        stage: the cues around the first item.
        node_hits: the node events that the catalogue knows, until they are judged.
        set_aside: the first node events without a part in the failure, and lines that the last good run printed too.
        effects: the consequences and the lines of the teardown, more of them than `items` keeps.
        closing_offset: where the job begins to be ended, in the log of the first failing line (`closing`).
    """

    raw: RawCase
    streams: list[StreamText]
    node_events: list[ReadEvent]
    present: frozenset[str]
    log_odds: ordering.LogOdds | None = None
    findings: StreamFindings = field(default_factory=lambda: StreamFindings([], [], []))
    attributions: list[LineAttribution | None] = field(default_factory=list)
    suspect: Suspect | None = None
    progress: Progress | None = None
    ranks_seen: int = 0
    stage: failure_stage.StageCues = field(default_factory=failure_stage.StageCues)
    node_hits: list[NodeHit] = field(default_factory=list)
    set_aside: list[EvidenceItem] = field(default_factory=list)
    effects: list[EvidenceItem] = field(default_factory=list)
    closing_offset: int | None = None

    @property
    def items(self) -> list[EvidenceItem]:
        """The evidence items."""
        return self.findings.items

    @property
    def log_texts(self) -> list[str]:
        """The texts of the logs, without the scheduler's message."""
        return [one.text for one in self.streams if not one.is_scheduler]


def read_streams(extraction: Extraction) -> None:
    """Read the log streams and the scheduler's message."""
    logs = sum(bool(one.text) for one in extraction.raw.streams)
    for stream in extraction.streams:
        if not stream.text:
            extraction.attributions.append(None)
            continue
        reader = StreamReader(extraction.raw, stream, extraction.present, logs=logs)
        reader.read(extraction.findings)
        extraction.attributions.append(None if stream.is_scheduler else reader.attribution)


def leave_out_harmless_lines(extraction: Extraction) -> None:
    """Leave out the lines of logs that have words of failure and say themselves that nothing failed."""
    extraction.findings.items = without_harmless(extraction.items)


def read_node_events(extraction: Extraction) -> None:
    """Read the node events that the catalogue knows; the others are no evidence."""
    items, found, of_nodes = extraction.items, extraction.node_hits, len(extraction.streams)
    entries = EntriesOfNodes(extraction.raw, extraction.streams, extraction.node_events, extraction.present)
    shared = lost_by_several(extraction.raw.node_events, extraction.node_events)
    for index, (event, one) in enumerate(zip(extraction.raw.node_events, extraction.node_events, strict=True)):
        is_change, hits = event.source == CHANGE, one.hits
        if one.line is not None and one.is_conditional:
            present = entries.beside(event.node, hits)
            if index in shared:
                present |= {SERVER_LOST_BY_SEVERAL}
            hits = applicable_hits(one.line, extraction.raw, NODE, present)
        if is_change or one.is_conditional:
            known = EventEntries(of_one_kind(hits, is_change=is_change)) if hits else None
        else:
            known = one.entries if hits else None
        if known is not None and known.hits:
            found.append(NodeHit(index, len(items) + len(found), one, event.node, known))
        elif is_change:
            extraction.set_aside.append(
                EvidenceItem(one.text, "context", Onset.NEUTRAL, of_nodes, index, index, None, set_aside=NO_CAUSE)
            )


def read_collectives(extraction: Extraction) -> None:
    """Add what the Flight Recorder dumps show; a failure that names ranks is a beginning."""
    collectives = extraction.raw.collectives
    for failure in collectives.failures if collectives is not None else ():
        role: Role = "initiating" if failure.ranks else "cascade"
        rank = failure.ranks[0] if failure.ranks else None
        _add_derived(extraction, failure.text, role, FLIGHT_RECORDER, Suspect(rank, None, None))


def read_diagnostics(extraction: Extraction) -> None:
    """Add what the diagnostic files show."""
    diagnostics = extraction.raw.diagnostics
    for one in diagnostics.findings if diagnostics is not None else ():
        _add_derived(extraction, one.text, one.role, one.kind, Suspect(one.rank, one.node, one.gpu))


def _add_derived(extraction: Extraction, text: str, role: Role, stream: str, place: Suspect) -> None:
    """Add an item that no process printed."""
    extraction.items.append(
        EvidenceItem(
            text=text,
            role=role,
            onset=Onset.PROCESS_END if role == "initiating" else Onset.NEUTRAL,
            stream=next(one.index for one in extraction.streams if one.source.stream == stream),
            position=len(extraction.items) + len(extraction.node_hits),
            offset=0,
            line_number=None,
            rank=place.rank,
            node=place.node,
            gpu=place.gpu,
            derived=True,
        )
    )


def set_aside_lines_of_good_run(extraction: Extraction) -> None:
    """Set aside the lines that the last good run printed too; those that look like a beginning are shown."""
    good_run = extraction.raw.good_run
    if good_run is None:
        return
    of_logs = [item for item in extraction.items if item.line_number is not None and not item.from_scheduler]
    repeated = [item for item in of_logs if line_hashes.has_line(good_run, item.text)]
    if sum(item.role == "initiating" for item in of_logs) == sum(item.role == "initiating" for item in repeated):
        # Nothing else shows a beginning: the end of the log may be an error that the good run survived.
        repeated = [item for item in repeated if not _ends_only_this_run(extraction, item, good_run)]
    places = {id(item) for item in repeated}
    extraction.findings.items = [item for item in extraction.items if id(item) not in places]
    for item in repeated:
        if item.role == "initiating":
            item.role, item.onset = "context", Onset.NEUTRAL
            item.set_aside = IN_LAST_GOOD_RUN + (f" ({good_run.job_id})" if good_run.job_id else "")
            extraction.set_aside.append(item)


def _ends_only_this_run(extraction: Extraction, item: EvidenceItem, good_run: GoodRun) -> bool:
    """Whether a line ends its process and its log, and did not end a log of the good run."""
    return (
        item.ends_process
        and line_hashes.is_last_line(extraction.streams[item.stream].text, item.offset)
        and not line_hashes.has_line(good_run, item.text, at_end=True)
    )


def add_sampled_lines(extraction: Extraction) -> None:
    """Add the first and last lines of each log, where little else was found in the logs."""
    extraction.items.extend(sample_ends(extraction.streams, extraction.items))


def fold_repeats(extraction: Extraction) -> None:
    """Remove lines that the same rank printed before, numbers aside."""
    extraction.findings.items = evidence_items.fold_repeats(extraction.items)


def demote_survived_in_logs(extraction: Extraction) -> None:
    """Withdraw trouble after which the run went on, by the logs alone."""
    progress = [one.progress_lines if one is not None else None for one in extraction.attributions]
    survival.demote_survived([item for item in extraction.items if item.line_number is not None], progress)


def demote_consequences(extraction: Extraction) -> None:
    """Withdraw what ended an earlier attempt, and errors of processes that were asked to end or had lost the others."""
    of_attempts = ["" if ATTEMPT_MARKS.isdisjoint(one.landmarks) else one.text for one in extraction.streams]
    survival.demote_earlier_attempts(extraction.items, of_attempts)
    several = [one is not None and one.has_several_ranks for one in extraction.attributions]
    survival.demote_after_loss(extraction.items, several)
    survival.demote_cancellations(extraction.items)
    demote_missing_parts(extraction.items)
    demote_unreadable(extraction.items)
    demote_other_jobs(extraction.items, extraction.raw.job.job_id, extraction.log_texts)


def judge_node_events(extraction: Extraction) -> None:
    """Set aside the node events that have nothing to do with the failure."""

    def classify(item: EvidenceItem) -> None:
        event = extraction.node_events[item.offset]
        assert event.line is not None
        item.role, item.onset = classify_line(LineFacts(event.line, event.text, item.hits))

    if extraction.node_events:
        extraction.findings.items, set_aside = event_relevance.judge_node_events(
            extraction.raw,
            extraction.streams,
            extraction.items,
            extraction.node_events,
            extraction.node_hits,
            extraction.attributions,
            classify,
            extraction.present,
        )
        extraction.set_aside += set_aside


def demote_survived(extraction: Extraction) -> None:
    """Withdraw trouble after which the run went on, where a node event shows a beginning."""
    if not extraction.node_events:
        return
    progress = [one.progress_lines if one is not None else None for one in extraction.attributions]
    survival.demote_survived(extraction.items, progress)


def promote_first_sign(extraction: Extraction) -> None:
    """Choose a beginning where no line shows one."""
    survival.demote_unanswered(extraction.items)
    ordering.promote_first_sign(extraction.items)
    ordering.promote_last_line(extraction.items, last_of_only_log(extraction.streams, extraction.items))


def promote_telling_line(extraction: Extraction) -> None:
    """Choose a beginning by its words where no known sign, or none that its own words agree with, shows a failure."""
    if extraction.log_odds is not None:
        ordering.promote_telling_line(extraction.items, extraction.log_odds)


def sort_items(extraction: Extraction) -> None:
    """Sort by role, onset and time."""
    ordering.complete_times(extraction.items)
    extraction.items.sort(key=ordering.sort_key)


def infer_ranks(extraction: Extraction) -> None:
    """Infer the ranks of leading lines, and where a single log is of several processes."""
    infer_likely_ranks(extraction.items[:_LEADING], extraction.attributions)
    texts = [one.text for one in extraction.streams]
    printed = [item for item in extraction.items if not item.derived]  # by a process into a log
    demote_stream_rank(extraction.raw, printed, extraction.findings.exits, texts)


def read_progress(extraction: Extraction) -> None:
    """Find the last step and checkpoint."""
    logs = [one for one in extraction.streams if one.text and not one.is_scheduler]
    extraction.progress = training_progress.find_progress([one.text for one in logs], [one.landmarks for one in logs])


def choose_suspect(extraction: Extraction) -> None:
    """Find the suspect, and order its lines first."""
    findings = extraction.findings
    attributions = [one for one in extraction.attributions if one is not None]
    extraction.suspect = find_suspect(
        SuspectEvidence(extraction.raw, findings.items, findings.exits, findings.missing, attributions)
    )
    rank = extraction.suspect.rank if extraction.suspect is not None else None
    if rank is not None:
        ordering.promote_suspect_line(findings.items, rank)
        findings.items.sort(key=ordering.prefer_rank(rank))
    extraction.ranks_seen = ranks_seen(extraction.raw, findings.items)


def name_few_beginnings(extraction: Extraction) -> None:
    """Leave few lines as beginnings."""
    if survival.promote_reason_of_abort(extraction.items):
        extraction.items.sort(key=ordering.sort_key)
    if ordering.prefer_logs_to_scheduler(extraction.items) or ordering.promote_first_mention(extraction.items):
        extraction.items.sort(key=ordering.sort_key)
    ordering.name_few_beginnings(extraction.items)
    extraction.items.sort(key=lambda item: ROLE_ORDER[item.role])


def add_last_act(extraction: Extraction) -> None:
    """Begin with what the suspect rank did last, where ranks wait in different places."""
    rank = extraction.suspect.rank if extraction.suspect is not None else None
    item = last_act(extraction.items, rank, extraction.streams, extraction.attributions)
    if item is not None:
        extraction.items.insert(0, item)


def limit_items(extraction: Extraction) -> None:
    """Keep the first items of each role, and all consequences apart."""
    extraction.effects = [item for item in extraction.items if item.role in {"cascade", "teardown"}]
    extraction.findings.items = ordering.limit(extraction.items)


def read_stage(extraction: Extraction) -> None:
    """Read the cues around the first item, before the job begins to be ended."""
    first = evidence_items.first_failing_line(extraction.items)
    extraction.closing_offset = evidence_items.closing_offset(first, extraction.effects)
    extraction.stage = failure_stage.cues_near_first_item(
        extraction.log_texts, extraction.items, extraction.closing_offset
    )


PASSES: Final[tuple[tuple[str, Callable[[Extraction], None]], ...]] = (
    ("read the log streams", read_streams),
    ("leave out harmless lines", leave_out_harmless_lines),
    ("read the node events", read_node_events),
    ("read the Flight Recorder dumps", read_collectives),
    ("read the diagnostic files", read_diagnostics),
    ("set aside the lines of the last good run", set_aside_lines_of_good_run),
    ("add sampled lines", add_sampled_lines),
    ("set aside the sampled lines of the last good run", set_aside_lines_of_good_run),
    ("fold repeats", fold_repeats),
    ("demote survived trouble", demote_survived_in_logs),
    ("demote errors that come after the failure", demote_consequences),
    ("judge the node events", judge_node_events),
    ("demote survived trouble again", demote_survived),
    ("promote the first sign", promote_first_sign),
    ("promote a telling line", promote_telling_line),
    ("sort", sort_items),
    ("infer ranks", infer_ranks),
    ("read the progress", read_progress),
    ("choose the suspect", choose_suspect),
    ("name few beginnings", name_few_beginnings),
    ("add what the suspect rank did last", add_last_act),
    ("limit", limit_items),
    ("read the stage", read_stage),
)
