"""Memory of a site layer: a recurrence of a labelled failure takes the label of its group.

A failure is recognised by its fingerprint together with the masked text of an initiating line, or by all these lines
alone, so that other hosts, numbers, paths and windows of the same log are recognised too. An entry decides only if its
labels agree; entries that disagree cancel each other. Two protections hold until a second person gives the same label:
an entry does not say user where a decisive signature says platform, or the reverse, nor change the retry outlook where
it contradicts that signature otherwise; and it does not turn a futile failure into one that is resubmitted.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final

from classifiers import taxonomy
from classifiers.extraction import training_progress
from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase
from classifiers.extraction.onset import Onset
from classifiers.masking import mask

# Judgement: initiating lines by which a failure is recognised, and characters of each.
KEY_LINES: Final = 4
KEY_CHARACTERS: Final = 200
# Judgement: a line without its place in the source recognises a failure if it has this many different words.
DISTINCTIVE_WORDS: Final = 4
# Judgement: lines before the report that ended a process by which, together with it, a failure is recognised.
ENDING_LINES: Final = 2
# Judgement: people who give the same label before an entry may overrule a decisive signature or allow a resubmit.
PEOPLE_TO_OVERRULE: Final = 2
RESUBMITTED: Final = frozenset({"helps", "helps_elsewhere"})
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_NAMES: Final = re.compile(r"\b(?=\w*(?:\d|#))[\w#.-]+\b")
_SEPARATOR: Final = " @ "
_ENDING: Final = " / "
_REPORT_CHARACTERS: Final = 600
_ANY_HOST: Final = "node0"  # masked as all names with a number


@dataclass(frozen=True, slots=True)
class FailureKeys:
    """What a failure is recognised by.

    Attributes:
        fingerprint: the fingerprint.
        lines: of each initiating line its keys: the masked line with its place in the source, if known, then the line.
            One line without a key where the failure shows nothing that it could be recognised by.
    """

    fingerprint: str
    lines: tuple[tuple[str, ...], ...]

    @property
    def all_lines(self) -> tuple[str, ...]:
        """All keys of lines, once each."""
        return tuple(dict.fromkeys(key for keys in self.lines for key in keys))

    @property
    def can_recur(self) -> bool:
        """Whether a later failure can be recognised by these keys."""
        return bool(self.all_lines)


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A labelled group of failures.

    Attributes:
        fingerprints: the fingerprints of its failures.
        lines: keys of their initiating lines.
        labels: the agreed label by axis; axes without a label are left out.
        people: people who gave this label.
        cases: ids of the labelled failures.
    """

    fingerprints: tuple[str, ...]
    lines: tuple[str, ...]
    labels: Mapping[str, str]
    people: int
    cases: tuple[str, ...]

    def covers(self, keys: FailureKeys) -> bool:
        """Whether each initiating line of a failure is one of the entry, one of them with a distinctive key."""
        shared = [[key for key in own if key in self.lines] for own in keys.lines]
        return all(shared) and any(is_distinctive(key) for own in shared for key in own)

    def shares_line(self, keys: FailureKeys) -> bool:
        """Whether a failure and the entry share an initiating line."""
        return any(key in self.lines for key in keys.all_lines)


def keys_of(extracted: ExtractedCase, fingerprint: str) -> FailureKeys:
    """What a failure is recognised by; `fingerprint` is that of the packaged model's verdict."""
    first = [one for one in extracted.items if one.role == "initiating" and not one.derived]
    telling = [one for one in first if not _is_report(one)]
    if not telling:
        # A launcher reports the end of a process in the same words whatever ended it, and a fingerprint without a
        # first line is that of all failures that show nothing.
        telling = _last_words(extracted.items)
        if not telling:
            ending = _ending(extracted.items)
            return FailureKeys(fingerprint, ((ending,) if ending is not None else (),))
    # Of other names the mask takes all: a hyphen may also join words that tell failures apart.
    hosts = [one for name in extracted.case.job.nodes for one in {name, name.partition(".")[0]} if "-" in one]
    return FailureKeys(fingerprint, tuple(_line_keys(one, hosts) for one in telling[:KEY_LINES]))


def _is_report(item: EvidenceItem) -> bool:
    """Whether a line of a log, or the scheduler, reports that a process ended or was ended."""
    if item.from_scheduler:
        return _reports().search(item.message[:_REPORT_CHARACTERS]) is not None
    if item.line_number is None:
        return False
    if item.reports_exit or item.onset == Onset.LAUNCHER_REPORT or item.role == "teardown":
        return True
    return _reports().search(item.message[:_REPORT_CHARACTERS]) is not None


@cache
def _reports() -> re.Pattern[str]:
    """Lines that report the end of another process (exit_reports.toml), as one expression; read once.

    Raises:
        ValueError: an entry has no pattern or no source, or its pattern is invalid.
    """
    rows = tomllib.loads(files("classifiers.model.site").joinpath("exit_reports.toml").read_text("utf-8"))["report"]
    if not all(row.get("pattern") and row.get("source") for row in rows):
        raise ValueError("exit_reports.toml: each report needs a pattern and a source")
    try:
        return re.compile("|".join(f"(?:{row['pattern']})" for row in rows))
    except re.error as error:
        raise ValueError(f"exit_reports.toml: {error}") from None


def _last_words(items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """Of each log the last distinctive line without a known form, before the end of a process if it is reported."""
    ends: dict[int, int] = {}
    for one in items:
        if _is_report(one):
            ends[one.stream] = min(one.start_offset, ends.get(one.stream, one.start_offset))
    last: dict[int, EvidenceItem] = {}
    for one in items:
        before = one.offset < ends.get(one.stream, one.offset + 1)
        later = one.stream not in last or one.offset > last[one.stream].offset
        if before and later and _is_of_unknown_form(one) and is_distinctive(_masked(one.message)):
            last[one.stream] = one
    return list(last.values())


def _ending(items: Sequence[EvidenceItem]) -> str | None:
    """The last lines of a log and the report that ended it, as one key; None where these are too few words.

    For programs that end without a word of their own: one of these lines alone is said by too many.
    """
    of_log = sorted(filter(_is_line_of_log, items), key=lambda one: (one.stream, one.offset))
    end = next((place for place, one in enumerate(of_log) if _is_report(one)), None)
    if end is None:
        return None
    before = [one for one in of_log[:end] if one.stream == of_log[end].stream][-ENDING_LINES:]
    key = _ENDING.join(_masked(one.message) for one in (*before, of_log[end]))
    return key if before and is_distinctive(key) else None


def _is_of_unknown_form(item: EvidenceItem) -> bool:
    """Whether an item is a line of a log that no entry of the catalogue knows, other than progress."""
    is_unknown = _is_line_of_log(item) and item.role == "context" and not item.hits
    return is_unknown and training_progress.step_of(item.message) is None


def _is_line_of_log(item: EvidenceItem) -> bool:
    return item.line_number is not None and not item.from_scheduler and not item.derived


def _line_keys(item: EvidenceItem, hosts: Sequence[str]) -> tuple[str, ...]:
    message = item.message
    for host in hosts:
        if host in message:
            message = re.sub(rf"(?<![\w-]){re.escape(host)}(?![\w-])", _ANY_HOST, message)
    line = _masked(message)
    return (f"{line}{_SEPARATOR}{_masked(item.raised_at)}", line) if item.raised_at else (line,)


def is_distinctive(key: str) -> bool:
    """Whether a key recognises a failure alone: its place is known, or its words are many."""
    return _SEPARATOR in key or len(set(_WORD.findall(key))) >= DISTINCTIVE_WORDS


def _masked(text: str) -> str:
    """Masked text, of long lines beginning and end: records of one line have the message last."""
    masked = _NAMES.sub("#", mask(text)).lower()
    half = KEY_CHARACTERS // 2
    return masked if len(masked) <= KEY_CHARACTERS else f"{masked[:half]} … {masked[-half:]}"


@dataclass(frozen=True)
class Memory:
    """The entries of a site layer, with indexes."""

    entries: tuple[MemoryEntry, ...] = ()
    _by_key: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        found: dict[str, list[int]] = defaultdict(list)
        for place, entry in enumerate(self.entries):
            for key in (*entry.fingerprints, *entry.lines):
                found[key].append(place)
        object.__setattr__(self, "_by_key", {key: tuple(places) for key, places in found.items()})

    def recall(self, keys: FailureKeys) -> MemoryEntry | None:
        """The entry that a failure recurs from; None if there is none, or if entries give different labels.

        A failure recurs from an entry with its fingerprint and one of its initiating lines. The fingerprint alone is
        not enough: for faults of the platform it holds a catalogue entry, which failures of many programs share. Else
        it recurs from an entry that has all its initiating lines, one of them distinctive: a window of the log shows
        fewer lines of a failure, but no others.
        """
        same = [self.entries[place] for place in self._by_key.get(keys.fingerprint, ())]
        found = [one for one in same if one.shares_line(keys)]
        if not found:
            places = {place for key in keys.all_lines if is_distinctive(key) for place in self._by_key.get(key, ())}
            found = [self.entries[place] for place in sorted(places) if self.entries[place].covers(keys)]
        judged = {(one.labels.get("side"), one.labels.get("cause")) for one in found}
        return max(found, key=lambda one: one.people) if len(judged) == 1 else None


def allowed_labels(
    entry: MemoryEntry, *, retry: str, decisive_causes: Iterable[str] | None
) -> Mapping[str, str] | None:
    """The labels that an entry may set on a failure; None if it may set none.

    Args:
        entry: the entry.
        retry: the outlook of a retry without the entry.
        decisive_causes: the causes of a decisive signature on the first line; None without one.
    """
    if entry.people >= PEOPLE_TO_OVERRULE:
        return entry.labels
    keeps_retry = retry not in RESUBMITTED and entry.labels.get("retry") in RESUBMITTED
    if decisive_causes is not None:
        causes = tuple(decisive_causes)
        if not _agrees(entry.labels, causes):
            if not _leaves_it_to_same_people(entry.labels, causes):
                return None
            keeps_retry = True
    return {**entry.labels, "retry": retry} if keeps_retry else entry.labels


def _agrees(labels: Mapping[str, str], causes: Sequence[str]) -> bool:
    """Whether labels name a cause of a signature, or where they name none, its side."""
    if "cause" in labels:
        return labels["cause"] in causes
    return labels.get("side") in {taxonomy.load().side_of(one) for one in causes}


def _leaves_it_to_same_people(labels: Mapping[str, str], causes: Sequence[str]) -> bool:
    """Whether a signature names the people who have to act by the labels: the user, or those who run the platform."""
    side_of = taxonomy.load().side_of
    given = labels.get("side") or (side_of(labels["cause"]) if "cause" in labels else None)
    return given is not None and (given == "user") in {side_of(one) == "user" for one in causes}
