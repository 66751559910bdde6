"""The headline of a failure: a title of its signature, the key words of its line, and where it began."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from classifiers import signatures
from classifiers.extraction.scan import Scanner
from service.formatting import strip_colour, whole_words
from service.headlines.line_cleaning import cleaned

LONGEST: Final = 140  # characters
_READ: Final = 1_000  # characters of a line
_TOKEN: Final = 90  # characters of the line behind a title
_EXCEPTION: Final = re.compile(
    r"(?:[A-Za-z_]\w*\.)*"
    r"(?P<type>[A-Za-z_]\w*(?:Error|Exception|Interrupt|Denied|Timeout|Unknown|NotFound)): ?(?P<message>.+)"
)
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


@dataclass(frozen=True, slots=True)
class _Parts:
    """A headline before the place is known: `title` in words, `token` of the line behind it."""

    title: str
    token: str = ""
    is_exception: bool = False
    takes_node: bool = False


def headline(line: str, *, node: str | None = None, frame: str | None = None) -> str:
    """What happened, in one line for people.

    Args:
        line: the most significant log line; empty if there is none.
        node: the node where it began, named if the title does not name it yet.
        frame: where in the job's own code it began, as `train.py:88`; only exceptions show it.

    Returns:
        A line without time stamps, hosts, processes and ranks; empty without a line.
    """
    parts = _parts(line)
    if parts.is_exception and frame and frame not in parts.title:
        return f"{parts.title} in {frame}"
    named = parts.takes_node and node and node.partition(".")[0] not in parts.title
    title = f"{parts.title} on {node}" if named else parts.title
    return f"{title}: {parts.token}" if parts.token else title


@lru_cache(maxsize=8192)
def _parts(line: str) -> _Parts:
    message = cleaned(line)
    if not message:
        return _Parts("")
    hits = [hit for found in _scanner().scan(strip_colour(line[:_READ]).replace("\n", " ")) for hit in found.hits]
    ids = {hit.id for hit in hits}
    known = next((title for signature, title in titles().items() if signature in ids), None)
    exception = _EXCEPTION.match(message)
    token = f"{exception['type']}: {exception['message']}" if exception is not None else message
    if known is not None:
        title, slot, _ = known.partition(": {line}")
        return _Parts(title, whole_words(token, _TOKEN) if slot else "", takes_node=True)
    if exception is not None:
        return _Parts(whole_words(token, LONGEST), is_exception=True)
    strong = next((hit for hit in hits if hit.role == "initiating" and hit.strength in _STRONG), None)
    if strong is None:
        return _Parts(whole_words(message, LONGEST))
    return _Parts(strong.title, whole_words(message, _TOKEN), takes_node=True)
