"""Errors of a client that could not reach a server of its own job, where the server's own log shows why it ended."""

import re
from collections.abc import Sequence
from typing import Final

from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.onset import Onset
from classifiers.extraction.stream_reader import StreamText
from classifiers.node_names import short_name
from classifiers.relevance.entry_groups import peer_lost

_UNREACHED: Final = re.compile(
    r"(?i)connection (?:refused|reset|aborted)|connect call failed|cannot connect to host|max retries exceeded"
    r"|failed to (?:connect|establish)|could not connect|closed connection|server disconnected|errno 11[13]"
)
_WORDS: Final = ("onnect", "etries", "rrno")
_HOST: Final = re.compile(
    r"host=['\"](?P<named>[\w.-]{1,120})|\b[a-z][a-z0-9+]{1,9}://(?P<url>[\w.-]{1,120})"
    r"|(?P<port>(?:\b[A-Za-z]|\d{1,3}\.)[\w.-]{0,120}):\d{2,5}\b"
)
_OWN_HOST: Final = frozenset({"localhost", "127.0.0.1", "127"})
_RANGE: Final = 600  # characters of a line that are read (judgement)
_AT_ONCE_S: Final = 5.0  # judgement: lines of one moment are written in any order


def demote_unreached(items: Sequence[EvidenceItem], streams: Sequence[StreamText]) -> None:
    """Let a client's error be a consequence where the log of the node that it names shows an error before it.

    Args:
        items: all items; changed in place.
        streams: the texts.
    """
    nodes = {
        stream.index: short_name(stream.source.node)
        for stream in streams
        if stream.source.node and not stream.is_scheduler
    }
    if len(nodes) < 2:  # noqa: PLR2004
        return
    clients = [item for item in items if item.stream in nodes and _is_unreached(item)]
    if not clients:
        return
    servers = [item for item in items if item.stream in nodes and _is_own_error(item)]
    for item in clients:
        hosts = _hosts(item.message[:_RANGE], nodes[item.stream])
        if any(
            server.stream != item.stream and nodes[server.stream] in hosts and _is_before(server, item)
            for server in servers
        ):
            item.role, item.onset = "cascade", Onset.NEUTRAL


def _is_unreached(item: EvidenceItem) -> bool:
    if item.role != "initiating" or item.line_number is None or not any(word in item.message for word in _WORDS):
        return False
    return _UNREACHED.search(item.message, 0, _RANGE) is not None


def _is_own_error(item: EvidenceItem) -> bool:
    """Whether a line shows an error of its own process, after which that did not go on."""
    if item.role != "initiating" or item.line_number is None or item.survived or item.onset > Onset.SHELL_ERROR:
        return False
    return not _is_unreached(item) and not any(hit.id in peer_lost() for hit in item.hits)


def _hosts(message: str, own: str) -> frozenset[str]:
    """Short names of the hosts that a message names; the process's own node where it names itself."""
    found = (match["named"] or match["url"] or match["port"] for match in _HOST.finditer(message))
    return frozenset(own if name in _OWN_HOST else short_name(name) for name in found)


def _is_before(server: EvidenceItem, client: EvidenceItem) -> bool:
    return server.time is None or client.time is None or server.time <= client.time + _AT_ONCE_S
