"""Texts of node events for training, with what they say of a node or its surroundings: `classifiers/data/events`.

A file holds the events of one domain, one JSON object a line. Its first line says what the file is: `version`, and
`basis`, what the texts rest on. Every other line is an event:

    kind    what it reports, as a slug; texts of one kind are other wordings of one thing, by other programs
    source  who reports it, as collectors name it
    text    the text, in one line
    entry   the id of the catalogue entry that stands for such events, null for an event that harms no job
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

VERSION: Final = 1
LONGEST_TEXT: Final = 400  # characters
_FIELDS: Final = frozenset({"kind", "source", "text", "entry"})


@dataclass(frozen=True, slots=True)
class EventText:
    """The text of a node event, and the catalogue entry that stands for it, None if it harms no job."""

    kind: str
    source: str
    text: str
    entry: str | None


@cache
def packaged() -> tuple[EventText, ...]:
    """All texts of the package.

    Raises:
        ValueError: a file holds something else; the message names file, line and field.
    """
    folder = files("classifiers") / "data" / "events"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".jsonl")), key=lambda one: one.name)
    return tuple(text for one in found for text in read(one.read_text(encoding="utf-8"), one.name))


def read(content: str, name: str) -> tuple[EventText, ...]:
    """The texts of a file.

    Args:
        content: what the file holds.
        name: the file, for errors.

    Raises:
        ValueError: it holds something else; the message names file, line and field.
    """
    lines = [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
    if not lines:
        raise ValueError(f"{name}: expected events, found nothing")
    head = _object(lines[0][1], f"{name}:1")
    if head.get("version") != VERSION or not isinstance(head.get("basis"), str):
        raise ValueError(f"{name}:1: expected version {VERSION} and basis")
    texts = tuple(_event(_object(line, f"{name}:{number}"), f"{name}:{number}") for number, line in lines[1:])
    known: set[str] = set()
    for one, (number, _) in zip(texts, lines[1:], strict=True):
        if one.text in known:
            raise ValueError(f"{name}:{number}: text: it stands there twice")
        known.add(one.text)
    return texts


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where}: expected a JSON object") from error
    if not isinstance(found, dict):
        raise ValueError(f"{where}: expected a JSON object")  # noqa: TRY004 - data of a file, not of a caller
    return found


def _event(raw: dict[str, Any], where: str) -> EventText:
    if raw.keys() != _FIELDS:
        raise ValueError(f"{where}: expected the fields {', '.join(sorted(_FIELDS))}")
    for field in ("kind", "source", "text"):
        value = raw[field]
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT or "\n" in value:
            raise ValueError(f"{where}: {field}: expected one line of 1 to {LONGEST_TEXT} characters")
    if raw["entry"] is not None and not isinstance(raw["entry"], str):
        raise ValueError(f"{where}: entry: expected the id of a catalogue entry or null")
    return EventText(raw["kind"], raw["source"], raw["text"], raw["entry"])
