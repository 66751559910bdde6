"""Groups of catalogue entries that rules on node events, lines and ranks ask for (`entry_groups.toml`).

Each function gives the ids of the entries of its group, and is read once.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from classifiers import signatures, taxonomy
from classifiers.observation_names import OBSERVATIONS

_FILE: Final = "entry_groups.toml"


@cache
def peer_lost() -> frozenset[str]:
    """A process says that another one is gone or late."""
    return _group("peer_lost")


@cache
def wait_timeouts() -> frozenset[str]:
    """Of these, a process says that it waited until a limit."""
    return _group("wait_timeouts")


@cache
def start_timeouts() -> frozenset[str]:
    """Of these, a process says that not all others came to begin."""
    return _group("start_timeouts")


@cache
def peer_silent() -> frozenset[str]:
    """A process says that another one does not answer over the network."""
    return _group("peer_silent")


@cache
def nodes_lost() -> frozenset[str]:
    """A log or a scheduler says that a whole node is gone."""
    return _group("nodes_lost")


@cache
def deadlines_reached() -> frozenset[str]:
    """A scheduler says that a job did not end in time."""
    return _group("deadlines_reached")


@cache
def node_operations() -> frozenset[str]:
    """An operation on a node, which a report of changes may name too."""
    return _group("node_operations")


@cache
def ended_by_request() -> frozenset[str]:
    """A scheduler or an operator says who, or which policy, ended a job."""
    return _group("ended_by_request")


@cache
def redundant_parts() -> frozenset[str]:
    """A part failed of which a node has several, so that it goes on with one less."""
    return _group("redundant_parts")


def are_of_redundant_parts(entries: Sequence[str]) -> bool:
    """Whether an event that some entries know is only of a part of which the node has several."""
    return bool(entries) and redundant_parts().issuperset(entries)


@cache
def reported_consequences() -> frozenset[str]:
    """Processes and launchers report what any failure makes them report: entries of that role in the catalogue."""
    return frozenset(entry.id for entry in signatures.packaged().entries if entry.role in {"cascade", "teardown"})


@cache
def program_errors() -> frozenset[str]:
    """Only the user's side is a cause: by the causes of the catalogue, without `deadlines_reached`."""
    side_of = taxonomy.load().side_of
    of_users = {
        entry.id
        for entry in signatures.packaged().entries
        if entry.causes and all(side_of(cause) == "user" for cause in entry.causes)
    }
    return frozenset(of_users - deadlines_reached())


@cache
def known() -> frozenset[str]:
    """Ids of all entries of the packaged catalogue and names of all observations."""
    return frozenset(entry.id for entry in signatures.packaged().entries) | OBSERVATIONS


def resolve(names: Sequence[str], where: str) -> list[str]:
    """The ids that names stand for; a name may end in "*".

    Raises:
        ValueError: nothing has such a name; the text says where it stands.
    """
    found = []
    for name in names:
        if name.endswith("*"):
            some = [one for one in known() if one.startswith(name[:-1])]
        else:
            some = [name] if name in known() else []
        if not some:
            raise ValueError(f"{where}: no catalogue entry is named {name}")
        found += sorted(some)
    return found


def source() -> bytes:
    """The content of the file of the groups."""
    return files("classifiers.relevance").joinpath(_FILE).read_bytes()


@cache
def _read() -> Mapping[str, Any]:
    return tomllib.loads(source().decode())


def _group(name: str) -> frozenset[str]:
    return frozenset(resolve(_read()[name], f"{_FILE}: {name}"))
