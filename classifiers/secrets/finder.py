"""Finds the spans of secrets in a text: all markers in one automaton, each with its patterns."""

import base64
import binascii
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from classifiers.patterns.literal_search import Literals, lower_case
from classifiers.secrets import other_scripts
from classifiers.secrets.arguments import BEFORE_OPTION, shell_lines
from classifiers.secrets.formats import base64_markers, secret_formats
from classifiers.secrets.general_formats import ARGUMENT, FLAGS, GENERAL_FORMATS
from classifiers.secrets.lines import Name, secrets_below
from classifiers.secrets.named_values import is_next_secret, is_secret_value, next_value, pattern_of, whole_value
from classifiers.secrets.names import BARE_KEYS, NAMES
from classifiers.secrets.opaque import OpaqueWords
from classifiers.secrets.unescaped import LEVELS, Unescaped
from classifiers.secrets.values import is_key, is_masked, is_no_secret

PLACEHOLDER = "[redacted]"

# The end of a colour before a secret, as bytes of a terminal or escaped in JSON and Python.
_COLOUR = re.compile(r"(?:\x1b|\\x1b|\\u001b|\\033|\\e)\[[\d;]{0,16}m\Z")
_COLOUR_MOST = 24  # characters
_END_OF_KEY = "-----end "  # of a private key, of which the log's tail may begin in the middle
_CUT_KEY = re.compile(r"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_LINE_OF_KEY = re.compile(r"[ \t]{0,40}[A-Za-z0-9+/=]{1,100}[ \t\r]{0,4}")
_TOKEN_MOST = 4096 + len("eyJ")
_LOGIN_MOST = 2600  # characters from the begin of an address to the @ after a login
_RUN = re.compile(r"[\w-]*")
_BASE64_LEAST = 16  # characters of a run that is worth decoding
_BASE64_BEFORE = re.compile(r"[A-Za-z0-9+/_-]{0,4096}\Z")
# Lines of a wrapped text in base64 have 60 to 76 characters.
_BASE64_AFTER = re.compile(r"(?:[A-Za-z0-9+/]{60,76}(?:\\n|\s){1,16}){0,1000}[A-Za-z0-9+/_-]{0,65536}={0,2}")
_HEXADECIMAL = re.compile("(?:[0-9a-fA-F]{2})+")
_NOT_BASE64 = re.compile(r"(?:\\n|\s)+")
# After many commands without a secret, the same command is ignored for some characters: a text of nothing but its name
# would take long otherwise.
_COMMANDS = 200
_AFTER_COMMAND = 40
_AROUND = 128  # characters before and after the fixed text of a format
_READ_AGAIN = 256  # characters; a longer value without a secret is not searched for the same name again
# Of one text, or of all texts of an event together: what has more secrets is no log or command, and what follows is
# removed unread, or 15 MB would take 20 s. So is what follows after so many names without a secret: half a minute.
SECRETS_MOST = 20_000
MARKERS_MOST = 200_000
_ESCAPES = ("\\n", "\\t", "\\r")


class _Pattern:
    """One pattern of a marker."""

    __slots__ = ("_compiled", "_first", "before", "kind", "marker", "pattern")

    def __init__(self, marker: str, kind: str, pattern: str, before: tuple[int, int] = (0, 0)) -> None:
        """`before`: the fewest and the most characters before the marker."""
        self.marker = marker
        self.kind = kind
        self.pattern = pattern
        self.before = before
        first = pattern.removeprefix("(?P<secret>")[0]
        self._first = "" if first in "[(\\." else first  # a character with which each match begins
        self._compiled: re.Pattern[str] | None = None  # of hundreds a text needs few: each when its marker is found

    def find(self, text: str, start: int) -> re.Match[str] | None:
        """The match at a marker; a part of the secret may lie before the marker."""
        compiled = self._compiled
        if compiled is None:
            compiled = self._compiled = re.compile(self.pattern, re.IGNORECASE if self.kind == "near" else 0)
        if self.kind != "around":
            return compiled.match(text, start)
        fewest, most = self.before
        begins = range(max(start - most, 0), start - fewest + 1)
        hits = (
            compiled.match(text, begin, start + _AROUND)
            for begin in begins
            if not self._first or text[begin] == self._first
        )
        return next((hit for hit in hits if hit is not None and start < hit.end()), None)


@dataclass(slots=True)
class SearchBudget:
    """What may still be found and looked at in the texts that share it."""

    secrets: int = field(default_factory=lambda: SECRETS_MOST)
    markers: int = field(default_factory=lambda: MARKERS_MOST)

    @property
    def is_spent(self) -> bool:
        """Whether further texts are removed unread."""
        return self.secrets <= 0 or self.markers <= 0


class SecretFinder:
    """All markers in one automaton. Building it takes some milliseconds: build it once."""

    def __init__(self) -> None:
        forms = [_Pattern(marker, "form", pattern) for marker, pattern in GENERAL_FORMATS.items()]
        forms += [_Pattern(name, "name", pattern_of(name)) for name in NAMES]
        forms += [_Pattern(flag, "flag", rf"(?i:{re.escape(flag)})[ =]{ARGUMENT}") for flag in FLAGS]
        forms += [
            _Pattern(one.marker, one.kind, one.pattern, one.before) for one in secret_formats() if one.kind != "word"
        ]
        self._base64 = set(base64_markers())
        others = (*sorted(self._base64), *BEFORE_OPTION, _END_OF_KEY)
        self._markers = list(dict.fromkeys([*(form.marker for form in forms), *others]))
        self._end_of_key = self._markers.index(_END_OF_KEY)
        self._web_token = self._markers.index("eyj")
        self._address = self._markers.index("://")
        self._literals = Literals(self._markers)
        numbers = {marker: number for number, marker in enumerate(self._markers)}
        self._names = {numbers[name] for name in NAMES if name not in BARE_KEYS and name[-1].isalpha()}
        self._patterns: list[list[_Pattern]] = [[] for _ in self._markers]
        for form in forms:
            self._patterns[numbers[form.marker]].append(form)

    def is_in(self, text: str, *, decode: bool = True) -> bool:
        """Whether a text has a secret: the search ends with the first one. `decode`: also those in base64."""
        return bool(self.spans(text, decode=decode, first_alone=True))

    def spans(
        self, text: str, *, decode: bool = True, first_alone: bool = False, budget: SearchBudget | None = None
    ) -> list[tuple[int, int]]:
        """The spans of secrets, in order, not overlapping.

        Args:
            text: the text.
            decode: also those in base64.
            first_alone: end the search with the first secret that is found.
            budget: of all texts of an event, and reduced by this one; default: that of one text.
        """
        budget = budget or SearchBudget()
        if budget.is_spent:
            return [(0, len(text))] if text else []
        low = lower_case(text)
        before = SearchBudget(budget.secrets, budget.markers)
        most = 0 if first_alone else budget.secrets
        found, end = self._known(text, low, most, budget, decode=decode)
        if not text.isascii():
            found += [
                (begin, stop)
                for begin, stop in other_scripts.passwords(text, low)
                if not _is_no_secret(text[begin:stop]) and (end is None or begin < end)
            ]
        if decode and end is None and "\\" in text:
            self._in_strings(text, found, budget)
        words: list[tuple[int, int]] = []
        if decode and end is None:
            words = list(islice(OpaqueWords(text, low).spans(), most + 1))
            end = words[-1][0] if len(words) > most else None
        spans = _merged(_with_opaque(_merged(found), words))
        budget.secrets -= len(spans)
        if end is None or first_alone:
            return spans if end is None else spans or [(end, len(text))]
        budget.secrets = 0
        # A secret may begin before the marker at which the search ended, and a cut one is not recognised.
        end = max(text.rfind(" ", 0, max(end - _AROUND, 0)), text.rfind("\n", 0, max(end - _AROUND, 0)), 0)
        return _merged([*self.spans(text[:end], budget=before), (end, len(text))])

    def _known(
        self, text: str, low: str, most: int, budget: SearchBudget, *, decode: bool, is_list: bool = False
    ) -> tuple[list[tuple[int, int]], int | None]:
        """The secrets of known formats in a text; if they or the markers are too many, also where the search ended.

        `is_list`: the text is a printed list of arguments already.
        """
        found: list[tuple[int, int]] = []
        options: list[int] = []  # where, in a printed list of arguments, an option follows another argument
        names: list[Name] = []
        seen: dict[int, int] = {}  # marker -> end of the last value read: markers inside it are skipped
        tried: dict[int, int] = {}  # marker -> commands without a secret
        at = -1  # place of the next @, without which no login stands in an address
        dotless = 0  # end of a run of letters without a dot within a token's length: no web token begins in it
        decoded = 0  # end of the last run of base64 that was read
        left = budget.markers
        for index, start, _ in self._literals.each(low):
            if start < seen.get(index, 0) or (index == self._web_token and start < dotless):
                continue
            if index == self._address:
                at = at if at >= start else _next_at(text, start)
                if at - start > _LOGIN_MOST:
                    continue
            if index == self._end_of_key:
                found += _cut_key(text, start)
            patterns = self._patterns[index]
            self._note(index, start, options, names)
            hit = _first(patterns, text, start, found)
            if hit is not None:
                seen[index] = hit
            elif patterns and patterns[0].kind == "command":
                tried[index] = tried.get(index, 0) + 1
                seen[index] = start + (_AFTER_COMMAND if tried[index] > _COMMANDS else 0)
            elif index == self._web_token:
                dotless = _end_of_dotless(text, start)
            if decode and start >= decoded and self._markers[index] in self._base64:
                decoded = self._decoded(text, start, decoded, found)
            left -= 1
            if len(found) > most or left <= 0:
                budget.markers = left
                return found, start
        budget.markers = left
        if not is_list:
            self._in_arguments(text, options, found, budget)
            found += secrets_below(text, names)
        return found, None

    def _note(self, index: int, start: int, options: list[int], names: list[Name]) -> None:
        """Add where a marker that says what stands near it was found."""
        marker = self._markers[index]
        if index in self._names:
            names.append(Name(start, start + len(marker), marker))
        elif marker in BEFORE_OPTION:
            options.append(start)

    def _in_strings(self, text: str, found: list[tuple[int, int]], budget: SearchBudget) -> None:
        """Add the secrets in strings with escapes."""
        inner: list[Unescaped] = []
        for _ in range(LEVELS):
            inner.insert(0, Unescaped(text))
            text = inner[0].text
            spans, _ = self._known(text, lower_case(text), budget.secrets, budget, decode=False) if text else ([], None)
            for span in spans:
                for one in inner:
                    span = one.place(span[0]), one.place(span[1])  # noqa: PLW2901 - level by level
                found.append(span)
            if "\\" not in text:
                return

    def _in_arguments(self, text: str, options: list[int], found: list[tuple[int, int]], budget: SearchBudget) -> None:
        """Add the secrets in printed lists of arguments; `options`: where an option follows another argument."""
        for line in shell_lines(text, options):
            spans, _ = self._known(line.text, lower_case(line.text), budget.secrets, budget, decode=False, is_list=True)
            found += [(line.place(begin), line.place(stop - 1) + 1) for begin, stop in spans]

    def _decoded(self, text: str, start: int, after: int, found: list[tuple[int, int]]) -> int:
        """Add the run of base64 around a position if it holds a secret; returns its end."""
        before = _BASE64_BEFORE.search(text, max(after, start - 4096), start)
        begin = before.start() if before is not None else start
        rest = _BASE64_AFTER.match(text, begin)
        end = rest.end() if rest is not None else start + 1
        if end - begin >= _BASE64_LEAST:
            run = _NOT_BASE64.sub("", text[begin:end]).rstrip("=").replace("-", "+").replace("_", "/")
            plains = [_plain(run[offset:]) for offset in range(4)]
            if _HEXADECIMAL.fullmatch(run):
                plains = [bytes.fromhex(run).decode("latin-1")]
            if any(self.is_in(plain, decode=False) for plain in plains if plain):
                found.append((begin, end))
        return max(end, start + 1)


def _plain(run: str) -> str:
    """The text that a run of base64 holds; empty if it holds none."""
    try:
        whole = run if len(run) % 4 != 1 else run[:-1]
        return base64.b64decode(whole + "=" * (-len(whole) % 4)).decode("latin-1")
    except (binascii.Error, ValueError):
        return ""


def _first(patterns: list[_Pattern], text: str, start: int, found: list[tuple[int, int]]) -> int | None:
    """Add the secrets of the first pattern that has one; returns the end of the longest match, None without one."""
    end = None
    for pattern in patterns:
        hit = pattern.find(text, start)
        if hit is None:
            continue
        spans = _secret_spans(pattern, hit, text)
        if spans:
            found += spans
            return max(end or 0, hit.end())
        # What follows a name may be no secret and hold the name again, as in `secret x://y?secret=...`.
        is_short = pattern.kind == "name" and hit.end() - start <= _READ_AGAIN
        end = max(end or 0, start + len(pattern.marker) if is_short else hit.end())
    return end


def _cut_key(text: str, end: int) -> list[tuple[int, int]]:
    """The lines of a private key before its last one at `end`, where that is one."""
    if not _CUT_KEY.match(text, end):
        return []
    begin = end
    while begin > 0 and text[begin - 1] == "\n":
        before = text.rfind("\n", 0, begin - 1) + 1
        if not _LINE_OF_KEY.fullmatch(text, before, begin - 1):
            break
        begin = before
    return [(begin, end)] if begin < end else []


def _next_at(text: str, start: int) -> int:
    at = text.find("@", start)
    return at if at >= 0 else len(text)


def _end_of_dotless(text: str, start: int) -> int:
    run = _RUN.match(text, start)
    end = run.end() if run is not None else start
    # What stands after the dot is no part of a token, whichever letter before it is the first, if it can be reached.
    return end if text[end : end + 1] != "." or end - start <= _TOKEN_MOST else end - _TOKEN_MOST


def _with_opaque(known: list[tuple[int, int]], opaque: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Known secrets and random words. Of a word in which a known one begins, what stands before it is a name."""
    begins = [begin for begin, _ in known]
    found = list(known)
    for begin, end in opaque:
        place = bisect_left(begins, begin)
        is_known = place < len(begins) and begins[place] < end
        found.append((begins[place] if is_known else begin, end))
    return found


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found.sort()
    merged = found[:1]
    for begin, end in found[1:]:
        if begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _secret_spans(pattern: _Pattern, hit: re.Match[str], text: str) -> list[tuple[int, int]]:
    """The spans of the secrets in a match, without those that are ordinary text."""
    start, kind = hit.start(), pattern.kind
    if kind in {"begins", "form"} and text[start].isalnum() and _in_a_word(text, start):
        return []
    if kind == "name":  # the value is the last group
        group = str(hit.lastgroup)
        spans = []
        if is_secret_value(pattern.marker, hit, group, text) and not _is_no_secret(hit[group]):
            spans.append(whole_value(hit, group, text))
        changed = next_value(hit, text)
        if changed is not None:
            value = changed["secret"]
            if is_next_secret(pattern.marker, hit, value, text) and not _is_no_secret(value):
                spans.append(changed.span("secret"))
        return spans
    spans = []
    for group, value in hit.groupdict().items():
        if "secret" not in group or value is None:
            continue
        plain = value.strip("\\\"'")
        if plain.startswith(PLACEHOLDER) or (is_masked(plain) if kind == "begins" else is_no_secret(plain)):
            continue
        if kind == "near" and hit["gap"] and not is_key(plain):
            continue
        if kind == "near" and value.isalpha() and (value.islower() or value.isupper() or value.istitle()):
            continue  # a word
        spans.append(hit.span(group))
    return spans


def _is_no_secret(value: str) -> bool:
    plain = value.strip("\\\"'`")
    return plain.startswith(PLACEHOLDER) or is_no_secret(plain)


def _in_a_word(text: str, start: int) -> bool:
    """Whether a position is in the middle of a longer word; an escaped line end before it is not part of a word."""
    before = text[start - 1 : start]
    if not (before.isalnum() or before == "_"):
        return False
    if before == "m" and _COLOUR.search(text, max(start - _COLOUR_MOST, 0), start):
        return False
    return text[max(start - 2, 0) : start] not in _ESCAPES and text[max(start - 3, 0) : start - 2] != "%"
