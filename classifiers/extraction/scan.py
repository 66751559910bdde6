"""The scanner: one pass over a text for all literals of the catalogue and for general words of failure.

Clean lines cost only that pass (an Aho-Corasick automaton). Each line with a hit is cut out once and tried against its
candidate signatures. Texts of any size are read in pieces, and of a text with very many hits the first and the last are
kept, so cost and memory grow with the text and not with the catalogue.
"""

import re
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import re2

from classifiers.extraction.envelopes.daemon_lines import DAEMON_MARKS, is_of_daemon
from classifiers.extraction.line_headers import parse_header
from classifiers.patterns.literal_search import Literals, lower_case
from classifiers.patterns.loose_patterns import least_opened_bound, without_upper_bounds
from classifiers.signatures import MAX_LINE, Catalogue, Signature, compile_set, is_short

# Words that failing programs, tools and kernels use, whatever the framework. A line with one is a candidate.
ERROR_WORDS: Final = (
    "error", "exception", "fatal", "failed", "failure", "failing", "killed", "abort", "segmentation", "core dumped",
    "sigsegv", "sigkill", "sigterm", "sigabrt", "sigbus", "bus error", "panic", "denied", "forbidden",
    "unauthorized", "not found", "no such", "cannot ", "can't ", "couldn't", "could not", "unable to", "invalid",
    "illegal", "mismatch", "timed out", "timeout", "time limit", "deadline", "refused", "reset by peer", "closed by",
    "unreachable", "not ready", "out of memory", "oom", "no space", "quota", "evict", "preempt", "cancelled",
    "canceled", "terminat", "exited", "exit code", "exitcode", "exit=", "xid", "hardware", "corrupt", "truncated",
    "unhealthy", "lost", "dead", "hung", "stuck", "stall", "nan", "overflow", "diverge", "missing", "undefined",
    "unsupported", "not supported", "insufficient", "exceed", "expired", "backoff", "unschedulable", "pending",
    "drain", "maintenance", "cordon", "reboot", "unavailable", "crash", "interrupt", "rejected", "too many",
    "too large", "assert", "must be", "must match", "require", "throttl", "rate limit", "slow", "nccl warn",
    "stopped", "unexpected", "unknown", "conflict", "incompatible", "bug:", "command line", "unrecognized", "usage:",
    "retry", "warning", "not enough", "in use", "no module", "link down", "degraded", "offline", "violat",
    "disallowed", "not permitted", "not allowed", "backtrace", "signal", "worker_failed", "straggl", "process name:",
    "due to process rank", ": line ", "unterminated", "omitting", "readonly", "expected", "interrupted",
    "not divisible", "no longer", "gave up", "giving up", "revoked", "reclaim", "oops", "lockup", "throw",
    "panicked", "no rule to make", "curl: (", "not ok ",
)  # fmt: skip
TRACEBACK: Final = "traceback (most recent call last)"
_MILD_WORDS: Final = frozenset(
    {
        "warning", "retry", "pending", "require", "expected", ": line ", "straggl", "process name:", "offline",
        "unknown", "slow", "usage:", "signal", "hardware", "command line", "nan", "lost", "dead", "oom",
        "unexpected", "stopped", "in use", "no longer", "invalid", "xid", "interrupt", "throw", "timeout",
        "terminat", "exited", "assert", "maintenance", "drain", "conflict", "overflow",
    }
)  # fmt: skip
# In lower case, parts of the lines by which a log shows that it holds several attempts of a job.
ATTEMPT_MARKS: Final = frozenset({"attempt", "estart count", "estart_count", " due to "})
# In lower case, what stands before or behind a rank where launchers and programs label lines.
RANK_MARKS: Final = frozenset({"[rank", "[default", "]<std"})
# Words that later passes search in a whole text: the scanner notes them in the same pass.
LANDMARKS: Final = (
    *("ckpt", "checkpoint", "saved model", "saving model", "saving state", "-master-0", "-chief-0"),
    *("ersion", "==", "lib/python3."),  # of versions of software
    *DAEMON_MARKS,
    *sorted(ATTEMPT_MARKS | RANK_MARKS),
)
# Escapes and classes of characters: a "^" in them is not the beginning of a line.
_NO_BEGINNING: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
# Limits of what is read and kept (judgement: they bound time and memory of a very long log).
_PIECE: Final = 1 << 20  # characters
_KEEP: Final = 600  # lines at each end
_MAX_LINE_KEPT: Final = 4_000
_EVENTS: Final = frozenset({"node"})  # the stream of node events
# Families whose entries say nothing before they are compared with the rest: the node, the time, what else happened.
_COMPARED: Final = frozenset({"changes", "events", "file-servers", "platform-services", "reports", "switches"})
_WORD_EDGE: Final = frozenset({"nan", "oom", "xid", "dead", "lost", "hung", "drain", "slow", "panic", "oops", "evict"})


class _EntryGroup:
    """Entries that have a literal in common. Their patterns are searched together: the engine reads a line once.

    They are searched without upper bounds. What matches then is tried with the pattern itself.
    """

    def __init__(self, entries: tuple[Signature, ...]) -> None:
        self.entries = entries
        self.only_id = entries[0].id if len(entries) == 1 else None
        self.ids = frozenset([entry.id for entry in entries])
        self._match: Callable[[bytes], Sequence[int] | None] | None = None
        self._exact_up_to: list[int] = []  # by entry, how long a line is at most of which no second search is needed
        self._is_plain = all(entry.pattern is None for entry in entries)
        self.of_beginnings: _EntryGroup | None = None  # the group of its entries that ask how a line begins

    def matching(self, line: bytes) -> Sequence[Signature]:
        """Those that match a line, in order."""
        if self._is_plain:
            return self.entries
        match = self._match
        if match is None:  # compiled when it is used first, as each pattern is
            exact = [_EVERY if one.pattern is None else one.pattern.pattern for one in self.entries]
            bounds = [least_opened_bound(pattern) for pattern in exact]
            self._exact_up_to = [_LONGEST_LINE if bound is None else bound for bound in bounds]
            try:
                match = compile_set([without_upper_bounds(pattern) for pattern in exact])
            except re2.error:  # an operator's entries together are too large for the engine, each alone is not
                match = self._each_alone
            self._match = match
        found = match(line)
        return [self.entries[place] for place in sorted(found) if self._is_match(place, line)] if found else ()

    def _each_alone(self, line: bytes) -> Sequence[int]:
        """The places of the entries that match a line, of which each is searched by itself."""
        patterns = [entry.pattern for entry in self.entries]
        return [place for place, one in enumerate(patterns) if one is None or one.matches(line)]

    def _is_match(self, place: int, line: bytes) -> bool:
        """Whether an entry matches that matched without upper bounds."""
        pattern = self.entries[place].pattern
        return pattern is None or len(line) <= self._exact_up_to[place] or pattern.matches(line)


@lru_cache(maxsize=4_096)  # an entry is in as many groups as it has literals
def _asks_beginning(pattern: str) -> bool:
    """Whether a pattern asks how a line begins."""
    return "^" in pattern and "^" in _NO_BEGINNING.sub("", pattern)


def _group_of(entries: tuple[Signature, ...], known: dict[tuple[str, ...], _EntryGroup | None]) -> _EntryGroup | None:
    """The group of some entries, None of none. Those of most words are the same as of others, and compiled once."""
    ids = tuple([entry.id for entry in entries])
    if ids not in known:
        group = known[ids] = _EntryGroup(entries) if entries else None
        if group is not None:
            patterns = ((entry, entry.pattern) for entry in entries)
            beginning = [entry for entry, one in patterns if one is not None and _asks_beginning(one.pattern)]
            group.of_beginnings = _group_of(tuple(beginning), known)
    return known[ids]


_NO_WORDS: Final[frozenset[str]] = frozenset()
_EVERY: Final = ""  # the pattern that matches every line
_LONGEST_LINE: Final = 4 * MAX_LINE  # in bytes of UTF-8
_Owners = Sequence[_EntryGroup | None]


class ScannedLine:
    """One line with a hit. Not a data class: hundreds are made for a case, and a constructor of its own is compiled.

    Attributes:
        offset: where it begins in its text, in characters.
        line_number: its 1-based number.
        text: the line.
        hits: the catalogue entries that match it.
        error_words: the general words of failure in it.
        starts_traceback: whether it is the first line of a Python traceback.
    """

    __slots__ = ("error_words", "hits", "line_number", "offset", "starts_traceback", "text")

    def __init__(
        self,
        offset: int,
        line_number: int,
        text: str,
        hits: tuple[Signature, ...] = (),
        error_words: frozenset[str] = _NO_WORDS,
        starts_traceback: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        self.offset = offset
        self.line_number = line_number
        self.text = text
        self.hits = hits
        self.error_words = error_words
        self.starts_traceback = starts_traceback

    @property
    def is_severe(self) -> bool:
        """Whether it has a general word of failure that healthy runs seldom print."""
        return bool(self.error_words - _MILD_WORDS)


class Scanner:
    """A scanner for one catalogue. Building it takes 0.05 s with the packaged one: build it once."""

    def __init__(self, catalogue: Catalogue) -> None:
        owners: dict[str, list[Signature]] = {}
        for entry in catalogue.entries:
            for literal in dict.fromkeys(entry.literals):
                owners.setdefault(literal, []).append(entry)
        self._words = frozenset(ERROR_WORDS)
        self._patterns = sorted({*owners, *ERROR_WORDS, TRACEBACK, *LANDMARKS})
        # Entries that count for node events only are not tried on logs.
        in_events = [tuple(owners.get(pattern, ())) for pattern in self._patterns]
        in_logs = [
            tuple([entry for entry in owned if entry.when is None or entry.when.stream != _EVENTS])
            for owned in in_events
        ]
        groups: dict[tuple[str, ...], _EntryGroup | None] = {}
        self._owners_in_events, self._owners_in_logs = (
            [_group_of(owned, groups) for owned in owners_of] for owners_of in (in_events, in_logs)
        )
        self._is_word = [pattern in self._words for pattern in self._patterns]
        self._begins_word = [
            pattern in _WORD_EDGE or (is_short(pattern) and pattern not in self._words) for pattern in self._patterns
        ]
        self._ends_word = [
            begins and pattern != "evict" for begins, pattern in zip(self._begins_word, self._patterns, strict=True)
        ]
        self._traceback = self._patterns.index(TRACEBACK)
        self._is_landmark = [pattern in LANDMARKS for pattern in self._patterns]
        self._is_hit_in_logs, self._is_hit_in_events = (
            [
                bool(word or owned) or index == self._traceback
                for index, (word, owned) in enumerate(zip(self._is_word, owners_of, strict=True))
            ]
            for owners_of in (in_logs, in_events)
        )
        self._literals = Literals(self._patterns)

    def scan(self, text: str, landmarks: set[str] | None = None, *, of_events: bool = False) -> list[ScannedLine]:
        """The lines of a text with a hit, in order; of more than 1,200 the first and the last 600.

        Args:
            text: the text.
            landmarks: receives those of `LANDMARKS` that are in the text, in either case; for a very long text all.
            of_events: whether it is of node events. Then entries that count for them only are tried too, and only lines
                with a literal of an entry are found.
        """
        landmarks = set() if landmarks is None else landmarks
        if len(text) <= _PIECE:
            found = self._lines_of(text, 0, 1, landmarks, of_events=of_events)
            return found if len(found) <= 2 * _KEEP else [*found[:_KEEP], *found[-_KEEP:]]
        landmarks.update(LANDMARKS)  # one may be where the text is cut
        first: list[ScannedLine] = []
        last: deque[ScannedLine] = deque(maxlen=_KEEP)
        begin, number = 0, 1
        while begin < len(text):
            end = text.rfind("\n", begin, begin + _PIECE) + 1
            if end <= 0 or begin + _PIECE >= len(text):
                end = min(len(text), begin + _PIECE)
            piece = text[begin:end]
            for one in self._lines_of(piece, begin, number, set(), of_events=of_events):
                (first if len(first) < _KEEP else last).append(one)
            number += piece.count("\n")
            begin = end
        return [*first, *last]

    def _lines_of(
        self, text: str, base: int, number: int, landmarks: set[str], *, of_events: bool
    ) -> list[ScannedLine]:
        """The lines of a piece with a hit. Lines of daemons are tried as events are; few logs have any."""
        found = self._piece(text, base, number, landmarks, of_events=of_events)
        if of_events or landmarks.isdisjoint(DAEMON_MARKS):
            return found
        by_place = {line.offset: line for line in found}
        for line in self._piece(text, base, number, set(), of_events=True):
            known = by_place.get(line.offset)
            more = tuple(
                [hit for hit in line.hits if hit.family not in _COMPARED and hit.when and hit.when.stream == _EVENTS]
            )
            if not more or not is_of_daemon(line.text):
                continue
            if known is None:
                by_place[line.offset] = line
                line.hits = more
            else:
                known.hits = (*known.hits, *more)
        return [by_place[offset] for offset in sorted(by_place)]

    def _piece(self, text: str, base: int, number: int, landmarks: set[str], *, of_events: bool) -> list[ScannedLine]:
        """The lines of a piece with a hit."""
        low = lower_case(text)
        is_hit = self._is_hit_in_events if of_events else self._is_hit_in_logs
        owners = self._owners_in_events if of_events else self._owners_in_logs
        is_landmark = self._is_landmark
        begins_word, ends_word = self._begins_word, self._ends_word
        around = low + "\n"  # a character follows the last match, and one stands at -1, before a match at 0
        returns = "\r" in text
        line_begin = line_end = counted = 0
        lines: list[ScannedLine] = []
        indexes: list[int] = []
        for index, start, end in self._literals.find(low):
            if is_landmark[index]:
                landmarks.add(self._patterns[index])
            if ends_word[index] and around[end].isalpha():  # by far the most frequent: "inf" in "INFO"
                continue
            if not is_hit[index] or (begins_word[index] and around[start - 1].isalpha()):
                continue
            if start >= line_end:
                if indexes and not (of_events and _is_unknown(indexes, owners)):
                    lines.append(self._line(text, base, line_begin, line_end, number, indexes, owners))
                indexes = []
                before = text.rfind("\n", line_end, start)
                if returns:
                    before = max(before, text.rfind("\r", line_end, start))
                line_begin = before + 1 or line_end
                line_end = text.find("\n", end)
                if line_end < 0:
                    line_end = len(text)
                turn = text.find("\r", end, line_end) if returns else -1
                if turn >= 0:
                    line_end = turn
                number += text.count("\n", counted, line_begin)
                counted = line_begin
            indexes.append(index)
        if indexes and not (of_events and _is_unknown(indexes, owners)):
            lines.append(self._line(text, base, line_begin, line_end, number, indexes, owners))
        return lines

    def _line(
        self, text: str, base: int, begin: int, end: int, number: int, indexes: list[int], owners: _Owners
    ) -> ScannedLine:
        line = text[begin : min(end, begin + _MAX_LINE_KEPT)]
        hits: list[Signature] = []
        words: list[str] = []
        tried: set[str] = set()
        encoded = line[:MAX_LINE].encode()
        start: int | None = None  # of the message behind the header, once it is asked for
        for index in indexes:
            if self._is_word[index]:
                words.append(self._patterns[index])
            group = owners[index]
            if group is None:
                continue
            only_id = group.only_id  # of most groups, for which a set need not be compared
            if (only_id in tried) if only_id is not None else group.ids <= tried:
                continue
            found = group.matching(encoded)
            if group.of_beginnings is not None and len(found) < len(group.entries):
                start = parse_header(line).message_start if start is None else start
                found = _with_own_beginning(group, line, start, found)
            if found:
                hits += [entry for entry in found if entry.id not in tried]
            if only_id is not None:
                tried.add(only_id)
            else:
                tried |= group.ids
        error_words = frozenset(words) if words else _NO_WORDS
        return ScannedLine(base + begin, number, line, tuple(hits), error_words, self._traceback in indexes)


def _with_own_beginning(group: _EntryGroup, line: str, start: int, found: Sequence[Signature]) -> Sequence[Signature]:
    """The entries that match a line, and those that match it without its header of some length: time, rank, process."""
    if not start:
        return found
    before = line[start - 1]
    if len(line) <= MAX_LINE and not (before.isalnum() or before == "_"):
        # The header ends no word and its loss adds no text, so that only what asks how a line begins may match now.
        group = group.of_beginnings or group
    known = frozenset([entry.id for entry in found])
    if group.ids <= known:
        return found
    more = [entry for entry in group.matching(line[start : start + MAX_LINE].encode()) if entry.id not in known]
    return [*found, *more] if more else found


def _is_unknown(indexes: list[int], owners: _Owners) -> bool:
    """Whether none of these literals is of a catalogue entry."""
    return all(owners[index] is None for index in indexes)


_SPACES = re.compile(r"\s+")


def tidy(line: str, most: int = 1_000) -> str:
    """A line for display: stripped, runs of space as one, cut to `most` characters."""
    line = line.strip()
    if "  " in line or "\t" in line:
        line = _SPACES.sub(" ", line)
    return line if len(line) <= most else line[: most - 1] + "…"
