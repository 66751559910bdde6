"""The headline of a failure: a title of its signature, the key words of its line, and where it began."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, TypeAlias

from classifiers import signatures
from classifiers.extraction.line_headers import parse_header
from classifiers.extraction.scan import Scanner
from service.formatting import strip_colour, whole_words

_MOST: Final = 12  # headers of one line
_LONGEST: Final = 1_000  # characters that are read
# Each is removed at the start of a line, repeatedly. A level counts in capitals only: `error: x` is part of a message.
_HEADERS: Final = (
    re.compile(r"\[\s*\d+\.\d+\]\s+"),  # kernel
    re.compile(r"20\d\d[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?[:,]?\s*"),
    re.compile(r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2}\s+\d\d:\d\d:\d\d\s+"),
    re.compile(r"(?:\d{4}\s+)?\d\d:\d\d:\d\d(?:[.,]\d+)?\s*[|:]?\s*"),
    re.compile(
        r"[\w.-]+ (?:app|kernel|systemd|kubelet|slurmd|[\w.-]+\[\d+\])(?:\[\d+\])?:\s+"
        # host and process of syslog
    ),
    re.compile(r"\(\d+\)\s+(?=\[)"),
    re.compile(r"\[(?:rank|worker|trainer|default)[ :._-]?\d+\]:?\s*"),
    re.compile(r"\[[\w.-]+:\d+\]:?\s*"),
    re.compile(r"\[[\w.-]+-(?:launcher|worker|master|ps|node|train)-\d+\]\s*"),
    re.compile(r"\((?:[\w.]+ )?pid=\d+(?:, ip=[\d.]+)?\)\s*"),
    re.compile(r"(?:[\w.]+-)+(?:node|worker|train|launcher|master)-?\d*:\s+"),
    re.compile(r"worker-\d+:\s+"),
    re.compile(r"\[(?:\w+)=[^\]]{0,60}\]\s*"),  # [process=0]
    re.compile(r"[-|]?\s*\[?(?:ERROR|CRITICAL|FATAL|WARNING|WARN|INFO|DEBUG)\]?\s*(?:[-:|]\s*|\s)"),
    re.compile(r"(?:stderr|stdout):\s+"),
    re.compile(r"NVRM:\s+(?=Xid)"),
)


def without_headers(line: str) -> str:
    """The message of a log line, in one line; the whole line if nothing but headers would be cut off."""
    text = " ".join(strip_colour(line[:_LONGEST]).split())
    message = text[parse_header(text).message_start :].lstrip(" -|:") or text
    for _ in range(_MOST):
        found = next((hit for header in _HEADERS if (hit := header.match(message)) and hit.end()), None)
        if found is None:
            break
        message = message[found.end() :].lstrip(" -|:")
    return message or text


LONGEST: Final = 140  # characters
_READ: Final = 1_000  # characters of a line
_TOKEN: Final = 90  # characters of the line behind a title; more behind a short one, up to the longest headline
_EXCEPTION: Final = re.compile(
    r"(?:[A-Za-z_]\w*\.)*"
    r"(?P<type>[A-Za-z_]\w*(?:Error|Exception|Interrupt|Denied|Timeout|Unknown|NotFound)): ?(?P<message>.+)"
)
_RECORD: Final = re.compile(r"status=(?P<status>[a-z_]+)(?: exit_code=(?P<code>-?\d+))?(?: signal=(?P<signal>\d+))?")
_STRONG: Final = ("decisive", "strong")


@cache
def titles() -> dict[str, str]:
    """The titles by signature, in the order of the file."""
    text = files("service.headlines").joinpath("titles.toml").read_text(encoding="utf-8")
    found: dict[str, str] = tomllib.loads(text)["title"]
    return found


@cache
def _scanner() -> Scanner:
    return Scanner(signatures.packaged())


OwnTitles: TypeAlias = Callable[[str], str | None]
"""Finds the label of the own signature that a line matches, None without one."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """A headline before the place is known: `title` in words, `token` of the line behind it."""

    title: str
    token: str = ""
    is_exception: bool = False
    takes_node: bool = False


def headline(line: str, *, node: str | None = None, frame: str | None = None, own: OwnTitles | None = None) -> str:
    """What happened, in one line for people.

    Args:
        line: the most significant log line; empty if there is none.
        node: the node where it began, named if the title does not name it yet.
        frame: where in the job's own code it began, as `train.py:88`; only exceptions show it.
        own: finds the label of an operator's own signature, which comes before all titles.

    Returns:
        A line without time stamps, hosts, processes and ranks; empty without a line.
    """
    label = own(strip_colour(line[:_READ]).replace("\n", " ")) if own is not None and line else None
    parts = _parts(line) if label is None else _Parts(label, _behind(label, without_headers(line)), takes_node=True)
    if parts.is_exception and frame and frame not in parts.title:
        return f"{_without_full_stop(parts.title)} in {frame}"
    named = parts.takes_node and node and node.partition(".")[0] not in parts.title
    title = f"{parts.title} on {node}" if named else parts.title
    return f"{title}: {parts.token}" if parts.token else title


@lru_cache(maxsize=8192)
def _parts(line: str) -> _Parts:
    message = without_headers(line)
    if not message:
        return _Parts("")
    found = [hit for one in _scanner().scan(strip_colour(line[:_READ]).replace("\n", " ")) for hit in one.hits]
    hits = [hit for hit in found if not hit.needs]  # what needs another line of the case is not known by this one
    ids = {hit.id for hit in hits}
    known = next((title for signature, title in titles().items() if signature in ids), None)
    exception = _EXCEPTION.match(message)
    token = f"{exception['type']}: {exception['message']}" if exception is not None else message
    if known is not None:
        title, slot, _ = known.partition(": {line}")
        raised = exception is not None and not slot  # its place in the job's own code is what a title leaves out
        return _Parts(title, _behind(title, token) if slot else "", is_exception=raised, takes_node=True)
    if exception is not None:
        # The rest of a message that ends with a colon stands in the next lines.
        return _Parts(whole_words(token.removesuffix(":"), LONGEST), is_exception=True)
    strong = next((hit for hit in hits if hit.role == "initiating" and hit.strength in _STRONG), None)
    if strong is None:
        record = _RECORD.fullmatch(message)
        return _Parts(whole_words(message, LONGEST) if record is None else _of_record(record))
    return _Parts(strong.title, _behind(strong.title, message), takes_node=True)


def _of_record(record: re.Match[str]) -> str:
    """How a job ended of which only the scheduler's record is known."""
    code, signal = record["code"], record["signal"]
    facts = " and ".join(fact for fact in (code and f"exit code {code}", signal and f"signal {signal}") if fact)
    ended = record["status"].replace("_", " ").capitalize()
    return f"{ended}{f' with {facts}' if facts else ''}, no error line found"


def _behind(title: str, token: str) -> str:
    """The part of a line that fits behind a title, without what the title says already."""
    _, before, rest = token.rpartition(f"{title}: ")
    if before and rest:
        token = rest
    elif token.endswith(title):
        return ""
    return whole_words(token, max(_TOKEN, LONGEST - len(title) - 2))


def _without_full_stop(message: str) -> str:
    return message[:-1] if message.endswith(".") and not message.endswith("..") else message


def catalogue_title(title: str) -> str:
    """The words of the headlines for a title of the catalogue; the title itself where they have none."""
    return _titles_of_catalogue().get(title, title)


@cache
def _titles_of_catalogue() -> dict[str, str]:
    own = titles()
    return {
        entry.title: own[entry.id].partition(": {line}")[0]
        for entry in signatures.packaged().entries
        if entry.id in own
    }
