"""Reads the node events of a job from a file: JSON in any accepted format, or lines of a kernel or of syslog."""

import codecs
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import orjson

from classifiers.contracts import NotDiagnostic
from classifiers.diagnostic_files.dmesg import stamped_line
from classifiers.diagnostic_files.nvidia_smi import read_gpu_states
from classifiers.diagnostic_files.streams import kind_of
from classifiers.fleet_evidence.recent_changes import ALL_NODES
from classifiers.redaction import redact
from service.contracts.event import LOGS_MOST, NodeEventIn
from service.errors import InvalidInput, UnreadableRecord
from service.formats import node_events
from service.formats.field_reading import Skipped
from service.logs.text_cleaning import decode

_SAMPLE: Final = 16 * 1024  # bytes by which a diagnostic file is known
_TEXT_MOST: Final = 2_000


def read(data: bytes, name: str, cluster: str) -> list[NodeEventIn]:
    """Return the node events of a file, one JSON value or one line each; a JSON array holds several.

    A line of plain text without time and node is a node event of unknown time on an unknown node.

    Raises:
        InvalidInput: a JSON value is no node event, or there are too many.
    """
    found = list(_events(data, name, cluster))
    if len(found) > LOGS_MOST:
        raise InvalidInput(f"{name}: expected at most {LOGS_MOST:,} node events, got {len(found):,}")
    return found


def _events(data: bytes, name: str, cluster: str) -> Iterator[NodeEventIn]:
    data = data.removeprefix(codecs.BOM_UTF8)
    if kind_of(data[:_SAMPLE]) == "nvidia_smi":
        try:
            states = read_gpu_states(decode(data))
        except NotDiagnostic as error:
            raise InvalidInput(f"{name}: {error}") from None
        yield from (NodeEventIn(source="nvidia-smi", text=redact(state)) for state in states)
        return
    stripped = data.strip()
    if stripped.startswith((b"[{", b"[\n", b"[\r", b"[ {")):
        with suppress(orjson.JSONDecodeError):
            for number, value in enumerate(orjson.loads(stripped), 1):
                yield from _from_json(value, f"{name}: entry {number}", cluster)
            return
    for number, line in enumerate(decode(data).split("\n"), 1):  # texts in JSON may hold other separators of lines
        if not line.strip():
            continue
        if line.lstrip().startswith("{"):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise InvalidInput(f"{name}: line {number}: not JSON: {error}") from None
            yield from _from_json(value, f"{name}: line {number}", cluster)
        else:
            yield from _from_text(line.strip(), cluster)


def _from_json(value: Any, where: str, cluster: str) -> Iterator[NodeEventIn]:
    if isinstance(value, dict) and set(value) <= {"text", "at", "node", "source"}:
        try:  # as in `node_events` of job-completion/1
            yield NodeEventIn.model_validate(value)
        except ValueError as error:
            raise InvalidInput(f"{where}: not a node event: {error}") from None
        return
    try:
        yield from _parsed(orjson.dumps(value), cluster)
    except UnreadableRecord as error:
        raise InvalidInput(f"{where}: {error.reason}") from None


def _from_text(line: str, cluster: str) -> Iterator[NodeEventIn]:
    of_kernel = stamped_line(line)
    if of_kernel is not None:
        yield NodeEventIn(at=of_kernel[1], source="kernel", text=redact(of_kernel[0])[:_TEXT_MOST])
        return
    try:
        yield from _parsed(line.encode("utf-8", "replace"), cluster)
    except UnreadableRecord:
        yield NodeEventIn(text=redact(line)[:_TEXT_MOST])


def _parsed(record: bytes, cluster: str) -> list[NodeEventIn]:
    found = node_events.parse(record, cluster=cluster)
    if isinstance(found, Skipped):
        return []
    # A change of the whole cluster is one of no single node.
    return [
        NodeEventIn(at=one.at, node=None if one.node == ALL_NODES else one.node, source=one.source, text=one.text)
        for one in found.events
    ]
