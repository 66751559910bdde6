"""The process, node and device where a failure most likely began.

The rank is that of the device which a node event names, else the first that one of `_RANK_SEARCHES` finds. What a rank
shows of itself comes first: another collective than the others', or an error that is no consequence of another's. Then
follow dumps and exits, what other ranks say of one, and at last what is only likely. A launcher's "root cause" counts
late: it is the first failure that one agent noticed.
"""

import re
from collections import Counter
from collections.abc import Callable
from signal import SIGABRT, SIGTERM
from typing import Final

from classifiers.contracts import Suspect
from classifiers.extraction.line_shapes import contains_any, names_timeout, relays_timeout
from classifiers.extraction.observations.only_losses import place_of_losses
from classifiers.extraction.onset import Onset
from classifiers.extraction.process_exits import ProcessExit
from classifiers.extraction.ranks import (
    expected_ranks,
    rank_of_device,
    ranks_of_event,
    ranks_on_node,
)
from classifiers.extraction.suspects.evidence import SuspectEvidence, with_ranks_of_nodes
from classifiers.extraction.suspects.node_and_gpu import suspect_gpu, suspect_node
from classifiers.observation_names import COLLECTIVES_DIFFER
from classifiers.relevance.entry_groups import peer_lost

_SEQUENCES: Final = (
    re.compile(r"last enqueued (?:NCCL )?work: (\d+)"),
    re.compile(r"last completed (?:NCCL )?work: (\d+)"),
    re.compile(r"SeqNum=(\d+)"),
)
_COLLECTIVE: Final = re.compile(r"SeqNum=\d+, OpType=\w+(?:, NumelIn=\d+, NumelOut=\d+)?")
_MAX_SEQUENCE: Final = 1 << 62  # larger ones are unset counters
_PROCESS: Final = re.compile(
    r"\bpid[= ]'?(\d{2,8})\b|\b[Kk]illed process (\d{2,8})\b|\b\w{1,30}[\[:](\d{2,8})\]?:? (?:segfault|trap|blocked)"
)
_RANK_MENTION: Final = re.compile(
    r"(?i)(?<!sending )(?<!subprocess )\b(?:rank|worker|process|task|trainer)[ .:#=]{1,2}"
    r"(?P<rank>\d{1,3})\b(?! (?:of|steps|workers|in stage)|\.\d|:\d)"  # a task of Spark is no process
)
# Characters of a line that are searched (judgement).
_RANGE: Final = 600
_SEQUENCE_RANGE: Final = 2_000
_LAUNCHERS: Final = ("ORTE_ERROR_LOG", "PRTE ERROR", "PMIX ERROR")  # of Open MPI, which start all ranks
_NODE_SIZES: Final = frozenset({2, 4, 8})  # devices of a node, as vendors build them
_PAIR: Final = 2
_NO_TIME: Final = 1e12  # sorts last
_SENT_TO_OTHERS: Final = frozenset({SIGABRT, SIGTERM})  # by launchers and watchdogs: mostly consequences


def find_suspect(evidence: SuspectEvidence) -> Suspect | None:
    """The suspect, None where nothing points to one."""
    evidence = with_ranks_of_nodes(evidence)
    rank = _suspect_rank(evidence)
    node = suspect_node(evidence.raw, evidence.items, evidence.exits, rank)
    gpu = suspect_gpu(evidence.items, rank)
    if rank is None and node is None and gpu is None:
        return None
    return place_of_losses(evidence.raw, evidence.items, evidence.exits, Suspect(rank=rank, node=node, gpu=gpu))


def _suspect_rank(evidence: SuspectEvidence) -> int | None:
    there = ranks_of_event(evidence.raw, evidence.items, evidence.exits)
    by_device = rank_of_device(evidence.raw, evidence.items, evidence.exits) if there else None
    if by_device is not None:
        return by_device
    for search in _RANK_SEARCHES:  # a loop: compiled code would compute all of an expression with a generator
        rank = search(evidence)
        if rank is not None and (not there or rank in there):
            return rank
    return min(there, default=None)


def _own_error(evidence: SuspectEvidence) -> int | None:
    """The rank with the first error that is no consequence; a rank killed without an error before all of several."""
    own = (item for item in evidence.own_beginnings if not item.reports_exit)
    errors = [item for item in own if item.onset < Onset.LIKELY_CONSEQUENCE]
    if not errors:
        return None
    complaining = {item.rank for item in errors}
    killed = {
        process_exit.rank
        for process_exit in evidence.exits
        if process_exit.is_violent and process_exit.rank is not None
    } - complaining
    if len(killed) == 1 and len(complaining) > 1 and errors[0].onset > Onset.DECISIVE_ENTRY:
        return killed.pop()
    return errors[0].rank


def _error_of_event(evidence: SuspectEvidence) -> int | None:
    """The rank with the first error of its own, where an event of a node or of the platform led to it."""
    first = next((item for item in evidence.items if item.role == "initiating"), None)
    if first is None or first.line_number is not None or first.from_scheduler or first.derived:
        return None
    errors = (item for item in evidence.complaints if item.line_number is not None and not item.reports_exit)
    return next(
        (
            error.rank
            for error in errors
            if any(hit.role == "initiating" and hit.id not in peer_lost() for hit in error.hits)
        ),
        None,
    )


def _recorded_rank(evidence: SuspectEvidence) -> int | None:
    """The rank that Flight Recorder dumps or diagnostic files name."""
    collectives, diagnostics = evidence.raw.collectives, evidence.raw.diagnostics
    ranks = [failure.ranks[0] for failure in collectives.failures if failure.ranks] if collectives is not None else []
    found = diagnostics.findings if diagnostics is not None else ()
    ranks += [one.rank for one in found if one.role == "initiating" and one.rank is not None]
    return ranks[0] if ranks else None


def _violent_exit(evidence: SuspectEvidence) -> int | None:
    """The rank that died first by a signal that no process sends to others."""
    violent = [
        process_exit for process_exit in evidence.exits if process_exit.is_violent and process_exit.rank is not None
    ]
    return min(violent, key=_exit_order).rank if violent else None


def _exit_order(one: ProcessExit) -> tuple[bool, float]:
    return not one.reported_first, one.time if one.time is not None else _NO_TIME


def _named_process(evidence: SuspectEvidence) -> int | None:
    """The rank of the process that a node event names."""
    for item in evidence.items:
        if item.role != "initiating" or item.line_number is not None or item.from_scheduler:
            continue
        found = _PROCESS.search(item.text, 0, _RANGE)
        if found is None:
            continue
        pid = next(group for group in found.groups() if group is not None)
        ranks = {
            rank for attribution in evidence.attributions if (rank := attribution.rank_of_process(pid)) is not None
        }
        if len(ranks) == 1:
            return ranks.pop()
    return None


def _exit_behind_unattributed_error(evidence: SuspectEvidence) -> int | None:
    """The rank whose exit launchers report first, where the leading error does not name its rank."""
    first = next((item for item in evidence.items if item.role == "initiating" and not item.from_scheduler), None)
    if first is None or first.rank is not None or first.line_number is None:
        return None
    return _reported_exit(evidence) if first.onset < Onset.LIKELY_CONSEQUENCE else None


def _reported_missing(evidence: SuspectEvidence) -> int | None:
    """The rank that others report most often as missing."""
    return Counter(evidence.missing).most_common(1)[0][0] if evidence.missing else None


def _behind(evidence: SuspectEvidence) -> int | None:
    """The rank whose last collective is behind the others', None if none is."""
    for pattern in _SEQUENCES:
        last: dict[int, int] = {}
        for item in evidence.complaints:
            for found in pattern.finditer(item.text, 0, _SEQUENCE_RANGE):
                number = int(found[1])
                if item.rank is not None and number < _MAX_SEQUENCE:
                    last[item.rank] = max(last.get(item.rank, 0), number)
        if len(last) > 1:
            lowest = min(last.values())
            slow = [rank for rank, number in last.items() if number == lowest]
            if len(slow) == 1 and lowest < max(last.values()):
                return slow[0]
    return None


def _differing_collective(evidence: SuspectEvidence) -> int | None:
    """The one rank that waits in another collective than all others, None if none does.

    Of two ranks it is rank 0: what only one rank does, such as validation or saving, rank 0 does.
    """
    waits: dict[int, str] = {}
    for item in evidence.complaints:
        found = _COLLECTIVE.search(item.text, 0, _SEQUENCE_RANGE)
        if found is not None and item.rank is not None:
            waits.setdefault(item.rank, found[0])
    counts = Counter(waits.values())
    if len(counts) != _PAIR or (len(waits) == _PAIR and 0 not in waits):
        return None
    if len(waits) == _PAIR:
        return 0
    (_, most), (rare, few) = counts.most_common()
    return next(rank for rank, wait in waits.items() if wait == rare) if few == 1 < most else None


def _silent(evidence: SuspectEvidence) -> int | None:
    """The rank that prints no complaint while the others report a consequence.

    Of several silent ranks it is the first of a whole node, else the one whose exit a launcher reports.
    """
    reporting = {item.rank for item in evidence.complaints if item.rank is not None and not item.reports_exit}
    reporting |= {rank for attribution in evidence.attributions for rank in attribution.complaining_ranks}
    if not reporting:
        return None
    expected = expected_ranks(evidence.raw, evidence.attributions, reporting)
    silent = expected - reporting
    size = len(silent)
    is_node = (
        size in _NODE_SIZES
        and 2 * size <= len(expected)
        and min(silent) % size == 0
        and max(silent) - min(silent) == size - 1
    )
    is_single_report = len(reporting) == 1 and len(expected) > _PAIR  # one of many ranks does not show who is missing
    if not is_single_report and (size == 1 or is_node):
        return min(silent)
    one_node = len(evidence.raw.job.nodes) <= 1
    exited = (
        process_exit.rank if process_exit.rank is not None or not one_node else process_exit.local_rank
        for process_exit in sorted(evidence.exits, key=_exit_order)
    )
    return next((rank for rank in exited if rank in silent), None)


def _late(evidence: SuspectEvidence) -> int | None:
    """The one rank that came when the others had given up: they timed out, it found them gone."""
    waiting: set[int] = set()
    others: set[int] = set()
    for item in evidence.complaints:
        if item.rank is not None and not relays_timeout(item.text, _RANGE):
            (waiting if names_timeout(item.text, _RANGE) else others).add(item.rank)
    late = others - waiting
    return late.pop() if waiting and len(late) == 1 else None


def _reported_exit(evidence: SuspectEvidence) -> int | None:
    """The rank whose exit launchers report first, exits that are mostly consequences last."""
    for one in sorted(
        evidence.exits, key=lambda process_exit: (process_exit.signal in _SENT_TO_OTHERS, *_exit_order(process_exit))
    ):
        if one.rank is not None and (one.signal != SIGTERM or one.reported_first):
            return one.rank
        if one.local_rank is not None and not _has_several_nodes(evidence):
            return one.local_rank
    return None


def _has_several_nodes(evidence: SuspectEvidence) -> bool:
    """Whether the job has more than one node, or a launcher marks lines with the hosts that it started processes on."""
    marked = any(attribution.prefix_style.name == "host" for attribution in evidence.attributions)
    return len(evidence.raw.job.nodes) > 1 or marked


def _first_complaint(evidence: SuspectEvidence) -> int | None:
    return next((item.rank for item in evidence.complaints if not relays_timeout(item.text, _RANGE)), None)


def _rank_of_node(evidence: SuspectEvidence) -> int | None:
    """The lowest rank of the first node with a beginning."""
    for item in evidence.items:
        ranks = (
            ranks_on_node(evidence.raw, evidence.items, item.node, evidence.exits)
            if item.role == "initiating"
            else set()
        )
        if ranks:
            return min(ranks)
    return None


def _likely_rank(evidence: SuspectEvidence) -> int | None:
    ranks = (item.likely_rank for item in evidence.items if item.role == "initiating")
    return next((rank for rank in ranks if rank is not None), None)


def _mentioned_rank(evidence: SuspectEvidence) -> int | None:
    """The rank that a line names in its text."""
    for item in evidence.items:
        if item.role == "context" or relays_timeout(item.text, _RANGE):
            continue
        found = _RANK_MENTION.search(item.text, 0, _RANGE)
        if found is not None:
            return int(found["rank"])
    return None


def _only_stream(evidence: SuspectEvidence) -> int | None:
    ranks = {stream.rank for stream in evidence.raw.streams}
    return ranks.pop() if len(ranks) == 1 else None


def _only_process(evidence: SuspectEvidence) -> int | None:
    """Rank 0, where event and logs show a single process and an error of it."""
    raw = evidence.raw
    texts = [stream for stream in raw.streams if stream.text]
    if len(raw.job.nodes) > 1 or (raw.job.gpus or 0) > 1 or len(texts) != 1 or evidence.exits:
        return None
    if any(attribution.known_ranks or attribution.has_several_ranks for attribution in evidence.attributions):
        return None
    if contains_any(texts[0].text, _LAUNCHERS):
        return None
    if any(hit.role in {"cascade", "teardown"} for item in evidence.items for hit in item.hits):
        return None
    own = (
        item for item in evidence.items if item.role == "initiating" and item.line_number and not item.from_scheduler
    )
    first = next(own, None)
    return 0 if first is not None and first.onset < Onset.LIKELY_CONSEQUENCE else None


def _in_another_collective(evidence: SuspectEvidence) -> int | None:
    """The odd rank where the failure begins with ranks that wait in different collectives."""
    first = next((item for item in evidence.items if item.role == "initiating"), None)
    differ = first is not None and any(COLLECTIVES_DIFFER in hit.needs for hit in first.hits)
    return _differing_collective(evidence) if differ else None


_RANK_SEARCHES: Final[tuple[Callable[[SuspectEvidence], int | None], ...]] = (
    _in_another_collective,
    _own_error,
    _error_of_event,
    _recorded_rank,
    _violent_exit,
    _named_process,
    _exit_behind_unattributed_error,
    _reported_missing,
    _behind,
    _differing_collective,
    _silent,
    _late,
    _reported_exit,
    _first_complaint,
    _rank_of_node,
    _likely_rank,
    _mentioned_rank,
    _only_stream,
    _only_process,
)
